"""Environments in the shape of verifiers 0.x, written by hand: the package itself is not needed."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.random import stream
from evolvent.tasks.adapters.verifiers_v0 import VerifiersTask, load
from evolvent.tasks.base import SPLITS, Attempt, Score
from evolvent.tasks.registry import load_task


def data(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Rows as `get_dataset()` of the package gives them."""
    return [
        {
            "question": f"{i}+{i}?",
            "answer": str(2 * i),
            "info": json.dumps({"i": i}),
            "example_id": i,
            "task": "default",
        }
        for i in range(start, start + count)
    ]


class Rubric:
    def __init__(self, funcs: list[Any], weights: list[float] | None = None) -> None:
        self.funcs, self.weights = funcs, weights or [1.0] * len(funcs)
        self.parser = SimpleNamespace(parse_answer=lambda completion: completion[-1]["content"].strip())
        self.class_objects = {"parser": self.parser}


class Environment:
    def __init__(self, rubric: Any, rows: list[dict[str, Any]] | None = None, **members: Any) -> None:
        self.rubric, self.rows = rubric, rows or data(40)
        self.__dict__.update(members)

    def get_dataset(self, n: int = -1, seed: int | None = None) -> list[dict[str, Any]]:
        return self.rows


def exact(completion: Any, answer: str) -> float:
    return float(completion[-1].content == answer)


async def brief(completion: Any, parser: Any) -> float:
    await asyncio.sleep(0)
    return float(len(parser.parse_answer(completion)) < 4)


def longest(completions: Any, answers: list[str]) -> list[float]:
    sizes = [len(c[-1]["content"]) for c in completions]
    return [float(size == max(sizes)) for size in sizes]


def scores(task: VerifiersTask, texts: list[str], place: int = 0) -> list[Score | VerifierError]:
    problem = task.listed("train")[place]
    return task.score_many([Attempt(problem, text.format(problem.data["answer"])) for text in texts])


def test_functions_are_called_by_name_and_weighed() -> None:
    task = VerifiersTask("v", Environment(Rubric([exact, brief], [1.0, 0.5]), system_prompt="Add."))
    assert sum(len(task.listed(s)) for s in SPLITS) == 40
    problem = task.listed("train")[0]
    assert [m.role for m in problem.prompt] == ["system", "user"]
    found = scores(task, ["{}", "zz", "zzzzz"])
    assert [s.outcome for s in found if isinstance(s, Score)] == pytest.approx([1.0, 0.5 / 1.5, 0.0])
    assert [s.shaping for s in found if isinstance(s, Score)][1] == {"exact": 0.0, "brief": 1.0}
    assert task.gold(problem) is not None


def test_a_function_of_the_whole_group_sees_the_attempts_at_one_problem_only() -> None:
    task = VerifiersTask("v", Environment(Rubric([exact, longest])))
    one, two = task.listed("train")[:2]
    texts = [(one, "a"), (two, "aaaaaa"), (one, "aaa"), (two, "a")]
    found = task.score_many([Attempt(p, text) for p, text in texts])
    assert [s.shaping["longest"] for s in found if isinstance(s, Score)] == [0.0, 1.0, 1.0, 0.0]


