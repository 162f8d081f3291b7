"""Measurements that a mechanism is judged by and that training does not make: each a function of a role and a step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evolvent.core import places
from evolvent.core.errors import unknown
from evolvent.core.records import Group, Request
from evolvent.core.role import Role, find_field
from evolvent.core.step import Step
from evolvent.tasks.base import distinct

ORACLE = 64  # rollouts whose mean stands for the true expected score
PROBLEMS = 32


def probe_groups(role: Role, t: int, n: int, label: str) -> list[Group]:
    """`n` judged rollouts of some problems of the gate split, by the role's own roll-out and judge."""
    problems = distinct(role.task, "gate", PROBLEMS)
    s = Step(t, role, role.actors(Step(t, role, label=label)), label=label)
    groups = role.slots["rollout"]([Request(p, n) for p in problems], s)
    role.slots["judge"](groups, s)
    return groups


def sign_flips(role: Role, t: int) -> float:
    """Share of rollouts whose advantage has another sign than their score minus the mean of 64 rollouts.

    Groups of the role's own size are cut from the 64, and given the role's own credit; rows without an advantage
    (the pivot of a median) are left out, as are rollouts that lie exactly at the oracle's mean.
    """
    n = find_field(role.slots["propose"], "n")
    advantages = find_field(role.slots["credit"], "advantages")
    flipped = counted = 0
    for group in probe_groups(role, t, ORACLE, "sign-flips"):
        scores = np.array([x.score for x in group.valid])
        truth = np.sign(scores - scores.mean())
        for start in range(0, len(scores) - n + 1, n):
            part = Group(group.problem, group.valid[start : start + n])
            signs = np.sign(advantages([part])[0])
            counts = (signs != 0) & (truth[start : start + n] != 0)
            flipped += int((signs != truth[start : start + n])[counts].sum())
            counted += int(counts.sum())
    return flipped / max(1, counted)


Probe = Callable[[Role, int], float]
PROBES: dict[str, Probe] = {"sign_flips": sign_flips}


def find_probe(name: str) -> Probe:
    """A probe by name, or `module:function` of your own. `UserError` if there is none."""
    if name in PROBES:
        return PROBES[name]
    try:
        return places.at(name)
    except (ImportError, AttributeError, ValueError):
        remedy = f"there are {', '.join(PROBES)}; give module:function for one of your own"
        raise unknown("probe", name, PROBES, remedy) from None
