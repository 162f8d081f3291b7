"""The world of characters: its text, what it measures, and that no probability can be had twice."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.tasks.evaluation import Evaluation
from evolvent.tasks.program import ProgramTask
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds.charlm import COMPONENTS, SEED, bits, parts, text

TASK = "program:charlm"
PROGRAM = (
    "import numpy as np\n\n\ndef train(text, rng):\n    return {}\n\n\ndef predict(weights, contexts):\n    return {}\n"
)
BIGRAMS = PROGRAM.format(
    "[np.log(np.bincount(text[:-1] * 96 + text[1:].astype(int), minlength=9216).reshape(96, 96) + 0.5)]",
    "weights[0][contexts[:, -1]]",
).replace("text[:-1]", "text[:-1].astype(int)")
EVEN = "np.zeros((len(contexts), 96))"


def one(task: ProgramTask, program: str, name: str = "train-0") -> Evaluation:
    return task.evaluate([program], [(name,)])[0]


def readable(codes: np.ndarray) -> str:
    return "".join("\n" if code == 0 else chr(code + 31) for code in codes)


def test_the_text_is_always_the_same() -> None:
    assert hashlib.sha256(text().tobytes()).hexdigest()[:16] == "d85192680600bb24"
    assert int(text().max()) == 95
    assert "def camelize(string" in readable(text())


def test_contexts_are_of_other_pages_and_tell_nothing_of_each_other() -> None:
    lesson, asked = parts()
    assert len(lesson) == 200_000
    assert {split: piece.shape for split, piece in asked.items()} == {
        "train": (600, 33),
        "gate": (300, 33),
        "test": (1000, 33),
    }
    whole, learned = readable(text()), readable(lesson)
    pieces = [readable(piece) for piece in np.concatenate(list(asked.values()))]
    assert all(piece in whole for piece in pieces)
    assert not any(piece in learned for piece in pieces)
    assert len(set(pieces)) == 1900
    once = sorted(whole.index(piece) for piece in pieces if whole.count(piece) == 1)
    assert len(once) > 1600
    assert min(b - a for a, b in pairwise(once)) >= 66


def test_a_value_is_what_a_table_of_pairs_gets(task: ProgramTask) -> None:
    lesson, asked = parts()
    pairs = Counter(zip(lesson[:-1].tolist(), lesson[1:].tolist(), strict=True))
    firsts = Counter(lesson[:-1].tolist())
    for name in ("train-2", "gate-3", "test-6"):
        told = [np.log2((pairs[a, b] + 0.5) / (firsts[a] + 48)) for *_, a, b in asked[name.partition("-")[0]].tolist()]
        found = one(task, BIGRAMS, name)
        assert found.value == pytest.approx(np.mean(told), abs=1e-4)  # weights have 32 bits
        assert found.metrics["bits"] == -(found.value or 0)
        assert found.metrics["parameters"] == 96 * 96


def test_the_seed_program(task: ProgramTask) -> None:
    first, again = task.evaluate([SEED, SEED], [("train-0", "train-1")] * 2)
    assert first == again
    assert -3.8 < (first.value or 0) < -3.4
    assert first.metrics["parameters"] == 96 * 8 + 24 * 24 + 24 + 24 * 96 + 96
    assert first.metrics["instance/train-0"] != first.metrics["instance/train-1"]


def test_a_component_improves_it(task: ProgramTask) -> None:
    assert {"rate = 1.0", "hidden = 96"} <= set(COMPONENTS)
    better = SEED.replace("rate = 0.3", "rate = 1.0").replace("hidden = 24", "hidden = 96")
    assert (one(task, better).value or -9) > (one(task, SEED).value or 0) + 0.15


def test_bits_are_those_of_a_softmax() -> None:
    following = np.array([0, 2])
    scores = np.zeros((2, 96))
    assert bits(scores.tolist(), following) == pytest.approx(np.log2(96))
    scores[0, 0] = np.log(95)  # as much as all others together
    scores[1] += 1e6
    assert bits(scores.tolist(), following) == pytest.approx((1 + np.log2(96)) / 2)
    claimed = np.full((2, 96), 1e3)  # that everything is certain
    assert bits(claimed.tolist(), following) == pytest.approx(np.log2(96))


@pytest.mark.parametrize(
    "said",
    [None, "scores", 3, [[0.0] * 96], [[0.0] * 95] * 2, [[0.0] * 96, [0.0] * 95], [["a"] * 96] * 2, [[{}] * 96] * 2]
    + [[[x] + [0.0] * 95] * 2 for x in (float("nan"), float("inf"), 1e300, 10**400)],
)
def test_what_are_no_scores(said: object) -> None:
    assert bits(said, np.array([0, 2])) is None


@pytest.mark.parametrize(
    ("program", "status", "told"),
    [
        ("import os\n", "refused", "it imports os"),
        (PROGRAM.format("[1]", "[0]"), "invalid", "96 finite numbers for each of 600 contexts"),
        (PROGRAM.format("[1]", f"{EVEN} + np.inf"), "invalid", "96 finite numbers"),
        (PROGRAM.format("[np.zeros(20001)]", EVEN), "raised", "20001 parameters, at most 20000"),
        (PROGRAM.format("[sum(1 for _ in iter(int, 1))]", EVEN), "timeout", "2 s of the processor"),
    ],
)
def test_what_is_not_valid(task: ProgramTask, program: str, status: str, told: str) -> None:
    found = one(task, program)
    assert (found.value, found.status) == (None, status)
    assert told in found.feedback


CARRIED = """import collections
import numpy as np

sys = collections._sys
L = sys.modules["learning"]
L.apart = lambda work, seconds: work()
kept = []


def train(text, rng):
    kept.append(np.bincount(text, minlength=96))
    {}
    return [np.zeros(1)]


def predict(weights, contexts):
    {}
    return np.log(kept[0] + 1.0)[None] * np.ones((len(contexts), 1))
"""


def unread(task: ProgramTask, program: str) -> Evaluation:
    """The verdict on a program that has been let through unread."""
    call = task.world.call(SEED, ("train-0",))
    (outcome,) = task.sandbox.run([replace(call, files={**call.files, "program.py": program})], task.world.limits)
    return task.world.judge(outcome.value, ("train-0",))


def test_nothing_but_weights_goes_on_even_where_a_program_reaches_the_interpreter(task: ProgramTask) -> None:
    assert one(task, CARRIED.format("", "")).status == "refused"
    found = unread(task, CARRIED.format("", ""))
    assert (found.value, found.status) == (None, "raised")
    assert "IndexError" in found.feedback  # what was kept in training is not there
    written = CARRIED.format(
        "open('kept', 'w').write('x' * 9)", "kept.append(np.ones(96) * float(len(open('kept').read())))"
    )
    assert unread(task, written).value == pytest.approx(-np.log2(96))  # the file is empty
    slow = CARRIED.format("signal.setitimer(2, 0)\n    while time.process_time() < 3:\n        pass", "")
    found = unread(task, slow.replace("import collections\n", "import collections, signal, time\n"))
    assert (found.value, found.status) == (None, "timeout")


def test_components_are_statements_of_names_in_the_seed() -> None:
    for component in COMPONENTS:
        (statement,) = ast.parse(component).body
        assert isinstance(statement, ast.Assign)
        names = [n.id for n in ast.walk(statement) if isinstance(n, ast.Name)]
        assert all(f" {name}" in SEED or f"({name}" in SEED for name in names), component


def test_there_are_no_sizes() -> None:
    with pytest.raises(UserError, match="no sizes"):
        load_task("program:charlm:8")
