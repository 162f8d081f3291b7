"""Strict verdicts on answers in reasoning-gym's own wording: the whole answer is right, or it counts nothing.

reasoning-gym gives marks for answers that contain the right one, are near it, or only look like one
(measured: 44 of 92 data sets pay for "x or right or y"), and hands some answers to `eval`. So no verdict
comes from `score_answer`. The answer is compared with the one right answer in the form that the question asks
for (`FORMS`), or, where several answers are right, checked against the problem (`puzzles.CHECKS`).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

from evolvent.tasks.reasoning_gym.expression import NotAFormula, is_antiderivative, polynomial
from evolvent.tasks.reasoning_gym.puzzles import CHECKS

Item = Mapping[str, Any]
Check = Callable[[Item, str], bool]

NUMBER = re.compile(r"[-+]?(\d{1,300}|\d{1,3}(,\d{3}){1,99})(\.\d{1,60})?([eE][-+]?\d{1,3})?")
LONGEST_LIST = 50_000


def number(text: str) -> Decimal | None:
    """The number that the whole text is, thousands separated by commas or not; else None."""
    return Decimal(text.replace(",", "")) if NUMBER.fullmatch(text) else None


def lines(text: str) -> list[str]:
    """Lines that are not empty, with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def literal(text: str) -> Any:
    """A list written as in JSON or Python; None if the text is not one. Nothing is run."""
    if not text.startswith("[") or len(text) > LONGEST_LIST:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def same_text(item: Item, answer: str) -> bool:
    """The same characters, up to spacing."""
    return lines(answer) == lines(item["answer"])


def same_word(item: Item, answer: str) -> bool:
    """The same text, upper or lower case."""
    return [line.casefold() for line in lines(answer)] == [line.casefold() for line in lines(item["answer"])]


def same_number(item: Item, answer: str) -> bool:
    """The same number."""
    value = number(answer)
    return value is not None and value == number(item["answer"])


def same_list(item: Item, answer: str) -> bool:
    """The same list of lists or integers."""
    found = literal(answer)
    return found is not None and repr(found) == repr(literal(item["answer"]))


def same_numbers_listed(item: Item, answer: str) -> bool:
    """The same list of numbers, each a number or a string."""
    found = literal(answer)
    if not isinstance(found, list) or not all(type(x) in (str, int, float) for x in found):
        return False
    values = [number(str(x)) for x in found]
    return None not in values and values == [number(x) for x in literal(item["answer"])]


def same_groups(item: Item, answer: str) -> bool:
    """The same groups of words, in any order."""
    found = literal(answer)
    if not isinstance(found, list) or not all(
        isinstance(group, list) and all(isinstance(word, str) for word in group) for group in found
    ):
        return False
    return sorted(map(sorted, found)) == sorted(map(sorted, item["solution"]))


def same_partitions(item: Item, answer: str) -> bool:
    """The same partitions, in any order; within one, order counts."""
    found = literal(answer)
    if not isinstance(found, list) or not all(isinstance(part, list) for part in found):
        return False
    return sorted(map(repr, found)) == sorted(map(repr, item["solution"]))


def same_grid(item: Item, answer: str) -> bool:
    """The same rows of numbers."""
    rows, wanted = ([[number(x) for x in line.split()] for line in lines(text)] for text in (answer, item["answer"]))
    return rows == wanted and all(None not in row for row in rows)


def _rounded(value: Decimal, places: int) -> set[Decimal]:
    unit = Decimal(1).scaleb(-places)
    return {value.quantize(unit, rounding=rule) for rule in (ROUND_HALF_EVEN, ROUND_HALF_UP)}


def geometry(item: Item, answer: str) -> bool:
    """An angle, a radius or a point, rounded to three places as the question asks (angles also to two)."""
    kind = item["task_type"]
    if kind == "angle_measure":
        value = number(answer.removesuffix("°").strip())
        true = Decimal(repr(item["angle_ABC_degrees"]))
        return value is not None and value in _rounded(true, 3) | _rounded(true, 2)
    if kind == "incircle_radius":
        return same_number(item, answer)
    pairs = [re.fullmatch(r"\(\s*(\S+)\s*,\s*(\S+)\s*\)", text) for text in (answer, item["answer"])]
    found, wanted = ([number(x) for x in pair.groups()] if pair else [None] for pair in pairs)
    return None not in found and found == wanted


