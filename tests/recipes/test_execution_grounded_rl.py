"""Execution-grounded research by policy gradients: rewards of failures and of results, groups, and their baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evolvent.core.records import Group, Problem, Request, Trajectory
from evolvent.core.step import Step
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.spec import RunSpec
from evolvent.search.archive import archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.loop import written
from evolvent.tasks.evaluation import Evaluation

LANDSCAPE = "program:landscape:parts=5,options=3"
EVALUATOR = """
import runpy


def evaluate(program_path):
    return runpy.run_path(program_path)["f"]()
"""
GIVES = "def f():\n    return {}\n"


@pytest.fixture
def numbers(tmp_path: Path, sandboxed: str) -> str:
    """A world where a program's value is what it gives; the seed program's is 1."""
    (tmp_path / "evaluator.py").write_text(EVALUATOR)
    (tmp_path / "first.py").write_text(GIVES.format(1.0))
    return f"program:{tmp_path / 'evaluator.py'}:{tmp_path / 'first.py'}"


def made(task: str, model: str = "none", **settings: Any) -> Assembled:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return assemble(RunSpec("execution-grounded-rl", task, model, settings=named))


def judged(task: str, programs: list[str], unusable: int, **settings: Any) -> tuple[Group, Step]:
    """Children of the seed program beside another that is half as good; the last `unusable` hold no edit."""
    one = made(task, **settings)
    role = one.main_role
    archive_of(role).history = [
        Candidate(0, {"program": GIVES.format(1.0)}, Evaluation(1.0)),
        Candidate(1, {"program": GIVES.format(0.5)}, Evaluation(0.5), (0,)),
    ]
    s = Step(1, role)
    problem = one.task.draw("train", s.rng("problem"))
    rows = [written(i, Request(problem, 1, uses=("0",)), text, "test") for i, text in enumerate(programs)]
    for t in rows[len(rows) - unusable :]:
        t.info["unusable"] = "the answer holds no diff"
    group = Group(problem, rows)
    role.judge([group], s)
    return group, s


def test_every_failure_has_the_lowest_reward_and_a_result_its_own_value(numbers: str) -> None:
    programs = {
        "ok": [GIVES.format(x) for x in (0.8, 0.5, 0.5, 0.25)],  # the second is there already, the third is, too
        "gate": [GIVES.format(x) for x in (0.95, 0.1, 7.0)],
        "invalid": [GIVES.format("float('nan')"), GIVES.format("None")],
        "raised": [GIVES.format("1 / 0"), GIVES.format("missing"), "x = 1\n"],
        "no Python": [GIVES.format("(")],
        "unusable": [GIVES.format(0.6)],
    }
    texts = [text for rows in programs.values() for text in rows]
    group, s = judged(numbers, texts, 1, judge__gates__least__value=0.2, judge__gates__most__value=0.9)
    statuses = [t.info["evaluation"].status for t in group.trajectories]
    assert statuses[:9] == ["ok"] * 4 + ["gate"] * 3 + ["invalid"] * 2
    assert statuses[-1] == "unusable"
    assert not {"ok", "invalid", "gate", "lazy", "unusable"} & set(statuses[9:-1])
    assert [t.score for t in group.trajectories] == [0.8, 0.5, 0.5, 0.25] + [0.0] * 10
    assert all(list(t.rewards) == ["rung"] for t in group.trajectories)
    assert s.metrics["gated"] == 3
    assert s.metrics["lazy"] == 0  # ideas count by what they measure, however often they come


def test_without_bounds_every_result_is_believed(numbers: str) -> None:
    group, _ = judged(numbers, [GIVES.format(0.95), GIVES.format(7.0)], 0)
    assert [t.score for t in group.trajectories] == [0.95, 7.0]


def test_a_group_is_of_the_seed_program_however_good_others_are() -> None:
    one = made(LANDSCAPE, propose__children=2, propose__n=6)
    first, *later = [one.system.step()[0] for _ in range(4)]
    assert [[t.uses for t in g.trajectories] for g in first.groups] == [[()]]
    for s in later:
        assert [[t.uses for t in g.trajectories] for g in s.groups] == [[("0",)] * 6] * 2
    history = archive_of(one.main_role).history
    assert any(c.value > history[0].value for c in history if c.valid)


def answer(uid: int, score: float) -> Trajectory:
    """What a policy wrote, rewarded."""
    problem = Problem("k", (), {})
    t = Trajectory(uid, problem, np.zeros(3, np.int32), np.array([False, True, True]), np.zeros(3, np.float32))
    t.reward("rung", score, "test")
    return t


def test_a_group_is_each_others_baseline() -> None:
    """Advantages are (reward - mean) / std of the group, 0 where all fail; what a rule wrote teaches nothing."""
    role = made(LANDSCAPE).main_role
    scores = [[0.0, 0.2, 0.7], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]
    s = Step(2, role)
    s.groups = [Group(Problem("k", (), {}), [answer(i, x) for i, x in enumerate(row)]) for row in scores]
    (batch,) = role.slots["credit"](s)
    expected = []
    for row in scores:
        m = sum(row) / 3
        deviation = (sum((x - m) ** 2 for x in row) / 2) ** 0.5
        expected += [(x - m) / (deviation + 1e-4) for x in row]
    assert batch.weight == pytest.approx(expected, abs=1e-5)
    s.groups = [Group(s.groups[0].problem, [written(9, Request(s.groups[0].problem, 1), "x = 1", "seed")])]
    assert role.slots["credit"](s) == []


@pytest.mark.slow
def test_a_policy_learns_from_what_its_edits_measure() -> None:
    one = made(LANDSCAPE, "tiny", propose__children=2, propose__n=8, rollout__edit__warmup=60)
    first, second = (one.system.step()[0] for _ in range(2))
    assert first.batches == []  # the seed program teaches nothing
    scores = [np.array([t.score for t in g.trajectories]) for g in second.groups]
    values = [[t.info["evaluation"].value for t in g.trajectories] for g in second.groups]
    assert [x.tolist() for x in scores] == [[v or 0.0 for v in row] for row in values]
    assert any(v is None for row in values for v in row)
    assert all(x.std() > 0 for x in scores)
    (batch,) = second.batches
    expected = np.concatenate([(x - x.mean()) / (x.std(ddof=1) + 1e-4) for x in scores])
    assert np.allclose(batch.weight, expected, atol=1e-5)
    assert second.metrics["learns"] == 1
