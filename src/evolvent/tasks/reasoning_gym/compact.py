"""The 12 data sets that the seed models read: a short wording, a short answer, four to six levels each.

A seed model reads one character at a time, so a prompt is a tag and the data, at most 48 characters. It ends
in `=` where the answer is wanted at once, and in `:` where a worked chain comes first; in a chain the answer
is what follows the last `=`. Problems and answers are reasoning-gym's, levels are its own settings. Level 1
is meant to be learned in pre-training, level 4 to be out of reach. Seed models are trained on 1 to 3. Level 5
is one that they get right now and then, and where the likeliest answer is hardly better than a sampled one;
products have that at level 2. A level 6 is out of reach where level 4 is not.

Left out, though short: gcd, lcm, count_bits, letter_counting, binary_alternation and number_sequence (a guess
is right too often at any size), isomorphic_strings (yes or no), simple_equations (0.5 ms a problem), and
prime_factorization (too few problems while it is easy).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reasoning_gym.arithmetic.leg_counting import ANIMALS

from evolvent.tasks.reasoning_gym.identity import program

Meta = Mapping[str, Any]  # reasoning-gym's metadata of an item, with its `question` and `answer`
LONGEST_PROMPT = 48


@dataclass(frozen=True)
class Level:
    """One level: settings of the data set, the longest solution in characters, whether a chain is wanted, and
    which items to keep (`fits`), where the settings alone let trivial ones through."""

    settings: dict[str, Any]
    room: int
    chain: bool = False
    fits: Callable[[Meta], bool] | None = None


@dataclass(frozen=True)
class Wording:
    """How a data set is written. Levels are called `1`, `2`, ... in their order. `judge` decides where several
    answers are right, else the text must match."""

    prompt: Callable[[Meta], str]
    answer: Callable[[Meta], str]
    levels: tuple[Level, ...]
    chain: Callable[[Meta], str] | None = None
    judge: Callable[[Meta, str], bool] | None = None
    example: str = ""

    @property
    def shapes(self) -> dict[str, Level]:
        """The levels by name."""
        return {str(i): level for i, level in enumerate(self.levels, 1)}


# -- numbers ------------------------------------------------------------------------------------------------


def _complex(pair: tuple[float, float]) -> str:
    return f"{int(pair[0])}{int(pair[1]):+d}i"


def _complex_prompt(meta: Meta) -> str:
    return f"cx({_complex(meta['num1'])}){meta['operation']}({_complex(meta['num2'])})"


def _complex_chain(meta: Meta) -> str:
    (a, b), (c, d) = meta["num1"], meta["num2"]
    return ",".join(str(int(x)) for x in (a * c, b * d, a * d, b * c))


def _factors(meta: Meta) -> list[int]:
    return [int(x) for x in meta["expression"].split(" * ")]


def _product_chain(meta: Meta) -> str:
    """The first factor times each digit of the second, signs left out, from the highest place down."""
    a, b = (abs(x) for x in _factors(meta))
    digits = str(b)
    return ",".join(str(a * int(d) * 10 ** (len(digits) - 1 - i)) for i, d in enumerate(digits))


def _product(meta: Meta) -> str:
    a, b = _factors(meta)
    return str(a * b)


def _fraction(meta: Meta) -> str:
    return f"{meta['simplified_numerator']}/{meta['simplified_denominator']}"


def _base_chain(meta: Meta) -> str:
    """The value digit by digit from the left, then the quotients while dividing by the target base."""
    value, running = 0, []
    for digit in meta["source_repr"]:
        value = value * meta["source_base"] + int(digit, 36)
        running.append(str(value))
    quotients = []
    while value := value // meta["target_base"]:
        quotients.append(str(value))
    return ",".join(running) + ";" + ",".join(quotients)


def _animals(meta: Meta) -> str:
    return "legs " + ",".join(f"{count} {animal}" for animal, count in meta["animals"].items())


def _leg_chain(meta: Meta) -> str:
    return "+".join(str(count * ANIMALS[animal]) for animal, count in meta["animals"].items())


# -- lists --------------------------------------------------------------------------------------------------


def _whole(text: str) -> str:
    return str(int(float(text)))  # also `-0` and `-0.0`


def _listed(numbers: list[str]) -> str:
    return ",".join(map(_whole, numbers)) or "-"


def _sort_prompt(meta: Meta) -> str:
    return f"sort{'<' if meta['direction'] == 'ascending' else '>'}{_listed(meta['original_numbers'])}"


def _filter_prompt(meta: Meta) -> str:
    verb, side = meta["operation"].split("_")
    sign = ">" if side == "larger" else "<"
    return f"{'keep' if verb == 'keep' else 'drop'}{sign}{_whole(meta['filter_value'])} " + _listed(
        meta["original_numbers"]
    )


# -- strings and logic --------------------------------------------------------------------------------------


def _palindrome(meta: Meta) -> str:
    """The palindrome whose first half takes the paired letters in the order in which they are listed."""
    letters = list(meta["letters"])
    half: list[str] = []
    middle = ""
    for letter in dict.fromkeys(letters):
        half += [letter] * (letters.count(letter) // 2)
        middle += letter * (letters.count(letter) % 2)
    return "".join(half) + middle + "".join(reversed(half))


def _is_palindrome(meta: Meta, answer: str) -> bool:
    return answer == answer[::-1] and sorted(answer) == sorted(meta["letters"])


AB = {"A#": "A", "#A": "a", "B#": "B", "#B": "b"}
STEPS = {"right": "R", "down": "D", "left": "L", "up": "U"}
MOVES = {"R": (0, 1), "D": (1, 0), "L": (0, -1), "U": (-1, 0)}


def _ab_prompt(meta: Meta) -> str:
    return "ab " + "".join(AB[token] for token in program(meta["question"]))


def _ab_answer(meta: Meta) -> str:
    return "".join(AB[token] for token in meta["answer"].split()) or "-"


def _grid(meta: Meta) -> str:
    return "path " + "/".join("".join(row) for row in meta["matrix"])


def _path(meta: Meta) -> str:
    return "".join(STEPS[step] for step in meta["solution"]) or "-"


def _is_shortest(meta: Meta, answer: str) -> bool:
    """A walk over open cells from * to #, as short as the solution; `-` where there is none."""
    grid, length = meta["matrix"], len(meta["solution"])
    if length == 0 or answer == "-":
        return length == 0 and answer == "-"
    if len(answer) != length or not set(answer) <= set(MOVES):
        return False
    row, column = next((r, c) for r, line in enumerate(grid) for c, cell in enumerate(line) if cell == "*")
    for step in answer:
        row, column = row + MOVES[step][0], column + MOVES[step][1]
        if not (0 <= row < len(grid) and 0 <= column < len(grid[0])) or grid[row][column] == "X":
            return False
    return grid[row][column] == "#"


