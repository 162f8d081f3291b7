"""What is remembered of an attempt at a bug, in fields, in the place of its trace (SE-Agent, arXiv 2508.02085)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from evolvent.core.written import read_written

Tried = tuple[str, str, int, int]  # digest of a program, operator, line, visible tests that it passes
FIELDS = ("strategy", "places", "changes", "tools", "pattern", "assumptions", "failure")
OBJECT = re.compile(r"\{.*\}", re.DOTALL)


@dataclass(frozen=True)
class Summary:
    """An attempt, as later ones and judges read it.

    made by      `operator` of the plan; `strategy`, the prefix that it began with
    places       files or lines that it changed
    changes      the lines that it took away and put in
    tools        what it changed programs with
    pattern      how it went about it
    assumptions  where it took the fault to be
    status       how it ended; `failure`, why it did not do better
    passed       visible tests that the patch passes, of `shown`; `before` it, `before`
    left         share of the attempt's effort that was not needed
    edits        lines that differ from the faulty program
    tried        by the scripted agent: every change
    offered      how many changes its strategy had in all
    """

    patch: str
    operator: str = "base"
    strategy: str = ""
    places: str = ""
    changes: str = ""
    tools: tuple[str, ...] = ()
    pattern: str = ""
    assumptions: str = ""
    status: str = ""
    failure: str = ""
    passed: int = 0
    shown: int = 1
    before: int = 0
    left: float = 0.0
    edits: int = 0
    tried: tuple[Tried, ...] = ()
    offered: int = 0

    @property
    def solved(self) -> bool:
        """Whether the patch passes all visible tests; more is not known of any."""
        return self.passed == self.shown

    @property
    def changed(self) -> bool:
        """Whether there is a patch."""
        return self.edits > 0

    def told(self) -> dict[str, str]:
        """What a model is told: texts by name."""
        texts = {name: getattr(self, name) for name in FIELDS}
        return {k: ", ".join(v) if isinstance(v, tuple) else v for k, v in texts.items() if v} | {"status": self.status}

    def as_dict(self) -> dict[str, Any]:
        """For the record, without the list of what was tried."""
        return {k: v for k, v in asdict(self).items() if k != "tried"}


@dataclass(frozen=True)
class Made:
    """What an attempt has left: the patch and, of the scripted agent, its strategy and trace; of a model, the trace."""

    patch: str
    left: float
    strategy: Mapping[str, Any] = field(default_factory=dict)
    tried: tuple[Tried, ...] = ()
    offered: int = 0
    trace: str = ""


def by_rule(made: Made, source: str, visible: Sequence[bool], before: int, operator: str, prefix: str) -> Summary:
    """The fields that need no model. `visible`: which visible tests the patch passes; `before`: how many the faulty
    program passes."""
    removed, added, places = difference(source, made.patch)
    passed, shown = sum(visible), len(visible)
    failure = ""
    if passed < shown and made.strategy:
        spent = len(made.tried) < made.offered
        failure = f"{len(made.tried)} of {made.offered} changes were tried" + (", then no runs were left" * spent)
    if made.strategy:
        prefix = f"{', '.join(made.strategy['operators'])}; `{made.strategy['entry']}` first, {made.strategy['order']}"
    changes = "\n".join([*(f"- {line}" for line in removed), *(f"+ {line}" for line in added)])
    return Summary(
        patch=made.patch, operator=operator, strategy=prefix,
        places=", ".join(f"line {n}" for n in places), changes=changes,
        tools=tuple(made.strategy.get("operators", ())), pattern=str(made.strategy.get("order", "")),
        assumptions=f"the fault is where `{made.strategy['entry']}` looks first" if made.strategy else "",
        status=f"passes {passed} of {shown} visible tests; the faulty program passes {before}",
        failure=failure, passed=passed, shown=shown, before=before, left=made.left,
        edits=max(len(removed), len(added)), tried=made.tried, offered=made.offered,
    )  # fmt: skip


def with_words(summary: Summary, answer: str) -> Summary:
    """The same with what a model says of the attempt: a JSON object of fields. What it says of no field is left out; of
    an answer that is no object all is the strategy. What tests have measured is never taken from it."""
    match = OBJECT.search(answer)
    try:
        said = read_written(match[0]) if match else None
    except ValueError:
        said = None
    if not isinstance(said, dict):
        return replace(summary, strategy=answer.strip() or summary.strategy)
    texts: dict[str, Any] = {k: str(v).strip() for k, v in said.items() if k in FIELDS and k != "tools" and v}
    tools = said.get("tools")
    if tools:
        texts["tools"] = tuple(map(str, tools)) if isinstance(tools, list) else (str(tools),)
    return replace(summary, **texts)


def difference(before: str, after: str) -> tuple[list[str], list[str], list[int]]:
    """Lines taken away, lines put in, and the places of the first of each, counted from 1 in `before`."""
    old, new = before.rstrip().splitlines(), after.rstrip().splitlines()
    removed, added, places = list[str](), list[str](), list[int]()
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            removed += old[a:b]
            added += new[c:d]
            places.append(a + 1)
    return removed, added, places
