"""The best of a search, evaluated anew: who is tried, who wins, and what is believed in the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evolvent.cli.table import searched
from evolvent.core.errors import UserError
from evolvent.guard.sandbox import Call
from evolvent.lineage.descent import believed
from evolvent.lineage.export import export_program
from evolvent.lineage.store import Store
from evolvent.run.session import begin, resume
from evolvent.run.spec import RunSpec
from evolvent.search.candidate import Candidate
from evolvent.search.rescore import alike, finalists, rescore
from evolvent.tasks.evaluation import Evaluation, over_instances
from evolvent.tasks.program import PROGRAM, ProgramTask, World

Judge = Callable[[Any, Sequence[str]], Evaluation]


def candidate(uid: int, value: float | None, text: str = "", complete: bool = True) -> Candidate:
    """A candidate with a value from the search; programs differ by their number."""
    return Candidate(uid, {"program": text or f"def run():\n    return {uid}\n"}, Evaluation(value, complete=complete))


class Watched(ProgramTask):
    """Notes which instances are asked for, program by program."""

    def evaluate(self, programs: Sequence[str], names: Sequence[Sequence[str]] | None = None) -> list[Evaluation]:
        asked.extend(tuple(n) for n in names or ())
        return super().evaluate(programs, names)


asked: list[tuple[str, ...]] = []


@pytest.fixture
def task(sandboxed: str) -> Callable[..., Watched]:
    """Makes a task whose programs have `run()`; `judge` makes a value of what they give."""

    def make(judge: Judge, **more: Any) -> Watched:
        asked.clear()

        def call(text: str, names: Sequence[str]) -> Call:
            return Call({PROGRAM: text}, "program", "run", ())

        return Watched(World("program:toy", "a goal", "def run():\n    return 0\n", call, judge, **more))

    return make


def test_finalists_are_the_best_that_were_evaluated_wholly_and_differ() -> None:
    renamed = "def run():  # again\n    return 3\n"
    history = [
        candidate(0, 1.0), candidate(1, 4.0), candidate(2, None), candidate(3, 5.0), candidate(4, 5.0, renamed),
        candidate(5, 9.0, complete=False), candidate(6, 2.0),
    ]  # fmt: skip
    history[4] = candidate(4, 5.0, "def run():\n    '''The same.'''\n    return 3\n")
    assert [c.uid for c in finalists(history, 3)] == [3, 1, 6]
    assert finalists([]) == []


def test_what_is_the_same() -> None:
    assert alike(0.1 + 0.2, 0.3)
    assert not alike(0.3, 0.3001)
    assert alike(None, None)
    assert not alike(0.0, None)
    assert alike(0.0, 0.0)


def test_where_nothing_varies_once_is_enough(task: Callable[..., Watched]) -> None:
    made = task(lambda value, names: Evaluation(float(value)))
    found = rescore(made, [candidate(7, 7.0), candidate(3, 3.0)])
    assert found["same"]
    assert (found["winner"], found["value"], found["found"], found["values"]) == (7, 7.0, 7.0, [7.0])
    assert (found["split"], found["choice"]) == ("train", "train")
    assert len(asked) == 2
    assert believed(found) == "Evaluated anew, candidate 7 of the best 2 has 7, as in the search."


def test_a_value_that_is_not_reproduced_is_not_believed(task: Callable[..., Watched]) -> None:
    found = rescore(task(lambda value, names: Evaluation(float(value))), [candidate(2, 100.0), candidate(3, 3.0)])
    assert not found["same"]
    assert (found["winner"], found["value"]) == (3, 3.0)
    assert [row["values"] for row in found["top"]] == [[2.0] * 5, [3.0] * 5]


def test_where_values_vary_the_winner_is_measured_apart_from_the_choice(task: Callable[..., Watched]) -> None:
    """The lucky one of the search loses; the winner's best evaluations choose it, and others are its value."""
    rounds = iter([(0.0, 1.0), (0.1, 1.4), (0.2, 0.9), (0.0, 1.1), (0.2, 1.1)])
    script = [x for pair in rounds for x in pair] + [0.5, 0.7, 0.6, 0.8, 0.4]
    values = iter(script)
    found = rescore(task(lambda value, names: Evaluation(next(values))), [candidate(1, 2.0), candidate(2, 1.5)])
    assert found["winner"] == 2
    assert found["values"] == [0.5, 0.7, 0.6, 0.8, 0.4]
    assert found["value"] == pytest.approx(0.6)
    assert found["found"] == 1.5
    assert not found["same"]
    assert len(asked) == len(script) == found["evaluations"]
    said = believed(found)
    assert "mean of 5 from 0.4 to 0.8 (in the search 1.5); values differ from one evaluation to the next" in said


def test_who_fails_sometimes_loses_to_who_does_not(task: Callable[..., Watched]) -> None:
    nothing = Evaluation(None, status="raised")
    script = [nothing, Evaluation(1.0), *[Evaluation(9.0), Evaluation(1.0)] * 4, nothing, *[Evaluation(1.0)] * 4]
    values = iter(script)
    found = rescore(task(lambda value, names: next(values)), [candidate(1, 9.0), candidate(2, 1.0)])
    assert (found["winner"], found["value"], found["failed"]) == (2, 1.0, 1)
    assert "1 of 5 evaluations were not valid" in believed(found)


