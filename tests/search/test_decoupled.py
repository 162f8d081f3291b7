"""Expansion and evaluation decided apart: against probabilities computed otherwise, and over a kill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from evolvent.core.errors import UserError
from evolvent.core.step import Step
from evolvent.lineage.descent import best_of
from evolvent.lineage.runs import read_run
from evolvent.lineage.store import Store
from evolvent.run.assemble import assemble
from evolvent.run.result import Progress
from evolvent.run.session import Session, begin, resume
from evolvent.run.spec import RunSpec
from evolvent.search.archive import Archive, archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.decoupled import ExpandOrEvaluate
from evolvent.search.final import highest, surest
from evolvent.search.parents import Pool, clade_counts, spent, tempered, thompson_clade
from evolvent.tasks.evaluation import Evaluation, over_instances

TASK = "program:repair:10"


def agent(uid: int, solved: int, failed: int, parent: int | None = None, whole: bool = False) -> Candidate:
    """A candidate with verdicts on so many instances, of the names that the world has."""
    values = dict(zip(NAMES, [1.0] * solved + [0.0] * failed, strict=False))
    made = over_instances(values) if values else Evaluation(0.0)
    evaluation = Evaluation(made.value, made.metrics, complete=whole)
    return Candidate(uid, {"program": f"x = {uid}"}, evaluation, () if parent is None else (parent,))


def names() -> Sequence[str]:
    from evolvent.tasks.worlds.repair.world import world

    return world("10").instances["train"]


NAMES = names()


def winning(params: Sequence[tuple[float, float]]) -> list[float]:
    """P(theta_i is the largest) for independent beta variables, by integration."""

    def density(x: float, i: int) -> float:
        others = [beta.cdf(x, *p) for j, p in enumerate(params) if j != i]
        return float(beta.pdf(x, *params[i]) * np.prod(others))

    return [quad(density, 0, 1, args=(i,))[0] for i in range(len(params))]


def close(counts: Counter[int], expected: dict[int, float], draws: int) -> bool:
    """Within four standard errors."""
    return all(abs(counts[k] / draws - p) < 4 * (p * (1 - p) / draws) ** 0.5 + 1e-9 for k, p in expected.items())


TREE = [
    agent(0, 2, 8, whole=True),
    agent(1, 3, 1, 0),
    agent(2, 0, 4, 0),
    agent(3, 1, 0, 2),
    agent(4, 0, 0, 2),
    agent(5, 2, 1, 2),
]
OWN = [
    (1 + 3, 1 + 1),
    (1 + 0, 1 + 4),
    (1 + 1, 1 + 0),
    (1, 1),
    (1 + 2, 1 + 1),
]  # without the seed: nothing is left to test
CLADES = {0: (1 + 8, 1 + 14), 1: (4, 2), 3: (2, 1), 5: (3, 2)}  # who never solved anything is no parent: 2 and 4


def system(tree: list[Candidate], **settings: str) -> Any:
    found = assemble(RunSpec("hgm", TASK, "none", settings=settings)).main_role
    archive = archive_of(found)
    archive.history, archive.members = list(tree), [c for c in tree if c.valid]
    return found


def proposed(role: Any, draws: int) -> tuple[Counter[int], Counter[int], Counter[str]]:
    """Who has a child, who is evaluated, and on what, over steps that are not carried out."""
    parents, evaluated, instances = Counter[int](), Counter[int](), Counter[str]()
    for t in range(draws):
        ((request,),) = list(role.slots["propose"](Step(t + 1, role)))
        if request.resume:
            (trajectory,) = request.resume
            evaluated[trajectory.info["candidate"]] += 1
            instances.update(trajectory.info["instances"])
        else:
            parents[int(request.uses[0])] += 1
    return parents, evaluated, instances


def test_who_is_evaluated(sandboxed: str) -> None:
    draws = 1500
    parents, evaluated, instances = proposed(system(TREE, **{"propose.alpha": "0.3"}), draws)  # 13^0.3 < 5 children
    assert not parents
    assert close(evaluated, dict(zip(range(1, 6), winning(OWN), strict=True)), draws)
    assert set(instances) <= set(NAMES)
    last = system([*TREE[:1], *[agent(i, 3, 6, 0) for i in range(1, 7)]], **{"propose.alpha": "0.1"})
    assert set(proposed(last, 40)[2]) == {NAMES[9]}  # the only instance that is left to them


def test_who_has_a_child(sandboxed: str) -> None:
    draws = 1500
    parents, evaluated, _ = proposed(system(TREE, **{"propose.alpha": "1"}), draws)  # 13 >= 5 children
    assert not evaluated
    assert close(parents, dict(zip(CLADES, winning(list(CLADES.values())), strict=True)), draws)


def test_what_is_measured_of_a_parent(sandboxed: str) -> None:
    role, seen = system(TREE, **{"propose.alpha": "1"}), set()
    for t in range(60):
        step = Step(t + 1, role)
        ((request,),) = list(role.slots["propose"](step))
        found = {name: round(step.metrics[name], 4) for name in ("clade", "clade_rank", "own")}
        seen.add((int(request.uses[0]), found["clade"], found["clade_rank"], found["own"]))
    assert seen <= {  # clades: 8/22, 3/4, 3/8, 1/1, 0/0 and 2/3
        (0, 0.3636, round(4 / 6, 4), 0.2),
        (1, 0.75, round(1 / 6, 4), 0.75),
        (3, 1.0, 0.0, 1.0),
        (5, 0.6667, round(2 / 6, 4), 0.6667),
    }
    assert len(seen) >= 3


def test_a_child_that_does_not_work_is_no_trial() -> None:
    broken = Candidate(6, {"program": ""}, Evaluation(None, {}, "no", "unusable"), (1,))
    counts = clade_counts([*TREE, broken])
    assert (counts[1], counts[6]) == ((3, 1), (0, 0))
    assert spent([*TREE, broken]) == spent(TREE)


def test_a_cool_down_sharpens_the_draws() -> None:
    pool = Pool(TREE, np.zeros(6), TREE[0], TREE[-1], TREE)
    assert spent(TREE) == 4 + 4 + 1 + 3
    assert tempered(TREE, 0.0, 5) == 1.0
    assert tempered(TREE, 2.0, 24) == pytest.approx((24 / 12) ** 2)
    assert tempered(TREE, 1.0, 12) == tempered(TREE, 1.0, 3) == 1e4
    rng, draws = np.random.default_rng(0), 3000
    counts = Counter(thompson_clade(pool, rng, productive=True, cool_down=2.0, budget=24).uid for _ in range(draws))
    params = [(4 * a, 4 * b) for a, b in CLADES.values()]
    assert close(counts, dict(zip(CLADES, winning(params), strict=True)), draws)
    free = Counter(thompson_clade(pool, rng).uid for _ in range(300))
    assert set(free) & {2, 4}


def test_who_is_the_best_in_the_end() -> None:
    found = surest([agent(0, 2, 8), agent(1, 1, 0), agent(2, 7, 2), agent(3, 0, 0), agent(4, 4, 0)], epsilon=0.05)
    # the quantile of Beta(1 + n, 1) is eps^(1 / (1 + n)), that of Beta(1, 1 + n) is 1 - (1 - eps)^(1 / (1 + n))
    assert found is not None
    assert found.uid == 4
    assert beta.ppf(0.05, 8, 3) < 0.05 ** (1 / 5)
    assert surest([agent(0, 0, 3), agent(1, 0, 1)], epsilon=0.05).uid == 1  # type: ignore[union-attr]
    assert surest([], epsilon=0.05) is None
    assert highest([agent(0, 2, 8, whole=True), agent(1, 1, 0)]).uid == 0  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_run_keeps_to_the_rule_and_pays_for_instances_only(sandboxed: str, tmp_path: Path) -> None:
    result = begin(RunSpec("hgm", TASK, "none", "26 evaluations", 2, {"propose.first": "2"}), tmp_path, logs=("jsonl",))
    expected, children, evaluations = [], 0, 0
    while evaluations < 16:  # 26, of which the seed program takes 10
        expand = children < 2 or evaluations**0.6 >= children
        expected.append(float(expand))
        children, evaluations = children + expand, evaluations + (not expand)
    assert [value for _, value in result.view.curve("expanded")] == expected
    found = list(result.view.candidates.values())
    assert len(found) == 1 + children
    counts = [sum(k.startswith("instance/") for k in c["evaluation"]["metrics"]) for c in found]
    assert counts[0] == 10
    assert sum(counts[1:]) == 16
    assert [c["revision"] for c in found[1:]] == counts[1:]
    assert result.ledger.of("verifier_calls") == 26
    archive = Archive()
    archive.recall(result.view.candidates.values())
    assert best_of(result.view)["uid"] == surest(archive.history).uid  # type: ignore[union-attr]
    assert (result.folder / "best.py").read_text() == best_of(result.view)["payload"]["program"]


@pytest.mark.slow
def test_a_run_that_was_killed_does_not_see_what_came_after_its_checkpoint(sandboxed: str, tmp_path: Path) -> None:
    settings = {"propose.first": "2"}
    begin(RunSpec("hgm", TASK, "none", "11 steps", 5, settings), tmp_path / "one", logs=("jsonl",))
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    whole = read_run(one, "last")
    session = Session(two, RunSpec("hgm", TASK, "none", "11 steps", 5, settings), "halved", logs=("jsonl",))

    def stop(progress: Progress) -> None:
        if progress.t == 6:
            session.stopping.set()

    session.watch = stop
    session.start(assemble(session.spec))
    before = len(list(two.events("halved", ("candidate",))))
    later = [e.data for e in one.events(whole.name, ("candidate",))][before:]
    assert any("payload" not in data for data in later)  # further evaluations of candidates that are there already
    two.add_many("halved", [("candidate", data) for data in later])  # as if killed before the next checkpoint
    resumed = resume(two, "halved")
    assert resumed.view.candidates == whole.candidates
    assert resumed.view.curve("expanded") == whole.curve("expanded")
    assert resumed.view.curve("chosen") == whole.curve("chosen")


def test_the_archive_goes_back_to_the_revision_of_its_state() -> None:
    archive, events = Archive(), []
    archive.history = [agent(0, 2, 8, whole=True), agent(1, 0, 0, 0)]
    archive.members = list(archive.history)
    events += archive.journal()
    archive.revise(1, over_instances({"a": 1.0}))
    events += archive.journal()
    state = archive.state_dict()
    archive.revise(1, over_instances({"a": 1.0, "b": 0.0}))
    events += archive.journal()
    assert [set(e) for e in events[2:]] == [{"uid", "revision", "evaluation"}] * 2
    for extra in ([], events[-1:], events[:1]):  # also what was written twice
        other = Archive()
        other.recall([*events, *extra])
        assert other.history[1].evaluation.value == 0.5
        other.load_state_dict(state)
        assert other.history[1].evaluation.value == 1.0
        assert other.history[1] is other.members[1]
        assert other.history[1].revision == 1
        assert other.journal() == []


def test_what_cannot_be_searched_like_this(sandboxed: str) -> None:
    with pytest.raises(UserError, match="evaluates one instance at a time, and program:circle-packing:4 has none"):
        assemble(
            RunSpec("hgm", "program:circle-packing:4", "none", settings={"rollout": "evolvent.search.mutate:Mutate"})
        )
    with pytest.raises(
        UserError, match="programs that change themselves, and those of program:circle-packing:4 do not"
    ):
        assemble(RunSpec("dgm", "program:circle-packing:4", "none"))
    with pytest.raises(UserError, match="propose.alpha must be at most 1, got 2"):
        assemble(RunSpec("hgm", TASK, "none", settings={"propose.alpha": "2"}))


def test_settings_are_those_of_the_paper() -> None:
    part = ExpandOrEvaluate()
    assert (part.alpha, part.budget, part.cool_down, part.first) == (0.6, 800, 0.0, 5)
