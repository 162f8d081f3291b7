"""What the simulated writer reads in a prompt, and the forms that its answers have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

PARTS = re.compile(r"^Parts: (.+)$", re.MULTILINE)
OPTIONS = re.compile(r"^Implementations of each part: (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```python\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^[ \t]*(\w+)[ \t]*=[ \t]*(.*?)[ \t]*$", re.MULTILINE)
STATED = re.compile(r"\bvalue (-?[\d.]+(?:e-?\d+)?)")
ADVICE = re.compile(r"\b(\w+) = \"(\w+)\"")
AGAINST = re.compile(r"\b(avoid|not|never)\b", re.IGNORECASE)
WEAKEST = re.compile(r"adds least: (\w+)")
CROSSING = re.compile(r"\b(joins?|joining|combines?|combining)\b", re.IGNORECASE)
UNUSED = re.compile(r"could not be used.*?(?:\n\s*\n|\Z)", re.DOTALL)
SEARCH, DIVIDER, REPLACE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"  # as in `search.variation.edits`
RETURN = "    return locals()"


@dataclass(frozen=True)
class Prompt:
    """One prompt, read.

    wanted    `diff`, `program`, `crossing` or `text`
    parts     names of the parts, and options, of their implementations, from the goal
    code      the program to be changed; empty where notes are asked for, and none is shown
    programs  what it and those beside it choose, by part; a part that cannot be read is left out. values: as stated,
              None where they are not
    advice    part and option that a sentence names; avoid, those that one says to leave alone
    weakest   the part that the evaluator named
    failed    whether an earlier answer was of no use, or the program does not run
    """

    wanted: str
    parts: tuple[str, ...]
    options: tuple[str, ...]
    code: str
    programs: tuple[Mapping[str, str], ...]
    values: tuple[float | None, ...]
    advice: tuple[tuple[str, str], ...]
    avoid: frozenset[tuple[str, str]]
    weakest: str | None
    failed: bool

    @property
    def missing(self) -> list[str]:
        """Parts of the program that cannot be read."""
        return [part for part in self.parts if part not in self.programs[0]]

    def answer(self, lines: Mapping[str, str | None]) -> str:
        """A reply in the form that is wanted: by part the line to be put in its place, None to drop it."""
        return as_diff(self.code, lines) if self.wanted == "diff" else as_program(self.code, lines)


def read_prompt(text: str) -> Prompt | None:
    """The prompt as the model understands it; None if neither a machine nor advice on one is in it."""
    named, chosen, codes = PARTS.search(text), OPTIONS.search(text), list(FENCE.finditer(text))
    if not named or not chosen:
        return None
    parts, options = tuple(named[1].split(", ")), tuple(chosen[1].split(", "))
    prose = FENCE.sub("\n", text)
    sentences = UNUSED.sub("\n", prose)
    advice: list[tuple[str, str]] = []
    avoid: set[tuple[str, str]] = set()
    for line in sentences.split("\n"):
        found = [(p, o) for p, o in ADVICE.findall(line) if p in parts and o in options]
        if AGAINST.search(line):
            avoid.update(found)
        else:
            advice += found
    if not codes and not advice:
        return None
    if codes and SEARCH in prose:
        wanted = "diff"
    elif codes and "```python" in prose:
        wanted = "crossing" if len(codes) > 1 and CROSSING.search(prose) else "program"
    else:
        wanted = "text"
    programs = tuple(choices(code[1], parts, options) for code in codes)
    weakest = WEAKEST.search(sentences)
    return Prompt(
        wanted, parts, options, codes[0][1] if codes else "", programs, tuple(stated(text, codes)),
        tuple(advice), frozenset(avoid),
        weakest[1] if weakest and weakest[1] in parts else None,
        "could not be used" in prose or (bool(programs) and len(programs[0]) < len(parts)),
    )  # fmt: skip


def choices(code: str, parts: Sequence[str], options: Sequence[str]) -> dict[str, str]:
    """What a program chooses, as far as it can be read."""
    made = {}
    for part, value in LINE.findall(code):
        if part in parts:
            made[part] = value[1:-1] if value[:1] == '"' == value[-1:] else ""
    return {part: option for part, option in made.items() if option in options}


def stated(text: str, codes: Sequence[re.Match[str]]) -> list[float | None]:
    """The value that stands before each of the programs."""
    found, begun = [], 0
    for code in codes:
        before = STATED.findall(text, begun, code.start())
        found.append(float(before[-1]) if before else None)
        begun = code.end()
    return found


def line_of(part: str, option: str) -> str:
    """A line of a program."""
    return f'    {part} = "{option}"'


def spans(code: str) -> dict[str, str]:
    """The lines of a program that assign, by name; the last one counts."""
    return {match[1]: match[0] for match in LINE.finditer(code)}


def as_diff(code: str, lines: Mapping[str, str | None]) -> str:
    """Blocks that put these lines in the place of those of the program; a part without a line gets one at the end."""
    there, blocks = spans(code), []
    for part, line in lines.items():
        old = there.get(part, RETURN)
        new = [] if line is None else [line]
        put = [*new, RETURN] if part not in there else new
        blocks.append("\n".join([SEARCH, old, DIVIDER, *put, REPLACE]))
    return f"I change {', '.join(lines)}.\n\n" + "\n\n".join(blocks) + "\n"


def as_program(code: str, lines: Mapping[str, str | None]) -> str:
    """The whole program with these lines in their places."""
    there = spans(code)
    for part, line in lines.items():
        if part in there:
            code = code.replace(f"{there[part]}\n", "" if line is None else f"{line}\n", 1)
        elif line is not None:
            code = code.replace(f"{RETURN}\n", f"{line}\n{RETURN}\n", 1)
    return f"I choose anew.\n\n```python\n{code}```\n"


def broken(lines: Mapping[str, str | None], rng: np.random.Generator) -> dict[str, str | None]:
    """Lines of which one makes the program fail: no such implementation, cut short, or gone."""
    made = dict(lines)
    part = list(made)[int(rng.integers(len(made)))]
    line = made[part] or line_of(part, "")
    made[part] = (f'{line[:-1]}er"', line[:-1], None)[int(rng.integers(3))]
    return made


def unusable(prompt: Prompt, rng: np.random.Generator) -> str:
    """A reply that nothing can be done with: prose, or an answer that is cut off, or a diff of some other program."""
    kind = int(rng.integers(3))
    if kind == 0:
        return "The machine looks fine to me; I would begin with its first part."
    if prompt.wanted == "diff" and kind == 1:
        return "\n".join([SEARCH, line_of("engine", "steam"), DIVIDER, line_of("engine", "electric"), REPLACE, ""])
    whole = prompt.answer({part: line_of(part, prompt.options[0]) for part in prompt.parts[:1]})
    return whole[: whole.rindex(REPLACE if prompt.wanted == "diff" else "```")]
