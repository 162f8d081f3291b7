"""Teams that a search begins with, made by hand, each with faults; and one that has none, to compare with."""

from __future__ import annotations

from itertools import pairwise

from evolvent.tasks.worlds.workflow.library import METHOD, OUTPUT, STEPS
from evolvent.tasks.worlds.workflow.team import Node, Team, check


def node(name: str, backbone: str, steps: str, method: str = "", output: str = "all", tools: str = "") -> Node:
    """A node of sentences of the library, by their short names."""
    return Node(
        name,
        backbone,
        tuple(STEPS[s] for s in steps.split()),
        tuple(METHOD[m] for m in method.split()),
        OUTPUT[output],
        tuple(tools.split()),
    )


def chain(*nodes: Node) -> Team:
    """Each hands over to the next one."""
    names = [n.name for n in nodes]
    return check(Team(nodes, tuple(pairwise(names)), (names[0],), names[-1]))


ALONE = chain(
    node("solver", "large", "plan find read convert calculate round", "expert", tools="lookup calculator"),
)
CHAIN = chain(
    node("planner", "small", "plan", "expert"),
    node("finder", "small", "find read", "polite", "needed", "lookup"),
    node("reckoner", "small", "convert calculate", "with-calculator", "needed", "calculator"),
    node("writer", "small", "round", "polite", "answer"),
)
PARALLEL = check(
    Team(
        (
            node("planner", "small", "plan ponder"),
            node("odd", "tiny", "find-odd", "exact", "new", "lookup"),
            node("even", "tiny", "find-even", "exact", "new", "lookup"),
            node("solver", "large", "read convert calculate round", "unit with-calculator", "answer", "calculator"),
        ),
        (("planner", "odd"), ("planner", "even"), ("planner", "solver"), ("odd", "solver"), ("even", "solver")),
        ("planner",),
        "solver",
    )
)
CHECKED = chain(
    node("planner", "small", "plan greet"),
    node("finder", "large", "find check read", "every latest", "needed", "lookup"),
    node("reckoner", "small", "convert calculate", "with-converter", "needed", "converter"),
    node("checker", "small", "again round", "with-calculator", "answer"),
)
POOL = {"chain": CHAIN, "alone": ALONE, "parallel": PARALLEL, "checked": CHECKED}

WITHOUT_FAULTS = chain(
    node("finder", "large", "plan find read find read", "exact unit latest", "needed", "lookup"),
    node("converter", "small", "convert", "with-converter", "needed", "converter"),
    node("writer", "small", "calculate round", "with-calculator", "answer", "calculator"),
)
