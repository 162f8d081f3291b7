"""What the registry knows of recipes, as plain data: rows of the table, one recipe in full, its evidence."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import evolvent
from evolvent.core.build import Builder, Setting
from evolvent.core.errors import unknown
from evolvent.core.loop import everyone
from evolvent.core.recipe import (
    FIXTURES,
    ROOT,
    SLOTS,
    Put,
    Recipe,
    compile_plan,
    describe,
    parse_composition,
    show_path,
)
from evolvent.recipes import all_recipes, resolve
from evolvent.recipes.profiles import PROFILES, profile_of

SEARCHED = {"gepa": "program:regret"}  # whose rules look at instances


def evidence_folder() -> Path:
    """Where the evidence is: in the package, or in the repository that it was installed from."""
    package = Path(evolvent.__file__).parent
    inside = package / "evidence"
    return inside if inside.is_dir() else package.parents[1] / "evidence"


def read_evidence(name: str) -> dict[str, Any] | None:
    """The evidence file of a recipe."""
    path = evidence_folder() / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def verdict_line(claim: Mapping[str, Any]) -> str:
    """`holds (+0.031 [+0.012, +0.050], 8 seeds)`: the weakest test of a claim speaks for it."""
    tests = [t for c in claim["components"] if c.get("expected") != "does-not-hold" for t in c["tests"]]
    worst = next((t for t in tests if t["verdict"] == claim["verdict"]), tests[0])
    low, high = worst["interval"]
    return f"{claim['verdict']} ({worst['effect']:+.3g} [{low:+.3g}, {high:+.3g}], {len(claim['seeds'])} seeds)"


def verdicts(name: str) -> dict[str, str]:
    """Verdict lines of a recipe by kind of claim."""
    data = read_evidence(name)
    return {c["kind"]: verdict_line(c) for c in data["claims"]} if data else {}


def rows() -> list[dict[str, Any]]:
    """One row a recipe, parents first."""
    found = []
    for recipe in sorted(all_recipes().values(), key=lambda r: (r.family, len(r.lineage), r.name)):
        data = read_evidence(recipe.name)
        claims = {c["kind"]: c["verdict"] for c in data["claims"]} if data else {}
        promised = recipe.mechanism or recipe.outcome
        found.append(
            {
                "recipe": recipe.name,
                "family": recipe.family,
                "parent": recipe.parent.name if recipe.parent else None,
                "title": recipe.title,
                "paper": recipe.paper,
                "changes": changes(recipe),
                "file": Path(recipe.file).name,
                "command": command(recipe),
                "evidence": ", ".join(f"{k} {v}" for k, v in claims.items()) or ("not measured" if promised else ""),
            }
        )
    return found


def command(recipe: Recipe) -> str:
    """How to run a recipe on the task of its claim, or else on one that it fits: searches want programs."""
    claim = recipe.outcome or recipe.mechanism
    other = SEARCHED.get(recipe.name, "program:circle-packing:26") if recipe.family == "search" else ""
    task = claim.task if claim else other
    return f"evolvent run {recipe.name}" + (f" --task {task}" if task else "")


def changes(recipe: Recipe) -> list[str]:
    """Paths that a recipe's own patch touches."""
    found = []
    for op in recipe.ops:
        found.append(show_path(op.path))
        found += [show_path((*op.path, name)) for name in op.fields if isinstance(op, Put)]
    return list(dict.fromkeys(found))


def op_line(op: Any) -> str:
    """One operation as it stands in the file."""
    verb, what = ("put", op.value) if isinstance(op, Put) else ("wrap", op.wrapper)
    fields = "".join(f", {k}={describe(v)}" for k, v in op.fields.items())
    return f"{verb} {show_path(op.path)}: {describe(what)}{fields}"


def settings_of(composition: str, settings: Mapping[str, Any], take: Mapping[str, str], profile: str) -> list[Setting]:
    """Every key of a composition with its value and origin; nothing is run."""
    if profile not in PROFILES:
        raise unknown("profile", profile, PROFILES, "profiles: " + ", ".join(PROFILES))
    plan = compile_plan(resolve(composition), all_recipes(), settings, take)
    builder = Builder(plan, profile_of(profile), profile)
    built = [builder.role(name, dict.fromkeys((*SLOTS, *FIXTURES))) for name in plan.roles]
    built.append(builder.role(ROOT, {"turns": everyone}))
    builder.finish()
    return [s for b in built for s in b.settings]


def place(one: Recipe) -> str:
    """Where a recipe is written down: within the package, or as seen from here."""
    file = Path(one.file)
    own = file.is_relative_to(Path(__file__).parent)
    return f"recipes/{one.family}/{file.name}" if own else os.path.relpath(file)


def describe_composition(
    composition: str, settings: Mapping[str, Any], take: Mapping[str, str], profile: str
) -> dict[str, Any]:
    """A composition in full."""
    composition = resolve(composition)
    parts = [r for _, r in parse_composition(composition, all_recipes())]
    plan = compile_plan(composition, all_recipes(), settings, take)
    return {
        "composition": composition,
        "parts": [r.name for r in parts],
        "profile": profile,
        "recipes": [
            {
                "name": r.name,
                "parent": r.parent.name if r.parent else None,
                "lineage": [a.name for a in r.lineage],
                "title": r.title,
                "paper": r.paper,
                "family": r.family,
                "doc": r.doc,
                "file": place(r),
                "ops": [op_line(op) for op in r.ops],
                "claims": {k: asdict(c) for k, c in (("mechanism", r.mechanism), ("outcome", r.outcome)) if c},
                "verdicts": verdicts(r.name),
                "notes": r.notes,
            }
            for r in plan.recipes
        ],
        "values": [
            {"path": show_path(s.path), "paper": describe(s.paper), "value": describe(s.value), "origin": s.origin}
            for s in settings_of(composition, settings, take, profile)
        ],
    }
