"""Measure the claims of a recipe by the evidence protocol (docs/protocol.md), cell by cell, resumable.

pilot      seeds 1000-1003 of the claims as they are, to settle a regime by
register   the claims are written to evidence/ID.json before any verdict seed runs
tune       every arm tries the same configurations on seeds 1000-1003
verdict    seeds 0-7; where that is inconclusive, 8-15 are added once, and then it is final
"""

from __future__ import annotations

import datetime
import hashlib
import inspect
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import evolvent
from evolvent.bench.cell import Cell, failed_in
from evolvent.bench.closure import ROOT, closure, combined, weights_hash
from evolvent.bench.evidence import Evidence, rounded
from evolvent.bench.grid import over_grid
from evolvent.bench.metrics import metric, parts_needed
from evolvent.bench.pool import AnyCell, run_cells
from evolvent.bench.search_claims import cell_of, check_claim, files_of, is_search, place_of, world_of
from evolvent.bench.statistics import Interval, Verdict, combine, decide, sign_flip_p
from evolvent.core.claim import Claim, Component
from evolvent.core.errors import UserError
from evolvent.core.grid import GridClaim
from evolvent.core.ledger import Budget
from evolvent.core.recipe import Recipe, parse_composition
from evolvent.engine import SPECIAL
from evolvent.models.load import find_model
from evolvent.recipes import all_recipes, resolve
from evolvent.tasks.registry import sources_of

PROTOCOL = 1
TUNING_SEEDS = (1000, 1001, 1002, 1003)
VERDICT_SEEDS = tuple(range(8))
MORE_SEEDS = tuple(range(8, 16))
SEED_MODELS = 4
CELL_SECONDS, CLAIM_MINUTES = 90, 40
IMPORTED_LATE = (  # in a function, by what runs a model
    "evolvent.engine.huggingface",
    "evolvent.models.load",
    "evolvent.models.lora",
    "evolvent.models.reference",
    "evolvent.recipes.tiny",
)
NEW_CLAIMS = "the claims themselves"
Say = Callable[[str], None]


