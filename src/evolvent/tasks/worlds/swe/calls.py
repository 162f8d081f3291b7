"""What is copied into the sandbox: the agent's side with its operators, and the verifier's side."""

from __future__ import annotations

from pathlib import Path

from evolvent.tasks.worlds.repair.patches import tools
from evolvent.tasks.worlds.repair.world import HARNESS

HERE = Path(__file__).parent
PRELOAD = ("ast", "json", "random", "difflib", "pytest")
CHANGES = "import ast\n\n\n" + "\n\n".join(tools().values())
SIDE = {"harness.py": HARNESS, "runner.py": (HERE / "runner.py").read_text(), "changes.py": CHANGES}
VERIFIER = {"harness.py": HARNESS, "suite.py": (HERE / "suite.py").read_text()}
