"""What a program of a learning world may not do."""

from __future__ import annotations

import importlib
import types
import warnings

import pytest

from evolvent.tasks.worlds.digits import SEED
from evolvent.tasks.worlds.plain import MODULES, refusal


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
        "collections._sys.modules",
        "from collections import _sys",
        "operator.attrgetter('__globals__')",
        "from operator import attrgetter as f",
        "np.ma.core.builtins.open('x')",
        "np.ma.core.inspect.stack()",
        "np.ma.core.functools.wraps(f)",
        "from functools import update_wrapper",
        "from numpy.distutils.misc_util import exec_mod_from_location",
        "np.random.mtrand.warnings.sys",
        "from numpy import *",
        "match np: case object(__dict__=d): pass",
    ],
)
def test_refused(line: str) -> None:
    line = line.replace(": case", ":\n    case")
    assert refusal(f"import numpy as np\n\n{line}\n").startswith(("line 3: it ", "line 4: it "))


def test_allowed() -> None:
    assert refusal(SEED) == ""
    assert refusal("import math\nfrom numpy.linalg import svd\nx = math.pi\nloads = 3\n") == ""
    assert refusal("import numpy as np\nfor _ in range(3):\n    _kept = np.maximum.reduce([1])\n") == ""


def test_no_module_but_those_that_may_be_imported_is_an_attribute() -> None:
    """Of NumPy as it is installed here, and whatever it has imported."""
    found, left = set[str](), [importlib.import_module(name) for name in MODULES]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while left:
            module = left.pop()
            names = [n for n in dir(module) if not n.startswith("_") and not refusal(f"x.{n}")]
            inner = [m for n in names if isinstance(m := getattr(module, n, None), types.ModuleType)]
            left += [m for m in inner if m.__name__ not in found]
            found |= {m.__name__ for m in inner}
    assert {name.partition(".")[0] for name in found} <= MODULES
    assert len(found) > 10
