"""What makes two items of a data set the same problem, whatever the seed, the order or the phrasing.

The split of a problem is a function of this. Where a data set has no rule here the question itself decides; a
rule is needed only where equal problems are put in different words. A rule may be coarser than equality,
never finer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Item = Mapping[str, Any]


def program(question: str) -> list[str]:
    """The tokens of an A::B program, which reasoning-gym gives in the question only."""
    return question.split("following program:\n\n", 1)[1].split("\n", 1)[0].split()


def _signed_terms(expression: str) -> list[str]:
    """The terms of a sum with their signs, sorted."""
    text = expression.replace(" ", "").replace("+-", "-").replace("--", "+")
    return sorted(re.findall(r"[+-]?[^+-]+", text if text[0] in "+-" else "+" + text))


def _complex(meta: Item) -> list[Any]:
    pair = [list(map(int, meta["num1"])), list(map(int, meta["num2"]))]
    return [meta["operation"], sorted(pair) if meta["operation"] in "+*" else pair]


def _sorted_numbers(key: str) -> Callable[[Item], Any]:
    return lambda meta: sorted(float(n) for n in meta[key])


def _filtering(meta: Item) -> list[Any]:
    verb, side = meta["operation"].split("_")
    keeps_larger = (verb == "keep") == (side == "larger")
    return [sorted(map(float, meta["original_numbers"])), float(meta["filter_value"]), keeps_larger]


RULES: dict[str, Callable[[Item], Any]] = {
    "ab": lambda meta: program(meta["question"]),
    "base_conversion": lambda meta: [meta["decimal_value"], meta["source_base"], meta["target_base"]],
    "chain_sum": lambda meta: _signed_terms(meta["expression"]),
    "complex_arithmetic": _complex,
    "fraction_simplification": lambda meta: [meta["numerator"], meta["denominator"]],
    "gcd": lambda meta: sorted(meta["numbers"]),
    "graph_color": lambda meta: [meta["puzzle"][part] for part in ("vertices", "edges", "num_colors")],
    "lcm": lambda meta: sorted(meta["numbers"]),
    "leg_counting": lambda meta: sorted(meta["animals"].items()),
    "number_filtering": _filtering,
    "number_sorting": lambda meta: [meta["direction"], *sorted(map(float, meta["original_numbers"]))],
    "palindrome_generation": lambda meta: sorted(meta["letters"]),
    "products": lambda meta: sorted(int(x) for x in meta["expression"].split("*")),
    "shortest_path": lambda meta: ["".join(row) for row in meta["matrix"]],
    "spell_backward": lambda meta: meta["word"],
}


def identity(name: str, meta: Item) -> Any:
    """The data that makes an item the problem it is; `meta` is its metadata with `question` and `answer`."""
    rule = RULES.get(name)
    return rule(meta) if rule else " ".join(meta["question"].split())
