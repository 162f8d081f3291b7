"""What operators and models gave, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lineage.test_descent import SEARCH, made, view

from evolvent.lineage.report import render
from evolvent.lineage.yields import NOBODY, model_yields, yields


def by(model: str, usd: float | None, candidate: dict[str, Any]) -> dict[str, Any]:
    return {**candidate, "notes": {"model": model} | ({} if usd is None else {"usd": usd})}


WRITTEN = view(
    {**made(0, 1.0, [], "seed", "a"), "notes": {}},
    by("small", 0.25, made(1, 2.0, [0], "diff", "b")),
    by("small", 0.25, made(2, None, [1], "diff", "c")),
    by("large <i>", 2.0, made(3, 4.0, [1], "rewrite", "d")),
    by("small", 0.5, made(4, 3.0, [3, 1], "cross", "e")),
    by("small", None, made(5, 3.5, [2], "diff", "f")),  # of one that is not valid: it has mended it
)


def test_what_operators_gave() -> None:
    found = {r.name: (r.made, r.children, r.valid, r.useful, r.records) for r in yields(SEARCH)}
    assert found == {"seed": (1, 0, 1, 0, 1), "tune": (3, 3, 2, 2, 2), "swap": (2, 2, 2, 0, 0)}
    assert [r.name for r in yields(SEARCH)] == ["tune", "swap", "seed"]
    shares = {r.name: r.share for r in yields(SEARCH)}
    assert shares == {"tune": pytest.approx(2 / 3), "swap": 0.0, "seed": None}
    assert all(r.usd is None and r.price is None for r in yields(SEARCH))


def test_what_models_gave_and_cost() -> None:
    found = {r.name: (r.made, r.valid, r.useful, r.records, r.usd, r.price) for r in model_yields(WRITTEN)}
    assert found == {
        "small": (4, 3, 2, 1, 1.0, 0.5),
        "large <i>": (1, 1, 1, 1, 2.0, 2.0),
        NOBODY: (1, 1, 0, 1, None, None),
    }


def test_models_are_told_apart_only_where_several_wrote() -> None:
    assert model_yields(SEARCH) == []
    assert "What the models gave" not in render(SEARCH)
    page = render(WRITTEN)
    assert "What the models gave" in page
    assert "large &lt;i&gt;" in page
    assert "US dollars" in page
    assert "US dollars" not in render(SEARCH)


def test_who_is_evaluated_in_part_is_not_useful() -> None:
    part = made(1, 2.0, [0], "tune", "b")
    part["evaluation"]["complete"] = False
    found = {r.name: (r.valid, r.useful) for r in yields(view(made(0, 1.0, [], "seed", "a"), part))}
    assert found["tune"] == (0, 0)
