"""The genome: a directed acyclic graph of agents, as JSON. Whatever can be read here can be executed.

    {"nodes": {"finder": {"backbone": "small", "tools": ["lookup"],
                          "prompt": {"steps": ["..."], "method": ["..."], "output": "..."}}, ...},
     "edges": [["finder", "writer"], ...], "first": ["finder"], "last": "writer"}

`first` get the question, everybody gets what the nodes before them hand over, `last` gives the answer. C = (G, {A_i},
v_in, v_out) with A_i = (backbone, prompt, tools), as in EvoMAS (arXiv 2602.06511).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

from evolvent.core.untrusted import read_json

BACKBONES = ("tiny", "small", "large")
TOOLS = ("lookup", "converter", "calculator")
NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}")
MOST_NODES, MOST_SENTENCES, LONGEST, LONGEST_TEXT = 10, 16, 400, 40_000
COMPONENTS = ("steps", "method", "output")  # of a prompt


class TeamError(ValueError):
    """A text that is no team, with what is wrong."""


@dataclass(frozen=True)
class Node:
    """An agent. `steps` is what it does, in this order, `method` how, `output` what it hands over."""

    name: str
    backbone: str = "small"
    steps: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    output: str = ""
    tools: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """What its prompt says, in order."""
        return (*self.steps, *self.method)

    @property
    def prompt(self) -> str:
        """All of it as a text."""
        return "\n".join([*(f"{i}. {s}" for i, s in enumerate(self.steps, 1)), *self.method, self.output]).strip()


@dataclass(frozen=True)
class Team:
    """Nodes in an order in which they can be run, edges in the order in which they are read."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    first: tuple[str, ...]
    last: str

    def __getitem__(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the nodes."""
        return tuple(node.name for node in self.nodes)

    def before(self, name: str) -> list[str]:
        """Who hands over to a node."""
        return [a for a, b in self.edges if b == name]

    def after(self, name: str) -> list[str]:
        """Whom a node hands over to."""
        return [b for a, b in self.edges if a == name]

    def changed(self, node: Node) -> Team:
        """With another node of the same name."""
        return replace(self, nodes=tuple(node if n.name == node.name else n for n in self.nodes))

    def without(self, name: str) -> Team:
        """Without a node; those before it hand over to those after it."""
        around = [(a, b) for a in self.before(name) for b in self.after(name)]
        kept = tuple(e for e in self.edges if name not in e)
        first = tuple(dict.fromkeys(f for n in self.first for f in (self.after(name) if n == name else [n])))
        last = self.last if self.last != name else (self.before(name) or [""])[-1]
        nodes = tuple(n for n in self.nodes if n.name != name)
        return Team(nodes, (*kept, *(e for e in around if e not in kept)), first, last)

    def followed(self, name: str, node: Node) -> Team:
        """With a new node between a node and those after it."""
        edges = tuple((node.name if a == name else a, b) for a, b in self.edges)
        last = node.name if self.last == name else self.last
        return Team((*self.nodes, node), (*edges, (name, node.name)), self.first, last)

    def levels(self) -> list[list[str]]:
        """Nodes that can run at once, the first ones first."""
        depth: dict[str, int] = {}
        for name in self.names:
            depth[name] = 1 + max((depth[b] for b in self.before(name)), default=-1)
        return [[n for n in self.names if depth[n] == level] for level in range(max(depth.values()) + 1)]

    def text(self) -> str:
        """As JSON; the same team has the same text."""
        nodes = {
            n.name: {
                "backbone": n.backbone,
                "tools": list(n.tools),
                "prompt": {"steps": list(n.steps), "method": list(n.method), "output": n.output},
            }
            for n in self.nodes
        }
        edges = [list(edge) for edge in self.edges]
        return json.dumps({"nodes": nodes, "edges": edges, "first": list(self.first), "last": self.last}, indent=1)


def check(team: Team) -> Team:
    """The team, its nodes in order. `TeamError` for one that cannot be executed: unknown names, a cycle, nobody to
    begin, a node that nothing is handed to, too much of anything."""
    names = team.names
    if not 1 <= len(names) <= MOST_NODES:
        raise TeamError(f"a team has 1 to {MOST_NODES} nodes, not {len(names)}")
    if len(set(names)) < len(names):
        raise TeamError("two nodes have the same name")
    for node in team.nodes:
        _check_node(node)
    for a, b in team.edges:
        if a not in names or b not in names:
            raise TeamError(f"the edge {a} -> {b} names a node that is not there")
    if len(set(team.edges)) < len(team.edges):
        raise TeamError("an edge is there twice")
    if not team.first or len(set(team.first)) < len(team.first) or not set(team.first) <= set(names):
        raise TeamError("`first` names the nodes that get the question, each once")
    if team.last not in names:
        raise TeamError(f"`last` is {team.last!r}, and there is no such node")
    reached = {b for _, b in team.edges} | set(team.first)
    if lonely := [n for n in names if n not in reached]:
        raise TeamError(f"nothing is handed to {lonely[0]}; give it an edge, or name it in `first`")
    try:
        order = list(TopologicalSorter({n: team.before(n) for n in names}).static_order())
    except CycleError as reason:
        raise TeamError(f"the edges go round in a circle: {' -> '.join(reason.args[1])}") from None
    depth: dict[str, int] = {}
    for name in order:
        depth[name] = 1 + max((depth[b] for b in team.before(name)), default=-1)
    nodes = sorted(team.nodes, key=lambda n: (depth[n.name], names.index(n.name)))
    return replace(team, nodes=tuple(nodes))


def _check_node(node: Node) -> None:
    if not NAME.fullmatch(node.name):
        raise TeamError(f"{node.name!r:.40} is no name of a node; take small letters and digits")
    if node.backbone not in BACKBONES:
        raise TeamError(f"{node.name} has the backbone {node.backbone!r:.40}; there are {', '.join(BACKBONES)}")
    for tool in node.tools:
        if tool not in TOOLS:
            raise TeamError(f"{node.name} has the tool {tool!r:.40}; there are {', '.join(TOOLS)}")
    if len(set(node.tools)) < len(node.tools):
        raise TeamError(f"{node.name} has a tool twice")
    if len(node.sentences) > MOST_SENTENCES:
        raise TeamError(f"the prompt of {node.name} has more than {MOST_SENTENCES} sentences")
    if any(not s.strip() or len(s) > LONGEST for s in node.sentences) or len(node.output) > LONGEST:
        raise TeamError(f"a sentence of {node.name} is empty, or longer than {LONGEST} characters")


@lru_cache(4096)
def read(text: str) -> Team:
    """The team of a text. `TeamError` with what is wrong."""
    if len(text) > LONGEST_TEXT:
        raise TeamError(f"the text is longer than {LONGEST_TEXT} characters")
    try:
        data = read_json(text)
    except ValueError as reason:
        raise TeamError(f"no JSON: {reason}") from None
    whole = _mapping(data, "the team", ("nodes", "edges", "first", "last"))
    given = whole["nodes"]
    if not isinstance(given, Mapping):
        raise TeamError("`nodes` is not an object of nodes by name")
    edges = whole["edges"]
    if not isinstance(edges, list) or not all(isinstance(e, list) and len(e) == 2 for e in edges):
        raise TeamError("`edges` is not a list of pairs of names")
    if not isinstance(whole["last"], str):
        raise TeamError("`last` is not a name")
    return check(
        Team(
            tuple(node_of(name, data) for name, data in given.items()),
            tuple((str(a), str(b)) for a, b in edges),
            _texts(whole["first"], "`first`"),
            whole["last"],
        )
    )


def node_of(name: str, data: Any) -> Node:
    """A node of plain data. `TeamError` with what is wrong."""
    data = _mapping(data, name, ("backbone", "tools", "prompt"))
    prompt = _mapping(data["prompt"], f"the prompt of {name}", COMPONENTS)
    if not isinstance(prompt["output"], str):
        raise TeamError(f"the output of {name} is not a sentence")
    steps, method = (_texts(prompt[k], f"`{k}` of {name}") for k in ("steps", "method"))
    tools = _texts(data["tools"], f"`tools` of {name}")
    return Node(name, str(data["backbone"]), steps, method, prompt["output"], tools)


def _mapping(data: Any, what: str, keys: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise TeamError(f"{what} is not an object")
    if missing := [k for k in keys if k not in data]:
        raise TeamError(f"{what} lacks {missing[0]}")
    if more := [k for k in data if k not in keys]:
        raise TeamError(f"{what} has {more[0]!r:.40}, which means nothing")
    return data


def _texts(data: Any, what: str) -> tuple[str, ...]:
    if not isinstance(data, list) or not all(isinstance(x, str) for x in data):
        raise TeamError(f"{what} is not a list of texts")
    return tuple(data)
