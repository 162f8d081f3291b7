"""What worlds of games with hidden information share: a loop beside the program, and a value in digits.

    value = mean over games of -log10 max(exploitability after K iterations, 0.01 / K)

The loop runs in the sandbox with the program, so programs that could look into it or change it are not run; what comes
back is made into policies here, and their exploitability is computed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from evolvent.games.named import load
from evolvent.games.tree import Game
from evolvent.games.values import exploitability
from evolvent.guard.sandbox import Call
from evolvent.tasks.evaluation import Evaluation, invalid, over_instances
from evolvent.tasks.program import PROGRAM
from evolvent.tasks.worlds.plain import patches, refusal

SOLVED = 0.01  # times 1 / K: so that no game outweighs the others once it is solved

Read = Callable[[Game, Any], list[np.ndarray] | str]  # a policy for each player, or what is wrong with what came back


@lru_cache(maxsize=32)
def data(name: str) -> list[dict[str, Any]]:
    """A game as data."""
    return load(name).data()


def beside(run: str, *modules: ModuleType) -> dict[str, str]:
    """The files that a program runs with: the loop, and modules of `evolvent.games`."""
    made = {f"evolvent/games/{m.__name__.split('.')[-1]}.py": Path(str(m.__file__)).read_text() for m in modules}
    return {**dict.fromkeys(("evolvent/__init__.py", "evolvent/games/__init__.py"), ""), **made, "run.py": run}


def call(files: Mapping[str, str], text: str, names: Sequence[str], iterations: int) -> Call:
    """The run of a program on some games."""
    if reason := refusal(text) or patches(text):
        return Call(files, "run", "refused", (reason,), seed=0)
    return Call({**files, PROGRAM: text}, "run", "run", ({n: data(n) for n in names}, iterations), seed=0)


def judge(value: Any, what: str, read: Read, names: Sequence[str], iterations: int) -> Evaluation:
    """The verdict on what came back of each game, as `read` reads it; `what` is what that should be."""
    if isinstance(value, str):
        return invalid(value, "refused")
    if not isinstance(value, dict) or set(value) != set(names):
        return invalid(f"there should be {what} of the games {', '.join(names)}")
    found = {}
    for name in names:
        policies = read(load(name), value[name])
        if isinstance(policies, str):
            return invalid(f"{name}: {policies}")
        found[name] = exploitability(load(name), policies)
    digits = {name: -math.log10(max(x, SOLVED / iterations)) for name, x in found.items()}
    each = {f"exploitability/{name}": x for name, x in found.items()}
    return over_instances(digits, {"exploitability": sum(found.values()) / len(found), **each})
