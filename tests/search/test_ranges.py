"""Numbers that make no sense are refused by where they stand, before anything runs."""

from __future__ import annotations

import pytest

from evolvent.core.errors import UserError
from evolvent.run.assemble import assemble
from evolvent.run.spec import RunSpec


@pytest.mark.parametrize(
    ("part", "number", "value", "told"),
    [
        ("propose.parent=tournament", "size", "0", "at least 1"),
        ("propose.parent=power_law", "alpha", "-1e9", "at least 0"),
        ("propose.parent=weighted", "sharpness", "-1", "at least 0"),
        ("propose.parent=boltzmann", "temperature", "0", "above 0"),
        ("propose.parent=mixed", "explore", "5", "at most 1"),
        ("propose.parent=mixed", "exploit", "-1", "at least 0"),
        ("propose.parent=novel_sigmoid", "sharpness", "-1", "at least 0"),
        ("propose.parent=thompson_clade", "cool_down", "-1", "at least 0"),
        ("propose.parent=thompson_clade", "budget", "0", "above 0"),
        ("propose.parent=evolvent.search.temperature:adaptive_boltzmann", "base", "0", "above 0"),
        ("propose.parent=evolvent.search.temperature:adaptive_boltzmann", "elites", "0", "at least 1"),
        ("propose.parent=evolvent.search.temperature:adaptive_boltzmann", "population", "0", "at least 1"),
        ("propose.context=best_and_random", "best", "-1", "at least 0"),
        ("propose.context=best_and_random", "others", "-1", "at least 0"),
        ("propose.context=inspirations", "archive", "-1", "at least 0"),
        ("propose.context=inspirations", "elites", "2", "at most 1"),
        ("keep.admit=top", "size", "0", "at least 1"),
        ("keep.admit=crowding", "size", "0", "at least 1"),
        ("keep.admit=nsga2", "size", "0", "at least 1"),
        ("keep.admit=spea2", "size", "0", "at least 1"),
        ("keep.admit=map_elites", "bins", "0", "at least 1"),
        ("keep.final=surest", "epsilon", "1", "below 1"),
        ("rollout.mutate.novel=dissimilar", "threshold", "0", "above 0"),
        ("rollout.mutate.choice=evolvent.search.choice:Thompson", "decay", "2", "at most 1"),
        ("rollout.mutate.choice=evolvent.search.choice:AsymmetricUCB", "decay", "0", "above 0"),
        ("rollout.mutate.choice=evolvent.search.choice:AsymmetricUCB", "epsilon", "-1", "at least 0"),
    ],
)
def test_a_rules_number(task: str, part: str, number: str, value: str, told: str) -> None:
    path, rule = part.split("=")
    with pytest.raises(UserError, match=rf"^{path}\.{number} must be {told}, got {value}"):
        assemble(RunSpec("hill-climbing", task, "none", "2 steps", settings={path: rule, f"{path}.{number}": value}))


@pytest.mark.parametrize(
    ("recipe", "path", "value", "told"),
    [
        ("hill-climbing", "propose.children", "100000000", "at most 100000"),
        ("hill-climbing", "propose.children", "0", "at least 1"),
        ("hill-climbing", "rollout.mutate.tries", "0", "at least 1"),
        ("hill-climbing", "judge.at_once", "-1", "at least 0"),
        ("openevolve", "keep.islands.count", "0", "at least 1"),
        ("openevolve", "keep.islands.every", "0", "at least 1"),
        ("openevolve", "keep.islands.migration.share", "2", "at most 1"),
        ("shinka-evolve", "keep.islands.migration.share", "-1", "at least 0"),
    ],
)
def test_a_parts_number(task: str, recipe: str, path: str, value: str, told: str) -> None:
    with pytest.raises(UserError, match=f"^{path} must be {told}, got {value}"):
        assemble(RunSpec(recipe, task, "none", "2 steps", settings={path: value}))
