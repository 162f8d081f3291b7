"""The three optimizers of agent symbolic learning by rules: what each is offered, and what it does in the loop."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from evolvent.run.assemble import Assembled, assemble
from evolvent.run.spec import RunSpec
from evolvent.search.archive import archive_of
from evolvent.search.symbolic.optimize import offered
from evolvent.search.teams.edits import Edit
from evolvent.tasks.worlds.workflow.diagnose import Fault
from evolvent.tasks.worlds.workflow.seeds import ALONE, CHAIN
from evolvent.tasks.worlds.workflow.team import Node, read

TASK = "program:workflow:questions=4,beta=0"
WITHHELD = Fault("finder", "record", "withheld", (), "This is known here and was not handed over: record.")
NO_TOOL = Fault("finder", "value", "wrong", ("tool",), "Units were converted from memory. It has no converter.")
TOO_LONG = Fault("finder", "fact", "lacking", ("cut",), "Nobody has read the fact. It could not read all of it.")
PLAIN = Fault("finder", "fact", "wrong", (), "A fact is some other number than the one before a unit.")
EDGES = {"topology: hand to planner", "topology: hand to writer", "topology: no longer to reckoner"}  # of the finder


def kinds(edits: list[Edit]) -> set[str]:
    """Component and what is done, without the sentence of a new node."""
    return {f"{e.component}: {e.op} {e.what if e.op != 'after' else ''}".strip() for e in edits}


@pytest.mark.parametrize(
    ("fault", "level", "expected"),
    [
        (WITHHELD, "pipeline", EDGES),
        (TOO_LONG, "pipeline", EDGES),
        (NO_TOOL, "pipeline", set()),
        (PLAIN, "pipeline", set()),
        (WITHHELD, "node", set()),
        (PLAIN, "node", set()),
        (NO_TOOL, "node", {"tools: give converter", "tools: give calculator"}),
        (
            TOO_LONG,
            "node",
            {"backbone: take large", "topology: after", "topology: split", "topology: copy", "topology: remove"},
        ),
    ],
)
def test_what_nodes_and_pipelines_are_offered(fault: Fault, level: str, expected: set[str]) -> None:
    """The finder is small, has the look-up, and hands over to the reckoner; planner, reckoner and writer are others."""
    edits = offered(CHAIN, fault, level)
    assert kinds(edits) == expected
    assert {e.node for e in edits} <= {"finder"}


def test_who_is_alone_is_not_deleted() -> None:
    alone = offered(ALONE, replace(TOO_LONG, node="solver"), "node")
    assert "topology: split" in kinds(alone)
    assert "topology: remove" not in kinds(alone)


def test_prompts_are_offered_sentences_alone() -> None:
    ops = {fault: Counter(e.op for e in offered(CHAIN, fault, "prompt")) for fault in (WITHHELD, TOO_LONG, PLAIN)}
    assert set(ops[WITHHELD]) == {"output"}
    assert ops[TOO_LONG] == {"drop": 3}  # the finder's three sentences: there are too many
    assert set(ops[PLAIN]) == {"add", "move"}
    assert all(e.component == "prompt" for fault in ops for e in offered(CHAIN, fault, "prompt"))


def stepped(fault: Fault, **settings: Any) -> tuple[Assembled, list[str]]:
    """The search after one change of the seed solution, all of whose answers are wrong by this fault."""
    named = {"propose.order": "top_down", **{f"propose.{name}": value for name, value in settings.items()}}
    made = assemble(RunSpec("agent-symbolic-learning", TASK, "none", settings=named))
    made.system.step()
    archive = archive_of(made.main_role)
    first = archive.history[0]
    feedback = "\n".join(f"{name}: a question\n{fault.line}" for name in made.task.instances("train"))
    archive.history[0] = replace(first, evaluation=replace(first.evaluation, feedback=feedback))
    archive.members = [archive.history[0]]
    made.system.step()
    return made, archive.history[1].notes["edits"]


def levels(edits: list[str]) -> list[str]:
    """Which optimizer each edit is of, in order; those of nodes are of tools, backbones, or nodes in the graph."""
    found = []
    for edit in edits:
        component, _, rest = edit.partition(" of finder: ")
        edge = rest.startswith(("hand to", "no longer to"))
        found.append("prompt" if component == "prompt" else "pipeline" if edge else "node")
    return found


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (WITHHELD, ["pipeline", "prompt"]),
        (NO_TOOL, ["node", "prompt"]),
        (TOO_LONG, ["pipeline", "node", "prompt"]),
        (PLAIN, ["prompt"]),
    ],
)
def test_each_optimizer_mends_its_own_faults(fault: Fault, expected: list[str]) -> None:
    made, edits = stepped(fault)
    assert levels(edits) == expected
    team = read(archive_of(made.main_role).history[1].text)
    assert (set(team.edges) == set(CHAIN.edges)) == ("pipeline" not in expected)
    _, alone = stepped(fault, optimizers=("prompt",))
    assert levels(alone) == ["prompt"]
    for level in ("pipeline", "node"):
        _, own = stepped(fault, optimizers=(level,))
        assert levels(own) == [level] * (level in expected)


def test_prompts_alone_leave_nodes_and_edges_as_they_are() -> None:
    """Ten steps: all optimizers in turn change the graph or somebody's tools, the prompt optimizer nothing of these."""

    def frames(**settings: Any) -> set[str]:
        named = {f"propose.{name}": value for name, value in settings.items()}
        made = assemble(RunSpec("agent-symbolic-learning", TASK, "none", settings=named))
        for _ in range(10):
            made.system.step()
        teams = [read(c.text) for c in archive_of(made.main_role).history]
        assert len({t.text() for t in teams}) > 3
        return {repr(([blank(n) for n in t.nodes], sorted(t.edges))) for t in teams}

    def blank(node: Node) -> Node:
        return replace(node, steps=(), method=(), output="")

    assert len(frames()) > 1
    assert len(frames(optimizers=("prompt",))) == 1
