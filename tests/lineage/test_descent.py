"""What a search has to show, from its record."""

from __future__ import annotations

from typing import Any

import pytest

from evolvent.core.errors import UserError
from evolvent.lineage.descent import best_of, changed, descent, line_of
from evolvent.lineage.report import render
from evolvent.lineage.runs import RunView


def made(uid: int, value: float | None, parents: list[int], operator: str, text: str) -> dict[str, Any]:
    evaluation = {"value": value, "metrics": {}, "feedback": "", "status": "ok"}
    return {
        "uid": uid, "payload": {"program": text}, "evaluation": evaluation, "parents": parents, "operator": operator,
        "step": uid, "island": 0,
    }  # fmt: skip


def view(*candidates: dict[str, Any]) -> RunView:
    return RunView("one", spec={"recipe": "r", "task": "t", "model": "none", "seed": 0, "budget": "9 steps"},
                   candidates={c["uid"]: c for c in candidates})  # fmt: skip


SEARCH = view(
    made(0, 1.0, [], "seed", "x = 1\ny = 1"),
    made(1, None, [0], "tune", "x = ("),
    made(2, 3.0, [0, 1], "tune", "x = 2\ny = 1"),
    made(3, 2.0, [2], "swap", "y = 1\nx = 2"),
    made(4, 5.0, [2], "tune", "x = 2\ny = <b>7"),
    made(5, 5.0, [4], "swap", "x = 2\ny = 7  # later"),
)


def test_the_way_to_the_best_one() -> None:
    line = descent(SEARCH)
    assert [(c["uid"], c["value"], c["operator"]) for c in line] == [
        (0, 1.0, "seed"),
        (2, 3.0, "tune"),
        (4, 5.0, "tune"),
    ]
    assert best_of(SEARCH)["uid"] == 4  # the first of equals


def test_the_way_to_anybody() -> None:
    assert [c["uid"] for c in line_of(SEARCH, SEARCH.candidates[3])] == [0, 2, 3]
    assert [c["uid"] for c in line_of(SEARCH, SEARCH.candidates[0])] == [0]


def test_what_changed() -> None:
    assert [text for mark, text in changed("x = 1\ny = 1", "x = 2\ny = 1") if mark in "+-"] == ["-x = 1", "+x = 2"]
    assert changed("same", "same") == []
    assert ("-", "--- the users") in changed("-- the users\nselect 1", "select 1")  # what looks like a header is none


def test_nothing_is_valid() -> None:
    nothing = view(made(0, None, [], "seed", "x"))
    assert descent(nothing) == []
    with pytest.raises(UserError, match="has no valid program"):
        best_of(nothing)


def test_the_page_shows_it() -> None:
    page = render(SEARCH)
    assert "Best value 5.0, of the seed program 1.0" in page
    assert "+y = &lt;b&gt;7" in page
    assert "<b>7" not in page


def partly(candidate: dict[str, Any]) -> dict[str, Any]:
    """Evaluated on some instances only."""
    return {**candidate, "evaluation": {**candidate["evaluation"], "complete": False}}


def test_a_search_that_evaluates_nobody_on_everything_has_a_best_one() -> None:
    seen = view(partly(made(0, 0.6, [], "seed", "a")), partly(made(1, 0.3, [0], "combine", "b")))
    assert best_of(seen)["uid"] == 0
    seen.steps = {2: {"roles": {"main": {"chosen": 1.0}}}}  # where the search says who it is
    assert best_of(seen)["uid"] == 1
    assert [c["uid"] for c in descent(seen)] == [0, 1]


def test_who_was_evaluated_in_part_is_best_only_where_nobody_was_wholly() -> None:
    part = partly(made(1, 0.6, [0], "combine", "b"))
    assert best_of(view(made(0, 0.3, [], "seed", "a"), part))["uid"] == 0
    assert best_of(view(made(0, None, [], "seed", "a"), part))["uid"] == 1


def test_who_is_named_and_has_no_value_is_not_the_best() -> None:
    seen = view(made(0, 0.3, [], "seed", "a"), made(1, None, [0], "structure", "b"))
    seen.steps = {2: {"roles": {"main": {"chosen": 1.0}}}}
    assert best_of(seen)["uid"] == 0
