"""Digits: a recipe for a small classifier of 8 x 8 images, written in NumPy; it is to be right, and small.

    value = share of right labels, mean over 3 training seeds; metrics `accuracy` (the same) and `parameters`

A program trains on 500 images, with half a second of the processor and at most 10,000 parameters, and labels 400 others
that the search sees (`train`), 200 of the gate or 697 of the test. `predict` gets all of a split at once.

`digits.npz` are the 1,797 images of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, UCI Machine
Learning Repository, 1998, doi 10.24432/C50P49, CC BY 4.0), the rows that scikit-learn ships as `load_digits`, in a
random order: the first 500 are learned from, the next 400, 200 and 697 are the splits. Pixels go from 0 to 16.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from evolvent.core.errors import UserError
from evolvent.tasks.program import World
from evolvent.tasks.worlds.recipe import LABELS, recipe_world

GOAL = """Write a recipe for a small classifier of handwritten digits in NumPy: train(images, labels, rng) returns a
list of arrays, predict(weights, images) a label from 0 to 9 for each image. Images are [n, 8, 8], pixels from 0 to 16.
There are 500 to learn from, {seconds:g} seconds of the processor to do so, and at most 10,000 parameters. The value is
the share of right labels on other images; fewer parameters are better, too. Only NumPy and the standard library's
mathematics may be imported."""

SEED = '''"""A classifier of digits: a network with one hidden layer, trained by gradient descent."""

import numpy as np


# EVOLVE-BLOCK-START
def features(images):
    """What the network sees of images [n, 8, 8]: [n, inputs]."""
    x = images / 16
    return x.reshape(len(x), -1)
# EVOLVE-BLOCK-END


# EVOLVE-BLOCK-START
def start(inputs, classes, rng):
    """The layers before training: a matrix and a vector each."""
    sizes = [inputs, 8, classes]
    layers = []
    for fan, width in zip(sizes[:-1], sizes[1:]):
        scale = 0.1
        layers += [rng.normal(0, scale, (fan, width)), np.zeros(width)]
    return layers
# EVOLVE-BLOCK-END


# EVOLVE-BLOCK-START
def activation(x):
    """What a hidden layer makes of its sums, and the derivative."""
    y = np.maximum(x, 0)
    slope = (x > 0) * 1.0
    return y, slope
# EVOLVE-BLOCK-END


# EVOLVE-BLOCK-START
def update(weights, gradient, memory, t):
    """An array of weights after step t, and what is remembered for the next step, an array like it."""
    rate = 0.2
    weights = weights - rate * gradient
    return weights, memory
# EVOLVE-BLOCK-END


# EVOLVE-BLOCK-START
def batches(images, labels, rng):
    """The images and labels of each training step."""
    size = 32
    for epoch in range(6):
        order = rng.permutation(len(images))
        for i in range(0, len(order), size):
            rows = order[i : i + size]
            batch = images[rows].astype(float)
            yield batch, labels[rows]
# EVOLVE-BLOCK-END


def forward(layers, x):
    """Logits, and what each layer was given and how steep its activation was."""
    seen = []
    for i in range(0, len(layers), 2):
        given = x
        x = x @ layers[i] + layers[i + 1]
        slope = 1.0
        if i + 2 < len(layers):
            x, slope = activation(x)
        seen.append((given, slope))
    return x, seen


def gradients(layers, x, labels):
    """Of the cross-entropy, mean over the batch."""
    logits, seen = forward(layers, x)
    p = np.exp(logits - logits.max(1, keepdims=True))
    d = p / p.sum(1, keepdims=True)
    d[np.arange(len(d)), labels] -= 1
    d /= len(d)
    found = [None] * len(layers)
    for i in range(len(layers) - 2, -1, -2):
        given, slope = seen[i // 2]
        d = d * slope
        found[i], found[i + 1] = given.T @ d, d.sum(0)
        d = d @ layers[i].T
    return found


def train(images, labels, rng):
    """The weights."""
    layers = start(features(images[:2]).shape[1], 10, rng)
    memory = [np.zeros(w.shape) for w in layers]
    for t, (batch, wanted) in enumerate(batches(images, labels, rng), start=1):
        slopes = gradients(layers, features(batch), wanted)
        for i in range(len(layers)):
            layers[i], memory[i] = update(layers[i], slopes[i], memory[i], t)
    return layers


def predict(weights, images):
    """A label for each image."""
    return forward(weights, features(images))[0].argmax(1)
'''

COMPONENTS = (
    "x = x - x.mean()",
    "x = x - 0.3",
    "x = x**0.5",
    "x = x[:, 1:7, 1:7]",
    "x = (x[:, ::2] + x[:, 1::2]) / 2",
    "x = np.concatenate([x, x[:, 1:] - x[:, :-1]], 1)",
    "x = x / np.sqrt((x**2).sum((1, 2), keepdims=True) + 1e-6)",
    "sizes = [inputs, 16, classes]",
    "sizes = [inputs, 12, 12, classes]",
    "sizes = [inputs, classes]",
    "scale = np.sqrt(2 / fan)",
    "scale = 1 / np.sqrt(fan)",
    "y, slope = np.tanh(x), 1 - np.tanh(x) ** 2",
    "y, slope = np.where(x > 0, x, 0.1 * x), np.where(x > 0, 1.0, 0.1)",
    "y, slope = x / (1 + np.exp(-x)), (1 + np.exp(-x) + x * np.exp(-x)) / (1 + np.exp(-x)) ** 2",
    "rate = 0.5",
    "rate = 0.2 / (1 + 0.01 * t)",
    "rate = 0.1 * 0.99**t",
    "memory = 0.9 * memory + gradient",
    "gradient = 0.9 * memory + gradient",
    "memory = gradient",
    "gradient = gradient / (np.sqrt((gradient**2).mean()) + 1e-6)",
    "gradient = np.clip(gradient, -0.1, 0.1)",
    "weights = weights * 0.999",
    "weights = weights - rate * memory",
    "size = 16",
    "batch = batch + rng.normal(0, 1, batch.shape)",
    "batch = np.roll(batch, rng.integers(-1, 2), 1 + rng.integers(2))",
    "batch = batch * rng.uniform(0.8, 1.2, (len(batch), 1, 1))",
    "for epoch in range(20):\n    order = rng.permutation(len(images))",
)
SIZES = {"train": 400, "gate": 200, "test": 697}
LEARNED = 500
SECONDS, MOST = 0.5, 10_000


@cache
def images() -> tuple[np.ndarray, np.ndarray]:
    """All images [1797, 8, 8] and their labels [1797], uint8."""
    with np.load(Path(__file__).with_name("digits.npz")) as data:
        return data["images"], data["labels"]


def world(size: str = "") -> World:
    """The world; it has no sizes: `UserError` for one."""
    if size:
        raise UserError(f"digits:{size}: this world has no sizes; write program:digits")
    x, y = images()
    ends = np.cumsum([LEARNED, *SIZES.values()])
    parts = {split: slice(ends[i], ends[i + 1]) for i, split in enumerate(SIZES)}
    return recipe_world(
        "digits",
        GOAL.format(seconds=SECONDS),
        SEED,
        COMPONENTS,
        (x[:LEARNED], y[:LEARNED]),
        {split: x[part] for split, part in parts.items()},  # type: ignore[misc]
        {split: y[part].astype(int) for split, part in parts.items()},  # type: ignore[misc]
        seconds=SECONDS,
        most=MOST,
        mark=LABELS,
    )
