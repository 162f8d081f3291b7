"""Values so large that sums and differences of them would be infinite."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import numpy as np
from jaxtyping import Float

HUGE, LESS = 1e300, 2.0**-100  # from where on values are made smaller, and by what


def moderate(values: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """The values as they are; where one of them is huge all are made smaller, which leaves their order and shares."""
    return values * LESS if np.abs(values[np.isfinite(values)]).max(initial=0.0) > HUGE else values


def mean(values: Sequence[float]) -> float:
    """Of finite values, which is finite."""
    try:
        return fmean(values)
    except OverflowError:
        return sum(x / len(values) for x in values)
