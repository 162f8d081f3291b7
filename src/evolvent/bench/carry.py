"""Take evidence over to code that was changed in form alone: a moved import, a split file, a part of its own.

Such a change gives every cell another key. But a cell repeats exactly, so one cell of each configuration, run again on
the code as it is, tells whether its results are the same, to the last digit that is kept. If they are, the results of
the other seeds are taken over, and each says on which code it was measured. If not, all are measured anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evolvent.bench.claims import Study
from evolvent.bench.closure import combined
from evolvent.bench.evidence import rounded
from evolvent.bench.pool import AnyCell, run_cells

Row = dict[str, Any]
Group = list[tuple[AnyCell, Row]]  # cells of one configuration, each with its result on earlier code
CODE = len(combined({}))  # characters of what a cell rests on that are of its code; the rest is of its model's weights
TIMES = {"seconds", "verifier_seconds"}  # of the ledger; the clock never repeats


class Carry(Study):
    """A study that takes over what it can before it runs what is missing."""

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
        for cell, result in run_cells([one for one, _ in again.values()], self.jobs, self.say) if again else ():
            self.take_over(again[self.key(cell)][1], cell, result)
        return super().run(cells)

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

    def take_over(self, group: Group, cell: AnyCell, result: Row) -> None:
        """Compare the cell that was run again; the others of its configuration follow if nothing has changed."""
        new, old = self.row(cell, result), next(row for one, row in group if one is cell)
        name = f"{cell.arm} ({cell.recipe}), seed {cell.seed}"
        if changed := differences(old, new):
            self.say(f"{name}: {', '.join(changed[:4])} came out otherwise; {len(group)} cells are measured anew")
            self.add(new)
            return
        rows = {old["key"]: new}
        for one, row in group:
            if one is not cell:
                measured = row.get("measured", {"key": row["key"], "rests_on": row["rests_on"]})
                place = {"key": self.key(one), "rests_on": self.rests_on(one), "measured": measured}
                rows[row["key"]] = row | place
        self.evidence.replace(self.recipe.name, rows)
        self.results = self.evidence.cells(self.recipe.name)
        self.say(f"{name}: the same on the code as it is; {len(group) - 1} other cells are taken over")


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
    """Names of the results that are not the same; times aside."""
    was, now = (_flat(row) for row in (old, new))
    return [name for name in sorted({*was, *now}) if was.get(name) != now.get(name)]


def _flat(row: Row) -> dict[str, str]:
    """Results by name, as text."""
    found = {f"spent.{k}": json.dumps(v) for k, v in row["spent"].items() if k not in TIMES}
    for part in set(row) - {"key", "rests_on", "measured", "cell", "spent", "seconds"}:
        inner = row[part] if isinstance(row[part], dict) else {"": row[part]}
        found |= {f"{part}.{k}".rstrip("."): json.dumps(v, sort_keys=True) for k, v in inner.items()}
    return found


def _seconds(pair: tuple[AnyCell, Row]) -> float:
    return float(pair[1]["seconds"]["cell"])