def test_where_nobody_is_valid_any_more(task: Callable[..., Watched]) -> None:
    broken = candidate(1, 3.0, "def run():\n    raise ValueError('gone')\n")
    found = rescore(task(lambda value, names: Evaluation(1.0)), [broken])
    assert (found["winner"], found["value"]) == (None, None)
    assert believed(found) == "Evaluated anew, nothing of the best 1 is valid."


STAGED = """
def evaluate(path):
    return {"whole": 9.0}

def evaluate_stage1(path):
    return {"quick": 1.0}

def evaluate_stage2(path):
    return {"quick": 2.0, "slow": 4.0}
"""


@pytest.mark.parametrize(("recipe", "value"), [("openevolve", 3.0), ("hill-climbing", 9.0)])
def test_stages_count_anew_as_they_did_in_the_search(tmp_path: Path, sandboxed: str, recipe: str, value: float) -> None:
    (tmp_path / "e.py").write_text(STAGED)
    (tmp_path / "p.py").write_text("# EVOLVE-BLOCK-START\nx = 1\n# EVOLVE-BLOCK-END\n")
    spec = RunSpec(recipe, f"program:{tmp_path}/e.py:{tmp_path}/p.py", "none", "5 evaluations")
    found = begin(spec, Store(tmp_path / "runs"), logs=()).view.rescored
    assert found is not None
    assert (found["found"], found["value"], found["same"]) == (value, value, True)
    assert believed(found).endswith(", as in the search.")


def test_the_winner_is_chosen_on_gate_and_alone_sees_test(task: Callable[..., Watched]) -> None:
    """Each instance is worth the program's number times a factor; on gate and test the order turns round."""
    worth = {"a": 1.0, "b": 2.0, "g": -1.0, "t": -3.0, "u": -5.0}
    instances = {"train": ("a", "b"), "gate": ("g",), "test": ("t", "u")}
    made = task(
        lambda value, names: over_instances({n: worth[n] * value for n in names}), instances=instances,
    )  # fmt: skip
    found = rescore(made, [candidate(3, 4.5), candidate(2, 3.0)])
    assert (found["choice"], found["split"], found["winner"], found["same"]) == ("gate", "test", 2, True)
    assert found["value"] == -8.0
    assert found["evaluations"] == 4 * 1 + 2 * 2
    assert asked == [("g",)] * 4 + [("t", "u")] * 2  # twice each: that is how it is known that nothing varies
    assert believed(found) == (
        "Evaluated anew, candidate 2 of the best 2 has -8 on the test split, mean of 2 from -8 to -8 (in the search 3)."
    )


# --- at the end of a run ---

NOISY = """
import importlib.util
import random


def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("candidate", program_path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x, y = module.point()
    return {"combined_score": random.random() - min(1.0, abs(x - 3.0))}
"""


@pytest.fixture
def files(tmp_path: Path, sandboxed: str) -> str:
    """A user's task whose evaluator never says the same twice."""
    (tmp_path / "evaluator.py").write_text(NOISY)
    (tmp_path / "first.py").write_text("def point():\n    x = 1.0\n    y = 1.0\n    return x, y\n")
    return f"program:{tmp_path / 'evaluator.py'}:{tmp_path / 'first.py'}"


def test_a_run_ends_with_the_best_evaluated_anew(tmp_path: Path, files: str) -> None:
    store = Store(tmp_path / "runs")
    result = begin(RunSpec("random-search", files, "none", "20 evaluations"), store, logs=("jsonl",))
    found = result.view.rescored
    assert found is not None
    assert not found["same"]
    tried = result.view.candidates
    assert {row["uid"] for row in found["top"]} <= set(tried)
    assert found["found"] == tried[found["winner"]]["evaluation"]["value"]
    assert (result.folder / "best.py").read_text() == tried[found["winner"]]["payload"]["program"]
    assert result.ledger.of("verifier_calls") == len(tried)
    assert result.view.spent["evidence"]["verifier_calls"] == found["evaluations"] == 5 * len(found["top"]) + 5
    assert result.view.spent["evidence"]["verifier_seconds"] > 0
    assert believed(found) in searched(result)
    most = max(c["evaluation"]["value"] for c in tried.values())
    assert ("loses anew" in searched(result)) == (most > found["found"])
    assert export_program(result.view, tmp_path / "out.py") == found["winner"]
    again = resume(store, result.name, budget="30 evaluations")
    assert again.view.rescored is not None
    assert len(again.view.candidates) >= 30
    assert [e.kind for e in store.events(result.name)].count("rescored") == 2


def test_without_final_nothing_is_evaluated_anew(tmp_path: Path, files: str) -> None:
    result = begin(RunSpec("iid-sampling", files, "none", "9 evaluations"), tmp_path / "runs", final=False, logs=())
    assert result.view.rescored is None
    assert "anew" not in searched(result)


def test_tokens_are_no_budget_where_no_model_writes(tmp_path: Path, files: str) -> None:
    with pytest.raises(UserError, match="no model that reads or writes; give steps, evaluations or minutes"):
        begin(RunSpec("iid-sampling", files, "none", "2k tokens"), tmp_path / "runs")
    with pytest.raises(UserError, match="iid-sampling, which is best-of-n for programs"):
        begin(RunSpec("best-of-n", files, "none", "9 evaluations"), tmp_path / "runs")


def test_huge_values_are_believed(task: Callable[..., Watched]) -> None:
    made = task(lambda value, names: Evaluation(1.7e308))
    with made.sandbox:
        found = rescore(made, [candidate(0, 1.7e308), candidate(1, 1.6e308)])
    assert found["value"] == 1.7e308
