"""An agent as a text, and its pieces: a description, sentences of instructions, and parts of the analysis.

    DESCRIPTION = "..."      INSTRUCTIONS = "- a sentence\n- ..."      PARTS = (names, ...)      def analyse(db) -> str

The text is Python; here it is read and never run. What models write need not have parts: only `analyse` is called.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SEED = (HERE / "agent.txt").read_text()


@dataclass(frozen=True)
class Component:
    """What may be put into an agent: a `part` of the analysis, whose code is a function, or a `sentence`.

    serves  the kinds of failures that it may have to do with (`search.contests.failures`)
    """

    name: str
    role: str
    serves: tuple[str, ...]
    code: str


@dataclass(frozen=True)
class Agent:
    """The pieces of an agent; parts by the name of their function, in the order in which they report."""

    description: str
    sentences: tuple[str, ...]
    parts: Mapping[str, str]

    @property
    def pieces(self) -> frozenset[str]:
        """What tells agents apart: the parts by name, the sentences as they are."""
        return frozenset([*self.parts, *self.sentences])

    @property
    def instructions(self) -> str:
        """As who writes SQL reads them."""
        return "".join(f"- {sentence}\n" for sentence in self.sentences)

    def text(self) -> str:
        """As a program."""
        named = ", ".join(self.parts) + "," * (len(self.parts) == 1)
        head = f'DESCRIPTION = {self.description!r}\n\nINSTRUCTIONS = """\n{self.instructions}"""\n'
        code = "\n\n".join(part.strip() + "\n" for part in self.parts.values())
        return f"{head}\n\n{code}\n\nPARTS = ({named})\n\n\n{ANALYSE}"


@cache
def read_agent(text: str) -> Agent:
    """The pieces of an agent's text. `ValueError` for one that has none."""
    values, functions = constants(text), {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name != "analyse":
            functions[node.name] = str(ast.get_source_segment(text, node))
    named = values.get("PARTS", ())
    if not named or any(name not in functions for name in named):
        raise ValueError("the agent has no PARTS, or names functions in them that it lacks")
    sentences = [line.strip().removeprefix("-").strip() for line in str(values["INSTRUCTIONS"]).splitlines()]
    return Agent(str(values["DESCRIPTION"]), tuple(s for s in sentences if s), {n: functions[n] for n in named})


def constants(text: str) -> dict[str, Any]:
    """DESCRIPTION and INSTRUCTIONS, empty where they are no texts, and the names in PARTS."""
    found: dict[str, Any] = {"DESCRIPTION": "", "INSTRUCTIONS": ""}
    for node in ast.parse(text).body:
        match node:
            case ast.Assign([ast.Name(name)], ast.Constant(str(value))) if name in found:
                found[name] = value
            case ast.Assign([ast.Name("PARTS")], ast.Tuple(elements)):
                found["PARTS"] = [element.id for element in elements if isinstance(element, ast.Name)]
    return found


@cache
def components() -> Mapping[str, Component]:
    """The library that agents are made from without a model, by name. Some of it is of use, some is not, some harms."""
    found = {}
    for block in ("\n" + (HERE / "components.txt").read_text()).split("\n# ")[1:]:
        head, _, code = block.partition("\n")
        name, role, serves = (piece.strip() for piece in head.split("|"))
        found[name] = Component(name, role, tuple(serves.split()), code.strip())
    return found


ANALYSE = SEED[SEED.index("def analyse") :]
