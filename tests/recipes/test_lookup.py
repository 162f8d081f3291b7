"""Recipes are imported when they are asked for; a search does not wait for what learners need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.recipes.test_registry import RECIPES

from evolvent.core.errors import UserError
from evolvent.recipes import all_recipes, resolve


def fresh(program: str) -> object:
    """What a new interpreter prints, as JSON."""
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return json.loads(ran.stdout)


@pytest.mark.slow
def test_one_that_is_looked_up_brings_its_ancestors_alone() -> None:
    program = (
        "import json; from evolvent.core.recipe import REGISTRY; from evolvent.recipes import all_recipes; "
        "known = all_recipes(); known['iid-sampling']; before = sorted(REGISTRY); "
        "print(json.dumps([before, 'nothing' in known, sorted(known)]))"
    )
    assert fresh(program) == [["iid-sampling", "random-search"], False, RECIPES]


@pytest.mark.parametrize("name", ["update-twice", pytest.param("grpo-plus-one", marks=pytest.mark.slow)])
def test_one_that_its_file_is_not_called_after_is_found(name: str) -> None:
    program = f"import json; from evolvent.recipes import all_recipes; print(json.dumps(all_recipes()[{name!r}].name))"
    assert fresh(program) == name


def test_a_name_of_ours_in_a_file_of_ones_own_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text('from evolvent.core.recipe import recipe\nrecipe("dapo", None)\n')
    with pytest.raises(UserError, match="`dapo` is defined twice"):
        resolve(f"{file}:dapo")
    assert all_recipes()["dapo"].file != str(file)


OTHERS = ("alphaevolve", "iid-sampling", "hill-climbing", "openevolve")


@pytest.mark.parametrize("recipe", ["shinka-evolve", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_a_search_runs_without_torch(tmp_path: Path, recipe: str) -> None:
    program = f"""
import json, sys
from click.testing import CliRunner
from evolvent.cli.main import cli
words = ["run", {recipe!r}, "--task", "program:circle-packing:5", "--model", "none", "--budget", "3 evaluations"]
ran = CliRunner().invoke(cli, [*words, "--store", {str(tmp_path)!r}, "--no-final", "--json"])
print(json.dumps([ran.exit_code, "torch" in sys.modules]))
"""
    assert fresh(program) == [0, False]
