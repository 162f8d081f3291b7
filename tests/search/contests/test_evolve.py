"""The evolution agent without a model: pieces of parents and of the library, by what failed."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from evolvent.search.contests.evolve import Evolve
from evolvent.tasks.worlds.sql.agents import SEED, Agent, components, constants, read_agent

SEED_AGENT = read_agent(SEED)


def agent(*names: str) -> Agent:
    made = [components()[name] for name in names]
    parts = {**SEED_AGENT.parts, **{c.name: c.code for c in made if c.role == "part"}}
    return Agent("x", (*SEED_AGENT.sentences, *(c.code for c in made if c.role == "sentence")), parts)


def test_an_agent_is_read_as_it_was_written() -> None:
    assert (SEED_AGENT.sentences, [*SEED_AGENT.parts]) == (("Write one query for SQLite.",), ["names"])
    for made in (agent("joins", "declared_keys"), agent(*components())):
        again = read_agent(made.text())
        assert (again.pieces, again.sentences, [*again.parts]) == (made.pieces, made.sentences, [*made.parts])
        assert again.text() == made.text()
        ast.parse(made.text())
    with pytest.raises(ValueError, match="no PARTS"):
        read_agent("PARTS = (other,)\nINSTRUCTIONS = ''\nDESCRIPTION = ''\n")
    assert constants("INSTRUCTIONS = 3\nX = 'y'") == {"DESCRIPTION": "", "INSTRUCTIONS": ""}


def children(
    rule: Evolve, agents: list[Agent], first: Agent | None = None, count: int = 200, **failed: float
) -> list[tuple[Agent, dict[str, int]]]:
    rng = np.random.default_rng(0)
    return [rule._child(agents, first, failed, rng) for _ in range(count)]


def test_pieces_cross_from_other_parents() -> None:
    own, other = agent("joins", "declared_keys"), agent("case", "few_values", "joins")
    made = children(Evolve(take=0.5, changes=1, drop=0), [own, other])
    shares = [
        np.mean([piece in a.pieces for a, _ in made])
        for piece in ("Ignore case where texts are compared.", "few_values")
    ]
    assert all(0.4 < share < 0.65 for share in shares)
    assert all(own.pieces <= a.pieces for a, _ in made)
    whole = children(Evolve(take=1.0, changes=1, drop=0), [own, other], count=20)
    assert all(other.pieces <= a.pieces and counts["crossed"] == 2 for a, counts in whole)
    alone = children(Evolve(take=0.0, changes=1, drop=0), [own, other], count=20)
    assert all(counts["crossed"] == 0 and counts["added"] >= 1 for _, counts in alone)


def test_new_pieces_are_for_what_failed() -> None:
    made = children(Evolve(changes=1, drop=0, both=0.0), [SEED_AGENT], date=3.0)
    added = {(*(a.pieces - SEED_AGENT.pieces),) for a, _ in made}
    serving = {c.name if c.role == "part" else c.code for c in components().values() if "date" in c.serves}
    assert {piece for (piece,) in added} == serving == {
        "sampled_dates", "american_dates", "Read dates as the report says.",
    }  # fmt: skip
    both = children(Evolve(changes=1, drop=0, both=1.0), [SEED_AGENT], date=3.0)
    assert all(counts["added"] == 2 and "Read dates as the report says." in a.sentences for a, counts in both)
    kinds = children(Evolve(changes=1, drop=0, both=0.0), [SEED_AGENT], date=1.0, share=3.0)
    assert 0.65 < np.mean([not (a.pieces & serving) for a, _ in kinds]) < 0.85
    anything = {piece for a, _ in children(Evolve(changes=1, drop=0), [SEED_AGENT], count=600) for piece in a.pieces}
    assert len(anything) == len(components()) + 2


def test_pieces_are_dropped_and_something_is_left() -> None:
    made = children(Evolve(changes=3, drop=1.0), [agent("joins", "declared_keys", "case")])
    assert {counts["added"] for _, counts in made} == {0}
    assert {counts["dropped"] for _, counts in made} >= {1, 2, 3}
    assert all(a.sentences and a.parts for a, _ in made)


def test_a_revision_gives_up_what_it_was_born_with() -> None:
    parent, newborn = agent("joins"), agent("joins", "case", "few_values", "trim")
    made = children(Evolve(drop=0, both=0.0, regret=0.5), [newborn, parent], first=parent, text=1.0)
    born = newborn.pieces - parent.pieces
    kept = np.mean([len(born & a.pieces) / 3 for a, _ in made])
    assert 0.42 < kept < 0.65  # half, and now and then one that comes back
    assert all(parent.pieces <= a.pieces for a, _ in made)
    same = children(Evolve(drop=0, both=0.0, regret=0.0), [newborn, parent], first=parent, count=20, text=1.0)
    assert all(newborn.pieces < a.pieces and len(a.pieces) == len(newborn.pieces) + 1 for a, _ in same)
