"""The world: what programs may do, what they are worth, and that strategies are applied to whole categories."""

from __future__ import annotations

from typing import Any

import pytest

from evolvent.core.errors import UserError
from evolvent.tasks.evaluation import INSTANCE
from evolvent.tasks.program import ProgramTask, load
from evolvent.tasks.worlds.curation.corpus import documents
from evolvent.tasks.worlds.curation.issues import read
from evolvent.tasks.worlds.curation.library import ABOUT, COMPONENTS, FILTER, SEED, program
from evolvent.tasks.worlds.curation.model import bits_per_byte
from evolvent.tasks.worlds.curation.texts import CATEGORIES
from evolvent.tasks.worlds.curation.world import TRAINED, raw, refused, trained, verdict

TASK = "program:data-curation"
AS_IT_IS = '    lines = text.split("\\n")\n    text = "\\n".join(lines)'


def test_it_has_no_sizes() -> None:
    with pytest.raises(UserError, match="has no sizes"):
        load("data-curation:3")


def test_values(task: ProgramTask) -> None:
    names = [f"train-{c}:5" for c in CATEGORIES]
    seed, fixed = task.evaluate([SEED, FILTER], [names, names])
    assert seed.value == pytest.approx(sum(seed.metrics[f"{INSTANCE}train-{c}"] for c in CATEGORIES) / 4)
    assert all(4 < seed.metrics[f"{INSTANCE}train-{c}"] < 7.5 for c in CATEGORIES)
    assert fixed.value is not None
    assert fixed.metrics[f"{INSTANCE}train-code"] < 8  # it drops `else:` and what stands there twice
    assert fixed.metrics[f"{INSTANCE}train-prose"] > seed.metrics[f"{INSTANCE}train-prose"]
    assert "left of stamps: 100%" in seed.feedback


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("import os", "it imports os"),
        ("from evolvent.tasks.worlds.curation import corpus", "it imports evolvent"),
        ("import re as evolvent", "it imports re"),
        ("x = open", "it uses open"),
        ("x = re.enum", "it uses enum"),
        ("x = html._html5", "it uses _html5"),
        ("x = html.unescape", ""),
        ("x = re.__dict__", "it uses __dict__"),
        ("x = clean_prose", "each strategy stands alone"),
    ],
)
def test_what_a_program_may_not_do(change: str, reason: str) -> None:
    found = refused(SEED + "\n" + change + "\n")
    assert reason in found
    assert bool(found) == bool(reason)


def test_a_refused_program_is_not_valid_and_says_why(task: ProgramTask) -> None:
    [found] = task.evaluate([SEED + "\nimport os\n"], [["train-prose:1"]])
    assert found.value is None
    assert "it imports os" in found.feedback


@pytest.mark.parametrize("rule", ["    return 3", "    return text * 5", "    return text.nothing()"])
def test_what_gives_back_no_text_is_not_valid(task: ProgramTask, rule: str) -> None:
    [found] = task.evaluate([program(rule)], [["train-code:1"]])
    assert found.value is None
    assert found.feedback


@pytest.mark.parametrize("value", [None, [], [[1]], [["a"]], 7])
def test_what_does_not_fit_is_not_valid(value: Any) -> None:
    assert verdict(value, ["train-prose:1"]).value is None


def test_in_the_end_a_model_is_trained_on_what_was_kept(task: ProgramTask) -> None:
    [found] = task.evaluate([SEED], [["test-tables"]])
    data = "\n\n".join(documents("tables", "test").raw).encode() + b"\n\n"
    while len(data) < TRAINED:
        data += data
    held = "\n\n".join(documents("tables", "held out").clean).encode()
    assert found.value == pytest.approx(-bits_per_byte(data[:TRAINED], held), rel=1e-12)
    [nothing] = task.evaluate([program("    return None")], [["test-tables"]])
    assert nothing.value == -8.0


@pytest.mark.parametrize("category", CATEGORIES)
def test_cleaning_pays(category: str) -> None:
    d = documents(category, "test")
    mended = tuple(x for text in d.raw if (x := read(text, d.about).content))
    noisy, clean = trained(category, d.raw), trained(category, d.clean)
    assert trained(category, mended) < noisy - 0.04
    assert clean < noisy - 0.04
    assert raw(f"test-{category}") == d.raw


@pytest.mark.slow
def test_for_each_kind_of_issue_some_components_help_and_over_all_many_do_harm(task: ProgramTask) -> None:
    def values(rules: str) -> dict[str, float]:
        [found] = task.evaluate([program(rules)], [[f"train-{c}" for c in CATEGORIES]])
        assert found.value is not None, found.feedback
        return {c: found.metrics[f"{INSTANCE}train-{c}"] for c in CATEGORIES}

    before, harm = values(AS_IT_IS), 0
    split, joined = AS_IT_IS.split("\n", 1)
    for kind, components in ABOUT.items():
        helped = False
        for component in components:
            rule = "    " + component.replace("\n", "\n    ")
            after = values(f"{split}\n{rule}\n{joined}" if component.startswith("lines") else rule)
            helped |= any(after[c] > before[c] + 0.02 for c in CATEGORIES)
            harm += any(after[c] < before[c] - 0.5 for c in CATEGORIES)
        assert helped, kind
    assert harm > len(COMPONENTS) / 4
