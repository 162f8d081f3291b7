"""What is kept up to date over a history, against what reading all of it says."""

from __future__ import annotations

import numpy as np

from evolvent.search.archive import Archive
from evolvent.search.candidate import PROGRAM, Candidate
from evolvent.search.normal import tree_hash
from evolvent.search.novelty import forms
from evolvent.tasks.evaluation import Evaluation


def drawn(uid: int, rng: np.random.Generator) -> Candidate:
    """A candidate of few values, so that there are equals, now and then not valid, not complete or no Python."""
    value = None if rng.random() < 0.2 else float(rng.integers(5))
    text = "x = (" if rng.random() < 0.1 else f"x = {rng.integers(20)}"
    parents = (int(rng.integers(uid)),) if uid else ()
    return Candidate(uid, {PROGRAM: text}, Evaluation(value, complete=bool(rng.random() < 0.8)), parents)


def best(history: list[Candidate]) -> Candidate | None:
    """Of all of them."""
    whole = [c for c in history if c.evaluation.value is not None and c.evaluation.complete]
    return min(whole, key=lambda c: (-(c.evaluation.value or 0.0), c.uid), default=None)


def hashes(history: list[Candidate]) -> set[str]:
    """Of all that are Python."""
    return {tree_hash(c.text) for c in history if c.text != "x = ("}


def test_the_best_and_the_forms_of_a_growing_history() -> None:
    rng, archive = np.random.default_rng(3), Archive()
    assert archive.best is None
    assert forms(archive) == set()
    for _ in range(60):
        for _ in range(int(rng.integers(4))):
            archive.history.append(drawn(len(archive.history), rng))
        assert archive.best is best(archive.history)
        assert forms(archive) == hashes(archive.history)


def test_a_history_that_was_taken_back_is_read_anew() -> None:
    rng, archive = np.random.default_rng(4), Archive()
    archive.history = [drawn(uid, rng) for uid in range(20)]
    first = best(archive.history)
    assert archive.best is first
    assert forms(archive) == hashes(archive.history)
    for kept in (15, 3, 0):  # shorter, then longer than before with others in it
        archive.history = archive.history[:kept]
        assert archive.best is best(archive.history)
        archive.history += [drawn(uid, rng) for uid in range(kept, 25)]
        assert archive.best is best(archive.history)
        assert forms(archive) == hashes(archive.history)


def test_a_checkpoint_holds_who_is_a_member_and_finds_the_children_in_the_history() -> None:
    rng, archive = np.random.default_rng(5), Archive()
    archive.history = [drawn(uid, rng) for uid in range(30)]
    archive.members = archive.history[3:20:2]
    for c in archive.history:
        archive.children.update(c.parents[:1])
    state = archive.state_dict()
    archive.history.append(drawn(30, rng))
    again = Archive()
    again.recall([c.as_dict() for c in archive.history])
    again.load_state_dict(state)
    assert [c.uid for c in again.members] == list(range(3, 20, 2))
    assert again.children == archive.children
    assert len(again.history) == 30
