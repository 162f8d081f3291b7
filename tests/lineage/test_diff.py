"""What differs: settings, patches, figures paired by problem, spending, and how far the weights moved."""

from __future__ import annotations

import math

import pytest
import torch
from tests.cli.finished import store_with_runs
from tests.run.lives import view_of

from evolvent.bench.statistics import t_interval
from evolvent.core.errors import UserError
from evolvent.lineage.diff import compare, paired
from evolvent.lineage.store import Store
from evolvent.lineage.versions import load_version


def test_two_versions_of_one_run() -> None:
    store = Store(store_with_runs())
    view = view_of(store.root, "run")
    found = compare(store, "run:0", f"run:{view.head}")
    assert found["run"] == found["settings"] == {}
    assert found["recipes"] == {"a": [], "b": []}
    a, b = (load_version(store, view, v).weights() for v in (0, view.head))
    moved = math.sqrt(sum(float((b[n].double() - a[n].double()).square().sum()) for n in a))
    assert found["weights"]["l2"] == pytest.approx(moved)
    most = next(iter(found["weights"]["most_changed"]))
    assert torch.dist(a[most], b[most]).item() == max(torch.dist(a[n], b[n]).item() for n in a)
    start, evolved = view.evaluations["start"], view.evaluations["evolved"]
    assert found["figures"]["greedy"][0][0] == start["evaluation"]["greedy"]["mean"]
    right = [y - x for x, y in zip(start["problems"]["greedy"], evolved["problems"]["greedy"], strict=True)]
    interval = t_interval(right)
    assert found["figures"]["greedy, b - a on the same problems"] == [interval.mean, interval.low, interval.high]
    assert found["spent"]["steps"] == [0.0, 6.0]


def test_two_runs() -> None:
    found = compare(Store(store_with_runs()), "run", "other")
    assert found["run"]["task"] == ["arith:1x1", "calc:1x1"]
    assert found["settings"]["gate"] == ["Watch", "ScoreGate"]
    assert found["settings"]["gate.tolerance"][0] is None
    assert "greedy" in found["figures"]
    assert not any("b - a" in name for name in found["figures"])  # not one problem in common
    assert found["weights"]["l2"] > 0


def test_a_run_beside_a_version_stands_for_its_head() -> None:
    store = Store(store_with_runs())
    head = view_of(store.root, "run").head
    assert compare(store, "run:0", "run")["figures"] == compare(store, "run:0", f"run:{head}")["figures"]


def test_a_version_and_itself() -> None:
    assert compare(Store(store_with_runs()), "run:0", "run:0")["weights"] == {"same": True}


def test_references_that_are_none() -> None:
    store = Store(store_with_runs())
    with pytest.raises(UserError, match="write RUN or RUN:VERSION"):
        compare(store, "run:x", "run")
    with pytest.raises(UserError, match="has no version 999"):
        compare(store, "run:999", "run")
    with pytest.raises(UserError, match="unknown run `rnu`; did you mean run"):
        compare(store, "rnu", "run")


def test_pairs_leave_out_what_one_lacks() -> None:
    a = {"problems": {"key": ["p", "q", "r", "s"], "greedy": [0, 1, None, 1]}}
    b = {"problems": {"key": ["s", "q", "p", "z"], "greedy": [0, 1, 1, 1]}}
    one = t_interval([1, 0, -1])  # p, q, s
    assert paired(a, b, "greedy") == [one.mean, one.low, one.high]
    assert paired(a, {"problems": {"key": ["z"], "greedy": [1]}}, "greedy") is None
