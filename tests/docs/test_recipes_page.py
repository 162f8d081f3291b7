"""The generated pages in docs/ are those that `make docs` would write now."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolvent.recipes import tables
from evolvent.recipes.catalogue import rows

PAGES = tables.pages(tables.ROOT / "docs")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_committed_page_is_the_generated_one(page: Path) -> None:
    assert page.read_text() == PAGES[page], f"{page.name} is out of date: run `make docs` and commit what it writes"


def test_every_recipe_has_a_row_with_all_that_it_changes() -> None:
    lines = PAGES[tables.ROOT / "docs" / "recipes.md"].splitlines()
    own = {r.name: r for r in tables.shipped()}
    assert set(own) <= {row["recipe"] for row in rows()}
    for name, recipe in own.items():
        (line,) = [line for line in lines if line.startswith(f"| [{name}](")]
        assert line.count("`put ") + line.count("`wrap ") == len(recipe.ops)
        assert line.replace("\\|", "").count("|") == 9


def test_verdicts_are_shown_where_there_is_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    test = {"baseline": "grpo", "effect": 0.031, "interval": [0.012, 0.05], "verdict": "holds"}
    part = {"metric": "test.sampled", "direction": "up", "delta": 0.01, "tests": [test]}
    outcome = {"kind": "outcome", "verdict": "holds", "seeds": list(range(8)), "components": [part]}
    found = {"id": "mc-grpo", "claims": [outcome]}
    for place in ("evolvent.recipes.catalogue", "evolvent.recipes.tables"):
        monkeypatch.setattr(f"{place}.read_evidence", lambda name: found if name == "mc-grpo" else None)
    (line,) = [line for line in tables.recipes_page().splitlines() if line.startswith("| [mc-grpo](")]
    cells = [cell.strip() for cell in line.replace("\\|", "").split("|")]
    assert cells[6:8] == ["-", "[holds (+0.031 [+0.012, +0.05], 8 seeds)](../evidence/mc-grpo.json)"]
    page = tables.choice_page("before\n<!-- measured -->\nold\n<!-- /measured -->\nafter\n")
    assert "| [mc-grpo](../evidence/mc-grpo.json) | outcome | `test.sampled up` | grpo |" in page
    assert "+0.031 [+0.012, +0.05] | holds |" in page
    assert "\nold\n" not in page
    assert page.endswith("<!-- /measured -->\nafter\n")


def test_advice_says_what_was_measured_of_what_it_advises(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = {"kind": "outcome", "verdict": "does-not-hold", "text": "It is better.", "components": []}
    found = {"world": "tiny-policy", "claims": [outcome]}
    monkeypatch.setattr("evolvent.recipes.tables.read_evidence", lambda name: found if name == "sec" else None)
    page = tables.choice_page("Take it.\n\n<!-- here: sec dapo -->\nold\n<!-- /here -->\nafter\n")
    first, second = page.splitlines()[3:5]
    assert first == "- Measured here (tiny-policy): [`sec`](../evidence/sec.json), **does not hold**: It is better."
    assert second == "- Measured here: `dapo`: nothing yet."
    assert page.endswith("<!-- /here -->\nafter\n")
