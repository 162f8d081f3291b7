"""What a program of the world `adapters` gives back: seeds and sizes, read strictly."""

from __future__ import annotations

import math
from typing import Any

from evolvent.tasks.evaluation import number

Genome = tuple[tuple[int, float], ...]  # (seed, size), each seed once, ascending, no size 0

MOST = 32  # calls of add; the changes of a matrix have at most that rank
SEEDS = 2**32  # seeds go from 0 to below this
LARGEST = 10.0  # |size|: a tenth for each weight, as large as these are; nothing of the model is left there


def read(value: Any) -> Genome | str:
    """A list of [seed, size] as a genome, or what is wrong with it.

    Sizes of equal seeds are added up, exactly, so that the order of a list does not matter.
    """
    if not isinstance(value, list):
        return "there should be a list of [seed, size]"
    if len(value) > MOST:
        return f"add was called {len(value)} times, and {MOST} are allowed"
    sizes: dict[int, list[float]] = {}
    for i, pair in enumerate(value, 1):
        if not isinstance(pair, list) or len(pair) != 2:
            return f"call {i} of add: there should be a seed and a size"
        seed, size = pair[0], number(pair[1])
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < SEEDS:
            return f"call {i} of add: the seed should be a whole number from 0 to {SEEDS - 1}"
        if size is None or abs(size) > LARGEST:
            return f"call {i} of add: the size should be a number from -{LARGEST:g} to {LARGEST:g}"
        sizes.setdefault(seed, []).append(size)
    sums = {seed: math.fsum(found) for seed, found in sizes.items()}
    for seed, size in sums.items():
        if abs(size) > LARGEST:
            return f"the sizes of seed {seed} add up to {size:g}; from -{LARGEST:g} to {LARGEST:g} is allowed"
    return tuple((seed, size) for seed, size in sorted(sums.items()) if size)
