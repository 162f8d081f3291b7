"""Rugged functions of many choices, made from a seed, whose greatest value is known exactly.

    nk      mean of f_i(x_i, x_i+1, ..., x_i+k), each f_i a table of uniform numbers, around a hidden ring of the parts
            (Kauffman and Weinberger, 1989). k = 0 is smooth: each part can be improved by itself.
    stones  blocks of parts, each with one hidden option a part. A block is worth 1 with all of them, and with u of
            `block` of them, u < block,  1/2 (1 - depth u / (block - 1)) + slope / block sum of w_i(x_i),  the sum over
            the other parts and w_i tables of uniform numbers that lead elsewhere: a trap (Deb and Goldberg, 1993),
            whose way up leads through worse values; a plateau where depth and slope are 0.
    noise   a uniform number for each combination: no choice tells anything about another one.

`traits` are further parts that change no value, only how good the simulated model is at changing the program that has
them: metaproductivity, as HGM names it (arXiv 2510.21614).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from evolvent.core.errors import UserError
from evolvent.core.random import identifier, stream

MOST_SUMS = 50_000_000  # in the dynamic programme that finds the best choices
BASE = 0.5  # of a block that has none of its options


@dataclass(frozen=True)
class Terrain:
    """One landscape. Choices are int [parts + traits], from 0 to options - 1; those of the traits come last.

    kind     `nk`, `stones` or `noise`
    parts    that the value depends on
    options  implementations of each part
    k        of `nk`: how many others each part's contribution depends on
    block, depth, slope   of `stones`: parts of a block, how much is lost on the way to its end, what leads elsewhere
    traits   parts that change no value; each has one hidden good option, and the seed program has none of them
    boost    what all good traits together add to the simulated model's skill
    trials   0: the value itself is measured; else the share of so many trials that succeed, each with the value as
             its chance, as in a benchmark of so many tasks
    hint     whether the evaluator names the part (or one of the block) that contributes least
    seed     what it is made from
    """

    kind: Literal["nk", "stones", "noise"] = "nk"
    parts: int = 24
    options: int = 4
    k: int = 2
    block: int = 3
    depth: float = 0.3
    slope: float = 0.25
    traits: int = 0
    boost: float = 0.5
    trials: int = 0
    hint: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """`UserError` for sizes that make no landscape."""
        for name, least, most in (("parts", 1, 200), ("options", 2, 10), ("traits", 0, 20), ("trials", 0, 10_000)):
            if not least <= getattr(self, name) <= most:
                raise UserError(f"landscape: {name} goes from {least} to {most}, got {getattr(self, name)}")
        if not 0 <= self.boost <= 1 or not 0 <= self.depth <= 1:
            raise UserError(f"landscape: boost and depth go from 0 to 1, got {self.boost:g} and {self.depth:g}")
        if not 0 <= self.slope < BASE:  # or a block could be worth more without its options
            raise UserError(f"landscape: slope goes from 0 to below {BASE:g}, got {self.slope:g}")
        if self.kind == "nk" and not 0 <= self.k < self.parts:
            raise UserError(f"landscape: k goes from 0 to parts - 1 = {self.parts - 1}, got {self.k}")
        if self.kind == "nk" and self.parts * self.options ** (2 * self.k + 1) > MOST_SUMS:
            raise UserError(f"landscape: the optimum for k={self.k}, options={self.options} takes too long; lower one")
        if self.kind == "stones" and (self.block < 2 or self.parts % self.block):
            raise UserError(f"landscape: block is at least 2 and divides parts={self.parts}, got {self.block}")

    # --- what is hidden ---

    @cached_property
    def order(self) -> Int[np.ndarray, " parts"]:
        """The parts in the order of the hidden ring, or of the blocks."""
        return stream(self.seed, "terrain", "order").permutation(self.parts)

    @cached_property
    def tables(self) -> Float[np.ndarray, "parts entries"]:
        """Of `nk`: the contribution of each place on the ring to all combinations, the place's own choice first.
        Of `stones`: of each part and option."""
        entries = self.options ** (self.k + 1 if self.kind == "nk" else 1)
        return stream(self.seed, "terrain", "tables").random((self.parts, entries))

    @cached_property
    def first(self) -> Int[np.ndarray, " choices"]:
        """The seed program's choices."""
        rng = stream(self.seed, "terrain", "first")
        return rng.integers(self.options, size=self.parts + self.traits)

    @cached_property
    def targets(self) -> Int[np.ndarray, " choices"]:
        """Of `stones` the options that complete blocks, of traits the good ones; never those of the seed program."""
        shift = stream(self.seed, "terrain", "targets").integers(1, self.options, size=self.parts + self.traits)
        return (self.first + shift) % self.options

    @cached_property
    def _weights(self) -> Int[np.ndarray, "parts parts"]:
        """Choices times this are the entries of `nk`'s tables."""
        made = np.zeros((self.parts, self.parts), np.int64)
        for place in range(self.parts):
            for j in range(self.k + 1):
                made[self.order[(place + j) % self.parts], place] = self.options ** (self.k - j)
        return made

    # --- what can be asked ---

    def contributions(self, choices: Int[np.ndarray, "rows choices"]) -> Float[np.ndarray, "rows shares"]:
        """What the value is the mean of: of each place on the ring, of each block, or the one number of `noise`."""
        own = choices[:, : self.parts]
        if self.kind == "nk":
            return self.tables[np.arange(self.parts), own @ self._weights]
        if self.kind == "noise":
            return np.array([[identifier(self.seed, "noise", *row) / 2**63] for row in own.tolist()])
        hit = (own == self.targets[: self.parts])[:, self.order].reshape(len(own), -1, self.block)
        other = self.tables[np.arange(self.parts), own][:, self.order].reshape(hit.shape)
        u = hit.sum(2)
        way = BASE * (1 - self.depth * u / (self.block - 1)) + self.slope * (other * ~hit).sum(2) / self.block
        return np.where(u == self.block, 1.0, way)

    def values(self, choices: Int[np.ndarray, "rows choices"]) -> Float[np.ndarray, " rows"]:
        """The values, from 0 to 1."""
        return self.contributions(choices).mean(1)

    def value(self, choices: Int[np.ndarray, " choices"]) -> float:
        """Of one row."""
        return float(self.values(choices[None])[0])

    def neighbours(self, choices: Int[np.ndarray, " choices"], part: int) -> Float[np.ndarray, " options"]:
        """The value with each of the options of a part in its place."""
        rows = np.repeat(choices[None], self.options, 0)
        rows[:, part] = np.arange(self.options)
        return self.values(rows)

    def productivity(self, choices: Int[np.ndarray, " choices"]) -> float:
        """What the traits add to the skill with which a program is changed."""
        if not self.traits:
            return 0.0
        return self.boost * float((choices[self.parts :] == self.targets[self.parts :]).mean())

    def weakest(self, choices: Int[np.ndarray, " choices"]) -> int | None:
        """The part whose place contributes least, or the first part of the block that does; None for `noise`."""
        if self.kind == "noise":
            return None
        place = int(np.argmin(self.contributions(choices[None])[0]))
        return int(self.order[place * (self.block if self.kind == "stones" else 1)])

    @cached_property
    def optimum(self) -> tuple[float, Int[np.ndarray, " choices"] | None]:
        """The greatest value and choices that reach it. Of `noise` the bound 1, which nothing has to reach."""
        if self.kind == "noise":
            return 1.0, None
        best = self.targets.copy()
        if self.kind == "nk":
            best[self.order] = self._ring()
        return self.value(best), best

    def _ring(self) -> Int[np.ndarray, " parts"]:
        """The best choices around the ring: max-plus products, with the first k choices held fixed.

        after i places, best[a, b] is the greatest sum of their contributions where the first k choices are a, and the
        choices i, ..., i + k - 1 are b.
        """
        c, states = self.options, self.options**self.k
        best = np.where(np.eye(states, dtype=bool), 0.0, -np.inf)
        back = []
        for table in self.tables:
            # [first, own choice, the k - 1 that follow, the next one]
            sums = best.reshape(states, c, -1, 1) if self.k else best[:, None, :, None]
            sums = sums + table.reshape(1, c, max(states // c, 1), -1)
            back.append(sums.argmax(1).astype(np.uint8).reshape(states, states))
            best = sums.max(1).reshape(states, states)
        first = int(np.argmax(np.diag(best)))
        state, found = first, []
        for pointer in reversed(back):
            own = int(pointer[first, state])
            found.append(own)
            state = own * (states // c) + state // c if self.k else 0
        return np.array(found[::-1])
