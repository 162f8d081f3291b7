"""The language model of bytes against a second way to compute it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evolvent.tasks.worlds.curation.model import bits_per_byte


def probability(training: bytes, before: bytes, byte: int) -> float:
    """By the recursion, with plain searching: p(byte | before)."""
    if not before:
        after, lower = list(training), 1 / 256
    else:
        n = len(before)
        after = [training[i + n] for i in range(len(training) - n) if training[i : i + n] == before]
        lower = probability(training, before[1:], byte)
    if not after:
        return lower
    kinds = len(set(after))
    return (after.count(byte) + kinds * lower) / (len(after) + kinds)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_the_model_is_that_of_witten_and_bell(order: int) -> None:
    rng = np.random.default_rng(order)
    training, text = (bytes(rng.choice(list(b"abcd \xc3"), n).tolist()) for n in (300, 60))
    places = range(order - 1, len(text))
    expected = [-math.log2(probability(training, text[i - order + 1 : i], text[i])) for i in places]
    assert bits_per_byte(training, text, order) == pytest.approx(sum(expected) / len(expected), rel=1e-12)


def test_probabilities_sum_to_one() -> None:
    training = b"the cat sat on the mat, the cat ran"
    found = [2 ** -bits_per_byte(training, b"e ca" + bytes([b]), 5) for b in range(256)]
    assert sum(found) == pytest.approx(1.0, rel=1e-9)


def test_what_was_learned_is_cheap() -> None:
    text = b"a b c d e f g h " * 30
    assert bits_per_byte(text, text) < 0.2 < 7 < bits_per_byte(b"0123456789" * 30, text)
