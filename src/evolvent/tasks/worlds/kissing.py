"""The kissing number: how many unit spheres in n dimensions touch one of them at once, shown by whole numbers.

    value = number of vectors x_i in Z^n, if min over i < j of |x_i - x_j| >= max over i of |x_i| > 0

Then spheres around 2 x_i / |x_i| do not overlap: the angle between x and y of norms a >= b is at least 60 degrees, as
a^2 + b^2 - 2 a b cos = |x - y|^2 >= a^2 gives cos <= b / (2 a) <= 1/2 (AlphaEvolve, arXiv 2506.13131, section B.11).
Everything is compared in whole numbers, so nothing is rounded. The seed program takes both directions of each axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evolvent.tasks.evaluation import Evaluation, invalid
from evolvent.tasks.program import World
from evolvent.tasks.worlds.sized import read_size, sized

MOST, LARGEST = 1500, 2**28  # vectors; numbers: squares of distances stay below 2^63

GOAL = """Find as many vectors of {n} whole numbers as possible, of which no two are closer to each other than the
longest of them is long. kissing(n, rng) returns them, as rows; there may be 1,500 at most, and no number above 2^28.
`fill` adds those of a list that fit."""

SEED = '''"""Vectors of whole numbers, none closer to another than the longest is long."""

from itertools import combinations, product

import numpy as np


def fill(rows, more):
    """The rows, and those of `more` that fit, in their order; no longer than the longest row."""
    rows, longest = np.asarray(rows), (np.asarray(rows) ** 2).sum(1).max()
    kept = np.empty((len(rows) + len(more), rows.shape[1]), np.int64)
    kept[: len(rows)], count = rows, len(rows)
    for x in more:
        if 0 < (x**2).sum() <= longest and ((kept[:count] - x) ** 2).sum(1).min() >= longest:
            kept[count], count = x, count + 1
    return kept[:count]


def shell(n, k, size=1):
    """All vectors with k numbers that are size or -size, and else 0."""
    signs, places = np.array(list(product((-size, size), repeat=k))), list(combinations(range(n), k))
    rows = np.zeros((len(places), len(signs), n), np.int64)
    for row, place in zip(rows, places):
        row[:, place] = signs
    return rows.reshape(-1, n)


# EVOLVE-BLOCK-START
def kissing(n, rng):
    """Two on each axis."""
    rows = shell(n, 1, 2)
    return rows
# EVOLVE-BLOCK-END


def run(n, seed):
    """What is evaluated."""
    return kissing(n, np.random.default_rng(seed)).tolist()
'''

COMPONENTS = (
    "rows = fill(rows, shell(n, 4))",
    "rows = fill(rows, rng.permutation(shell(n, 4)))",
    "rows = fill(rows[: len(rows) // 2], shell(n, 4)[::-1])",
    "rows = fill(rows, rng.integers(-2, 3, (2000, n)))",
    "rows = shell(n, 2)",
    "rows = np.vstack([rows, 2 * shell(n, 1)])",
    "rows = rows[rng.permutation(len(rows))]",
    "rows = rows[rng.random(len(rows)) < 0.9]",
    "rows = rows[:, rng.permutation(n)]",
    "rows = rows[rows[:, 0] >= 0]",
    "rows = rows * 2",
    "rows = max(rows, fill(shell(n, 1, 2), rng.permutation(shell(n, 4))), key=len)",
)

KNOWN = {
    8: ((240.0, "E8 lattice, proved optimal", "1979"),),
    11: ((593.0, "AlphaEvolve", "2025-05"), (592.0, "Ganzhinov", "2022-07")),
}


def judge(value: Any, n: int) -> Evaluation:
    """The verdict on rows of n whole numbers."""
    rows = value if isinstance(value, list) else []
    if not 1 <= len(rows) <= MOST or any(not isinstance(row, list) or len(row) != n for row in rows):
        return invalid(f"kissing({n}, rng) must return 1 to {MOST} rows of {n} whole numbers")
    if any(type(x) is not int or abs(x) > LARGEST for row in rows for x in row):
        return invalid(f"every number must be a whole one, of an int type, and at most {LARGEST}")
    points = np.array(rows, np.int64)
    norms = (points**2).sum(1)
    if not norms.min():
        return invalid(f"vector {int(norms.argmin())} is zero")
    longest = norms.max()
    for i, point in enumerate(points[:-1]):
        apart = ((points[i + 1 :] - point) ** 2).sum(1)
        if apart.min() < longest:
            j = i + 1 + int(apart.argmin())
            return invalid(
                f"vectors {i} and {j} are too close: the square of their distance is {apart.min()}, that of the "
                f"longest vector {longest}"
            )
    return Evaluation(float(len(rows)))


def world(size: str = "11") -> World:
    """The world of so many dimensions. `UserError` for a size that is no number in range."""
    n = read_size("kissing", size, 2, 12, "dimensions")
    return sized("kissing", n, GOAL, SEED, judge, COMPONENTS, KNOWN, seconds=5.0)
