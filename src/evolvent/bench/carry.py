"""Take evidence over to code that was changed in form alone: a moved import, a split file, a part of its own.

Such a change gives every cell another key. But a cell repeats exactly, so one cell of each configuration, run again on
the code as it is, tells whether its results are the same, to the last digit that is kept. If they are, the results of
the other seeds are taken over, and each says on which code it was measured. If not, all are measured anew.

Processors differ in the last digits of a sum, so a cell repeats on one machine only. Given the code as it was measured
(`before`, a folder with a checkout of it), a cell that came out otherwise is run there as well, on this machine: what
both give must be the same.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evolvent.bench.claims import Study
from evolvent.bench.closure import combined
from evolvent.bench.evidence import rounded
from evolvent.bench.pool import AnyCell, run_cells
from evolvent.core.errors import UserError

Row = dict[str, Any]
Group = list[tuple[AnyCell, Row]]  # cells of one configuration, each with its result on earlier code
CODE = len(combined({}))  # characters of what a cell rests on that are of its code; the rest is of its model's weights
TIMES = {"seconds", "verifier_seconds"}  # of the ledger; the clock never repeats
THERE = """
import json, pickle, sys, tempfile
from pathlib import Path
from evolvent.bench.claims import Study
from evolvent.bench.evidence import Evidence
from evolvent.bench.pool import run_cells
from evolvent.recipes import all_recipes
name, cell = pickle.load(sys.stdin.buffer)
with tempfile.TemporaryDirectory() as folder:
    study = Study(all_recipes()[name], Evidence(Path(folder)))
    [(_, result)] = run_cells([cell], 1)
    print(json.dumps(study.row(cell, result), default=str))
