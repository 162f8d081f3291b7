"""Stands for a model where there is none: a worker that does what its prompt says, with its tools, as far as it can.

It does nothing that it is not told to do, follows the first sentences of a prompt only, reads as much of what it is
handed as its backbone lets it, and uses as many tools as that allows. Without the right sentence it takes the easy
way: the first record, the first number, factors from memory, three digits. What is found with it holds for it alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from evolvent.tasks.worlds.workflow import known as ways
from evolvent.tasks.worlds.workflow.known import Known
from evolvent.tasks.worlds.workflow.library import MEANS, SCRIPTED
from evolvent.tasks.worlds.workflow.questions import Question
from evolvent.tasks.worlds.workflow.team import Node
from evolvent.tasks.worlds.workflow.tools import use
from evolvent.tasks.worlds.workflow.units import ToolError

Call = tuple[str, dict[str, Any], str]  # tool, arguments, what came back


@dataclass(frozen=True)
class Work:
    """One node's turn: who, at which question, with what it was handed."""

    node: Node
    question: Question
    text: str


@dataclass
class Done:
    """What a node made of it: what it hands over, the calls of tools, and what stood in its way: `cut` (it could not
    read everything), `unheeded` (its prompt has more sentences than it follows), `calls` (no more were left)."""

    text: str
    calls: list[Call] = field(default_factory=list)
    limits: tuple[str, ...] = ()


def means(sentence: str) -> str:
    """What a sentence of the library means to the scripted worker; empty for any other."""
    return MEANS.get(" ".join(sentence.split()), "")


@lru_cache(50_000)
def work(job: Work) -> Done:
    """One turn of the scripted worker, which does the same thing whenever it is asked the same. Do not write to it."""
    backbone, node = SCRIPTED[job.node.backbone], job.node
    seen = job.text
    if len(seen) > backbone.window:
        seen = seen[: backbone.window + 1].rpartition("\n")[0]
    heeded = [means(s) for s in node.sentences[: backbone.heeds]]
    limits = ["cut"] * (seen != job.text) + ["unheeded"] * (len(node.sentences) > backbone.heeds)
    turn = Turn(job, Known.of(seen), {*heeded[len(node.steps) :]}, backbone.calls)
    given = {*turn.known.lines()}
    for step in heeded[: len(node.steps)]:
        turn.do(step)
    handed = turn.hand_over(means(node.output), given)
    return Done("\n".join(handed), turn.calls, tuple(limits + ["calls"] * turn.refused))


class Turn:
    """A turn under way: what is known, how things are done, which calls were made."""

    def __init__(self, job: Work, known: Known, method: set[str], left: int) -> None:
        self.job, self.known, self.method, self.left = job, known, method, left
        self.calls: list[Call] = []
        self.refused = False

    def tool(self, name: str, /, **arguments: str) -> str:
        """What a tool says; empty if the node has none, or no calls are left."""
        if name not in self.job.node.tools:
            return ""
        if not self.left:
            self.refused = True
            return ""
        self.left -= 1
        try:
            found = use(name, arguments, self.job.question)
        except ToolError as reason:
            found = f"error: {reason}"
        self.calls.append((name, dict(arguments), found))
        return "" if found.startswith("error") else found

    def do(self, step: str) -> None:
        """One step of the prompt."""
        known = self.known
        match step:
            case "plan":
                ways.plan(known)
            case "find" | "find-odd" | "find-even":
                self.find({"find": (0, 1), "find-odd": (0,), "find-even": (1,)}[step])
            case "read":
                ways.read(known, "unit" in self.method, "latest" in self.method)
            case "check":
                for letter in list(known.records):
                    if letter in known.wants:
                        known.records[letter] = ways.fitting(known, letter)
                        if not known.records[letter]:
                            del known.records[letter]
            case "convert":
                self.convert()
            case "calculate" | "again":
                if not known.result or step == "again":
                    known.result = self.calculate() or known.result
            case "round":
                if known.result and not known.answer:
                    known.answer = ways.rounded_answer(known)
            case "guess":
                number = ways.QUANTITY.search("\n".join(known.lines()))
                known.answer = known.answer or (number[1] if number else "1")

    def find(self, places: tuple[int, ...]) -> None:
        """Look up wanted items that are open and whose names are known, those at odd or even places or all."""
        known = self.known
        for place, letter in enumerate(known.wants):
            if place % 2 not in places or letter in known.records or letter in known.facts:
                continue
            name = known.resolved(letter)
            found = self.tool("lookup", table=known.wants[letter][2], name=name) if name else ""
            rows = [] if found in ("", "nothing found") else found.split("\n")
            if "exact" in self.method:
                rows = [row for row in rows if ways.name_of(row) == name]
            if rows:
                known.records[letter] = rows if "every" in self.method else rows[:1]

    def convert(self) -> None:
        """Values of all facts that are quantities."""
        known = self.known
        for letter, fact in known.facts.items():
            match = ways.QUANTITY.fullmatch(fact)
            if letter in known.values or not match or not match[2]:
                continue
            value = ""
            if "with-converter" in self.method and ways.BASE[match[2]][1] != 1:
                value = self.tool("converter", number=match[1], unit=match[2])
            value = value or ways.value_of(fact, tool=False)
            if "rough" in self.method:
                number, _, unit = value.partition(" ")
                value = f"{ways.crude(ways.exact(number))} {unit}"
            known.values[letter] = value

    def calculate(self) -> str:
        """The result, or nothing if something is missing."""
        text = ways.expression(self.known, "1" if "assume" in self.method else "")
        if not text:
            return ""
        found = self.tool("calculator", expression=text) if "with-calculator" in self.method else ""
        found = found or ways.by_head(text)
        return ways.crude(ways.exact(found)) if "rough" in self.method and found else found

    def hand_over(self, output: str, given: set[str]) -> list[str]:
        """The lines for whoever comes next; everything, unless the prompt says otherwise."""
        known = self.known
        match output:
            case "new":
                return [line for line in known.lines() if line not in given]
            case "needed":
                return known.lines("want formula fact value result answer")
            case "answer":
                return known.lines("answer")
        return known.lines()
