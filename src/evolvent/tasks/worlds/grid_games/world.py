"""The world `grid-games`: a collection of lineages of grid games, each begun from a game of ours.

    value = mean over lineages of the number of new working mechanics: those of any later version that
            the seed game does not have, that are no change of a mechanic of the version before, in a version that runs,
            and without which some play of the bot would take another course

A program is a collection: JSON, lineage -> its versions, the oldest first. It is read, not run: what plays is our
interpreter, within limits. Splits differ in levels and in the bot's seed: `train` has the levels that a version comes
with, `gate` and `test` have the same levels with some of the things on them in other places. A lineage has an instance
in each. No part that makes or chooses games sees `test`; nothing here knows the reward that a search steers by.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from evolvent.core.random import stream
from evolvent.core.untrusted import read_json
from evolvent.guard.sandbox import Call
from evolvent.tasks.base import Split
from evolvent.tasks.evaluation import Evaluation, invalid, over_instances
from evolvent.tasks.program import PROGRAM, ProgramTask, World
from evolvent.tasks.worlds.grid_games import check
from evolvent.tasks.worlds.grid_games.bot import Effort, Level, Report, disturbed, play, working
from evolvent.tasks.worlds.grid_games.differ import Mechanic, difference, mechanics
from evolvent.tasks.worlds.grid_games.language import Game, GameError, game_of, read, text_of
from evolvent.tasks.worlds.sized import read_size

HERE = Path(__file__).parent
SPLITS: tuple[Split, ...] = ("train", "gate", "test")
MOVED = 3  # things on a level that are elsewhere in a split whose levels nobody has seen
UNSEEN = 6  # levels of a split whose levels nobody has seen, at least one for each of the game's own
GOAL = (
    "Write versions of small games on a grid, each with mechanics that the ones before it did not have. A game has to "
    "run: nothing goes wrong, and a bot finds a way to win."
)


@cache
def seeds() -> dict[str, str]:
    """Games that lineages begin with, as text, by name."""
    return {name: text_of(data) for name, data in json.loads((HERE / "seeds.json").read_text()).items()}


@cache
def library() -> tuple[dict[str, Any], ...]:
    """Mechanics that a search begins with; some are without use, some are broken, alone or beside others.

    Each has a `name`, `about`, `tags`, and in the game language `objects` (with `place`: how many go on each level),
    `counters`, `rules`, `win` and `lose`. `$solid`, `$item` and `$any` stand for an object of the game, `$3:9` for a
    number of that range, `$way` for a direction.
    """
    return tuple(
        {"objects": {}, "counters": {}, "rules": [], "win": [], "lose": [], **e}
        for e in json.loads((HERE / "mechanics.json").read_text())
    )


def collection(versions: Mapping[str, Sequence[str]]) -> str:
    """Lineages as a text."""
    return json.dumps({name: list(texts) for name, texts in versions.items()}, indent=1) + "\n"


def read_collection(text: str) -> dict[str, list[str]]:
    """The lineages of a text. `GameError` for what is of another form."""
    try:
        found = read_json(text)
    except ValueError as reason:
        raise GameError(f"collection: it is no JSON: {reason}") from None
    if not isinstance(found, dict) or not all(
        isinstance(texts, list) and all(isinstance(t, str) for t in texts) for texts in found.values()
    ):
        raise GameError("collection: this must be an object of lists of texts")
    return found


@lru_cache(maxsize=4096)
def game(text: str) -> Game:
    """The game of a text; `GameError`."""
    return read(text)


def levels_of(text: str, split: Split) -> list[Level]:
    """The levels that a version is played on. `GameError`."""
    own = game(text).levels
    if split == "train":
        return list(own)
    rng = stream(0, "grid-games", split, "levels", text)
    return [disturbed(own[i % len(own)], rng, MOVED) for i in range(max(UNSEEN, len(own)))]


@lru_cache(maxsize=4096)
def checked(text: str) -> tuple[check.Finding, ...]:
    """What the checker finds. `GameError`."""
    return tuple(check.findings(game(text)))


@lru_cache(maxsize=4096)
def played(text: str, split: Split, effort: Effort) -> Report:
    """What the bot says of a version on the levels of a split."""
    try:
        errors = [f.text for f in checked(text) if f.error]
    except GameError as reason:
        errors = [str(reason)]
    if errors:
        return Report(problem="; ".join(errors))
    return play(game(text), levels_of(text, split), stream(0, "grid-games", split, "bot", text), effort)


@lru_cache(maxsize=4096)
def works(text: str, split: Split, effort: Effort) -> tuple[Mechanic, ...]:
    """The mechanics of a version that work on the levels of a split."""
    report = played(text, split, effort)
    return tuple(working(game(text), levels_of(text, split), report)) if report.runs else ()


def new_and_working(texts: Sequence[str], split: Split, effort: Effort) -> list[Mechanic]:
    """The mechanics of a lineage that the seed game does not have, and that work in a version that runs."""
    found: dict[Mechanic, None] = {}
    games: list[Game | None] = []
    for text in texts:
        try:
            games.append(game(text))
        except GameError:  # nobody can read it
            games.append(None)
    if not games or games[0] is None:
        return []
    known, came = {*mechanics(games[0])}, set[Mechanic]()
    before = games[0]
    for text, one in zip(texts[1:], games[1:], strict=True):
        if one is None:
            continue
        came |= {*difference(before, one).new} - known
        known |= {*mechanics(one)}
        found |= dict.fromkeys(m for m in works(text, split, effort) if m in came)
        before = one
    return list(found)


class GridGames(ProgramTask):
    """The world as a task: `names` are the lineages, `effort` is how hard the bot tries."""

    scripted_agent: ClassVar = True  # evidence says so: rules act where a model would

    sandbox: Any = None  # nothing runs

    def __init__(self, names: tuple[str, ...], effort: Effort | None = None) -> None:
        self.names, self.effort = names, effort or Effort()
        super().__init__(
            World(
                name=f"program:grid-games:{len(names)}",
                goal=GOAL,
                seed=collection({name: [seeds()[begun(name)]] for name in names}),
                call=lambda text, names: Call({PROGRAM: text}, "program", "versions"),
                judge=lambda value, names: self.judged(value, names),
                instances={split: tuple(f"{split}/{name}" for name in names) for split in SPLITS},
            )
        )

    def evaluate(self, programs: Sequence[str], names: Sequence[Sequence[str]] | None = None) -> list[Evaluation]:
        """Verdicts on collections, in their order."""
        asked = [self.instances("train") for _ in programs] if names is None else names
        return [self.reading(text, which) for text, which in zip(programs, asked, strict=True)]

    def reading(self, text: str, names: Sequence[str]) -> Evaluation:
        """The verdict on a text."""
        try:
            return self.judged(read_collection(text), names)
        except GameError as reason:
            return invalid(str(reason), "unreadable")

    def judged(self, versions: Mapping[str, Sequence[str]], names: Sequence[str]) -> Evaluation:
        """The mean over instances of new working mechanics; metric `runs`: the share of later versions that run."""
        values, runs = {}, []
        for name in names:
            split, _, lineage = name.partition("/")
            texts = versions.get(lineage, ())
            if texts and texts[0] != seeds()[begun(lineage)]:
                return invalid(f"{lineage} does not begin with its seed game")
            values[name] = float(len(new_and_working(texts, split, self.effort)))  # type: ignore[arg-type]
            runs += [played(text, split, self.effort).runs for text in texts[1:]]
        return over_instances(values, {"runs": float(np.mean(runs))} if runs else {})


def begun(lineage: str) -> str:
    """The seed game that a lineage begins with: `coins-2` is the second lineage from `coins`."""
    return re.sub(r"-\d+$", "", lineage)


def task(size: str = "8") -> GridGames:
    """So many lineages, from the seed games in turn. `UserError` for a number that is not in range."""
    n, names = read_size("grid-games", size, 1, 64, "lineages"), list(seeds())
    again = [f"-{i // len(names) + 1}" * (i >= len(names)) for i in range(n)]
    return GridGames(tuple(names[i % len(names)] + again[i] for i in range(n)))


__all__ = ["GridGames", "collection", "game_of", "library", "read_collection", "seeds", "task"]
