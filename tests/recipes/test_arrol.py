"""ARRoL: its formulas by hand, and what each mechanism moves."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.recipes.recipe_runs import build, steps, without

from evolvent.bench import probes
from evolvent.core.errors import UserError
from evolvent.core.records import Group, Problem, Trajectory
from evolvent.core.step import Step
from evolvent.lineage import pack
from evolvent.recipes.rollout import arrol as module
from evolvent.recipes.rollout.arrol import Prune, elected, posterior, survival, vote_gain

PROBLEM = Problem("key", (), {})
NOW = {"rollout__control__stride": 1, "rollout__control__warmup": 0, "propose__n": 16}


def control(made: Any) -> Prune:
    return made.system.parts["rollout.control"]


def test_the_posterior_is_bayes_rule_on_smoothed_counts() -> None:
    counts = np.zeros((2, 128))
    counts[0, :3], counts[1, :3] = (6, 1, 0), (1, 4, 8)
    wanted = []
    for wrong, right in ((6, 1), (1, 4), (0, 8), (0, 0)):
        likely = Fraction(right + 1, 13 + 128) * Fraction(13 + 1, 20 + 2)
        unlikely = Fraction(wrong + 1, 7 + 128) * Fraction(7 + 1, 20 + 2)
        wanted.append(float(likely / (likely + unlikely)))
    assert posterior(counts, [0, 1, 2, 127]) == pytest.approx(wanted)
    assert posterior(np.zeros((2, 128)), [5]) == pytest.approx([0.5])


@pytest.mark.parametrize(
    ("q", "p"),
    [
        # mean 0.6 > rho: tilt 0.5 (0.5 - q) = 0.15, -0.1, -0.2, of mean -0.05, so that delta is 0.05
        ([0.2, 0.7, 0.9], [0.7, 0.45, 0.35]),
        ([0.8, 0.3, 0.1], [0.7, 0.45, 0.35]),  # its mirror image: mean 0.4 < rho, the sign of lambda is turned
        ([0.9, 0.9], [0.5, 0.5]),
    ],
)
def test_survival_by_hand(q: list[float], p: list[float]) -> None:
    assert survival(np.array(q), 0.5, 0.5, 0.5) == pytest.approx(p)


def test_clipped_survival_still_keeps_kappa_on_average() -> None:
    """lambda = 2: tilts of 1, 1, -0.6, -1, -1, -1. Two are clipped; delta = 0.7 makes the others sum to 1.2."""
    p = survival(np.array([0.0, 0.0, 0.8, 1.0, 1.0, 1.0]), 0.5, 0.5, 2.0)
    assert p == pytest.approx([0.9, 0.9, 0.6, 0.2, 0.2, 0.2])
    low = survival(np.array([0.0, 1.0, 1.0, 1.0]), 0.3, 0.5, 3.0)  # 0.9, and 0.1 for three
    assert low == pytest.approx([0.9, 0.1, 0.1, 0.1])
    assert survival(np.linspace(0, 1, 9), 0.3, 0.5, 0.5).mean() == pytest.approx(0.3)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.9])
def test_the_share_of_right_answers_moves_towards_rho(share: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        q = np.clip(rng.normal(share, 0.2, 16), 0, 1)
        p = survival(q, 0.5, 0.5, 0.5)
        before, after = abs(q.mean() - 0.5), abs(p @ q / p.sum() - 0.5)
        assert after < before or before < 0.05
        printed = np.clip(0.5 + 0.5 * (0.5 - q), 0.1, 0.9)  # the sign as printed, without delta
        if q.mean() < 0.45:
            assert abs(printed @ q / printed.sum() - 0.5) > before


def test_votes_weigh_by_rank() -> None:
    answers, scores = ["a", "a", "a", "b", "b", None], [0.1, 0.2, 0.3, 0.8, 0.7, 0.9]
    # ranks 0, 1, 2, 4, 3, 5 of 5: a has 3/5, b has 7/5, None does not vote
    assert elected(answers, scores) == "b"
    assert elected(answers, [0.9, 0.8, 0.7, 0.1, 0.2, 0.3]) == "a"
    assert elected([None], [0.5]) is None
    assert elected(["x"], [0.5]) == "x"


def finished(uid: int, outcome: float, **info: Any) -> Trajectory:
    made = Trajectory(uid, PROBLEM, np.zeros(2, np.int32), np.ones(2, bool), np.zeros(2, np.float32), info=info)
    made.reward("outcome", outcome)
    return made


def test_the_head_learns_outcomes_and_the_bins_count_them() -> None:
    """States whose first coordinate says what will come of them."""
    made = build("arrol")
    part, role = control(made), made.system.roles[""]
    rng = np.random.default_rng(0)
    for t in range(20):
        right = rng.integers(0, 2, 64)
        states = rng.normal(0, 1, (64, 32)).astype(np.float32)
        states[:, 0] = 4.0 * right - 2.0
        rows = [finished(i, float(y), state=states[i], quality=0.5, bin=2 * y) for i, y in enumerate(right.tolist())]
        rows.append(finished(64, 1.0))  # over before it was looked at
        part.observe(Step(t, role, groups=[Group(PROBLEM, rows)]))
    score = torch.sigmoid(part.score(states)).detach().numpy()  # type: ignore[arg-type]
    assert score[right == 1].min() > 0.5 > score[right == 0].max()
    assert part.counts[1, 2] + part.counts[0, 0] == part.counts.sum() == 20 * 64


def test_states_are_those_at_the_detection_point() -> None:
    made = build("arrol", rollout__control__stride=2)
    start = {n: w.clone() for n, w in made.policy.weights().items()}
    (s,) = steps(made.system, 1)
    made.policy.set_weights(start)
    rows = [t for g in s.groups for t in g.trajectories]
    seen = {t.uid for t in rows if "quality" in t.info}
    assert {t.uid for t in rows if t.sampled > 2} <= seen <= {t.uid for t in rows if t.sampled >= 2}
    for t in [t for t in rows if t.uid in seen][:8]:
        end = t.segments[0].stop + 2
        with torch.no_grad():
            plain = made.policy.model(torch.from_numpy(t.tokens[:end].astype(np.int64))[None])[0, -1].numpy()
        np.testing.assert_allclose(t.info["state"], plain, atol=1e-4)
        assert t.info["bin"] == int(128 * t.info["quality"])


def test_pruning_halves_what_is_finished_and_saves_tokens() -> None:
    with without("arrol", "rollout.control") as ablated:
        on = build("arrol", **NOW)
        off = build(ablated, propose__n=16)
        (a,), (b,) = steps(on.system, 1), steps(off.system, 1)
        assert b.metrics["trajectories"] == 6 * 16
        assert 0.35 < a.metrics["trajectories"] / b.metrics["trajectories"] < 0.65
        assert on.system.ledger.of("sampled") < 0.85 * off.system.ledger.of("sampled")
        assert on.system.ledger.of("verifier_calls") < 0.7 * off.system.ledger.of("verifier_calls")
        uids = {t.uid: t for g in b.groups for t in g.trajectories}
        for t in [t for g in a.groups for t in g.trajectories]:  # those that stay are as they would have been
            assert (t.tokens == uids[t.uid].tokens).all()


def test_nobody_is_dropped_in_the_warm_up() -> None:
    taken = steps(build("arrol", **{**NOW, "rollout__control__warmup": 2}).system, 3)
    assert [s.metrics["trajectories"] == 96 for s in taken] == [True, True, False]


def test_quality_balances_groups_and_chance_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that knows: branches keep their tokens, so that an unpruned run says what will come of each."""
    whole = build("arrol", **{**NOW, "rollout__control__warmup": 9, "propose__problems": 48})
    (s,) = steps(whole.system, 1)
    fate = {t.info["state"].tobytes(): t.outcome for g in s.groups for t in g.trajectories if "state" in t.info}

    def told(part: Prune, states: list[np.ndarray]) -> torch.Tensor:
        return torch.tensor([8 * fate[x.tobytes()] - 4 for x in states], requires_grad=True)

    monkeypatch.setattr(Prune, "score", told)
    monkeypatch.setattr(module, "posterior", lambda counts, bins: np.array(bins) / 128)
    balance = {}
    for lam in (0.5, 0.0):
        made = build("arrol", **NOW, rollout__control__lam=lam, propose__problems=48)
        (s,) = steps(made.system, 1)
        assert 0.35 < s.metrics["trajectories"] / (48 * 16) < 0.65
        shares = [np.mean([t.outcome for t in g.valid]) for g in s.groups]
        balance[lam] = s.metrics["balance"]
        assert balance[lam] == pytest.approx(np.mean([r * (1 - r) for r in shares]))
    assert balance[0.5] > 1.1 * balance[0.0] > 0


