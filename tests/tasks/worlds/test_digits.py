"""The world of digits: its data, what it measures, and that neither answers nor time can be had for nothing."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.tasks.evaluation import Evaluation
from evolvent.tasks.program import ProgramTask
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds.digits import COMPONENTS, SEED, images, world
from evolvent.tasks.worlds.recipe import parameters, right_share

TASK = "program:digits"
# the documented numbers of images of 0 to 9 in the UCI test set
CLASSES = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
TRAIN = "def train(images, labels, rng):\n    return {}\n\n\ndef predict(weights, images):\n    return {}\n"
NEAREST = """import numpy as np


def flat(images):
    return images.reshape(len(images), -1).astype(float)


def train(images, labels, rng):
    x = flat(images)
    return [x[:100], labels[:100]]


def predict(weights, images):
    far = ((flat(images)[:, None] - weights[0][None]) ** 2).sum(-1)
    return weights[1][far.argmin(1)].astype(int)
"""


def one(task: ProgramTask, program: str, name: str = "train-0") -> Evaluation:
    return task.evaluate([program], [(name,)])[0]


def test_the_data_are_the_documented_ones() -> None:
    x, y = images()
    assert x.shape == (1797, 8, 8)
    assert (x.min(), x.max(), x.dtype) == (0, 16, np.uint8)
    assert [Counter(y.tolist())[i] for i in range(10)] == CLASSES
    ordered = sorted(map(bytes, np.concatenate([x.reshape(len(x), -1), y[:, None]], 1)))
    assert (
        hashlib.sha256(b"".join(ordered)).hexdigest()[:16] == "f67d6a29d0e1f70e"
    )  # of scikit-learn's digits.csv, sorted


def test_splits_are_disjoint_and_never_the_lesson() -> None:
    made = world()
    jobs = {split: made.call(SEED, [f"{split}-0"]).arguments[1][0][1] for split in ("train", "gate", "test")}
    lesson = made.call(SEED, ["train-0"]).arguments[0][0]
    parts = [base64.b64decode(part["bytes"]) for part in (lesson, *jobs.values())]
    assert [len(part) // 64 for part in parts] == [500, 400, 200, 697]
    assert b"".join(parts) == images()[0].tobytes()
    names = [name for split in made.instances.values() for name in split]
    assert len(set(names)) == len(names) == 11


def test_a_value_is_what_a_classifier_gets_right(task: ProgramTask) -> None:
    x, y = images()
    flat = x.reshape(len(x), -1).astype(int)
    nearest = [int(((flat[:100] - row) ** 2).sum(1).argmin()) for row in flat]
    right = y[:100][nearest] == y
    for name, part in (("train-2", slice(500, 900)), ("gate-3", slice(900, 1100)), ("test-6", slice(1100, 1797))):
        found = one(task, NEAREST, name)
        assert found.value == pytest.approx(right[part].mean())
        assert found.metrics["parameters"] == 100 * 65
        assert found.metrics[f"instance/{name}"] == found.value


def test_the_seed_program(task: ProgramTask) -> None:
    first, again = task.evaluate([SEED, SEED])
    assert first == again
    assert 0.6 < (first.value or 0) < 0.75
    assert first.metrics["parameters"] == 64 * 8 + 8 + 8 * 10 + 10
    instances = [first.metrics[f"instance/train-{i}"] for i in range(3)]
    assert len(set(instances)) == 3
    assert first.value == pytest.approx(sum(instances) / 3)


@pytest.mark.parametrize(
    ("program", "status", "told"),
    [
        ("import os\n", "refused", "it imports os"),
        (f"{NEAREST}\nkept = {[0.25] * 3000}\n", "refused", "characters, at most 16,000 are allowed"),
        (TRAIN.format("[1]", "[0]"), "invalid", "400 whole numbers"),
        (TRAIN.format("[1]", "[0.5] * 400"), "invalid", "400 whole numbers"),
        (TRAIN.format("1", "[0] * 400"), "raised", "list of arrays"),
        (TRAIN.format("[range(10001)]", "[0] * 400"), "raised", "10001 parameters, at most 10000"),
        (TRAIN.format("[float('nan')]", "[0] * 400"), "raised", "not finite"),
        (TRAIN.format("[1 / 0]", "[0] * 400"), "raised", "program.py:2"),
        (TRAIN.format("[sum(1 for _ in iter(int, 1))]", "[0] * 400"), "timeout", "0.5 s of the processor"),
        ("def train(images, labels, rng):\n    return [1]\n", "raised", "predict"),
    ],
)
def test_what_is_not_valid(task: ProgramTask, program: str, status: str, told: str) -> None:
    found = one(task, program)
    assert (found.value, found.status) == (None, status)
    assert told in found.feedback


def test_nothing_but_the_weights_goes_from_training_to_answers(task: ProgramTask) -> None:
    secret = "seen = []\n\n\n" + TRAIN.format("seen.append(labels) or [1]", "[len(seen)] * 400")
    zeros = task.evaluate([TRAIN.format("[1]", "[0] * 400"), secret], [("train-0",), ("train-1",)])
    assert zeros[0].value == zeros[1].value == pytest.approx((images()[1][500:900] == 0).mean())
    exact = TRAIN.format("[0.1]", "[int(float(weights[0]) == 0.1)] * 400")  # a parameter has 32 bits
    assert one(task, exact).value == zeros[0].value


def test_components_do_something_to_the_seed() -> None:
    for component in COMPONENTS:
        name = component.split()[0].rstrip(",").split("[")[0]
        assert name == "for" or f"    {name}" in SEED or f" {name}," in SEED or f", {name}" in SEED, component


def test_answers_and_weights_are_checked() -> None:
    right = np.array([1, 2, 3])
    assert right_share([1, 2, 4], right) == pytest.approx(2 / 3)
    for wrong in ([1, 2], "123", [True, 2, 3], [1.0, 2, 3], None, [2**40, 1, 1]):
        assert right_share(wrong, right) is None
    assert parameters(base64.b64encode(np.zeros(7, np.float32).tobytes()).decode()) == 7
    nan = base64.b64encode(np.full(1, np.nan, np.float32).tobytes()).decode()
    for text in (nan, "%%", "YWJj", 3):
        assert parameters(text) is None


def test_there_are_no_sizes() -> None:
    with pytest.raises(UserError, match="no sizes"):
        load_task("program:digits:8")
