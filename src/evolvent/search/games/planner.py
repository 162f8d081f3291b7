"""Who plans the next version, without a model: mechanics are drawn from the archive, by what the lineage has learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evolvent.search.games.memory import Memory, Tried, overlap
from evolvent.search.games.plan import Entry, Plan, kept
from evolvent.tasks.worlds.grid_games.differ import mechanics
from evolvent.tasks.worlds.grid_games.language import Game

RELEVANT, EXPLORE = 0.1, 0.1  # of similarity to the game, and for what nobody has used (less for what all use)


def merit(entry: Entry, before: Game, memory: Memory, lineage: str) -> float:
    """How much speaks for an entry: what the lineage expects of it, its relevance, and how little it was used."""
    groups = memory.groups() if memory.archive else {"underexplored": [], "overused": []}
    words = frozenset(w for m in mechanics(before) for w in m.tokens) | frozenset(before.objects)
    use = (entry.name in groups["underexplored"]) - (entry.name in groups["overused"])
    return memory.expected(lineage, entry.words) + RELEVANT * overlap(entry.words, words) + EXPLORE * use


def forbidden(before: Game, memory: Memory, lineage: str) -> set[str]:
    """Names of entries that bring nothing: all of their mechanics are there, they never came to anything in this
    lineage, or did not in this call."""
    have = {*mechanics(before)}
    there = {e.name for e in memory.entries() if e.forms and {*e.forms} <= have}
    now = {n for t in memory.run for n, share in zip(t.names, t.realised, strict=True) if share == 0}
    return there | memory.failures(lineage) | now


def chosen(
    count: int, before: Game, memory: Memory, lineage: str, rng: np.random.Generator, temperature: float, taken: set[str]
) -> list[Entry]:
    """Different entries, each with p ~ exp(merit / temperature) of those that are left."""
    barred = forbidden(before, memory, lineage) | taken
    pool = [e for e in memory.entries() if e.name not in barred]
    merits = np.array([merit(e, before, memory, lineage) for e in pool])
    found: list[Entry] = []
    for _ in range(min(count, len(pool))):
        p = np.exp((merits - merits.max()) / temperature)
        i = int(rng.choice(len(pool), p=p / p.sum()))
        found.append(pool.pop(i))
        merits = np.delete(merits, i)
    return found


def planned(
    before: Game, memory: Memory, lineage: str, rng: np.random.Generator, adds: int, change: float, temperature: float
) -> Plan:
    """The plan of a call: so many entries to add, with probability `change` one rule to change, all else to keep."""
    entries = chosen(adds, before, memory, lineage, rng, temperature, set())
    rules = [str(m) for m, places in mechanics(before).items() if places[0][0] == "rules"]
    changed = (rules[int(rng.integers(len(rules)))],) if rules and rng.random() < change else ()
    return kept(Plan(tuple(entries), changed), before)


def replanned(
    plan: Plan, last: Tried, before: Game, memory: Memory, lineage: str, rng: np.random.Generator, temperature: float
) -> Plan:
    """The plan of a refinement: what came about stays, in the place of what did not there is something else; where all
    came about there is one more."""
    shares = dict(zip(last.names, last.realised, strict=True))
    stay = [e for e in plan.add if shares.get(e.name, 0.0) > 0]
    wanted = max(1, len(plan.add) - len(stay))
    new = chosen(wanted, before, memory, lineage, rng, temperature, {e.name for e in plan.add})
    return kept(Plan((*stay, *new), plan.change, (), plan.drop), before)


def at_random(entries: Sequence[Entry], count: int, rng: np.random.Generator) -> Plan:
    """What is built where nobody has planned: entries by chance. Nothing of it was planned."""
    order = rng.permutation(len(entries))[:count].tolist()
    return Plan(tuple(entries[i] for i in order), planned=False)
