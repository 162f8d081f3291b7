"""Digits that are moved by a pixel: what is asked, what a proxy says, and that it is no part of the value."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tasks.worlds.test_digits import NEAREST

from evolvent.core.errors import UserError
from evolvent.tasks.evaluation import pooled
from evolvent.tasks.program import ProgramTask
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds.digits import images
from evolvent.tasks.worlds.digits_live import STEPS, moved, world

TASK = "program:digits-live"


def test_images_are_moved_by_a_pixel() -> None:
    x = images()[0][:16]
    found = moved(x)
    for i, (down, right) in enumerate([*STEPS, *STEPS]):
        rolled = np.roll(x[i], (down, right), (0, 1))
        if down:
            rolled[0 if down > 0 else -1] = 0
        if right:
            rolled[:, 0 if right > 0 else -1] = 0
        assert (found[i] == rolled).all()


@pytest.mark.slow
def test_writers_are_told_the_time_that_the_sandbox_gives(task: ProgramTask) -> None:
    slow = "import numpy as np\ndef train(images, labels, rng):\n    return [sum(1 for _ in iter(int, 1))]\n"
    found = task.evaluate([slow], [("train-0",)])[0]
    assert found.status == "timeout"
    assert "2 s of the processor" in found.feedback
    assert "2 seconds of the processor" in task.world.goal


def test_values_and_proxies_are_what_a_classifier_gets_right(task: ProgramTask) -> None:
    x, y = images()
    lesson = x[:100].reshape(100, -1).astype(int)

    def right(asked: np.ndarray, labels: np.ndarray) -> float:
        rows = asked.reshape(len(asked), -1).astype(int)
        nearest = [int(((lesson - row) ** 2).sum(1).argmin()) for row in rows]
        return float((y[:100][nearest] == labels).mean())

    parts = [("train-1",), ("test-6",), ("lesson-0",), ("clean-0",)]
    live, test, heart, clean = task.evaluate([NEAREST] * 4, parts)
    assert live.value == pytest.approx(right(moved(x[500:900]), y[500:900]))
    assert test.value == pytest.approx(right(moved(x[1100:]), y[1100:]))
    assert heart.value == heart.metrics["proxy/lesson-0"] == pytest.approx(right(x[:500], y[:500]))
    assert clean.value == clean.metrics["proxy/clean-0"] == pytest.approx(right(x[500:600], y[500:600]))
    assert heart.value > clean.value > live.value
    assert not any(name.startswith("instance/") for name in heart.metrics)
    both = pooled(heart, live)
    assert both.value == live.value
    assert pooled(live, clean).value == live.value
    assert both.metrics["proxy/lesson-0"] == heart.value


def test_the_stages_are_all_of_the_value() -> None:
    made = world()
    assert [name for stage in made.stages for name in stage] == list(made.instances["train"])
    assert not {*made.proxies} & {name for names in made.instances.values() for name in names}
    with pytest.raises(UserError, match="no sizes"):
        load_task("program:digits-live:8")
