"""Circle packing: n disjoint discs in the unit square, the sum of their radii as large as possible.

    value = sum r_i,  r_i <= x_i, y_i <= 1 - r_i,  |c_i - c_j| >= r_i + r_j, in float64, tolerance 0

The seed program lays the centres on a grid. Radii are what the centres leave room for; `polish`,
in the component library, is SLSQP on centres and radii together, as in plain multistart optimisation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evolvent.tasks.evaluation import Evaluation, invalid, number
from evolvent.tasks.program import World
from evolvent.tasks.worlds.sized import read_size, sized

GOAL = """Pack {n} disjoint discs into the unit square so that the sum of their radii is as large as possible.
pack(n, rng) returns n rows of x, y, r. Discs may touch, but not overlap or leave the square, with no tolerance."""

SEED = '''"""Discs in the unit square."""

import numpy as np
from scipy.optimize import minimize


def radii_of(points):
    """Radii that fit these centres: half the distance to the nearest neighbour, or the distance to the wall."""
    gaps = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    np.fill_diagonal(gaps, np.inf)
    walls = np.minimum(points, 1 - points).min(1)
    return np.clip(np.minimum(gaps.min(1) / 2, walls), 0, None) * (1 - 1e-12)


def polish(points, steps):
    """Centres and radii improved together by SLSQP, then shrunk until every constraint holds."""
    n, steps = len(points), int(np.clip(steps, 1, 200))
    i, j = np.triu_indices(n, 1)

    def slack(z):
        x, y, r = z[:n], z[n : 2 * n], z[2 * n :]
        between = np.hypot(x[i] - x[j], y[i] - y[j]) - r[i] - r[j]
        return np.concatenate([between, x - r, 1 - x - r, y - r, 1 - y - r])

    def slope(z):
        x, y = z[:n], z[n : 2 * n]
        gap = np.hypot(x[i] - x[j], y[i] - y[j]) + 1e-12
        k, u, v = np.arange(len(i)), (x[i] - x[j]) / gap, (y[i] - y[j]) / gap
        rows = np.zeros((len(i), 3 * n))
        rows[k, i], rows[k, j], rows[k, n + i], rows[k, n + j] = u, -u, v, -v
        rows[k, 2 * n + i] = rows[k, 2 * n + j] = -1
        one, none = np.eye(n), np.zeros((n, n))
        walls = [[one, none, -one], [-one, none, -one], [none, one, -one], [none, -one, -one]]
        return np.vstack([rows, *(np.hstack(wall) for wall in walls)])

    start = np.concatenate([points[:, 0], points[:, 1], radii_of(points)])
    toward = np.concatenate([np.zeros(2 * n), -np.ones(n)])
    found = minimize(
        lambda z: -z[2 * n :].sum(), start, jac=lambda z: toward, method="SLSQP",
        constraints={"type": "ineq", "fun": slack, "jac": slope},
        bounds=[(0, 1)] * (2 * n) + [(0, 0.5)] * n, options={"maxiter": steps, "ftol": 1e-12},
    ).x
    radii = found[2 * n :] - max(0.0, -slack(found).min()) - 1e-15
    return np.column_stack([found[:n], found[n : 2 * n]]), np.clip(radii, 0, None)


# EVOLVE-BLOCK-START
def pack(n, rng):
    """Centres on a grid."""
    side = int(np.ceil(np.sqrt(n)))
    points = np.array([((i % side + 0.5) / side, (i // side + 0.5) / side) for i in range(n)])
    radii = radii_of(points)
    return np.column_stack([points, radii])
# EVOLVE-BLOCK-END


def run(n, seed):
    """What is evaluated."""
    return pack(n, np.random.default_rng(seed))
'''

COMPONENTS = (
    "points = rng.random((n, 2))",
    "points = points + rng.normal(0, 0.02, points.shape)",
    "points = np.clip(points, 0.02, 0.98)",
    "points = np.clip(points + rng.normal(0, 0.05, points.shape), 0.02, 0.98)",
    "points[rng.integers(n)] = rng.random(2)",
    "points[1::2, 0] = points[1::2, 0] + 0.5 / side",
    "points = 0.5 + (points - 0.5) * 0.98",
    "radii = radii_of(points)",
    "points, radii = polish(points, 30)",
)

KNOWN = {
    26: ((2.6358627564, "AlphaEvolve", "2025-05"), (2.6359830849, "AlphaEvolve, second report", "2025-11")),
    32: ((2.9379445262, "AlphaEvolve", "2025-05"), (2.9395727712, "AlphaEvolve, second report", "2025-11")),
}
LEAST, MOST = 2, 64


def judge(value: Any, n: int) -> Evaluation:
    """The verdict on n rows of x, y, r."""
    rows = value if isinstance(value, list) else []
    if len(rows) != n or any(not isinstance(row, list) or len(row) != 3 for row in rows):
        return invalid(f"pack({n}, rng) must return {n} rows of three numbers: x, y, r")
    if any(number(x) is None for row in rows for x in row):
        return invalid("every x, y and r must be a finite number")
    x, y, r = np.array(rows, float).T
    if (r < 0).any():
        return invalid(f"disc {int(np.argmin(r))} has the radius {r.min():.6g}")
    outside = np.max([r - x, x + r - 1, r - y, y + r - 1], axis=0)
    if (outside > 0).any():
        return invalid(f"disc {int(np.argmax(outside))} leaves the square by {outside.max():.3g}")
    i, j = np.triu_indices(n, 1)
    overlap = r[i] + r[j] - np.hypot(x[i] - x[j], y[i] - y[j])
    if len(overlap) and overlap.max() > 0:
        worst = int(np.argmax(overlap))
        return invalid(f"discs {i[worst]} and {j[worst]} overlap by {overlap.max():.3g}")
    return Evaluation(float(r.sum()), {"smallest": float(r.min()), "largest": float(r.max())})


def world(size: str = "26") -> World:
    """The world of so many discs. `UserError` for a size that is no number in range."""
    n = read_size("circle-packing", size, LEAST, MOST, "discs")
    return sized("circle-packing", n, GOAL, SEED, judge, COMPONENTS, KNOWN, seconds=5.0)
