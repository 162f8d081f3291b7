"""The world `structures`: operations by hand, and books that are known to be right for reasoning-gym's problems."""

from __future__ import annotations

import pytest

from evolvent.core.errors import UserError
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds.structures.operations import FIXED, LIBRARY, fill, understood
from evolvent.tasks.worlds.structures.world import TASKS, Structures, problem, structures_of, text_of

COLON, NUMBERS, COMMAS = (
    "Take what follows the last colon.",
    "List the numbers.",
    "Split the list of words at its commas.",
)
LETTER, JOINED = "Count how many times the letter appears in the text.", "Write it as a comma-separated list."
RIGHT = {
    "word_sorting": [
        COLON, COMMAS, "Sort the list in the order asked for, ascending or descending.",
        "Write it as a comma-separated list.",
    ],
    "number_filtering": [
        "Take what stands between 'in this list:' and 'Return'.", "List the pieces in quotes.",
        "Keep or remove the entries that are larger or smaller than the number named.",
        "Write each in quotes, in square brackets, the same format.",
    ],
    "letter_counting": ["List the pieces in quotes.", "Count how many times the letter appears in the text."],
    "spell_backward": [COLON, "Spell the word backward."],
    "word_sequence_reversal": [COLON, COMMAS, "Reverse the list.", "Write it as a comma-separated list."],
    "chain_sum": [COLON, "Calculate the answer to the arithmetic problem."],
    "basic_arithmetic": ["Take what stands after 'Calculate'.", "Calculate the answer to the arithmetic problem."],
    "gcd": [COLON, NUMBERS, "Find the greatest common divisor of the list."],
    "lcm": [NUMBERS, "Find the least common multiple of the list."],
    "products": [NUMBERS, "Calculate the product, a multiplication."],
    "count_bits": [NUMBERS, "Count the 1 bits in the binary representation."],
    "count_primes": [NUMBERS, "Count the prime numbers between the two, inclusive."],
}  # fmt: skip


def keyed(steps: list[str]) -> dict[str, str]:
    return {f"s{i}": step for i, step in enumerate(steps)}


def answer(question: str, *steps: str) -> str | None:
    return fill(keyed(list(steps)), question).answer


@pytest.mark.parametrize(
    ("question", "steps", "wanted"),
    [
        ("Sum it: 2 + -3 * 4 = ", (COLON, "Calculate the answer to the arithmetic problem."), "-10"),
        ("What is 6 / 4?", ("Take what stands after 'is'.", "Calculate the answer to the arithmetic problem."), None),
        ("gcd of 12, 18", (NUMBERS, "Find the greatest common divisor of the list."), "6"),
        ("lcm of 4, 6", (NUMBERS, "Find the least common multiple of the list."), "12"),
        ("7 * -3", (NUMBERS, "Calculate the product, a multiplication."), "-21"),
        ("from 10 to 20", (NUMBERS, "Count the prime numbers between the two, inclusive."), "4"),
        ("number 7", (NUMBERS, "Count the 1 bits in the binary representation."), "3"),
        ('"a" in "Banana"', ("List the pieces in quotes.", "Count how many times the letter appears in the text."),
        "3"), ("the smallest of 1,000 20", ("Take what stands after 'of'.", "Split the candidates at the spaces.",
         "Pick the largest or smallest number, as asked."), "20"),
        ("x: b, a", (COLON, COMMAS, "Sort the list in descending order.", JOINED), "b, a"),
        ("x: b, a", (COLON, COMMAS), None),
        ("x: b, a", (COLON, "Sort the list in ascending order."), None),
        ("x: ab", ("Think hard.", COLON, "Spell the word backward."), "ba"),
        ("no sign", (COLON,), None),
    ],
)  # fmt: skip
def test_steps_are_carried_out(question: str, steps: tuple[str, ...], wanted: str | None) -> None:
    assert answer(question, *steps) == wanted


def test_what_failed_is_known() -> None:
    found = fill(keyed([NUMBERS, "Sort the list in ascending order.", COLON]), "3 1")
    assert found.values == (["3", "1"], ["1", "3"])
    assert (found.failed, found.answer) == (2, None)
    assert "takes a text" in found.why


def test_sentences_name_one_operation_each() -> None:
    for operation in LIBRARY:
        says = operation.says.replace("{a}", "one").replace("{b}", "two")
        named = understood(says)
        assert named is not None
        assert named[0] is operation
    assert all(understood(says) for says in FIXED)
    assert understood("Think step by step.") is None


@pytest.fixture(scope="module")
def task() -> Structures:
    found = load_task("program:structures:problems=5")
    assert isinstance(found, Structures)
    return found


def test_right_structures_answer_everything_and_the_seed_hardly_anything(task: Structures) -> None:
    right = text_of({name: keyed(steps) for name, steps in RIGHT.items()})
    assert set(RIGHT) == set(TASKS)
    best, seed = task.evaluate([right, task.seed_program])
    assert best.value == 1.0
    assert seed.value is not None
    assert seed.value < 0.2
    [tested] = task.evaluate([right], [task.instances("test")])
    assert tested.value == 1.0


def test_splits_and_examples_share_no_problem() -> None:
    rows = [
        [problem("chain_sum", split, i)["question"] for i in range(20)]
        for split in ("train", "gate", "test", "examples")
    ]
    assert len({q for row in rows for q in row}) == 80


@pytest.mark.parametrize(
    ("text", "said"),
    [("def (", "SyntaxError"), ("X = 1", "nothing else"), ("STRUCTURES = {'gcd': 1}", "dict of texts"),
     ("STRUCTURES = {'gcd': {'a': 1}}", "dict of texts"), ("STRUCTURES = open('x')", "malformed")],
)  # fmt: skip
def test_what_is_no_book(task: Structures, text: str, said: str) -> None:
    [verdict] = task.evaluate([text])
    assert verdict.value is None
    assert said in verdict.feedback


def test_a_book_is_read_as_it_was_written() -> None:
    book = {"gcd": {"a": 'It\'s "so".', "b": "x\ny"}, "lcm": {}}
    assert structures_of(text_of(book)) == book


@pytest.mark.parametrize("settings", ["problems=0", "problems=x", "tasks=3"])
def test_settings_that_cannot_be(settings: str) -> None:
    with pytest.raises(UserError, match="structures"):
        load_task(f"program:structures:{settings}")
