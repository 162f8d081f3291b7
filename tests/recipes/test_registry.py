"""Every recipe of the registry on the real path: it takes steps, resumes to the same bits, and reads what it sets."""

from __future__ import annotations

import copy
import dataclasses
import dis
import functools
import inspect
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.recipes.recipe_runs import TASK, WRITTEN, build, learners, searches, steps

from evolvent.core.build import Built, class_fields, function_fields
from evolvent.core.recipe import SLOTS, Recipe
from evolvent.lineage import pack
from evolvent.lineage.runs import read_run
from evolvent.lineage.store import Store
from evolvent.recipes import all_recipes
from evolvent.run.assemble import Assembled
from evolvent.run.session import begin, resume

RECIPES = sorted(all_recipes())
SLOW = {  # whole agents or games, or a policy to warm up, in every step
    "agent-symbolic-learning", "creativegame", "data-evolve", "dgm", "execution-grounded-rl", "hgm", "rtv-pdr",
    "se-agent", "thetaevolve",
}  # fmt: skip
QUICK = {"alphaevolve", "hill-climbing"}  # of the searches


def marked(slow: set[str]) -> list[Any]:
    """All recipes, some of them for the slow tests."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in slow)) for name in RECIPES]


RUN = marked(SLOW)
WATCHED = marked(SLOW | {name for name in RECIPES if searches(name)} - QUICK)
CARRIED = [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK | {"grpo"})) for n in RECIPES]
TIMES = ("seconds", "verifier_seconds")  # of the ledger; metrics of time begin with seconds/


@pytest.mark.parametrize("name", RUN)
def test_it_takes_steps_and_learns(name: str) -> None:
    made = build(name)
    before = {k: v.clone() for k, v in made.policy.weights().items()}
    taken = steps(made.system, 3)
    numbers = {k: v for s in taken for k, v in s.metrics.items()}
    assert all(math.isfinite(v) for v in numbers.values()), numbers
    assert numbers["errors"] == 0
    moved = any(not torch.equal(v, made.policy.weights()[k]) for k, v in before.items())
    assert moved == learners(all_recipes()[name])
    assert moved == (made.policy.version > 0)


@pytest.mark.parametrize("name", RUN)
def test_it_resumes_to_the_same_bits(name: str, tmp_path: Path) -> None:
    whole, first = build(name), build(name)
    steps(whole.system, 3)
    steps(first.system, 2)
    pack.save(tmp_path / "state", first.system.state_dict())
    again = build(name)
    for path, part in first.system.parts.items():
        if hasattr(part, "journal"):  # what it has said for the record comes back from there
            again.system.parts[path].recall(part.journal())
    again.system.load_state_dict(pack.load(tmp_path / "state"))
    steps(again.system, 1)
    assert differences(plain(whole), plain(again)) == []


@pytest.mark.parametrize("name", CARRIED)
def test_a_run_of_it_is_carried_on(name: str, tmp_path: Path) -> None:
    """As `evolvent resume` does, which the test above does by hand."""
    store, spec = Store(tmp_path / "runs"), build(name).spec
    how: dict[str, Any] = {"logs": (), "final": False}
    begin(dataclasses.replace(spec, budget="2 steps"), store, "carried", **how)
    resume(store, "carried", budget="3 steps", **how)
    begin(dataclasses.replace(spec, budget="3 steps"), store, "whole", **how)
    carried, whole = (read_run(store, one) for one in ("carried", "whole"))
    assert len(carried.steps) == 3
    assert {u: c["payload"] for u, c in carried.candidates.items()} == {
        u: c["payload"] for u, c in whole.candidates.items()
    }
    assert [v.hash for v in carried.versions if v.step == 3] == [v.hash for v in whole.versions if v.step == 3]


def plain(made: Assembled) -> Any:
    """A system's state without its clocks."""
    state = copy.deepcopy(made.system.state_dict())
    for account in state["ledger"].values():
        for unit in TIMES:
            account.pop(unit, None)
    return state


def differences(a: Any, b: Any, path: str = "") -> list[str]:
    """Paths at which two states are not the same, bit for bit."""
    if dataclasses.is_dataclass(a) and not isinstance(a, type):
        return differences(vars_of(a), vars_of(b), path)
    if isinstance(a, dict):
        keys = {*a, *b}
        return [d for k in keys for d in differences(a.get(k), b.get(k), f"{path}/{k}")]
    if isinstance(a, list | tuple):
        if len(a) != len(b):
            return [path]
        return [d for i, (x, y) in enumerate(zip(a, b, strict=True)) for d in differences(x, y, f"{path}/{i}")]
    if hasattr(a, "shape"):
        same = torch.equal(torch.as_tensor(a), torch.as_tensor(b))
        return [] if same else [path]
    return [] if a == b or (a != a and b != b) else [path]


def vars_of(record: Any) -> dict[str, Any]:
    """Fields of a dataclass, slots included."""
    return {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}


