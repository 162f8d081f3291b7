"""A small program task of a user's own, and a sandbox to run it in, as in the tests of searches."""

from __future__ import annotations

from tests.search.conftest import task

__all__ = ["task"]
