"""Crossing: the topology of one team, for each node attributes of either parent (EvoMAS, arXiv 2602.06511)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from evolvent.tasks.worlds.workflow.team import Node, Team, check


def crossed(
    one: Team, other: Team, rng: np.random.Generator, faulty: Collection[str] = (), others: Collection[str] = ()
) -> Team:
    """Nodes and edges of the first team. Each node's backbone, prompt and tools come from itself or from the most
    similar node of the second one, by a coin each; where just one of the two nodes was at fault, by their traces (node
    names in `faulty` and `others`), all three are the other's."""
    nodes = []
    for node in one.nodes:
        match = counterpart(node, other)
        blame = node.name in faulty, match.name in others
        if blame == (True, False):
            from_other = [True] * 3
        elif blame == (False, True):
            from_other = [False] * 3
        else:
            from_other = [bool(rng.random() < 0.5) for _ in range(3)]
        backbone, prompt, tools = (match if mine else node for mine in from_other)
        nodes.append(Node(node.name, backbone.backbone, prompt.steps, prompt.method, prompt.output, tools.tools))
    return check(replace(one, nodes=tuple(nodes)))


def counterpart(node: Node, team: Team) -> Node:
    """The node of a team that is most like another one: by shared steps, then by the name, then the first."""
    return max(team.nodes, key=lambda n: (overlap(n.steps, node.steps), n.name == node.name))


def overlap(a: Collection[str], b: Collection[str]) -> float:
    """Shared items, as a part of all."""
    return len({*a} & {*b}) / max(1, len({*a} | {*b}))
