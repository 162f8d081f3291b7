"""Guided evolution with a model, over a real endpoint on loopback: what is asked, what becomes of the answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Answering, Scripted, chat_reply

from evolvent.core.errors import UserError
from evolvent.run.assemble import assemble
from evolvent.run.result import Result
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.segments import differing, segments

EVALUATOR = """
import importlib.util


def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("candidate", program_path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {"combined_score": float(module.first() + module.second()), "parameters": float(abs(module.second()))}
"""
PROGRAM = """
# EVOLVE-BLOCK-START
def first():
    return 1.0
# EVOLVE-BLOCK-END


# EVOLVE-BLOCK-START
def second():
    return 2.0
# EVOLVE-BLOCK-END
"""
ONE = {"propose.start": "3", "propose.children": "4", "propose.crossover": "0", "engine.concurrency": "1"}
REASON = "It is larger, and so is the sum."


def better(prompt: str, number: int) -> str:
    """The segment that is shown last, with another number to give back."""
    if "Write no program" in prompt:
        return REASON
    name = re.findall(r"def (\w+)\(", prompt)[-1]
    return f"So:\n```python\ndef {name}():\n    return {3.0 + number}\n```"


@pytest.fixture
def task(tmp_path: Path, sandboxed: str) -> str:
    (tmp_path / "evaluator.py").write_text(EVALUATOR)
    (tmp_path / "first.py").write_text(PROGRAM)
    return f"program:{tmp_path / 'evaluator.py'}:{tmp_path / 'first.py'}"


def run(
    folder: Path, task: str, steps: int = 2, answer: Callable[[str, int], str] = better, **settings: str
) -> tuple[Result, list[dict[str, Any]], list[str]]:
    """A run with the answers of a script; the bodies of its requests, and their prompts."""

    def act(a: Answering) -> None:
        with server.lock:
            number = len(server.bodies) - 1
        a.say(chat_reply(answer(a.body["messages"][0]["content"], number)))

    with Scripted(act) as server:
        named = {name.replace("__", "."): value for name, value in settings.items()}
        spec = RunSpec("guided-evolution", task, f"{server.url}#m", f"{steps} steps", settings={**ONE, **named})
        result = begin(spec, folder, logs=("jsonl",))
    return result, server.bodies, [body["messages"][0]["content"] for body in server.bodies]


def test_the_start_population_rewrites_single_segments_of_the_seed(tmp_path: Path, task: str) -> None:
    result, bodies, prompts = run(tmp_path / "runs", task)
    found = list(result.view.candidates.values())
    assert [list(c["parents"]) for c in found] == [[], [0], [0], [0]]
    for c, body in zip(found[1:], bodies, strict=True):
        (gene,) = c["notes"]["genes"]
        assert differing(PROGRAM, c["payload"]["program"]) == [gene["segment"]]
        assert c["operator"] == gene["operator"]
        assert re.fullmatch(r"(plain|expert|inventor|stumbler)-[a-z-]+", c["operator"])
        assert c["evaluation"]["value"] > 3
        assert body["top_p"] == 0.1
    assert sorted(c["notes"]["genes"][0]["temperature"] for c in found[1:]) == sorted(b["temperature"] for b in bodies)
    assert all(0.05 <= b["temperature"] <= 0.4 for b in bodies)
    assert len({b["temperature"] for b in bodies}) > 1
    assert not any("insight" in p for p in prompts)
    assert all(p.count("```python") == 2 for p in prompts)  # the segment alone, and how to answer
    assert result.view.curve("asked")[-1][1] == 3


def test_an_elite_teaches_in_two_calls(tmp_path: Path, task: str) -> None:
    result, bodies, prompts = run(tmp_path / "runs", task, 3, rollout__write__thought="1", rollout__write__mutation="1")
    assert len(bodies) == 3 + 2 * 4
    asked, taught = prompts[3:7], prompts[7:]
    children = [c for c in result.view.candidates.values() if c["operator"] == "thought"]
    assert len(children) == 4
    for prompt in asked:
        assert "Say in a few sentences" in prompt
        assert REASON not in prompt
    for prompt in taught:
        assert REASON in prompt
        assert "improve another segment" in prompt
    for c in children:
        (gene,) = c["notes"]["genes"]
        elite = result.view.candidates[gene["with"]]["payload"]["program"]
        assert list(c["parents"])[-1] == gene["with"]
        assert gene["lesson"] in differing(PROGRAM, elite)
        assert gene["insight"] == REASON
        old, new = segments(PROGRAM)[gene["lesson"]], segments(elite)[gene["lesson"]]
        assert any(old in p and new in p for p in asked)
        assert any(p.index(old) < p.index(new) for p in taught if old in p and new in p)
    assert result.view.curve("taught")[-1][1] == 1


def test_one_call_asks_both(tmp_path: Path, task: str) -> None:
    one = {"rollout__write__thought": "1", "rollout__write__mutation": "1", "rollout__write__separate": "false"}
    _, bodies, prompts = run(tmp_path / "runs", task, 3, **one)
    assert len(bodies) == 3 + 4
    assert all("First say briefly" in p for p in prompts[3:])


def test_without_thoughts_there_are_no_such_prompts(tmp_path: Path, task: str) -> None:
    result, _, prompts = run(tmp_path / "runs", task, 4, rollout__write__thought="0")
    assert not any("became better" in p for p in prompts)
    assert not any("thought" in c["operator"] for c in result.view.candidates.values())


def test_roles_are_switched_off(tmp_path: Path, task: str) -> None:
    result, _, prompts = run(tmp_path / "runs", task, 3, rollout__write__roles="plain", rollout__write__thought="0")
    assert all(c["operator"].startswith("plain-") for c in list(result.view.candidates.values())[1:])
    assert not any(p.startswith("You are") for p in prompts)
    _, _, prompts = run(tmp_path / "more", task, 3, rollout__write__roles="expert", rollout__write__thought="0")
    assert all(p.startswith("You are one of the leading experts") for p in prompts)


def test_top_p_and_temperatures_of_ones_own(tmp_path: Path, task: str) -> None:
    _, bodies, _ = run(tmp_path / "runs", task, rollout__write__top_p="1", rollout__write__temperatures="0.7,0.7")
    assert {b["temperature"] for b in bodies} == {0.7}
    assert not any("top_p" in b for b in bodies)


def test_crossing_joins_the_same_segment_of_two_parents(tmp_path: Path, task: str) -> None:
    crossing = {"propose__crossover": "1", "rollout__write__mutation": "0"}
    result, _, prompts = run(tmp_path / "runs", task, 4, **crossing)
    found = result.view.candidates
    children = [c for c in found.values() if c["operator"] == "cross"]
    assert children
    for c in children:
        (gene,) = c["notes"]["genes"]
        one, mate = (found[uid]["payload"]["program"] for uid in c["parents"])
        assert c["parents"][1] == gene["with"]
        assert gene["segment"] in differing(one, mate)
        assert differing(one, c["payload"]["program"]) == [gene["segment"]]
        assert any(segments(one)[gene["segment"]] in p and segments(mate)[gene["segment"]] in p for p in prompts)
    result, _, prompts = run(tmp_path / "none", task, 4, propose__crossover="0")
    assert not any("Join what is good" in p for p in prompts)


def test_children_that_nothing_is_done_to_are_not_made(tmp_path: Path, task: str) -> None:
    result, bodies, _ = run(tmp_path / "runs", task, 4, rollout__write__mutation="0")
    assert len(bodies) == 3  # the start population is always mutated
    assert len(result.view.candidates) == 4


def test_what_is_wrong_is_never_a_parent(tmp_path: Path, task: str) -> None:
    def broken(prompt: str, number: int) -> str:
        return ["no idea", "```python\nreturn 5(\n```", better(prompt, 7)][min(number, 2)]

    result, _, _ = run(
        tmp_path / "runs", task, 4, broken, rollout__write__thought="0", rollout__write__temperatures="0.1,0.1"
    )
    found = result.view.candidates
    assert found[1]["evaluation"]["status"] == "unusable"
    assert found[2]["evaluation"]["status"] == "unreadable"
    assert found[3]["evaluation"]["value"] is not None
    assert not {1, 2} & {uid for c in found.values() for uid in c["parents"]}


def test_an_unusable_answer_may_be_asked_for_again(tmp_path: Path, task: str) -> None:
    def second(prompt: str, number: int) -> str:
        return better(prompt, number) if "could not be used" in prompt else "I would rather not."

    result, bodies, _ = run(tmp_path / "runs", task, 2, second, rollout__write__attempts="2")
    assert len(bodies) == 6
    assert all(c["evaluation"]["value"] > 3 for c in list(result.view.candidates.values())[1:])
    assert result.view.curve("unusable")[-1][1] == 0.5


def test_prompts_of_ones_own(tmp_path: Path, task: str) -> None:
    mine = tmp_path / "mine" / "guided" / "tasks"
    mine.mkdir(parents=True)
    (mine / "rounder.md").write_text("Make it rounder.")
    own = {"rollout__write__prompts": str(tmp_path / "mine"), "rollout__write__tasks": "rounder"}
    result, _, prompts = run(tmp_path / "runs", task, **own)
    assert all("Make it rounder." in p for p in prompts)
    assert result.view.candidates[1]["operator"].endswith("-rounder")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"rollout.write.tasks": "nonsense"}, "guided/tasks/nonsense.md cannot be used"),
        ({"rollout.write.roles": "king"}, "guided/roles/king.md cannot be used"),
        ({"rollout.write.temperatures": "0.4,0.1"}, "the lower one first"),
        ({"rollout.write.top_p": "0"}, "rollout.write.top_p must be above 0"),
        ({"rollout.write.attempts": "0"}, "at least 1"),
        ({"rollout.write.thought": "1.5"}, "rollout.write.thought must be at most 1"),
        ({"propose.crossover": "-1"}, "propose.crossover must be at least 0"),
        ({"propose.start": "0"}, "at least 1"),
    ],
)
def test_settings_that_cannot_work(task: str, settings: dict[str, str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        assemble(RunSpec("guided-evolution", task, "simulated", "2 steps", settings=settings))
