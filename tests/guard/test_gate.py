"""Gates: when they look, at what, and what they take back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.toys import Digits, random_policy, role_of

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.records import Problem
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.guard.gate import ScoreGate, Watch, copy_state
from evolvent.tasks.base import Score, split_of


class Told(Digits):
    """A verifier that says what the test wants, problem by problem: 1, 0, or that it is out."""

    def __init__(self) -> None:
        self.verdicts: list[float | None] = []
        self.asked: list[str] = []

    def score(self, problem: Problem, completion: str) -> Score:
        """The next verdict."""
        self.asked.append(problem.key)
        verdict = self.verdicts[(len(self.asked) - 1) % len(self.verdicts)]
        if verdict is None:
            raise VerifierError("the judge is out")
        return Score(verdict)


class Counter:
    """A learner with a state: how often it was told something."""

    def __init__(self) -> None:
        self.told = torch.zeros(1)

    def ask(self, s: Step) -> list[Any]:
        return [s.role.policy_actor()]

    def tell(self, batches: Any, s: Step) -> list[Any]:
        return []

    def state_dict(self) -> dict[str, Any]:
        return {"told": self.told}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.told = state["told"]


def ready(gate: Watch, task: Any | None = None) -> tuple[Role, Any]:
    """A role with a gate and a learner."""
    learner = Counter()
    role = role_of(random_policy(layers=1, width=16), task, slots={"learn": learner, "gate": gate})
    role.parts = {"learn": learner, "gate": gate}
    gate.setup(role)
    return role, learner


def at(role: Role, t: int) -> Step:
    """The role's step t."""
    return Step(t, role, [role.policy_actor()])


def train(role: Role, learner: Counter) -> None:
    """Change weights and learner."""
    role.policy.set_weights({n: w + 1 for n, w in role.policy.weights().items()})
    role.policy.bump()
    learner.told += 1


def test_a_watch_looks_every_so_many_steps_and_accepts_everything() -> None:
    gate = Watch(every=3, problems=4)
    role, _ = ready(gate)
    looked = []
    for t in range(7):
        s = at(role, t)
        assert gate(s)
        if "gate/accuracy" in s.metrics:
            looked.append(t)
    assert looked == [2, 5]


def test_it_asks_different_problems_of_the_gate_split_the_same_ones_each_time() -> None:
    task = Told()
    task.verdicts = [1.0]
    gate = Watch(every=1, problems=5)
    role, _ = ready(gate, task)
    gate(at(role, 0))
    gate(at(role, 1))
    assert task.asked[:5] == task.asked[5:]
    assert len(set(task.asked)) == 5
    assert {split_of(key) for key in task.asked} == {"gate"}
    again, other = Watch(every=1, problems=5), Told()
    again.setup(role_of(role.policy, other, seed=7))
    assert [p.key for p in again.seen] == [p.key for p in gate.seen]


def test_zero_switches_it_off() -> None:
    gate = Watch(every=0)
    role, _ = ready(gate)
    s = at(role, 24)
    assert gate(s)
    assert not gate.seen
    assert not s.metrics
    assert role.ledger.of("sampled") == 0


@pytest.mark.parametrize("gate", [Watch(every=-1), Watch(problems=0), ScoreGate(every=-1)])
def test_counts_out_of_range_are_refused(gate: Watch) -> None:
    with pytest.raises(UserError, match=r"gate\.every must be at least 0"):
        gate.check(None)


def test_greedy_answers_do_not_depend_on_the_step_or_the_seed() -> None:
    gate = Watch(every=1, problems=6)
    role, _ = ready(gate)
    first = gate.outcomes(at(role, 0))
    assert first.shape == (6,)
    assert (first == gate.outcomes(at(role, 5))).all()


ONES, ZEROS = [1.0] * 16, [0.0] * 16


