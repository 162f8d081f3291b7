"""Clean documents of the four categories, written by small grammars: what a cleaned corpus should be like.

Each has content that a careless rule destroys: names with accents in prose, short lines, comparisons and indentation in
code, formulas, units and rows of numbers in tables, short repeated turns and shouted names in dialogue.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

CATEGORIES = ("prose", "code", "tables", "dialogue")

PEOPLE = (
    "José",
    "Zoë",
    "Håkan",
    "Chloé",
    "Jürgen",
    "Anaïs",
    "Marta",
    "Peter",
    "Ruth",
    "Ingrid",
    "Tomás",
    "Agnès",
    "Omar",
    "Lucía",
    "Daniel",
    "Björn",
)
PLACES = (
    "harbour",
    "mill",
    "valley",
    "station",
    "garden",
    "market",
    "bridge",
    "museum",
    "village",
    "orchard",
    "tower",
    "canal",
    "school",
    "forest",
)
THINGS = (
    "letter",
    "map",
    "lantern",
    "boat",
    "clock",
    "basket",
    "ladder",
    "kettle",
    "violin",
    "blanket",
    "hammer",
    "mirror",
    "wheel",
    "coat",
    "box",
    "rope",
)
KINDS = (
    "old",
    "narrow",
    "quiet",
    "broken",
    "heavy",
    "pale",
    "early",
    "distant",
    "small",
    "painted",
    "empty",
    "warm",
    "rough",
    "careful",
)
ACTS = (
    "found",
    "carried",
    "repaired",
    "sold",
    "described",
    "forgot",
    "kept",
    "painted",
    "measured",
    "borrowed",
    "hid",
    "counted",
)
TIMES = ("in spring", "after the rain", "before noon", "at the end of the year", "one evening", "during the war")
LINKS = ("because", "although", "while", "after", "so that", "until")
SAYING = ("“It was never ours,” said {a}.", "“Nobody asked,” {a} wrote.", "“Then we shall wait,” said {a}.")
VARIABLES = (
    "count",
    "total",
    "index",
    "rows",
    "left",
    "right",
    "limit",
    "width",
    "value",
    "key",
    "node",
    "queue",
    "first",
    "last",
    "size",
    "rate",
)
FUNCTIONS = (
    "scan",
    "merge",
    "split",
    "load",
    "count_rows",
    "find_peak",
    "update",
    "shift",
    "trim",
    "walk",
    "sort_keys",
    "average",
)
SAMPLES = ("copper", "quartz", "basalt", "resin", "glass", "nickel", "paper", "clay", "zinc", "cotton")
SYMBOLS = ("alpha", "beta", "gamma", "k", "m", "v", "T", "p", "rho", "sigma")
UNITS = ("°C", "kg/m³", "µm", "kPa", "m/s", "%")
TURNS = ("Yes.", "No.", "Go on.", "I see.", "Why?", "Perhaps.", "Of course.", "When?", "Really?", "And then?")


def document(category: str, rng: np.random.Generator) -> str:
    """A clean document, of some 500 to 1,200 characters."""
    return {"prose": prose, "code": code, "tables": tables, "dialogue": dialogue}[category](rng)


def one(rng: np.random.Generator, words: Sequence[str]) -> str:
    """Any of them."""
    return words[int(rng.integers(len(words)))]


def clause(rng: np.random.Generator) -> str:
    """Who did what."""
    who, what = one(rng, PEOPLE), one(rng, THINGS)
    return f"{who} {one(rng, ACTS)} the {one(rng, KINDS)} {what} near the {one(rng, PLACES)}"


def sentence(rng: np.random.Generator) -> str:
    """A sentence of a story."""
    draw = rng.random()
    if draw < 0.15:
        return one(rng, SAYING).format(a=one(rng, PEOPLE))
    if draw < 0.5:
        return f"{clause(rng)} {one(rng, LINKS)} {clause(rng)}."
    when = one(rng, TIMES)
    return f"{when.capitalize()}, {clause(rng)}." if draw < 0.75 else f"{clause(rng)} {when}."


def prose(rng: np.random.Generator) -> str:
    """Paragraphs of sentences."""
    paragraphs = [" ".join(sentence(rng) for _ in range(rng.integers(2, 5))) for _ in range(rng.integers(3, 6))]
    return "\n\n".join(paragraphs)


def code(rng: np.random.Generator) -> str:
    """Functions with comparisons, short lines, comments."""
    return "\n\n\n".join(function(rng) for _ in range(rng.integers(2, 5)))


def function(rng: np.random.Generator) -> str:
    """A function of a program."""
    name, (a, b, c) = one(rng, FUNCTIONS), rng.permutation(VARIABLES)[:3]
    n, lines = rng.integers(2, 99), []
    lines.append(f"def {name}_{one(rng, VARIABLES)}({a}, {b}):")
    if rng.random() < 0.6:
        lines.append(f'    """The {one(rng, KINDS)} {one(rng, VARIABLES)} of {a} and {b}."""')
    lines.append(f"    {c} = {rng.integers(0, 9)}")
    for _ in range(rng.integers(1, 4)):
        draw = rng.random()
        if draw < 0.4:
            lines += [f"    for i in range({a}):", f"        if i < {n} and {b} > i:", f"            {c} += {b} * i"]
        elif draw < 0.7:
            lines += [f"    if {a} < {b}:", f"        {c} = {a} - {n}", "    else:", f"        {c} = {b}"]
        else:
            lines += [f"    while {c} < {n} and {a} > 0:", f"        {c} = {c} * 2 + {a}", "        break"]
    if rng.random() < 0.5:
        lines.append(f"    # {one(rng, KINDS)} {one(rng, VARIABLES)} first! see {one(rng, FUNCTIONS)}")
    return "\n".join([*lines, f"    return {c}"])


def tables(rng: np.random.Generator) -> str:
    """Measurements: sentences, formulas, rows of numbers."""
    parts, unit = [], one(rng, UNITS)
    for number in range(rng.integers(2, 4)):
        material, (x, y, z) = one(rng, SAMPLES), rng.permutation(SYMBOLS)[:3]
        parts.append(f"The {one(rng, KINDS)} {material} was measured at {rng.integers(5, 95)} {unit}, where")
        parts.append(f"{x} = {rng.integers(2, 30)} {y}^{rng.integers(2, 5)} + {z} / ({rng.integers(2, 9)} - {y})")
        parts.append(f"{z} < {rng.integers(1, 9)}.{rng.integers(0, 99)} ± 0.{rng.integers(1, 9)} {unit}")
        parts.append(f"| sample | {y} | {z} ({unit}) |")
        for row in range(rng.integers(3, 7)):
            values = f"{rng.integers(1, 99)}.{rng.integers(0, 9)} | {rng.integers(100, 999)}"
            parts.append(f"| {one(rng, SAMPLES)}-{number}{row} | {values} |")
        parts.append("")
    return "\n".join(parts[:-1])


def dialogue(rng: np.random.Generator) -> str:
    """Turns of two people, many of them short, and a direction now and then."""
    a, b = (str(name).upper() for name in rng.permutation(PEOPLE)[:2])
    lines = []
    for turn in range(rng.integers(14, 24)):
        who = (a, b)[turn % 2]
        draw = rng.random()
        if draw < 0.4:
            said = one(rng, TURNS)
        elif draw < 0.6:
            said = f"Have you seen the {one(rng, THINGS)} from the {one(rng, PLACES)}?"
        else:
            said = f"{clause(rng)}{'!' if draw > 0.9 else '.'}"
        lines.append(f"{who}: {said}")
    return "\n".join(lines)
