"""A model that writes programs, over a real endpoint on loopback whose answers follow a script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.loopback import Answering, Scripted, chat_reply

from evolvent.core.errors import UserError
from evolvent.core.loop import TooManyErrors
from evolvent.run.assemble import assemble
from evolvent.run.result import Result
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec

DIFF = "<<<<<<< SEARCH\n    x = 1.0\n=======\n    x = 2.5\n>>>>>>> REPLACE"
WHOLE = """Better:
```python
def unchanged():
    return 2.0


# EVOLVE-BLOCK-START
def point():
    return 3.0, -1.0
# EVOLVE-BLOCK-END
```"""


def run(folder: Path, task: str, answer: Callable[[int], str], **settings: str) -> tuple[Result, Scripted]:
    """Two steps (the seed program, then children) with answers by their number."""

    def act(a: Answering) -> None:
        with server.lock:
            number = len(server.bodies) - 1
        a.say(chat_reply(answer(number)))

    with Scripted(act) as server:
        named = {name.replace("__", "."): value for name, value in settings.items()}
        fixed = {"rollout": "evolvent.search.write:Write", "propose.children": "1", "engine.concurrency": "1"}
        spec = RunSpec("hill-climbing", task, f"{server.url}#m", "2 steps", settings={**fixed, **named})
        return begin(spec, folder, logs=("jsonl",)), server


@pytest.mark.parametrize("rule", ["anything", "unseen", "dissimilar"])
def test_what_is_no_program_is_told_by_its_evaluation(tmp_path: Path, task: str, rule: str) -> None:
    broken = DIFF.replace("2.5", "(2.5")
    result, _ = run(tmp_path / "runs", task, lambda _: broken, rollout__novel=f"evolvent.search.novelty:{rule}")
    found = result.view.candidates[1]["evaluation"]
    assert (found["value"], found["status"]) == (None, "unreadable")


@pytest.mark.parametrize(("kind", "answer", "value"), [("diff", DIFF, -4.25), ("rewrite", WHOLE, 0.0)])
def test_an_answer_becomes_a_candidate(tmp_path: Path, task: str, kind: str, answer: str, value: float) -> None:
    only = {f"rollout__kinds__{k}": str(float(k == kind)) for k in ("diff", "rewrite", "cross")}
    result, server = run(tmp_path / "runs", task, lambda number: answer, **only)
    found = result.view.candidates[1]
    assert found["evaluation"]["value"] == pytest.approx(value)
    assert found["operator"] == kind
    assert found["parents"] == [0]
    assert len(server.bodies) == 1
    system, user = server.bodies[0]["messages"]
    assert "x = 1.0" in system["content"]
    assert "(value -8.0, x 1.0)" in " ".join(system["content"].split()).replace("combined_score -8.0, ", "")
    assert "def evaluate" in user["content"]
    assert result.ledger.of("model_calls") == 1


def test_what_cannot_be_used_is_asked_for_again_with_what_was_wrong(tmp_path: Path, task: str) -> None:
    answers = ["no idea", DIFF.replace("x = 1.0", "x = 9.0"), DIFF]
    only = {"rollout__kinds__diff": "1", "rollout__kinds__rewrite": "0", "rollout__kinds__cross": "0"}
    result, server = run(tmp_path / "runs", task, lambda number: answers[number], **only)
    prompts = [body["messages"][0]["content"] for body in server.bodies]
    assert "could not be used" not in prompts[0]
    assert "could not be used: the answer holds no diff" in prompts[1]
    assert "matches nowhere" in prompts[2]
    assert result.view.candidates[1]["evaluation"]["value"] == pytest.approx(-4.25)
    assert result.view.curve("asked")[-1][1] == 3
    assert result.view.curve("unusable")[-1][1] == pytest.approx(2 / 3)


def test_an_answer_that_is_never_of_use_is_kept_and_is_no_parent(tmp_path: Path, task: str) -> None:
    result, server = run(tmp_path / "runs", task, lambda number: "I would rather not.")
    found = result.view.candidates[1]
    assert found["evaluation"]["value"] is None
    assert found["evaluation"]["status"] == "unusable"
    assert len(server.bodies) == 3
    assert result.view.errors == {}


def test_a_model_that_never_writes_programs_ends_a_search_by_evaluations(
    tmp_path: Path, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evolvent.search.archive.PATIENCE", 5)
    with Scripted(lambda a: a.say(chat_reply("I would rather not."))) as server:
        settings = {"propose.children": "2", "rollout.write.attempts": "1"}
        spec = RunSpec("random-search", task, f"{server.url}#m", "9 evaluations", settings=settings)
        with pytest.raises(TooManyErrors, match=r"none of the last 6 candidates .*holds no.*; take another model"):
            begin(spec, tmp_path / "runs", logs=("jsonl",))
        assert len(server.bodies) == 6


def test_requests_that_cost_money_are_not_asked_for_as_long(
    tmp_path: Path, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three answers to each candidate: the search ends with the 4th of them, though a rule might go on for 200."""
    monkeypatch.setattr("evolvent.search.archive.PAID", (3, 11))
    with Scripted(lambda a: a.say(chat_reply("I would rather not.\n" * 200))) as server:
        spec = RunSpec("random-search", task, f"{server.url}#m", "9 evaluations", settings={"propose.children": "1"})
        with pytest.raises(TooManyErrors, match=r"the last 4 candidates in 12 requests could be evaluated") as caught:
            begin(spec, tmp_path / "runs", logs=("jsonl",))
        assert len(server.bodies) == 12
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700


