"""Matrix multiplication: Strassen's products, random matrices multiplied by what is accepted, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.tasks.worlds.matrix_multiplication import SEED, judge, tensor, world

STRASSEN = [  # (u, v, w) of rows a11 a12 a21 a22, b..., c...
    ([1, 0, 0, 1], [1, 0, 0, 1], [1, 0, 0, 1]),
    ([0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 1, -1]),
    ([1, 0, 0, 0], [0, 1, 0, -1], [0, 1, 0, 1]),
    ([0, 0, 0, 1], [-1, 0, 1, 0], [1, 0, 1, 0]),
    ([1, 1, 0, 0], [0, 0, 0, 1], [-1, 1, 0, 0]),
    ([-1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]),
    ([0, 1, 0, -1], [0, 0, 1, 1], [1, 0, 0, 0]),
]
ROWS = [[list(map(float, x)) for x in f] for f in STRASSEN]


def multiplied(rows: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A B by the products."""
    total = sum(np.dot(u, a.ravel()) * np.dot(v, b.ravel()) * np.array(w) for u, v, w in rows)
    return np.asarray(total).reshape(a.shape[0], b.shape[1])


def seed_names() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(SEED, names)
    return names


def test_strassen() -> None:
    assert judge(ROWS, (2, 2, 2)).value == -7
    a, b = np.random.default_rng(0).normal(size=(2, 2, 2))
    assert np.allclose(multiplied(ROWS, a, b), a @ b)
    halved = [[[2 * x for x in u], [x / 2 for x in v], w] for u, v, w in ROWS]
    assert judge(halved, (2, 2, 2)).value == -7


@pytest.mark.parametrize("shape", [(2, 4, 5), (3, 3, 3), (1, 2, 3)])
def test_the_definition_and_its_walks_multiply(shape: tuple[int, int, int]) -> None:
    n, m, p = shape
    names, rng = seed_names(), np.random.default_rng(1)
    assert judge(names["run"](*shape, 0), shape).value == -n * m * p
    assert tensor(shape).sum() == n * m * p
    found = names["walk"](names["definition"](*shape), rng, 3000)
    found = names["split"](found, 3, rng)
    rows = [[list(map(float, x)) for x in f] for f in found]
    assert judge(rows, shape).value == -len(found)
    a, b = rng.normal(size=(n, m)), rng.normal(size=(m, p))
    assert np.allclose(multiplied(rows, a, b), a @ b)


@pytest.mark.parametrize(("shape", "count"), [((2, 2, 2), 7), ((2, 4, 5), 36), ((3, 3, 3), 26), ((4, 4, 4), 56)])
def test_tiles(shape: tuple[int, int, int], count: int) -> None:
    rows = [[list(map(float, x)) for x in f] for f in seed_names()["tiles"](*shape)]
    assert judge(rows, shape).value == -count


def test_a_walk_finds_seven_products() -> None:
    names = seed_names()
    found = names["walk"](names["definition"](2, 2, 2), np.random.default_rng(0), 20000)
    assert len(found) == 7


def changed(place: tuple[int, int, int], value: Any) -> Any:
    rows: Any = copy.deepcopy(ROWS)
    rows[place[0]][place[1]][place[2]] = value
    return rows


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "1 to 16 products"),
        ("abc", "1 to 16 products"),
        ([ROWS[0][:2]], "1 to 16 products"),
        ([[[1.0], [1.0], [1.0]]], "must have 4, 4 and 4 numbers"),
        (ROWS[:-1], "coefficients of the product are wrong"),
        (changed((0, 0, 0), 2.0), "coefficients of the product are wrong"),
        (changed((0, 0, 0), 1.0000000000000002), "not whole or half"),
        (changed((0, 0, 0), float("nan")), "not whole or half"),
        (changed((0, 0, 0), "1"), "not whole or half"),
        (changed((0, 0, 0), 1e300), "not whole or half"),
    ],
)
def test_what_is_refused(rows: Any, told: str) -> None:
    found = judge(rows, (2, 2, 2))
    assert (found.value, found.status) == (None, "invalid")
    assert told in found.feedback


@pytest.mark.parametrize("size", ["3", "3x3", "6x2x2", "0x1x1", "axbxc", ""])
def test_sizes(size: str) -> None:
    with pytest.raises(UserError, match="2x4x5"):
        world(size)
