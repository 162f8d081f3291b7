"""Digits as they are drawn live: what counts are images that are not where those of the lesson are.

    value     = share of right labels of images moved by a pixel, mean over 3 training seeds: slow, and asked for last
    proxies:    `lesson-0`, the share of right labels of the 500 images that were learned from, which a program can
                raise by learning them by heart; `clean-0`, that of 100 images of the split `train`, not moved

A recipe for a small classifier that is offline at first, and is to do well where it is used: the data, size and seed
program are those of `digits`, and training may take longer. The proxies go with the value, and not all of the way. A
proxy's value is that of the program as long as nothing else is known, and the metric `proxy/lesson-0` for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import UInt8

from evolvent.core.errors import UserError
from evolvent.tasks.evaluation import INSTANCE, Evaluation
from evolvent.tasks.program import World
from evolvent.tasks.worlds.digits import COMPONENTS, GOAL, LEARNED, MOST, SEED, SIZES, images
from evolvent.tasks.worlds.recipe import LABELS, recipe_world

PROXY = "proxy/"  # before the name of a proxy, in the metrics
CLEAN = 100
SECONDS = 2.0  # what is evolved here takes up to 0.45 on a busy machine: who is right does not depend on the load
STEPS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
LIVE = """

What counts are images of users, whose digits are a pixel off in some direction. These are not there to learn from."""


def moved(x: UInt8[np.ndarray, "images 8 8"]) -> UInt8[np.ndarray, "images 8 8"]:
    """Each image a pixel further in one of eight directions, in turn; what leaves is gone, and 0 comes in."""
    found = np.zeros_like(x)
    for i, image in enumerate(x):
        down, right = STEPS[i % len(STEPS)]
        wide = np.pad(image, 1)
        found[i] = wide[1 - down : 9 - down, 1 - right : 9 - right]
    return found


def world(size: str = "") -> World:
    """The world; it has no sizes: `UserError` for one."""
    if size:
        raise UserError(f"digits-live:{size}: this world has no sizes; write program:digits-live")
    x, y = images()
    ends = np.cumsum([LEARNED, *SIZES.values()])
    parts = {split: slice(ends[i], ends[i + 1]) for i, split in enumerate(SIZES)}
    asked = {split: moved(x[part]) for split, part in parts.items()}
    told = {split: y[part].astype(int) for split, part in parts.items()}
    clean = slice(LEARNED, LEARNED + CLEAN)
    asked |= {"lesson": x[:LEARNED], "clean": x[clean]}
    told |= {"lesson": y[:LEARNED].astype(int), "clean": y[clean].astype(int)}
    made = recipe_world(
        "digits-live",
        GOAL.format(seconds=SECONDS) + LIVE,
        SEED,
        COMPONENTS,
        (x[:LEARNED], y[:LEARNED]),
        asked,  # type: ignore[arg-type]
        told,  # type: ignore[arg-type]
        seconds=SECONDS,
        most=MOST,
        mark=LABELS,
    )
    proxies = ("lesson-0", "clean-0")

    def judge(value: Any, names: Sequence[str]) -> Evaluation:
        found = made.judge(value, names)
        if found.value is None or not {*names} & {*proxies}:
            return found
        metrics = {
            f"{PROXY}{name.removeprefix(INSTANCE)}" if name.removeprefix(INSTANCE) in proxies else name: number
            for name, number in found.metrics.items()
            if name != "accuracy"
        }
        return replace(found, metrics=metrics)

    stages = (("train-0",), ("train-1", "train-2"))
    return replace(made, judge=judge, proxies=proxies, stages=stages)
