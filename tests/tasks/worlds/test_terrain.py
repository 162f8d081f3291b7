"""Landscapes against their definitions, computed slowly here, and optima against all combinations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.tasks.settings import read_settings
from evolvent.tasks.worlds.terrain import Terrain


def every(terrain: Terrain) -> np.ndarray:
    """All combinations."""
    return np.array(list(itertools.product(range(terrain.options), repeat=terrain.parts + terrain.traits)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("k", "parts", "options"), [(0, 5, 3), (1, 6, 3), (2, 6, 3), (3, 7, 2), (5, 6, 2)])
def test_the_optimum_of_an_nk_landscape_is_the_best_of_all_combinations(
    k: int, parts: int, options: int, seed: int
) -> None:
    terrain = Terrain(parts=parts, options=options, k=k, seed=seed)
    best, choices = terrain.optimum
    assert best == pytest.approx(terrain.values(every(terrain)).max(), abs=1e-12)
    assert choices is not None
    assert terrain.value(choices) == best


@pytest.mark.parametrize("depth", [0.0, 0.3, 1.0])
def test_the_optimum_of_stepping_stones_is_the_best_of_all_combinations(depth: float) -> None:
    terrain = Terrain("stones", parts=6, options=3, block=3, depth=depth, seed=4)
    assert terrain.optimum[0] == terrain.values(every(terrain)).max() == 1.0


def test_nk_values_by_hand() -> None:
    terrain = Terrain(parts=5, options=3, k=2, seed=7)
    for choices in every(terrain)[::17]:
        ring = [int(choices[part]) for part in terrain.order]
        own = [terrain.tables[i, 9 * ring[i] + 3 * ring[(i + 1) % 5] + ring[(i + 2) % 5]] for i in range(5)]
        assert terrain.value(choices) == pytest.approx(sum(own) / 5, abs=1e-15)


@pytest.mark.parametrize(("k", "expected"), [(0, 1), (2, 3), (4, 5)])
def test_a_part_takes_part_in_k_plus_one_contributions(k: int, expected: int) -> None:
    terrain = Terrain(parts=12, k=k, seed=1)
    before = terrain.contributions(terrain.first[None])[0]
    for part in range(12):
        rows = np.repeat(terrain.first[None], terrain.options, 0)
        rows[:, part] = np.arange(terrain.options)
        moved = (terrain.contributions(rows) != before).any(0).sum()
        assert moved == expected


def test_smooth_means_that_the_best_of_each_part_is_the_best_of_all() -> None:
    terrain = Terrain(k=0, seed=2)
    greedy = np.array([np.argmax(terrain.neighbours(terrain.first, part)) for part in range(terrain.parts)])
    assert terrain.value(greedy) == pytest.approx(terrain.optimum[0], abs=1e-12)


def test_stepping_stones_by_hand() -> None:
    terrain = Terrain("stones", parts=4, block=2, depth=0.4, options=3, seed=5)
    a, b, c, d = terrain.order
    w = terrain.tables
    start = terrain.first
    others = [(w[i, start[i]] + w[j, start[j]]) / 2 for i, j in ((a, b), (c, d))]
    assert terrain.value(start) == pytest.approx(sum(0.5 + 0.25 * x for x in others) / 2, abs=1e-15)
    one = start.copy()
    one[a] = terrain.targets[a]
    first = 0.5 * (1 - 0.4 * 1) + 0.25 * w[b, start[b]] / 2
    assert terrain.value(one) == pytest.approx((first + 0.5 + 0.25 * others[1]) / 2, abs=1e-15)
    one[b] = terrain.targets[b]
    assert terrain.value(one) == pytest.approx((1 + 0.5 + 0.25 * others[1]) / 2, abs=1e-15)


@pytest.mark.parametrize(("depth", "slope"), [(0.3, 0.25), (0.0, 0.25), (0.5, 0.0), (0.0, 0.0)])
def test_the_way_to_a_block_leads_downwards_or_is_flat(depth: float, slope: float) -> None:
    terrain = Terrain("stones", parts=6, block=3, depth=depth, slope=slope, options=3, seed=0)
    walk = terrain.first.copy()
    values = [terrain.value(walk)]
    for part in terrain.order[:3]:
        walk[part] = terrain.targets[part]
        values.append(terrain.value(walk))
    lost = np.diff(values)
    assert (lost[:2] < 0).all() if depth or slope else (lost[:2] == 0).all()
    assert lost[2] > 0
    assert values[3] > values[0]


def test_traits_change_no_value_and_add_up_to_the_boost() -> None:
    terrain = Terrain(traits=4, boost=0.8, seed=3)
    made = terrain.first.copy()
    assert terrain.productivity(made) == 0
    for number in range(4):
        made[terrain.parts + number] = terrain.targets[terrain.parts + number]
        assert terrain.value(made) == terrain.value(terrain.first)
        assert terrain.productivity(made) == pytest.approx(0.2 * (number + 1))


def test_noise_tells_nothing_about_neighbours() -> None:
    terrain = Terrain("noise", parts=30, options=4)
    values = terrain.values(np.random.default_rng(0).integers(4, size=(4000, 30)))
    assert abs(values.mean() - 0.5) < 4 / np.sqrt(12 * 4000)
    pairs = np.array([terrain.neighbours(terrain.first, part)[:2] for part in range(30)])
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 0.6
    assert terrain.optimum == (1.0, None)


def test_the_weakest_part_is_one_of_the_least_contribution() -> None:
    terrain = Terrain(k=0, seed=9)
    choices = terrain.first
    own = {int(part): terrain.tables[i, choices[part]] for i, part in enumerate(terrain.order)}
    assert terrain.weakest(choices) == min(own, key=lambda part: own[part])


def test_the_same_settings_make_the_same_landscape_and_another_seed_another() -> None:
    one, two, other = Terrain(seed=1), Terrain(seed=1), Terrain(seed=2)
    assert (one.first == two.first).all()
    assert (one.tables == two.tables).all()
    assert not (one.tables == other.tables).all()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("parts=0", "parts goes from 1 to 200"),
        ("options=11", "options goes from 2 to 10"),
        ("k=24", "k goes from 0 to parts - 1"),
        ("k=-1", "k goes from 0"),
        ("k=7,options=5", "takes too long"),
        ("kind=stones,block=5", "divides parts"),
        ("kind=cliff", "kind"),
        ("depth=2", "depth go from 0 to 1"),
        ("slope=0.5", "slope goes from 0 to below 0.5"),
        ("boost=-1", "boost and depth"),
        ("trials=-1", "trials goes from"),
        ("peaks=3", "unknown setting `peaks`"),
        ("k", "`k` is no setting; write for example landscape:seed=1"),
        ("k=1,k=2", "k is set twice"),
        ("k=two", "landscape: k must be int"),
        ("depth=nan", "depth must be a number"),
    ],
)
def test_settings_that_make_no_landscape(settings: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        read_settings(Terrain, settings, "landscape")
