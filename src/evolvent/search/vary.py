"""Variation by whoever is there: a model that writes, or else rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evolvent.core.records import Group, Request
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.mutate import Mutate
from evolvent.search.write import Write


@dataclass
class Vary:
    """Roll out: a model `write`s the candidates; with `--model none` rules `mutate` them.

    So a search and its baselines have the same operators, whichever these are.
    """

    write: Any = Write
    mutate: Any = Mutate

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; those without a parent are the seed program."""
        return (self.mutate if isinstance(s.role.policy, AbsentPolicy) else self.write)(requests, s)
