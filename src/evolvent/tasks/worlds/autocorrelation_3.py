"""Third autocorrelation inequality: as the first one, with heights of both signs.

    C3 = inf max_t |(f*f)(t)| / (integral f)^2 over f on [-1/4, 1/4]
    f constant on n equal steps, heights h:  2n max_k |(h*h)_k| / (sum h)^2,  value = -that, in float64

The modulus is inside the maximum (Matolcsi and Vinuesa, arXiv 0907.1379). With |max_t (f*f)(t)| it is another problem,
and values of the two are not comparable: the 400 heights that AlphaEvolve published for that one in 2025-05, 1.4556
there, are worth 4.3340 here. 1 <= C3 is trivial, as for the first inequality. The seed program returns a constant: 2.
"""

from __future__ import annotations

import math
from typing import Any

from evolvent.tasks.evaluation import Evaluation
from evolvent.tasks.program import World
from evolvent.tasks.worlds.sized import read_size, sized
from evolvent.tasks.worlds.steps import CONSTANT_HEIGHTS, DESCEND, LEAST, MOST, judge_constant

GOAL = """Find a step function f on [-1/4, 1/4] with {n} equal steps whose autoconvolution f*f stays as close to 0 as
possible for its integral; f may be negative. heights(n, rng) returns the n heights h of the steps, finite numbers with
a sum that is not 0; 2n max|h*h| / (sum h)^2 should be as small as possible. Their scale does not matter."""

SEED = f'''"""A step function with an autoconvolution that stays small."""

import numpy as np
from scipy.optimize import minimize

lowest = -np.inf
{DESCEND}
{CONSTANT_HEIGHTS}'''

COMPONENTS = (
    "h = rng.random(n)",
    "h = np.ones(n) + rng.normal(0, 0.1, n)",
    "h = h * rng.lognormal(0, 0.2, n)",
    "h = h + rng.normal(0, 0.2, n)",
    "h = np.where(rng.random(n) < 0.1, -h, h)",
    "h = 1 / np.sqrt(np.linspace(0.01, 1, n))",
    "h = h + 0.3 * np.cos(np.arange(n) * rng.random())",
    "h = np.convolve(h, np.ones(5) / 5, 'same')",
    "h = h - 0.1 * h[::-1]",
    "h = descend(h, 400)",
    "h = min(descend(h, 200), descend(h + rng.normal(0, 0.3, n), 200), key=constant)",
)

KNOWN = {  # as values; AlphaEvolve's and ThetaEvolve's computed from the published heights
    150: (
        (-1.4687620697, "AlphaEvolve", "2025-12"),
        (-1.46288, "the best of `descend(rng.random(n), 2000)`, 200 times, seed 0", "2026-11"),
    ),
    400: (
        (-1.4930012022, "ThetaEvolve, arXiv 2511.23473", "2025-11"),
        (-1.46043, "the best of `descend(rng.random(n), 2000)`, 100 times, seed 0", "2026-11"),
    ),
}


def judge(value: Any, n: int) -> Evaluation:
    """The verdict on n heights."""
    return judge_constant(value, n, least=-math.inf)


def world(size: str = "400") -> World:
    """The world of so many steps. `UserError` for a size that is no number in range."""
    n = read_size("autocorrelation-3", size, LEAST, MOST, "steps")
    return sized("autocorrelation-3", n, GOAL, SEED, judge, COMPONENTS, KNOWN, seconds=10.0)
