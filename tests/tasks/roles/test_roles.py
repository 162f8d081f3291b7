"""Every role: gold scores 1, attacks score 0, splits hold for the problem and for what it was made from."""

from __future__ import annotations

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.core.random import stream
from evolvent.tasks.base import key_of, split_of
from evolvent.tasks.countdown import solves
from evolvent.tasks.roles import ROLES, Hint, Judge, Memory, Propose, Revise, Role, missing, shuffled

TASKS = [
    Judge(("3x20", "4x12")),
    Propose(("countdown:3x20", "arith:2x2")),
    Revise(("3x20", "4x12")),
    Hint(("3x20", "4x12")),
    Memory(("recall-2", "recall-4", "sum-3", "case-2-3x20")),
]
PLAIN = [ROLES[t.family](t.categories, wording="plain") for t in TASKS]


def written(task, problem):
    return "".join(piece.text for piece in task.gold(problem))


@pytest.mark.parametrize("task", TASKS + PLAIN, ids=lambda t: f"{t.family}-{t.wording}")
def test_gold_is_right_and_fits(task):
    rng = stream(0, task.name)
    for category in task.categories:
        for _ in range(25):
            problem = task.draw("train", rng, category)
            text = written(task, problem)
            assert task.score(problem, text).outcome == 1
            assert len(text) <= task.max_tokens
            assert problem.category == category
            assert problem.task == task.name


@pytest.mark.parametrize("task", TASKS, ids=lambda t: t.family)
@pytest.mark.parametrize("attack", ["", " ", "y;n", "n;y;", "zzz", "1", "0", "47 or 12", "22", "y n", "=", ">", ","])
def test_attacks_earn_nothing(task, attack):
    rng = stream(1, task.name, attack)
    for _ in range(25):
        problem = task.draw("train", rng)
        if isinstance(task, Judge) and attack == "y;n":
            continue  # its last word is n: a clear verdict
        assert task.score(problem, attack).outcome == 0


@pytest.mark.parametrize("task", TASKS, ids=lambda t: t.family)
def test_gold_with_anything_behind_it_is_wrong(task):
    rng = stream(2, task.name)
    for _ in range(25):
        problem = task.draw("train", rng)
        assert task.score(problem, written(task, problem) + "7x").outcome == 0


@pytest.mark.parametrize("task", TASKS, ids=lambda t: t.family)
@pytest.mark.parametrize("split", ["train", "gate", "test"])
def test_problems_and_what_they_are_made_of_lie_in_the_split(task, split):
    rng = stream(3, task.name, split)
    for _ in range(20):
        problem = task.draw(split, rng)
        assert split_of(problem.key) == split
        if "target" in problem.data:
            inner = key_of("countdown", [sorted(problem.data["numbers"]), problem.data["target"]])
            assert split_of(inner) == split


@pytest.mark.parametrize("task", [t for t in TASKS if isinstance(t, Role)], ids=lambda t: t.family)
def test_exchanging_a_part_changes_the_prompt_only(task):
    rng = stream(4, task.name)
    problems = [task.draw("gate", rng, task.categories[-1]) for _ in range(12)]
    for part in task.parts:
        for changed in (shuffled(task, problems, part, rng), missing(task, problems, part)):
            assert [c.key for c in changed] == [p.key for p in problems]
            assert [c.data for c in changed] == [p.data for p in problems]
            assert sum(c.prompt != p.prompt for c, p in zip(changed, problems, strict=True)) >= 10


def test_shuffling_gives_everyone_the_part_of_another():
    task, rng = Hint(("4x12",)), stream(5)
    problems = [task.draw("gate", rng) for _ in range(9)]
    changed = shuffled(task, problems, "hint", np.random.default_rng(0))
    shown = [c.prompt[0].content.split("_")[1].rstrip(":") for c in changed]
    own = [p.data["hint"] for p in problems]
    assert sorted(shown) == sorted(own)


def test_judge_classes_are_balanced_and_truth_is_the_verifiers():
    task, rng = Judge(("3x20",)), stream(6)
    problems = [task.draw("train", rng) for _ in range(600)]
    for p in problems:
        assert p.data["right"] is solves(p.data["candidate"], p.data["numbers"], p.data["target"])
        assert (p.data["kind"] == "right") == p.data["right"]
    assert 0.42 < np.mean([p.data["right"] for p in problems]) < 0.58
    assert {p.data["kind"] for p in problems} == {"right", "near", "operator", "exchanged", "twice"}