def hexadecimal(item: Item, answer: str) -> bool:
    """A signed hexadecimal number, with its `0x`."""
    return bool(re.fullmatch(r"-?0[xX][0-9a-fA-F]{1,400}", answer)) and int(answer, 16) == int(item["answer"], 16)


def probability(item: Item, answer: str) -> bool:
    """The exact fraction, or its decimal value, rightly rounded to at least four significant digits."""
    exact = Fraction(item["rational"]["numerator"], item["rational"]["denominator"])
    if fraction := re.fullmatch(r"(\d{1,9})\s*/\s*(\d{1,9})", answer):
        return int(fraction[2]) > 0 and Fraction(int(fraction[1]), int(fraction[2])) == exact
    value = number(answer)
    if value is None or not 0 <= value <= 1:
        return False
    true = Decimal(exact.numerator) / Decimal(exact.denominator)
    if value == true:
        return True
    _, digits, exponent = value.as_tuple()
    return len(digits) >= 4 and isinstance(exponent, int) and value in _rounded(true, -exponent)


COMPLEX = re.compile(r"(?:([-+]?\d{1,30}(?:\.\d+)?)(?![\d.i]))?(?:([-+]?)(\d{1,30}(?:\.\d+)?)?i)?")


def complex_number(item: Item, answer: str) -> bool:
    """a + bi, with either part left out where it is zero."""
    text = answer.replace(" ", "")
    match = COMPLEX.fullmatch(text)
    if not match or not text or (match[1] and text.endswith("i") and not match[2]):
        return False
    imaginary = Decimal(match[3] or 1) * (-1 if match[2] == "-" else 1) if text.endswith("i") else Decimal(0)
    return [Decimal(match[1] or 0), imaginary] == [Decimal(int(part)) for part in item["result"]]


def fraction(item: Item, answer: str) -> bool:
    """A fraction in lowest terms, plain or in TeX."""
    match = re.fullmatch(r"\$?\s*(?:(\d+)\s*/\s*(\d+)|\\d?frac\s*{(\d+)}\s*{(\d+)})\s*\$?", answer)
    if not match or len(answer) > 60:
        return False
    top, bottom = (int(x) for x in match.groups() if x is not None)
    return top * item["denominator"] == bottom * item["numerator"] and math.gcd(top, bottom) == 1


def factors(item: Item, answer: str) -> bool:
    """The prime factors, each as often as it divides, in any order."""
    parts = [part.strip() for part in re.split(r"[×*]", answer)]
    return all(re.fullmatch(r"\d{1,12}", part) for part in parts) and sorted(map(int, parts)) == item["factors"]


def candidate(item: Item, answer: str) -> bool:
    """The wanted one of the numbers in the question, however it is written."""
    value = number(answer)
    if value is None:
        return False
    wanted = min(item["formatted_candidates"], key=lambda text: abs(Decimal(text.replace(",", "")) - _float(item)))
    return value in (number(wanted), number(item["answer"]))


def _float(item: Item) -> Decimal:
    return Decimal(repr(float(item["solution"])))


def roots(item: Item, answer: str) -> bool:
    """All real solutions, to four places, in any order."""
    found = [number(part.strip()) for part in answer.split(",")]
    wanted = [number(part.strip()) for part in item["answer"].split(",")]
    return None not in found and sorted(x for x in found if x is not None) == sorted(x for x in wanted if x is not None)


def three_figures(text: str) -> str:
    """A number in scientific notation with three significant digits."""
    return f"{Decimal(text):.2e}"


def power(item: Item, answer: str) -> bool:
    """The number, rounded to three significant digits."""
    value = number(answer)
    return value is not None and value == Decimal(three_figures(item["answer"]))


