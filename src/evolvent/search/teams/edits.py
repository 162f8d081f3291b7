"""Edits of a team, each of one component: a prompt, a backbone, the tools of a node, or the topology."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evolvent.tasks.worlds.workflow.library import LIBRARY, METHOD, OUTPUT, SCRIPTED, STEPS
from evolvent.tasks.worlds.workflow.team import BACKBONES, TOOLS, Node, Team, TeamError, check

COMPONENTS = ("prompt", "backbone", "tools", "topology")  # EvoMAS, arXiv 2602.06511
ORDER = list(STEPS.values())
AGAIN = (STEPS["find"], STEPS["read"])  # steps that it makes sense to do twice


@dataclass(frozen=True)
class Edit:
    """component, op    what is done, `OPS` has all
    node              where
    what              the sentence, backbone, tool or other node that it is done with
    """

    component: str
    op: str
    node: str
    what: str = ""

    @property
    def kind(self) -> tuple[str, str, str]:
        """The same edit, whichever node it is made at."""
        return self.component, self.op, self.what if self.component != "topology" or self.op == "after" else ""

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.component} of {self.node}: {self.op} {self.what}".strip()

    def as_list(self) -> list[str]:
        """Plain data, for the record."""
        return [self.component, self.op, self.node, self.what]


def possible(team: Team, name: str, component: str) -> list[Edit]:
    """All edits of a node's component."""
    node = team[name]
    found: list[tuple[str, str]] = []
    match component:
        case "prompt":
            found += [("add", s) for s in STEPS.values() if s not in node.steps or s in AGAIN]
            found += [("add", s) for s in METHOD.values() if s not in node.method]
            found += [("drop", s) for s in dict.fromkeys(node.sentences)]
            found += [("move", s) for s in dict.fromkeys(node.steps) if len(node.steps) > 1]
            found += [("output", s) for s in OUTPUT.values() if s != node.output]
        case "backbone":
            found += [("take", b) for b in BACKBONES if b != node.backbone]
        case "tools":
            found += [("give", t) for t in TOOLS if t not in node.tools] + [("take away", t) for t in node.tools]
        case "topology":
            found += [("hand to", other) for other in team.names if other != name and (name, other) not in team.edges]
            found += [("no longer to", other) for other in team.after(name)]
            found += [("after", s) for s in STEPS.values()]
            found += [("split", ""), ("copy", "")] + ([("remove", "")] if len(team.nodes) > 1 else [])
    return [Edit(component, op, name, what) for op, what in found]


def applied(team: Team, edit: Edit, rng: np.random.Generator) -> Team:
    """The team with an edit. `TeamError` where that makes no team, or changes nothing."""
    if edit.node not in team.names:
        raise TeamError(f"there is no node {edit.node}")
    node = team[edit.node]
    match edit.component, edit.op:
        case "prompt", _:
            made = team.changed(_prompt(node, edit, rng))
        case "backbone", "take":
            made = team.changed(replace(node, backbone=edit.what))
        case "tools", "give":
            made = team.changed(replace(node, tools=(*node.tools, edit.what)))
        case "tools", "take away":
            made = team.changed(replace(node, tools=tuple(t for t in node.tools if t != edit.what)))
        case "topology", _:
            made = _rewired(team, node, edit, rng)
        case _:
            raise TeamError(f"no edit {edit.component}, {edit.op}")
    made = check(made)
    if made == team:
        raise TeamError("nothing is changed")
    return made


def _prompt(node: Node, edit: Edit, rng: np.random.Generator) -> Node:
    what = edit.what
    match edit.op:
        case "add" if what in METHOD.values():
            return replace(node, method=(*node.method, what))
        case "add":
            place = int(rng.integers(len(node.steps) + 1))
            if what in ORDER and rng.random() < 0.7:  # before what comes later on the usual way
                place = next(
                    (i for i, s in enumerate(node.steps) if s in ORDER and ORDER.index(s) > ORDER.index(what)),
                    len(node.steps),
                )
            return replace(node, steps=(*node.steps[:place], what, *node.steps[place:]))
        case "drop":
            return replace(
                node, steps=tuple(s for s in node.steps if s != what), method=tuple(s for s in node.method if s != what)
            )
        case "move" if what in node.steps:
            rest = [s for i, s in enumerate(node.steps) if i != node.steps.index(what)]
            place = int(rng.integers(len(rest) + 1))
            return replace(node, steps=(*rest[:place], what, *rest[place:]))
        case "output":
            return replace(node, output=what)
    raise TeamError(f"no edit of a prompt: {edit.op}")


def _rewired(team: Team, node: Node, edit: Edit, rng: np.random.Generator) -> Team:
    name, edges = node.name, team.edges
    match edit.op:
        case "hand to":
            return replace(team, edges=(*edges, (name, edit.what)))
        case "no longer to":
            return replace(team, edges=tuple(e for e in edges if e != (name, edit.what)))
        case "after":
            return team.followed(name, Node(fresh(team, name), "small", (edit.what,), (), node.output, node.tools))
        case "split":
            if len(node.steps) < 2:
                raise TeamError("there is nothing to split")
            cut = int(rng.integers(1, len(node.steps)))
            second = replace(node, name=fresh(team, name), steps=node.steps[cut:])
            return team.changed(replace(node, steps=node.steps[:cut])).followed(name, second)
        case "copy":
            other = replace(node, name=fresh(team, name))
            new = [(other.name if a == name else a, other.name if b == name else b) for a, b in edges if name in (a, b)]
            first = (*team.first, other.name) if name in team.first else team.first
            return replace(team, nodes=(*team.nodes, other), edges=(*edges, *new), first=first)
        case "remove":
            return team.without(name)
    raise TeamError(f"no edit of a topology: {edit.op}")


def fresh(team: Team, name: str) -> str:
    """A name like another one that no node has."""
    stem = name.rstrip("0123456789-")[:24]
    return next(n for n in (f"{stem}-{i}" for i in range(2, 100)) if n not in team.names)


def cheaper(team: Team, edit: Edit) -> bool:
    """Whether an edit can only make a team cheaper to run."""
    if edit.component == "backbone":
        return SCRIPTED[edit.what].price < SCRIPTED[team[edit.node].backbone].price
    return edit.op in ("drop", "take away", "remove", "no longer to")


def difference(before: Team, after: Team) -> tuple[str, ...]:
    """The components that differ between two teams. Who has other nodes or edges has another topology, and what nodes
    are that are in both of them counts for itself."""
    found = set[str]()
    if set(before.names) != set(after.names) or set(before.edges) != set(after.edges):
        found.add("topology")
    if set(before.first) != set(after.first) or before.last != after.last:
        found.add("topology")
    for node in before.nodes:
        if node.name in after.names:
            other = after[node.name]
            found |= {"backbone"} if node.backbone != other.backbone else set()
            found |= {"tools"} if set(node.tools) != set(other.tools) else set()
            same = (node.steps, node.method, node.output) == (other.steps, other.method, other.output)
            found |= set() if same else {"prompt"}
    return tuple(c for c in COMPONENTS if c in found)


def drawn(items: Sequence[Any], weights: Sequence[float], rng: np.random.Generator) -> Any:
    """One of the items, with probabilities in proportion to the weights; an even draw where all are 0."""
    w = np.array(weights, float)
    p = w / w.sum() if w.sum() > 0 else None
    return items[int(rng.choice(len(items), p=p))]


SENTENCES = [s for part in LIBRARY.values() for s in part.values()]