@pytest.mark.parametrize("name", RECIPES)
def test_it_says_where_it_comes_from(name: str) -> None:
    recipe = all_recipes()[name]
    assert recipe.title
    assert recipe.doc.split("\n")[0].endswith((".", ")"))
    if recipe.paper.startswith("arXiv"):
        assert re.search(r"\d{4}\.\d{5}", recipe.paper)[0] in recipe.doc  # type: ignore[index]
    if recipe.parent is not None:
        assert recipe.lineage[0].name in ("no-change", "random-search")


# --- keys that nothing reads ---------------------------------------------------------------------------------------

COST_BONUS = ("rollout.write.ensemble.choice.cost_bonus", "rollout.mutate.choice.cost_bonus")

# read only if another setting, or what happens in the run, asks for it
NOT_ALWAYS = {
    "rollout.mutate.crossing": "only where two strategies of a category are there",
    "propose.memory.recent": "only what a model is shown",
    "learn.divergence": "learn.kl is 0",
    "judge.opinion.metric": "only once a model has given a mark",
    "judge.tries": "only proposals that parse are tried, and the small model makes none",
    "propose.shared": "only where two programs are merged",
    "keep.max_age": "only once the buffer is replayed",
    "keep.warmup": "only once the buffer is replayed",
    "keep.islands.migration": "only after many steps of each island",
    "rollout.write.ensemble.prices": "only with models behind endpoints",
    "rollout.write.ensemble.shares": "only where no bandit chooses",
    **dict.fromkeys(COST_BONUS, "only where costs count"),
}


# the simulated model writes for another world than these recipes are for
ONE_WORLD = {  # the simulated model does not write for theirs
    "agent-symbolic-learning", "auto-evolve", "creativegame", "data-evolve", "dgm", "evomas", "gepa", "hgm", "meta-ttl",
    "robophd", "rtv-pdr", "se-agent",
}  # fmt: skip


@pytest.mark.parametrize("name", WATCHED)
def test_every_field_of_every_part_is_read(name: str) -> None:
    made = build(name, task=f"{TASK},1x1-chain")  # a level with shaping, too
    idle = unread(made)
    if name in ONE_WORLD:
        idle = {field for field in idle if not field.startswith("rollout.write")}
    elif searches(name):  # rules vary programs, or models write them
        several = "rollout.write.ensemble" in made.system.parts
        models = {"rollout__write__ensemble__models": "simulated:skill=0.9"} if several else {}
        idle &= unread(build(name, task=WRITTEN, **models))
        if learners(all_recipes()[name]):  # so far a small model has edited programs
            idle &= unread(build(name, model="none"))
    assert sorted(idle) == []


def unread(made: Assembled) -> set[str]:
    """Fields of parts that are not read within a few steps."""
    read = {path: track(part) for path, part in made.system.parts.items()}
    for role in made.system.roles.values():
        for part in role.parts.values():
            if hasattr(part, "setup"):
                part.setup(role)
    for _ in range(10):  # some parts wait before they act
        steps(made.system, 1)
        idle = set(idle_fields(made, read))
        if not idle:
            break
    return idle


def idle_fields(made: Assembled, read: dict[str, set[str]]) -> list[str]:
    """Fields of parts that have not been read."""
    idle = []
    for built in made.built.values():
        for path, part in built.parts.items():
            slot = path.split("/")[-1].split(".")[0]
            if slot in SLOTS:  # adapters and tasks of roles are read when the roles are made
                fields = set(class_fields(type(part).__bases__[0])) - {"inner"} - read[path]
                idle += [f"{path}.{f}" for f in sorted(fields) if f"{path}.{f}".split("/")[-1] not in NOT_ALWAYS]
    return idle


def track(part: Any) -> set[str]:
    """The names that are read of a part from now on; its class becomes a subclass that takes note."""
    names: set[str] = set()
    kind = type(part)

    def noted(self: Any, name: str) -> Any:
        names.add(name)
        return kind.__getattribute__(self, name)

    object.__setattr__(part, "__class__", type(kind.__name__, (kind,), {"__getattribute__": noted}))
    return names


@pytest.mark.parametrize("name", RECIPES)
def test_every_parameter_of_every_function_is_used(name: str) -> None:
    for built in build(name).built.values():
        for function in functions(built):
            plain = inspect.unwrap(function)  # the checks of shapes wrap it
            used = {i.argval for i in dis.get_instructions(plain) if i.opname.startswith("LOAD")}
            used |= {name for i in used if isinstance(i, tuple) for name in i}
            assert set(function_fields(function)) <= used, function.__name__


def functions(built: Built) -> list[Any]:
    """The functions among the settings of a role."""
    values = [s.value for s in built.settings] + [s.paper for s in built.settings]
    plain = [v.func if isinstance(v, functools.partial) else v for v in values]
    return [v for v in plain if hasattr(v, "__code__")]


def test_the_baselines_are_there() -> None:
    wanted = {
        "reinforce", "rloo", "grpo", "dr-grpo", "dapo", "gspo", "cispo", "sft", "raft", "dpo", "best-of-n", "no-change"
    }  # fmt: skip
    assert wanted <= set(RECIPES)


def test_every_recipe_is_short() -> None:
    for recipe in all_recipes().values():
        assert isinstance(recipe, Recipe)
        assert len(Path(recipe.file).read_text().splitlines()) <= 400
