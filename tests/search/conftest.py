"""A small program task of a user's own, and a sandbox to run it in."""

from __future__ import annotations

from pathlib import Path

import pytest

EVALUATOR = """
import importlib.util


def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("candidate", program_path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x, y = module.point()
    return {"combined_score": -((x - 3.0) ** 2) - (y + 1.0) ** 2, "x": x}
"""
PROGRAM = """
def unchanged():
    return 2.0


# EVOLVE-BLOCK-START
def point():
    x = 1.0
    y = 1.0
    return x, y
# EVOLVE-BLOCK-END
"""


@pytest.fixture
def task(tmp_path: Path, sandboxed: str) -> str:
    """The files, as the specification of a task."""
    (tmp_path / "evaluator.py").write_text(EVALUATOR)
    (tmp_path / "first.py").write_text(PROGRAM)
    return f"program:{tmp_path / 'evaluator.py'}:{tmp_path / 'first.py'}"
