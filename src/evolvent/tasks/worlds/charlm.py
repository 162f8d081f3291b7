"""Characters: a recipe for a tiny language model of program texts, written in NumPy.

    value = - bits per character of a split, mean over 3 training seeds; metrics `bits` and `parameters`

A program trains on 200,000 characters, with two seconds of the processor and at most 20,000 parameters, and then
scores the 96 characters that may follow each of some contexts of 32: 600 that the search sees (`train`), 300 of the
gate, 1,000 of the test. Scores become probabilities here, so that no model can claim more than the whole. All contexts
are from pages that are not learned from, with as much text left out between them, so that none tells what follows one;
those that the lesson or another context has word for word are left out.

The text are the packages that the world `swe` plants faults in, as their authors wrote them, licences in
`swe/repositories/NOTICE.md`: printable ASCII and ends of lines, in the order of the files' names.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8

from evolvent.core.errors import UserError
from evolvent.core.random import stream
from evolvent.tasks.program import World
from evolvent.tasks.worlds.recipe import Mark, recipe_world

GOAL = """Write a recipe for a tiny language model of characters in NumPy: train(text, rng) returns a list of arrays,
predict(weights, contexts) a score for each of the 96 characters that may come next, [n, 96], for each context [n, 32];
softmax makes probabilities of scores. Characters are numbers from 0 to 95: 0 ends a line, 1 to 95 are the printable
characters of ASCII, in order. There are 200,000 characters of Python to learn from, {seconds:g} seconds of the
processor to do so, and at most 20,000 parameters. The value is minus the bits per character on other text. Only NumPy
and the standard library's mathematics may be imported."""

SEED = '''"""A language model of characters: vectors of the last ones, one hidden layer, trained by gradient descent."""

import numpy as np

SYMBOLS = 96


# EVOLVE-BLOCK-START
def shape():
    """How many characters are seen, how long the vector of one is, and how wide the hidden layer."""
    seen = 3
    width = 8
    hidden = 24
    return seen, width, hidden
# EVOLVE-BLOCK-END


# EVOLVE-BLOCK-START
def start(text, rng):
    """The arrays before training: vectors of characters, and a matrix and a vector for each of two layers."""
    seen, width, hidden = shape()
    scale = 0.1
    bias = np.zeros(SYMBOLS)
    vectors = rng.normal(0, 1, (SYMBOLS, width))
    inner = rng.normal(0, scale, (seen * width, hidden))
    outer = rng.normal(0, scale, (hidden, SYMBOLS))
    return [vectors, inner, np.zeros(hidden), outer, bias]
# EVOLVE-BLOCK-END


# EVOLVE-BLOCK-START
def activation(x):
    """What the hidden layer makes of its sums, and the derivative."""
    y = np.tanh(x)
    slope = 1 - y**2
    return y, slope
# EVOLVE-BLOCK-END


# EVOLVE-BLOCK-START
def update(weights, gradient, memory, t):
    """An array of weights after step t, and what is remembered for the next step, an array like it."""
    rate = 0.3
    weights = weights - rate * gradient
    return weights, memory
# EVOLVE-BLOCK-END


# EVOLVE-BLOCK-START
def batches(count, rng):
    """The places, from 0 to `count`, of each training step."""
    size = 64
    steps = 1200
    for step in range(steps):
        places = rng.integers(0, count, size)
        yield places
# EVOLVE-BLOCK-END


def forward(weights, contexts):
    """Scores [n, 96]; what the layers were given; how steep the activation was; and the characters that are seen."""
    vectors, inner, inner_bias, outer, bias = weights
    seen = contexts[:, contexts.shape[1] - len(inner) // vectors.shape[1] :]
    x = vectors[seen].reshape(len(seen), -1)
    y, slope = activation(x @ inner + inner_bias)
    return y @ outer + bias, x, y, slope, seen


def gradients(weights, contexts, following):
    """Of the cross-entropy, mean over the batch."""
    scores, x, y, slope, seen = forward(weights, contexts)
    p = np.exp(scores - scores.max(1, keepdims=True))
    d = p / p.sum(1, keepdims=True)
    d[np.arange(len(d)), following] -= 1
    d /= len(d)
    inside = d @ weights[3].T * slope
    vectors = np.zeros(weights[0].shape)
    np.add.at(vectors, seen, (inside @ weights[1].T).reshape(*seen.shape, -1))
    return [vectors, x.T @ inside, inside.sum(0), y.T @ d, d.sum(0)]


def train(text, rng):
    """The weights."""
    weights = start(text, rng)
    memory = [np.zeros(w.shape) for w in weights]
    seen = shape()[0]
    window = np.arange(seen)
    for t, places in enumerate(batches(len(text) - seen, rng), start=1):
        slopes = gradients(weights, text[places[:, None] + window], text[places + seen])
        for i in range(len(weights)):
            weights[i], memory[i] = update(weights[i], slopes[i], memory[i], t)
    return weights


def predict(weights, contexts):
    """A score for each character after each context."""
    return forward(weights, contexts)[0]
'''

