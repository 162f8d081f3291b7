"""A character model that was trained for a few seconds: it adds two digits, sometimes, and calls the calculator."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from evolvent.models.pretrain import Entry, Schedule, Shape, pretrain
from evolvent.tasks.arith import Arith
from evolvent.tasks.calc import Calc

ALWAYS = ((0.0, 1.0), (1.0, 1.0))


@cache
def small_model() -> str:
    """The folder of the model; it is made once a test process."""
    folder = Path(tempfile.mkdtemp(prefix="evolvent-small-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    arith, calc = Arith(("1x1",)), Calc(("1x1",))
    mixture = [Entry(t.name, t, t.categories[0], ALWAYS, None) for t in (arith, calc)]
    schedule = Schedule(rate=1e-2, examples=48, tokens=1500, pool=1000)
    pretrain(mixture, Shape(layers=1, width=32, inner=64, heads=2, context=64), 0, 120, folder, schedule=schedule)
    return str(folder)
