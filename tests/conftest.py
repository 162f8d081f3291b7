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


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """A command of an earlier test may have asked for more, and threads that wait for each other on few cores take ten
    times as long."""
    torch.set_num_threads(1)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Say which sandbox is tested, as a header; those of `pytest_report_header` are not printed with -q.

    Workers of xdist have no reporter, and try none.
    """
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not session.config.option.collectonly:
        reporter.write_line(f"sandbox: {kind_of_sandbox()}")


def kind_of_sandbox() -> str:
    """`bubblewrap`, `sandlock` or `none`: what works here."""
    from evolvent.core.errors import UserError  # not above: the hook comes first
    from evolvent.guard.sandbox import available

    try:
        return available()
    except UserError:
        return "none"


@pytest.fixture(scope="session")
def sandboxed() -> str:
    """The kind of sandbox that works here; skips where none does."""
    from evolvent.core.errors import UserError  # not above: the hook comes first
    from evolvent.guard.sandbox import available

    try:
        return available()
    except UserError as reason:
        pytest.skip(str(reason))
