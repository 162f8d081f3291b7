"""Meta-strategy solvers against OpenSpiel, by hand and by an oracle; PSRO on Kuhn poker."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.games import meta, shor
from evolvent.games.named import load
from evolvent.games.population import exploitability_of, mixed, payoffs, profile, psro
from evolvent.games.values import utilities

SPIEL: dict[str, Any] = json.loads((Path(__file__).parents[1] / "fixtures" / "openspiel.json").read_text())["meta"]
PAYOFFS = [np.array(m) for m in SPIEL["payoffs"]]
FIXED: dict[str, Any] = {"blend": 0.2, "temperature": 0.3, "diversity": 0.05, "momentum": 0.5}


def test_replicator_and_matching_are_those_of_openspiel() -> None:
    ours = {
        "replicator": meta.replicator(steps=2000, dt=1e-2)(PAYOFFS, 0),
        "matching": meta.matching(steps=2000)(PAYOFFS, 0),
    }
    for name, mixtures in ours.items():
        for x, expected in zip(mixtures, SPIEL[name], strict=True):
            assert x == pytest.approx(expected, abs=1e-9)


def test_an_equilibrium_by_linear_programming() -> None:
    rows, columns = meta.nash()([np.array([[2.0, -1.0], [-1.0, 1.0]]), -np.array([[2.0, -1.0], [-1.0, 1.0]])], 0)
    assert rows == pytest.approx([0.4, 0.6])  # equal gains: 2 p - (1 - p) = -p + (1 - p)
    assert columns == pytest.approx([0.4, 0.6])
    with pytest.raises(UserError, match="two players whose payoffs sum to 0"):
        meta.nash()([np.eye(2), np.eye(2)], 0)


def test_the_nearest_mixture() -> None:
    assert meta.projected(np.array([0.5, 0.4, 0.1]), 0.0) == pytest.approx([0.5, 0.4, 0.1])
    assert meta.projected(np.array([1.2, 0.4, -0.6]), 0.0) == pytest.approx([0.9, 0.1, 0.0])
    found = meta.projected(np.array([0.4, 0.7, 0.6]), 0.2)
    assert found == pytest.approx([0.2, 0.45, 0.35])


def by_hand(steps: int, blend: float, temperature: float, diversity: float, momentum: float, normalise: bool) -> Any:
    """SHOR's inner loop for two players from its formulas, number by number; the average and the last mixtures."""
    sizes = PAYOFFS[0].shape
    sigma = [[1 / n] * n for n in sizes]
    regret, before, total = ([[0.0] * n for n in sizes] for _ in range(3))
    for _, p in itertools.product(range(steps), (0, 1)):
        n, other = sizes[p], sigma[1 - p]
        u = [sum(x * PAYOFFS[p][(i, j) if p == 0 else (j, i)] for j, x in enumerate(other)) for i in range(n)]
        c = [x - sum(u) / n for x in u]
        g = [(1 + momentum) * c[i] - momentum * before[p][i] + diversity * (1 - sigma[p][i]) for i in range(n)]
        scale = max(map(abs, g)) if normalise else 1.0
        regret[p] = [max(0.0, regret[p][i] + g[i] / scale) for i in range(n)]
        heat = [math.exp(x / temperature) for x in u]
        sigma[p] = [
            (1 - blend) * (regret[p][i] / sum(regret[p]) if sum(regret[p]) else 1 / n) + blend * heat[i] / sum(heat)
            for i in range(n)
        ]
        before[p], total[p] = c, [a + b for a, b in zip(total[p], sigma[p], strict=True)]
    return [[x / steps for x in row] for row in total], sigma


@pytest.mark.parametrize("off", [None, "blend", "diversity", "momentum", "normalise"])
def test_hybrid_and_each_of_its_parts_off(off: str | None) -> None:
    settings = {**FIXED, "normalise": True} | ({} if off is None else {off: 0})
    average, last = by_hand(40, **settings)
    for averaged, expected in ((True, average), (False, last)):
        found = shor.hybrid(PAYOFFS, 40, **settings, averaged=averaged)
        assert all(x == pytest.approx(y, abs=1e-12) for x, y in zip(found, expected, strict=True))
    if off is not None:
        whole, _ = by_hand(40, **FIXED, normalise=True)
        assert np.abs(np.array(average) - np.array(whole)).max() > 1e-4


def test_what_is_annealed() -> None:
    steps = (30, 2, 33)
    for asked, progress in ((0, 1 / 75), (29, 0.4), (200, 1.0)):
        now = {
            "blend": 0.3 - 0.25 * progress,
            "temperature": 0.5 - 0.49 * progress,
            "diversity": 0.05 - 0.049 * progress,
        }
        expected = shor.hybrid(PAYOFFS, 33, **now, momentum=0.5)  # 30 + 2 * 2 policies, at most 33
        found = shor.shor_train(steps=steps)(PAYOFFS, asked)
        assert all(x == pytest.approx(y, abs=1e-12) for x, y in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", ["kuhn", "kuhn-3"])
def test_payoffs_of_all_combinations(name: str) -> None:
    game = load(name)
    *_, populations = psro(game, meta.uniform(), 2)
    found = payoffs(game, populations)
    assert found[0].shape == (3,) * len(game.sides)
    chosen = [np.eye(3)[i] for i in (2, 0, 1)[: len(game.sides)]]
    at = tuple(int(np.argmax(x)) for x in chosen)
    expected = utilities(game, profile(game, mixed(populations, chosen)))
    assert [m[at] for m in found] == pytest.approx(expected, abs=1e-12)


def test_best_responses_to_equilibria_end_in_one() -> None:
    game = load("kuhn")
    worth = [exploitability_of(game, populations, meta.nash()) for populations in psro(game, meta.nash(), 12)]
    assert worth[0] > 0.1
    assert worth[-1] == pytest.approx(0, abs=1e-12)


def test_the_hybrid_gets_closer_than_the_uniform_mixture() -> None:
    game = load("kuhn")
    train, evaluate = shor.shor_train(steps=(200, 0, 200)), shor.shor_evaluate(steps=(2000, 0, 2000))
    *_, ours = psro(game, train, 12)
    *_, theirs = psro(game, meta.uniform(), 12)
    assert exploitability_of(game, ours, evaluate) < 0.5 * exploitability_of(game, theirs, meta.uniform())