def test_look_aheads_and_probes_see_everyone() -> None:
    made = build("arrol", **NOW)
    steps(made.system, 2)
    role = made.system.roles[""]
    s = Step(9, role, role.actors(Step(9, role)), label="probe")
    requests = next(role.slots["propose"](s))
    assert all(len(g.trajectories) == 16 for g in role.slots["rollout"](requests, s))


def test_the_gain_of_weighted_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    def group(*rows: tuple[str, float, float]) -> Group:
        made = [finished(i, right, answer=a, quality=q) for i, (a, right, q) in enumerate(rows)]
        return Group(PROBLEM, made)

    gained = group(("7", 0.0, 0.1), ("7", 0.0, 0.2), ("8", 1.0, 0.9))
    lost = group(("8", 1.0, 0.1), ("8", 1.0, 0.2), ("7", 0.0, 0.9))
    same = group(("8", 1.0, 0.1), ("8", 1.0, 0.9), ("7", 0.0, 0.2))
    alike = group(("8", 1.0, 0.5), ("7", 0.0, 0.5), ("7", 0.0, 0.5))  # no head, as in grpo: a plain majority
    for groups, wanted in (([gained, same], 0.5), ([lost, gained, gained], 1 / 3), ([alike], 0.0)):
        monkeypatch.setattr(probes, "probe_groups", lambda *_, groups=groups: groups)
        assert vote_gain(None, 0) == pytest.approx(wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["arrol", "grpo"])
def test_the_probe_runs_with_and_without_a_head(name: str) -> None:
    gain = vote_gain(build(name).system.roles[""], 0)
    assert -1 <= gain <= 1
    assert name == "arrol" or gain == 0


def test_a_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole, first, second = (build("arrol", **NOW) for _ in range(3))
    steps(whole.system, 4)
    steps(first.system, 2)
    pack.save(tmp_path / "state", first.system.state_dict())
    second.system.load_state_dict(pack.load(tmp_path / "state"))
    steps(second.system, 2)
    assert all(torch.equal(a, b) for a, b in zip(*(x.policy.weights().values() for x in (whole, second)), strict=True))
    assert (control(whole).counts == control(second).counts).all()
    assert torch.equal(control(whole).head[0].weight, control(second).head[0].weight)


def test_a_keep_rate_out_of_reach_is_refused() -> None:
    with pytest.raises(UserError, match="kappa"):
        build("arrol", rollout__control__kappa=0.95)
