"""Self-modification by a model, over a real endpoint on loopback whose answers follow a script."""

from __future__ import annotations

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

ISSUE = "Only the first operator of a comparison is tried; try all of them."
DIFF = """Done.
<<<<<<< SEARCH
CAP = 60
=======
CAP = 61
>>>>>>> REPLACE"""


def run(folder: Path, answer: Callable[[int], str], **settings: str) -> tuple[Result, Scripted]:
    """The seed program, then one child, with answers by their number."""

    def act(a: Answering) -> None:
        with server.lock:
            number = len(server.bodies) - 1
        a.say(chat_reply(answer(number)))

    with Scripted(act) as server:
        named = {name.replace("__", "."): value for name, value in settings.items()}
        fixed = {"propose.children": "1", "engine.concurrency": "1"}
        spec = RunSpec("dgm", "program:repair:10", f"{server.url}#m", "2 steps", settings={**fixed, **named})
        return begin(spec, folder, logs=("jsonl",)), server


def prompts(server: Scripted) -> list[str]:
    return [body["messages"][0]["content"] for body in server.bodies]


@pytest.mark.slow
def test_a_diagnosis_becomes_an_issue_and_the_issue_a_change(sandboxed: str, tmp_path: Path) -> None:
    only = {f"rollout__write__diagnose__{name}": "0" for name in ("empty", "stochastic", "exhausted")}
    result, server = run(tmp_path, [ISSUE, "no idea", DIFF].__getitem__, **only)
    first, second, third = prompts(server)
    assert "It does not solve this instance" in first
    assert "Tests that it saw: [{" in first
    assert "exhausted: " in first
    assert "Make one change, and keep the rest as it is." in first  # the agent's own guide
    assert "CAP = 60" in first
    assert ISSUE in second
    assert "could not be used" not in second
    assert "could not be used: the answer holds no diff" in third
    made = result.view.candidates[1]
    assert made["operator"] == "model: unresolved"
    assert "CAP = 61" in made["payload"]["program"]
    assert made["evaluation"]["value"] is not None
    assert result.ledger.of("model_calls") == 3
    assert result.view.curve("asked")[-1][1] == 2
    assert result.view.curve("unusable")[-1][1] == 0.5


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("empty", "it hands in nothing that differs"),
        ("stochastic", "depends on chance"),
        ("unresolved", "not solve this"),
    ],
)
@pytest.mark.slow
def test_each_diagnosis_has_its_words(sandboxed: str, tmp_path: Path, entry: str, told: str) -> None:
    shares: dict[str, Any] = {
        f"rollout__write__diagnose__{n}": str(float(n == entry)) for n in ("empty", "stochastic", "exhausted")
    }
    result, server = run(tmp_path, [ISSUE, DIFF].__getitem__, **shares)
    assert told in prompts(server)[0]
    assert prompts(server)[0].count("What it was given:") == (1 if entry == "unresolved" else 3)
    assert result.view.curve(f"entry/{entry}")[-1][1] == 1


@pytest.mark.slow
def test_answers_that_are_never_of_use(sandboxed: str, tmp_path: Path) -> None:
    result, server = run(tmp_path, lambda number: "I would rather not.", rollout__write__attempts="2")
    made = result.view.candidates[1]
    assert made["evaluation"]["status"] == "unusable"
    assert len(server.bodies) == 3
    assert result.view.errors == {}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"rollout.write.prompts": "/no/such/folder"}, "there is no folder"),
        ({"rollout.write.attempts": "0"}, "rollout.write.attempts must be at least 1"),
    ],
)
def test_settings_that_cannot_work(settings: dict[str, str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        assemble(RunSpec("dgm", "program:repair:10", "simulated", "2 steps", settings=settings))
