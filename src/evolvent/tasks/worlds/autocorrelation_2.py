"""Second autocorrelation inequality: a step function f >= 0 whose autoconvolution is nearly flat where it is not 0.

    C2 = sup ||f*f||_2^2 / (||f*f||_1 ||f*f||_inf) over f >= 0
    f constant on n equal steps, heights h; g = f*f is piecewise linear with the values 0, (h*h)_0, ..., (h*h)_(2n-2), 0
    ||g||_2^2 = sum (a^2 + ab + b^2) / 3 over neighbours a, b;  ||g||_1 = (sum h)^2;  ||g||_inf = max (h*h)

The integrals are those of g itself, not sums over samples; the width of a step cancels. The value is in float64.
C2 <= 1 is trivial (g^2 <= ||g||_inf g); a constant has 2/3. The definition: Matolcsi and Vinuesa, arXiv 0907.1379.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evolvent.tasks.evaluation import Evaluation
from evolvent.tasks.program import World
from evolvent.tasks.worlds.sized import read_size, sized
from evolvent.tasks.worlds.steps import CONSTANT_HEIGHTS, LEAST, MOST, read_scaled

GOAL = """Find a step function f >= 0 with {n} equal steps whose autoconvolution g = f*f makes
||g||_2^2 / (||g||_1 ||g||_inf) as large as possible. heights(n, rng) returns the n heights h of the steps, finite, none
of them negative, not all 0. g is piecewise linear with the values 0, h*h, 0 at equal distances, and its norms are exact
integrals. The scale of h does not matter."""

SEED = (
    '''"""A step function with a nearly flat autoconvolution."""

import numpy as np
from scipy.optimize import minimize


def ratio(h):
    """What is to be large: ||g||_2^2 / (||g||_1 ||g||_inf) for g = h*h."""
    g = np.concatenate([[0], np.convolve(h, h), [0]])
    a, b = g[:-1], g[1:]
    return (a * a + a * b + b * b).sum() / 3 / (g.sum() * g.max())


def climb(h, steps):
    """L-BFGS on the logarithm of the ratio, a p-norm in place of the maximum, p growing; never worse than h."""
    n, steps = len(h), int(np.clip(steps, 1, 2000))

    def loss(h, p):
        g = np.concatenate([[0], np.convolve(h, h), [0]])
        a, b, top = g[:-1], g[1:], g.max()
        square = (a * a + a * b + b * b).sum() / 3
        power = (g / top) ** (p - 1)
        norm = (power * g).sum() / top
        toward = power[1:-1] / (norm * top) - (4 * g[1:-1] + g[:-2] + g[2:]) / 3 / square
        slope = 2 * np.correlate(toward, h, "valid") + 2 / h.sum()
        return np.log(top) + np.log(norm) / p + 2 * np.log(h.sum()) - np.log(square), slope

    h = np.maximum(h, 0)
    best = h = h / h.max()
    for p in (64, 256, 1024):
        options = {"maxiter": steps // 3 + 1, "maxfun": steps // 2 + 2, "gtol": 1e-9, "ftol": 1e-12}
        found = minimize(loss, h, (p,), "L-BFGS-B", True, bounds=[(0, None)] * n, options=options).x
        h = found / found.max()
        best = max(best, h, key=ratio)
    return best


'''
    + CONSTANT_HEIGHTS
)

COMPONENTS = (
    "h = rng.random(n)",
    "h = np.ones(n) + 0.1 * rng.random(n)",
    "h = h * rng.lognormal(0, 0.3, n)",
    "h = h + 0.2 * rng.random(n)",
    "h = np.where(rng.random(n) < 0.3, 0, h)",
    "h[rng.integers(n)] = h[rng.integers(n)] * 2",
    "h = 1 / np.sqrt(np.linspace(0.01, 1, n))",
    "h = np.convolve(h, np.ones(3) / 3, 'same')",
    "h[: n // 2] = h[: n // 2] * 2",
    "h = climb(h, 400)",
    "h = max(climb(h, 200), climb(h * rng.lognormal(0, 0.5, n), 200), key=ratio)",
)

KNOWN = {  # AlphaEvolve's and ThetaEvolve's computed from the published heights, the others as stated
    50: (
        (0.8962799442, "AlphaEvolve", "2025-05"),
        (0.90413, "the best of `climb(rng.random(n), 400)`, 500 times, seed 0", "2026-11"),
    ),
    575: ((0.901564, "Boyer and Li, arXiv 2506.16750", "2025-06"),),
    2048: ((0.9433749155, "ThetaEvolve, arXiv 2511.23473", "2025-11"),),
    2399: ((0.926529, "Jaech and Joseph, arXiv 2508.02803", "2025-08"),),
    3072: ((0.9468970132, "ThetaEvolve, arXiv 2511.23473", "2025-11"),),
}


def judge(value: Any, n: int) -> Evaluation:
    """The verdict on n heights."""
    h = read_scaled(value, n, least=0)
    if isinstance(h, Evaluation):
        return h
    g = np.concatenate([[0.0], np.convolve(h, h), [0.0]])
    a, b = g[:-1], g[1:]
    square = float((a * a + a * b + b * b).sum()) / 3
    return Evaluation(square / (math.fsum(h) ** 2 * float(g.max())))


def world(size: str = "50") -> World:
    """The world of so many steps. `UserError` for a size that is no number in range."""
    n = read_size("autocorrelation-2", size, LEAST, MOST, "steps")
    return sized("autocorrelation-2", n, GOAL, SEED, judge, COMPONENTS, KNOWN, seconds=10.0)
