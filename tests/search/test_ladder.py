"""Rewards by rung: repeated programs, failures, and how values are scaled, against numbers computed by hand."""

from __future__ import annotations

import pytest

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Request, Trajectory
from evolvent.core.step import Step
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.spec import RunSpec
from evolvent.search.archive import archive_of
from evolvent.search.ladder import power
from evolvent.search.loop import programs_of, written

WORLD = "program:landscape:parts=4,options=3"


@pytest.mark.parametrize(
    ("value", "expected"), [(2.635, 5.0), (3.0, 5.0), (0.0, 0.0), (-1.0, 0.0), (1.3175, 0.625), (2.108, 2.56)]
)
def test_values_are_scaled_as_for_discs(value: float, expected: float) -> None:
    assert power(value) == pytest.approx(expected)


def test_what_is_to_be_small_has_negative_bounds() -> None:
    # the published 3 (1.53 - v) / (1.53 - 1.5) for v = 1.51
    assert power(-1.51, low=-1.53, high=-1.5, alpha=1.0, scale=3.0) == pytest.approx(2.0)
    with pytest.raises(UserError, match="must be below"):
        power(1.0, low=2.0, high=1.0)


def begun(**settings: str) -> tuple[Assembled, Step]:
    """A search that has evaluated its seed program, and the step after."""
    named = {key.replace("__", "."): value for key, value in settings.items()}
    made = assemble(RunSpec("thetaevolve", WORLD, "none", settings={"keep.islands.count": 1, **named}))
    made.system.step()
    return made, Step(1, made.main_role)


def children(made: Assembled, programs: list[str]) -> tuple[Group, list[Trajectory]]:
    """Programs as children of the seed program, and the seed program's group for the judge."""
    problem = made.task.draw("train", Step(1, made.main_role).rng("problem"))
    rows = [written(i, Request(problem, 1, uses=("0",)), text, "test") for i, text in enumerate(programs)]
    return Group(problem, rows), rows


def variants(seed: str) -> list[str]:
    """The seed program with a remark; with one choice changed, twice; a wrong one; one that is no Python."""
    first = next(line for line in seed.split("\n") if " = " in line)
    name = first.split(" = ")[0]
    options = [f'{name} = "{option}"' for option in ("fixed", "lazy", "eager")]
    other = next(line for line in options if line != first)
    changed = seed.replace(first, other)
    return [
        seed.replace(first, first + "  # the same"),
        changed,
        changed,
        seed.replace(first, f'{name} = "nothing"'),
        seed.replace(first, f"{name} = ("),
    ]


@pytest.mark.parametrize(
    ("level", "lazy"),
    [(0, []), (1, [0]), (2, [0]), (3, [0, 2])],
)
def test_a_program_that_is_there_is_not_evaluated(level: int, lazy: list[int]) -> None:
    made, s = begun(judge__ladder__level=str(level))
    seed = programs_of(made.main_role).seed_program
    before = made.system.ledger.of("verifier_calls")
    group, rows = children(made, variants(seed))
    made.main_role.judge([group], s)
    assert [i for i, t in enumerate(rows) if t.info["evaluation"].status == "lazy"] == lazy
    assert made.system.ledger.of("verifier_calls") - before == len(rows) - len(lazy)
    assert s.metrics["lazy"] == pytest.approx(len(lazy) / 5)
    assert all(rows[i].score == -0.3 for i in lazy)


def test_level_two_knows_the_history_and_level_one_the_parent_alone() -> None:
    for level, status in (("1", "ok"), ("2", "lazy")):
        made, s = begun(judge__ladder__level=level)
        group, rows = children(made, variants(programs_of(made.main_role).seed_program)[1:2])
        made.main_role.judge([group], s)
        s.groups = [group]
        made.main_role.keep(s)
        archive = archive_of(made.main_role)
        assert len(archive.history) == 2
        again, repeated = children(made, [rows[0].info["program"]])
        made.main_role.judge([again], Step(2, made.main_role))
        assert repeated[0].info["evaluation"].status == status


def test_every_rung_has_its_reward() -> None:
    made, s = begun()
    group, rows = children(made, variants(programs_of(made.main_role).seed_program))
    rows[2].info["unusable"] = "no edit"
    made.main_role.judge([group], s)
    value = rows[1].info["evaluation"].value
    assert [t.score for t in rows] == [-0.3, value, -0.4, -0.1, -0.2]
    assert [list(t.rewards) for t in rows] == [["rung"]] * 5
    shares = [s.metrics[name] for name in ("unusable_rung", "lazy", "failed_rung", "invalid_rung")]
    assert shares == [0.2] * 4
    seed = archive_of(made.main_role).history[0]
    assert s.metrics["better"] == pytest.approx(0.2 * (value > seed.value))


def test_rungs_and_shape_are_settings() -> None:
    made, s = begun(
        judge__ladder__shape="power", judge__ladder__shape__high="1.0", judge__ladder__failed="-0.7",
    )  # fmt: skip
    group, rows = children(made, variants(programs_of(made.main_role).seed_program))
    made.main_role.judge([group], s)
    value = rows[1].info["evaluation"].value
    assert rows[1].score == pytest.approx(5 * value**3)
    assert rows[4].score == -0.7


def test_a_level_that_there_is_not_is_refused() -> None:
    with pytest.raises(UserError, match="judge.ladder.level must be at most 3, got 4"):
        begun(judge__ladder__level="4")
