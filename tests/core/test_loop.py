"""The loop on real parts and a real (untrained) model: order of stages, errors, observation, exact state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from tests.toys import Digits, random_policy, role_of, stub

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.ledger import Budget
from evolvent.core.loop import System, TooManyErrors, everyone, summarise
from evolvent.core.records import Group, Problem, Request
from evolvent.core.step import Step
from evolvent.guard.gate import ScoreGate, Watch
from evolvent.judge.verify import Verify
from evolvent.learn.credit import GroupCredit
from evolvent.learn.policy_gradient import PolicyGradient
from evolvent.propose.problems import Problems
from evolvent.rollout.sample import Sample
from evolvent.tasks.base import Score


def system(task: Any | None = None, seed: int = 0, **parts: Any) -> System:
    slots: dict[str, Any] = {
        "propose": Problems(4, 4),
        "rollout": Sample(),
        "judge": Verify(),
        "credit": GroupCredit(),
        "learn": PolicyGradient(lr=3e-3),
        "gate": Watch(every=2, problems=8),
    }
    slots |= parts
    role = role_of(random_policy(spread=1.0), task, seed, slots)
    role.parts = {name: part for name, part in slots.items() if part is not None}
    role.slots = dict(role.parts)
    made = System({"": role}, role.policy, role.ledger, everyone)
    made.setup()
    return made


def weights(made: System) -> list[torch.Tensor]:
    assert made.policy is not None
    return [p.detach().clone() for p in made.policy.model.parameters()]


def test_it_learns() -> None:
    made = system(parts=None, propose=Problems(8, 8))
    scores = [steps[0].metrics["outcome"] for steps in made.run(Budget.parse("40 steps"))]
    assert sum(scores[-5:]) / 5 > sum(scores[:5]) / 5 + 0.2


def test_a_run_repeats_to_the_bit_and_another_seed_differs() -> None:
    runs = []
    for seed in (0, 0, 1):
        made = system(seed=seed)
        for _ in made.run(Budget.parse("3 steps")):
            pass
        runs.append(weights(made))
    assert all(torch.equal(a, b) for a, b in zip(runs[0], runs[1], strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(runs[0], runs[2], strict=True))


def test_state_goes_into_a_new_system_and_the_next_steps_are_the_same_bits() -> None:
    whole = system(gate=ScoreGate(every=2, problems=8))
    for _ in whole.run(Budget.parse("6 steps")):
        pass
    first = system(gate=ScoreGate(every=2, problems=8))
    for _ in first.run(Budget.parse("3 steps")):
        pass
    second = system(gate=ScoreGate(every=2, problems=8))
    second.load_state_dict(first.state_dict())
    for _ in second.run(Budget.parse("6 steps")):
        pass
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(second), strict=True))
    spent = [{k: v for k, v in m.ledger.spent["method"].items() if "seconds" not in k} for m in (whole, second)]
    assert spent[0] == spent[1]


def test_budgets_end_a_run_after_at_most_one_step_too_much() -> None:
    made = system()
    for _ in made.run(Budget.parse("500 tokens")):
        pass
    per_step = made.ledger.of("sampled") / made.ledger.of("steps")
    assert 500 <= made.ledger.of("sampled") < 500 + 1.5 * per_step


class Flaky(Digits):
    """A verifier that fails on some problems."""

    def __init__(self, share: float) -> None:
        self.share = share

    def score(self, problem: Problem, completion: str) -> Score:
        if int(problem.key, 16) % 100 < 100 * self.share:
            raise VerifierError("the judge is out")
        return super().score(problem, completion)


def test_errors_are_counted_and_left_out_of_the_update() -> None:
    made = system(Flaky(0.3), gate=None, propose=Problems(24, 2))
    made.max_errors = 0.9
    for steps in made.run(Budget.parse("5 steps")):
        s = steps[0]
        failed = [t for g in s.groups for t in g.trajectories if t.error]
        assert s.metrics["errors"] == len(failed)
        assert all(not t.rewards for t in failed)
        assert all(t.error is None for b in s.batches for t in b.rows)
    assert made.errors == {"verifier: the judge is out": sum(made.errors.values())}
    assert made.errors


def test_too_many_errors_stop_a_run_and_say_why() -> None:
    with pytest.raises(TooManyErrors, match="16 of 16 trajectories of step 0 failed.*the judge is out"):
        system(Flaky(1.0), gate=None).step()


@pytest.mark.parametrize(
    ("failures", "stops"),
    [
        ([0, *[1] * 10], False),  # 10 of the latest 20 may fail, however few there were
        ([0, *[1] * 11], True),
        ([1], True),  # nothing worked yet
        ([0, *[1, 0] * 30], False),
        ([*[0] * 30, *[1] * 10], False),
        ([*[0] * 30, *[1] * 11], True),
    ],
)
def test_a_step_of_one_trajectory_is_judged_with_those_before_it(failures: list[int], stops: bool) -> None:
    made, outages = system(gate=None), iter(failures)
    sample = made.roles[""].slots["rollout"]

    def flaky(requests: Any, s: Step) -> list[Group]:
        groups, lost = sample(requests, s), next(outages)
        groups[0].trajectories[:] = groups[0].trajectories[:1]
        groups[0].trajectories[0].error = "endpoint: out" if lost else None
        return groups[:1]

    made.roles[""].slots["rollout"] = flaky
    for t in range(len(failures) - stops):
        if t == 4:  # a run that goes on later still knows of the latest ones
            state = made.state_dict()
            made.failed = []
            made.load_state_dict(state)
        made.step()
    if stops:
        with pytest.raises(TooManyErrors, match="trajectories .*failed, more than the 50%.*endpoint: out"):
            made.step()


@dataclass
class Recorder:
    """A part that writes down when it is called; wraps another."""

    inner: Any
    calls: list[str] = field(default_factory=list)

    def __call__(self, *args: Any) -> Any:
        self.calls.append("call")
        return self.inner(*args)

    def observe(self, s: Step) -> None:
        self.calls.append(f"observe {s.t}")


def test_every_part_observes_the_step_the_wrapped_one_included() -> None:
    inner = Recorder(Verify())
    outer = Recorder(inner)
    made = system(judge=outer)
    made.roles[""].parts["inner"] = inner
    made.step()
    assert inner.calls == outer.calls == ["call", "observe 0"]


@dataclass
class TwoRounds:
    """Asks for one problem twice as often where the first answers were wrong."""

    seen: list[int] = field(default_factory=list)

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        problem = s.role.task.draw("train", s.rng("problems"))
        yield [Request(problem, 2)]
        self.seen.append(len(s.fresh[0].trajectories))
        assert all("outcome" in t.rewards for t in s.fresh[0].trajectories)  # judged before the generator goes on
        yield [Request(problem, 4)]
        self.seen.append(len(s.fresh[0].trajectories))


def test_propose_is_a_generator_and_sees_each_round_judged() -> None:
    propose = TwoRounds()
    s = system(propose=propose, gate=None).step()[0]
    assert propose.seen == [2, 4]
    assert len(s.groups) == 2
    uids = [t.uid for g in s.groups for t in g.trajectories]
    assert len(set(uids)) == 6


def test_an_engine_that_lacks_something_is_refused_before_anything_runs() -> None:
    @dataclass
    class Needy:
        needs: tuple[str, ...] = ("telepathy",)

        def __call__(self, groups: Sequence[Group], s: Step) -> None: ...

    with pytest.raises(UserError, match="`judge` needs an engine with telepathy"):
        system(judge=Needy())


def test_a_median_of_an_even_group_is_refused() -> None:
    from evolvent.learn.credit import mad, median

    with pytest.raises(UserError, match="odd group, and groups have 4 answers.*propose.n"):
        system(credit=GroupCredit(baseline=median, scale=mad))


@pytest.mark.parametrize(
    "parts",
    [
        {"propose": Problems(0, 4)},
        {"learn": PolicyGradient(lr=0.0)},
        {"learn": PolicyGradient(lr=1e-3, epochs=0)},
        {"learn": PolicyGradient(lr=1e-3, clip_low=2.0)},
        {"rollout": Sample(temperature=-1.0)},
        {"rollout": Sample(max_tokens=0)},
        {"gate": Watch(every=-1)},
    ],
)
def test_values_out_of_range_are_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        system(**parts)


def test_a_step_says_how_many_answers_differ_and_which_groups_have_no_signal() -> None:
    s = Step(0, role_of(random_policy()))
    for texts, scores in (("aab", (0, 0, 0)), ("cd", (1, 0))):
        rows = [stub(i, [1]) for i in range(len(texts))]
        for row, text, score in zip(rows, texts, scores, strict=True):
            row.completion = text
            row.reward("outcome", float(score))
        s.groups.append(Group(rows[0].problem, rows))
    summarise(s)
    assert s.metrics["distinct"] == pytest.approx((2 / 3 + 1) / 2)
    assert s.metrics["flat_groups"] == 0.5
    assert s.metrics["score"] == pytest.approx(1 / 5)
