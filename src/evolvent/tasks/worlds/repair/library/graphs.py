"""Functions on graphs."""

from __future__ import annotations

from evolvent.tasks.worlds.repair.library.draws import Draw, acyclic, costs, graph


def reachable(edges: list, start: int) -> list:
    """Nodes that a walk from `start` can come to, itself included, in order."""
    seen, waiting = {start}, [start]
    while waiting:
        node = waiting.pop()
        for other in edges[node]:
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return sorted(seen)


def hops(edges: list, start: int, goal: int) -> int:
    """The fewest edges from one node to another; -1 if there is no way."""
    reached, front, count = {start}, [start], 0
    while front:
        if goal in front:
            return count
        following = []
        for node in front:
            for other in edges[node]:
                if other not in reached:
                    reached.add(other)
                    following.append(other)
        front, count = following, count + 1
    return -1


def distances(edges: list, start: int) -> list:
    """The lowest cost to each node, edges being [to, cost]; -1 where there is no way."""
    found = [-1] * len(edges)
    open_nodes = {start: 0}
    while open_nodes:
        node = min(open_nodes, key=lambda n: [open_nodes[n], n])
        cost = open_nodes.pop(node)
        found[node] = cost
        for other, more in edges[node]:
            if found[other] == -1 and cost + more < open_nodes.get(other, cost + more + 1):
                open_nodes[other] = cost + more
    return found


def layers(edges: list) -> list:
    """Nodes of an acyclic graph in order, the smallest free one first; `ValueError` for a cycle."""
    missing = [0] * len(edges)
    for nexts in edges:
        for other in nexts:
            missing[other] += 1
    free = [n for n in range(len(edges)) if missing[n] == 0]
    order = []
    while free:
        node = min(free)
        free.remove(node)
        order.append(node)
        for other in edges[node]:
            missing[other] -= 1
            if missing[other] == 0:
                free.append(other)
    if len(order) < len(edges):
        raise ValueError("there is a cycle")
    return order


def two_colours(edges: list) -> bool:
    """Whether two colours are enough for neighbours to differ; edges hold in both directions."""
    both: list = [[] for _ in edges]
    for node, nexts in enumerate(edges):
        for other in nexts:
            both[node].append(other)
            both[other].append(node)
    colour = [-1] * len(edges)
    for start in range(len(edges)):
        if colour[start] != -1:
            continue
        colour[start] = 0
        waiting = [start]
        while waiting:
            node = waiting.pop()
            for other in both[node]:
                if colour[other] == -1:
                    colour[other] = 1 - colour[node]
                    waiting.append(other)
                elif colour[other] == colour[node]:
                    return False
    return True


def root_of(parents: list, node: int) -> int:
    """The root of a node's tree."""
    while parents[node] != node:
        node = parents[node]
    return node


def components(edges: list) -> list:
    """For each node the smallest one that is connected with it; edges hold in both directions."""
    parents = list(range(len(edges)))
    for node, nexts in enumerate(edges):
        for other in nexts:
            a, b = root_of(parents, node), root_of(parents, other)
            if a != b:
                parents[max(a, b)] = min(a, b)
    return [root_of(parents, node) for node in range(len(edges))]


def longest_way(edges: list) -> int:
    """The most edges of a path in an acyclic graph."""
    known: dict = {}

    def from_node(node: int) -> int:
        if node not in known:
            known[node] = max((1 + from_node(other) for other in edges[node]), default=0)
        return known[node]

    best = 0
    for node in range(len(edges)):
        best = max(best, from_node(node))
    return best


CASES: dict[str, Draw] = {
    "reachable": lambda r: [graph(r, n := r.randint(1, 6), 0.25), r.randrange(n)],
    "hops": lambda r: [graph(r, n := r.randint(2, 7), 0.25), r.randrange(n), r.randrange(n)],
    "distances": lambda r: [costs(r, n := r.randint(1, 6)), r.randrange(n)],
    "layers": lambda r: [acyclic(r, r.randint(1, 6)) if r.random() < 0.8 else graph(r, 5, 0.35)],
    "two_colours": lambda r: [graph(r, r.randint(2, 7), 0.12)],
    "components": lambda r: [graph(r, r.randint(2, 8), 0.1)],
    "longest_way": lambda r: [acyclic(r, r.randint(1, 7), 0.4)],
}
