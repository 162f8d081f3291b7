"""Figures in per cent, as tables, cards and reports show them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

NOTHING = "not measured"  # there was no answer that could be judged


def share(value: float) -> str:
    """`46.2`."""
    return f"{100 * value:.1f}" if math.isfinite(value) else NOTHING


def clamped(value: float) -> float:
    """What a share can be: nothing below 0 or above 1."""
    return min(max(value, 0.0), 1.0)


def percent(value: Mapping[str, float] | Sequence[float], sign: str = "", unit: str = "") -> str:
    """`46.2 [41.8, 50.6]`: mean, low and high; with `sign` "+" and `unit` " %" as `+4.4 % [+1.2, +7.6]`.

    Without a sign it is a share: what of a t interval is below 0 or above 1 is left out.
    """
    mean, low, high = value.values() if isinstance(value, Mapping) else value
    low, high = (low, high) if sign else (clamped(low), clamped(high))
    if not math.isfinite(mean):
        return NOTHING
    return f"{100 * mean:{sign}.1f}{unit} [{100 * low:{sign}.1f}, {100 * high:{sign}.1f}]"
