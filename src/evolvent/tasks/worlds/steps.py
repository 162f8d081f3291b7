"""Step functions of n equal steps: what the worlds about their convolutions share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evolvent.tasks.evaluation import Evaluation, invalid, number

LEAST, MOST = 2, 4096

# The end of seed programs.
CONSTANT_HEIGHTS = '''# EVOLVE-BLOCK-START
def heights(n, rng):
    """A constant."""
    h = np.ones(n)
    return h
# EVOLVE-BLOCK-END


def run(n, seed):
    """What is evaluated."""
    return heights(n, np.random.default_rng(seed))
'''

# Part of seed programs, outside the marks. `lowest` is bound before it: 0 where heights may not be negative.
DESCEND = '''

def autoconvolution(h):
    """The 2n - 1 values of h*h."""
    wave = np.fft.rfft(h, 2 * len(h))
    return np.fft.irfft(wave * wave, 2 * len(h))[: 2 * len(h) - 1]


def constant(h):
    """What is to be small: 2n max|h*h| / (sum h)^2."""
    return 2 * len(h) * np.abs(autoconvolution(h)).max() / h.sum() ** 2


def descend(h, steps):
    """L-BFGS on the p-norm of h*h in place of the maximum, p growing in five rounds; never worse than h."""
    n, steps = len(h), int(np.clip(steps, 1, 2000))

    def loss(h, p):
        c = autoconvolution(h)
        top, total = np.abs(c).max(), h.sum()
        power = (np.abs(c) / top) ** (p - 1) * np.sign(c)
        norm = (power * c).sum() / top
        wave = np.fft.rfft(power / (norm * top), 2 * n) * np.conj(np.fft.rfft(h, 2 * n))
        slope = 2 * np.fft.irfft(wave, 2 * n)[:n] - 2 / total
        return np.log(top) + np.log(norm) / p - 2 * np.log(np.abs(total)), slope

    h = np.maximum(h, lowest)
    best = h = h / np.abs(h).max()
    for p in (4, 16, 64, 256, 1024):
        options = {"maxiter": steps // 5 + 1, "maxfun": steps // 2 + 2, "gtol": 1e-9, "ftol": 1e-12}
        found = minimize(loss, h, (p,), "L-BFGS-B", True, bounds=[(lowest, None)] * n, options=options).x
        h = found / np.abs(found).max()
        best = min(best, h, key=constant)
    return best

'''


def read_heights(value: Any, n: int, least: float = -math.inf, most: float = math.inf) -> np.ndarray | Evaluation:
    """n heights, or the verdict on what is not that."""
    if not isinstance(value, list) or len(value) != n:
        return invalid(f"heights({n}, rng) must return {n} numbers")
    given = [number(x) for x in value]
    if None in given:
        return invalid(f"height {given.index(None)} is no finite number")
    h = np.array(given, float)
    for wrong, word in ((h < least, f"below {least:g}"), (h > most, f"above {most:g}")):
        if wrong.any():
            return invalid(f"height {int(np.argmax(wrong))} is {h[np.argmax(wrong)]!s}, {word}")
    return h


def read_scaled(value: Any, n: int, least: float = -math.inf) -> np.ndarray | Evaluation:
    """n heights, the largest of them 1 in size, for worlds where the scale does not matter; their sum is not 0.

    Without the scaling, heights of 1e-161 would have a convolution of 0, and heights of 1e161 one that is infinite.
    """
    h = read_heights(value, n, least)
    if isinstance(h, Evaluation):
        return h
    top = float(np.abs(h).max())
    scaled = h / top if top else h
    if math.fsum(scaled) == 0:
        return invalid("the heights sum to 0")
    return scaled


def judge_constant(value: Any, n: int, least: float) -> Evaluation:
    """The verdict on n heights, none below `least`: 2n max|h*h| / (sum h)^2 is to be small."""
    h = read_scaled(value, n, least)
    if isinstance(h, Evaluation):
        return h
    constant = float(2 * n * np.abs(np.convolve(h, h)).max() / math.fsum(h) ** 2)
    return Evaluation(-constant, {"constant": constant})
