"""Views are a function of the events: resumes, rollbacks, versions, names."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

import pytest

from evolvent.core.errors import UserError
from evolvent.lineage.runs import RunView, find_run, list_runs, read_run
from evolvent.lineage.store import Store

SPEC = {"recipe": "grpo", "task": "arith", "model": "tiny", "budget": "9 steps", "seed": 0}


def step(t: int, score: float = 0.0) -> tuple[str, dict[str, Any]]:
    return "step", {"t": t, "roles": {"": {"score": score}}, "spent": {"method": {"steps": t + 1.0}}}


def version(
    number: int, at: int, verdict: str = "accepted", parents: tuple[int, ...] = ()
) -> tuple[str, dict[str, Any]]:
    data = {"number": number, "step": at, "parents": list(parents), "hash": f"h{number}", "operator": "grpo"}
    return "version", {**data, "evidence": {"gate/accuracy": 0.5}, "verdict": verdict}


def view(tmp_path: Path, *events: tuple[str, dict[str, Any]]) -> RunView:
    store = Store(tmp_path)
    store.add_many("a", [("created", {"spec": SPEC}), version(0, 0, "start"), *events])
    return read_run(store, "a")


def test_steps_that_were_done_again_count_once(tmp_path: Path) -> None:
    events = [step(0), step(1, 0.1), version(2, 2), step(2, 0.2), ("resumed", {"step": 1, "head": 0}), step(1, 0.7)]
    found = view(tmp_path, *events)
    assert found.curve("score") == [(0, 0.0), (1, 0.7)]
    assert [v.number for v in found.versions] == [0]
    assert found.head == 0
    assert found.spent == {"method": {"steps": 2.0}}


def test_a_version_at_the_step_of_the_checkpoint_stays(tmp_path: Path) -> None:
    found = view(tmp_path, step(0), step(1), version(2, 2), ("resumed", {"step": 2, "head": 2}))
    assert [v.number for v in found.versions] == [0, 2]
    assert found.head == 2


def test_a_version_gone_back_to_stays_even_if_it_lies_after_the_checkpoint(tmp_path: Path) -> None:
    found = view(tmp_path, step(0), version(1, 1), ("rollback", {"to": 1}), ("resumed", {"step": 0, "head": 1}))
    assert found.version(1).step == 1
    assert found.head == 1


def test_a_rollback_removes_no_version_whenever_the_run_is_carried_on(tmp_path: Path) -> None:
    """Those from before it are not made again; those after it are, if they are newer than the checkpoint."""
    first = [step(0), version(1, 1), step(1), version(2, 2), ("rollback", {"to": 0})]
    found = view(tmp_path / "a", *first, ("resumed", {"step": 1, "head": 0}))
    assert [v.number for v in found.versions] == [0, 1, 2]
    then = [step(1), version(3, 2), step(2), version(4, 3), ("resumed", {"step": 2, "head": 3})]
    found = view(tmp_path / "b", *first, ("resumed", {"step": 1, "head": 0}), *then)
    assert [v.number for v in found.versions] == [0, 1, 2, 3]
    assert found.head == 3


def figures(of: int, greedy: float, name: str = "evolved") -> list[tuple[str, dict[str, Any]]]:
    result = {"evaluation": {"greedy": greedy}}
    told = {"name": name, "version": of, "result": result, "spent": {"sampled": 5.0}}
    return [("samples", {"name": name, "problems": [greedy]}), ("evaluation", told)]


def test_figures_of_another_version_are_not_those_of_the_head(tmp_path: Path) -> None:
    """They come back with it, and a version keeps its own."""
    finished = [*figures(0, 0.1, "start"), step(0), version(1, 1), *figures(1, 0.2), ("finished", {})]
    shown = {"start": {"evaluation": {"greedy": 0.1}}, "evolved": {"evaluation": {"greedy": 0.2}}}
    assert view(tmp_path / "a", *finished).evaluations == shown
    resumed = [*finished, ("resumed", {"step": 1, "head": 1}), step(1)]
    assert view(tmp_path / "b", *resumed).evaluations == shown
    for where, change in (("c", version(2, 2)), ("d", ("rollback", {"to": 0}))):
        found = view(tmp_path / where, *resumed, change)
        assert found.evaluations == {"start": shown["start"]}
        assert found.measured == {"start": 0}
        assert found.samples == {"start": [0.1]}
        assert found.evidence_spent == {"sampled": 10.0}
        assert [found.evaluation(n) for n in (0, 1, 2)] == [shown["start"], shown["evolved"], None]
    found = view(tmp_path / "e", *resumed, ("rollback", {"to": 0}), ("rollback", {"to": 1}))
    assert found.evaluations == shown
    assert (found.measured, found.samples["evolved"]) == ({"start": 0, "evolved": 1}, [0.2])


def test_refused_versions_do_not_become_the_head(tmp_path: Path) -> None:
    found = view(tmp_path, step(0), version(1, 1), step(1), version(2, 2, "refused"))
    assert found.head == 1
    assert [v.number for v in found.standing] == [0, 1]


def test_a_version_that_is_looked_at_again_keeps_its_place(tmp_path: Path) -> None:
    """A recipe that learns nothing is measured by its gate again and again: still one version."""
    found = view(tmp_path, step(0), version(0, 1))
    assert [(v.number, v.step, v.verdict) for v in found.versions] == [(0, 0, "start")]
    assert found.versions[0].evidence == {"gate/accuracy": 0.5}


def test_rollbacks_are_visible_and_can_be_undone(tmp_path: Path) -> None:
    found = view(tmp_path, step(0), version(1, 1), ("rollback", {"to": 0}), ("rollback", {"to": 1}))
    assert [(r.source, r.to) for r in found.rollbacks] == [(1, 0), (0, 1)]
    assert found.head == 1


def test_measuring_is_added_up(tmp_path: Path) -> None:
    one = {"name": "start", "version": 0, "result": {"x": 1}, "spent": {"sampled": 5.0}}
    two = {"name": "evolved", "version": 1, "result": {"x": 2}, "spent": {"sampled": 7.0, "verifier_calls": 1.0}}
    found = view(tmp_path, step(0), ("evaluation", one), ("evaluation", two), ("finished", {"errors": {"e": 2}}))
    assert found.evidence_spent == {"sampled": 12.0, "verifier_calls": 1.0}
    assert found.spent["evidence"]["sampled"] == 12.0
    assert found.measured == {"start": 0, "evolved": 1}
    assert (found.status, found.errors) == ("finished", {"e": 2})


def test_the_short_list_agrees_with_the_full_view(tmp_path: Path) -> None:
    full = view(tmp_path, step(0), version(1, 1), step(1), step(2), ("rollback", {"to": 0}), ("finished", {}))
    (short,) = list_runs(Store(tmp_path))
    assert short.head == full.head
    assert short.status == full.status
    assert max(short.steps) == max(full.steps)
    assert short.spent == full.spent


def test_the_short_list_counts_the_steps_before_one_that_is_done_again(tmp_path: Path) -> None:
    full = view(tmp_path, *(step(t) for t in range(5)), ("resumed", {"step": 3, "head": 0}))
    (short,) = list_runs(Store(tmp_path))
    assert max(short.steps) == max(full.steps) == 2
    assert short.spent == full.spent == {"method": {"steps": 3.0}}


def test_a_run_counts_as_running_while_its_lock_is_held(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    lock = (tmp_path / "a/lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert view(tmp_path, step(0)).status == "running"
    lock.close()
    assert read_run(Store(tmp_path), "a").status == "interrupted"


def test_unknown_runs_and_versions(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no runs in"):
        find_run(Store(tmp_path / "empty"), "last")
    found = view(tmp_path)
    assert find_run(Store(tmp_path), "last") == "a"
    with pytest.raises(UserError, match="has no version 7; it has 0"):
        found.version(7)
    Store(tmp_path).add("grpo-arith-1", "created", {"spec": SPEC})
    with pytest.raises(UserError, match="did you mean grpo-arith-1"):
        find_run(Store(tmp_path), "grpo-arit-1")
