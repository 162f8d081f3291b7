"""The judge of cleaned documents: what was noise and is gone, what was content and is still there; no originals.

    score = 1 + 9 removed x kept,   removed = 1 - |after - content| / |before - content|,   kept = |after n content| / |content|

Texts are multisets of words, signs and beginnings of lines here, so that indentation and lost spaces count, too. What
content is says the statistics of `issues`; whatever is neither content nor was there before counts as noise that is
left. The score goes from 1 to 10 as that of the paper's judge, a language model (arXiv 2603.14420); its formula is ours.
Documents as they are have removed = 0 and the score 1, and so does dropping everything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from evolvent.tasks.worlds.curation.issues import KINDS, Reading, Survey, read

PIECES = re.compile(r"\n[ \t]*|^[ \t]+|\w+|[^\w\s]")
WORST, BEST = 1.0, 10.0
LEAST = 0.05  # share of a kind that is left, or of a sort of lines that is lost, from which a comment says so
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
    removed: float
    kept: float
    left: list[tuple[str, float, str]] = field(default_factory=list)
    lost: list[tuple[str, float, str]] = field(default_factory=list)


def pieces(text: str) -> Counter[str]:
    """A text as a multiset."""
    return Counter(PIECES.findall(text))


def judge(before: Sequence[str], after: Sequence[str | None], about: Survey) -> Verdict:
    """The verdict on documents before and after; None for one that was dropped."""
    noise = left = content = kept = 0
    there: Counter[str] = Counter()  # pieces of a kind
    remains: Counter[str] = Counter()
    lines: Counter[str] = Counter()  # of a sort
    missing: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for old, new in zip(before, after, strict=True):
        reading = read(old, about)
        wanted, given = pieces(reading.content), pieces(new or "")
        excess = given - wanted
        noise += (pieces(old) - wanted).total()
        left += excess.total()
        content += wanted.total()
        kept += (given & wanted).total()
        _what_is_left(reading, excess, new or "", there, remains, examples)
        _what_is_lost(reading.content, new or "", lines, missing, examples)
    removed, held = max(0.0, 1 - left / noise) if noise else float(not left), kept / content if content else 1.0
    verdict = Verdict(WORST + (BEST - WORST) * removed * held, removed, held)
    verdict.left = [(k, x, examples[k]) for k in KINDS if k in examples and (x := remains[k] / there[k]) >= LEAST]
    verdict.lost = [(k, x, examples[k]) for k, _ in SORTS if k in examples and (x := missing[k] / lines[k]) >= LEAST]
    return verdict


def _what_is_left(
    reading: Reading, excess: Counter[str], new: str, there: Counter[str], remains: Counter[str], examples: dict[str, str]
) -> None:
    for kind, found in reading.noise.items():
        mine = sum((pieces(p) for p in found), Counter())
        there[kind] += mine.total()
        remains[kind] += (excess & mine).total()
        seen = next((p for p in found if p.split("\n")[0] in new), None)
        if seen is not None:
            examples.setdefault(kind, seen.split("\n")[0])


def _what_is_lost(content: str, new: str, lines: Counter[str], missing: Counter[str], examples: dict[str, str]) -> None:
    have = Counter(new.split("\n"))
    whole = set(have)  # the others may stand inside of a line, with noise around them
    for line in content.split("\n"):
        if not line.strip():
            continue
        sort = next(name for name, pattern in SORTS if pattern.match(line))
        lines[sort] += 1
        if have[line] > 0:
            have[line] -= 1
        elif line in whole or line not in new:
            missing[sort] += 1
            examples.setdefault(sort, line)


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