def test_state_info_and_all_columns() -> None:
    seen: list[dict[str, Any]] = []

    def look(prompt: Any, completion: Any, answer: str, info: Any, state: Any, task: str, **rest: Any) -> float:
        seen.append({"prompt": prompt, "info": info, "state": state, "task": task, "rest": rest})
        return 1.0

    task = VerifiersTask("v", Environment(Rubric([look])))
    seen.clear()
    scores(task, ["x"])
    (got,) = seen
    assert got["info"] == {"i": int(task.listed("train")[0].data["answer"]) // 2}
    assert got["task"] == "default"
    assert got["rest"]["question"] == got["prompt"][0]["content"]
    assert got["state"]["completion"] == [{"role": "assistant", "content": "x"}]


def test_several_rubrics_metrics_and_penalties() -> None:
    def penalty(completion: Any) -> float:
        return 1.0

    def length(completion: Any) -> float:
        return 99.0

    group = SimpleNamespace(rubrics=[Rubric([exact]), Rubric([penalty, length], [-0.5, 0.0])], funcs=[], weights=[])
    task = VerifiersTask("v", Environment(group))
    right, wrong = scores(task, ["{}", "no"])
    assert isinstance(right, Score)
    assert isinstance(wrong, Score)
    assert (right.outcome, wrong.outcome) == (0.5, 0.0)
    assert right.shaping == {"exact": 1.0, "penalty": 1.0, "length": 99.0}


def test_what_raises_is_an_error_and_not_a_zero() -> None:
    def shaky(completion: Any) -> Any:
        text = completion[0]["content"]
        return (
            {"inf": float("inf"), "none": None, "high": 3.0}[text] if text in ("inf", "none", "high") else 1 / len(text)
        )

    found = scores(VerifiersTask("v", Environment(Rubric([shaky]))), ["a", "", "inf", "none", "high"])
    assert isinstance(found[0], Score)
    said = [str(x) for x in found[1:]]
    assert all(isinstance(x, VerifierError) for x in found[1:])
    assert "shaky() raised: ZeroDivisionError" in said[0]
    assert "no finite number" in said[1]
    assert "TypeError" in said[2]
    assert "add up to 3" in said[3]

    def miscounting(completions: Any) -> list[float]:
        return [1.0] * (len(completions) + 1)

    (error,) = scores(VerifiersTask("v", Environment(Rubric([miscounting]))), ["a"])
    assert "gave 2 rewards for a group of 1" in str(error)


def test_an_evaluation_set_becomes_the_test_split_and_repeats_are_left_out() -> None:
    evaluation = data(8, start=35)  # five of them are in the training set
    env = Environment(
        Rubric([exact]), [*data(40), *data(3)], eval_dataset=evaluation, get_eval_dataset=lambda: evaluation
    )
    task = VerifiersTask("v", env)
    questions = {s: {p.data["question"] for p in task.listed(s)} for s in SPLITS}
    assert questions["test"] == {f"{i}+{i}?" for i in range(35, 43)}
    assert len(questions["train"]) + len(questions["gate"]) == 35
    assert not questions["train"] & questions["test"]


class Guess(Environment):
    """Several turns in the way of release 0.1: `is_completed(messages, state)`, and `env_response` gives both."""

    max_turns = 4

    def setup_state(self, state: dict[str, Any]) -> dict[str, Any]:
        state["secret"] = int(state["answer"])
        return state

    def is_completed(self, messages: Any, state: Any) -> bool:
        return bool(state.get("found")) or len(state["trajectory"]) >= self.max_turns

    def env_response(self, messages: Any, state: Any) -> Any:
        said = messages[-1]["content"]
        if said == "fail":
            raise RuntimeError("server gone")
        if said == str(state["secret"]):
            return [{"role": "user", "content": "right"}], {"found": True}
        return [{"role": "user", "content": "no"}], {}


class LaterGuess(Guess):
    """In the way of release 0.3: async, stop conditions, a final response in the state."""

    async def env_response(self, messages: Any, state: Any) -> Any:
        if messages[-1].content == str(state["secret"]):
            state["found"] = True
            state["final_env_response"] = [SimpleNamespace(role="user", content="right")]
            return []
        return [SimpleNamespace(role="user", content="no")]

    async def is_completed(self, state: Any) -> bool:  # type: ignore[override]
        if len(state["trajectory"]) >= self.max_turns:
            state["stop_condition"] = "max_turns_reached"
            return True
        return False


def found_it(state: dict[str, Any]) -> float:
    return float(bool(state.get("found")))


def turns_taken(completion: Any) -> float:
    return float(sum(m["role"] == "assistant" for m in completion))


@pytest.mark.parametrize("kind", [Guess, LaterGuess])
def test_several_turns(kind: Any) -> None:
    task = VerifiersTask("v", kind(Rubric([found_it, turns_taken], [1.0, 0.0])))
    assert task.max_turns == 4
    problem = task.listed("train")[0]
    episode = task.episode(problem)
    first, last = episode.respond("-1"), episode.respond(problem.data["answer"])
    assert (first.text, first.done) == ("no", False)
    assert last.done
    assert not last.truncated
    attempts = [Attempt(problem, problem.data["answer"], last.note), Attempt(problem, "cut")]
    good, cut = task.score_many(attempts)
    assert isinstance(good, Score)
    assert isinstance(cut, Score)
    assert (good.outcome, good.shaping["turns_taken"], good.answer) == (1.0, 2.0, problem.data["answer"])
    assert (cut.outcome, cut.shaping["turns_taken"]) == (0.0, 1.0)
    assert task.score_many(attempts[:1]) == [good]  # judged again, nothing is counted twice


def test_the_limit_of_turns_cuts_the_episode() -> None:
    task = VerifiersTask("v", LaterGuess(Rubric([found_it])))
    problem = task.listed("train")[0]
    episode = task.episode(problem)
    replies = [episode.respond("-1") for _ in range(4)]
    assert [r.done for r in replies] == [False, False, False, True]
    assert replies[-1].truncated
    (score,) = task.score_many([Attempt(problem, "-1", replies[-1].note)])
    assert isinstance(score, Score)
    assert score.outcome == 0


def test_a_turn_that_was_cut_is_seen_by_the_rubric() -> None:
    task = VerifiersTask("v", Guess(Rubric([found_it, turns_taken], [1.0, 0.0])))
    problem = task.listed("train")[0]
    reply = task.episode(problem).respond("-1")
    (score,) = task.score_many([Attempt(problem, "half a tu", reply.note)])
    assert isinstance(score, Score)
    assert score.shaping["turns_taken"] == 2


def test_an_environment_that_fails_is_an_error() -> None:
    task = VerifiersTask("v", Guess(Rubric([found_it])))
    with pytest.raises(VerifierError, match="failed in turn 1: RuntimeError: server gone"):
        task.episode(task.listed("train")[0]).respond("fail")


def test_the_state_of_an_episode_is_kept_for_a_while_and_then_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evolvent.tasks.adapters.verifiers_v0.KEPT", 2)
    task = VerifiersTask("v", Guess(Rubric([found_it])))
    problem = task.listed("train")[0]
    notes = [task.episode(problem).respond("1").note for _ in range(3)]
    found = task.score_many([Attempt(problem, "1", note) for note in notes if note is not None])
    assert [isinstance(x, VerifierError) for x in found] == [True, False, False]


def test_it_works_where_an_event_loop_runs_already() -> None:
    async def inside() -> list[Score | VerifierError]:
        return scores(VerifiersTask("v", Environment(Rubric([exact, brief]))), ["{}"])

    (score,) = asyncio.run(inside())
    assert isinstance(score, Score)
    assert score.outcome == 1


MODULE = """
import signal
class Rubric:
    funcs, weights = [lambda completion, answer: float(completion[-1]["content"] == answer)], [1.0]
class Env:
    rubric = Rubric()
    def get_dataset(self): return [{"question": str(i), "answer": "x"} for i in range(20)]
def load_environment():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return Env()
"""


def test_from_a_file_and_ctrl_c_stays_ours(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    (tmp_path / "env.py").write_text(MODULE)
    task = load_task(f"verifiers:{tmp_path}/env.py")
    assert signal.getsignal(signal.SIGINT) is before
    assert task.score(task.draw("train", stream(0)), "x").outcome == 1


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (Environment(Rubric([exact]), envs=[1]), "is a group of environments"),
        (Environment(Rubric([exact]), tools=[print]), "calls tools"),
        (Environment(Rubric([])), "no reward function"),
        (Environment(Rubric([exact], [0.0])), "weight above 0"),
        (Environment(Rubric([exact]), data(4)), "too few"),
        (SimpleNamespace(rubric=Rubric([exact])), "its data set cannot be read .AttributeError"),
    ],
)
def test_what_is_refused(env: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        VerifiersTask("v", env)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no file"),
        ("x = 1\n", "has no `load_environment`"),
        ("def load_environment(): raise ValueError('no key')\n", r"load_environment\(\) failed .ValueError: no key"),
        ("import no_such_package\n", "needs the module `no_such_package`"),
        ("1 / 0\n", "does not import .ZeroDivisionError"),
    ],
)
def test_modules_that_do_not_load(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "env.py").write_text(text)
    with pytest.raises(UserError, match=said):
        load(f"{tmp_path}/env.py")
