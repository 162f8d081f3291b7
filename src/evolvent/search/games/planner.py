"""Plans without a model: mechanics are drawn from the archive, by what the lineage has learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from evolvent.search.games.memory import Memory, Tried, overlap
from evolvent.search.games.plan import Entry, Plan, kept
from evolvent.tasks.worlds.grid_games.differ import Mechanic, mechanics
from evolvent.tasks.worlds.grid_games.language import Game

RELEVANT, EXPLORE = 0.1, 0.1  # of similarity to the game, and for what nobody has used (less for what all use)


def merits(entries: Sequence[Entry], before: Game, memory: Memory, lineage: str) -> Float[np.ndarray, " entries"]:
    """How much speaks for each entry: what the lineage expects of it, its relevance, and how little it was used."""
    groups, words = memory.groups(), words_of(before)
    rare, often = {*groups["underexplored"]}, {*groups["overused"]}
    return np.array([
        memory.expected(lineage, e.words)
        + RELEVANT * overlap(e.words, words)
        + EXPLORE * ((e.name in rare) - (e.name in often))
        for e in entries
    ])  # fmt: skip


def words_of(game: Game) -> frozenset[str]:
    """What entries are compared with a game by."""
    return frozenset(w for m in mechanics(game) for w in m.tokens) | frozenset(game.objects)


def forbidden(known: set[Mechanic], memory: Memory, lineage: str) -> set[str]:
    """Names of entries that bring nothing: the lineage has had all of their mechanics, they never came to anything in
    it, or did not in this call."""
    there = {e.name for e in memory.entries() if e.forms and {*e.forms} <= known}
    now = {n for t in memory.run for n, share in zip(t.names, t.realised, strict=True) if share == 0}
    return there | memory.failures(lineage) | now


def chosen(
    count: int,
    before: Game,
    known: set[Mechanic],
    memory: Memory,
    lineage: str,
    rng: np.random.Generator,
    temperature: float,
    taken: set[str],
) -> list[Entry]:
    """Different entries, each with p ~ exp(merit / temperature) of those that are left."""
    barred = forbidden(known, memory, lineage) | taken
    pool = [e for e in memory.entries() if e.name not in barred]
    each = merits(pool, before, memory, lineage)
    found: list[Entry] = []
    for _ in range(min(count, len(pool))):
        p = np.exp((each - each.max()) / temperature)
        i = int(rng.choice(len(pool), p=p / p.sum()))
        found.append(pool.pop(i))
        each = np.delete(each, i)
    return found


def planned(
    before: Game,
    known: set[Mechanic],
    memory: Memory,
    lineage: str,
    rng: np.random.Generator,
    adds: int,
    change: float,
    temperature: float,
) -> Plan:
    """The plan of a call: so many entries to add, with probability `change` one rule to change, all else to keep."""
    entries = chosen(adds, before, known, memory, lineage, rng, temperature, set())
    rules = [str(m) for m, places in mechanics(before).items() if places[0][0] == "rules"]
    changed = (rules[int(rng.integers(len(rules)))],) if rules and rng.random() < change else ()
    return kept(Plan(tuple(entries), changed), before)


def replanned(
    plan: Plan,
    last: Tried,
    before: Game,
    known: set[Mechanic],
    memory: Memory,
    lineage: str,
    rng: np.random.Generator,
    temperature: float,
) -> Plan:
    """The plan of a refinement: what came about stays, in the place of what did not there is something else; where all
    came about there is one more."""
    shares = dict(zip(last.names, last.realised, strict=True))
    stay = [e for e in plan.add if shares.get(e.name, 0.0) > 0]
    wanted = max(1, len(plan.add) - len(stay))
    new = chosen(wanted, before, known, memory, lineage, rng, temperature, {e.name for e in plan.add})
    return kept(Plan((*stay, *new), plan.change, (), plan.drop), before)


def at_random(entries: Sequence[Entry], count: int, rng: np.random.Generator) -> Plan:
    """What is built where nobody has planned: entries by chance. Nothing of it was planned."""
    order = rng.permutation(len(entries))[:count].tolist()
    return Plan(tuple(entries[i] for i in order), planned=False)
