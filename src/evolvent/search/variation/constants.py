"""The numbers in a program as variables of an optimiser.

Which ones: numeric literals inside the EVOLVE blocks, default values of parameters among them, with a minus in front.
Not those that say how things are laid out (indices, slices, arguments of range, whole numbers for keywords such as
axis=0), unless asked, and never those in decorators, annotations, f-strings and targets of assignments.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import libcst as cst
import numpy as np

from evolvent.search.variation.fragments import written
from evolvent.search.variation.tree import Site, program

SIGMA = 0.3  # first step: of the logarithm of a positive constant, of the scale of others
DIGITS = 8  # significant digits of a constant that is written
IDLE = 20  # generations without a new text after which there is nothing left to try

Score = Callable[[list[str]], list[float | None]]


@dataclass(frozen=True)
class Constant:
    """A number in a program: line from 1, column from 0 in characters, its value, whether it is a whole number."""

    line: int
    column: int
    value: float
    integer: bool


def constants(source: str, shapes: bool = False) -> list[Constant]:
    """The exposed numbers of a program, in the order of the text; with `shapes` also those for the layout.

    Raises cst.ParserSyntaxError, SyntaxError, or UserError for the marks.
    """
    p = program(source)
    found = []
    for site in _sites(source, shapes):
        line = p.place(site.start)[0]
        literal = _literal(site)
        sign = 1 if literal is site.node else -1
        value = sign * float(literal.evaluated_value)
        found.append(Constant(line, site.start - p.starts[line - 1], value, isinstance(literal, cst.Integer)))
    return found


def with_constants(source: str, values: Sequence[float], shapes: bool = False) -> str:
    """The program with the values in the place of those that `constants` lists; whole numbers stay whole.

    Those that do not differ keep their text. Raises ValueError for a wrong count and for values that are not finite.
    """
    edits = []
    for site, old, value in zip(_sites(source, shapes), constants(source, shapes), values, strict=True):
        if not math.isfinite(value):
            raise ValueError(f"the value {value} for the constant at line {old.line} is not finite")
        new = round(value) if old.integer else float(f"{value:.{DIGITS}g}")
        if new != old.value:
            text = repr(new)
            signed = isinstance(site.node, cst.UnaryOperation) and not site.node.lpar  # then a minus can stand there
            edits.append((site.start, site.end, text if new >= 0 or site.bare or signed else f"({text})"))
    return written(source, edits)


def optimise(
    source: str,
    score: Score,
    budget: int,
    rng: np.random.Generator,
    population: int | None = None,
    shapes: bool = False,
    use_cma: bool | None = None,
) -> tuple[str, float]:
    """The best program found by moving its exposed numbers, and its score; the start is evaluated first.

    `score` evaluates a batch of texts, higher is better, None where one is invalid; `budget` bounds the texts given to
    it, each of which is new. Invalid ones, also scores that are not finite, are left out of the update. By CMA-ES
    (library `cma`, if it is installed, or as `use_cma` says), else by a (mu/mu, lambda)-ES. Positive constants that are
    not whole move on a logarithmic scale, so they stay positive. Gives minus infinity if nothing was valid.
    """
    start = constants(source, shapes)
    known: dict[str, float | None] = {}

    def evaluate(texts: list[str]) -> None:
        new = list(dict.fromkeys(text for text in texts if text not in known))[: budget - len(known)]
        for text, value in zip(new, score(new) if new else [], strict=True):
            known[text] = value if value is not None and math.isfinite(value) else None

    evaluate([source])
    lam = population or 4 + int(3 * math.log(max(1, len(start))))
    if start:
        if use_cma is None:
            use_cma = importlib.util.find_spec("cma") is not None
        strategy: Strategy = (Cma if use_cma else SelfAdaptive)(len(start), max(4, lam), rng)
        idle = 0
        while len(known) < budget and idle < IDLE:
            before, points = len(known), strategy.ask()
            texts = [with_constants(source, _values(start, point), shapes) for point in points]
            evaluate(texts)
            idle = 0 if len(known) > before else idle + 1
            valid = [(x, v) for x, text in zip(points, texts, strict=True) if (v := known.get(text)) is not None]
            strategy.tell([x for x, _ in valid], [v for _, v in valid])
    best = max((t for t, v in known.items() if v is not None), key=lambda t: known[t] or 0.0, default=source)
    value = known.get(best)
    return best, value if value is not None else -math.inf


class Strategy(Protocol):
    """An optimiser of points, from 0 with steps of about `SIGMA`, that takes the points that could be evaluated."""

    def __init__(self, size: int, population: int, rng: np.random.Generator) -> None: ...
    def ask(self) -> list[np.ndarray]: ...
    def tell(self, points: list[np.ndarray], scores: list[float]) -> None: ...


class Cma:
    """CMA-ES of the library `cma` (Hansen, arXiv 1604.00772), with the randomness handed in."""

    def __init__(self, size: int, population: int, rng: np.random.Generator) -> None:
        cma = importlib.import_module("cma")  # here, since it takes a second or more
        options = {
            "popsize": population,
            "verbose": -9,
            "seed": math.nan,
            "randn": lambda *shape: rng.normal(size=shape),
        }
        self.inner = cma.CMAEvolutionStrategy(np.zeros(size), SIGMA, options)

    def ask(self) -> list[np.ndarray]:
        """The next points."""
        return list(self.inner.ask())

    def tell(self, points: list[np.ndarray], scores: list[float]) -> None:
        """Updates by what could be evaluated; nothing if that is fewer than the update is a mean of."""
        if len(points) >= max(3, self.inner.sp.weights.mu):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that they are fewer than were asked for
                self.inner.tell(points, [-score for score in scores])


class SelfAdaptive:
    """(mu/mu, lambda)-ES with a step size that adapts itself (Beyer and Schwefel 2002, doi 10.1023/A:1015059928466)."""

    def __init__(self, size: int, population: int, rng: np.random.Generator) -> None:
        self.mean, self.sigma, self.population, self.rng = np.zeros(size), SIGMA, population, rng
        self.rate = 1 / math.sqrt(2 * size)
        self.sigmas: dict[bytes, float] = {}

    def ask(self) -> list[np.ndarray]:
        """The next points."""
        sigmas = self.sigma * np.exp(self.rate * self.rng.normal(size=self.population))
        points = [self.mean + sigma * self.rng.normal(size=len(self.mean)) for sigma in sigmas]
        self.sigmas = {point.tobytes(): float(sigma) for point, sigma in zip(points, sigmas, strict=True)}
        return points

    def tell(self, points: list[np.ndarray], scores: list[float]) -> None:
        """The mean of the best quarter, or of fewer if fewer could be evaluated."""
        best = [points[i] for i in np.argsort(scores)[::-1][: max(1, self.population // 4)]]
        if best:
            self.mean = np.mean(best, axis=0)
            self.sigma = math.exp(np.mean([math.log(self.sigmas[point.tobytes()]) for point in best]))


def _values(start: list[Constant], point: np.ndarray) -> list[float]:
    """What the coordinates of a point mean: factors of positive constants, else shifts in units of the constant."""
    found = []
    for constant, z in zip(start, point.tolist(), strict=True):
        if constant.value > 0 and not constant.integer:
            found.append(constant.value * math.exp(min(max(z, -50.0), 50.0)))
        else:
            scale = max(abs(constant.value), 4.0 if constant.integer else 1.0)
            found.append(constant.value + scale * z)
    return found


def _sites(source: str, shapes: bool) -> list[Site]:
    p = program(source)
    found = [site for site in p.numbers if math.isfinite(float(_literal(site).evaluated_value))]
    return sorted((site for site in found if shapes or not site.shape), key=lambda site: site.start)


def _literal(site: Site) -> cst.Integer | cst.Float:
    node = site.node.expression if isinstance(site.node, cst.UnaryOperation) else site.node
    assert isinstance(node, cst.Integer | cst.Float)
    return node
