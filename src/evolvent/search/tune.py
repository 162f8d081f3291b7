"""Numeric optimisation beside changes of a program's structure: its numbers move all at once, and learn how far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evolvent.core.random import identifiers
from evolvent.core.ranges import Positive, Share
from evolvent.core.records import Group, Request, Trajectory
from evolvent.core.step import Step
from evolvent.search.archive import archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.loop import written
from evolvent.search.variation.constants import Constant, constants, moved, with_constants

TRIES = 5  # draws until a text is not the parent's, where numbers are whole and steps small


@dataclass
class Tune:
    """Around a roll-out: a `share` of the requests keeps the text of the parent and moves its numbers, by an evolution
    strategy that adapts its step (Beyer and Schwefel 2002, doi 10.1023/A:1015059928466).

        sigma' = sigma exp(tau N(0, 1)),  tau = 1 / sqrt(2 d),  point = sigma' N(0, I_d)

    d numbers are exposed (`search.variation.constants`, which also says what a point means). A child keeps the sigma
    that it was made with (its note `sigma`), so steps that lead to better programs are inherited with them; others,
    and children of other operators, begin with `sigma`. Who is a parent, and who stays, is up to the search: with the
    best as the parent it is a (1 + lambda)-ES. Programs without numbers are left to the inner roll-out.

    Metrics: `tuned`, the share of the step's requests; `tuned_sigma`, the mean of their steps, where there are any.
    """

    inner: Any
    share: Share = 0.5
    sigma: Positive = 0.3

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """The groups in the order of the requests."""
        archive, rng = archive_of(s.role), s.rng("tune")
        chosen: dict[int, tuple[Candidate, list[Constant]]] = {}
        for place, request in enumerate(requests):
            if rng.random() < self.share and request.uses and not request.resume:
                parent = archive.named(request)[0]
                if found := constants(parent.text):
                    chosen[place] = parent, found
        rest = [request for place, request in enumerate(requests) if place not in chosen]
        others = iter(self.inner(rest, s) if rest else [])
        groups, steps = [], []
        for place, request in enumerate(requests):
            if place not in chosen:
                groups.append(next(others))
                continue
            uids = identifiers(request.n, s.role.seed, *s.path, s.round, place, "tune")
            made = [self._child(uid, request, *chosen[place], s.rng("tune", place, i)) for i, uid in enumerate(uids)]
            steps += [t.info["notes"]["sigma"] for t in made]
            groups.append(Group(request.problem, made))
        s.log("tuned", len(chosen) / max(1, len(requests)))
        if steps:
            s.log("tuned_sigma", float(np.mean(steps)))
        return groups

    def _child(
        self, uid: int, request: Request, parent: Candidate, found: Sequence[Constant], rng: np.random.Generator
    ) -> Trajectory:
        for _ in range(TRIES):
            text, sigma = step(parent.text, found, float(parent.notes.get("sigma", self.sigma)), rng)
            if text != parent.text:
                break
        made = written(uid, request, text, "numbers")
        made.info["notes"] = {"sigma": sigma}
        return made


def step(source: str, found: Sequence[Constant], sigma: float, rng: np.random.Generator) -> tuple[str, float]:
    """The program with its numbers moved once, and the step that it was made with."""
    sigma *= math.exp(rng.normal() / math.sqrt(2 * len(found)))
    return with_constants(source, moved(found, sigma * rng.normal(size=len(found)))), sigma
