"""What went wrong in a contest, as evolution reads it: failed questions, and of which kinds they are.

Kinds are what a reader sees of a failure: words of the question, and what the database or the writer said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

KINDS = {  # kind -> what a question or an error looks like
    "column": re.compile(r"no column"),
    "ambiguous": re.compile(r"ambiguous"),
    "join": re.compile(r"whose|at least one|no join"),
    "text": re.compile(r"'|different"),
    "date": re.compile(r"\bdate\b.* (in|after) \d"),
    "number": re.compile(r"average|total|more than|highest|lowest"),
    "share": re.compile(r"percentage"),
    "missing": re.compile(r"not known|average|lowest"),
}


class Failure(NamedTuple):
    """A question that was not answered rightly: its instance, the question, the query, and what came of it."""

    name: str
    question: str
    query: str
    came: str

    @property
    def kinds(self) -> list[str]:
        """The kinds of failures that this may be. Where a column was not found, or nobody knew which, that is all."""
        found = [kind for kind, pattern in KINDS.items() if pattern.search(f"{self.question} {self.came}")]
        plain = [kind for kind in found if kind in ("column", "ambiguous")]
        return plain or found or ["other"]


def read_failures(feedback: str) -> list[Failure]:
    """The failures that an evaluation's feedback names."""
    rows = [line.split("\t") for line in feedback.splitlines()]
    return [Failure(*row) for row in rows if len(row) == 4]


def tally(failures: Sequence[Failure]) -> Counter[str]:
    """How many failures there are of each kind; one of several kinds counts for each with its share."""
    found: Counter[str] = Counter()
    for failure in failures:
        for kind in failure.kinds:
            found[kind] += 1 / len(failure.kinds)  # type: ignore[assignment]
    return found
