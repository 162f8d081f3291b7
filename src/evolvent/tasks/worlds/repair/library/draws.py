"""Draws that inputs of the library's functions are made of."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

Draw = Callable[[Random], list[Any]]  # the arguments of one call: JSON data


def ints(rng: Random, most: int = 8, low: int = -9, high: int = 9) -> list[int]:
    """Up to `most` numbers from `low` to `high`."""
    return [rng.randint(low, high) for _ in range(rng.randint(0, most))]


def word(rng: Random, letters: str = "abc", most: int = 10) -> str:
    """Up to `most` letters."""
    return "".join(rng.choice(letters) for _ in range(rng.randint(0, most)))


def grid(rng: Random, rows: int, columns: int, low: int = 0, high: int = 9) -> list[list[int]]:
    """A matrix of numbers."""
    return [[rng.randint(low, high) for _ in range(columns)] for _ in range(rows)]


def spans(rng: Random, most: int = 6, high: int = 20) -> list[list[int]]:
    """Up to `most` pairs [start, end] with start <= end."""
    return [sorted((rng.randint(0, high), rng.randint(0, high))) for _ in range(rng.randint(0, most))]


def graph(rng: Random, nodes: int, share: float = 0.3) -> list[list[int]]:
    """Successors of each node."""
    return [[j for j in range(nodes) if j != i and rng.random() < share] for i in range(nodes)]


def costs(rng: Random, nodes: int, share: float = 0.4) -> list[list[list[int]]]:
    """Edges [to, cost] of each node."""
    return [[[j, rng.randint(1, 9)] for j in nexts] for nexts in graph(rng, nodes, share)]


def acyclic(rng: Random, nodes: int, share: float = 0.35) -> list[list[int]]:
    """Successors of each node, without a cycle."""
    order = rng.sample(range(nodes), nodes)
    found: list[list[int]] = [[] for _ in range(nodes)]
    for i in range(nodes):
        for j in range(i + 1, nodes):
            if rng.random() < share:
                found[order[i]].append(order[j])
    return found
