"""The adaptive temperature against its formulas, computed here in plain Python."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from evolvent.search.candidate import Candidate
from evolvent.search.parents import Pool
from evolvent.search.temperature import adaptive_boltzmann, diversity, temperature_at
from evolvent.tasks.evaluation import Evaluation, invalid


def made(uid: int, value: float | None, text: str = "", island: int = 0) -> Candidate:
    return Candidate(uid, {"program": text}, invalid("") if value is None else Evaluation(value), island=island)


def test_diversity_of_two_programs_by_hand() -> None:
    pair = [made(0, 1.0, "ab\nc"), made(1, 1.0, "abcdefgh")]
    # lengths 4 and 8, newlines 1 and 0, letters {a b newline c} and {a..h}: 4 + 1 - 0 = newline d e f g h
    expected = 0.4 * 4 / 8 + 0.3 * 1 / 1 + 0.3 * 6 / 8
    assert diversity(pair, np.random.default_rng(0)) == pytest.approx(expected)
    assert diversity(pair[:1], np.random.default_rng(0)) == 0
    assert diversity([pair[0], made(2, 0.0, "ab\nc")], np.random.default_rng(0)) == 0


@pytest.mark.parametrize(("d", "t"), [(0.0, 0.6), (0.25, 0.6), (0.5, 1.0), (0.75, 1.4), (1.0, 1.8), (2.0, 1.8)])
def test_temperature(d: float, t: float) -> None:
    assert temperature_at(d) == pytest.approx(t)


@pytest.mark.parametrize("adapts", [True, False])
def test_chances_of_a_parent(adapts: bool) -> None:
    """With three elites and two others everybody is among the few, so p is a softmax; all texts alike: T = 0.6 or 1."""
    history = [made(i, v) for i, v in enumerate([1.0, 0.5, 0.0, 2.0, -1.0])] + [made(5, None)]
    pool = Pool(history[:3], np.zeros(3), history[0], history[-1], history)
    rng, draws = np.random.default_rng(0), 20_000
    found = Counter(adaptive_boltzmann(pool, rng, adapts=adapts, archive=3).uid for _ in range(draws))
    t = 0.6 if adapts else 1.0
    weights = [math.exp((c.value - 2.0) / t) for c in history[:5]]
    expected = [0.2 / 5 + 0.8 * w / sum(weights) for w in weights]
    assert set(found) == {0, 1, 2, 3, 4}  # nobody who is not valid
    assert [found[i] / draws for i in range(5)] == pytest.approx(expected, abs=0.012)


def test_elites_are_the_best_of_all_islands_and_the_others_are_at_home() -> None:
    """Three of the four best, whichever their island, and two others of the own one; nobody else has a chance."""
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 9.0, 8.0, 0.5]
    history = [made(i, v, island=int(i >= 5)) for i, v in enumerate(values)]
    pool = Pool([*history[:5], history[7]], np.zeros(6), history[0], history[-1], history)
    rng, draws = np.random.default_rng(0), 4000
    few = [
        adaptive_boltzmann(pool, rng, explore=0.0, archive=2, elites=2, others=1, adapts=False) for _ in range(draws)
    ]
    found = Counter(c.uid for c in few)
    assert set(found) <= {5, 6, 0, 1, 2, 3, 4, 7}
    p = [math.exp(0.0), math.exp(-1.0)]  # the two elites, beside one other whose weight is at most exp(-5)
    assert found[5] / draws == pytest.approx(p[0] / sum(p), abs=0.03)
    assert all(c.island == 0 or c.uid == 7 for c in (adaptive_boltzmann(pool, rng, explore=1.0) for _ in range(200)))


def test_who_is_worse_than_the_population_is_dead_unless_it_came_last() -> None:
    history = [made(i, float(v)) for i, v in enumerate([5, 1, 4, 3, 2])]
    pool = Pool(history, np.zeros(5), history[0], history[-1], history)
    rng = np.random.default_rng(0)
    found = {adaptive_boltzmann(pool, rng, explore=1.0, population=3).uid for _ in range(400)}
    assert found == {0, 2, 3, 4}


def test_too_few_of_one_kind() -> None:
    history = [made(i, 1.0) for i in range(8)]
    pool = Pool(history[:1], np.zeros(1), history[0], history[-1], history)
    rng = np.random.default_rng(1)
    found = Counter(adaptive_boltzmann(pool, rng, explore=0.0, archive=1).uid for _ in range(2000))
    assert set(found) == set(range(8))
    alone = Pool(history[:1], np.zeros(1), history[0], history[0], history[:1])
    assert adaptive_boltzmann(alone, rng).uid == 0