def product(item: Item, answer: str) -> bool:
    """The polynomial, multiplied out."""
    try:
        return polynomial(answer) == polynomial(item["answer"])
    except NotAFormula:
        return False


def antiderivative(item: Item, answer: str) -> bool:
    """A function whose derivative is the integrand, with or without `+ C`."""
    return is_antiderivative(answer, item["integrand"], item["variable"])


def _names(text: str) -> list[str]:
    return text.split()


NUMBERS = _names(
    "aiw basic_arithmetic binary_alternation chain_sum circuit_logic count_bits count_primes "
    "decimal_arithmetic decimal_chain_sum gcd gsm_symbolic largest_island lcm leg_counting "
    "letter_counting maze number_sequence products rectangle_count rotten_oranges self_reference "
    "simple_equations simple_geometry"
)
WORDS = _names(
    "acre caesar_cipher calendar_arithmetic color_cube_rotation course_schedule family_relationships "
    "figlet_font game_of_life_halting isomorphic_strings mahjong_puzzle needle_haystack ransom_note "
    "syllogism tsumego zebra_puzzles"
)
FORMS: dict[str, Check] = {
    **dict.fromkeys(NUMBERS, same_number),
    **dict.fromkeys(WORDS, same_word),
    "advanced_geometry": geometry,
    "bitwise_arithmetic": hexadecimal,
    "coin_flip": probability,
    "complex_arithmetic": complex_number,
    "fraction_simplification": fraction,
    "game_of_life": same_list,
    "group_anagrams": same_groups,
    "intermediate_integration": antiderivative,
    "list_functions": same_list,
    "number_filtering": same_numbers_listed,
    "number_format": candidate,
    "number_sorting": same_numbers_listed,
    "palindrome_partitioning": same_partitions,
    "polynomial_equations": roots,
    "polynomial_multiplication": product,
    "pool_matrix": same_grid,
    "power_function": power,
    "prime_factorization": factors,
    "simple_integration": antiderivative,
}


def is_right(name: str, item: Item, answer: str) -> bool:
    """Whether the answer to an item of a data set is right; for all others the text must be the same."""
    check = CHECKS.get(name) or FORMS.get(name) or same_text
    return check(item, answer)


def usable(name: str, item: Item) -> bool:
    """Whether an item can be asked at all: its own answer is not empty, and right by our own reckoning."""
    if name in ("boxnet", "graph_color", "rubiks_cube", "rush_hour"):  # many answers; none is given as the answer
        return True
    answer = item["answer"]
    return isinstance(answer, str) and bool(answer.strip()) and is_right(name, item, written(name, item) or answer)


def written(name: str, item: Item) -> str | None:
    """reasoning-gym's answer in the form that the question asks for; None where it gives none."""
    if name == "graph_color":
        return "{" + ", ".join(f'"{v}": {c}' for v, c in item["possible_answer"].items()) + "}"
    if name == "rubiks_cube":
        return item["example_correct_answer"] or None
    if name == "power_function":
        return three_figures(item["answer"])
    if name == "knight_swap" and item["is_possible"]:
        return None  # which of the shortest ways it gives depends on the interpreter's hash seed
    return item["answer"]


# Data sets whose part credit grows with what is right, cell by cell or by distance, and is near nothing for text
# that only looks like an answer. The others pay for containing the answer or for any well-formed text, or run it.
PART_CREDIT = _names(
    "calendar_arithmetic complex_arithmetic emoji_mystery futoshiki mini_sudoku rectangle_count "
    "sentence_reordering sudoku word_sorting"
)


def part_credit(name: str, dataset: Any, item: Item, answer: str) -> float:
    """reasoning-gym's own score of an answer, where its part credit is sound; else 0."""
    if name not in PART_CREDIT:
        return 0.0
    try:
        return float(min(max(dataset.score_answer(answer, {"metadata": dict(item), **item}), 0.0), 1.0))
    except (ValueError, TypeError, IndexError, KeyError, AttributeError):
        return 0.0  # an answer that its parser cannot read
