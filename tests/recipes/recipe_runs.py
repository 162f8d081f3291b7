"""Short runs of recipes on a model that was trained for a few seconds, for the tests of the registry."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.small_model import small_model

from evolvent.core.errors import UserError
from evolvent.core.loop import System
from evolvent.core.recipe import REGISTRY, Put, Recipe, show_path
from evolvent.core.step import Step
from evolvent.guard.gate import Watch
from evolvent.guard.sandbox import Sandbox, available
from evolvent.keep.replay import Replay
from evolvent.learn.evolution import LowRankES
from evolvent.learn.lag import Lag
from evolvent.learn.policy_gradient import PolicyGradient
from evolvent.learn.preference import Preference
from evolvent.learn.supervised import Supervised
from evolvent.learn.variance import VarianceControlled
from evolvent.propose.problems import Problems
from evolvent.recipes import all_recipes
from evolvent.recipes.policy_gradient.pipo import PolicyImprovement
from evolvent.recipes.profiles import PROFILES
from evolvent.rollout.prune import Prune
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.spec import RunSpec
from evolvent.search.attempts.waves import Waves
from evolvent.search.contests.iterations import Iterations as Contests
from evolvent.search.edit import Edit
from evolvent.search.guided import Generations
from evolvent.search.ideas import Epochs
from evolvent.search.instructions import Instructions
from evolvent.search.launches import TwoLoops
from evolvent.search.loop import Parents
from evolvent.search.reinforce import Families, Reinforce
from evolvent.search.scratchpad import Scratchpad
from evolvent.search.symbolic.train import Train
from evolvent.search.teams.evolve import Tasks
from evolvent.tasks.program import ProgramTask

TASK = "arith:1x1"
PROFILES["short"] = {
    Problems: {"problems": 6, "n": 4},
    PolicyGradient: {"lr": 3e-3, "minibatches": 2, "warmup": 0},
    Supervised: {"lr": 3e-3, "warmup": 0},
    Preference: {"lr": 3e-3, "warmup": 0},
    LowRankES: {"population": 24, "sigma": 0.1, "lr": 1e-2},
    Watch: {"every": 2, "problems": 8},
    PolicyImprovement: {"window": 1},
    Lag: {"steps": 1},
    VarianceControlled: {"lr": 3e-3, "warmup": 0},
    Replay: {"capacity": 4},
    Prune: {"stride": 1, "warmup": 1},
    Parents: {"children": 3},
    Scratchpad: {"every": 3},
    Instructions: {"every": 3},
    Generations: {"start": 3, "children": 4},
    Epochs: {"children": 4},
    TwoLoops: {"children": 3, "delay": 0, "slots": 3, "guard": 1.0},
    Waves: {"n": 3, "keep": 2},
    Contests: {"databases": 2, "questions": 6, "begin": 3, "evolve": 0.4, "challenge": 0.3},
    Tasks: {"generations": 1, "children": 2},
    Train: {"batch": 4},
    Families: {"children": 2, "n": 4},
    Edit: {"warmup": 100, "batch": 16, "rate": 1e-2},
    Reinforce: {"lr": 3e-3},
}
PROGRAMS = "program:circle-packing:4"  # for recipes that search
WRITTEN = "program:landscape"  # where a simulated model writes the programs
# the task that shows what a recipe does, where the usual one does not
TASKS = {
    "spear": "calc:1x1",
    "latr": "arith:1x1,1x1-chain",
    "dgm": "program:repair:10",
    "hgm": "program:repair:10",
    "auto-evolve": "program:structures:problems=2",
    "gepa": "program:regret:10",
    "meta-ttl": "program:text-games:games=3,episodes=2,limit=15",
    "data-evolve": "program:data-curation",
    "self-evolving-recsys": "program:digits-live",
    "se-agent": "program:patches:3",
    "rtv-pdr": "program:patches:3",
    "robophd": "program:sql:3",
    "evomas": "program:workflow:questions=2",
    "agent-symbolic-learning": "program:workflow:questions=2",
    "creativegame": "program:grid-games:2",
}


# one change in ten of a policy that was warmed up so shortly is of use
OWN = {"execution-grounded-rl": {"propose.children": 1, "propose.n": 24}}


def searches(composition: str) -> bool:
    """Whether a recipe searches for programs."""
    return composition in REGISTRY and REGISTRY[composition].family == "search"


def build(composition: str, task: str = "", seed: int = 0, model: str = "", **settings: Any) -> Assembled:
    """A system of small steps. Settings are paths with `__` for the dot: learn__lr=1e-3. A search has no model, unless
    it trains one."""
    rules = searches(composition) and not learners(REGISTRY[composition])
    model = model or ("none" if rules else small_model())
    if searches(composition):
        task, model = (task, "simulated") if task == WRITTEN else (TASKS.get(composition, PROGRAMS), model)
        try:
            available()
        except UserError as reason:
            pytest.skip(str(reason))
    task = task or TASKS.get(composition, TASK)
    plain = {**OWN.get(composition, {}), **{path.replace("__", "."): value for path, value in settings.items()}}
    made = assemble(RunSpec(composition, task, model, seed=seed, settings=plain, profile="short"))
    for role in made.system.roles.values():
        if isinstance(role.task, ProgramTask):
            role.task.sandbox = warm(role.task.workers, role.task.world.preload, role.task.world.folders)
    return made


@functools.cache
def warm(*options: Any) -> Sandbox:
    """A sandbox that one build after the other finds started: that takes longer than most of their steps."""
    return Sandbox(*options)


def steps(system: System, count: int) -> list[Step]:
    """The steps of all roles, in order."""
    return [s for _ in range(count) for s in system.step()]


@contextmanager
def without(name: str, path: str) -> Iterator[str]:
    """A recipe less what it does at one path, as a recipe of its own for a while."""
    original = all_recipes()[name]
    ops = [strip(op, path) for op in original.ops]
    kept = tuple(op for op in ops if op is not None)
    assert kept != original.ops, f"{name} does nothing at {path}"
    label = f"{name}-ablated"
    REGISTRY[label] = dataclasses.replace(original, name=label, ops=kept)
    try:
        yield label
    finally:
        del REGISTRY[label]


def strip(op: Any, path: str) -> Any:
    """An operation less what it does at the path; None if nothing is left."""
    if show_path(op.path) == path:
        return None
    if isinstance(op, Put):
        fields = {n: v for n, v in op.fields.items() if show_path((*op.path, n)) != path}
        return op if len(fields) == len(op.fields) else dataclasses.replace(op, fields=fields)
    return op


def learners(recipe: Recipe) -> bool:
    """Whether anything in the recipe's plan learns."""
    return any(op.path[1:] == ("learn",) for one in recipe.lineage for op in one.ops)
