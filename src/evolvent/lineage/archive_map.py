"""The map of an archive: where candidates lie by length and diversity, and the best value of each place."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from evolvent.lineage.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, axis_name, frame, number
from evolvent.lineage.runs import RunView
from evolvent.search.candidate import Candidate, candidate_of
from evolvent.search.grid import complexity, diversity, placed

BINS = 10  # in each direction, as in OpenEvolve's grid


@dataclass(frozen=True)
class Cell:
    """A place of the map: its best candidate, and how many lie there."""

    column: int
    row: int
    best: Candidate
    count: int


def cells_of(candidates: list[Candidate]) -> list[Cell]:
    """The cells that somebody valid lies in, by column and row; the first of equals is the best."""
    found: dict[tuple[int, int], list[Candidate]] = {}
    columns, rows = (placed(measure(candidates), BINS) for measure in (complexity, diversity))
    for place, c in zip(zip(columns.tolist(), rows.tolist(), strict=True), candidates, strict=True):
        found.setdefault(place, []).append(c)
    return [Cell(*place, max(cs, key=lambda c: (c.value, -c.uid)), len(cs)) for place, cs in sorted(found.items())]


def archive_map(view: RunView, linked: Container[int] = ()) -> Markup:
    """An image of the map, the darker the better by rank; empty for a run without two valid candidates.

    Places whose best candidate is among those `linked` lead to the way to it in the tree of descent.
    """
    valid = [c for c in map(candidate_of, view.candidates.values()) if c.valid]
    if len(valid) < 2:
        return Markup("")
    cells = cells_of(valid)
    ranks = {value: rank for rank, value in enumerate(sorted({cell.best.value for cell in cells}))}
    width, height = (WIDTH - LEFT - RIGHT) / BINS, (HEIGHT - TOP - BOTTOM) / BINS
    out = [frame(f"best value of {len(cells)} places of the archive, by length and diversity of the program")]
    for cell in cells:
        x, y = LEFT + width * cell.column, HEIGHT - BOTTOM - height * (cell.row + 1)
        share = 0.15 + 0.85 * (ranks[cell.best.value] + 1) / len(ranks)
        tip = f"{number(cell.best.value)}: candidate {cell.best.uid}, the best of {cell.count} here"
        drawn = (
            f'<rect class="bar after" fill-opacity="{share:.2f}" x="{x:.1f}" y="{y:.1f}" width="{width - 1:.1f}" '
            f'height="{height - 1:.1f}"><title>{escape(tip)}</title></rect>'
        )
        uid = cell.best.uid
        out.append(f'<a href="#way-{uid}">{drawn}</a>' if uid in linked else drawn)
    lengths = sorted(len(c.text) for c in valid)
    out.append(f'<text class="tick" x="{LEFT}" y="{HEIGHT - BOTTOM + 16}">{lengths[0]:,}</text>')
    right = f'x="{WIDTH - RIGHT}" y="{HEIGHT - BOTTOM + 16}" text-anchor="end"'
    out.append(f'<text class="tick" {right}>{lengths[-1]:,}</text>')
    for text, row in (("unlike", BINS), ("alike", 1)):
        y = HEIGHT - BOTTOM - height * (row - 0.5) + 4
        out.append(f'<text class="tick" x="{LEFT - 6}" y="{y:.1f}" text-anchor="end">{text}</text>')
    out.append(axis_name("length of the program, in characters"))
    out.append("</svg>")
    return Markup("".join(out))
