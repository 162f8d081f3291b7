"""A claim about a simulated world: what must hold, and where it must fail, over a grid of the simulator's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from evolvent.core.claim import Claim, Component
from evolvent.core.errors import UserError


@dataclass(frozen=True)
class GridClaim(Claim):
    """A claim that is measured at every point of a grid, since the simulator's settings could have been chosen for it.

    where    settings of all arms: the claim holds at each of these points
    nowhere  settings at which it must not hold, since what it rests on is taken away
    """

    where: tuple[Mapping[str, Any], ...] = ()
    nowhere: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.where or not self.nowhere:
            raise UserError(f"the claim `{self.text}` needs points of the grid where it holds, and where it must fail")

    def at(self, point: Mapping[str, Any]) -> Claim:
        """The claim at one point."""
        plain = {name: getattr(self, name) for name in Claim.__dataclass_fields__}
        return replace(Claim(**plain), common={**self.common, **point})


Points = tuple[Mapping[str, Any], ...]


def grid_claim(
    text: str, *components: Component, task: str, budget: str, where: Points, nowhere: Points, **more: Any
) -> GridClaim:
    """A claim over a grid, with one or more components."""
    return GridClaim(text, components, task, budget, where=where, nowhere=nowhere, **more)
