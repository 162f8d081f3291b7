"""Three layers of memory: lessons of one lineage, an archive for all of them, and the run at hand.

    layer 1  lessons of a lineage, which no other one sees:  value' = (1 - alpha) value + alpha reward
    layer 2  the archive of mechanics, with how often each was used, and rules for all games
    layer 3  what the iterations of the call at hand have tried; it ends with the call

arXiv 2604.19926, section 5. Retrieval weighs similarity and learned value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from evolvent.core.errors import UserError
from evolvent.search.games.plan import Entry, entry_of
from evolvent.tasks.worlds.grid_games.differ import Mechanic
from evolvent.tasks.worlds.grid_games.world import library

Words = frozenset[str]
RULES = (
    "A mechanic is a rule that changes what a player does or plans; colours, names and stories are none.",
    "Whatever a rule needs has to be on the levels: its objects, and something that changes its counters.",
    "A level has to stay winnable, and should not be won by chance.",
    "What is added should act upon what is there.",
)


@dataclass
class Lesson:
    """What a lineage has learned of an intent: its learned value, how often it was tried, how often it failed, and a
    text."""

    intent: str
    words: Words
    value: float = 0.0
    visits: int = 0
    failed: int = 0
    text: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "words": sorted(self.words)}


@dataclass(frozen=True)
class Tried:
    """An iteration of the call at hand: what it was to add, what of it came about, its reward, and what was wrong."""

    names: tuple[str, ...]
    realised: tuple[float, ...]
    reward: float
    issues: tuple[str, ...] = ()


def overlap(a: Words, b: Words) -> float:
    """Jaccard index."""
    return len(a & b) / len(a | b) if a or b else 0.0


@dataclass
class Memory:
    """The memory of a search for games.

    lineage  layer 1: whether lessons are kept and read
    archive  layer 2: whether use is counted and what succeeds is written back; without, it stays what it began as
    current  layer 3: whether an iteration knows of those before it
    alpha    how fast a lesson's value follows rewards
    weight   of the learned value in retrieval, beside the similarity
    recall   lessons that are retrieved
    """

    lineage: bool = True
    archive: bool = True
    current: bool = True
    alpha: float = 0.3
    weight: float = 0.5
    recall: int = 4
    lessons: dict[str, dict[str, Lesson]] = field(default_factory=dict, init=False)  # by lineage, by intent
    found: list[Entry] = field(default_factory=list, init=False)  # written back
    used: dict[str, int] = field(default_factory=dict, init=False)  # by the name of an entry
    run: list[Tried] = field(default_factory=list, init=False)

    def check(self, system: object) -> None:
        """Numbers in range: `UserError`."""
        if not 0 < self.alpha <= 1 or not 0 <= self.weight <= 1 or self.recall < 1:
            raise UserError(
                "propose.memory.alpha is above 0 and at most 1, .weight from 0 to 1 and .recall at least 1, "
                f"got {self.alpha}, {self.weight} and {self.recall}"
            )

    # --- layer 1

    def learn(self, lineage: str, intent: str, words: Words, reward: float, failed: bool, text: str = "") -> None:
        """A trial of an intent in a lineage, and what it brought."""
        if not self.lineage:
            return
        mine = self.lessons.setdefault(lineage, {})
        lesson = mine.setdefault(intent, Lesson(intent, words))
        lesson.value = (1 - self.alpha) * lesson.value + self.alpha * max(-1.0, min(1.0, reward))
        lesson.visits += 1
        lesson.failed += failed
        lesson.text = text or lesson.text

    def retrieve(self, lineage: str, words: Words) -> list[tuple[float, Lesson]]:
        """The lineage's lessons that matter most for some words, with their similarity: by similarity and value."""
        if not self.lineage:
            return []
        every = [(overlap(words, x.words), x) for x in self.lessons.get(lineage, {}).values()]
        order = sorted(every, key=lambda pair: -((1 - self.weight) * pair[0] + self.weight * pair[1].value))
        return order[: self.recall]

    def expected(self, lineage: str, words: Words) -> float:
        """What the lineage expects of an intent: the values of retrieved lessons, weighted by their similarity."""
        found = self.retrieve(lineage, words)
        total = sum(similar for similar, _ in found)
        return sum(similar * x.value for similar, x in found) / total if total else 0.0

    def failures(self, lineage: str) -> set[str]:
        """Intents that never came to anything in the lineage."""
        mine = self.lessons.get(lineage, {}) if self.lineage else {}
        return {x.intent for x in mine.values() if x.failed == x.visits}

    # --- layer 2

    def entries(self) -> list[Entry]:
        """All mechanics of the archive."""
        return [*begun(), *self.found]

    def use(self, names: Iterable[str]) -> None:
        """Mechanics were planned."""
        if self.archive:
            for name in names:
                self.used[name] = self.used.get(name, 0) + 1

    def write_back(self, made: Sequence[Entry]) -> int:
        """Take up mechanics that no entry has; how many."""
        before = len(self.found)
        for entry in made if self.archive else ():
            if not {*entry.forms} <= self.forms():
                self.found.append(entry)
        return len(self.found) - before

    def forms(self) -> set[Mechanic]:
        """The mechanics of all entries."""
        return {m for e in self.entries() for m in e.forms}

    def groups(self) -> dict[str, list[str]]:
        """Names of entries that are `underexplored` (never used) and `overused` (twice as often as the mean)."""
        names = [e.name for e in self.entries()]
        mean = sum(self.used.values()) / max(1, len(names))
        return {
            "underexplored": [n for n in names if not self.used.get(n)],
            "overused": [n for n in names if self.used.get(n, 0) > max(1.0, 2 * mean)],
        }

    # --- layer 3

    def begin(self) -> None:
        """A call begins."""
        self.run = []

    def tried(self, what: Tried) -> None:
        """An iteration has ended."""
        if self.current:
            self.run.append(what)

    # --- between runs

    def state_dict(self) -> dict[str, Any]:
        """All that outlasts a call."""
        lessons = {line: [x.as_dict() for x in mine.values()] for line, mine in self.lessons.items()}
        return {"lessons": lessons, "found": [e.as_dict() for e in self.found], "used": dict(self.used)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.lessons = {
            line: {x["intent"]: Lesson(**{**x, "words": frozenset(x["words"])}) for x in mine}
            for line, mine in state["lessons"].items()
        }
        self.found, self.used = [entry_of(e) for e in state["found"]], dict(state["used"])


@cache
def begun() -> tuple[Entry, ...]:
    """The archive as a search begins with it."""
    return tuple(entry_of(e) for e in library())
