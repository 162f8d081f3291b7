"""Islands: groups of members that evolve apart, and now and then exchange some."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.ranges import Count, Share, Whole
from evolvent.core.records import Change
from evolvent.core.step import Step
from evolvent.search.archive import Archive
from evolvent.search.candidate import Candidate, ranked


class Move(NamedTuple):
    """A member of `origin` becomes one of `target`, too; or there only, if it `leaves`."""

    candidate: Candidate
    origin: int
    target: int
    leaves: bool = False


Migration = Callable[[Sequence[Sequence[Candidate]], np.random.Generator], list[Move]]


def ring(islands: Sequence[Sequence[Candidate]], rng: np.random.Generator, *, share: Share = 0.1) -> list[Move]:
    """The best `share` of each island, at least one, goes to both neighbours as well (OpenEvolve).

    Who came by migration does not go on, and counts towards the share; who is there already does not come again. In
    OpenEvolve an island's migrants are chosen when those of the islands before it have arrived, here all at once.
    """
    moves = []
    for i, members in enumerate(islands):
        best = ranked(members)[: max(1, int(len(members) * share))]
        targets = sorted({(i + 1) % len(islands), (i - 1) % len(islands)} - {i})
        moves += [Move(c, i, target) for c in best if c.island == i for target in targets]
    return [m for m in moves if all(m.candidate.payload != c.payload for c in islands[m.target])]


def scatter(islands: Sequence[Sequence[Candidate]], rng: np.random.Generator, *, share: Share = 0.1) -> list[Move]:
    """A random `share` of each island, at least one, moves to a random other one; the best stays, and so does the seed
    program (ShinkaEvolve, arXiv 2509.19349).

    Candidates that are no members do not move here.
    """
    moves, gone = [], set()
    for i, members in enumerate(islands):
        others = [k for k in range(len(islands)) if k != i]
        made = ranked(c for c in members if c.parents)[1:]
        count = max(1, int(len(members) * share)) if others else 0
        for place in rng.permutation(len(made))[:count].tolist():
            if made[place].uid not in gone:
                gone.add(made[place].uid)
                moves.append(Move(made[place], i, others[int(rng.integers(len(others)))], leaves=True))
    return moves


@dataclass
class Islands:
    """Around an archive: its members are those of one island, and the next step has the next island.

    All begin with the seed program. Children belong to the island of their step, which their parents are members of;
    candidates have its number. The archive's rule of admission holds on each island, for migrants too. A migrant is the
    same candidate on another island: it is not evaluated again, and its children are counted once for all islands.

    count      islands; OpenEvolve has 5, ShinkaEvolve 2
    every      there is a migration after so many candidates of each island, on average
    most       members of all islands together, 0 for any number: the worst go, but never the best of an island

    Metrics: `island`, that of the step; `migrants`, how many have arrived after it; `members`, those of all islands.
    """

    inner: Archive
    count: Count = 5
    every: Count = 10
    migration: Migration = ring
    most: Whole = 0
    islands: list[list[Candidate]] = field(default_factory=list, init=False)
    turn: int = field(default=0, init=False)  # steps that islands have had
    made: int = field(default=0, init=False)  # candidates that came of them

    @property
    def current(self) -> int:
        """The island whose turn it is."""
        return self.turn % self.count

    def __call__(self, s: Step) -> list[Change]:
        """Keep what the step has evaluated, on its island, and lay the next island open."""
        archive, before, arrived = self.inner, len(self.inner.history), 0
        changes = archive(s)
        if not any(self.islands):
            self.islands = [list(archive.members) for _ in range(self.count)]
        else:
            s.log("island", self.current)
            archive.history[before:] = [replace(c, island=self.current) for c in archive.history[before:]]
            self.islands[self.current] = [archive.history[c.uid] for c in archive.members]
            self.turn += 1
            made, self.made = self.made, self.made + len(archive.history) - before
            if self.made // (self.count * self.every) > made // (self.count * self.every):
                arrived = self.migrate(s.rng("migration"))
            self._trim()
        archive.members = list(self.islands[self.current])
        s.log("migrants", arrived)
        s.log("members", len({c.uid for island in self.islands for c in island}))
        return changes

    def migrate(self, rng: np.random.Generator) -> int:
        """Carry out the moves, and say how many were admitted. Nobody leaves an island empty."""
        arrived = 0
        for move in self.migration([list(island) for island in self.islands], rng):
            there = self.inner.admit(move.candidate, self.islands[move.target])
            self.islands[move.target] = sorted(there, key=lambda c: c.uid)
            arrived += any(c.uid == move.candidate.uid for c in there)
            rest = [c for c in self.islands[move.origin] if c.uid != move.candidate.uid]
            if move.leaves and rest:
                self.islands[move.origin] = rest
        return arrived

    def _trim(self) -> None:
        """Leave no more than `most` members, counted on each island that they are on."""
        excess = sum(map(len, self.islands)) - self.most
        if self.most and excess > 0:
            others = [(c.merit, i, c.uid) for i, island in enumerate(self.islands) for c in ranked(island)[1:]]
            gone = {(i, uid) for _, i, uid in sorted(others)[:excess]}
            self.islands = [[c for c in island if (i, c.uid) not in gone] for i, island in enumerate(self.islands)]

    def check(self, system: object) -> None:
        """An archive inside, which no other islands are around."""
        if isinstance(self.inner, Islands):
            raise UserError(
                "keep has islands twice: two of the recipes that are composed wrap it in Islands; leave one of them "
                "out, or put its other parts by --set, and set keep.islands.count, .every and .migration"
            )
        if not isinstance(self.inner, Archive):
            raise UserError("islands are groups of an archive's members; put evolvent.search.archive:Archive at keep")

    def state_dict(self) -> dict[str, Any]:
        """Who is on which island, and whose turn it is; the archive inside has a state of its own."""
        return {"islands": [[c.uid for c in island] for island in self.islands], "turn": self.turn, "made": self.made}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state; the archive's history comes first."""
        self.turn, self.made = state["turn"], state["made"]
        self.islands = [[self.inner.history[uid] for uid in island] for island in state["islands"]]
