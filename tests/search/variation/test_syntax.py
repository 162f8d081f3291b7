"""Operators on the syntax tree: what each does, what all of them keep, and that they search."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.search.normal import normal_form
from evolvent.search.variation.blocks import same_outside
from evolvent.search.variation.fragments import Donors, sound
from evolvent.search.variation.names import Names
from evolvent.search.variation.syntax import OPERATORS, Variation, expanded, mutate
from evolvent.search.variation.tree import Program, program

FIXED = '''"""A program with most of what Python has."""
import math

def given(a, b=1.0):
    return a * b

# EVOLVE-BLOCK-START
RATE = 0.25  # a global

@staticmethod
def helper(a, *, scale=2.0):
    """Scales."""
    return a * scale

class Box:
    size: int = 3

    def grown(self, by):
        self.size += by
        return self.size

def main(values, k=-0.5):
    total, count = 0.0, 0
    for i, value in enumerate(values[1:]):
        if value > 1.5 and not i == 2: total += value * RATE
        elif value is None:
            continue
        else:
            count += 1
            total = total - given(value, b=k)  # why
    squares = [max(x ** 2, i) for i, x in enumerate(values) if x]
    text = f"{total:.2f} {count + 1}" """
  a string of two lines"""
    try:
        total /= count
    except ZeroDivisionError as problem:
        return str(problem), text
    while count > 0:
        count -= 1
        total = (lambda z: z + count)(total)
    return min(total, squares[0]) + math.sin(total)
# EVOLVE-BLOCK-END

print(main([1.0, 2.0, 3.0]))
'''
OTHER = FIXED.replace("a * scale", "a + scale if a > 0 else -scale").replace(
    "value * RATE", "math.cos(value) / (i + 1)"
)
LIBRARY = (
    "abs(v)",
    "math.sqrt(abs(u - v))",
    "acc = acc + 1",
    "for q in range(2):\n    s = s * q\n    r = '''a\nb'''",
    "def twice(z):\n    return z + z",
    "p < q",
    "[n for n in m]",
    "not a program at all",
)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def results(
    name: str, source: str, others: tuple[str, ...] = (), library: tuple[str, ...] = (), count: int = 60
) -> set[str]:
    """The sound texts that an operator alone makes of a program, at several seeds."""
    found = [mutate(source, rng(seed), others, library, {name: 1.0}) for seed in range(count)]
    assert {v.operator for v in found} <= {name, "none"}
    return {v.source for v in found if v.operator == name}


def bodies(
    name: str, body: str, others: tuple[str, ...] = (), library: tuple[str, ...] = (), count: int = 60
) -> set[str]:
    """The same for the body of `def f(x, y)`, statements divided by `; `."""
    header = "def f(x, y):\n    "
    found = results(name, header + body.replace("; ", "\n    ") + "\n", others, library, count)
    assert all(text.startswith(header) for text in found)
    return {text.removeprefix(header).rstrip().replace("\n    ", "; ") for text in found}


@given(st.integers(0, 10**6), st.sampled_from([(), (OTHER,)]), st.sampled_from([(), LIBRARY]))
def test_what_every_variation_keeps(seed: int, others: tuple[str, ...], library: tuple[str, ...]) -> None:
    """It compiles, is another program, and changes neither what is outside the blocks nor a signature."""
    text = FIXED
    for step in range(2):
        found = mutate(text, rng(seed + step), others, library)
        assert found.operator in OPERATORS
        compile(found.source, "<program>", "exec")
        assert normal_form(found.source) != normal_form(text)
        assert same_outside(FIXED, found.source)
        assert not Names(found.source).unbound - Names(text).unbound
        for header in ("def helper(a, *, scale=", "def main(values, k=", "    def grown(self, by):", "class Box:"):
            assert found.source.count(header) == 1
        text = found.source


def test_the_generator_alone_decides() -> None:
    found = [[mutate(FIXED, rng(seed), (OTHER,), LIBRARY) for seed in range(5)] for _ in range(2)]
    assert found[0] == found[1]
    assert len({v.source for v in found[0]}) == 5


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_finds_something_to_do(name: str) -> None:
    assert len(results(name, FIXED, (OTHER,), LIBRARY, count=10)) >= 3


def test_tune_moves_one_number_and_keeps_its_sign() -> None:
    found = bodies("tune", "return x * 2.0 + -3.0 * y")
    moved = [re.fullmatch(r"return x \* ([\d.e-]+) \+ (-[\d.e-]+) \* y", text) for text in found]
    assert all(moved)
    pairs = [(float(m[1]), float(m[2])) for m in moved if m]
    assert all((a == 2.0) != (b == -3.0) for a, b in pairs)
    assert min(a for a, _ in pairs) < 2.0 < max(a for a, _ in pairs)
    assert all(text.startswith("return (-") for text in bodies("tune", "return (-3.0) ** x"))
    steps = [math.log(a / 2.0) for a, b in pairs if b == -3.0 and a not in (0.0, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0)]
    assert 0.15 < np.std(steps) < 0.45  # SIGMA is 0.3


def test_tune_keeps_whole_numbers_whole() -> None:
    assert bodies("tune", "return x[1]") >= {"return x[0]", "return x[2]", "return x[3]"}
    assert all(re.fullmatch(r"return x\[\d+\]", text) for text in bodies("tune", "return x[1]"))


def test_tune_all_moves_all_but_those_for_the_layout() -> None:
    for text in bodies("tune_all", "return x[1] * 2.0 + 3.0 * sum(range(4))"):
        numbers = re.findall(r"\d[\d.e-]*", text)
        assert (numbers[0], numbers[3]) == ("1", "4")
        assert numbers[1] != "2.0"
        assert numbers[2] != "3.0"


def test_insert_puts_a_component_where_its_names_are_bound() -> None:
    found = bodies("insert", "return x", library=("total = abs(other)",))
    assert {"total = abs(x); return x", "x = abs(y); return x", "y = abs(x); return x"} <= found
    assert all("other" not in text for text in found)
    assert {"x += y * y; return x", "y = x * x; return x"} <= bodies(
        "insert", "return x", library=("v * v",), count=100
    )


def test_insert_takes_from_elsewhere_and_from_other_parents() -> None:
    source = "def f(x):\n    return x\n\n\ndef g(y):\n    if y > 0:\n        y = y - 1\n    return y\n"
    found = results("insert", source)
    assert "def f(x):\n    if x > 0:\n        x = x - 1\n    return x\n" in "".join(found)
    other = "def f(x, y):\n    z = x * y\n    return z\n"
    assert "z = x * y; return x" in bodies("insert", "return x", (other,))


def test_insert_puts_definitions_at_the_top_level() -> None:
    found = results("insert", "def f(x):\n    return x\n", library=("def twice(z):\n    return z + z",), count=10)
    definition, function = "def twice(z):\n    return z + z\n", "def f(x):\n    return x\n"
    assert found == {definition + function, function + definition}


def test_delete() -> None:
    assert bodies("delete", "x = x + 1; y = 2; z = x; return z") == {
        "y = 2; z = x; return z",  # but not z, nor the return
        "x = x + 1; z = x; return z",
    }
    assert results("delete", "def f(x):\n    return x\n") == set()


def test_swap() -> None:
    assert bodies("swap", "x = x + y; y = x * 2; z = y; return z") == {"y = x * 2; x = x + y; z = y; return z"} | {
        "x = x + y; z = y; y = x * 2; return z"
    }


def test_replace() -> None:
    found = bodies("replace", "return x * 2.0", library=("math.sqrt(v)", "abs(v)"), count=200)
    assert {"return x", "return y * 2.0", "return abs(x)", "return abs(y) * 2.0", "return x * x"} <= found
    assert not any("math" in text for text in found)  # a module that is not imported
    truths = bodies("replace", "return x if x > 1 else y", library=("p == q",), count=300)
    assert {"return x if (x == y) else y", "return x if (y == x) else y"} <= truths


def test_operator() -> None:
    assert bodies("operator", "return x + y") == {"return x - y", "return x * y"}
    assert bodies("operator", "return x - y") >= {"return x + y", "return y - x"}
    assert bodies("operator", "return x < y") == {"return x <= y", "return x > y", "return x >= y"}
    assert bodies("operator", "return max(x, y)") == {"return min(x, y)"}
    assert bodies("operator", "x += y; return x") == {"x -= y; return x", "x *= y; return x"}
    assert bodies("operator", "return x and y") == {"return x or y"}
    assert bodies("operator", "return x not in y") == {"return x in y"}
    assert "return (x + 1) - 2" in bodies("operator", "return (x + 1) * 2")  # as the tree has it
    assert "return x * (y * 2)" in bodies("operator", "return x * (y + 2)")


def test_wrap() -> None:
    found = bodies("wrap", "return x", library=("math.sqrt(u * v)", "u * v + 1"), count=200)
    assert {"return abs(x)", "return -x", "return max(x, y)", "return x + y"} <= found
    assert any(re.fullmatch(r"return x if x [<>] .* else .*", text) for text in found)
    assert "return x * y + 1" in found
    assert "return x if (not (x > y)) else y" in bodies("wrap", "return x if x > y else y", count=100)
    called = results("wrap", "def g(a):\n    return a\n\n\ndef f(x):\n    return x\n", count=100)
    assert any("return g(x)" in text for text in called)
    assert not any("return g(a)" in text for text in called)  # it would call itself for ever


def test_duplicate() -> None:
    assert bodies("duplicate", "x = x + 1; y = 2; return x + y") == {"x = x + 1; x = x + 1; y = 2; return x + y"}
    loop = "for i in range(3):;     x += i;     y -= i; return x"
    assert f"{loop[:-10]};     x += i;     y -= i; return x" in bodies("duplicate", loop).union(
        bodies("duplicate", loop, count=200)
    )


def test_cross() -> None:
    ours = "def f(x):\n    a = x\n    return a\n\n\ndef g(x):\n    return x * 2\n"
    theirs = (
        "def f(x):\n    for i in range(2):\n        x = h(x, i)\n    return x\n\n\ndef h(x, y):\n    return x - y\n"
    )
    found = results("cross", ours, (theirs,), count=100)
    assert (
        ours.replace("    a = x\n    return a\n", "    for i in range(2):\n        x = g(x, i)\n    return x\n")
        in found
    )
    assert any("return x - x" in text for text in found)  # h's expression, with the names that are here
    block = "A = 1\n# EVOLVE-BLOCK-START\n{}\n# EVOLVE-BLOCK-END\n"
    assert block.format("B = 2\nC = 3") in results("cross", block.format("B = A"), (block.format("B = 2\nC = 3"),))


def test_weights_choose_the_operators() -> None:
    found = {mutate(FIXED, rng(seed), weights={"tune": 1.0, "swap": 1.0}).operator for seed in range(20)}
    assert found == {"tune", "swap"}
    assert mutate(FIXED, rng(0), weights={}) == Variation(FIXED, "none")


@pytest.mark.parametrize(
    "source",
    ["", "def f(:", "a = 1\0", "# EVOLVE-BLOCK-END\n", "a = 1\n# EVOLVE-BLOCK-START\n# EVOLVE-BLOCK-END\nb = a + 2\n"],
)
def test_where_nothing_can_be_changed(source: str) -> None:
    assert mutate(source, rng(0), (OTHER,), LIBRARY) == Variation(source, "none")


def test_bad_donors_are_left_out() -> None:
    donors = Donors(("def f(:", "x + 1"), ("# EVOLVE-BLOCK-END",))
    assert (len(donors.components), len(donors.parents)) == (1, 0)


def test_suites_on_the_line_of_their_header() -> None:
    source = "def f(x): return x\nwhile True:\n    if a: b; c\n    else: pass\n"
    text = "def f(x):\n    return x\nwhile True:\n    if a:\n        b; c\n    else:\n        pass\n"
    assert expanded(source) == text


@pytest.mark.parametrize(
    "after",
    [
        "def f(x, y):\n    return z\n",  # not bound
        "def f(x, z):\n    return x\n",  # another signature
        "def f(x, y):\n    return (x)  # the same\n",
        "def f(x, y):\n    return x +\n",
        "def f(x, y):\n    break\n",
        "def f(x, y):\n    return x + 1\n\n\ndef f(x):\n    return x\n",
        "def f(x, y):\n    x += len\n    len = 2\n    return x\n",  # len is a variable of f now
    ],
)
def test_what_is_not_sound(after: str) -> None:
    before = program("def f(x, y):\n    return x\n")
    assert sound(before, after) is None
    assert sound(before, "def f(x, y):\n    return x + len(y)\n") is not None


def test_names_are_bound_where_every_way_binds_them() -> None:
    source = (
        "def f(x):\n    if x:\n        a = 1\n        b = 1\n    else:\n        a = 2\n    for i in x:\n        c = i\n"
        "    try:\n        d = x\n    except E as e:\n        return e\n    with x as w:\n        g = [j for j in w]\n"
        "    return a, b, c, d, g, i, j, LATER\n\n\nLATER = 1\n"
    )
    assert dict(Names(source).unbound) == {"b": 1, "c": 1, "i": 1, "j": 1, "E": 1}
    at = Names(source).at((15, 11))
    assert at is not None
    assert {"x", "a", "d", "w", "g", "LATER", "len"} <= at.inside
    assert not {"b", "c", "e", "i", "j"} & at.inside


def test_positions_in_lines_that_are_not_ascii() -> None:
    p = Program("def f(x):\n    return ('é', [y for y in x])\n")
    site = next(s for s in p.sites if p.text(s.node) == "y")
    stretch = p.names.at(p.place(site.start))
    assert stretch is not None
    assert "y" in stretch.inside


def error(text: str) -> float:
    """Squared error of `f` against x * x + 3 * x; infinite where it fails."""
    space: dict[str, object] = {"__builtins__": {"abs": abs, "max": max, "min": min}}
    try:
        exec(compile(text, "<program>", "exec"), space)
        f = space["f"]
        errors = [(f(x) - (x * x + 3 * x)) ** 2 for x in np.linspace(-2, 2, 9).tolist()]  # type: ignore[operator]
    except (ArithmeticError, NameError, TypeError, ValueError, RecursionError):
        return math.inf
    return math.inf if any(isinstance(e, complex) or math.isnan(e) for e in errors) else float(sum(errors))


@pytest.mark.slow
def test_mutation_and_selection_search() -> None:
    """Symbolic regression from f(x) = x: ten times better, and better than as many single mutations of the start."""
    start, library, budget = "def f(x):\n    return x\n", ("u + v", "u * v", "u - v", "1.0"), 300
    assert error(start) == pytest.approx(104.25)
    evolved, single = [], []
    for seed in range(5):
        draws, best = rng(seed), {error(start): start}  # the ten best, one for each error
        for _ in range(budget):
            errors = sorted(best)
            if errors[0] == 0.0:
                break
            parent = best[errors[min(draws.integers(len(errors), size=2))]]
            child = mutate(parent, draws, list(best.values()), library).source
            if len(child) < 300:
                best.setdefault(error(child), child)
            best = {e: best[e] for e in sorted(best)[:10]}
        evolved.append(min(best))
        single.append(min(error(mutate(start, draws, (), library).source) for _ in range(budget)))
    assert sum(e < error(start) / 10 for e in evolved) >= 4
    assert np.median(evolved) < np.median(single) / 10
