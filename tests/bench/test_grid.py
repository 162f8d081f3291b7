"""Claims over a grid of a simulator's settings: the verdict, what is stored, how it is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.bench.test_search_claims import Pool

from evolvent.bench import claims as page
from evolvent.bench.claims import Study
from evolvent.bench.evidence import Evidence
from evolvent.bench.grid import label, over_grid
from evolvent.core.claim import Claim, up
from evolvent.core.errors import UserError
from evolvent.core.grid import GridClaim
from evolvent.core.recipe import REGISTRY, Recipe
from evolvent.recipes import all_recipes

KEY = "propose.children"


def gridded(**more: Any) -> GridClaim:
    """Better at two points, and not at a third."""
    asked: dict[str, Any] = {"where": ({KEY: 1}, {KEY: 2}), "nowhere": ({KEY: 0},), **more}
    part = up("final.rescored", 0.02, "random-search")
    return GridClaim("it finds more", (part,), "program:landscape:k=1", "20 evaluations", model="none", **asked)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ({1: "holds", 2: "holds", 0: "does-not-hold"}, "holds"),
        ({1: "holds", 2: "holds", 0: "inconclusive"}, "holds"),
        ({1: "holds", 2: "holds", 0: "holds"}, "does-not-hold"),
        ({1: "holds", 2: "does-not-hold", 0: "does-not-hold"}, "does-not-hold"),
        ({1: "holds", 2: "inconclusive", 0: "does-not-hold"}, "inconclusive"),
    ],
)
def test_holds_everywhere_it_should_and_nowhere_else(verdicts: dict[int, str], expected: str) -> None:
    def verdict(one: Claim) -> dict[str, Any]:
        assert not isinstance(one, GridClaim)
        return {"verdict": verdicts[one.common[KEY]], "seeds": [0], "components": [{"metric": "m", "direction": "up"}]}

    found = over_grid(gridded(), verdict)
    assert found["verdict"] == expected
    assert [part["point"][KEY] for part in found["components"]] == [1, 2, 0]
    assert label(found["components"][0]) == f"m up ({KEY}=1)"
    assert label(found["components"][2]) == f"m up ({KEY}=0, where it must fail)"
    assert label({"metric": "m", "direction": "up"}) == "m up"


def test_a_point_without_which_nothing_is_shown_is_asked_for() -> None:
    for missing in ("where", "nowhere"):
        with pytest.raises(UserError, match="points of the grid"):
            gridded(**{missing: ()})


def test_a_study_measures_all_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool(lambda cell: 2.0 + 0.1 * (cell.arm == "ours") * cell.settings[KEY] + 0.001 * (cell.seed % 3))
    monkeypatch.setattr(page, "run_cells", pool)
    climb = all_recipes()["hill-climbing"]
    recipe = Recipe("gridded", climb, (), family=climb.family, file=climb.file, outcome=gridded())
    monkeypatch.setitem(REGISTRY, "gridded", recipe)
    data = Study(recipe, Evidence(tmp_path)).measure()
    assert data["world"] == "simulated"
    (found,) = data["claims"]
    assert found["verdict"] == "holds"
    assert {cell.settings[KEY] for cell in pool.ran} == {0, 1, 2}
    assert [part["tests"][0]["verdict"] for part in found["components"]] == ["holds", "holds", "does-not-hold"]
    assert data["registered"]["claims"]["outcome"]["nowhere"] == [{KEY: 0}]
