"""The tree of descent of a search, as rows of a page: who came of whom, and what changed on the way."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evolvent.core.errors import UserError
from evolvent.lineage.descent import Candidate, best_of, changed, line_of, text_of, valid, worth
from evolvent.lineage.runs import RunView
from evolvent.lineage.yields import NOBODY, model_of

MOST = 300  # candidates that a page shows, with all of their ancestors
SIZE = 2_000_000  # characters of changes in a page; the longest are shortened until they fit
UNUSABLE = "unusable"  # the status of an answer without a program, which is kept as a candidate without a text
REASON_LINES, REASON_SIZE = 8, 800  # of why somebody has no value, and characters

Lines = list[tuple[str, str]]  # the mark of each line of a diff, and the line


@dataclass(frozen=True)
class Node:
    """A row of the tree.

    value    as text; of who has none how its evaluation ended
    note     what else is to be said of the value
    failed   whether there is no value
    reason   why there is none, as the evaluation said
    parent   the one that was varied; None: it is a seed program
    beside   others that the operator may have looked at
    indent   how many generations it is from the way to the best one
    best     whether it is on that way
    lines    what changed against the parent; the whole text of a seed program; none, where there is no text
    cut      how many lines of this are left out, or shortened
    """

    uid: int
    step: int
    operator: str
    model: str
    value: str
    note: str
    failed: bool
    reason: str
    parent: int | None
    beside: tuple[int, ...]
    indent: int
    best: bool
    lines: Lines
    cut: int


@dataclass(frozen=True)
class Tree:
    """Rows of a page, parents before their children. `best`: the number of the best one; None: nobody is valid."""

    nodes: list[Node] = field(default_factory=list)
    best: int | None = None
    told: str = ""


def tree_of(view: RunView, most: int = MOST, size: int = SIZE) -> Tree:
    """The tree of all candidates; of many the `most` best and all of their ancestors.

    Changes have `size` characters in all, of which half is for the way to the best one. The store does not say who is a
    member of the archive in the end, so it is the best whom a page shows.
    """
    try:
        best = best_of(view)
    except UserError:
        best = None
    way = set() if best is None else {c["uid"] for c in line_of(view, best)}
    first = sorted(view.candidates.values(), key=lambda c: (c is best, *merit(c)), reverse=True)
    shown = with_ancestors(view, first[:most])
    whole = {uid: change_of(view, view.candidates[uid]) for uid in shown}
    changes = fitted({uid: whole[uid] for uid in way}, size // 2)
    left = size - sum(len(text) for lines, _ in changes.values() for _, text in lines)
    changes |= fitted({uid: whole[uid] for uid in shown - way}, left)
    rows = order(view, shown, first, way)
    nodes = [node_of(view.candidates[uid], indent, uid in way, *changes[uid]) for uid, indent in rows]
    return Tree(nodes, None if best is None else best["uid"], told(len(view.candidates), most, len(shown)))


def with_ancestors(view: RunView, candidates: Iterable[Candidate]) -> set[int]:
    """The numbers of candidates and of all who came before them."""
    found: set[int] = set()
    for c in candidates:
        uid: int | None = c["uid"]
        while uid is not None and uid not in found:
            found.add(uid)
            uid = parent_of(view.candidates[uid])
    return found


def merit(candidate: Candidate) -> tuple[bool, float, int]:
    """What candidates are ranked by, as `search.candidate.Candidate.merit` is: the first of equals is best."""
    value = candidate["evaluation"]["value"]
    return valid(candidate), float("-inf") if value is None else value, -candidate["uid"]


def order(
    view: RunView, shown: Iterable[int], ranked: Iterable[Candidate], way: Container[int]
) -> list[tuple[int, int]]:
    """Number and indent of each row, parents first, of their children those with the best descendants first.

    The way to the best one goes straight down, however long it is, and comes after what branches off from it.
    """
    rank = {c["uid"]: place for place, c in enumerate(ranked)}
    below: dict[int | None, list[int]] = {}
    for uid in sorted(shown, reverse=True):  # children are made after their parents
        rank[uid] = min([rank[uid], *(rank[child] for child in below.get(uid, ()))])
        below.setdefault(parent_of(view.candidates[uid]), []).append(uid)
    found, todo = [], [(uid, 0) for uid in sorted(below.get(None, ()), key=lambda uid: -rank[uid])]
    while todo:
        uid, indent = todo.pop()
        found.append((uid, indent))
        children = sorted(below.get(uid, ()), key=lambda child: (child not in way, -rank[child]))
        todo += [(child, 0 if child in way else indent + 1) for child in children]
    return found


def parent_of(candidate: Candidate) -> int | None:
    """The number of the one that was varied."""
    return int(candidate["parents"][0]) if candidate["parents"] else None


def change_of(view: RunView, candidate: Candidate) -> Lines:
    """What changed against the parent; of a seed program its text. Nothing of a model's answer that had no program in
    it: it would be all of the parent, taken out."""
    parent, text = parent_of(candidate), text_of(candidate)
    if candidate["evaluation"]["status"] == UNUSABLE and not text:
        return []
    if parent is None:
        return [(" ", line) for line in text.split("\n")]
    return changed(text_of(view.candidates[parent]), text)


def fitted(changes: Mapping[int, Lines], size: int) -> dict[int, tuple[Lines, int]]:
    """Changes in so many characters in all, and how many lines of each are cut: the longest lose first."""
    lengths = {uid: sum(len(text) for _, text in lines) for uid, lines in changes.items()}
    room = room_for(list(lengths.values()), size)
    return {uid: shortened(lines, min(room, lengths[uid])) for uid, lines in changes.items()}


def room_for(lengths: Sequence[int], size: int) -> int:
    """The most that each may have, if all together have at most `size`."""
    for place, length in enumerate(sorted(lengths)):
        if length > size // (len(lengths) - place):
            return size // (len(lengths) - place)
        size -= length
    return max(lengths, default=0)


def shortened(lines: Lines, room: int) -> tuple[Lines, int]:
    """As many lines as there is room for, the last one perhaps in part, and how many are not there as they are."""
    found: Lines = []
    for place, (mark, line) in enumerate(lines):
        if len(line) > room:
            return ([*found, (mark, line[:room])] if room else found), len(lines) - place
        found.append((mark, line))
        room -= len(line)
    return found, 0


def node_of(candidate: Candidate, indent: int, best: bool, lines: Lines, cut: int) -> Node:
    """The row of a candidate."""
    evaluation, model = candidate["evaluation"], model_of(candidate)
    return Node(
        uid=int(candidate["uid"]),
        step=int(candidate["step"]),
        operator=str(candidate["operator"]),
        model="" if model == NOBODY else model,
        value=f"{evaluation['value']:z.10g}" if worth(candidate) else str(evaluation["status"]),
        note="evaluated in part" if worth(candidate) and not valid(candidate) else "",
        failed=not worth(candidate),
        reason=reason_of(candidate),
        parent=parent_of(candidate),
        beside=tuple(int(uid) for uid in candidate["parents"][1:]),
        indent=indent,
        best=best,
        lines=lines,
        cut=cut,
    )


def reason_of(candidate: Candidate) -> str:
    """Why it has no value: the first lines of what its evaluation said; empty for who has one."""
    if worth(candidate):
        return ""
    said = str(candidate["evaluation"]["feedback"]).strip()
    shown = "\n".join(said.split("\n")[:REASON_LINES])[:REASON_SIZE]
    return shown if shown == said else f"{shown.rstrip()} ..."


def told(count: int, most: int, shown: int) -> str:
    """Whom the tree has, in one sentence."""
    if shown == count:
        return f"All {count:,} candidates." if count > 1 else "One candidate."
    return f"The best {most:,} of {count:,}, and all of their ancestors: {shown:,} candidates."