def _graph(meta: Meta) -> str:
    edges = ",".join(f"{u}{v}" for u, v in meta["puzzle"]["edges"])
    return f"col{meta['num_vertices']} {edges}"


def _colouring(meta: Meta) -> str:
    return "".join(str(meta["possible_answer"][v]) for v in meta["puzzle"]["vertices"])


def _is_colouring(meta: Meta, answer: str) -> bool:
    """One colour for each vertex, `1` to `3`, no edge between equal ones."""
    puzzle = meta["puzzle"]
    colours = set(map(str, puzzle["color_options"]))
    return (
        len(answer) == len(puzzle["vertices"])
        and set(answer) <= colours
        and all(answer[u] != answer[v] for u, v in puzzle["edges"])
    )


def _long_way(meta: Meta) -> bool:
    return len(meta["solution"]) >= 6


def _single_first(meta: Meta) -> bool:
    """Whether the letter in the middle of the palindrome is the first one given."""
    letters = meta["letters"]
    return bool(letters.count(letters[0]) % 2)


def _few_left(meta: Meta) -> bool:
    return 1 <= len(meta["result"]) <= 3


def _complex_settings(size: int, operations: str) -> dict[str, Any]:
    weights = [1 / len(operations)] * len(operations)
    bounds = {"min_real": -size, "max_real": size, "min_imag": -size, "max_imag": size}
    return {**bounds, "operations": tuple(operations), "operations_weights": weights}