class Study:
    """The claims of one recipe: which cells they need, and what follows from their results."""

    def __init__(self, recipe: Recipe, evidence: Evidence, jobs: int = 1, say: Say = lambda line: None) -> None:
        self.recipe, self.evidence, self.jobs, self.say = recipe, evidence, jobs, say
        self.claims: dict[str, Claim] = {}
        for kind, one in (("mechanism", recipe.mechanism), ("outcome", recipe.outcome)):
            if one is not None:
                self.claims[kind] = one
        if not self.claims:
            raise UserError(f"recipe `{recipe.name}` makes no claims; add mechanism= and outcome= to its definition")
        for one in self.claims.values():
            if is_search(one.task):
                check_claim(one)
        self.known = all_recipes()
        self.results = evidence.cells(recipe.name)
        self.grounds: dict[str, str] = {}  # what cells rest on, by what they are

    def registration(self) -> dict[str, Any]:
        """The claims as data, and their hash."""
        data = {kind: json.loads(json.dumps(asdict(c), default=named)) for kind, c in self.claims.items()}
        return {
            "claims": data,
            "hash": hashlib.blake2b(json.dumps(data, sort_keys=True).encode(), digest_size=8).hexdigest(),
        }

    def register(self) -> dict[str, Any]:
        """Write the claims down before they are measured. Claims that were changed after verdict seeds ran are kept."""
        there = self.evidence.read(self.recipe.name) or {}
        now = self.registration()
        before = there.get("registered", {}).get("hash")
        if before == now["hash"]:
            return there
        measured = there.get("claims") or any(r["cell"]["seed"] in VERDICT_SEEDS for r in self.results.values())
        data = {
            "id": self.recipe.name,
            "protocol": PROTOCOL,
            "world": self.world(),
            "registered": now,
            "earlier": [*there.get("earlier", []), *([_summary(there)] if there and measured else [])],
            "claims": [],
            "notes": there.get("notes", ""),
        }
        self.evidence.write(self.recipe.name, data)
        return data

    def world(self) -> str:
        """`simulated`, `tiny-policy`, `scripted` or `real`; the first of these that any of the claims is."""
        return world_of(self.claims.values(), callable_name(self.recipe))

    # --- cells ---

    def arm(self, one: Claim, name: str) -> tuple[str, dict[str, Any]]:
        """Recipe and settings of an arm."""
        own = dict(one.arms.get(name, {}))
        return own.pop("recipe", callable_name(self.recipe) if name == "ours" else name), {**one.common, **own}

    def cell(self, one: Claim, name: str, seed: int, extra: Mapping[str, Any]) -> AnyCell:
        """The cell of an arm and a seed. Cells of both claims that agree in everything are one."""
        composition, settings = self.arm(one, name)
        model = f"{one.model}-{seed % SEED_MODELS}" if one.model == "tiny" else one.model
        if is_search(one.task):
            return cell_of(one, name, composition, model, seed, {**settings, **extra})
        wanted = [c.metric for claims in self.claims.values() if claims.task == one.task for c in claims.components]
        k, probes = parts_needed([*wanted, one.tune_by])
        return Cell(
            name,
            composition,
            one.task,
            model,
            seed,
            one.budget,
            {**settings, **extra},
            test=one.test,
            evals=one.evals,
            problems=one.problems,
            k=k,
            probes=probes,
        )

    def code(self, cell: AnyCell) -> dict[str, str]:
        """Hashes of the modules and files that a cell depends on."""
        recipes = [one for _, one in parse_composition(resolve(cell.recipe), self.known)]
        own = [home(ancestor) for one in recipes for ancestor in one.lineage]
        if not isinstance(cell, Cell):
            own += [*sources_of(cell.task), *(() if cell.model in SPECIAL else IMPORTED_LATE)]
            return closure([*own, *files_of(cell, own)])
        roots: list[str | Path] = ["evolvent.bench.cell", *IMPORTED_LATE, *own]
        for spec in (cell.task, cell.test or cell.task):
            roots += sources_of(spec)
        roots += [name.partition(":")[0] for name in cell.probes if name.startswith("evolvent.")]
        return closure(roots)

    def key(self, cell: AnyCell) -> str:
        """The cell's key: its configuration, its code and its model's weights."""
        return cell.key(self.rests_on(cell))

    def rests_on(self, cell: AnyCell) -> str:
        """Hashes of the code that a cell rests on and of its model's weights, as one text; as they were when it was
        first asked for, so that a file that is changed while a cell runs does not get its result."""
        asked = cell.key("")
        if asked not in self.grounds:
            self.grounds[asked] = combined(self.code(cell)) + model_hash(cell.model)
        return self.grounds[asked]

    def run(self, cells: Sequence[AnyCell]) -> list[dict[str, Any]]:
        """Results in order; only what is missing is run."""
        keys = [self.key(c) for c in cells]
        missing = {k: c for k, c in zip(keys, cells, strict=True) if k not in self.results}
        try:
            for cell, result in run_cells(list(missing.values()), self.jobs, self.say):
                self.add(self.row(cell, result))
                if (took := result["seconds"]["cell"]) > CELL_SECONDS:
                    self.say(f"note: that cell took {took:.0f} s, the protocol allows {CELL_SECONDS}")
        except KeyboardInterrupt:
            self.say("interrupted; finished cells are kept, and the same command goes on from there")
            raise
        return [self.results[k] for k in keys]

    def row(self, cell: AnyCell, result: Mapping[str, Any]) -> dict[str, Any]:
        """What is kept of a cell."""
        return {"key": self.key(cell), "rests_on": self.rests_on(cell), **rounded(result)}

    def add(self, row: dict[str, Any]) -> None:
        """Keep a cell's row."""
        self.evidence.keep(self.recipe.name, row)
        self.results[row["key"]] = row

    # --- protocol ---

    def pilot(self) -> dict[str, Any]:
        """What the claims as they are come to on the seeds of tuning; cells are kept, and nothing is registered.

        Tests of components have no verdicts, since four seeds decide nothing; of a grid there is one claim a point.
        """
        claims = []
        for kind, one in self.claims.items():
            for point in (*one.where, *one.nowhere) if isinstance(one, GridClaim) else ({},):
                there = one.at(point) if isinstance(one, GridClaim) else one
                found = self.compare(there, {a: {} for a in ("ours", *there.baselines)}, TUNING_SEEDS)
                for part in found["components"]:
                    part["point"] = dict(point)
                    for row in part["tests"]:
                        del row["verdict"], row["p_sign_flip"]
                claims.append({"kind": kind, "text": one.text, **{k: found[k] for k in ("components", "mean_spent")}})
        cells = [row for row in self.results.values() if row["cell"]["seed"] in TUNING_SEEDS]
        return {"id": self.recipe.name, "world": self.world(), "pilot": claims, "spent": self.spent(cells)}

    def measure(self) -> dict[str, Any]:
        """Everything that is missing, then the file with the verdicts."""
        data = self.register()
        claims, tuning = [], []
        for kind, one in self.claims.items():
            chosen, tried = self.tuned(one)
            tuning += [{"claim": kind, **row} for row in tried]
            claims.append({"kind": kind, **self.verdict(one, chosen)})
        data |= {
            "world": self.world(),
            "claims": claims,
            "tuning": tuning,
            "spent": self.spent(list(self.results.values())),
            "taken_over": sum("measured" in row for row in self.results.values()),
            "command": f"evolvent claims {self.recipe.name}",
            "code": self.code_of_all(),
            "version": evolvent.__version__,
            "date": datetime.date.today().isoformat(),
        }
        self.evidence.write(self.recipe.name, data)
        return data

    def tuned(self, one: Claim) -> tuple[dict[str, Mapping[str, Any]], list[dict[str, Any]]]:
        """The best configuration of every arm by the tuning metric, and all that was tried."""
        arms = ("ours", *one.baselines)
        if not one.tune:
            return {a: {} for a in arms}, []
        cells = [self.cell(one, a, seed, setting) for a in arms for setting in one.tune for seed in TUNING_SEEDS]
        results = iter(self.run(cells))
        chosen: dict[str, Mapping[str, Any]] = {}
        tried: list[dict[str, Any]] = []
        for a in arms:
            scores = []
            for setting in one.tune:
                values = [metric(one.tune_by, next(results)) for _ in TUNING_SEEDS]
                scores.append(sum(values) / len(values))
                tried.append({"arm": a, "settings": dict(setting), one.tune_by: [round(v, 6) for v in values]})
            known = [-math.inf if math.isnan(score) else score for score in scores]
            chosen[a] = one.tune[max(range(len(known)), key=known.__getitem__)]
        return chosen, tried

    def verdict(self, one: Claim, chosen: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Components, intervals and the verdict; more seeds once if it is inconclusive. One for all of a grid."""
        if isinstance(one, GridClaim):
            return over_grid(one, lambda at: self.verdict(at, chosen))
        seeds: tuple[int, ...] = VERDICT_SEEDS
        found = self.compare(one, chosen, seeds)
        if found["verdict"] == "inconclusive":
            seeds = VERDICT_SEEDS + MORE_SEEDS
            found = self.compare(one, chosen, seeds)
        budget = Budget.parse(one.budget)
        return {
            "text": one.text,
            "task": one.task,
            "test": one.test or one.task,
            "budget": {"unit": budget.unit, "value": budget.amount},
            "seeds": list(seeds),
            "chosen": {a: dict(c) for a, c in chosen.items()},
            **found,
        }

    def compare(self, one: Claim, chosen: Mapping[str, Mapping[str, Any]], seeds: Sequence[int]) -> dict[str, Any]:
        """Every component against every baseline on paired seeds."""
        arms = ("ours", *one.baselines)
        cells = [self.cell(one, a, seed, chosen[a]) for a in arms for seed in seeds]
        rows = self.run(cells)
        by_arm = {a: rows[i * len(seeds) : (i + 1) * len(seeds)] for i, a in enumerate(arms)}
        components, verdicts = [], []
        for part in one.components:
            values = {a: [metric(part.metric, r) for r in by_arm[a]] for a in ("ours", *part.against)}
            tests = []
            for name in part.against:
                verdict, interval, differences = test(part, values["ours"], values[name])
                verdicts.append(verdict)
                tests.append(
                    {
                        "baseline": name,
                        "effect": interval.mean,
                        "interval": [interval.low, interval.high],
                        "verdict": verdict,
                        "p_sign_flip": sign_flip_p(differences),
                    }
                )
            components.append(
                {
                    **asdict(part),
                    "ours": values["ours"],
                    "baselines": {a: values[a] for a in part.against},
                    "tests": tests,
                }
            )
        control, column = ("seed-program", "best") if is_search(one.task) else ("no-change", "sampled")
        spent = {
            a: {u: sum(r["spent"][u] for r in by_arm[a]) / len(seeds) for u in by_arm[a][0]["spent"]} for a in arms
        }
        return rounded(
            {
                "verdict": combine(verdicts),
                "components": components,
                "controls": {control: [r["curve"][0][column] for r in by_arm["ours"]]},
                "mean_spent": spent,
                **({"stuck": stuck} if (stuck := stuck_cells(by_arm)) else {}),
                **({"failed": failed} if (failed := failed_answers(by_arm)) else {}),
            }
        )

    def spent(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Processor minutes and cells, of all that was run."""
        seconds = sum(r["seconds"]["cell"] for r in rows)
        return {"cells": len(rows), "cpu_minutes": round(seconds / 60, 1)}

    def code_of_all(self) -> dict[str, str]:
        """Module hashes of all arms of all claims, and the models' weights."""
        found: dict[str, str] = {}
        for one in self.claims.values():
            for arm in ("ours", *one.baselines):
                found |= self.code(self.cell(one, arm, 0, {}))
            for model in {self.cell(one, "ours", seed, {}).model for seed in range(SEED_MODELS)}:
                if weights := model_hash(model):
                    found[f"model {model}"] = weights
        return dict(sorted(found.items()))


def stuck_cells(by_arm: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, int]:
    """How many cells of an arm ended before their budget because nothing new came of them; only arms that have some."""
    counts = {arm: sum("stuck" in row for row in rows) for arm, rows in by_arm.items()}
    return {arm: count for arm, count in counts.items() if count}


def failed_answers(by_arm: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, int]:
    """How many answers of an arm could not be judged when it was evaluated; only arms that have some."""
    counts = {arm: sum(failed_in(row) for row in rows) for arm, rows in by_arm.items()}
    return {arm: count for arm, count in counts.items() if count}


def model_hash(model: str) -> str:
    """Hash of a model's weights; empty for what has none."""
    return "" if model in SPECIAL else weights_hash(find_model(model))


def home(recipe: Recipe) -> str | Path:
    """The module of a recipe of this package, or the file of a user's."""
    file = Path(recipe.file)
    return f"evolvent.recipes.{recipe.family}.{file.stem}" if file.is_relative_to(ROOT) else file


def named(value: Any) -> str:
    """A value that JSON does not know; functions by their place, since what Python says of them has an address."""
    return place_of(value) if inspect.isfunction(value) else str(value)


def callable_name(recipe: Recipe) -> str:
    """What a process that has not loaded the recipe can call it by."""
    place = home(recipe)
    return recipe.name if isinstance(place, str) else f"{os.path.relpath(place)}:{recipe.name}"


def test(part: Component, ours: Sequence[float], theirs: Sequence[float]) -> tuple[Verdict, Interval, list[float]]:
    """The protocol's test of a component against one baseline; differences are signed so that more is better."""
    if part.scale == "log" and min(*ours, *theirs) <= 0:
        raise UserError(
            f"{part.metric} is not above 0 in every run, so it has no logarithm; claim it on a linear scale"
        )
    sign = 1.0 if part.direction == "up" else -1.0
    scale = math.log if part.scale == "log" else float
    differences = [sign * (scale(a) - scale(b)) for a, b in zip(ours, theirs, strict=True)]
    verdict, interval = decide(differences, part.delta, part.kind)
    return verdict, interval, differences


def _summary(data: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of an earlier registration that was measured: nothing that was tried is forgotten."""
    return {
        "registered": data.get("registered"),
        "date": data.get("date"),
        "verdicts": {c["kind"]: c["verdict"] for c in data.get("claims", [])},
    }


def stale(evidence: Evidence) -> dict[str, list[str]]:
    """Recipes whose evidence rests on code or models that have changed since, and what has changed."""
    found = {}
    known = all_recipes()
    for path in sorted(evidence.root.glob("*.json")):
        data = json.loads(path.read_text())
        name = data["id"]
        if name not in known:
            found[name] = [f"there is no such recipe here; one of your own is named by its file, FILE:{name}"]
            continue
        if not data.get("claims"):
            found[name] = ["registered, not measured"]
            continue
        study = Study(known[name], evidence)
        now = study.code_of_all()
        changed = [m for m in sorted({*now, *data["code"]}) if now.get(m) != data["code"].get(m)]
        if study.registration()["hash"] != data["registered"]["hash"]:
            changed.insert(0, NEW_CLAIMS)
        if changed:
            found[name] = changed
    return found