COMPONENTS = (
    "seen = 5",
    "seen = 8",
    "width = 12",
    "hidden = 48",
    "hidden = 96",
    "scale = 1 / np.sqrt(seen * width)",
    "scale = 0.3",
    "bias = np.log(np.bincount(text, minlength=SYMBOLS) + 1.0)",
    "vectors = vectors * 0.3",
    "outer = outer * 0.0",
    "y, slope = np.maximum(x, 0), (x > 0) * 1.0",
    "y, slope = np.where(x > 0, x, 0.1 * x), np.where(x > 0, 1.0, 0.1)",
    "rate = 1.0",
    "rate = 0.1",
    "rate = 0.5 * 0.999**t",
    "rate = 1.0 / (1 + 0.002 * t)",
    "memory = 0.9 * memory + gradient",
    "memory = 0.99 * memory + 0.01 * gradient**2",
    "gradient = gradient / (np.sqrt(memory) + 1e-4)",
    "gradient = 0.9 * memory + gradient",
    "memory = gradient",
    "gradient = np.clip(gradient, -0.05, 0.05)",
    "weights = weights - rate * memory",
    "weights = weights * 0.9999",
    "size = 32",
    "size = 128",
    "steps = 2400",
    "steps = 600",
    "places = np.sort(places)",
)
SYMBOLS, CONTEXT = 96, 32
LEARNED = 200_000
SIZES = {"train": 600, "gate": 300, "test": 1000}
PAGE = 2_000  # characters in a row that belong to the lesson or to one split
SECONDS, MOST = 2.0, 20_000
FOLDER = Path(__file__).parent / "swe" / "repositories"


@cache
def text() -> UInt8[np.ndarray, " characters"]:
    """All of the text: 0 for an end of line, else a printable character of ASCII less 31; others are left out."""
    files = (
        path.read_bytes() for path in sorted(FOLDER.rglob("*.py"), key=lambda path: path.relative_to(FOLDER).parts)
    )
    whole = np.frombuffer(b"\n".join(file.replace(b"\r\n", b"\n") for file in files), np.uint8)
    kept = whole[(whole == ord("\n")) | ((whole >= 32) & (whole < 127))]
    return np.where(kept == ord("\n"), 0, kept - 31).astype(np.uint8)


@cache
def parts() -> tuple[UInt8[np.ndarray, " learned"], dict[str, UInt8[np.ndarray, "asked context_and_next"]]]:
    """The lesson, and for each split its contexts with the character that follows last, [asked, 33]."""
    pages = text()[: len(text()) // PAGE * PAGE].reshape(-1, PAGE)
    rng = stream(0, "charlm")
    pages = pages[rng.permutation(len(pages))]
    lesson, rest = pages[: LEARNED // PAGE].reshape(-1), pages[LEARNED // PAGE :]
    long = CONTEXT + 1
    rows = {row.tobytes(): row for row in rest[:, : PAGE // long * long].reshape(-1, long)[::2]}
    learned = lesson.tobytes()
    pieces = np.stack([row for key, row in rows.items() if key not in learned])
    ends = np.cumsum([0, *SIZES.values()])
    return lesson, {split: pieces[ends[i] : ends[i + 1]] for i, split in enumerate(SIZES)}


def bits(said: Any, following: Int[np.ndarray, " asked"]) -> float | None:
    """Bits per character that followed, by softmax over the scores [asked, 96]; None for what are no such numbers."""
    try:
        scores = np.asarray(said, float)
    except (ValueError, TypeError, OverflowError):
        return None
    if scores.shape != (len(following), SYMBOLS) or not (np.abs(scores) < 1e9).all():
        return None
    scores = scores - scores.max(1, keepdims=True)
    told = scores[np.arange(len(scores)), following] - np.log(np.exp(scores).sum(1))
    return float(-told.mean() / np.log(2))


def world(size: str = "") -> World:
    """The world; it has no sizes: `UserError` for one."""
    if size:
        raise UserError(f"charlm:{size}: this world has no sizes; write program:charlm")
    lesson, asked = parts()
    return recipe_world(
        "charlm",
        GOAL.format(seconds=SECONDS),
        SEED,
        COMPONENTS,
        (lesson,),
        {split: pieces[:, :-1] for split, pieces in asked.items()},  # type: ignore[misc]
        {split: pieces[:, -1].astype(int) for split, pieces in asked.items()},  # type: ignore[misc]
        seconds=SECONDS,
        most=MOST,
        mark=Mark("bits", bits, f"{SYMBOLS} finite numbers for each of {{}} contexts", worth=-1.0),
    )
