"""For all tests: shapes and types in the signatures of `evolvent.learn` are checked, torch runs on one thread, and
hypothesis draws the same examples every time."""

from __future__ import annotations

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook("evolvent.learn", "beartype.beartype")  # before anything imports it
torch.set_num_threads(1)
settings.register_profile("house", max_examples=30, deadline=None, derandomize=True)
settings.load_profile("house")


@pytest.fixture(scope="session")
def sandboxed() -> str:
    """The kind of sandbox that works here; skips where none does."""
    from evolvent.core.errors import UserError  # not above: the hook comes first
    from evolvent.guard.sandbox import available

    try:
        return available()
    except UserError as reason:
        pytest.skip(str(reason))
