"""Searches from end to end, in a real sandbox: what they find, what they keep, and how they go on."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from evolvent.cli.table import print_final
from evolvent.core.errors import UserError
from evolvent.lineage.runs import read_run
from evolvent.lineage.store import Store
from evolvent.run.assemble import assemble
from evolvent.run.result import Progress, Result
from evolvent.run.session import Session, begin, resume
from evolvent.run.spec import RunSpec
from evolvent.tasks.program import load


def searched(folder: Path, task: str, recipe: str = "hill-climbing", budget: str = "8 steps", **more: Any) -> Result:
    return begin(RunSpec(recipe, task, "none", budget, **more), folder, logs=("jsonl",))


def test_climbing_finds_better_programs_and_leaves_the_rest_alone(tmp_path: Path, task: str) -> None:
    result = searched(tmp_path / "runs", task, budget="120 evaluations")
    found = list(result.view.candidates.values())
    assert found[0]["evaluation"]["value"] == -8.0
    assert found[0]["operator"] == "seed"
    best = max(c["evaluation"]["value"] for c in found if c["evaluation"]["value"] is not None)
    assert best > -2.0
    program = (result.folder / "best.py").read_text()
    assert "def unchanged():\n    return 2.0" in program
    assert result.ledger.of("verifier_calls") == len(found) == 121
    assert all(c["parents"] for c in found[1:])
    assert [c["uid"] for c in found] == list(range(len(found)))
    curve = [value for _, value in result.view.curve("best")]
    assert curve == sorted(curve)
    assert curve[-1] == best


def test_what_does_not_run_is_kept_and_is_no_error(tmp_path: Path, task: str) -> None:
    result = searched(tmp_path / "runs", task, "random-search", "6 steps", settings={"propose.children": "12"})
    wrong = [c for c in result.view.candidates.values() if c["evaluation"]["value"] is None]
    assert wrong
    assert all(c["evaluation"]["feedback"] for c in wrong)
    assert result.view.errors == {}
    parents = {p for c in result.view.candidates.values() for p in c["parents"]}
    assert parents.isdisjoint(c["uid"] for c in wrong)


@pytest.mark.parametrize(("recipe", "parents"), [("iid-sampling", {0}), ("sequential-sampling", None)])
def test_parents_of_the_baselines(tmp_path: Path, task: str, recipe: str, parents: set[int] | None) -> None:
    found = list(searched(tmp_path / "runs", task, recipe, "7 steps").view.candidates.values())
    if parents is not None:
        assert {c["parents"][0] for c in found[1:]} == parents
        return
    latest = 0
    for c in found[1:]:
        assert c["parents"] == [latest]
        if c["evaluation"]["value"] is not None:
            latest = c["uid"]


def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path: Path, task: str) -> None:
    whole = searched(tmp_path / "one", task, budget="6 steps", seed=3)
    store = Store(tmp_path / "two")
    first = Session(store, RunSpec("hill-climbing", task, "none", "6 steps", 3), "halved", logs=("jsonl",))

    def stop(progress: Progress) -> None:
        if progress.t == 3:
            first.stopping.set()

    first.watch = stop
    assert first.start(assemble(first.spec)).interrupted
    assert len(read_run(store, "halved").candidates) == 17
    resumed = resume(store, "halved")
    assert resumed.view.candidates == whole.view.candidates
    assert resumed.view.curve("best") == whole.view.curve("best")


@pytest.mark.slow
def test_a_step_that_was_written_twice_counts_once(tmp_path: Path, task: str) -> None:
    whole = searched(tmp_path / "one", task, budget="5 steps", seed=1)
    store = Store(tmp_path / "two")
    searched(tmp_path / "two", task, budget="3 steps", seed=1)
    name = read_run(store, "last").name
    extra = [(uid, c) for uid, c in whole.view.candidates.items() if uid >= 17]  # as if killed before the checkpoint
    store.add_many(name, [("candidate", c) for _, c in extra[:8]])
    resumed = resume(store, name, budget="5 steps")
    assert resumed.view.candidates == whole.view.candidates


def test_a_seed_program_that_does_not_run(tmp_path: Path, task: str) -> None:
    (tmp_path / "first.py").write_text("def point():\n    return 1 / 0\n")
    with pytest.raises(UserError, match=r"the seed program is not valid \(raised: ZeroDivisionError.*mend it"):
        searched(tmp_path / "runs", task)


@pytest.mark.parametrize("value", ["'high'", "float('nan')", "None", "True"])
def test_an_evaluator_that_gives_no_number(tmp_path: Path, task: str, value: str) -> None:
    (tmp_path / "evaluator.py").write_text(f"def evaluate(program_path):\n    return {value}\n")
    with pytest.raises(UserError, match=r"the seed program is not valid \(invalid: .*no finite number"):
        searched(tmp_path / "runs", task)


@pytest.mark.parametrize(
    ("marks", "told"),
    [("# EVOLVE-BLOCK-START\nx = 1\n", "EVOLVE-BLOCK"), ("x = 1\n# EVOLVE-BLOCK-END\n", "EVOLVE-BLOCK")],
)
def test_marks_that_do_not_nest(tmp_path: Path, task: str, marks: str, told: str) -> None:
    (tmp_path / "first.py").write_text(marks)
    with pytest.raises(UserError, match=told):
        searched(tmp_path / "runs", task)
    assert not (tmp_path / "runs").exists()


def test_an_evaluator_that_looks_at_nothing(tmp_path: Path, task: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "evaluator.py").write_text("def evaluate(program_path):\n    return 1.0\n")
    print_final(searched(tmp_path / "runs", task, budget="4 steps"), None)
    assert "candidates have the value 1: does the evaluator look at the program?" in capsys.readouterr().out


def test_the_same_seed_repeats_the_search_and_another_does_not(tmp_path: Path, task: str) -> None:
    spec = RunSpec("random-search", task, "none", "4 steps", 5)
    one, two, other = (
        begin(s, tmp_path / str(i), logs=("jsonl",)).view.candidates
        for i, s in enumerate((spec, spec, replace(spec, seed=6)))
    )
    assert one == two
    assert one != other


def end(server: psutil.Process) -> None:
    """Kill a server with all that it has started."""
    for process in [server, *server.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):  # the first one's end is the end of others
            process.kill()


def test_a_sandbox_that_is_killed_costs_the_search_nothing(tmp_path: Path, task: str) -> None:
    wanted = searched(tmp_path / "calm", task, "random-search", "4 steps").view.candidates
    killed: list[int] = []

    def kill(progress: Progress) -> None:
        """After each step."""
        sandbox = made.task.sandbox  # type: ignore[attr-defined]
        end(psutil.Process(sandbox.pid))
        killed.append(sandbox.pid)

    made = assemble(RunSpec("random-search", task, "none", "4 steps"))
    found = Session(Store(tmp_path / "killed"), made.spec, "run", logs=("jsonl",), watch=kill).start(made).view
    assert list(found.candidates.values()) == list(wanted.values())
    assert len(set(killed)) == 4
    assert found.errors == {}


@pytest.mark.slow
def test_an_evaluation_whose_sandbox_is_killed_is_done_again(tmp_path: Path, task: str) -> None:
    (tmp_path / "evaluator.py").write_text("import time\ndef evaluate(path):\n    time.sleep(2)\n    return 1.0\n")
    programs = load(task.removeprefix("program:"))
    with programs.sandbox as sandbox:
        sandbox.describe()
        first = psutil.Process(sandbox.pid)
        killer = threading.Timer(1.0, end, [first])
        killer.start()
        assert [e.value for e in programs.evaluate([programs.seed_program])] == [1.0]
        assert sandbox.starts == 2


def test_workers_change_nothing_but_the_time(tmp_path: Path, task: str) -> None:
    one, two = (
        searched(
            tmp_path / str(n), task, "random-search", "3 steps", settings={"judge.workers": str(n)}
        ).view.candidates
        for n in (1, 2)
    )
    assert list(one.values()) == list(two.values())
    with pytest.raises(UserError, match=r"judge\.workers must be at least 0, got -1"):
        searched(tmp_path / "wrong", task, settings={"judge.workers": "-1"})


@pytest.mark.parametrize(("line", "told"), [("TIMEOUT = 'long'", "TIMEOUT = 'long'"), ("TIMEOUT = 0", "TIMEOUT = 0")])
def test_an_evaluator_with_a_time_limit_that_is_none(tmp_path: Path, task: str, line: str, told: str) -> None:
    with (tmp_path / "evaluator.py").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(UserError, match=told):
        searched(tmp_path / "runs", task)


def test_an_evaluator_says_how_long_it_may_take(tmp_path: Path, task: str) -> None:
    (tmp_path / "evaluator.py").write_text("TIMEOUT = 0.3\ndef evaluate(path):\n    while True: pass\n")
    with pytest.raises(UserError, match="timeout"):
        searched(tmp_path / "runs", task)


@pytest.mark.parametrize("recipe", ["hill-climbing", "openevolve"])
def test_a_search_among_huge_numbers_goes_on(tmp_path: Path, task: str, recipe: str) -> None:
    evaluator, program = tmp_path / "evaluator.py", tmp_path / "first.py"
    text = evaluator.read_text().partition("    x, y =")[0]
    evaluator.write_text(text + "    x, y = module.point()\n    return {'a': x, 'b': x, 'c': y}\n")
    program.write_text(program.read_text().replace("x = 1.0", "x = 8e307"))
    result = searched(tmp_path / "runs", task, recipe, "40 evaluations")
    found = [c["evaluation"] for c in result.view.candidates.values()]
    beyond = [e for e in found if "no finite number" in e["feedback"]]
    assert found[0]["value"] > 1e307
    assert beyond
    assert all(e["value"] is None for e in beyond)
    assert max(e["value"] for e in found if e["value"] is not None) > 1e307
