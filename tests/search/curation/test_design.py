"""Statements that rules write about issues, and where they put them."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from evolvent.search.curation.design import common, drawn, excepted, exceptions, inserted, shape, statements
from evolvent.search.curation.pools import Issue
from evolvent.search.segments import differing, segments
from evolvent.tasks.worlds.curation.library import ABOUT, COMPONENTS, SEED, program

ISSUES = [
    Issue(
        "promotion", ["Order your map today, visit http://shop.example/45", "Order your rope today, visit http://s/1"]
    ),
    Issue("markup", ['<span class="kw">']),
    Issue("mojibake", ["Ã©"]),
    Issue("stamps", ["[00:01:02] "]),
    Issue("repeats", ["A: Yes."]),
]


def run(source: str, category: str, text: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(source, "made.py", "exec"), names)  # what rules of ours have written
    return names[f"clean_{category}"](text)


def test_what_examples_have_in_common() -> None:
    assert common(ISSUES[0]) == "today, visit http://s"
    assert common(Issue("cut", ["abc", "xyz"])) == "abc"


@pytest.mark.parametrize("text", ["[00:01:02] ", '<span class="kw">', "Ã©", "a.b*c (12)", "http://x.example/7"])
def test_a_shape_fits_its_own_text_and_others_of_the_kind(text: str) -> None:
    assert re.fullmatch(shape(text), text)
    assert re.fullmatch(shape(text), re.sub(r"\d+", "7", text))
    assert not re.fullmatch(shape(text), text + "!")


@pytest.mark.parametrize("issue", ISSUES, ids=lambda i: i.kind)
def test_every_statement_can_be_put_in_and_runs(issue: Issue) -> None:
    rng = np.random.default_rng(0)
    text = "\n".join(["first line", *issue.examples, "last line"])
    did = Counter[bool]()
    for statement in statements(issue, rng):
        made = inserted(SEED, 1, statement, rng)
        assert made is not None, statement
        assert differing(SEED, made) == [1]
        after = run(made, "code", text)
        assert after is None or isinstance(after, str)
        did[after != text] += 1
    assert did[True] > did[False]  # an issue's statements are about its examples


@pytest.mark.parametrize("component", COMPONENTS)
def test_components_can_be_put_in(component: str) -> None:
    rng = np.random.default_rng(1)
    for base in (SEED, program("    text = text.strip()")):  # without lines they bring these with them
        made = inserted(base, 3, component, rng)
        assert made is not None
        after = run(made, "dialogue", "[00:00:01] A: Yes.\n[00:00:02] A: Yes.\n<i>B: No.</i>")
        assert after is None or isinstance(after, str)
    assert component in {c for several in ABOUT.values() for c in several} or component in COMPONENTS[-4:]


def test_what_was_lost_becomes_an_exception() -> None:
    base = program(
        '    lines = text.split("\\n")\n    lines = [x for x in lines if len(x) > 9]\n    text = "\\n".join(lines)'
    )
    issue = Issue("lost short lines", ["else:"])
    kept = Counter[bool]()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        for condition in exceptions(issue):
            made = excepted(base, 1, condition, rng)
            assert made is not None
            kept["else:" in run(made, "code", "a longer line\nelse:")] += 1
    assert kept[True] == kept.total() > 20  # by the exception, or since the filter is gone
    assert excepted(SEED, 1, "x", np.random.default_rng(0)) is None


def test_kinds_are_drawn_by_what_is_left_of_them() -> None:
    rng = np.random.default_rng(2)
    issues = [*ISSUES, Issue("markup", ["<em>"], 3), Issue("lost short lines", ["else:"])]
    diagnosis = {"markup": 0.6, "lost short lines": 0.2}
    found = Counter(drawn(issues, diagnosis, rng).examples[0] for _ in range(4000))  # type: ignore[union-attr]
    shares = {name: n / 4000 for name, n in found.items()}
    expected = {'<span class="kw">': 0.75 / 4, "<em>": 0.75 * 3 / 4, "else:": 0.25}
    assert shares == pytest.approx(expected, abs=0.03)
    first = Counter(drawn(issues, {}, rng).kind for _ in range(2000))  # type: ignore[union-attr]
    assert set(first) == {"promotion", "markup", "mojibake", "stamps", "repeats"}
    assert all(abs(n / 2000 - 0.2) < 0.04 for n in first.values())
    assert drawn(issues, {"cut": 1.0}, rng) is None
    assert segments(SEED)
