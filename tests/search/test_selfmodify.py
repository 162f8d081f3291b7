"""Agents that rewrite themselves: what is diagnosed, who does the changing, and what comes of changes that fail."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evolvent.core.records import Group, Request
from evolvent.core.step import Step
from evolvent.run.assemble import assemble
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.archive import Archive, archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.loop import written
from evolvent.search.selfmodify import one_failure, weaknesses
from evolvent.search.stages import second_best
from evolvent.tasks.evaluation import Evaluation, over_instances
from evolvent.tasks.worlds.repair.world import SEED

TASK = "program:repair:10"


def verdict(solved: int, failed: int, empty: int, exhausted: int = 0) -> Evaluation:
    """So many instances of each kind; the exhausted ones are the first that failed."""
    names = [f"s{i}" for i in range(solved)] + [f"f{i}" for i in range(failed)] + [f"e{i}" for i in range(empty)]
    marks = {f"empty/e{i}": 1.0 for i in range(empty)} | {f"exhausted/f{i}": 1.0 for i in range(exhausted)}
    return over_instances({name: float(name[0] == "s") for name in names}, marks)


@pytest.mark.parametrize(
    ("evaluation", "expected"),
    [  # each entry with 1/4 where it applies, one after the other
        (verdict(2, 5, 3, 2), {"empty": 1 / 4, "stochastic": 3 / 16, "exhausted": 9 / 64, "unresolved": 27 / 64}),
        (verdict(10, 9, 1, 0), {"stochastic": 1 / 4, "unresolved": 3 / 4}),  # less than a tenth is empty
        (verdict(9, 9, 2, 0), {"empty": 1 / 4, "stochastic": 3 / 16, "unresolved": 9 / 16}),  # a tenth
        (verdict(3, 0, 0, 0), {"stochastic": 1 / 4, "unresolved": 3 / 4}),
    ],
)
def test_what_is_diagnosed(evaluation: Evaluation, expected: dict[str, float]) -> None:
    rng, draws = np.random.default_rng(1), 4000
    entries = [weaknesses(evaluation, rng) for _ in range(draws)]
    counts = Counter(entry for entry, _ in entries)
    assert set(counts) == set(expected)
    for entry, p in expected.items():
        assert abs(counts[entry] / draws - p) < 4 * (p * (1 - p) / draws) ** 0.5
    firsts = {entry: {name[0] for e, names in entries if e == entry for name in names} for entry in counts}
    assert firsts.get("empty", {"e"}) == {"e"}
    assert firsts["unresolved"] == ({"f"} if "instance/f0" in evaluation.metrics else {"s"})
    assert {name for e, names in entries if e == "exhausted" for name in names} <= {"f0", "f1"}
    assert {len(names) for e, names in entries if e == "unresolved"} == {1}


def test_one_failure_at_a_time() -> None:
    rng = np.random.default_rng(0)
    assert {one_failure(verdict(2, 1, 1), rng)[1][0] for _ in range(40)} == {"f0", "e0"}
    assert one_failure(verdict(1, 0, 0), rng) == ("unresolved", ["s0"])


def whole(*values: float) -> Archive:
    archive = Archive()
    archive.history = [Candidate(i, {"program": ""}, Evaluation(v)) for i, v in enumerate(values)]
    return archive


def test_who_is_evaluated_further() -> None:
    assert second_best(Evaluation(0.4), 1, whole(0.9, 0.8))
    assert not second_best(Evaluation(0.39), 1, whole(0.1))
    assert [second_best(Evaluation(v), 2, whole(0.1)) for v in (0.4, 0.41)] == [False, True]  # above 0.4 at least
    assert [second_best(Evaluation(v), 2, whole(0.5)) for v in (0.5, 0.51)] == [False, True]  # the best, if alone
    assert [second_best(Evaluation(v), 2, whole(0.9, 0.6, 0.5)) for v in (0.6, 0.61)] == [False, True]
    partial = whole(0.9, 0.6)
    partial.history[1] = Candidate(1, {}, Evaluation(0.95, complete=False))
    assert [second_best(Evaluation(v), 2, partial) for v in (0.9, 0.91)] == [False, True]
    assert not second_best(Evaluation(None), 1, whole(0.1))


MARKING = (
    SEED.split("def improve(")[0]
    + '''def improve(own, entry, log, components, shop):
    """A mark for each time that this one has changed somebody."""
    return own + "\\nBY = 'CHILD'", f"a mark for {entry} on {len(log)} of {len(components) > 40}"
'''
)


def modified(parent: str, **settings: str) -> tuple[Any, Step]:
    """One child of an agent beside the seed program, not evaluated yet."""
    role = assemble(RunSpec("dgm", TASK, "none", settings={"propose.children": "1", **settings})).main_role
    archive, solved = archive_of(role), verdict(1, 1, 0)
    names = role.task.instances("train")
    solved = over_instances({names[0]: 1.0, names[1]: 0.0})
    archive.history = [Candidate(0, {"program": SEED}, solved), Candidate(1, {"program": parent}, solved, (0,))]
    archive.members = archive.history[1:]
    s = Step(1, role)
    ((request,),) = list(role.slots["propose"](s))
    ((group,),) = [role.slots["rollout"]([request], s)]
    return group.trajectories[0], s


def test_an_agent_changes_itself_by_its_own_means(sandboxed: str) -> None:
    made, s = modified(MARKING, **{"rollout.mutate.diagnose": "one_failure"})
    assert made.info["program"] == MARKING + "\nBY = 'CHILD'"
    assert made.info["operator"] == "self: a mark for unresolved on 1 of True"
    assert s.metrics["entry/unresolved"] == 1
    assert s.metrics["unchanged"] == 0


def test_without_self_improvement_the_first_agent_does_the_changing(sandboxed: str) -> None:
    made, _ = modified(MARKING, **{"rollout.mutate.editor": "fixed"})
    assert "\nBY = 'CHILD'" not in made.info["program"]
    assert made.info["program"] not in (MARKING, SEED)
    assert not made.info["operator"].startswith("self: a mark")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return own, 'nothing'", "the agent changed nothing"),
        ("return own + '\\n\\n# a note', 'layout'", "the agent changed nothing"),
        ("raise ValueError('no idea')", "could not change itself: ValueError: no idea"),
        ("import os; os._exit(0)", "could not change itself: ended without an answer"),
        ("return 'def (', 'worse'", "the agent's new text is no program"),
        ("return None", "could not change itself: TypeError"),
    ],
)
def test_a_change_that_fails_is_a_finding(sandboxed: str, body: str, told: str) -> None:
    broken = SEED.split("def improve(")[0] + f"def improve(own, entry, log, components, shop):\n    {body}\n"
    made, s = modified(broken)
    assert told in made.info["unusable"]
    assert made.error is None
    assert s.metrics["unchanged"] == 1


USELESS = (
    SEED.replace("def solve(", "def before(")
    + '''

def solve(source, tools):
    """A patch that mends nothing."""
    return source + "\\nTRIED = True"
'''
)


def evaluated(agent: str, **settings: str) -> tuple[Evaluation, float, list[int]]:
    """What DGM measures of a child, on how many faults, and how many faults there are in each stage."""
    role = assemble(RunSpec("dgm", "program:repair:15", "none", settings=settings)).main_role
    s = Step(1, role)
    problem = role.task.draw("train", s.rng("problem"))
    archive_of(role).history = [Candidate(0, {"program": SEED}, Evaluation(0.1))]
    child = written(1, Request(problem, 1, uses=("0",)), agent, "self")
    role.judge([Group(problem, [child])], s)
    return child.info["evaluation"], role.ledger.of("verifier_calls"), [len(x) for x in role.task.world.stages]


def test_who_solves_nothing_of_the_small_set_is_evaluated_on_no_more(sandboxed: str) -> None:
    found, calls, stages = evaluated(USELESS)
    assert stages == [10, 5]
    assert (found.value, found.complete, calls) == (0.0, False, 10)


@pytest.mark.slow
def test_other_rules_let_it_through(sandboxed: str) -> None:
    for settings in ({"judge.promote": "everybody"}, {"judge.promote.least": "0"}):
        found, calls, _ = evaluated(USELESS, **settings)
        assert (found.value, found.complete, calls) == (0.0, True, 15)


@pytest.mark.slow
def test_dgm_from_end_to_end(sandboxed: str, tmp_path: Path) -> None:
    result = begin(RunSpec("dgm", TASK, "none", "4 steps", 3), tmp_path, logs=("jsonl",))
    found = list(result.view.candidates.values())
    assert len(found) == 1 + 3 * 2
    assert all(c["operator"].startswith("self") for c in found[1:])
    made = [c for c in found[1:] if c["evaluation"]["value"] is not None]
    assert made
    assert all(c["payload"]["program"] != found[c["parents"][0]]["payload"]["program"] for c in made)
    assert result.ledger.of("verifier_calls") == 10 * sum(c["evaluation"]["status"] != "unusable" for c in found)
    again = begin(RunSpec("dgm", TASK, "none", "4 steps", 3), tmp_path / "again", logs=("jsonl",))
    assert again.view.candidates == result.view.candidates
