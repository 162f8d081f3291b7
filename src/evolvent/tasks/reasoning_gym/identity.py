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


def _signed_terms(meta: Item) -> list[str]:
    """The terms of a sum with their signs, sorted."""
    text = "+" + meta["expression"].replace(" ", "")
    for doubled, sign in (("++", "+"), ("+-", "-"), ("-+", "-"), ("--", "+")):
        text = text.replace(doubled, sign)
    return sorted(re.findall(r"[+-][^+-]+", text))


def _complex(meta: Item) -> list[Any]:
    pair = [list(map(int, meta["num1"])), list(map(int, meta["num2"]))]
    return [meta["operation"], sorted(pair) if meta["operation"] in "+*" else pair]


def _filtering(meta: Item) -> list[Any]:
    verb, side = meta["operation"].split("_")
    keeps_larger = (verb == "keep") == (side == "larger")
    return [sorted(map(float, meta["original_numbers"])), float(meta["filter_value"]), keeps_larger]


def _renamed(key: str) -> Callable[[Item], str]:
    """A formula with its variable called x."""
    return lambda meta: re.sub(rf"\b{meta['variable']}\b", "x", meta[key])


def _letters_renamed(meta: Item) -> str:
    """A sum of words with its letters renamed in order of appearance."""
    words = " ".join([*meta["words_letters"], meta["result_letters"]])
    return words.translate({ord(c): ord("a") + i for i, c in enumerate(dict.fromkeys(words.replace(" ", "")))})


def _maze(meta: Item) -> str:
    """The maze in fixed signs; reasoning-gym draws them anew for every maze."""
    signs = {meta["wall"]: "#", meta["path"]: ".", meta["start"]: "S", meta["goal"]: "G"}
    return "/".join("".join(signs[cell] for cell in row) for row in meta["grid"])


def _fields(*names: str) -> Callable[[Item], Any]:
    return lambda meta: [meta[name] for name in names]


def _sorted(name: str, kind: Callable[[Any], Any] = lambda x: x) -> Callable[[Item], Any]:
    return lambda meta: sorted(map(kind, meta[name]))


RULES: dict[str, Callable[[Item], Any]] = {
    "ab": lambda meta: program(meta["question"]),
    "arc_agi": _fields("task_id"),  # the same few hundred tasks, turned and recoloured
    "base_conversion": _fields("decimal_value", "source_base", "target_base"),
    "basic_arithmetic": lambda meta: meta["expression"].replace(" ", ""),
    "caesar_cipher": _fields("clear_text"),
    "chain_sum": _signed_terms,
    "complex_arithmetic": _complex,
    "count_bits": _fields("number"),
    "countdown": lambda meta: [sorted(meta["numbers"]), meta["target"]],
    "cryptarithm": _letters_renamed,
    "decimal_chain_sum": _signed_terms,
    "dice": lambda meta: [sorted(meta["puzzle"]["dice_str"].split(", ")), meta["puzzle"]["target"]],
    "emoji_mystery": _fields("answer"),
    "figlet_font": _fields("answer"),
    "fraction_simplification": _fields("numerator", "denominator"),
    "futoshiki": lambda meta: [meta["puzzle"], sorted(meta["constraints"])],
    "gcd": _sorted("numbers"),
    "graph_color": lambda meta: [meta["puzzle"][part] for part in ("vertices", "edges", "num_colors")],
    "group_anagrams": _sorted("words"),
    "intermediate_integration": _renamed("integrand"),
    "isomorphic_strings": _sorted("words"),
    "jugs": lambda meta: [sorted(meta["puzzle"]["jug_capacities"]), meta["puzzle"]["target"]],
    "kakurasu": _fields("row_sums", "col_sums"),
    "knight_swap": lambda meta: [sorted(meta["board"].items()), sorted(meta["pieces"].items(), key=str)],
    "knights_knaves": lambda meta: repr(meta["statements"]),
    "lcm": _sorted("numbers"),
    "leg_counting": lambda meta: sorted(meta["animals"].items()),
    "letter_jumble": _sorted("original_words"),
    "maze": _maze,
    "mini_sudoku": _fields("puzzle"),
    "n_queens": _fields("puzzle"),
    "number_filtering": _filtering,
    "number_format": lambda meta: [meta["size"], sorted(meta["candidates"])],
    "number_sorting": lambda meta: [meta["direction"], *sorted(map(float, meta["original_numbers"]))],
    "palindrome_generation": _sorted("letters"),
    "polynomial_equations": _renamed("polynomial_expr"),
    "polynomial_multiplication": _fields("polynomial_expr"),
    "prime_factorization": _fields("number"),
    "products": lambda meta: sorted(int(x) for x in meta["expression"].split("*")),
    "puzzle24": _sorted("numbers"),
    "rotate_matrix": lambda meta: [meta["matrix"], meta["num_rotations"] % 4],
    "rush_hour": _fields("board_config"),
    "sentence_reordering": lambda meta: sorted(meta["answer"].split()),
    "shortest_path": lambda meta: ["".join(row) for row in meta["matrix"]],
    "simple_equations": _renamed("equation"),
    "simple_integration": _renamed("integrand"),
    "sokoban": _fields("gamestr"),
    "spell_backward": lambda meta: meta["word"].casefold(),
    "sudoku": _fields("puzzle"),
    "survo": _fields("puzzle"),
    "tsumego": _fields("board"),
    "word_ladder": lambda meta: sorted([meta["start_word"], meta["end_word"]]),
    "word_sequence_reversal": _sorted("words"),
    "word_sorting": lambda meta: [meta["direction"], sorted(meta["transformed_words"])],
}


def identity(name: str, meta: Item) -> Any:
    """The data that makes an item the problem it is; `meta` is its metadata with `question` and `answer`."""
    rule = RULES.get(name)
    return rule(meta) if rule else " ".join(meta["question"].split())
