"""What is wrong with a document, by statistics of a sample it belongs to; no clean original is read.

spam         more than half of its lines promote something
stamps       most of its lines begin with a time
markup       tags that are closed somewhere in the sample: `</em>`, and so `<em>`; `List<int>` is none
entities     `&lt;` and its like
mojibake     what Windows-1252 made of UTF-8, found by turning it back
boilerplate  the same line, whatever its numbers, in several documents
promotion    an address or two exclamation marks, and a word that promotes
cut          a line that breaks off
repeats      a line right after itself
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

KINDS = ("spam", "stamps", "markup", "entities", "mojibake", "boilerplate", "promotion", "cut", "repeats")
STAMP = re.compile(r"\[?\d{1,2}:\d\d(:\d\d)?\]?\s+")
TAG = re.compile(r"</?([a-z][a-z0-9]*)(?: [^<>]*)?/?>")
ENTITY = re.compile(r"&(?:lt|gt|amp|quot|nbsp|#\d+);")
WRONG = re.compile("[\u00c2-\u00f4][^\x00-\x7f]{1,3}")
PROMOTES = re.compile(r"\b(buy|click|order|offer|win|subscribe|free|deals?)\b", re.IGNORECASE)
ADDRESS = re.compile(r"https?://|\bwww\.")
CUT = re.compile(r"(\.\.\.|…)( ?(read )?more)?[ »>]*$", re.IGNORECASE)
LONG = 12  # characters that a line needs to be told from one that is only short
WORDY = re.compile(r"(?:.*?\b[^\W\d_]{2,}\b){4}")  # four words: rows of tables are alike, and no boilerplate
OFTEN = 0.25  # share of the documents in which a line is boilerplate, at least `TIMES` of them
TIMES = 3


@dataclass(frozen=True)
class Survey:
    """What a sample says of single documents: lines that are in many of them, names of tags."""

    boilerplate: frozenset[str]
    tags: frozenset[str]


@dataclass(frozen=True)
class Reading:
    """A document taken apart: the content, mended where that can be done, and by kind the pieces that are none."""

    content: str
    noise: Mapping[str, Sequence[str]]


def form(line: str) -> str:
    """A line whatever its numbers and margins."""
    return re.sub(r"\d+", "0", line.strip())


def repaired(piece: str) -> str:
    """A run of mojibake turned back, as far as it is some."""
    for end in range(len(piece), 1, -1):
        try:
            return piece[:end].encode("cp1252").decode("utf-8") + piece[end:]
        except UnicodeError:
            continue
    return piece


def survey(documents: Sequence[str]) -> Survey:
    """The statistics of a sample."""
    found: Counter[str] = Counter()
    tags: set[str] = set()
    for text in documents:
        tags |= {name[2:-1] for name in re.findall(r"</[a-z][a-z0-9]*>", text)}
        plain = (form(STAMP.sub("", TAG.sub("", line), count=1)) for line in text.split("\n"))
        found.update({line for line in plain if WORDY.match(line)})
    least = max(TIMES, OFTEN * len(documents))
    return Survey(frozenset(line for line, n in found.items() if n >= least), frozenset(tags))


def promotes(line: str) -> bool:
    """Whether a line promotes something."""
    return bool(PROMOTES.search(line) and (ADDRESS.search(line) or line.count("!") > 1))


def read(text: str, about: Survey) -> Reading:
    """A document, taken apart."""
    noise: dict[str, list[str]] = {}
    rows = text.split("\n")
    full = [row for row in rows if row.strip()]
    if sum(map(promotes, full)) * 2 > len(full):
        return Reading("", {"spam": [text]})
    stamped = sum(STAMP.match(row) is not None for row in full) * 2 > len(full)
    content: list[str] = []

    def cut_out(kind: str, pattern: re.Pattern[str], line: str, mend: str = "", count: int = 0) -> str:
        def take(match: re.Match[str]) -> str:
            piece = match[0]
            new = {"unescape": html.unescape, "repair": repaired}.get(mend, lambda _: "")(piece)
            if new == piece or (kind == "markup" and match[1] not in about.tags):
                return piece
            noise.setdefault(kind, []).append(piece)
            return new

        return pattern.sub(take, line, count=count)

    for row in rows:
        line = cut_out("stamps", STAMP, row, count=1) if stamped and STAMP.match(row) else row
        line = cut_out("markup", TAG, line)
        line = cut_out("entities", ENTITY, line, "unescape")
        line = cut_out("mojibake", WRONG, line, "repair")
        kind = (
            "boilerplate" if form(line) in about.boilerplate
            else "promotion" if promotes(line)
            else "cut" if CUT.search(line)
            else "repeats" if len(line) >= LONG and content and line == content[-1]
            else ""
        )  # fmt: skip
        if kind:
            noise.setdefault(kind, []).append(line)
        else:
            content.append(line)
    return Reading("\n".join(content), noise)


def observe(documents: Sequence[str], most: int = 3) -> list[tuple[str, str]]:
    """Issues of a sample, (kind, example): of each kind the `most` forms of which there are most pieces."""
    about = survey(documents)
    found: dict[str, Counter[str]] = {}
    examples: dict[tuple[str, str], str] = {}
    for text in documents:
        for kind, pieces in read(text, about).noise.items():
            for piece in pieces:
                example = piece.split("\n")[0]
                found.setdefault(kind, Counter())[form(example)] += 1
                examples.setdefault((kind, form(example)), example)
    return [(kind, examples[kind, key]) for kind in KINDS if kind in found for key, _ in found[kind].most_common(most)]
