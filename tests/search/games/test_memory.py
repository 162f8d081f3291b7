"""The three layers of memory: what is learned, who sees it, and what is written back."""

from __future__ import annotations

import json

import pytest

from evolvent.core.errors import UserError
from evolvent.search.games.memory import Memory, Tried, begun, overlap
from evolvent.search.games.plan import Entry, entry_of

WORDS = frozenset({"push", "box"})
OTHER = frozenset({"push", "ice"})
FAR = frozenset({"coin"})


def filled() -> Memory:
    memory = Memory()
    memory.learn("a", "push", WORDS, 0.5, failed=False)
    memory.learn("a", "push", WORDS, -1.0, failed=True)
    memory.learn("a", "coin", FAR, 1.0, failed=False)
    memory.learn("b", "push", WORDS, 1.0, failed=True, text="Boxes stick.")
    return memory


def test_values_follow_rewards() -> None:
    memory = filled()
    assert memory.lessons["a"]["push"].value == pytest.approx(0.7 * (0.3 * 0.5) - 0.3)
    assert (memory.lessons["a"]["push"].visits, memory.lessons["a"]["push"].failed) == (2, 1)
    memory.learn("c", "x", FAR, 7.0, failed=False)
    assert memory.lessons["c"]["x"].value == pytest.approx(0.3)  # rewards go from -1 to 1


def test_lineages_do_not_see_each_other() -> None:
    memory = filled()
    assert {x.intent for _, x in memory.retrieve("a", WORDS)} == {"push", "coin"}
    assert [x.text for _, x in memory.retrieve("b", WORDS)] == ["Boxes stick."]
    assert memory.retrieve("c", WORDS) == []
    assert memory.failures("b") == {"push"}
    assert memory.failures("a") == memory.failures("c") == set()
    assert memory.expected("b", WORDS) == pytest.approx(0.3)
    assert memory.expected("c", WORDS) == 0


def test_what_is_expected_is_weighted_by_similarity() -> None:
    memory = filled()
    assert overlap(WORDS, OTHER) == pytest.approx(1 / 3)
    push = memory.lessons["a"]["push"].value
    assert memory.expected("a", OTHER) == pytest.approx(push)  # a coin is nothing like it
    assert memory.expected("a", WORDS | FAR) == pytest.approx((push * 2 / 3 + 0.3 * 1 / 3) / 1)


def test_retrieval_weighs_similarity_and_value() -> None:
    memory = filled()
    memory.recall = 1
    memory.weight = 1.0
    assert memory.retrieve("a", WORDS)[0][1].intent == "coin"
    memory.weight = 0.0
    assert memory.retrieve("a", WORDS)[0][1].intent == "push"


def test_layers_can_be_switched_off() -> None:
    memory = Memory(lineage=False, archive=False, current=False)
    memory.learn("a", "push", WORDS, 1.0, failed=True)
    memory.use(["pit"])
    memory.tried(Tried(("pit",), (0.0,), 0.1))
    assert (memory.lessons, memory.used, memory.run) == ({}, {}, [])
    assert memory.expected("a", WORDS) == 0
    assert memory.write_back([NEW]) == 0
    with pytest.raises(UserError, match="alpha is above 0"):
        Memory(alpha=0).check(None)


NEW = entry_of({
    "name": "new", "rules": [{"on": "turn", "who": "fox", "do": [["step", "away"], ["step", "away"]]}],
    "objects": {"fox": {"symbol": "x", "place": 1}},
})  # fmt: skip


def test_the_archive_takes_up_what_it_has_not() -> None:
    memory = Memory()
    known = next(e for e in begun() if e.name == "pit")
    assert memory.write_back([known, NEW, NEW]) == 1
    assert [e.name for e in memory.entries()][-1] == "new"
    assert memory.entries()[:-1] == list(begun())
    memory.use(["pit", "pit", "pit", "new"])
    groups = memory.groups()
    assert groups["overused"] == ["pit"]
    assert "pit" not in groups["underexplored"]
    assert len(groups["underexplored"]) == len(begun()) - 1


def test_the_run_at_hand_ends_with_the_call() -> None:
    memory = filled()
    memory.tried(Tried(("pit",), (0.0,), 0.1))
    assert len(memory.run) == 1
    memory.begin()
    assert memory.run == []
    assert memory.lessons


def test_a_state_is_plain_and_comes_back() -> None:
    memory = filled()
    memory.write_back([NEW])
    memory.use(["pit"])
    again = Memory()
    again.load_state_dict(json.loads(json.dumps(memory.state_dict())))
    assert again.lessons == memory.lessons
    assert again.used == memory.used
    assert [e.as_dict() for e in again.found] == [e.as_dict() for e in memory.found]
    assert isinstance(again.found[0], Entry)
