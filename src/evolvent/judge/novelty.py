"""A reward for being unlike the rest of the group, within what was accepted and within what was not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from evolvent.core.records import Group, Trajectory
from evolvent.core.step import Judge, Step
from evolvent.judge.embed import Embed, hashed_ngrams

EQUAL = 1e-6  # a spread of similarities that is rounding


@dataclass
class Novelty:
    """Reward `novelty`: `scale` times the novelty in [0, 1] of what the policy wrote (EVOL-RL, arXiv 2509.15194).

    Accepted are the rows that a vote elected, or else those with full outcome. Rows without an answer get 0 and are
    compared with nobody. `novelty` is also the metric: mean similarity of pairs within a group, from 1.
    """

    inner: Judge
    embed: Embed = hashed_ngrams
    scale: float = 0.5

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Judge, then reward what is unlike."""
        self.inner(groups, s)
        rows = [t for g in groups for t in g.valid if t.info.get("answer") is not None]
        texts = [s.role.policy.format.decode(t.tokens[t.mask]) for t in rows]
        distinct = sorted(set(texts))
        vectors = dict(zip(distinct, unit(self.embed(distinct)), strict=True)) if distinct else {}
        written = {t.uid: text for t, text in zip(rows, texts, strict=True)}
        unlike = []
        for group in groups:
            among = [t for t in group.valid if t.uid in written]
            if among:
                similarity = similarities(np.stack([vectors[written[t.uid]] for t in among]))
                if len(among) > 1:
                    unlike.append(1 - similarity[~np.eye(len(among), dtype=bool)].mean())
                for t, value in zip(among, novelty(similarity, np.array([accepted(t) for t in among])), strict=True):
                    t.reward("novelty", self.scale * float(value), "embedding")
        if unlike:
            s.log("novelty", float(np.mean(unlike)))


def accepted(t: Trajectory) -> bool:
    """Elected by a vote; where there was none, right."""
    return bool(t.info.get("accepted", t.outcome >= 1.0))


def unit(vectors: Float[np.ndarray, "rows dim"]) -> Float[np.ndarray, "rows dim"]:
    """Rows of length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-8)


def similarities(vectors: Float[np.ndarray, "rows dim"]) -> Float[np.ndarray, "rows rows"]:
    """Cosine similarities of unit vectors, clipped to [0, 1]."""
    return np.clip(vectors @ vectors.T, 0.0, 1.0)


def novelty(similarity: Float[np.ndarray, "rows rows"], side: Bool[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
    """1 - (mean similarity to the same side + highest similarity to anyone) / 2, scaled to [0, 1] on each side.

    One that is alone on its side has 1; where all of a side are equally novel they have 1/2.
    """
    others = ~np.eye(len(side), dtype=bool)
    found = np.ones(len(side))
    for members in (np.flatnonzero(side), np.flatnonzero(~side)):
        if len(members) < 2:
            continue
        mean = (similarity[np.ix_(members, members)].sum(1) - similarity[members, members]) / (len(members) - 1)
        highest = np.where(others[members], similarity[members], -np.inf).max(1)
        raw = 1 - (mean + highest) / 2
        span = raw.max() - raw.min()
        found[members] = (raw - raw.min()) / span if span > EQUAL else 0.5
    return found
