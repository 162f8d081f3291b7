"""Cells of a comparison that is not finished: kept, so that the same command goes on from there."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evolvent.bench.evidence import Evidence
from evolvent.bench.pool import AnyCell, run_cells
from evolvent.run.environment import code_hash

SMALL = 1 << 24  # bytes of a file that is known by its content; others by when they were written
Results = Iterator[tuple[AnyCell, dict[str, Any]]]


def run_kept(cells: Sequence[AnyCell], jobs: int, say: Callable[[str], None], folder: Path | None) -> Results:
    """As `run_cells`; with a folder, a result is written there at once, and one that is there is not made again.

    It has to come from the same cell, on the same code, files and model. What was kept goes when all are there.
    """
    if folder is None:
        yield from run_cells(cells, jobs, say)
        return
    grounds = {names: ground(names) for names in set(map(names_in, cells))}  # most cells name the same files
    keys = {id(cell): cell.key(grounds[names_in(cell)]) for cell in cells}
    name = hashlib.blake2b("".join(sorted(keys.values())).encode(), digest_size=10).hexdigest()
    evidence = Evidence(folder)
    there = evidence.cells(name)
    done = [cell for cell in cells if keys[id(cell)] in there]
    if done:
        say(f"{len(done)} of {len(cells)} cells are there from before")
    for cell in done:
        yield cell, there[keys[id(cell)]]["result"]
    count = len(done)
    try:
        for cell, result in run_cells([c for c in cells if keys[id(c)] not in there], jobs, say):
            evidence.keep(name, {"key": keys[id(cell)], "result": result})
            count += 1
            yield cell, result
    except KeyboardInterrupt:
        say(f"interrupted; {count} of {len(cells)} cells are kept, and the same command goes on from there")
        raise
    place = evidence.cells_file(name)
    place.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # others are under way
        place.parent.rmdir()
        folder.rmdir()


def names_in(cell: AnyCell) -> tuple[str, ...]:
    """The texts of a cell that may name files: recipe, tasks, model, and values of settings."""
    return cell.recipe, cell.task, getattr(cell, "test", ""), cell.model, *map(str, cell.settings.values())


def ground(names: Sequence[str]) -> str:
    """What a cell rests on beside its settings: the package's code, and files of the user's that it names."""
    digest = hashlib.blake2b(code_hash().encode(), digest_size=10)
    for path in sorted({part for text in names for word in text.split("+") for part in parts(word)}):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                state = file.stat()
                small = state.st_size <= SMALL
                digest.update(f"{file} {state.st_size} ".encode())
                digest.update(file.read_bytes() if small else str(state.st_mtime_ns).encode())
    return digest.hexdigest()


def parts(word: str) -> list[Path]:
    """The files and folders that a word such as `program:a.py:b.py` names; with the Python beside them whose name
    stands in one, as it may be imported."""
    found = [path for piece in word.split(":") if piece and (path := Path(piece)).exists()]
    texts = {path: path.read_text("utf-8", "replace") for path in found if path.suffix == ".py" and path.is_file()}
    return found + [near for path, text in texts.items() for near in path.parent.glob("*.py") if near.stem in text]
