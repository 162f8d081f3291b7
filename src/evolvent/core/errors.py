"""Errors that a user can act on: what was asked, what is there, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Bad input. The command line prints its text in one line and exits with code 2; no traceback."""


class VerifierError(Exception):
    """A verifier, environment or tool failed. The trajectory is marked, counted and left out of the update."""


class EngineError(Exception):
    """A model endpoint or engine failed for one request. Treated like `VerifierError`."""


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean x?` for the closest known name, or an empty string."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {found[0]}?" if found else ""


def unknown(kind: str, name: str, known: Iterable[str], remedy: str) -> UserError:
    """The error for a name that is not in a table: unknown `kind` `name`, the nearest one, and what to do."""
    return UserError(f"unknown {kind} `{name}`{nearest(name, known)} ({remedy})")
