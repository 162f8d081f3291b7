"""The statistics of the evidence protocol (docs/protocol.md): paired Student-t, 97.5 % two-sided, verdicts.

By hand because it is what the project exists for; only the t quantile comes from SciPy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

LEVEL = 0.975  # two-sided confidence
Verdict = Literal["holds", "does-not-hold", "inconclusive"]


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def average(values: Sequence[float]) -> float:
    """The mean; nan where there is nothing to take it of."""
    return float(np.mean(values)) if len(values) else math.nan


def t_quantile(level: float, degrees: int) -> float:
    """Two-sided quantile: P(|T| <= t) = level."""
    from scipy.stats import t  # 0.6 s to import, and only the evidence needs it

    return float(t.ppf(0.5 + level / 2, degrees))


def t_interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """Student-t interval of a mean; infinitely wide for fewer than two values, around nan for none."""
    x = np.asarray(values, float)
    mean = float(x.mean()) if len(x) else math.nan
    if len(x) < 2:
        return Interval(mean, -math.inf, math.inf)
    half = t_quantile(level, len(x) - 1) * float(x.std(ddof=1)) / math.sqrt(len(x))
    return Interval(mean, mean - half, mean + half)


def wilson(successes: float, trials: int, level: float = LEVEL) -> Interval:
    """Wilson score interval of a proportion (E. B. Wilson, 1927)."""
    if trials == 0:
        return Interval(math.nan, 0.0, 1.0)
    from scipy.stats import norm

    z = float(norm.ppf(0.5 + level / 2))
    p = successes / trials
    centre = (p + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    return Interval(p, max(0.0, centre - half), min(1.0, centre + half))


def decide(
    differences: Sequence[float], delta: float, kind: Literal["superiority", "non-inferiority", "equivalence"]
) -> tuple[Verdict, Interval]:
    """The protocol's verdict on paired differences (ours minus theirs, signed so that more is better).

    superiority      holds: lower > 0 and mean >= delta; does not hold: upper < delta
    non-inferiority  holds: lower > -delta; does not hold: upper < -delta
    equivalence      holds: the interval lies inside +-delta; does not hold: wholly outside
    """
    interval = t_interval(differences)
    if kind == "superiority":
        holds, fails = interval.low > 0 and interval.mean >= delta, interval.high < delta
    elif kind == "non-inferiority":
        holds, fails = interval.low > -delta, interval.high < -delta
    else:
        holds = interval.low > -delta and interval.high < delta
        fails = interval.low > delta or interval.high < -delta
    return ("holds" if holds else "does-not-hold" if fails else "inconclusive"), interval


def combine(verdicts: Sequence[Verdict]) -> Verdict:
    """A claim holds if every component against every baseline holds, and fails if one fails."""
    if all(v == "holds" for v in verdicts):
        return "holds"
    return "does-not-hold" if "does-not-hold" in verdicts else "inconclusive"


def sign_flip_p(differences: Sequence[float]) -> float:
    """Exact two-sided p of the mean under random signs; all 2^n signs for n <= 16. nan if one of them is."""
    x = np.asarray(differences, float)
    if len(x) == 0 or len(x) > 16:
        raise ValueError(f"the exact test is for 1 to 16 differences, got {len(x)}")
    if np.isnan(x).any():
        return math.nan
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(x))))
    totals = np.abs(signs @ x)
    return float(np.mean(totals >= abs(x.sum()) - 1e-12))


def holm(p: Sequence[float], alpha: float = 0.025) -> list[bool]:
    """Which hypotheses are rejected by Holm's step-down procedure at family-wise level alpha."""
    order = np.argsort(p)
    rejected = [False] * len(p)
    for rank, i in enumerate(order):
        if p[i] > alpha / (len(p) - rank):
            break
        rejected[i] = True
    return rejected


def pass_at(k: int, successes: Sequence[int], trials: int) -> float:
    """Mean over problems of 1 - C(n-c, k) / C(n, k) (Chen et al., arXiv 2107.03374, eq. 1)."""
    return float(np.mean([1 - math.comb(trials - c, k) / math.comb(trials, k) for c in successes]))
