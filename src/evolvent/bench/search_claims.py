"""What claims about searches need beside those about models: their cells, the files these rest on, and the world."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from evolvent.bench.closure import ROOT, closure, module_file
from evolvent.bench.search_cell import SearchCell
from evolvent.bench.search_metrics import check_name
from evolvent.core import places
from evolvent.core.claim import Claim
from evolvent.core.errors import UserError
from evolvent.core.recipe import compile_plan
from evolvent.engine import SPECIAL, is_endpoint
from evolvent.recipes import all_recipes, resolve
from evolvent.tasks import ADAPTERS
from evolvent.tasks.base import Task
from evolvent.tasks.evaluation import judges_answers
from evolvent.tasks.registry import load_task, parts_of
from evolvent.tasks.worlds import WORLDS

NO_MODEL = "none"
INSIDE = [f"evolvent.guard.inside.{path.stem}" for path in sorted((ROOT / "guard" / "inside").glob("[!_]*.py"))]
PLACE = re.compile(r"(evolvent\.[\w.]+):\w+")  # of a part of the package


@cache
def is_search(task: str) -> bool:
    """Whether a task is solved by a search: it evaluates programs, and judges no answers."""
    one = task.partition(":")[0]
    return one in ADAPTERS and not judges_answers(load_task(task))  # only tasks of adapters may be of that kind


def check_claim(one: Claim) -> None:
    """`UserError` for claims about searches that cannot be measured, before anything is."""
    for name in (*(c.metric for c in one.components), *([one.tune_by] if one.tune else [])):
        check_name(name)
    if one.test not in ("", one.task):
        raise UserError(f"the claim `{one.text}` is tested on {one.test}; a search is tested on its own task only")
    if is_endpoint(one.model):
        raise UserError(f"the claim `{one.text}` asks {one.model}, which nobody can repeat; take `none` or `tiny`")


def cell_of(one: Claim, arm: str, recipe: str, model: str, seed: int, settings: Mapping[str, Any]) -> SearchCell:
    """The cell of an arm and a seed; parts among the settings are named as `module:name`."""
    named = {k: place_of(v) if callable(v) else v for k, v in settings.items()}
    return SearchCell(arm, recipe, one.task, model, seed, one.budget, named, evals=one.evals)


def place_of(part: Any) -> str:
    """`module:name` of a class or function."""
    return f"{part.__module__}:{part.__qualname__}"


def files_of(cell: SearchCell, roots: Iterable[str | Path]) -> list[str | Path]:
    """Beside modules that `roots` import: the world, what runs inside the sandbox, what stands for a model, parts among
    the settings, files of a world (of its name, or in a folder of its own), and with a model those in `prompts`."""
    found: list[str | Path] = ["evolvent.bench.search_cell", *INSIDE]
    for part in parts_of(cell.task):
        kind, _, rest = part.partition(":")
        name = rest.partition(":")[0]
        if kind == "program" and name in WORLDS:
            module = WORLDS[name][0].partition(":")[0]
            found += [module, *getattr(importlib.import_module(module), "RESTS_ON", ())]  # what it imports in functions
    found += [match[1] for value in cell.settings.values() if (match := PLACE.fullmatch(str(value)))]
    if cell.model in SPECIAL:
        found.append(SPECIAL[cell.model].partition(":")[0])
        found += ["evolvent.engine.simulated_writer"] if cell.model.startswith("simulated") else []
    found += [file for key, own in cell.settings.items() if key.endswith(".prompts") for file in texts(Path(str(own)))]
    for module in closure([*roots, *found]):
        path = module_file(module) if module.startswith("evolvent.") else None
        if path and cell.model != NO_MODEL:
            found += texts(path.parent / "prompts")
        if path and path.parent.name == "worlds":
            found += [file for file in path.parent.glob(f"{path.stem}.*") if file != path]
        if path and path.parent.parent.name == "worlds":
            found += texts(path.parent)
    return found


def texts(folder: Path) -> list[Path]:
    """The files below a folder, caches aside; none where there is no such folder."""
    return sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def world_of(claims: Iterable[Claim], recipe: str) -> str:
    """What kind of world the claims of a recipe are about.

    `simulated` where the model, the task or a part of our arm says so (an attribute `simulated` that is true);
    `tiny-policy` where the seed models act, or are what evolves; `scripted` where programs are searched that no model
    writes, and a scripted agent acts on them in its place; else `real`.
    """
    kinds = set()
    for one in claims:
        task = load_task(one.task) if is_search(one.task) else None
        if one.model.startswith("simulated") or (task and is_simulated(one, recipe, task)):
            kinds.add("simulated")
        elif task is None or one.model != NO_MODEL or hasattr(task, "policy_of"):
            kinds.add("tiny-policy")
        else:
            kinds.add("scripted" if getattr(task, "scripted_agent", False) else "real")
    return next(kind for kind in ("simulated", "tiny-policy", "scripted", "real") if kind in kinds)


def is_simulated(one: Claim, recipe: str, task: Task) -> bool:
    """Whether the task of a search, or a part of our arm, is a simulation."""
    own = dict(one.arms.get("ours", {}))
    plan = compile_plan(resolve(own.pop("recipe", recipe)), all_recipes(), {**one.common, **own}, {})
    parts = [entry.value for entry in plan.values.values()]
    parts += [site.wrapper for sites in plan.wraps.values() for site in sites]
    named = [places.at(part) if isinstance(part, str) and PLACE.fullmatch(part) else part for part in parts]
    return any(getattr(part, "simulated", False) for part in (task, *named))
