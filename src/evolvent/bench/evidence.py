"""The folder of evidence: a file of verdicts for each recipe, and one of the cells that they are computed from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evolvent.core.files import whole


@dataclass
class Evidence:
    """The folder of evidence: one JSON file a recipe, and its cells beside it."""

    root: Path

    def file(self, name: str) -> Path:
        """The committed file of a recipe."""
        return self.root / f"{name}.json"

    def cells_file(self, name: str) -> Path:
        """The results of its cells, one a line."""
        return self.root / "cells" / f"{name}.jsonl"

    def names(self) -> list[str]:
        """The recipes that there is a file of, in alphabetical order."""
        return sorted(path.stem for path in self.root.glob("*.json"))

    def read(self, name: str) -> dict[str, Any] | None:
        """What was measured, if anything."""
        path = self.file(name)
        return json.loads(path.read_text()) if path.is_file() else None

    def write(self, name: str, data: Mapping[str, Any]) -> None:
        """Write a recipe's file, whole or not at all."""
        self.root.mkdir(parents=True, exist_ok=True)
        with whole(self.file(name)) as part:
            part.write_text(json.dumps(data, indent=1) + "\n")

    def cells(self, name: str) -> dict[str, dict[str, Any]]:
        """Results by key."""
        path = self.cells_file(name)
        if not path.is_file():
            return {}
        found = {}
        for line in path.read_text().splitlines():
            try:
                row = json.loads(line)
            except ValueError:  # cut off when its process was killed; the cell runs again
                continue
            found[row["key"]] = row
        return found

    def keep(self, name: str, row: Mapping[str, Any]) -> None:
        """Append a cell's result, with its key and the hash of its code."""
        path = self.cells_file(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        torn = path.is_file() and not path.read_bytes().endswith(b"\n")
        with path.open("a") as file:
            file.write("\n" * torn + json.dumps(row) + "\n")

    def replace(self, name: str, rows: Mapping[str, Mapping[str, Any]]) -> None:
        """Put rows in the place of those with these keys, all or none."""
        kept = [rows.get(key, row) for key, row in self.cells(name).items()]
        with whole(self.cells_file(name)) as part:
            part.write_text("".join(json.dumps(row) + "\n" for row in kept))


def rounded(value: Any, digits: int = 0) -> Any:
    """Numbers to six digits, to keep committed files small; ten of searches, whose values differ in the last ones."""
    digits = digits or (10 if isinstance(value, Mapping) and "records" in value else 6)
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {k: rounded(v, digits) for k, v in value.items()}
    return [rounded(v, digits) for v in value] if isinstance(value, list | tuple) else value
