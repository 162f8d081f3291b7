"""reasoning-gym through the adapter: splits, verdicts against attacks and by hand, and the compact wordings."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import deque
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reasoning_gym.arithmetic.leg_counting import ANIMALS

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.random import stream
from evolvent.core.records import Problem
from evolvent.tasks.base import SPLITS, Task, split_of
from evolvent.tasks.reasoning_gym import COMPACT, NAMES, REFUSED, ReasoningGym
from evolvent.tasks.reasoning_gym.compact import WORDINGS
from evolvent.tasks.reasoning_gym.expression import NotAFormula, arithmetic, is_antiderivative, polynomial
from evolvent.tasks.reasoning_gym.identity import identity
from evolvent.tasks.reasoning_gym.source import FRESH, GLOBAL_RANDOM, NO_LEVEL, ORDER, levels_of
from evolvent.tasks.reasoning_gym.verify import FORMS, is_right, written

LEVELS = [(name, level) for name, words in WORDINGS.items() for level in words.shapes]
SLOW = {  # more than about 5 ms an item, or a large file to read
    "advanced_geometry", "arc_agi", "countdown", "figlet_font", "futoshiki", "game_of_life", "game_of_life_halting",
    "group_anagrams", "intermediate_integration", "jugs", "knight_swap", "number_sequence", "polynomial_equations",
    "polynomial_multiplication", "puzzle24", "quantum_lock", "rearc", "rubiks_cube", "simple_integration", "sokoban",
    "sudoku", "word_ladder", "zebra_puzzles",
}  # fmt: skip
QUICK = [name for name in NAMES if name not in SLOW]
WITHOUT_ANSWER = {"boxnet", "rush_hour"}


def tagged(answer: str) -> str:
    return f"<answer>{answer}</answer>"


def draws(task: Task, split: str, count: int, level: str | None = None) -> list[Problem]:
    rng = stream(5, "test", task.name, split)
    return [task.draw(split, rng, level) for _ in range(count)]


def attacks(gold: str, others: list[str]) -> list[str]:
    one, two = others
    several = [f"{gold} or {one}", f"{one} or {gold}", f"{one}, {gold}, {two}", f"{one}\n{gold}\n{two}"]
    around = [f"{gold}7", f"{gold} 7", f"The answer is {gold}", f"I think it is {gold}, but I am not sure."]
    return ["zzz", "", "[[1], ['a', 2]]", "1/0", "[" * 3000, "x**x**x**9999", "½", *several, *around]


def audit(name: str, count: int, trap: Path) -> None:
    """The right answer counts 1, everything that only names it counts 0, and nothing written is run."""
    task = ReasoningGym(name, ("default",), "plain")
    problems = draws(task, "train", count)
    golds = [written(name, p.data["item"]) for p in problems]
    for problem, gold in zip(problems, golds, strict=True):
        for text in (f"open({str(trap)!r}, 'w')", f"[open({str(trap)!r}, 'w')]"):
            assert task.score(problem, tagged(text)).outcome == 0
        if gold is None:
            assert name in WITHOUT_ANSWER or name == "knight_swap"
            continue
        assert task.score(problem, f"so <answer> {gold}\n</answer> it is").outcome == 1, gold
        others = [g for g in golds if g is not None and not is_right(name, problem.data["item"], g)]
        others = [*others, "nothing", "-98765"][:2]
        for text in attacks(gold, others):
            score = task.score(problem, tagged(text))
            assert score.outcome == 0, (text, gold)
            assert 0 <= score.shaping["partial"] < 1
        assert task.score(problem, tagged(others[0])).outcome == 0
    assert not trap.exists()


@pytest.mark.parametrize("name", QUICK)
def test_right_answers_count_and_attacks_do_not(name: str, tmp_path: Path) -> None:
    audit(name, 3, tmp_path / "trap")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_audit_of_every_data_set(name: str, tmp_path: Path) -> None:
    audit(name, 2 if name in ("futoshiki", "knight_swap", "puzzle24", "zebra_puzzles") else 12, tmp_path / "trap")


def splits_hold(name: str) -> None:
    task = ReasoningGym(name, ("default",), "plain")
    for split in SPLITS:
        for problem in draws(task, split, 2):
            assert split_of(problem.key) == split
            assert problem.prompt[0].content.startswith(problem.data["item"]["question"].strip())
    assert draws(task, "test", 1) == draws(task, "test", 1)


@pytest.mark.parametrize("name", QUICK)
def test_splits_share_no_key(name: str) -> None:
    splits_hold(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SLOW))
def test_splits_share_no_key_slow(name: str) -> None:
    splits_hold(name)


def test_every_data_set_has_a_place() -> None:
    assert len(NAMES) + len(REFUSED) == 106  # 105 and the one that mixes them
    assert set(COMPACT) <= set(NAMES)
    assert set(FORMS) <= set(NAMES)
    assert not any(level in levels_of(name) for name, gone in NO_LEVEL.items() for level in gone)
    assert isinstance(ReasoningGym("gcd", ("default", "2"), "plain"), Task)


# -- identity ------------------------------------------------------------------------------------------------

SAME = [
    ("gcd", {"numbers": [12, 18]}, {"numbers": [18, 12]}),
    ("products", {"expression": "12 * -34"}, {"expression": "-34 * 12"}),
    ("chain_sum", {"expression": "12 - 5 + 7"}, {"expression": "12 + 7 - 5"}),
    ("simple_equations", {"equation": "3*t + 1 = 7", "variable": "t"}, {"equation": "3*x + 1 = 7", "variable": "x"}),
    ("complex_arithmetic", {"num1": (1.0, 2.0), "num2": (3.0, 4.0), "operation": "*"},
     {"num1": (3.0, 4.0), "num2": (1.0, 2.0), "operation": "*"}),
    ("cryptarithm", {"words_letters": ["AB", "B"], "result_letters": "CA"},
     {"words_letters": ["XY", "Y"], "result_letters": "ZX"}),
    ("number_filtering", {"original_numbers": ["1", "2.0"], "filter_value": "1.5", "operation": "keep_larger"},
     {"original_numbers": ["2", "1.0"], "filter_value": "1.50", "operation": "remove_smaller"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "one", "other"), SAME)
def test_equal_problems_share_an_identity(name: str, one: dict, other: dict) -> None:
    assert identity(name, one) == identity(name, other)


def test_different_problems_have_different_identities() -> None:
    one, two = {"num1": (1.0, 2.0), "num2": (3.0, 4.0)}, {"num1": (3.0, 4.0), "num2": (1.0, 2.0)}
    assert len({str(identity("complex_arithmetic", {**x, "operation": "-"})) for x in (one, two)}) == 2
    assert identity("chain_sum", {"expression": "1 - 2"}) != identity("chain_sum", {"expression": "2 - 1"})


# -- verdicts, each against a value worked out by hand ------------------------------------------------------

COIN = {"answer": "0.3125", "rational": {"numerator": 5, "denominator": 16}}
THIRD = {"answer": "0.3333333333", "rational": {"numerator": 1, "denominator": 3}}
GRID = {"puzzle": [[0, 2, 3], [4, 0, 9], [5, 7, 12]], "candidate_numbers": [1, 5]}
TOWER = {"num_disks": 2, "num_pegs": 3, "start_peg": 1, "target_peg": 3}
FRACTION = {"numerator": 36, "denominator": 48}
VERDICTS = [
    ("coin_flip", COIN, {"0.3125": 1, "5/16": 1, "10/32": 1, "0.3126": 0, "0.312": 0, "5/16 7": 0}),
    ("coin_flip", THIRD, {"1/3": 1, "0.3333": 1, "0.33": 0, "0.33334": 0, "0.3": 0}),
    ("game_of_life_halting", {"answer": "True"}, {"True": 1, "true": 1, "False": 0, "zzz": 0}),
    ("gsm_symbolic", {"answer": "12"}, {"12": 1, "12.0": 1, "12 or 13": 0, "12 apples": 0}),
    ("number_sorting", {"answer": "['1.5', '2.0']"}, {"['1.5', '2']": 1, "[1.5, 2.0]": 1, "['1.4', '2.0']": 0}),
    ("puzzle24", {"numbers": [1, 2, 3, 4]}, {"1*2*3*4": 1, "(1+3)*(2+4)": 1, "6*4*1*1": 0, "24": 0, "4*3*2": 0}),
    ("countdown", {"numbers": [3, 5, 7], "target": 22}, {"3*5+7": 1, "-7+5*3+14": 0, "7+5*3": 1, "3*5+7.0": 0}),
    ("complex_arithmetic", {"result": (0, -4)},
     {"-4i": 1, "0 - 4i": 1, "0.0 - 4.0i": 1, "-4": 0, "4i": 0, "-4i+0": 0, "0-4": 0, "-44i": 0}),
    ("complex_arithmetic", {"result": (3, 0)}, {"3": 1, "3.00": 1, "3+0i": 1, "3i": 0, "33": 0}),
    ("fraction_simplification", FRACTION, {"3/4": 1, "$\\frac{3}{4}$": 1, "6/8": 0, "3/44": 0, "$3/4$": 1}),
    ("prime_factorization", {"factors": [2, 2, 3]}, {"2 × 2 × 3": 1, "3*2*2": 1, "4 × 3": 0, "2 × 2 × 3 × 1": 0}),
    ("power_function", {"answer": "-527.9038"}, {"-5.28e+2": 1, "-528": 1, "-527.9038": 0, "5.28e2": 0}),
    ("polynomial_equations", {"answer": "-0.04, 0.0"}, {"0, -0.04": 1, "-0.04": 0, "-0.0400, 0.0": 1, "": 0}),
    ("bitwise_arithmetic", {"answer": "-0x1f"}, {"-0x1F": 1, "-31": 0, "0x1f": 0}),
    ("survo", GRID, {"1 2 3\n4 5 9\n5 7 12": 1, "5 2 3\n4 1 9\n5 7 12": 0, "1 2 3\n4 5 9": 0}),
    ("knights_knaves", {"answer": "Ann is a knave, and Bob is a knight."},
     {"Bob is a knight, and Ann is a knave": 1, "Ann is a knave, and Bob is a knight. 7": 0, "Ann is a knave": 0}),
    ("jugs", {"puzzle": {"jug_capacities": [3, 5, 7], "target": 2}},
     {'["fill B", "pour B->A"]': 1, '["fill B"]': 0, '["fill D"]': 0, '["pour A->A"]': 0, "[]": 0}),
    ("quantum_lock", {"answer": "C → A", "initial_value": 0, "initial_state": "red", "target_value": 2, "buttons": [
        {"name": "A", "type": "multiply", "value": 2, "active_state": "any"},
        {"name": "C", "type": "add", "value": 1, "active_state": "red"}]},
     {"C → A": 1, "C->A": 1, "C → A 7": 0, "A → C → A": 0, "press C, then A": 0}),
    ("tower_of_hanoi", TOWER, {
        "Move disk 1 from Peg 1 to Peg 2\nMove disk 2 from Peg 1 to Peg 3\nMove disk 1 from Peg 2 to Peg 3": 1,
        "Move disk 1 from Peg 1 to Peg 3\nMove disk 1 from Peg 3 to Peg 2\nMove disk 2 from Peg 1 to Peg 3\n"
        "Move disk 1 from Peg 2 to Peg 3": 1,
        "Move disk 2 from Peg 1 to Peg 3\nMove disk 1 from Peg 1 to Peg 3": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "item", "verdicts"), VERDICTS)
def test_verdicts(name: str, item: dict, verdicts: dict[str, int]) -> None:
    item = {"question": "", "answer": "", **item}
    assert {text: int(is_right(name, item, text)) for text in verdicts} == verdicts


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9))
@settings(max_examples=50, deadline=None)
def test_numbers_count_only_when_equal(a: int, b: int) -> None:
    assert is_right("gcd", {"answer": str(a)}, str(b)) == (a == b)
    assert is_right("gcd", {"answer": str(a)}, f"{a:,}")


def test_formulas_are_read_not_run() -> None:
    assert arithmetic("-(3+4)*2/7") == (Fraction(-2), [3, 4, 2, 7])
    assert polynomial("3*x**2 - x*y + 4 - 4") == {"x2": 3, "x1y1": -1}
    for text in ("__import__('os')", "1 if 1 else 2", "2**3", "True", "f(1)", "(1", "3 4"):
        with pytest.raises(NotAFormula):
            arithmetic(text)
    assert not is_right("polynomial_multiplication", {"answer": "x**2 - 1"}, "(x + 1)*(x - 1)")
    assert is_antiderivative("x**3/3 + sin(x)*E**2 + C", "x**2 + exp(2)*cos(x)", "x")
    assert is_antiderivative("2*(2 - 8*x)**(3/2)/3", "-8*sqrt(2 - 8*x)", "x")
    assert not is_antiderivative("Integral(x**2, x)", "x**2", "x")
    assert not is_antiderivative("x**3/3 + x/1000000", "x**2", "x")
    assert not is_antiderivative("9**9**9**9*x", "2", "x")


def test_rush_hour_wants_free_moves() -> None:
    item = {"board_config": "oooooooooBooAAoBoooooBoooooooooooooo"}
    verdicts = {"B+2 A+4": 1, "B+2 A+1 A+3": 1, "A+4": 0, "B+3 A+4": 0, "B+2 A+5": 0, "Move B+2 A+4": 0, "B+2 A+3": 0}
    assert {text: int(is_right("rush_hour", item, text)) for text in verdicts} == verdicts


def test_boxnet_wants_legal_plans() -> None:
    item = {"initial_state": {"0.5_0.5": ["box_red", "target_blue"], "0.5_1.5": ["target_red", "box_blue"]}}
    left, right = "Agent[0.5, 0.5]", "Agent[0.5, 1.5]"
    swap = {left: "move(box_red, square[0.5, 1.5])", right: "move(box_blue, square[0.5, 0.5])"}
    plan = [swap, {left: "move(box_blue, target_blue)", right: "move(box_red, target_red)"}]
    assert is_right("boxnet", item, json.dumps(plan))
    assert not is_right("boxnet", item, json.dumps(plan[:1]))
    assert not is_right("boxnet", item, json.dumps([{**plan[0], **plan[1]}]))
    assert not is_right("boxnet", item, json.dumps([plan[1]]))
    assert not is_right("boxnet", item, "[]")


# -- errors --------------------------------------------------------------------------------------------------


def test_bad_input_says_what_to_do() -> None:
    for arguments, message in {
        ("gcdd", (), "plain"): "did you mean gcd",
        ("codeio", (), "plain"): "is refused: it runs program text",
        ("zebra_puzzles", (), "compact"): "no compact wording",
        ("products", ("5",), "compact"): "no level `5`",
        ("knight_swap", ("1",), "plain"): "no level `1`",
    }.items():
        with pytest.raises(UserError, match=message):
            ReasoningGym(*arguments)


def test_a_split_without_problems_ends_in_an_error() -> None:
    task = ReasoningGym("tower_of_hanoi", ("1",), "plain")
    assert split_of(task.draw("train", stream(0)).key) == "train"
    with pytest.raises(UserError, match="no gate problem"):
        task.draw("gate", stream(0))


def test_a_verifier_that_breaks_is_not_a_wrong_answer() -> None:
    task = ReasoningGym("survo", ("default",), "plain")
    problem = task.draw("train", stream(0))
    broken = Problem(problem.key, problem.prompt, {"item": {}, "level": "default"})
    with pytest.raises(VerifierError, match="survo"):
        task.score(broken, tagged("1 2 3"))


@pytest.mark.slow
def test_items_depend_on_their_seed_alone() -> None:
    program = (
        "import random, sys; import numpy as np; from evolvent.tasks.reasoning_gym.source import Source\n"
        "random.seed(int(sys.argv[1])); np.random.seed(int(sys.argv[1]))\n"
        "state = lambda: (random.getstate(), np.random.get_state()[1].tolist(), np.random.get_state()[2:])\n"
        "before = state()\n"
        f"for name in {sorted([*ORDER, *FRESH, *GLOBAL_RANDOM])!r}:\n"
        "    print([(i['question'], i['answer']) for i in Source.of_level(name, 'default').first(20)])\n"
        "assert state() == before\n"
    )
    run = [sys.executable, "-c", program]
    seen = [
        subprocess.run([*run, seed], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True).stdout
        for seed in ("1", "2")
    ]
    assert seen[0] == seen[1]


# -- compact wording: the answer is worked out again from the prompt alone ----------------------------------


def rewrite(program: str) -> str:
    """A::B with capitals for `A#` and small letters for `#A`: rewrite neighbours until nothing changes."""
    rules = {"Aa": "", "Bb": "", "Ab": "bA", "Ba": "aB"}
    while found := re.search("[AB][ab]", program):
        program = program[: found.start()] + rules[found[0]] + program[found.end() :]
    return program or "-"


def shortest(grid: list[str]) -> int | None:
    cells = {(r, c): cell for r, row in enumerate(grid) for c, cell in enumerate(row)}
    start = next(place for place, cell in cells.items() if cell == "*")
    distance, queue = {start: 0}, deque([start])
    while queue:
        r, c = queue.popleft()
        if cells[r, c] == "#":
            return distance[r, c]
        for place in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
            if cells.get(place, "X") != "X" and place not in distance:
                distance[place] = distance[r, c] + 1
                queue.append(place)
    return None


def holds(name: str, prompt: str, answer: str) -> bool:
    """Whether the answer is right, by the prompt alone."""
    match name:
        case "complex_arithmetic":
            a, op, b = re.fullmatch(r"cx\((.+?)\)([-+*])\((.+?)\)", prompt).groups()  # type: ignore
            x, y, z = (complex(t.replace("i", "j")) for t in (a, b, answer))
            return z == {"+": x + y, "-": x - y, "*": x * y}[op]
        case "products":
            return int(answer) == int(np.prod([int(x) for x in prompt[3:].split("*")]))
        case "fraction_simplification":
            return str(Fraction(prompt[4:])) == answer.removesuffix("/1")
        case "base_conversion":
            source, target, text = re.fullmatch(r"base(\d+)>(\d+) (\w+)", prompt).groups()  # type: ignore
            return int(text, int(source)) == int(answer, int(target)) and not answer.startswith("0")
        case "leg_counting":
            pairs = [part.split(" ", 1) for part in prompt.removeprefix("legs ").split(",")]
            return int(answer) == sum(int(n) * ANIMALS[animal] for n, animal in pairs)
        case "number_sorting":
            numbers = [int(x) for x in prompt[5:].split(",")]
            return answer == ",".join(map(str, sorted(numbers, reverse=prompt[4] == ">")))
        case "number_filtering":
            verb, sign, bound, listed = re.fullmatch(r"(keep|drop)([<>])(-?\d+) (.*)", prompt).groups()  # type: ignore
            numbers, flip = [int(x) for x in listed.split(",")], -1 if sign == "<" else 1
            kept = [x for x in numbers if (verb == "keep") == (flip * x > flip * int(bound))]
            return answer == (",".join(map(str, kept)) or "-")
        case "spell_backward":
            return answer[::-1] == prompt[4:]
        case "palindrome_generation":
            return answer == answer[::-1] and sorted(answer) == sorted(prompt[4:])
        case "ab":
            return answer == rewrite(prompt[3:])
        case "shortest_path":
            length = shortest(prompt[5:].split("/"))
            return answer == "-" if length is None else len(answer) == length
        case "graph_color":
            size, edges = re.fullmatch(r"col(\d+) ?(.*)", prompt).groups()  # type: ignore
            return len(answer) == int(size) and all(
                answer[int(e[0])] != answer[int(e[1])] for e in edges.split(",") if e
            )
    raise AssertionError(name)


@pytest.mark.parametrize(("name", "level"), LEVELS)
def test_compact_wording(name: str, level: str) -> None:
    task = ReasoningGym(name, (level,))
    problems = draws(task, "train", 60)
    golds = []
    for problem in problems:
        prompt, demo = problem.prompt[0].content, task.gold(problem)
        assert demo is not None
        gold = demo[0].text
        golds.append(gold)
        assert (prompt + gold).isascii()
        assert len(prompt) <= 48
        assert len(gold) <= task.max_tokens - 2
        assert task.score(problem, gold).outcome == 1
        chain = prompt[-1] == ":"
        assert ("=" in gold) == chain
        assert holds(name, prompt[:-1], gold.rsplit("=", 1)[-1]), (prompt, gold)
    right = [[task.score(p, g).outcome for g in golds] for p in problems[:20]]
    for i, problem in enumerate(problems[:20]):
        answer = golds[i].rsplit("=", 1)[-1]
        other = next(g.rsplit("=", 1)[-1] for g, ok in zip(golds, right[i], strict=True) if not ok)
        if problem.prompt[0].content[-1] == ":":
            assert task.score(problem, answer).outcome == 0
            answer, other = f"={answer}", f"={other}"
        for text in ("zzz", "", "=", other, f"{answer} or {other}", f"{other}{answer}{other}", f"{answer}7"):
            assert task.score(problem, text).outcome == 0, (problem.prompt, text)
    shown = {p.prompt for p in problems}
    assert not any(q.prompt in shown for split in ("gate", "test") for q in draws(task, split, 30))


def test_compact_examples_are_right_and_tell_the_data_sets_apart() -> None:
    for name, words in WORDINGS.items():
        prompt, solution = re.split("[=:]", words.example, maxsplit=1)
        assert holds(name, prompt, solution.rsplit("=", 1)[-1])
    assert len({re.match("[a-z]+", words.example)[0] for words in WORDINGS.values()}) == 12  # type: ignore


@pytest.mark.parametrize("name", COMPACT)
def test_compact_levels_grow(name: str) -> None:
    levels = ("1", "2", "3", "4")
    task = ReasoningGym(name, levels)
    sizes = [np.mean([len(p.prompt[0].content) for p in draws(task, "train", 60, level)]) for level in levels]
    assert sizes[0] < sizes[3] == max(sizes)


@pytest.mark.parametrize(("name", "level"), [(name, level) for name, level in LEVELS if level > "4"])
def test_compact_levels_beside_the_four_have_many_problems(name: str, level: str) -> None:
    keys = [p.key for p in draws(ReasoningGym(name, (level,)), "train", 1000)]
    assert len(set(keys)) >= 900  # some 5,000 and more in all


def test_which_data_sets_have_levels_beside_the_four() -> None:
    assert {name: len(words.levels) for name, words in WORDINGS.items() if len(words.levels) != 5} == {
        "products": 4,
        "shortest_path": 6,
    }


def test_compact_problems_are_drawn_fast() -> None:
    tasks = [ReasoningGym(name, (level,)) for name, level in LEVELS]
    rng, started = stream(0, "speed"), time.perf_counter()
    for task in tasks:
        for _ in range(20):
            task.draw("train", rng)
    assert (time.perf_counter() - started) / (20 * len(tasks)) < 0.002