def test_a_change_outside_the_marks_is_not_taken(tmp_path: Path, task: str) -> None:
    only = {"rollout__kinds__diff": "0", "rollout__kinds__rewrite": "1", "rollout__kinds__cross": "0"}
    result, server = run(tmp_path / "runs", task, lambda number: WHOLE.replace("return 2.0", "return 5.0"), **only)
    assert result.view.candidates[1]["evaluation"]["status"] == "unusable"
    assert "only what is between EVOLVE-BLOCK-START" in server.bodies[1]["messages"][0]["content"]


def test_prompts_of_ones_own(tmp_path: Path, task: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diff.md").write_text("Mend this, value {{ parent.value }}.\n{{ error }}")
    only = {"rollout__kinds__diff": "1", "rollout__kinds__rewrite": "0", "rollout__kinds__cross": "0"}
    _, server = run(tmp_path / "runs", task, lambda number: DIFF, rollout__prompts=str(tmp_path / "mine"), **only)
    assert server.bodies[0]["messages"][0]["content"] == "Mend this, value -8.0."


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"rollout.prompts": "/no/such/folder"}, "there is no folder"),
        ({"rollout.attempts": "0"}, "rollout.attempts must be at least 1, got 0"),
        ({"rollout.kinds.diff": "-1"}, "rollout.kinds.diff must be at least 0, got -1"),
        ({"rollout.kinds.diff": "0", "rollout.kinds.rewrite": "0", "rollout.kinds.cross": "0"}, "all 0"),
        ({"rollout.kinds.patch": "1"}, "rollout.kinds has diff, rewrite, cross"),
        ({"rollout.openings": "0"}, "rollout.openings must be at least 1, got 0"),
        ({"rollout.openings": "5"}, "rollout.openings goes from 1 to 4, .*; got 5"),
    ],
)
def test_settings_that_cannot_work(task: str, settings: dict[str, str], told: str) -> None:
    fixed = {"rollout": "evolvent.search.write:Write"}
    with pytest.raises(UserError, match=told):
        assemble(RunSpec("hill-climbing", task, "simulated", "2 steps", settings={**fixed, **settings}))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"kinds.patch": "1"}, "rollout.write.kinds has diff"),
        ({"kinds.diff": "0", "kinds.rewrite": "0", "kinds.cross": "0"}, "rollout.write.kinds are all 0"),
        ({"openings": "5"}, "rollout.write.openings goes from 1 to 4"),
        ({"attempts": "0"}, "rollout.write.attempts must be at least 1"),
    ],
)
def test_a_setting_is_named_where_it_stands(task: str, settings: dict[str, str], told: str) -> None:
    below = {f"rollout.write.{name}": value for name, value in settings.items()}
    with pytest.raises(UserError, match=told):
        assemble(RunSpec("hill-climbing", task, "simulated", "2 steps", settings=below))
