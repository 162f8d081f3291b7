"""EVOL-RL and TTRL on real steps: no label has a say, which votes are trained on, and what each mechanism moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.recipes.recipe_runs import build, steps, without

from evolvent.core.errors import UserError
from evolvent.core.recipe import REGISTRY, recipe, wrap
from evolvent.core.records import Problem, Trajectory
from evolvent.core.step import Step
from evolvent.judge.novelty import Novelty
from evolvent.learn.credit import with_signal
from evolvent.recipes import all_recipes
from evolvent.tasks.arith import Arith
from evolvent.tasks.base import Score

VOTES = {"propose__n": 8, "credit__groups__count": 4}


def weights_after(composition: str, count: int = 3) -> dict[str, torch.Tensor]:
    """Weights after some steps."""
    made = build(composition)
    steps(made.system, count)
    return {n: w.clone() for n, w in made.policy.weights().items()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    """Bit for bit."""
    return all(torch.equal(a[n], b[n]) for n in a)


@pytest.mark.parametrize(("name", "labels_matter"), [("ttrl", False), ("evol-rl", False), ("grpo", True)])
def test_no_label_has_a_say(name: str, labels_matter: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = weights_after(name)
    honest = Arith.score

    def opposite(self: Arith, problem: Problem, completion: str) -> Score:
        score = honest(self, problem, completion)
        return Score(1 - score.outcome, score.answer, score.shaping)

    monkeypatch.setattr(Arith, "score", opposite)
    assert same(truth, weights_after(name)) is not labels_matter


def test_scores_are_votes_and_novelty_and_outcomes_are_watched() -> None:
    (s,) = steps(build("evol-rl", **VOTES).system, 1)
    rows = [t for g in s.groups for t in g.trajectories]
    assert {name for t in rows for name in t.rewards} == {"majority", "novelty"}
    assert all(0.5 <= t.score <= 1.0 if t.info["accepted"] else -1.0 <= t.score <= -0.5 for t in rows)
    assert s.metrics["outcome"] == pytest.approx(np.mean([t.info["verdict"] for t in rows]))


def test_all_vote_and_the_first_are_trained_on() -> None:
    (s,) = steps(build("evol-rl", **VOTES).system, 1)
    assert all(len(g.trajectories) == 8 for g in s.groups)
    trained = {t.uid for t in s.batches[0].rows}
    assert trained == {t.uid for g in s.groups for t in g.trajectories[:4]}
    scores = np.array([t.score for t in s.groups[0].trajectories[:4]])
    wanted = (scores - scores.mean()) / (scores.std(ddof=1) + 1e-4)
    assert s.batches[0].weight[:4] == pytest.approx(wanted, abs=1e-5)
    with without("ttrl", "credit.groups") as ablated:
        (s,) = steps(build(ablated, propose__n=8).system, 1)
    assert len(s.batches[0].rows) == 8 * 6


def late(composition: str, metric: str, count: int = 25, **settings: Any) -> float:
    """Mean of a metric over the last steps."""
    taken = steps(build(composition, learn__minibatches=1, **VOTES, **settings).system, count)
    return float(np.mean([s.metrics[metric] for s in taken[-5:]]))


@pytest.mark.slow
def test_the_entropy_bonus_keeps_entropy_up() -> None:
    assert late("ttrl", "entropy", learn__entropy=0.1) > late("ttrl", "entropy") + 0.02


def first_gradient(composition: str) -> tuple[list[Trajectory], list[torch.Tensor]]:
    """The rows of the first update, and its gradient."""
    made = build(composition, learn__minibatches=1, learn__max_grad_norm=1e9, **VOTES)
    (s,) = steps(made.system, 1)
    return s.batches[0].rows, [p.grad.clone() for p in made.policy.model.parameters() if p.grad is not None]


def entropy_gradient(rows: list[Trajectory]) -> list[torch.Tensor]:
    """Of the start model's entropy: its mean over the tokens that each row sampled, and over rows."""
    model = build("no-change").policy.model.requires_grad_(True)
    model.zero_grad()
    for t in rows:
        logits = model.head(model(torch.from_numpy(t.tokens[None].astype(np.int64))))[0, :-1]
        at = torch.distributions.Categorical(logits=logits).entropy()[torch.from_numpy(t.mask[1:])]
        (at.mean() / len(rows)).backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def test_the_entropy_bonus_is_a_gradient_towards_entropy() -> None:
    """0.003 of the policy's mean entropy; the rest of the update is the same without it."""
    rows, on = first_gradient("evol-rl")
    with without("evol-rl", "learn.entropy") as ablated:
        same_rows, off = first_gradient(ablated)
    assert [t.uid for t in same_rows] == [t.uid for t in rows]
    for x, y, entropy in zip(on, off, entropy_gradient(rows), strict=True):
        assert entropy.abs().max() > 1e-5
        torch.testing.assert_close(x - y, -0.003 * entropy, atol=1e-6, rtol=1e-2)


def test_clip_higher_lets_more_pass() -> None:
    def clipped(composition: str) -> float:
        taken = steps(build(composition, learn__minibatches=4, learn__lr=1e-2, **VOTES).system, 4)
        return float(np.mean([s.metrics["learn/clipped_high"] for s in taken]))

    with without("evol-rl", "learn.clip_high") as ablated:
        assert clipped("evol-rl") < clipped(ablated)


def test_novelty_tells_apart_what_a_vote_cannot() -> None:
    """With it, groups whose votes all agree or all differ still have a signal."""
    (on,) = steps(build("evol-rl", **VOTES).system, 1)
    with without("evol-rl", "judge") as ablated:
        (off,) = steps(build(ablated, **VOTES).system, 1)
    assert distinct_scores(on) > distinct_scores(off)
    assert max(len({t.score for t in g.trajectories}) for g in off.groups) == 2


def distinct_scores(s: Step) -> float:
    """Mean number of different scores in a group."""
    return float(np.mean([len({round(t.score, 6) for t in g.trajectories}) for g in s.groups]))


def test_it_works_with_labels_too() -> None:
    """Around the verifier, novelty is within the right and within the wrong answers."""
    recipe("novel-grpo", all_recipes()["grpo"], wrap("judge", Novelty))
    try:
        (s,) = steps(build("novel-grpo").system, 1)
    finally:
        del REGISTRY["novel-grpo"]
    rows = [t for g in s.groups for t in g.trajectories]
    assert all(t.score == t.outcome + t.rewards["novelty"].value for t in rows if "novelty" in t.rewards)


@pytest.mark.parametrize("names", ["ttrl+dapo", "evol-rl+cispo"])
def test_what_wants_an_outcome_is_refused(names: str) -> None:
    with pytest.raises(UserError, match=r"looks at the verifier's outcome|put different values"):
        build(names)


def test_the_refusal_names_the_part() -> None:
    with pytest.raises(UserError, match=r"`credit` looks at the verifier's outcome \(with_signal\)"):
        build("ttrl", credit__groups=with_signal)
