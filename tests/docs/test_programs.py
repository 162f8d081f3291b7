"""The programs in the documentation run: recipes take steps, tasks pass their audit, the Python page is executed."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.recipes.recipe_runs import build, steps
from tests.small_model import small_model

from evolvent.core.recipe import REGISTRY
from evolvent.core.step import Step
from evolvent.engine.base import Tree
from evolvent.recipes import all_recipes, resolve
from evolvent.recipes.catalogue import describe_composition
from evolvent.tasks.audit import audit
from evolvent.tasks.registry import load_task

ROOT = Path(__file__).parents[2]
RECIPES = ["README.md", "CONTRIBUTING.md", "docs/write-a-recipe.md", "examples/positive_grpo.py"]


def blocks(page: str) -> list[str]:
    """The Python programs of a page."""
    text = (ROOT / page).read_text()
    return [text] if page.endswith(".py") else re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", RECIPES)
def test_a_recipe_of_the_page_takes_steps(page: str, tmp_path: Path) -> None:
    (program,) = [b for b in blocks(page) if re.search(r"= recipe\(", b)]
    known = dict(all_recipes())
    (tmp_path / "my_method.py").write_text(program)
    name = resolve(f"{tmp_path}/my_method.py")
    try:
        (shown,) = [r for r in describe_composition(name, {}, {}, "tiny")["recipes"] if r["name"] == name]
        assert shown["doc"]
        taken = steps(build(name).system, 3)
        assert sum(s.metrics.get("learn/updates", 0) for s in taken) > 0
    finally:
        for added in set(REGISTRY) - set(known):
            del REGISTRY[added]


def test_the_controller_and_the_claims_of_the_page() -> None:
    written = blocks("docs/write-a-recipe.md")
    names: dict[str, Any] = {"dataclass": dataclass, "Tree": Tree, "Step": Step}
    exec(next(b for b in written if "class FirstCome" in b), names)
    made = build("grpo", rollout__control=names["FirstCome"], rollout__control__enough=1, rollout__control__stride=1)
    (s,) = steps(made.system, 1)
    assert s.pending
    assert all(t.stop == "paused" for t in s.pending)
    exec(next(b for b in written if "mechanism = claim(" in b), names)
    assert names["mechanism"].baselines == names["outcome"].baselines == ("grpo",)
    exec(next(b for b in written if "harder = claim(" in b), names)
    assert set(names["harder"].arms["blunt"]) == {"recipe", "propose.choose.tau"}


def test_the_signatures_of_the_page_are_those_of_the_parts() -> None:
    """As many arguments as the functions take that recipes put there, self aside."""
    page = (ROOT / "docs/write-a-recipe.md").read_text()
    told = dict(re.findall(r"^\| `([a-z.]+)`(?:, `[a-z.]+`)* \| `(\(.*?\)) ->", page, re.MULTILINE))
    built = build("spear+sec").system.parts
    credit, learn = built["credit"], built["learn"]
    parts = {
        "credit": credit,
        "credit.baseline": credit.baseline,
        "credit.scale": credit.scale,
        "credit.rows": credit.rows,
        "credit.groups": credit.groups,
        "learn.ratio": learn.ratio,
        "learn.surrogate": learn.surrogate,
        "learn.aggregate": learn.aggregate,
        **{path: built[path] for path in ("propose", "propose.choose", "judge", "keep")},
    }
    assert set(told) == set(parts)
    for path, part in parts.items():
        wanted = [p for p in inspect.signature(part).parameters.values() if p.kind is not p.KEYWORD_ONLY]
        assert len(re.sub(r"\[[^\]]*\]", "", told[path]).split(",")) == len(wanted), path


def test_the_task_of_the_readme_passes_its_audit(tmp_path: Path) -> None:
    (program,) = [b for b in blocks("README.md") if "def problems" in b]
    (tmp_path / "my_task.py").write_text(program)
    report = audit(load_task(str(tmp_path / "my_task.py")))
    assert report.failed == []


@pytest.mark.slow
def test_the_page_on_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    try:
        for program in blocks("docs/python-api.md"):
            small = program.replace('"tiny"', repr(small_model())).replace("300 steps", "2 steps")
            exec(small.replace("600 steps", "3 steps"), names)
    finally:
        REGISTRY.pop("positive-grpo", None)
    assert "did you mean countdown?" in capsys.readouterr().out
    assert len(names["result"].curve("outcome")) == 3
    assert names["found"].best.value > 0
    assert (tmp_path / "my-model" / "model.safetensors").is_file()
