"""Errors that a user can act on: what was asked, what is there, what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from evolvent.core.secrets import redact


class UserError(Exception):
    """Bad input. The command line prints its text in one line and exits with code 2; no traceback."""


class VerifierError(Exception):
    """A verifier, environment or tool failed. The trajectory is marked, counted and left out of the update."""


class EngineError(Exception):
    """A model endpoint or engine failed for one request. Treated like `VerifierError`."""


WHERE = re.compile(r" \((?:first: )?problem .*")  # which problem an error happened to
MOST_KINDS = 30


def tally(kinds: dict[str, int], error: str) -> None:
    """Count an error with those like it: its first line, naming the first problem that it happened to."""
    text = redact(error).split("\n")[0][:200]
    kind = next((k for k in kinds if WHERE.sub("", k) == WHERE.sub("", text)), None)
    if kind is None:
        kind = text.replace(" (problem ", " (first: problem ", 1) if len(kinds) < MOST_KINDS else "other errors"
    kinds[kind] = kinds.get(kind, 0) + 1


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean x?` for the closest known name, or an empty string."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {found[0]}?" if found else ""


def unknown(kind: str, name: str, known: Iterable[str], remedy: str) -> UserError:
    """The error for a name that is not in a table: unknown `kind` `name`, the nearest one, and what to do."""
    return UserError(f"unknown {kind} `{name}`{nearest(name, known)} ({remedy})")