def test_what_became_worse_is_taken_back_with_the_learners_state() -> None:
    task = Told()
    gate = ScoreGate(every=1, problems=16)
    role, learner = ready(gate, task)
    task.verdicts = ONES
    assert gate(at(role, 0))
    kept = {n: w.clone() for n, w in role.policy.weights().items()}
    train(role, learner)
    task.verdicts = ZEROS
    s = at(role, 1)
    judged = role.policy.version
    assert not gate(s)
    assert s.metrics["gate/accuracy"] == 0
    assert all(torch.equal(kept[n], w) for n, w in role.policy.weights().items())
    assert learner.told.item() == 0
    assert [(c.path, c.before, c.note) for c in s.changes] == [("gate", judged, "refused")]
    assert role.policy.version > judged  # a number is never given to other weights again
    learner.told += 1  # what is learned next must not reach what was kept
    task.verdicts = ZEROS
    train(role, learner)
    assert not gate(at(role, 2))
    assert learner.told.item() == 0


def test_what_was_accepted_is_the_new_measure() -> None:
    task = Told()
    gate = ScoreGate(every=1, problems=16)
    role, learner = ready(gate, task)
    for verdicts, stands in ((ZEROS, True), (ONES, True), (ZEROS, False), (ONES, True)):
        task.verdicts = verdicts
        assert gate(at(role, 0)) == stands
        train(role, learner)


def test_between_two_looks_every_step_stands() -> None:
    task = Told()
    gate = ScoreGate(every=2, problems=4)
    role, _ = ready(gate, task)
    task.verdicts = [1.0]
    assert gate(at(role, 0))
    assert not task.asked
    assert gate(at(role, 1))
    assert len(task.asked) == 4


BEFORE = np.array([1.0] * 50 + [0.0] * 50)


def fallen(count: int, risen: int = 0) -> np.ndarray:
    """So many fewer right than before, and so many that were wrong before."""
    now = BEFORE.copy()
    now[:count], now[50 : 50 + risen] = 0, 1
    return now


@pytest.mark.parametrize(
    ("now", "tolerance", "errors", "worse"),
    [
        (BEFORE, 0.0, 0.0, False),
        (fallen(1), 0.02, 0.0, False),  # by less than is tolerated
        (fallen(3), 0.02, 0.0, True),
        (fallen(3), 0.02, 2.0, False),  # -0.03 with an error of 0.017
        (fallen(9), 0.02, 2.0, True),  # -0.09 with an error of 0.029
        (fallen(20, 12), 0.02, 2.0, False),  # the same fall among many changes is luck
        (fallen(0, 9), 0.0, 0.0, False),
    ],
)
def test_luck_is_not_a_fall(now: np.ndarray, tolerance: float, errors: float, worse: bool) -> None:
    assert ScoreGate(tolerance=tolerance, errors=errors).worse(now, BEFORE) == worse


def test_a_verifier_that_fails_takes_nothing_back() -> None:
    gate = ScoreGate()
    nothing = np.full(100, np.nan)
    assert not gate.worse(nothing, BEFORE)
    some = fallen(9)
    some[10:40] = np.nan  # pairs that are whole still count
    assert gate.worse(some, BEFORE)


@pytest.mark.parametrize("kind", [Watch, ScoreGate])
def test_failures_are_no_wrong_answers(kind: type[Watch]) -> None:
    task = Told()
    gate = kind(every=1, problems=4)
    role, _ = ready(gate, task)
    task.verdicts = [1.0, None]
    s = at(role, 0)
    assert gate(s)
    assert s.metrics["gate/accuracy"] == 1
    outcomes = gate.outcomes(at(role, 1))
    assert np.isnan(outcomes).tolist() == [False, True, False, True]
    task.verdicts = [None]
    s = at(role, 2)
    assert gate(s)
    assert "gate/accuracy" not in s.metrics


def test_its_state_goes_into_another_gate() -> None:
    task = Told()
    gate = ScoreGate(every=1, problems=16)
    role, learner = ready(gate, task)
    task.verdicts = ONES
    gate(at(role, 0))
    kept = {n: w.clone() for n, w in role.policy.weights().items()}
    again = ScoreGate(every=1, problems=16)
    again.setup(role)
    again.load_state_dict(gate.state_dict())
    train(role, learner)
    task.verdicts = ZEROS
    assert not again(at(role, 1))
    assert all(torch.equal(kept[n], w) for n, w in role.policy.weights().items())


def test_a_copied_state_has_tensors_of_its_own() -> None:
    state = {"a": {"b": torch.zeros(2)}, "n": 3}
    copied = copy_state(state)
    state["a"]["b"] += 1
    assert copied["a"]["b"].sum() == 0
    assert copied["n"] == 3