"""


class Carry(Study):
    """A study that takes over what it can before it runs what is missing."""

    before: Path | None = None  # a checkout of the code as it was measured

    def run(self, cells: Sequence[AnyCell]) -> list[Row]:
        """Results in order; those of configurations that come out the same on the code as it is are taken over."""
        before = {wanted(row["cell"]): row for row in self.results.values() if "rests_on" in row}
        groups: dict[tuple[str, str], Group] = {}
        for cell in cells:
            old = before.get(wanted(asdict(cell)))
            if old and self.key(cell) not in self.results and self.same_weights(cell, old):
                group = groups.setdefault((configuration(asdict(cell)), old["rests_on"][:CODE]), [])
                if all(old is not row for _, row in group):  # two arms may ask for the same cell
                    group.append((cell, old))
        again: dict[str, tuple[AnyCell, Group]] = {}
        for group in groups.values():
            if not self.refuted(group):
                one = typical(group)
                again[self.key(one)] = one, group
        other = []
        for cell, result in run_cells([one for one, _ in again.values()], self.jobs, self.say) if again else ():
            group, new = again[self.key(cell)][1], self.row(cell, result)
            old = next(row for one, row in group if one is cell)
            if not differences(old, new):
                self.take_over(group, {old["key"]: new}, cell)
            elif self.before:
                other.append((cell, group, old, new))
            else:
                self.leave(group, cell, old, new)
        if other:
            self.say(f"running {len(other)} cells on the code as it was measured, in {self.before}")
        with ThreadPoolExecutor(self.jobs) as pool:
            for (cell, group, _, new), was in zip(other, pool.map(self.as_it_was, other), strict=True):
                if differences(was, new):
                    self.leave(group, cell, was, new)
                else:
                    self.take_over(group, {}, cell)
        return super().run(cells)

    def as_it_was(self, asked: tuple[AnyCell, Group, Row, Row]) -> Row:
        """The row of a cell on the code as it was measured, on this machine. `UserError` where `before` has another."""
        cell, _, old, _ = asked
        there = {**os.environ, "PYTHONPATH": str((self.before or Path()).resolve() / "src")}
        made = subprocess.run(
            [sys.executable, "-c", THERE], input=pickle.dumps((self.recipe.name, cell)), env=there, capture_output=True
        )
        name = f"{cell.arm}, seed {cell.seed}"
        if made.returncode:
            last = made.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise UserError(f"{name} cannot be run on the code in {self.before} ({last}); leave --before out")
        row: Row = json.loads(made.stdout.splitlines()[-1])
        if row["rests_on"] != old["rests_on"]:
            raise UserError(
                f"{self.before} does not hold the code that {name} was measured on; check out the commit of the "
                "evidence there, as by `git worktree add FOLDER COMMIT`"
            )
        return row

    def refuted(self, group: Group) -> bool:
        """Whether a cell of the configuration has come out otherwise on the code as it is, now or in an earlier try."""
        (cell, old), kind = group[0], configuration(asdict(group[0][0]))
        rows = [r for r in self.results.values() if "rests_on" in r and configuration(r["cell"]) == kind]
        code = self.rests_on(cell)[:CODE]
        new = {wanted(r["cell"]): r for r in rows if r["rests_on"][:CODE] == code and "measured" not in r}
        before = [r for r in rows if r["rests_on"][:CODE] == old["rests_on"][:CODE] and wanted(r["cell"]) in new]
        pairs = [(r, new[wanted(r["cell"])]) for r in before]
        return any(a["rests_on"][CODE:] == b["rests_on"][CODE:] and differences(a, b) for a, b in pairs)

    def same_weights(self, cell: AnyCell, old: Row) -> bool:
        """Whether the model is the one that the cell was measured with."""
        return bool(old["rests_on"][CODE:] == self.rests_on(cell)[CODE:])

    def take_over(self, group: Group, rows: dict[str, Row], cell: AnyCell) -> None:
        """Give the results of a configuration the keys of the code as it is; `rows` are those that were measured on it,
        by the keys that they had before."""
        for one, row in group:
            if row["key"] not in rows:
                measured = row.get("measured", {"key": row["key"], "rests_on": row["rests_on"]})
                place = {"key": self.key(one), "rests_on": self.rests_on(one), "measured": measured}
                rows[row["key"]] = row | place
        self.evidence.replace(self.recipe.name, rows)
        self.results = self.evidence.cells(self.recipe.name)
        other = len(group) - 1
        self.say(f"{self.called(cell)}: the same on the code as it is; {other} other cells are taken over")

    def leave(self, group: Group, cell: AnyCell, old: Row, new: Row) -> None:
        """Keep what came out otherwise, and say so."""
        changed = ", ".join(differences(old, new)[:4])
        self.say(f"{self.called(cell)}: {changed} came out otherwise; {len(group)} cells are measured anew")
        self.add(new)

    @staticmethod
    def called(cell: AnyCell) -> str:
        """A cell by name."""
        return f"{cell.arm} ({cell.recipe}), seed {cell.seed}"


def wanted(cell: Any) -> str:
    """What a cell is, as text; the arm's name is not part of it."""
    return json.dumps({k: v for k, v in rounded(cell).items() if k != "arm"}, sort_keys=True, default=str)


def configuration(cell: Any) -> str:
    """The same but for the seed, and the number of the seed model that goes with it."""
    return wanted({**cell, "seed": 0, "model": re.sub(r"-\d+$", "", cell["model"])})


def typical(group: Group) -> AnyCell:
    """The cell of the middle one in seconds: one that ended early would vouch for what it never did."""
    whole = [pair for pair in group if "stuck" not in pair[1]] or group
    return sorted(whole, key=_seconds)[len(whole) // 2][0]


def differences(old: Row, new: Row) -> list[str]:
    """Names of the results that are not the same; times aside, and metrics that were not recorded before."""
    was, now = (_flat(row) for row in (old, new))
    return [name for name in sorted(was) if was[name] != now.get(name)]


def _flat(row: Row) -> dict[str, str]:
    """Results by name, as text."""
    found = {f"spent.{k}": json.dumps(v) for k, v in row["spent"].items() if k not in TIMES}
    for part in set(row) - {"key", "rests_on", "measured", "cell", "spent", "seconds"}:
        inner = row[part] if isinstance(row[part], dict) else {"": row[part]}
        found |= {f"{part}.{k}".rstrip("."): json.dumps(v, sort_keys=True) for k, v in inner.items()}
    return found


def _seconds(pair: tuple[AnyCell, Row]) -> float:
    return float(pair[1]["seconds"]["cell"])
