"""What can be known on the way to an answer, as lines of text, and each step of the way done well or badly.

question: ...
want a: length of Arden-Brill in roads
formula: 60*a/b in min with 1 decimals
record a: Arden-Brill: road 17, 12.5 mi.
fact a: 12.5 mi
value a: 20.1168 km
result: 34.2151
answer: 34.2
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from evolvent.tasks.worlds.workflow.tools import calculate
from evolvent.tasks.worlds.workflow.units import BASE, ToolError, convert, exact, rounded, show

STAGES = ("plan", "record", "fact", "value", "result", "answer")
LINE = re.compile(r"(question|want|formula|record|fact|value|result|answer)(?: ([a-z]))?: (.+)")
WANT = re.compile(r"(\w+) of (\S(?:.*\S)?) in (\w+)")
FORMULA = re.compile(r"(\S+) in (\w+) with (\d) decimals")
QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(?: (" + "|".join(sorted(BASE, key=len, reverse=True)) + r")(?![\w/]))?")
UNIT = re.compile(r"(?<![\w/])(" + "|".join(sorted(BASE, key=len, reverse=True)) + r")(?![\w/])")
MEMORY = {"mi": "1.6", "lb": "0.45", "mph": "1.6", "coins/lb": "2.2", "m": "0.001"}  # without the converter
ROAD = r"from (\w+) to (\w+)"
ASKED = r" Answer in (\w+), with (\d) decimals\."
PATTERNS = {
    "weigh": re.compile(r"What do (\d+) crates of (\w+) and (\d+) crates of (\w+) weigh together\?" + ASKED),
    "price": re.compile(r"What does it cost to send (\d+) crates of (\w+) with (\w+)\?" + ASKED),
    "ride": re.compile(rf"How long does the (\w+) take for the road {ROAD}\?" + ASKED),
    "tour": re.compile(r"How long is the way from (\w+) over (\w+) and (\w+) to (\w+)\?" + ASKED),
    "home": re.compile(r"How far is it from the home of (\w+) to (\w+), and back\?" + ASKED),
    "visit": re.compile(r"How long does (\w+) take from home to (\w+) with the own vehicle\?" + ASKED),
}


@dataclass
class Known:
    """What a text says. Of two lines about one thing the first counts."""

    question: str = ""
    wants: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # letter -> property, name, table
    formula: tuple[str, str, int] | None = None  # the formula, the unit, decimals
    records: dict[str, list[str]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    result: str = ""
    answer: str = ""

    @classmethod
    def of(cls, text: str) -> Known:
        """What the lines of a text say; others say nothing."""
        made = cls()
        for line in text.splitlines():
            match = LINE.fullmatch(line)
            if match:
                made._take(match[1], match[2] or "", match[3])
        return made

    def _take(self, kind: str, letter: str, rest: str) -> None:
        match kind:
            case "want":
                if (m := WANT.fullmatch(rest)) and letter:
                    self.wants.setdefault(letter, (m[1], m[2], m[3]))
            case "formula":
                if (m := FORMULA.fullmatch(rest)) and self.formula is None:
                    self.formula = m[1], m[2], int(m[3])
            case "record":
                if letter and rest not in self.records.setdefault(letter, []):
                    self.records[letter].append(rest)
            case "fact" | "value":
                (self.facts if kind == "fact" else self.values).setdefault(letter, rest)
            case _:
                if not getattr(self, kind):
                    setattr(self, kind, rest)

    def lines(self, kinds: str = "question want formula record fact value result answer") -> list[str]:
        """The text of some kinds of lines."""
        found = {
            "question": [f"question: {self.question}"] if self.question else [],
            "want": [f"want {k}: {what} of {name} in {table}" for k, (what, name, table) in self.wants.items()],
            "formula": ["formula: {} in {} with {} decimals".format(*self.formula)] if self.formula else [],
            "record": [f"record {k}: {record}" for k, rows in self.records.items() for record in rows],
            "fact": [f"fact {k}: {fact}" for k, fact in self.facts.items()],
            "value": [f"value {k}: {value}" for k, value in self.values.items()],
            "result": [f"result: {self.result}"] if self.result else [],
            "answer": [f"answer: {self.answer}"] if self.answer else [],
        }
        return [line for kind in kinds.split() for line in found[kind]]

    @property
    def letters(self) -> list[str]:
        """Those of the formula."""
        return sorted(set(re.findall("[a-z]", self.formula[0]))) if self.formula else []

    def resolved(self, letter: str) -> str:
        """The name of a wanted item; empty while it depends on a fact that is not known."""
        name = self.wants[letter][1]
        for other in re.findall("<([a-z])>", name):
            if other not in self.facts:
                return ""
            name = name.replace(f"<{other}>", self.facts[other])
        return "-".join(sorted(name.split("~")))

    def has(self, stage: str) -> bool:
        """Whether a stage of the way is complete, as far as can be seen."""
        match stage:
            case "plan":
                return bool(self.wants and self.formula)
            case "record":
                return bool(self.wants) and all(k in self.records or k in self.facts for k in self.wants)
            case "fact":
                return bool(self.wants) and all(k in self.facts for k in self.wants)
            case "value":
                return bool(self.formula) and all(k in self.values for k in self.letters)
        return bool(getattr(self, stage))


# --- the steps ---


def plan(known: Known) -> None:
    """Wanted items and formula of the question."""
    for kind, pattern in PATTERNS.items():
        if match := pattern.search(known.question):
            g = match.groups()
            wants, formula = _plan(kind, g)
            known.wants = wants | known.wants
            known.formula = known.formula or (formula, g[-2], int(g[-1]))


def _plan(kind: str, g: tuple[str, ...]) -> tuple[dict[str, tuple[str, str, str]], str]:
    def road(a: str, b: str) -> tuple[str, str, str]:
        return "length", "-".join(sorted((a, b))), "roads"

    match kind:
        case "weigh":
            return {"a": ("mass", g[1], "goods"), "b": ("mass", g[3], "goods")}, f"{g[0]}*a+{g[2]}*b"
        case "price":
            return {"a": ("mass", g[1], "goods"), "b": ("rate", g[2], "carriers")}, f"{g[0]}*a*b"
        case "ride":
            return {"a": road(g[1], g[2]), "b": ("speed", g[0], "vehicles")}, "60*a/b"
        case "tour":
            return {"a": road(g[0], g[1]), "b": road(g[1], g[2]), "c": road(g[2], g[3])}, "a+b+c"
        case "home":
            return {"a": ("home", g[0], "people"), "b": ("length", f"<a>~{g[1]}", "roads")}, "2*b"
    people = {"a": ("home", g[0], "people"), "b": ("vehicle", g[0], "people")}
    return people | {"c": ("length", f"<a>~{g[1]}", "roads"), "d": ("speed", "<b>", "vehicles")}, "60*c/d"


def name_of(record: str) -> str:
    """Whose record it is."""
    return record.partition(":")[0]


def fitting(known: Known, letter: str) -> list[str]:
    """The records of an item that bear its name."""
    name = known.resolved(letter)
    return [r for r in known.records.get(letter, []) if name and name_of(r) == name]


def read(known: Known, unit: bool, latest: bool) -> None:
    """The fact in the first record of each item that has none. Without `unit` it is the first number, with the first
    unit that stands anywhere; without `latest` what was corrected counts."""
    for letter, rows in known.records.items():
        if letter in known.facts or letter not in known.wants or not rows:
            continue
        what, text = known.wants[letter][0], rows[0].partition(":")[2]
        if match := re.search(rf"\b{what} (\w+)", text):
            known.facts[letter] = match[1]
            continue
        found = QUANTITY.findall(text)
        right = [f"{x} {u}" for x, u in found if u]
        first = UNIT.search(text)
        if right and unit:
            known.facts[letter] = right[-1 if latest else 0]
        elif found:
            known.facts[letter] = f"{found[0][0]} {first[1]}" if first else found[0][0]


@lru_cache(10_000)
def value_of(fact: str, tool: bool) -> str:
    """A fact in base units, by the converter or from memory; empty for what is no quantity."""
    match = QUANTITY.fullmatch(fact)
    if not match or not match[2]:
        return ""
    base, factor = BASE[match[2]]
    if factor == 1 or tool:
        return f"{show(convert(match[1], match[2])[0])} {base}"
    return f"{show(exact(match[1]) * exact(MEMORY[match[2]]))} {base}"


def expression(known: Known, missing: str = "") -> str:
    """The formula with numbers in it; empty if one is missing. Where there is no value the fact's number stands."""
    if not known.formula:
        return ""
    text = known.formula[0]
    for letter in known.letters:
        given = known.values.get(letter) or known.facts.get(letter, "")
        number = given.split(" ")[0] if QUANTITY.match(given) else missing
        if not number:
            return ""
        text = re.sub(rf"\b{letter}\b", number, text)
    return text