def _fixed(low: str, high: str, value: int, **more: Any) -> dict[str, Any]:
    return {low: value, high: value, **more}


def _numbers(count: int, low: int, high: int, more: int = 0) -> dict[str, Any]:
    bounds = {"min_value": low, "max_value": high, "min_decimals": 0, "max_decimals": 0}
    return {"min_numbers": count, "max_numbers": count + more, **bounds}


def _legs(kinds: int, low: int, high: int) -> dict[str, Any]:
    return {"min_animals": kinds, "max_animals": kinds, "min_instances": low, "max_instances": high}


def _bases(high: int, value: int) -> dict[str, Any]:
    return {"min_base": 2, "max_base": high, "min_value": 1, "max_value": value}


def _fractions(value: int, low: int, high: int) -> dict[str, Any]:
    return {"max_value": value, "min_factor": low, "max_factor": high, "styles": ("plain",)}


def _digits(count: int, signed: bool = False) -> dict[str, Any]:
    return {"min_digits": count, "max_digits": count, "allow_negation": signed}


def _maze(rows: int, columns: int, blocked: float) -> dict[str, Any]:
    return {"min_rows": rows, "max_rows": rows, "min_cols": columns, "max_cols": columns, "p_blocked": blocked}


def _square(side: int, blocked: float) -> dict[str, Any]:
    return _maze(side, side, blocked)


def _vertices(count: int, density: float, more: int = 0) -> dict[str, Any]:
    return {"min_num_vertices": count, "max_num_vertices": count + more, "edge_probability": density}


