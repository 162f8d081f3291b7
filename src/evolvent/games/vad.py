"""VAD-CFR: volatility-adaptive discounted CFR, found by AlphaEvolve; each mechanism can be switched off.

arXiv 2602.16928, listing 5 (t counts from 1; m_t is the largest |r_t| of an information set):

    volatility    e_t = 0.1 m_t + 0.9 e_(t-1), e_1 = m_1;  v_t = min(1, e_t / 2)
    discounts     alpha_t = max(0.1, 1.5 - 0.5 v_t),  beta_t = min(alpha_t, -0.1 - 0.5 v_t),  d(x) = t^x / (t^x + 1)
    boost         b_t = 1.1 r_t where r_t > 0, else r_t
    regrets       R_t = max(-20, d R_(t-1) + b_t), d by alpha_t where R_(t-1) >= 0, else by beta_t
    optimism      o_t = (1 - 0.5 v_t) / (1 + (t - 1) / 100)
    next policy   sigma_(t+1) ~ max(0, d R_t + o_t b_t)^1.5
    average       nothing while t <= 500; then with the weight t^(2 + 1.5 u_t) sqrt(1 + m_t / 2) / (1 + m_t^1.5),
                  u_t = min(1, m_t / 2)

The paper's listing 3, a summary, differs: discounts (t / (t + 1))^x, beta not below alpha, optimism added and not
multiplied, 1 + sqrt(m / 2) in the weight. Listing 5 is the source of what was measured. Its e_t is one number that goes
over all information sets as they come; here each information set has its own, and `shared=True` is one number that goes
over the rows of a player.
"""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from evolvent.games.regret import Memory, Rules

EXPECTED = 2.0  # instantaneous regret at which the volatility is 1
SMOOTHING = 0.1
ALPHA, BETA = 1.5, -0.1
SLOWEST = 100.0  # iterations in which optimism falls to a half


def magnitude(r: np.ndarray) -> np.ndarray:
    """m: the largest |r| of each information set, [rows, 1]."""
    return np.abs(r).max(axis=1, keepdims=True)


def smoothed(m: np.ndarray, t: int, memory: Memory, shared: bool) -> np.ndarray:
    """e_t, [rows, 1]; of one number for all rows the values that it has, one row after the other."""
    if t == 1:
        e = m
    elif shared:
        e = lfilter([SMOOTHING], [1.0, SMOOTHING - 1.0], m[:, 0], zi=[(1.0 - SMOOTHING) * memory["e"]])[0][:, None]
    else:
        e = SMOOTHING * m + (1.0 - SMOOTHING) * memory["e"]
    memory["e"] = float(e[-1, 0]) if shared else e
    return e


def vad_cfr(
    *,
    sensitivity: float = 0.5,
    boost: float = 1.1,
    floor: float = -20.0,
    optimism: float = 1.0,
    power: float = 1.5,
    warmup: int = 500,
    adaptive_weights: bool = True,
    shared: bool = False,
) -> Rules:
    """VAD-CFR as published. Without a mechanism: `sensitivity=0` (fixed discounts), `boost=1`, `floor=-inf`,
    `optimism=0` (the projection has the discount only), `power=1`, `warmup=0`, `adaptive_weights=False` (weight t^2).
    """

    def project(regret: np.ndarray, r: np.ndarray, t: int, memory: Memory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Discounted regrets, boosted r, and v."""
        v = np.minimum(1.0, smoothed(magnitude(r), t, memory, shared) / EXPECTED)
        alpha = np.maximum(0.1, ALPHA - sensitivity * v)
        beta = np.minimum(alpha, BETA - sensitivity * v)
        power_t = float(t) ** np.where(regret >= 0, alpha, beta)
        return regret * power_t / (power_t + 1.0), np.where(r > 0, boost * r, r), v

    def accumulate_regret(regret: np.ndarray, r: np.ndarray, t: int, memory: Memory) -> np.ndarray:
        discounted, boosted, _ = project(regret, r, t, memory)
        return np.maximum(floor, discounted + boosted)

    def policy_from_regret(regret: np.ndarray, r: np.ndarray, sigma: np.ndarray, t: int, memory: Memory) -> np.ndarray:
        discounted, boosted, v = project(regret, r, t, memory)
        strength = optimism / (1.0 + (t - 1) / SLOWEST) * np.maximum(0.0, 1.0 - sensitivity * v)
        return np.maximum(0.0, discounted + strength * boosted) ** power

    def accumulate_policy(
        total: np.ndarray, sigma: np.ndarray, r: np.ndarray, reach: np.ndarray, t: int, memory: Memory
    ) -> np.ndarray:
        if t <= warmup:
            return total
        weight: np.ndarray | float = float(t) ** 2.0
        if adaptive_weights:
            m = magnitude(r)
            gamma = np.minimum(4.0, 2.0 + 1.5 * np.minimum(1.0, m / EXPECTED))
            weight = float(t) ** gamma * np.sqrt(1.0 + m / EXPECTED) / (1.0 + m**1.5)
        return total + weight * reach * sigma

    return Rules(accumulate_regret, policy_from_regret, accumulate_policy)


ABLATIONS = {  # what each mechanism's absence is, as settings
    "volatility": {"sensitivity": 0.0},
    "boost": {"boost": 1.0},
    "floor": {"floor": -np.inf},
    "optimism": {"optimism": 0.0},
    "power": {"power": 1.0},
    "warm start": {"warmup": 0},
    "weights": {"adaptive_weights": False},
}
