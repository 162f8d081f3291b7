"""What runs inside of the sandbox for attempts at one bug: a repair agent that follows a strategy, without a model.

It stands alone beside `harness.py`, since both are copied there; `changes.py` has the operators on syntax trees, those
of the world's components. A strategy is data:

    operators  which changes it makes
    entry      where it looks first: a way to weigh lines
    order      in which order it tries what it has found
    known      whole programs that it tries before anything else
    focus      [operator, line] that it tries next
    avoid      digests of programs that it leaves out
"""

from __future__ import annotations

import ast
import hashlib
from typing import Any

import changes  # type: ignore[import-not-found]
from harness import Exhausted, Tools, apart  # type: ignore[import-not-found]

CAP = 80  # changes of one operator

Weights = dict[int, float]
Patch = tuple[int, str, str]  # line, program, operator


def failing(traces: list[tuple[bool, list[int]]], last: int) -> Weights:
    """Lines that the first failing test executes."""
    return next((dict.fromkeys(lines, 1.0) for passed, lines in traces if not passed), {})


def ochiai(traces: list[tuple[bool, list[int]]], last: int) -> Weights:
    """failed(line) / sqrt(failed (failed(line) + passed(line))) (Abreu et al., 2007)."""
    bad, good = {}, {}  # type: dict[int, int], dict[int, int]
    for passed, lines in traces:
        counts = good if passed else bad
        for line in lines:
            counts[line] = counts.get(line, 0) + 1
    failed = max(1, sum(not passed for passed, _ in traces))
    return {line: n / (failed * (n + good.get(line, 0))) ** 0.5 for line, n in bad.items()}


def top(traces: list[tuple[bool, list[int]]], last: int) -> Weights:
    """The earlier, the more suspicious."""
    return {line: 1.0 / line for line in range(1, last + 1)}


def bottom(traces: list[tuple[bool, list[int]]], last: int) -> Weights:
    """The later, the more suspicious."""
    return {line: float(line) for line in range(1, last + 1)}


ENTRIES = {"failing": failing, "ochiai": ochiai, "top": top, "bottom": bottom}


def weighted(patches: list[Patch], weights: Weights) -> list[Patch]:
    """The most suspicious lines first."""
    return sorted(patches, key=lambda patch: -weights.get(patch[0], 0.0))


def in_turn(patches: list[Patch], weights: Weights) -> list[Patch]:
    """Operators in turn, each with its most suspicious lines first."""
    groups: dict[str, list[Patch]] = {}
    for patch in weighted(patches, weights):
        groups.setdefault(patch[2], []).append(patch)
    order: list[Patch] = []
    while any(groups.values()):
        order += [group.pop(0) for group in groups.values() if group]
    return order


def rare_first(patches: list[Patch], weights: Weights) -> list[Patch]:
    """Suspicious lines first, and of them operators that have little to offer."""
    counts: dict[str, int] = {}
    for _, _, operator in patches:
        counts[operator] = counts.get(operator, 0) + 1
    return sorted(patches, key=lambda patch: counts[patch[2]] / (0.02 + weights.get(patch[0], 0.0)))


ORDERS = {"weighted": weighted, "in_turn": in_turn, "rare_first": rare_first}


def digest(text: str) -> str:
    """A name for a program."""
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def offered(source: str, strategy: dict[str, Any], tools: Tools) -> list[Patch]:
    """What the operators of a strategy make of a program, up to `CAP` each, without what it avoids."""
    tree = ast.parse(source)
    avoid, found = set(strategy["avoid"]), []
    for name in strategy["operators"]:
        made: dict[str, Patch] = {}
        for node in getattr(changes, name)(tree):
            text = ast.unparse(tree)
            made.setdefault(text, (node.lineno, text, name))
        made.pop(ast.unparse(tree), None)
        mine = list(made.values())
        found += tools.rng.sample(mine, min(CAP, len(mine)))
    return [patch for patch in found if digest(patch[1]) not in avoid]


def attempt(bug: dict[str, Any], strategy: dict[str, Any], runs: int, seed: str) -> dict[str, Any]:
    """One attempt at a bug with so many runs of visible tests.

    Gives the `patch`, how many visible tests it `passed` and how many passed `before`; what was `tried`, as [digest,
    operator, line, passed] (0 where the first failing test still fails), how many changes were `offered`, the `runs`
    that it took, and whether they were all used up.
    """
    tools = Tools(bug["function"], bug["examples"], runs, seed)
    source, count = bug["source"], len(bug["examples"])
    best, tried, total, before = (0, source), [], 0, 0
    try:
        traces = [tools.trace(source, i) for i in range(count)]
        before = sum(passed for passed, _ in traces)
        best = (before, source)
        plain = ast.unparse(ast.parse(source))
        places = sorted(range(count), key=lambda i: traces[i][0])  # failing ones first
        weights = ENTRIES[strategy["entry"]](traces, plain.count("\n") + 1)
        patches = offered(plain, strategy, tools)
        total = len(patches)
        order = ORDERS[strategy["order"]](tools.rng.sample(patches, total), weights)
        focus = {tuple(pair) for pair in strategy["focus"]}
        order.sort(key=lambda patch: (patch[2], patch[0]) not in focus)
        for line, text, operator in [(0, text, "known") for text in strategy["known"]] + order:
            passed = 0
            tried.append([digest(text), operator, line, 0])
            for place, i in enumerate(places):
                passed += tools.test(text, i)
                if place == 0 and not passed:
                    break
            tried[-1][3] = passed
            if passed > best[0]:
                best = (passed, text)
            if passed == count:
                break
    except Exhausted:
        pass
    return {
        "patch": best[1], "passed": best[0], "before": before, "tried": tried, "offered": total,
        "runs": runs - tools.left, "exhausted": tools.left == 0,
    }  # fmt: skip


def attempts(jobs: list[list[Any]], runs: int, seconds: float) -> list[dict[str, Any]]:
    """Attempts [bug, strategy, seed], each in a process of its own."""
    return [apart(lambda job=job: attempt(job[0], job[1], runs, job[2]), seconds) for job in jobs]