WORDINGS: dict[str, Wording] = {
    "complex_arithmetic": Wording(
        _complex_prompt,
        lambda meta: _complex(meta["result"]),
        (
            Level(_complex_settings(9, "+-"), 8),
            Level(_complex_settings(12, "*"), 28, chain=True),
            Level(_complex_settings(12, "*"), 9),
            Level(_complex_settings(99, "*"), 14),
            Level(_complex_settings(11, "+-"), 8),
        ),
        chain=_complex_chain,
        example="cx(3+4i)-(1-2i)=2+6i",
    ),
    "products": Wording(
        lambda meta: "mul" + "*".join(map(str, _factors(meta))),
        _product,
        (
            Level(_digits(2, signed=True), 14, chain=True),
            Level(_digits(2, signed=True), 6),
            Level(_digits(3), 24, chain=True),
            Level(_digits(4), 8),
        ),
        chain=_product_chain,
        example="mul12*34:360,48=408",
    ),
    "fraction_simplification": Wording(
        lambda meta: f"frac{meta['numerator']}/{meta['denominator']}",
        _fraction,
        (
            Level(_fractions(60, 2, 6), 7, chain=True),
            Level(_fractions(60, 2, 20), 8, chain=True),
            Level(_fractions(200, 2, 50), 7),
            Level(_fractions(1000, 11, 100), 9),
            Level(_fractions(80, 2, 20), 8, chain=True),
        ),
        chain=lambda meta: str(meta["factor"]),
        example="frac36/48:12=3/4",
    ),
    "base_conversion": Wording(
        lambda meta: f"base{meta['source_base']}>{meta['target_base']} {meta['source_repr']}",
        lambda meta: meta["target_repr"],
        (
            Level(_bases(6, 255), 43, chain=True),
            Level(_bases(9, 319), 48, chain=True),
            Level(_bases(6, 255), 8),
            Level(_bases(16, 100_000), 17),
            Level(_bases(9, 500), 50, chain=True),
        ),
        chain=_base_chain,
        example="base3>2 1021:1,3,11,34;17,8,4,2,1=100010",
    ),
    "leg_counting": Wording(
        _animals,
        lambda meta: str(meta["total_legs"]),
        (
            Level(_legs(2, 1, 9), 11, chain=True),
            Level(_legs(3, 1, 15), 15, chain=True),
            Level(_legs(3, 1, 15), 3),
            Level(_legs(3, 100, 999), 5),
            Level(_legs(2, 1, 30), 11, chain=True),
        ),
        chain=_leg_chain,
        example="legs 3 crab,2 dog:30+8=38",
    ),
    "number_sorting": Wording(
        _sort_prompt,
        lambda meta: _listed(meta["sorted_numbers"]),
        (
            Level(_numbers(3, 0, 99), 8),
            Level(_numbers(5, 0, 99), 14),
            Level(_numbers(6, -99, 99), 23),
            Level(_numbers(6, -999, 999), 29),
            Level(_numbers(5, 0, 99, more=2), 20),
        ),
        example="sort<34,12,5=5,12,34",
    ),
    "number_filtering": Wording(
        _filter_prompt,
        lambda meta: _listed(meta["result"]),
        (
            Level(_numbers(3, 0, 20), 8),
            Level(_numbers(5, 0, 99), 14),
            Level(_numbers(6, -99, 99), 23),
            Level(_numbers(7, -999, 999), 34),
            Level(_numbers(5, -99, 99), 11, fits=_few_left),
        ),
        example="keep>9 3,18,12=18,12",
    ),
    "spell_backward": Wording(
        lambda meta: f"rev {meta['word']}",
        lambda meta: meta["word"][::-1],
        (
            Level({"min_word_len": 3, "max_word_len": 5}, 5),
            Level({"min_word_len": 6, "max_word_len": 6}, 6),
            Level({"min_word_len": 7, "max_word_len": 8}, 8),
            Level({"min_word_len": 9, "max_word_len": 10}, 10),
            Level({"min_word_len": 8, "max_word_len": 10}, 10),
        ),
        example="rev candle=eldnac",
    ),
    "palindrome_generation": Wording(
        lambda meta: "pal " + "".join(meta["letters"]),
        _palindrome,
        (
            Level(_fixed("min_length", "max_length", 5), 5),
            Level(_fixed("min_length", "max_length", 7), 7),
            Level(_fixed("min_length", "max_length", 9), 9),
            Level(_fixed("min_length", "max_length", 14), 14),
            Level(_fixed("min_length", "max_length", 9), 9, fits=_single_first),
        ),
        judge=_is_palindrome,
        example="pal tsats=tsast",
    ),
    "ab": Wording(
        _ab_prompt,
        _ab_answer,
        (
            Level({"length": 7}, 7),
            Level({"length": 10}, 10),
            Level({"length": 14}, 14),
            Level({"length": 24}, 24),
            Level({"length": 17}, 17),
        ),
        example="ab AbaB=bB",
    ),
    "shortest_path": Wording(
        _grid,
        _path,
        (
            Level(_square(3, 0.3), 8),
            Level(_square(4, 0.3), 11),
            Level(_square(5, 0.3), 18),
            Level(_square(6, 0.25), 24, fits=_long_way),
            Level(_square(6, 0.3), 24),
            Level(_maze(4, 9, 0.25), 24, fits=_long_way),
        ),
        judge=_is_shortest,
        example="path *O#/OXO/XXO=RR",
    ),
    "graph_color": Wording(
        _graph,
        _colouring,
        (
            Level(_vertices(6, 0.3), 6),
            Level(_vertices(7, 0.4), 7),
            Level(_vertices(8, 0.4), 8),
            Level(_vertices(10, 0.3), 10),
            Level(_vertices(8, 0.3, more=2), 10),
        ),
        judge=_is_colouring,
        example="col4 01,12,23=1212",
    ),
}

COMPACT = tuple(WORDINGS)
