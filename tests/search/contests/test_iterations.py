"""Iterations: births, trials, revisions, contests, the schedule; and what is known after them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from evolvent.core.errors import UserError
from evolvent.core.step import Step
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.spec import RunSpec
from evolvent.search.archive import archive_of
from evolvent.search.contests.iterations import Iterations, on
from evolvent.search.contests.ratings import contests_of, elo
from evolvent.tasks.worlds.sql.agents import read_agent
from evolvent.tasks.worlds.sql.world import grouped, sql_of

SMALL = {"propose__databases": 2, "propose__questions": 8}


@contextmanager
def system(seed: int = 0, **settings: Any) -> Iterator[Assembled]:
    named = {name.replace("__", "."): value for name, value in {**SMALL, **settings}.items()}
    made = assemble(RunSpec("robophd", "program:sql:4", "none", seed=seed, settings=named))
    try:
        yield made
    finally:
        sql_of(made.main_role.task).sandbox.close()


def part(made: Assembled) -> Iterations:
    found = made.main_role.slots["propose"]
    assert isinstance(found, Iterations)
    return found


def until(made: Assembled, iteration: int, most: int = 60) -> list[Step]:
    """Steps until so many iterations are over."""
    taken: list[Step] = []
    while part(made).iteration <= iteration and len(taken) < most:
        taken += made.system.step()
    return taken


def rounds(taken: list[Step]) -> list[Mapping[int, float]]:
    """Of each contest who took part, with which accuracy."""
    found = [
        {t.info["candidate"]: t.info["accuracy"] for g in s.groups for t in g.valid if "contest" in t.info}
        for s in taken
    ]
    return [contest for contest in found if contest]


def test_four_iterations(sandboxed: str) -> None:
    with system(seed=2) as made:
        taken = until(made, 4)
        archive, task = archive_of(made.main_role), sql_of(made.main_role.task)
        history, contests = archive.history, contests_of(archive.history)
        assert contests == rounds(taken)
        assert [len(c) for c in contests] == [1, 2, 3, 3]
        names = [part(made).asked(task, 2, i) for i in range(1, 5)]
        spent = 0
        for s in taken:
            spent += sum(len(t.info["instances"]) for g in s.groups for t in g.valid)
        assert (
            made.system.ledger.of("verifier_calls")
            == spent
            == 16 * (1 + 2 + 6 + sum("tried" in s.metrics for s in taken))
        )
        for i, contest in enumerate(contests):
            assert len(names[i]) == len({*names[i]}) == 16
            assert len(grouped(names[i])) == 2
            for uid, accuracy in contest.items():
                assert task.evaluate([history[uid].text], [names[i]])[0].value == pytest.approx(accuracy)
        ratings = elo(contests)
        best = archive.best
        assert best is not None
        assert ratings[best.uid] == max(ratings.values())
        for i, s in enumerate([s for s in taken if "kind" in s.metrics]):
            before = elo(contests[:i])
            led = max(before, key=lambda uid: (before[uid], -uid)) if before else None
            if led is not None and led in contests[i]:
                once = max(contest[led] for contest in contests[:i] if led in contest)
                assert s.metrics["luck"] == pytest.approx(once - contests[i][led])
                assert s.metrics["leader"] == pytest.approx(contests[i][led])
        new = [max(c) for c in contests[1:]]
        assert all(
            uid not in c for uid, c in zip(new, contests, strict=False)
        )  # whoever is new was in no contest before
        for s in taken:
            if "tried" in s.metrics:
                assert s.metrics["revised"] == (s.metrics["tried"] < 0)


def test_a_trial_is_on_the_questions_before_and_a_revision_follows_if_it_did_worse(sandboxed: str) -> None:
    with system(seed=3) as made:
        taken = until(made, 5)
        task, history = sql_of(made.main_role.task), archive_of(made.main_role).history
        revised = [c for c in history if c.operator == "revise"]
        born = [c for c in history if c.operator == "evolve"]
        assert len(born) == 4
        assert revised
        contests = rounds(taken)
        for i, c in enumerate(born):
            names = part(made).asked(task, 3, i + 1)
            assert {f"instance/{n}" for n in names} <= {*c.evaluation.metrics}
            parent = contests[i].get(c.parents[0], sum(contests[i].values()) / len(contests[i]))
            heirs = [r for r in revised if r.parents[0] == c.uid]
            assert len(heirs) == (on(c.evaluation, names) < parent)
            newcomer = heirs[0] if heirs else c
            assert newcomer.uid in contests[i + 1]
            if heirs:
                assert c.uid not in {uid for contest in contests for uid in contest}
                first = read_agent(history[c.parents[0]].text).pieces
                assert first <= read_agent(newcomer.text).pieces | read_agent(c.text).pieces
    with system(seed=3, propose__trials=0) as made:
        until(made, 3)
        assert {c.operator for c in archive_of(made.main_role).history} == {"seed", "evolve"}
        assert made.system.ledger.of("verifier_calls") == 16 * (1 + 2 + 3)


def test_the_schedule(sandboxed: str) -> None:
    with system(seed=1, propose__begin=3, propose__evolve=0.0, propose__challenge=0.5, propose__above=0.0) as made:
        rule = part(made)
        kinds = []
        for rule.iteration in range(1, 40):
            kinds.append(rule.kind(1))
        rule.iteration = 0
        assert kinds[:2] == ["select", "evolve"]
        assert {*kinds[2:]} == {"challenge", "select"}
        assert 10 < kinds.count("challenge") < 28
        taken = until(made, 6)
        assert len(archive_of(made.main_role).history) in (2, 3)  # nobody is born after iteration 2
        assert [s.metrics["kind"] for s in taken if "kind" in s.metrics][2:] == [
            {"challenge": 1, "select": 2}[k] for k in kinds[2:6]
        ]
    shares = [0.0, 0.0, 0.0]
    rule = Iterations(begin=1)
    for rule.iteration in range(1, 1501):
        shares[("evolve", "challenge", "select").index(rule.kind(5))] += 1 / 1500
    assert shares == pytest.approx([0.7, 0.15, 0.15], abs=0.035)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"propose__agents": 1}, "propose.agents"),
        ({"propose__evolve": 0.9, "propose__challenge": 0.2}, "together at most 1"),
        ({"propose__databases": 5}, "from 1 to 4"),
        ({"propose__questions": 41}, "from 1 to 40"),
        ({"rollout__mutate__take": 1.5}, "from 0 to 1"),
        ({"rollout__mutate__changes": 0}, "at least 1"),
        ({"propose__rating__k": 16.0}, "propose.rating.k is 16 and keep.final.k 32"),
    ],
)
def test_settings_that_cannot_be(sandboxed: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        ready("program:sql:4", **{**SMALL, **settings})


def test_another_world_is_refused(sandboxed: str) -> None:
    with pytest.raises(UserError, match="program:sql"):
        ready("program:circle-packing:4")


def ready(task: str, **settings: Any) -> None:
    """Assemble a system and have its parts look at the role."""
    named = {name.replace("__", "."): value for name, value in settings.items()}
    role = assemble(RunSpec("robophd", task, "none", settings=named)).main_role
    for one in role.parts.values():
        if hasattr(one, "setup"):
            one.setup(role)
