"""What a program of a learning world may not do."""

from __future__ import annotations

import pytest

from evolvent.tasks.worlds.digits import SEED
from evolvent.tasks.worlds.plain import refusal


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "import numpy, sys",
        "from sklearn.datasets import load_digits",
        "from . import program",
        "from numpy import load",
        "from numpy.lib.npyio import DataSource",
        "import numpy.ctypeslib",
        "open('x')",
        "f = open",
        "eval('1')",
        "np.load('x')",
        "np.lib.npyio",
        "np.fromfile('x')",
        "x.tofile('x')",
        "().__class__",
        "__import__('os')",
        "__builtins__",
        "getattr(np, 'load')",
        "(i for i in []).gi_frame",
        "globals()",
    ],
)
def test_refused(line: str) -> None:
    assert refusal(f"import numpy as np\n\n{line}\n").startswith("line 3: it ")


def test_allowed() -> None:
    assert refusal(SEED) == ""
    assert refusal("import math\nfrom numpy.linalg import svd\nx = math.pi\nloads = 3\n") == ""
