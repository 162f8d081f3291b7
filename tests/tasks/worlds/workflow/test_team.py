"""What is a team and what is not; a team's text is read to the same team."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from evolvent.tasks.worlds.workflow.seeds import POOL, WITHOUT_FAULTS
from evolvent.tasks.worlds.workflow.team import TeamError, read

PARALLEL: dict[str, Any] = json.loads(POOL["parallel"].text())


@pytest.mark.parametrize("name", POOL)
def test_a_text_is_read_to_the_same_team(name: str) -> None:
    assert read(POOL[name].text()) == POOL[name]
    assert read(read(POOL[name].text()).text()) == POOL[name]


def test_nodes_stand_in_an_order_in_which_they_can_run() -> None:
    data = copy.deepcopy(PARALLEL)
    data["nodes"] = dict(reversed(data["nodes"].items()))
    team = read(json.dumps(data))
    assert [sorted(level) for level in team.levels()] == [["planner"], ["even", "odd"], ["solver"]]
    assert team.before("solver") == ["planner", "odd", "even"]
    assert WITHOUT_FAULTS.levels() == [["finder"], ["converter"], ["writer"]]


def changed(path: str, value: Any) -> str:
    data: Any = copy.deepcopy(PARALLEL)
    *way, last = path.split(".")
    place = data
    for key in way:
        place = place[key]
    place[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2", "no JSON"),
        ("[" * 100_000, "longer than|no JSON"),
        ("[]", "the team is not an object"),
        ('{"nodes": {}}', "lacks edges"),
        (changed("nodes", {}), "1 to 10 nodes"),
        (changed("nodes.odd.backbone", "huge"), "backbone 'huge'"),
        (changed("nodes.odd.tools", ["shell"]), "tool 'shell'"),
        (changed("nodes.odd.tools", ["lookup", "lookup"]), "a tool twice"),
        (changed("nodes.odd.code", "import os"), "'code', which means nothing"),
        (changed("nodes.odd.prompt.steps", "find"), "not a list of texts"),
        (changed("nodes.odd.prompt.steps", ["x" * 500]), "longer than 400"),
        (changed("nodes.odd.prompt.steps", ["x"] * 20), "more than 16"),
        (changed("edges", [["planner", "nobody"]]), "not there"),
        (changed("edges", [*PARALLEL["edges"], ["solver", "planner"]]), "circle"),
        (changed("edges", [*PARALLEL["edges"], ["odd", "odd"]]), "circle"),
        (changed("edges", PARALLEL["edges"][1:]), "nothing is handed to odd"),
        (changed("edges", [*PARALLEL["edges"], PARALLEL["edges"][0]]), "twice"),
        (changed("first", []), "`first`"),
        (changed("last", "nobody"), "no such node"),
        (changed("last", None), "not a name"),
    ],
)
def test_what_is_no_team_is_refused(text: str, said: str) -> None:
    with pytest.raises(TeamError, match=said):
        read(text)
