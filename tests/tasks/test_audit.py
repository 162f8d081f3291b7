"""The audit finds what is wrong with a verifier, and nothing wrong with those that are right."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.records import Problem
from evolvent.tasks.audit import Report, audit
from evolvent.tasks.base import Demo, Piece, Reply, Score, Split, key_of, one_user, split_of
from evolvent.tasks.extract import final_answer
from evolvent.tasks.probe import turns_of
from evolvent.tasks.registry import BUILT_IN, load_task

EXAMPLES = Path(__file__).parents[2] / "examples" / "tasks"


class Sums:
    """Right in every way; each test breaks one thing."""

    name = "sums"
    categories: tuple[str, ...] = ("all",)
    max_tokens = 8

    def numbers(self, rng: np.random.Generator) -> tuple[int, int]:
        return int(rng.integers(100, 999)), int(rng.integers(100, 999))

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        while True:
            a, b = self.numbers(rng)
            key = key_of("sums", [a, b])
            if split_of(key) == split:
                return Problem(key, one_user(f"{a}+{b}="), {"answer": str(a + b)}, "all", self.name)

    def judge(self, problem: Problem, completion: str) -> float:
        return float(final_answer(completion) == problem.data["answer"])

    def score(self, problem: Problem, completion: str) -> Score:
        return Score(self.judge(problem, completion), final_answer(completion))

    def gold(self, problem: Problem) -> Demo | None:
        return [Piece(problem.data["answer"])]


def severities(report: Report) -> dict[str, str]:
    return {check.name: check.severity for check in report.checks}


def test_nothing_is_wrong_with_a_good_task() -> None:
    report = audit(Sums())
    assert set(severities(report).values()) == {"ok"}
    assert report.failed == []
    assert report.first_failure() == ""
    assert "nothing failed" in report.table()


@pytest.mark.parametrize("name", [*BUILT_IN, "rg/products", "rg/spell_backward:1,2", "arith:2x1+countdown:2x20"])
def test_the_tasks_that_ship_pass(name: str) -> None:
    # the default level of this role takes a tenth of a second a problem
    report = audit(load_task("revise:3x20" if name == "revise" else name), problems=16)
    assert report.failed == []
    assert severities(report)["gold"] == "ok"


def test_the_same_seed_gives_the_same_report() -> None:
    first, second = (audit(load_task("calc")).checks for _ in range(2))
    without_time = [c for c in first if c.name != "long answers"]
    assert without_time == [c for c in second if c.name != "long answers"]


def broken(**members: Callable[..., Any]) -> Any:
    return type("Broken", (Sums,), members)()


def contains(self: Any, problem: Problem, completion: str) -> float:
    return float(problem.data["answer"] in completion)


def first_line(self: Any, problem: Problem, completion: str) -> float:
    return float(completion.split("\n")[0] == problem.data["answer"])


def starts(self: Any, problem: Problem, completion: str) -> float:
    return float(completion.strip().startswith(problem.data["answer"]))


def part_credit(self: Any, problem: Problem, completion: str) -> float:
    gold = problem.data["answer"]
    return 1.0 if completion == gold else len(gold) / len(completion) if gold in completion else 0.05


def any_number(self: Any, problem: Problem, completion: str) -> float:
    return float(completion.strip().isdecimal())


def never(self: Any, problem: Problem, completion: str) -> float:
    return 0.0


def always(self: Any, problem: Problem, completion: str) -> float:
    return 1.0


def not_empty(self: Any, problem: Problem, completion: str) -> float:
    return float(bool(completion.strip()))


def empty_too(self: Any, problem: Problem, completion: str) -> float:
    return float(completion.strip() in ("", problem.data["answer"]))


def in_prompt_too(self: Any, problem: Problem, completion: str) -> float:
    return float(completion in (problem.prompt[0].content, problem.data["answer"]))


def not_a_number(self: Any, problem: Problem, completion: str) -> float:
    return float("nan") if completion == "zzz" else float(completion == problem.data["answer"])


def too_much(self: Any, problem: Problem, completion: str) -> float:
    return 5.0 * (completion == problem.data["answer"])


def fails(self: Any, problem: Problem, completion: str) -> float:
    if not completion.strip().isdecimal():
        raise VerifierError("no number")
    return float(completion == problem.data["answer"])


class Moody:
    """A verifier with a memory."""

    seen = 0

    def __call__(self, problem: Problem, completion: str) -> float:
        self.seen += 1
        return float(completion == problem.data["answer"] and self.seen % 5)


def wrong_gold(self: Any, problem: Problem) -> Demo:
    return [Piece("the answer is " + problem.data["answer"])]


def long_gold(self: Any, problem: Problem) -> Demo:
    return [Piece("because\n" * 5), Piece(problem.data["answer"])]


def shared(self: Any, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
    a, b = int(rng.integers(10)), int(rng.integers(10))
    return Problem(key_of("sums", [a, b]), one_user(f"{a}+{b}="), {"answer": str(a + b)}, "all", self.name)


def small_numbers(self: Any, rng: np.random.Generator) -> tuple[int, int]:
    return int(rng.integers(100, 102)), int(rng.integers(10**6))


def one_prompt(self: Any, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
    made = Sums.draw(self, split, rng, category)
    return Problem(made.key, one_user(made.prompt[0].content[:3] + "?"), made.data, "all", self.name)


def own_chance(self: Any, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
    return Sums.draw(self, split, np.random.default_rng(), category)


def other_category(self: Any, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
    made = Sums.draw(self, split, rng, category)
    return Problem(made.key, made.prompt, made.data, "hard", self.name)


@pytest.mark.parametrize(
    ("task", "names"),
    [
        (broken(judge=contains), {"two answers", "many answers", "long answers"}),
        (broken(judge=first_line), {"two answers"}),
        (broken(judge=starts), {"two answers", "long answers"}),
        (broken(judge=any_number), {"other answers", "one answer"}),
        (broken(judge=never), {"gold", "constant"}),
        (
            broken(judge=always),
            {"garbage", "empty", "echo", "other answers", "one answer", "long answers", "constant"},
        ),
        (broken(judge=not_empty), {"garbage", "echo", "other answers", "one answer", "long answers"}),
        (broken(judge=empty_too), {"empty"}),
        (broken(judge=in_prompt_too), {"echo"}),
        (broken(judge=not_a_number), {"values"}),
        (broken(judge=too_much), {"values"}),
        (broken(judge=fails), {"errors"}),
        (broken(judge=Moody()), {"same twice"}),
        (broken(gold=wrong_gold), {"gold"}),
        (broken(draw=shared), {"splits"}),
        (broken(draw=one_prompt), {"prompts"}),
        (broken(draw=own_chance), {"draws"}),
        (broken(draw=other_category), {"splits"}),
    ],
    ids=lambda x: "-".join(sorted(x)) if isinstance(x, set) else "",
)
def test_each_fault_fails_its_check(task: Any, names: set[str]) -> None:
    report = audit(task)
    failed = {check.name for check in report.failed}
    assert names <= failed
    if not names & {"garbage", "gold", "other answers", "splits", "prompts", "draws", "same twice"}:
        assert failed <= names | {"constant"}
    assert report.first_failure()
    assert all(check.finding and (check.remedy or check.name == "gold") for check in report.failed)


def no_problem(self: Any, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
    raise VerifierError("the generator is down")


def test_a_task_that_cannot_draw_is_the_users_to_mend() -> None:
    with pytest.raises(UserError, match="fails to draw problems: the generator is down"):
        audit(broken(draw=no_problem))


def test_part_credit_in_the_outcome_is_a_warning() -> None:
    report = audit(broken(judge=part_credit))
    found = severities(report)
    assert found["garbage"] == found["empty"] == found["two answers"] == "warn"
    assert not report.failed


def test_a_solution_that_does_not_fit_is_a_warning() -> None:
    report = audit(broken(gold=long_gold))
    assert severities(report)["length"] == "warn"
    assert not report.failed


def test_without_gold_the_report_says_what_was_not_tried() -> None:
    found = severities(audit(broken(gold=lambda self, problem: None)))
    skipped = {name for name, severity in found.items() if severity == "skipped"}
    assert skipped == {"gold", "length", "other answers", "two answers", "many answers", "one answer"}
    assert found["constant"] == "ok"  # the problem's own value earned something
    assert found["garbage"] == "ok"
    never = broken(gold=lambda self, problem: None, judge=lambda self, problem, completion: 0.0)
    assert severities(audit(never))["constant"] == "warn"  # nothing that was tried earned anything


class Doors(Sums):
    """Two turns: the first opens the door, the second has to be the answer; the note carries what happened."""

    max_turns = 2

    class Room:
        def __init__(self, answer: str) -> None:
            self.answer, self.turns = answer, 0

        def respond(self, turn: str) -> Reply:
            self.turns += 1
            if turn == "raise":
                raise VerifierError("stuck")
            return Reply("open", done=self.turns == 2, note={"said": turn})

    def episode(self, problem: Problem) -> Any:
        return self.Room(problem.data["answer"])

    def gold(self, problem: Problem) -> Demo | None:
        return [Piece("kn"), Piece("ock"), Piece("open", policy=False), Piece(problem.data["answer"])]


def test_solutions_of_several_turns_are_played() -> None:
    task = Doors()
    problem = task.draw("train", np.random.default_rng(0))
    assert turns_of(task.gold(problem) or []) == ["knock", problem.data["answer"]]
    report = audit(task)
    found = severities(report)
    assert found["gold"] == "ok"
    assert found["two answers"] == "skipped"
    assert not report.failed


def test_the_report_as_data_and_as_text() -> None:
    report = audit(broken(judge=contains))
    data = json.loads(json.dumps(report.as_dict()))
    assert data["failed"] is True
    assert {"name", "severity", "finding", "example", "remedy"} == set(data["checks"][0])
    text = report.table()
    assert "fail     two answers" in text
    assert "-> take one final answer" in text
    assert max(map(len, text.splitlines())) < 240


def slow(self: Any, problem: Problem, completion: str) -> float:
    time.sleep(0.021)
    return Sums().judge(problem, completion)


@pytest.mark.slow
def test_a_slow_verifier_is_tried_on_fewer_problems() -> None:
    report = audit(broken(judge=slow))
    assert report.problems == 4
    assert not report.failed


@pytest.mark.parametrize(
    "spec",
    [
        "{0}/reverse.py",
        "{0}/guess.py",
        "{0}/sorted.jsonl",
        "{0}/sorted.jsonl:{0}/sorted_reward.py",
        "gym:{0}/corridor.py:Corridor",
    ],
)
def test_the_examples_pass(spec: str) -> None:
    report = audit(load_task(spec.format(EXAMPLES)), problems=16)
    assert report.failed == []
    assert severities(report)["gold"] == "ok"


def test_without_gold_the_values_of_a_problem_are_tried(tmp_path: Path) -> None:
    """A verifier that fails, or gives too much, on the right answer alone."""
    rows = "def problems():\n    return [{'prompt': f'{i}+1=', 'answer': str(i + 1)} for i in range(40)]\n"
    reward = "def reward(completion, answer):\n    return 2.5 if completion.strip() == answer else 0\n"
    (tmp_path / "big.py").write_text(rows + reward)
    report = audit(load_task(str(tmp_path / "big.py")), problems=8)
    assert "returned 2.5, which is not between 0 and 1" in report.first_failure()
    (tmp_path / "right.py").write_text(rows + reward.replace("2.5", "1.0"))
    assert not audit(load_task(str(tmp_path / "right.py")), problems=8).failed


ROWS = """
def problems():
    return [{"prompt": f"{i} ", "answer": str(i)} for i in range(60)]

