"""Probe: what is gained at test time by weighing votes with a learned head."""

from __future__ import annotations

import numpy as np

from evolvent.bench.probes import probe_groups
from evolvent.core.role import Role
from evolvent.judge.elect import elected, ranks

VOTES = 16


def vote_gain(role: Role, t: int) -> float:
    """Share of gate problems that a vote weighed by the rank of `info["head"]` gets right, less that of a plain vote.

    Answers that were over before the head saw them count as scored 1/2; without a head the gain is 0.
    """
    gain = []
    for group in probe_groups(role, t, VOTES, "vote"):
        answers = [x.info["answer"] for x in group.valid]
        right = {x.info["answer"] for x in group.valid if x.outcome >= 1.0}
        weights = ranks(np.array([x.info.get("head", 0.5) for x in group.valid]))
        plain, weighed = elected(answers), elected(answers, weights)
        gain.append((weighed in right) - (plain in right))
    return float(np.mean(gain))
