"""How the seed models that ship with the package were made: shapes, seeds, steps. `evolvent pretrain` repeats it."""

from __future__ import annotations

import re

from evolvent.core.errors import UserError, nearest
from evolvent.models.pretrain import Shape

SHAPES = {"tiny": Shape(4, 64, 176, 4), "small": Shape(5, 128, 336, 8)}
STEPS = {"tiny": 9_000, "small": 8_000}
WRITTEN = re.compile(r"(\d+)x(\d+)")


def shape_of(text: str) -> Shape:
    """`tiny`, `small`, or LAYERSxWIDTH with the usual proportions: heads of 16, an inner width of 2.75 times."""
    if text in SHAPES:
        return SHAPES[text]
    match = WRITTEN.fullmatch(text)
    if not match:
        raise UserError(f"unknown shape `{text}`{nearest(text, list(SHAPES))} ({', '.join(SHAPES)}, or as in 2x64)")
    layers, width = int(match[1]), int(match[2])
    if not (1 <= layers <= 16 and 16 <= width <= 512 and width % 16 == 0):
        raise UserError(f"shape `{text}`: layers go from 1 to 16, the width from 16 to 512 in steps of 16")
    return Shape(layers, width, round(2.75 * width / 16) * 16, width // 16)


def steps_of(text: str) -> int:
    """Training steps of a shape; other shapes take as many as `tiny`."""
    return STEPS.get(text, STEPS["tiny"])