def by_head(text: str) -> str:
    """An expression calculated with three digits for every number and for the result; empty where it makes no sense."""
    try:
        return crude(calculate(re.sub(r"\d+(\.\d+)?", lambda m: crude(Fraction(m[0]), 3), text)), 3)
    except ToolError:
        return ""


def crude(number: Fraction, digits: int = 2) -> str:
    """A number with so many digits that count."""
    return show(Fraction(f"{float(number):.{digits - 1}e}")) if number else "0"


def exactly(text: str) -> str:
    """An expression calculated with the calculator; empty where that makes no sense."""
    try:
        return show(calculate(text))
    except ToolError:
        return ""


def rounded_answer(known: Known) -> str:
    """The result as asked for; without decimals, where nobody has handed over what was asked for."""
    try:
        return rounded(exact(known.result), known.formula[2] if known.formula else 0)
    except ToolError:
        return ""


@lru_cache(10_000)
def ideal(text: str) -> Known:
    """All that follows from a text without looking anything up, done well. Do not write to it."""
    known = Known.of(text)
    if known.question:
        plan(known)
    for letter in list(known.records):
        if letter in known.wants and letter not in known.facts:
            known.records[letter] = fitting(known, letter)
            if not known.records[letter] and known.resolved(letter):
                del known.records[letter]
    read(known, unit=True, latest=True)
    for letter, fact in known.facts.items():
        if letter not in known.values and (value := value_of(fact, tool=True)):
            known.values[letter] = value
    if not known.result and known.has("value"):
        known.result = exactly(expression(known))
    if not known.answer and known.result and known.formula:
        known.answer = rounded_answer(known)
    return known
