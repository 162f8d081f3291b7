"""Plain multistart on the worlds of programs: what a search has to beat, with the same component library.

Start anew or from the best with some of it moved, improve by the world's own optimiser (`polish`, `descend` or `climb`,
as in its seed program), judge strictly, repeat. One process, no sandbox: it loads the package's own seed programs only,
and pays nothing for starting processes, which is in its favour.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evolvent.tasks.program import World

ANEW = 0.4  # share of starts that do not begin from the best
Point = np.ndarray
Library = Mapping[str, Any]  # what the seed program defines


@dataclass(frozen=True)
class Problem:
    """What multistart does in a world: new points, moved points, improved points, and what is judged of them."""

    fresh: Callable[[int, np.random.Generator], Point]
    moved: Callable[[Point, np.random.Generator], Point]
    improved: Callable[[Library, Point], Any]
    point: Callable[[Any], Point]  # of what `improved` gave
    judged: Callable[[Any], Any]
    what: str


def some_anew(fresh: Callable[[int, np.random.Generator], Point], most: int = 4) -> Callable[..., Point]:
    """Moves one to `most` rows to new places."""

    def moved(points: Point, rng: np.random.Generator) -> Point:
        points, count = points.copy(), int(rng.integers(1, most + 1))
        points[rng.choice(len(points), count, replace=False)] = fresh(count, rng)
        return points

    return moved


def in_square(n: int, rng: np.random.Generator) -> Point:
    """Uniform in the unit square."""
    return rng.random((n, 2))


def in_triangle(n: int, rng: np.random.Generator) -> Point:
    """Uniform in the triangle (0, 0), (1, 0), (0, 1)."""
    return rng.dirichlet(np.ones(3), n)[:, :2]


def heights(n: int, rng: np.random.Generator) -> Point:
    """Uniform from 0 to 1."""
    return rng.random(n)


def scaled(h: Point, rng: np.random.Generator) -> Point:
    """Each height times a log-normal factor, as the worlds' components do."""
    return h * rng.lognormal(0, float(rng.choice([0.05, 0.2, 0.5])), len(h))


def same(x: Any) -> Any:
    """As it is."""
    return x


PROBLEMS = {  # by world
    "circle-packing": Problem(
        in_square,
        some_anew(in_square),
        lambda lib, x: lib["polish"](x, 200),
        lambda found: found[0],
        lambda found: np.column_stack(found),
        "polish(points, 200): SLSQP on centres and radii",
    ),
    "heilbronn": Problem(
        in_triangle,
        some_anew(in_triangle),
        lambda lib, x: lib["polish"](x, 200),
        same,
        same,
        "polish(points, 200): SLSQP on points and the least area",
    ),
    "autocorrelation-1": Problem(
        heights, scaled, lambda lib, x: lib["descend"](x, 400), same, same, "descend(h, 400): L-BFGS on a p-norm"
    ),
    "autocorrelation-2": Problem(
        heights, scaled, lambda lib, x: lib["climb"](x, 400), same, same, "climb(h, 400): L-BFGS on a p-norm"
    ),
}


def library_of(world: World) -> Library:
    """What the world's seed program defines. It is the package's own."""
    found: dict[str, Any] = {}
    exec(compile(world.seed, world.name, "exec"), found)
    return found


def multistart(world: World, name: str, n: int, seconds: float, seed: int) -> dict[str, Any]:
    """The best strictly judged value within so many seconds of the processor; records are [seconds, starts, value]."""
    problem, library, rng = PROBLEMS[name], library_of(world), np.random.default_rng(seed)
    best, best_point, starts, records = -np.inf, None, 0, []
    begun = time.process_time()
    while time.process_time() - begun < seconds:
        anew = best_point is None or rng.random() < ANEW
        found = problem.improved(library, problem.fresh(n, rng) if anew else problem.moved(best_point, rng))
        spent = time.process_time() - begun
        starts += 1
        value = world.judge(problem.judged(found).tolist(), ()).value
        if value is not None and value > best and spent <= seconds:
            best, best_point = value, problem.point(found)
            records.append([spent, starts, value])
    return {"records": records, "starts": starts, "best": best, "seconds": time.process_time() - begun}
