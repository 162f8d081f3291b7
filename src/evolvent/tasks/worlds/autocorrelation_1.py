"""First autocorrelation inequality: a step function f >= 0 with an autoconvolution that is nowhere large.

    C1 = inf max_t (f*f)(t) / (integral f)^2 over f >= 0 on [-1/4, 1/4]
    f constant on n equal steps, heights h:  2n max_k (h*h)_k / (sum h)^2,  value = -that, in float64

f*f is linear between multiples of 1/(2n), so its maximum is one of (h*h)_k / (2n); the integral of f is sum h / (2n).
1 <= C1 is trivial (f*f on [-1/2, 1/2] has the integral (integral f)^2); 1.28 is proved (Cloninger and Steinerberger,
arXiv 1403.7988). The definition: Matolcsi and Vinuesa, arXiv 0907.1379. The seed program returns a constant: 2.
"""

from __future__ import annotations

from typing import Any

from evolvent.tasks.evaluation import Evaluation
from evolvent.tasks.program import World
from evolvent.tasks.worlds.sized import read_size, sized
from evolvent.tasks.worlds.steps import CONSTANT_HEIGHTS, DESCEND, LEAST, MOST, judge_constant

GOAL = """Find a step function f >= 0 on [-1/4, 1/4] with {n} equal steps whose autoconvolution f*f has a maximum as
small as possible for its integral. heights(n, rng) returns the n heights h of the steps, finite, none of them negative;
2n max(h*h) / (sum h)^2 should be as small as possible. Their scale does not matter."""

SEED = f'''"""A step function with a flat autoconvolution."""

import numpy as np
from scipy.optimize import minimize

lowest = 0.0
{DESCEND}
{CONSTANT_HEIGHTS}'''

COMPONENTS = (
    "h = rng.random(n)",
    "h = np.ones(n) + 0.1 * rng.random(n)",
    "h = h * rng.lognormal(0, 0.2, n)",
    "h = h + 0.2 * rng.random(n)",
    "h = np.where(rng.random(n) < 0.1, 0, h)",
    "h = 1 / np.sqrt(np.linspace(0.01, 1, n))",
    "h = np.convolve(h, np.ones(5) / 5, 'same')",
    "h = np.maximum(h, h[::-1])",
    "h = np.roll(h, n // 10)",
    "h[: n // 3] = h[: n // 3] * 1.5",
    "h = descend(h, 400)",
    "h = min(descend(h, 200), descend(h * rng.lognormal(0, 0.3, n), 200), key=constant)",
)

KNOWN = {  # as values, computed from the published heights
    200: ((-1.5068026727, "ThetaEvolve, arXiv 2511.23473", "2025-11"),),
    208: ((-1.5097201507, "Matolcsi and Vinuesa, arXiv 0907.1379", "2009-07"),),
    600: ((-1.5052939684, "AlphaEvolve", "2025-05"),),
    1319: (
        (-1.5031635547, "AlphaEvolve, second report", "2025-11"),
        (-1.5031324360, "ThetaEvolve, from AlphaEvolve's", "2025-11"),
    ),
}


def judge(value: Any, n: int) -> Evaluation:
    """The verdict on n heights."""
    return judge_constant(value, n, least=0)


def world(size: str = "600") -> World:
    """The world of so many steps. `UserError` for a size that is no number in range."""
    n = read_size("autocorrelation-1", size, LEAST, MOST, "steps")
    return sized("autocorrelation-1", n, GOAL, SEED, judge, COMPONENTS, KNOWN, seconds=10.0)
