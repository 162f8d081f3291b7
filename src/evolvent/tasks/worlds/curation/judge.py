"""The judge of cleaned documents: what was noise and is gone, what was content and is still there; no originals.

    score = 1 + 9 pure x kept^3
    pure = |after n content| / |after|,   kept = min over sorts of lines |after n lines| / |lines|

Texts are multisets of words, signs and beginnings of lines here, so that indentation and lost spaces count, too. What
content is says the statistics of `issues`; whatever is not, is noise, also if it was not there before. Of the content
the sort of lines decides that has suffered most (formulas, rows, short lines), or a rule that destroys all formulas
would lose little; and it counts thrice, since a model never learns what is gone, but does learn beside noise. The score
goes from 1, for nothing at all, to 10 as that of the paper's judge, a language model (arXiv 2603.14420); its formula is
ours. Comments say how much of the noise is gone: 1 - |after - content| / |before - content|.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from evolvent.tasks.worlds.curation.issues import KINDS, Survey, read

PIECES = re.compile(r"\n[ \t]*|^[ \t]+|\w+|[^\w\s]")
WORST, BEST = 1.0, 10.0
LEAST = 0.05  # share of a kind that is left, or of a sort of lines that is lost, from which a comment says so
GRAVE = 3  # the power that what is kept counts with
SOME = 10  # lines of a sort in a sample from which it counts
SORTS = (  # of lines of content, the first that fits
    ("indented lines", re.compile(r"[ \t]+\S")),
    ("rows of tables", re.compile(r"\|.*\|")),
    ("formulas", re.compile(r"\w+ [=<] .*[\d^]")),
    ("short lines", re.compile(r"\S+( \S+)?$")),
    ("lines with accents", re.compile(r".*[^\x00-\x7f]")),
    ("other lines", re.compile(r".*\S")),
)


@dataclass
class Verdict:
    """On the cleaned documents of a sample: the score; the shares; comments (what, share, example)."""

    score: float
    pure: float
    removed: float
    kept: float
    left: list[tuple[str, float, str]] = field(default_factory=list)
    lost: list[tuple[str, float, str]] = field(default_factory=list)


class Parts(NamedTuple):
    """A raw document as multisets: the content, how much noise there is, its kinds, the sorts of lines of content."""

    content: Counter[str]
    noise: int
    kinds: Mapping[str, tuple[Counter[str], tuple[str, ...]]]
    sorts: Mapping[str, tuple[Counter[str], tuple[str, ...]]]


def pieces(text: str) -> Counter[str]:
    """A text as a multiset."""
    return Counter(PIECES.findall(text))


@lru_cache(maxsize=4096)
def parts(text: str, about: Survey) -> Parts:
    """A raw document taken apart."""
    reading = read(text, about)
    content = pieces(reading.content)
    sorts: dict[str, list[str]] = {}
    for i, line in enumerate(reading.content.split("\n")):
        if line.strip():
            sort = next(name for name, pattern in SORTS if pattern.match(line))
            sorts.setdefault(sort, []).append("\n" * (i > 0) + line)
    return Parts(
        content,
        (pieces(text) - content).total(),
        {kind: (sum(map(pieces, found), Counter()), tuple(found)) for kind, found in reading.noise.items()},
        {sort: (pieces("".join(lines)), tuple(x.strip("\n") for x in lines)) for sort, lines in sorts.items()},
    )


def judge(before: Sequence[str], after: Sequence[str | None], about: Survey) -> Verdict:
    """The verdict on documents before and after; None for one that was dropped."""
    noise = left = whole = 0
    there: Counter[str] = Counter()  # pieces of a kind or sort
    still: Counter[str] = Counter()
    lines: Counter[str] = Counter()  # of a sort
    examples: dict[str, str] = {}
    for old, text in zip(before, after, strict=True):
        new = text or ""
        known, given = parts(old, about), pieces(new)
        excess = given - known.content
        noise += known.noise
        left += excess.total()
        whole += given.total()
        for kind, (mine, found) in known.kinds.items():
            there[kind] += mine.total()
            still[kind] += (excess & mine).total()
            if kind not in examples and (seen := next((p for p in found if p.split("\n")[0] in new), None)):
                examples[kind] = seen.split("\n")[0]
        for sort, (mine, rows) in known.sorts.items():
            there[sort] += mine.total()
            still[sort] += (given & mine).total()
            lines[sort] += len(rows)
            if sort not in examples and (gone := next((row for row in rows if row not in new), None)):
                examples[sort] = gone
    removed = max(0.0, 1 - left / noise) if noise else float(not left)
    held = {sort: still[sort] / there[sort] for sort, n in lines.items() if n >= SOME}
    kept = min(held.values(), default=1.0)
    pure = 1 - left / whole if whole else 0.0
    verdict = Verdict(WORST + (BEST - WORST) * pure * kept**GRAVE, pure, removed, kept)
    verdict.left = [(k, x, examples[k]) for k in KINDS if k in examples and (x := still[k] / there[k]) >= LEAST]
    verdict.lost = [(k, 1 - x, examples[k]) for k, x in held.items() if k in examples and 1 - x >= LEAST]
    return verdict


def comments(category: str, verdict: Verdict) -> str:
    """A verdict for whoever writes the next strategy."""
    head = f"{category}: {verdict.removed:.0%} of the noise is gone, {verdict.kept:.0%} of the content is there"
    rows = [f"left of {kind}: {share:.0%}, such as: {example}" for kind, share, example in verdict.left]
    rows += [f"lost of {sort}: {share:.0%}, such as: {example}" for sort, share, example in verdict.lost]
    return "\n".join([head, *rows])


COMMENT = re.compile(r"^(left|lost) of ([\w ]+): (\d+)%, such as: (.*)$", re.MULTILINE)


def read_comments(text: str) -> list[tuple[str, str, float, str]]:
    """What `comments` has written: (left or lost, what, share, example)."""
    return [(a, b, int(c) / 100, d) for a, b, c, d in COMMENT.findall(text)]
