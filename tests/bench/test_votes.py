"""What weighing votes gains: by hand, and with and without a head."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.recipes.recipe_runs import build

from evolvent.bench import votes
from evolvent.bench.votes import vote_gain
from evolvent.core.records import Group, Problem, Trajectory

PROBLEM = Problem("key", (), {})


def group(*rows: tuple[str | None, float, float | None]) -> Group:
    """Answers, their verdicts and their scores."""
    made = []
    for i, (answer, verdict, score) in enumerate(rows):
        info: dict[str, Any] = {"answer": answer} | ({} if score is None else {"head": score})
        t = Trajectory(i, PROBLEM, np.zeros(2, np.int32), np.ones(2, bool), np.zeros(2, np.float32), info=info)
        t.reward("outcome", verdict)
        made.append(t)
    return Group(PROBLEM, made)


GAINED = group(("7", 0, 0.1), ("7", 0, 0.2), ("8", 1, 0.9))
LOST = group(("8", 1, 0.1), ("8", 1, 0.2), ("7", 0, 0.9))
SAME = group(("8", 1, 0.1), ("8", 1, 0.9), ("7", 0, 0.2))
WITHOUT = group(("8", 1, None), ("7", 0, None), ("7", 0, None))  # no head: two plain majorities
SILENT = group((None, 0, 0.1), (None, 0, 0.9))
EARLY = group(("7", 0, 0.1), ("7", 0, 0.2), ("8", 1, None))  # over before the head saw it: 1/2 is above the others


@pytest.mark.parametrize(
    ("groups", "wanted"),
    [
        ([GAINED, SAME], 0.5),
        ([LOST, GAINED, GAINED], 1 / 3),
        ([LOST], -1),
        ([WITHOUT], 0),
        ([SILENT], 0),
        ([EARLY], 1),
    ],
)
def test_the_gain_by_hand(groups: list[Group], wanted: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(votes, "probe_groups", lambda *_: groups)
    assert vote_gain(None, 0) == pytest.approx(wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["arrol", "grpo"])
def test_it_runs_with_and_without_a_head(name: str) -> None:
    gain = vote_gain(build(name).system.roles[""], 0)
    assert -1 <= gain <= 1
    assert name == "arrol" or gain == 0