def reward(completion, answer):
    return float(completion.strip() == str(int(answer)))

"""


@pytest.mark.parametrize(
    ("code", "severity", "found"),
    [
        ("def rewrite(answer, seed): return {'prompt': f'x{seed} ', 'answer': str(seed)}", "ok", "16 of 16"),
        ("def rewrite(answer): return 1 / 0", "fail", "16 of 16 rewrites fail"),
        ("def rewrite(answer): return {'prompt': 'x' + answer}", "fail", "16 of 16 rewrites fail"),
        ("def rewrite(answer): return {'prompt': 'x' + answer, 'answer': 'none'}", "fail", "16 of 16 rewrites fail"),
        (
            "def rewrite(answer, deeper): return {'prompt': 'x' + answer, 'answer': answer if deeper else ''}",
            "warn",
            "8 of 16 rewrites fail",
        ),
        ("def rewrite(answer): return None", "warn", "none of 16 rewrites gives a new problem"),
    ],
)
def test_rewritten_problems_have_to_be_problems(code: str, severity: str, found: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ROWS + code + "\n")
    task = load_task(str(tmp_path / "mine.py"))
    (check,) = [c for c in audit(task).checks if c.name == "rewrite"]
    assert (check.severity, found in check.finding) == (severity, True), check
    task.close()


HANGS = """
import time

TIMEOUT = 0.2


def problems():
    for i in range(40):
        yield {"prompt": f"{i}+1=", "answer": str(i + 1)}


def reward(completion, answer):
    if len(completion) > 3:
        time.sleep(100)
    return float(completion.strip() == answer)
"""


def test_a_verifier_that_hangs_on_some_answers_is_not_waited_for_long(tmp_path: Path) -> None:
    """Each time-out costs its seconds twice: after two of them nothing more is asked, and the report says why."""
    (tmp_path / "hangs.py").write_text(HANGS)
    task = load_task(str(tmp_path / "hangs.py"))
    begun = time.perf_counter()
    report = audit(task)
    assert time.perf_counter() - begun < 15  # of 75 answers that hang
    assert [c.name for c in report.failed] == ["errors"]  # right answers do not hang, and are not said to
    assert "2 of" in report.failed[0].finding
    assert "more were not asked for" in report.failed[0].finding
    assert "TIMEOUT" in report.failed[0].example
    assert task.most_late > 2  # a run waits for more
    task.close()
