"""The simulated model: its chances, its answers, its learning, and the loop around it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.toys import random_policy, role_of

from evolvent.core.build import Builder
from evolvent.core.errors import UserError
from evolvent.core.ledger import Budget, Ledger
from evolvent.core.loop import System, everyone
from evolvent.core.random import stream
from evolvent.core.recipe import compile_plan
from evolvent.core.records import Batch, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.simulated import SimulatedEngine, SimulatedPolicy
from evolvent.judge.verify import Verify
from evolvent.learn.simulated import SimulatedLearning
from evolvent.propose.bandit import Bandit
from evolvent.recipes import all_recipes
from evolvent.recipes.profiles import PAPER
from evolvent.rollout.sample import Sample
from evolvent.run.assemble import DEFAULTS
from evolvent.tasks.base import Task, distinct
from evolvent.tasks.registry import load_task

SMALL = {"propose.problems": "16", "propose.n": "8", "gate.every": "0"}
LEARNS = {"learn": "evolvent.learn.simulated:SimulatedLearning", "credit": "evolvent.learn.credit:GroupCredit"}


def make_role(task: Task, engine: Mapping[str, Any] | None = None, seed: int = 0, **policy: Any) -> Role:
    """A role without parts around a simulated model."""
    ledger, made = Ledger(), SimulatedPolicy(task, **policy)
    return Role("", task, made, SimulatedEngine(made, ledger, **(engine or {})), ledger, seed)  # type: ignore[arg-type]


def make_system(recipe: str, task: Task, settings: Mapping[str, str], seed: int = 0, **policy: Any) -> System:
    """A system as a run assembles it."""
    builder = Builder(compile_plan(recipe, all_recipes(), settings, {}), PAPER)
    made = builder.role("", DEFAULTS)
    builder.finish()
    role = make_role(task, seed=seed, **policy)
    role.slots, role.parts = made.slots, made.parts
    whole = System({"": role}, role.policy, role.ledger, everyone)
    whole.setup()
    return whole


def roll(role: Role, problems: list[Any], n: int, sample: Sample | None = None) -> list[Any]:
    """Judged groups of n trajectories of each problem."""
    s = Step(0, role, [role.policy_actor()])
    groups = (sample or Sample())([Request(p, n) for p in problems], s)
    Verify()(groups, s)
    return groups


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_shares_of_right_answers_are_the_stated_chances(temperature: float) -> None:
    task = load_task("arith:2x1,2x2")
    role = make_role(task, skill={"2x1": 1.0, "2x2": 0.0})
    problems = distinct(task, "train", 4)
    policy = role.policy
    assert isinstance(policy, SimulatedPolicy)
    for group in roll(role, problems, 2000, Sample(temperature=temperature)):
        problem = group.problem
        logit = {"2x1": 1.0, "2x2": 0.0}[problem.category] - policy.difficulty(problem)
        chance = 1 / (1 + np.exp(-logit / temperature))
        share = np.mean([t.outcome for t in group.trajectories])
        assert share == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / 2000))
        assert all((t.outcome == 1) == t.info["right"] for t in group.trajectories)
        assert len({t.completion for t in group.trajectories if not t.outcome}) > 1


def test_logprobs_are_those_of_the_answers() -> None:
    role = make_role(load_task("arith:3x1"), hardest=0.0)
    [group] = roll(role, distinct(role.task, "train", 1), 4000)
    texts: dict[str, list[float]] = {}
    for t in group.trajectories:
        texts.setdefault(t.completion, []).append(float(t.logprob[t.mask].sum()))
    assert len(texts) == 5
    assert sum(np.exp(v[0]) for v in texts.values()) == pytest.approx(1, abs=1e-4)
    for values in texts.values():
        assert np.ptp(values) == 0
        assert len(values) / 4000 == pytest.approx(np.exp(values[0]), abs=0.04)


def test_difficulties_rise_over_categories_and_spread_within() -> None:
    task = load_task("arith:2x1,2x2,2x3")
    policy = SimulatedPolicy(task, easiest=-1, hardest=3, spread=0.5)
    rng = stream(0, "test")
    for category, base in (("2x1", -1), ("2x2", 1), ("2x3", 3)):
        found = [policy.difficulty(task.draw("train", rng, category)) for _ in range(400)]
        assert np.mean(found) == pytest.approx(base, abs=0.1)
        assert np.std(found) == pytest.approx(0.5, abs=0.06)


def test_greedy_is_right_where_right_is_likelier() -> None:
    task = load_task("countdown:3x12")
    role = make_role(task, easiest=0.0)
    policy = role.policy
    assert isinstance(policy, SimulatedPolicy)

    class Greedy(Sample):
        def check(self, system: object) -> None:
            """Temperature 0 is meant."""

    problems = distinct(task, "gate", 30)
    groups = roll(role, problems, 1, Greedy(temperature=0.0))
    assert [g.trajectories[0].outcome for g in groups] == [float(policy.difficulty(p) < 0) for p in problems]


def test_several_turns_with_a_tool() -> None:
    role = make_role(load_task("calc:1x2"), easiest=-30.0, spread=0.0)
    for group in roll(role, distinct(role.task, "train", 5), 2):
        for t in group.trajectories:
            assert t.outcome == 1
            assert [s.kind for s in t.segments] == ["prompt", "policy", "tool", "policy", "tool", "policy"]
    role = make_role(load_task("calc:1x2"), easiest=30.0, spread=0.0)
    assert all(t.outcome == 0 for g in roll(role, distinct(role.task, "train", 5), 2) for t in g.trajectories)


def test_lengths_follow_their_distribution_and_limits_cut() -> None:
    role = make_role(load_task("arith:2x1"), {"length": 40.0, "sigma": 0.5}, easiest=-30.0, spread=0.0)
    [group] = roll(role, distinct(role.task, "train", 1), 3000, Sample(max_tokens=10_000))
    lengths = np.array([t.sampled for t in group.trajectories])
    assert lengths.mean() == pytest.approx(40, rel=0.05)
    assert np.log(lengths).std() == pytest.approx(0.5, rel=0.1)
    assert all(t.outcome == 1 for t in group.trajectories)
    assert role.ledger.of("sampled") == lengths.sum()
    [cut] = roll(role, distinct(role.task, "train", 1), 200, Sample(max_tokens=40))
    assert 0.2 < np.mean([t.truncated for t in cut.trajectories]) < 0.8
    assert all(t.sampled <= 40 for t in cut.trajectories)
    assert all(t.outcome == float(t.terminated) for t in cut.trajectories)


def test_the_same_seed_gives_the_same_run() -> None:
    def run(seed: int) -> list[Any]:
        whole = make_system("no-change", load_task("arith:2x1,2x2"), SMALL, seed)
        steps = next(whole.run(Budget(1, "steps")))
        return [(t.uid, t.completion) for g in steps[0].groups for t in g.trajectories]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_the_gradient_is_that_of_the_expected_score() -> None:
    task = load_task("arith:2x1")
    role = make_role(task, easiest=0.5, spread=0.0)
    learner = SimulatedLearning(lr=1.0)
    learner.setup(role)
    problem = distinct(task, "train", 1)
    s = Step(0, role, [role.policy_actor()])
    s.groups = roll(role, problem, 20_000)
    rows = s.groups[0].trajectories
    learner.tell([Batch(rows, np.array([t.outcome for t in rows], np.float32))], s)
    policy = role.policy
    assert isinstance(policy, SimulatedPolicy)
    chance = 1 / (1 + np.exp(0.5))
    assert policy.skills["2x1"] == pytest.approx(chance * (1 - chance), abs=0.01)  # d P / d skill
    assert policy.version == 1


def test_learning_raises_skill_and_transfers_to_neighbours() -> None:
    task = load_task("arith:2x1,2x2,2x3")
    settings = SMALL | LEARNS | {"learn.lr": "5", "learn.transfer": "0.5"}
    whole = make_system("no-change", task, settings | {"propose.choose": "evolvent.propose.problems:in_order"})
    policy = whole.policy
    assert isinstance(policy, SimulatedPolicy)
    first = None
    for steps in whole.run(Budget(30, "steps")):
        first = first if first is not None else steps[0].metrics["outcome"]
    assert steps[0].metrics["outcome"] > first + 0.2  # type: ignore[operator]
    assert policy.skills["2x1"] > policy.skills["2x2"] > 0
    assert policy.skills["2x3"] == 0  # no neighbour of what was trained
    state = whole.state_dict()
    again = make_system("no-change", task, settings)
    again.load_state_dict(state)
    assert again.policy.skills == policy.skills  # type: ignore[union-attr]


def test_a_bandit_finds_the_category_at_the_frontier() -> None:
    task = load_task("arith:2x1,2x2,2x3")
    settings = SMALL | {"credit": "evolvent.learn.credit:GroupCredit", "credit.scale": "evolvent.learn.credit:no_scale"}
    settings |= {"propose.choose": "evolvent.propose.bandit:Bandit", "propose.choose.tau": "0.1"}
    whole = make_system("no-change", task, settings, easiest=-6.0, hardest=6.0, spread=0.3)
    *_, steps = whole.run(Budget(25, "steps"))
    bandit = next(p for p in whole.parts.values() if isinstance(p, Bandit))
    chances = dict(zip(task.categories, bandit.chances(task.categories), strict=True))
    assert chances["2x2"] > 0.6  # half right: the only one with advantages to speak of
    assert steps[0].metrics["bandit/2x2"] == pytest.approx(chances["2x2"])


def test_best_of_n_gains_what_its_formula_says() -> None:
    task = load_task("arith:2x1")
    settings = {"propose.problems": "400", "propose.n": "4", "gate.every": "0"}
    whole = make_system("best-of-n", task, settings, easiest=1.0, spread=0.0)
    steps = next(whole.run(Budget(1, "steps")))
    chance = 1 / (1 + np.e)
    assert steps[0].metrics["outcome"] == pytest.approx(chance, abs=0.04)
    assert steps[0].metrics["answered"] == pytest.approx(1 - (1 - chance) ** 4, abs=0.07)


@pytest.mark.slow
def test_ten_thousand_rollouts_a_second() -> None:
    whole = make_system("no-change", load_task("arith:2x1,2x2"), SMALL | {"propose.problems": "250"})
    whole.step()
    rates = []
    for _ in range(4):
        start = time.process_time()
        whole.step()
        rates.append(2000 / (time.process_time() - start))
    assert max(rates) > 5_000  # of this process's own time; 15,000 and more on a free core


def test_what_it_has_not_is_refused() -> None:
    task = load_task("arith:2x1")
    with pytest.raises(UserError, match="behind a simulated model and cannot be trained"):
        make_system("grpo", task, SMALL)
    with pytest.raises(UserError, match="no entropies"):
        roll(make_role(task), distinct(task, "train", 1), 1, Sample(entropy=True))

    class Mute:
        name, categories, max_tokens = "mute", ("a",), 9

        def gold(self, problem: object) -> None:
            """There is none."""

    role = make_role(task)
    mute = make_role(Mute())  # type: ignore[arg-type]
    mute.policy.skills, mute.policy.base = {"2x1": 0.0}, {"2x1": 0.0}  # type: ignore[attr-defined]
    role.engine = mute.engine
    with pytest.raises(UserError, match="`mute` has none"):
        roll(role, distinct(task, "train", 1), 1)
    real = role_of(random_policy())
    with pytest.raises(UserError, match="needs the simulated model"):
        SimulatedLearning().setup(real)