def test_judge_negatives_are_near_misses():
    from evolvent.tasks.countdown import evaluate

    task, rng = Judge(("3x20",)), stream(7)
    for _ in range(300):
        data = task.draw("train", rng).data
        value, used = evaluate(data["candidate"])
        if data["kind"] == "near":
            assert 0 < abs(value - data["target"]) <= 10
            assert sorted(used) == sorted(data["numbers"])
        if data["kind"] == "twice":
            assert value == data["target"]
            assert set(used) <= set(data["numbers"])
            assert sorted(used) != sorted(data["numbers"])
        if data["kind"] == "exchanged":
            assert value == data["target"]
            assert sorted(used) != sorted(data["numbers"])


def test_judge_reads_the_verdict_only():
    task = Judge()
    problem = task.problem([3, 5, 7], 22, "3*5+7")
    assert written(task, problem) == "3*5=15;15+7=22;>22;3,5,7;y"
    assert written(task, task.problem([3, 5, 5], 22, "3*4+5+5+6")).endswith(";>22;3,5,5;n")
    assert written(task, task.problem([3, 5, 5], 22, "3*6+4-5")).endswith(";>22;3,5,?;n")
    assert task.score(problem, "y").outcome == 1
    assert task.score(problem, "n").outcome == 0
    assert task.verdict("3*5=15") is None
    assert task.gold(problem)[-1].weight == 5
    assert task.problem([3, 5, 7], 22, "rubbish)").data["right"] is False


def test_propose_parses_only_solvable_problems_of_the_level():
    task = Propose()
    good = task.parse("countdown:3x20", "3*5=15;15+7=22;7,3,5>22")
    assert good.data == {"numbers": [7, 3, 5], "target": 22}
    assert good.key == key_of("countdown", [[3, 5, 7], 22])
    for bad in (
        "7,3,5>99",
        "7,3>10",
        "7,3,25>22",
        "7,03,5>22",
        "7,3,5>022",
        "7,3,5>22;",
        "7,3,5>22 7,3,5>22",
        "0,3,5>8",
    ):
        assert task.parse("countdown:3x20", bad) is None, bad
    assert task.parse("arith:2x2", "12+34-56").data["answer"] == -10
    for bad in ("12+34", "12+34-567", "12+3-56", "12+34*56", "12+34-56=", "01+34-56"):
        assert task.parse("arith:2x2", bad) is None, bad


def test_the_same_proposal_in_another_order_has_the_same_key():
    task = Propose()
    keys = {task.parse("countdown:3x20", text).key for text in ("7,3,5>22", "3,5,7>22", "5,7,3>22")}
    assert len(keys) == 1


def test_gold_proposals_never_leave_the_train_split():
    task = Propose(("countdown:3x20", "arith:2x2"))
    rng = stream(8)
    for split in ("train", "gate"):
        for _ in range(40):
            problem = task.draw(split, rng)
            assert split_of(task.parse(problem.data["level"], written(task, problem)).key) == "train"


def test_revise_accepts_any_solution_and_never_the_draft():
    task, rng = Revise(("4x12",)), stream(9)
    for _ in range(100):
        problem = task.draw("train", rng)
        assert task.score(problem, problem.data["draft"]).outcome == 0
    problem = task.problem([3, 5, 7], 22, "3*5-7", "5+")
    assert written(task, problem) == "3*5+7"
    assert task.score(problem, "7+5*3").outcome == 1


def test_revise_has_no_gold_for_a_critique_that_does_not_help():
    task = Revise()
    assert task.gold(task.problem([3, 5, 7], 22, "3*5-7", "7+")) is None
    assert task.gold(task.problem([3, 5, 7], 22, "3*5-7", "")) is None


def test_hint_is_the_beginning_of_the_solution():
    from evolvent.tasks.roles.hint import prefix

    assert prefix("(3+8-7)*7", 0.5) == "(3+8"
    assert prefix("3*5+7", 0) == ""
    assert prefix("3*5+7", 1) == "3*5+"
    task, rng = Hint(("4x12",)), stream(10)
    for _ in range(50):
        problem = task.draw("train", rng)
        assert written(task, problem).startswith(problem.data["hint"])


def test_memory_formats_are_those_that_can_be_learned():
    task, rng = Memory(("recall-3", "sum-3", "case-2-3x20")), stream(11)
    recall = task.draw("train", rng, "recall-3")
    notes, question = (m.content for m in recall.prompt)
    key = question[1]
    assert f"{key}{written(task, recall)};" in notes
    assert question == f"?{key}"
    case = task.draw("train", rng, "case-2-3x20")
    notes, question = (m.content for m in case.prompt)
    assert question + written(task, case) in notes.split(";")


@pytest.mark.parametrize(
    ("kind", "level"),
    [(Judge, "9x9"), (Revise, "3"), (Hint, "x"), (Memory, "recall"), (Memory, "case-2"), (Memory, "sum-2-3x20"),
     (Propose, "countdown:9x9"), (Propose, "chess:1")],
)  # fmt: skip
def test_unknown_levels_are_named(kind, level):
    with pytest.raises(UserError, match="has no level"):
        kind((level,))
