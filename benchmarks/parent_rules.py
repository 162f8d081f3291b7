"""Parent rules at equal budget on a grid of SIMULATED settings: which beat uniform parents and independent sampling.

The grid, the rules with their settings, the budget, delta and what is expected stand below, and were committed before
anything was measured. A score is how much of the way from the seed program's value to the exact optimum the best
candidate has gone; where values are measured by trials, that of the candidate with the best measured value, by its true
value. A pair shares landscape, seed and model. Verdicts by docs/protocol.md: paired t, 97.5 % two-sided, and Holm over
the arms; `beats` needs a mean difference of at least DELTA besides.

Cells are kept as they finish: a second call goes on. The search is `evolvent.search.simulated`, which decides as the
loop does.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from measure import RESULTS, command, environment, write
from scipy.stats import t as student

from evolvent.bench.statistics import holm, t_interval
from evolvent.core.random import digest
from evolvent.engine.simulated_writer import Habits
from evolvent.search import parents
from evolvent.search.simulated import simulate
from evolvent.tasks.settings import read_settings
from evolvent.tasks.worlds.landscape import Landscape
from evolvent.tasks.worlds.terrain import Terrain

EVALUATIONS, SEEDS, DELTA = 150, 8, 0.02
BASELINES = ("uniform", "seed")
RULES: dict[str, Any] = {
    "uniform": parents.uniform,
    "seed": parents.seed,
    "latest": parents.latest,
    "elite": parents.elite,
    "power_law": parents.power_law,
    "weighted": parents.weighted,
    "boltzmann": partial(parents.boltzmann, temperature=0.02),  # of the size of an edit's effect; 1 would be uniform
    "mixed": parents.mixed,
    "tournament": partial(parents.tournament, size=4),
    "novel_sigmoid": parents.novel_sigmoid,
    "thompson_clade": parents.thompson_clade,
}
GRID: dict[str, tuple[str, str, str]] = {  # cell -> landscape, model, what is expected
    "smooth": ("k=0", "skill=0.1", "selection helps, and elite is best: nothing can mislead it"),
    "able": ("k=2", "skill=0.8", "selection helps; the rules differ little, since most edits are good"),
    "rugged": ("k=4", "skill=0.1", "selection helps; elite stays in a local optimum, milder rules go on"),
    "stones": ("kind=stones,block=2,depth=0.3,options=3", "skill=0.1", "elite must not win: the way leads downwards"),
    "plateau": ("kind=stones,block=2,depth=0,options=3", "skill=0", "elite must not win; drift pays"),
    "metaproductive": (
        "k=2,traits=2,options=3,boost=1",
        "skill=0",
        "thompson_clade gains on rules that look at values",
    ),
    "trials": ("k=2,trials=20", "skill=0.1", "elite is misled by lucky measurements; milder rules are not"),
    "favourites": ("k=2", "skill=0.1,diversity=0.3", "seed and elite repeat themselves; rules that spread win"),
    "noise": ("kind=noise,parts=48,options=10", "skill=0,edits=6,rewrites=12", "nothing matters: no rule may win"),
}
KEY = "parent-rules"


def scores(cell: str, arm: str, seeds: Sequence[int]) -> list[float]:
    """One for each seed."""
    land, model, _ = GRID[cell]
    habits = read_settings(Habits, model, "simulated")
    return [score(Landscape(terrain_of(land, seed)), habits, RULES[arm], seed) for seed in seeds]


def terrain_of(land: str, seed: int) -> Terrain:
    """A cell's landscape, another one for each seed."""
    return read_settings(Terrain, f"{land},seed={seed}", "landscape")


def score(landscape: Landscape, habits: Habits, rule: Any, seed: int) -> float:
    """From 0, the seed program's value, to 1, the optimum."""
    best = simulate(landscape, habits, rule, EVALUATIONS, seed).best
    assert best is not None
    begun, end = landscape.terrain.value(landscape.terrain.first), landscape.terrain.optimum[0]
    return (landscape.true_value(best.text) - begun) / (end - begun)


def compared(table: Mapping[str, Sequence[float]]) -> dict[str, dict[str, Any]]:
    """Each arm against each baseline: mean difference, interval, p and verdict; Holm over the arms."""
    found: dict[str, dict[str, Any]] = {arm: {} for arm in table}
    for baseline in BASELINES:
        arms = [arm for arm in table if arm != baseline]
        gaps = {arm: np.subtract(table[arm], table[baseline]) for arm in arms}
        p = [p_value(gaps[arm]) for arm in arms]
        for arm, value, sure in zip(arms, p, holm(p), strict=True):
            interval = t_interval(gaps[arm].tolist())
            large = abs(interval.mean) >= DELTA
            verdict = ("beats" if interval.mean > 0 else "loses") if sure and large else "-"
            found[arm][baseline] = {
                "mean": interval.mean, "low": interval.low, "high": interval.high, "p": value, "verdict": verdict,
            }  # fmt: skip
    return found


def p_value(gaps: np.ndarray) -> float:
    """Of the paired t test, two-sided; 1 where all differences are equal to 0."""
    spread = float(gaps.std(ddof=1))
    if spread == 0:
        return float(gaps[0] == 0)
    return float(2 * student.sf(abs(gaps.mean()) * math.sqrt(len(gaps)) / spread, len(gaps) - 1))


def settings_of(cell: str) -> str:
    """What a cell's scores depend on: who was measured with other ones is measured again."""
    return digest(*GRID[cell][:2], EVALUATIONS, SEEDS, *RULES, size=8).hex()


def main() -> None:
    """Measure what is missing and write `results/parent-rules.json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default=",".join(GRID), help="some of the grid's cells")
    args = parser.parse_args()
    path = RESULTS / f"{KEY}.json"
    before = json.loads(path.read_text())["cells"] if path.is_file() else {}
    cells = {name: cell for name, cell in before.items() if name in GRID and cell["settings"] == settings_of(name)}
    where = environment(1)
    for name in args.cells.split(","):
        if name not in cells:
            begun = os.times().user
            table = {arm: scores(name, arm, range(SEEDS)) for arm in RULES}
            land, model, expected = GRID[name]
            cells[name] = {
                "settings": settings_of(name), "landscape": land, "model": model, "expected": expected,
                "scores": table, "compared": compared(table), "seconds": os.times().user - begun,
            }  # fmt: skip
        print(name, {arm: round(float(np.mean(x)), 3) for arm, x in cells[name]["scores"].items()}, flush=True)
        whole = {name: cells[name] for name in GRID if name in cells}
        mean = {arm: np.mean([cell["scores"][arm] for cell in whole.values()], 0).tolist() for arm in RULES}
        write(KEY, {
            "command": command(), "environment": where, "world": "simulated", "evaluations": EVALUATIONS,
            "seeds": SEEDS, "delta": DELTA, "cells": whole, "all": {"scores": mean, "compared": compared(mean)},
        })  # fmt: skip


if __name__ == "__main__":
    main()
