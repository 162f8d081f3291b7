"""Variants of CFR that people wrote, as rules of `regret`; each equal to OpenSpiel's where that has it.

All have sigma_(t+1) ~ max(R, 0) but the predictive ones, and S_t = S_(t-1) + weight_t reach_t sigma_t.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evolvent.games.regret import Memory, Rules


def plain(regret: np.ndarray, r: np.ndarray, t: int, memory: Memory) -> np.ndarray:
    """R + r."""
    return regret + r


def floored(regret: np.ndarray, r: np.ndarray, t: int, memory: Memory) -> np.ndarray:
    """max(R + r, 0)."""
    return np.maximum(regret + r, 0.0)


def matching(regret: np.ndarray, r: np.ndarray, sigma: np.ndarray, t: int, memory: Memory) -> np.ndarray:
    """R."""
    return regret


def averaging(gamma: float) -> Callable[..., np.ndarray]:
    """S + t^gamma reach sigma."""

    def accumulate(
        total: np.ndarray, sigma: np.ndarray, r: np.ndarray, reach: np.ndarray, t: int, memory: Memory
    ) -> np.ndarray:
        return total + float(t) ** gamma * reach * sigma

    return accumulate


def fraction(t: float, power: float) -> float:
    """t^power / (t^power + 1)."""
    return t**power / (t**power + 1.0)


def cfr() -> Rules:
    """Counterfactual regret minimisation (Zinkevich et al., 2007)."""
    return Rules(plain, matching, averaging(0.0))


def cfr_plus() -> Rules:
    """CFR+: regrets are floored at 0, policies averaged linearly (Tammelin, arXiv 1407.5042)."""
    return Rules(floored, matching, averaging(1.0))


def dcfr(*, alpha: float = 1.5, beta: float = 0.0, gamma: float = 2.0) -> Rules:
    """Discounted CFR: after iteration t positive regrets times t^alpha / (t^alpha + 1), others with beta; weights
    t^gamma (Brown and Sandholm, arXiv 1809.04040)."""

    def accumulate(regret: np.ndarray, r: np.ndarray, t: int, memory: Memory) -> np.ndarray:
        regret = regret + r
        return regret * np.where(regret >= 0, fraction(t, alpha), fraction(t, beta))

    return Rules(accumulate, matching, averaging(gamma))


def linear_cfr() -> Rules:
    """Linear CFR: everything of iteration t has the weight t; DCFR(1, 1, 1)."""
    return dcfr(alpha=1.0, beta=1.0, gamma=1.0)


def predictive_cfr_plus(*, gamma: float = 2.0) -> Rules:
    """Predictive CFR+: sigma_(t+1) ~ max(R_t + r_t, 0), the last regrets being the prediction (Farina et al., arXiv
    2007.14358)."""

    def predict(regret: np.ndarray, r: np.ndarray, sigma: np.ndarray, t: int, memory: Memory) -> np.ndarray:
        return regret + r

    return Rules(floored, predict, averaging(gamma))


def discounted_predictive_cfr_plus(*, alpha: float = 2.3, gamma: float = 5.0) -> Rules:
    """Discounted predictive CFR+: R_t = max(d_(t-1) R + r, 0), sigma_(t+1) ~ max(d_t R_t + r_t, 0), d_t = t^alpha /
    (t^alpha + 1) (Xu et al., arXiv 2404.13891)."""

    def accumulate(regret: np.ndarray, r: np.ndarray, t: int, memory: Memory) -> np.ndarray:
        return np.maximum(regret * fraction(t - 1, alpha) + r, 0.0)

    def predict(regret: np.ndarray, r: np.ndarray, sigma: np.ndarray, t: int, memory: Memory) -> np.ndarray:
        return regret * fraction(t, alpha) + r

    return Rules(accumulate, predict, averaging(gamma))
