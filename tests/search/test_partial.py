"""Children whose answers take long: they go on in the next step, with their parent, and nothing of them is lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evolvent.core.errors import UserError
from evolvent.core.records import Group
from evolvent.core.step import Step
from evolvent.lineage.store import Store
from evolvent.rollout.sample import is_open
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.session import begin, resume
from evolvent.run.spec import RunSpec
from evolvent.search.archive import archive_of
from evolvent.search.variation.language import apply, menu

WORLD = "program:landscape:parts=5,options=3"
SMALL = {"propose.children": 2, "propose.n": 4, "keep.islands.count": 1}


def made(over: float, task: str = WORLD, **settings: Any) -> Assembled:
    """The recipe with a seed model, and so many families under way."""
    named = {key.replace("__", "."): value for key, value in settings.items()}
    return assemble(RunSpec("thetaevolve", task, "tiny", settings={**SMALL, "rollout.partial.over": over, **named}))


def taken(assembled: Assembled, count: int) -> list[Step]:
    """Steps of the only role."""
    return [assembled.system.step()[0] for _ in range(count)]


def sampled(groups: Sequence[Group]) -> int:
    """Tokens."""
    return sum(t.sampled for g in groups for t in g.trajectories)


def check(one: Assembled, steps: Sequence[Step], size: int) -> list[Any]:
    """What holds however children are written: whole families of one parent, each child once, no token lost. Gives
    the children that took several steps."""
    rows = [t for s in steps[1:] for g in s.groups for t in g.trajectories]
    waiting = one.system.parts["rollout.partial"].waiting
    assert len({t.uid for t in rows}) == len(rows)
    assert all(
        len(g.trajectories) == size and len({t.uses for t in g.trajectories}) == 1 for s in steps[1:] for g in s.groups
    )
    assert all(len(s.groups) == 2 for s in steps[1:])
    assert not any(map(is_open, rows))
    assert sum(sampled(s.groups) for s in steps) + sampled(waiting) == one.system.ledger.of("sampled")
    assert len(archive_of(one.main_role).history) == 1 + len(rows)
    return [t for t in rows if "versions" in t.info]


def test_a_small_policys_edits_go_on(sandboxed: str) -> None:
    one = made(2.0, rollout__edit__warmup=20)
    steps = taken(one, 6)
    history = archive_of(one.main_role).history
    choices = menu(one.main_role.task.components, one.main_role.task.seed_program)
    late = check(one, steps, 4)
    assert late
    for t in late:
        if "unusable" not in t.info:
            assert t.info["program"] == apply(history[int(t.uses[0])].text, t.completion, choices)
    patient = made(1.0, rollout__edit__warmup=20)
    whole = taken(patient, 6)
    assert check(patient, whole, 4) == []
    assert "resumed" not in whole[-1].metrics
    assert one.system.ledger.of("decode_steps") < patient.system.ledger.of("decode_steps")


@pytest.fixture
def words(tmp_path: Path) -> dict[str, Any]:
    """Settings with which a model of characters writes whole programs, as larger models do: its prompts are short."""
    for kind in ("diff", "rewrite"):
        (tmp_path / f"{kind}.md").write_text("{{ '%.2f' % parent.value }}=")
    return {
        "rollout": "evolvent.search.vary:Vary",
        "rollout.write.prompts": str(tmp_path),
        "rollout.write.attempts": 1,
        "rollout.write.inner.max_tokens": 40,
    }


def short(folder: Path) -> str:
    """A task whose goal a model of characters has room for."""
    (folder / "e.py").write_text("import runpy\n\n\ndef evaluate(p):\n    return runpy.run_path(p)['x']\n")
    (folder / "p.py").write_text("x = 1.0\n")
    return f"program:{folder / 'e.py'}:{folder / 'p.py'}"


def test_a_models_programs_go_on_as_what_they_are(words: dict[str, Any], tmp_path: Path, sandboxed: str) -> None:
    one = made(2.0, short(tmp_path), **words)
    steps = taken(one, 5)
    late = check(one, steps, 4)
    assert late
    assert {t.info["operator"] for t in late} <= {"diff", "rewrite"}
    for t in late:
        rewritten = t.info["operator"] == "rewrite" and "unusable" not in t.info
        assert t.info["program"] == (t.completion + "\n" if rewritten else "")
    ready = [t for g in one.system.parts["rollout.partial"].waiting for t in g.trajectories if not is_open(t)]
    assert sum(s.metrics["asked"] for s in steps) == 2 * 4 * len(steps[1:]) + len(ready)  # once, when they are done
    patient = made(1.0, short(tmp_path), **words)
    assert check(patient, taken(patient, 5), 4) == []
    assert one.system.ledger.of("decode_steps") < patient.system.ledger.of("decode_steps")


@pytest.mark.slow
def test_what_is_under_way_goes_on_after_a_stop(tmp_path: Path, sandboxed: str) -> None:
    settings = {name: str(value) for name, value in {**SMALL, "rollout.partial.over": 2.0}.items()}
    found = []
    for budgets in (("6 steps",), ("3 steps", "6 steps")):
        store = Store(tmp_path / str(len(budgets)))
        result = begin(RunSpec("thetaevolve", WORLD, "tiny", budgets[0], settings=settings), store, "r")
        for budget in budgets[1:]:
            result = resume(store, "r", budget=budget)
        archive = archive_of(result.assembled.main_role)
        found.append([(c.text, c.value, c.parents) for c in archive.history])
    assert found[0] == found[1]


def test_what_cannot_be_paused() -> None:
    with pytest.raises(UserError, match="asked for once, of one model; add --set rollout.write.attempts=1"):
        made(2.0, rollout__write__attempts=2, rollout__edit__warmup=0)
    with pytest.raises(UserError, match=r"rollout.partial.over must be at least 1, got 0.5"):
        made(0.5, rollout__edit__warmup=0)
    with pytest.raises(UserError, match="tokens"):
        assemble(RunSpec("thetaevolve", WORLD, "none", settings={"rollout.partial.over": 2.0}))
    assemble(RunSpec("thetaevolve", WORLD, "none"))
