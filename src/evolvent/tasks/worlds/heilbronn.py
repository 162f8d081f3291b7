"""Heilbronn's problem in a triangle: n points of which no three span a small triangle.

    value = min over i < j < k of area(p_i, p_j, p_k) / area(T),  T = (0, 0), (1, 0), (0, 1),  x, y >= 0, x + y <= 1

All triangles are affinely the same, and ratios of areas do not change: T has the area 1/2, so the value is the smallest
|(p_j - p_i) x (p_k - p_i)|. Corners of T are floats, and inside is decided exactly; areas are computed in fractions and
rounded once. The seed program puts its points on the parabola x = t^2, y = (1 - t)^2, in equal steps of t: three span
2 |(t_j - t_i) (t_k - t_j) (t_k - t_i)|, so the smallest has 4 / (n - 1)^3.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

from evolvent.tasks.evaluation import Evaluation, invalid, number
from evolvent.tasks.program import World
from evolvent.tasks.worlds.sized import read_size, sized

GOAL = """Place {n} points in the triangle with the corners (0, 0), (1, 0), (0, 1) so that the smallest of the triangles
that three of the points span is as large as possible. place(n, rng) returns n rows of x, y. Points may lie on the
boundary, but not outside, with no tolerance; `inside` moves them in."""

SEED = '''"""Points in the triangle with the corners (0, 0), (1, 0), (0, 1)."""

from itertools import combinations

import numpy as np
from scipy.optimize import minimize


def inside(points):
    """The points, moved into the triangle: exactly, as 1 - y is exact for y >= 1/2."""
    points = np.clip(np.nan_to_num(points), 0, 1)
    high, low = points.max(1), points.argmin(1)
    points[np.arange(len(points)), low] = np.minimum(points.min(1), 1 - high)
    return points


def areas(points):
    """Of all triangles, with their signs, as shares of the whole."""
    a, b, c = points[np.array(list(combinations(range(len(points)), 3)))].transpose(1, 2, 0)
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def smallest(points):
    """What is to be large."""
    return np.abs(areas(inside(points))).min()


def polish(points, steps):
    """SLSQP on the points and the least area; no triangle turns over. Never worse than the points."""
    points, steps = inside(points), int(np.clip(steps, 1, 200))
    n, three = len(points), np.array(list(combinations(range(len(points)), 3)))
    sign, rows = np.where(areas(points) < 0, -1, 1), np.arange(len(three))

    def slack(z):
        x = z[:-1].reshape(n, 2)
        return np.append(sign * areas(x) - z[-1], 1 - x.sum(1))

    def slope(z):
        x, found = z[:-1].reshape(n, 2), np.zeros((len(three), n, 2))
        for turn in range(3):
            i, j, k = np.roll(three, turn, axis=1).T
            found[rows, i] = sign[:, None] * np.column_stack([x[j, 1] - x[k, 1], x[k, 0] - x[j, 0]])
        walls = np.column_stack([-np.repeat(np.eye(n), 2, axis=1), np.zeros(n)])
        return np.vstack([np.column_stack([found.reshape(len(three), -1), -np.ones(len(three))]), walls])

    found = minimize(
        lambda z: -z[-1], np.append(points.ravel(), np.abs(areas(points)).min()),
        jac=lambda z: np.append(np.zeros(2 * n), -1.0), method="SLSQP",
        constraints={"type": "ineq", "fun": slack, "jac": slope},
        bounds=[(0, 1)] * (2 * n + 1), options={"maxiter": steps, "ftol": 1e-15},
    ).x
    return max(points, inside(found[:-1].reshape(n, 2)), key=smallest)


# EVOLVE-BLOCK-START
def place(n, rng):
    """Points on a parabola."""
    t = np.linspace(0, 1, n)
    points = np.column_stack([t**2, (1 - t) ** 2])
    return inside(points)
# EVOLVE-BLOCK-END


def run(n, seed):
    """What is evaluated."""
    return place(n, np.random.default_rng(seed))
'''

COMPONENTS = (
    "points = rng.dirichlet(np.ones(3), n)[:, :2]",
    "points = 1 / 3 + 0.3 * np.column_stack([np.cos(np.arange(n)), np.sin(np.arange(n))])",
    "points = points + rng.normal(0, 0.02, points.shape)",
    "points = inside(points + rng.normal(0, 0.1, points.shape))",
    "points[rng.integers(n)] = rng.dirichlet(np.ones(3))[:2]",
    "points[: n // 2] = points[: n // 2, ::-1] * 0.5",
    "points = 1 / 3 + (points - 1 / 3) * 0.9",
    "t = np.sort(rng.random(n))",
    "points = inside(points)",
    "points = polish(points, 40)",
    "points = max(points, inside(rng.dirichlet(np.ones(3), n)[:, :2]), key=smallest)",
)

KNOWN = {
    11: ((0.0365298899, "AlphaEvolve", "2025-05"),),  # from published points, mapped to this triangle
}


def judge(value: Any, n: int) -> Evaluation:
    """The verdict on n rows of x, y."""
    rows = value if isinstance(value, list) else []
    if len(rows) != n or any(not isinstance(row, list) or len(row) != 2 for row in rows):
        return invalid(f"place({n}, rng) must return {n} rows of two numbers: x, y")
    if any(number(x) is None for row in rows for x in row):
        return invalid("every x and y must be a finite number")
    points = [(Fraction(x), Fraction(y)) for x, y in rows]
    for i, (x, y) in enumerate(points):
        outside = max(-x, -y, x + y - 1)
        if outside > 0:
            return invalid(f"point {i} lies outside of the triangle by {float(outside):.3g}")
    areas = [abs((p - a) * (v - b) - (q - b) * (u - a)) for (a, b), (p, q), (u, v) in combinations(points, 3)]
    return Evaluation(float(min(areas)))


def world(size: str = "11") -> World:
    """The world of so many points. `UserError` for a size that is no number in range."""
    n = read_size("heilbronn", size, 3, 24, "points")
    return sized("heilbronn", n, GOAL, SEED, judge, COMPONENTS, KNOWN, seconds=5.0)
