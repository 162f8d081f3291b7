"""Evaluators of searches that are given as tasks: each refusal says what to write, and that is accepted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evolvent.core.errors import UserError
from evolvent.tasks.registry import load_task
from evolvent.tasks.seed_program import task_of

ADAPTER = """import gepa_that_nobody_installed


class Mine(gepa_that_nobody_installed.Adapter):
    def evaluate(self, batch, candidate, capture_traces=False): ...

    def make_reflective_dataset(self, candidate, evaluated, components): ...
"""
MADE = "from gepa_that_nobody_installed import DefaultAdapter\n\nadapter = DefaultAdapter('a model')\n"
BEGUN = "seed_candidate = {'prompt': 'Add.'}\n\n"
OPENEVOLVE = "def evaluate(program_path):\n    return {'combined_score': 1.0}\n"
OF_TEXTS = "def evaluate(texts):\n    return float(len(texts['prompt']))\n"
PROGRAM = "def answer():\n    return 1\n"


def refused(folder: Path, text: str) -> str:
    """What is said of a file as a task."""
    path = folder / "given.py"
    path.write_text(text)
    with pytest.raises(UserError) as found:
        load_task(str(path))
    return str(found.value).replace(f"{folder}/", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BEGUN + ADAPTER, "a GEPA adapter, .*: write --task texts:given.py$"),
        (ADAPTER, "a GEPA adapter, .*: write --task texts:given.py:prompts.toml, .* or add seed_candidate to the file"),
        (MADE, "a GEPA adapter, .*: write --task texts:given.py:prompts.toml"),
        (BEGUN + OF_TEXTS, r"evaluate\(texts\) and no reward, .*: write --task texts:given.py$"),
        (BEGUN + f"async {OF_TEXTS}", r"evaluate\(texts\) and no reward, .*: write --task texts:given.py$"),
        (OPENEVOLVE, "programs evolve by it: write --task given.py --seed-program program.py"),
        (OPENEVOLVE.replace("program_path", "program"), "programs evolve by it"),
        (OF_TEXTS.replace("texts", "prompt_path"), "texts evolve by it"),
        (BEGUN + OF_TEXTS.replace("texts", "p"), "texts evolve by it: write --task texts:given.py$"),
        (
            f"import asyncio\n\nasync {OPENEVOLVE}",
            r"given.py line 3: evaluate is async, .*def evaluate\(program_path\)",
        ),
    ],
)
def test_the_refusal_says_what_to_write(text: str, said: str, tmp_path: Path) -> None:
    assert re.search(said, refused(tmp_path, text)), refused(tmp_path, text)


@pytest.mark.parametrize("name", ["p", "path", "x"])
def test_where_nobody_knows_what_it_evaluates_both_ways_are_named(name: str, tmp_path: Path) -> None:
    said = refused(tmp_path, OPENEVOLVE.replace("program_path", name))
    assert f"has evaluate({name})" in said
    assert "--task given.py --seed-program program.py" in said
    assert "--task texts:given.py:prompts.toml" in said


def test_what_it_says_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    assert "--task given.py --seed-program program.py" in refused(tmp_path, OPENEVOLVE)
    assert load_task(task_of("given.py", "program.py")).seed_program == PROGRAM
    with pytest.raises(UserError, match="program:circle-packing:26 says itself what it begins with"):
        task_of("program:circle-packing:26", "program.py")
    spelled = refused(tmp_path, BEGUN + OF_TEXTS).partition("--task ")[2]
    task = load_task(spelled)
    assert task.texts(task.seed_program) == {"prompt": "Add."}
    task.close()


@pytest.mark.parametrize("more", ["def reward(completion): return 1.0\n", "from math import fsum as reward\n"])
def test_a_file_with_problems_and_a_reward_may_have_an_evaluate_of_its_own(more: str, tmp_path: Path) -> None:
    rows = "def problems(): return [{'prompt': str(i), 'answer': '1'} for i in range(20)]\n"
    path = tmp_path / "given.py"
    path.write_text(OPENEVOLVE + rows + "def reward(completion): return float(evaluate(completion) is None)\n")
    assert load_task(str(path)).name == "given"
    assert "no function `problems`" in refused(tmp_path, OPENEVOLVE + more)


def test_a_seed_program_beside_an_async_evaluator(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(f"async {OPENEVOLVE}")
    (tmp_path / "program.py").write_text("x = 1\n")
    task = task_of(str(tmp_path / "waits.py"), str(tmp_path / "program.py"))
    with pytest.raises(UserError, match=r"waits\.py line 1: evaluate is async"):
        load_task(task)
    (tmp_path / "waits.py").write_text(OPENEVOLVE)
    assert load_task(task).name == task
