"""A model that writes programs, over a real endpoint on loopback whose answers follow a script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.loopback import Answering, Scripted, chat_reply

from evolvent.core.errors import UserError
from evolvent.core.loop import TooManyErrors
from evolvent.core.records import Group, Request
from evolvent.core.step import Step
from evolvent.run.assemble import assemble
from evolvent.run.result import Result
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.archive import archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.loop import written
from evolvent.tasks.evaluation import Evaluation

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


class Silent:
    """Is asked for programs, and writes none."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        self.prompts += [r.memory[0].content for r in requests]
        return [Group(r.problem, [written(i, r, "", "")]) for i, r in enumerate(requests)]


DRAWS = 400


def drawn(recipe: str, uses: tuple[str, ...] = ("0", "1"), **settings: str) -> tuple[Counter[str], list[str]]:
    """Which kinds of change a recipe asks for in so many draws, and the first lines of its prompts."""
    named = {"rollout.write.attempts": "1"} | {name.replace("__", "."): value for name, value in settings.items()}
    role = assemble(RunSpec(recipe, "program:landscape", "simulated", settings=named)).main_role
    write, silent = role.slots["rollout"].write, Silent()
    write.ensemble.setup(role)
    write.inner = silent
    history = [Candidate(i, {"program": f"x = {i}"}, Evaluation(float(i))) for i in range(2)]
    archive_of(role).history = history
    (group,) = write([Request(role.task.draw("train", np.random.default_rng(0)), DRAWS, uses=uses)], Step(1, role))
    return Counter(t.info["operator"] for t in group.trajectories), [p.split("\n")[0] for p in silent.prompts]


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        ("shinka-evolve", {"diff": 0.6, "rewrite": 0.3, "cross": 0.1}),
        ("alphaevolve", {"diff": 0.8, "rewrite": 0.2}),
        ("openevolve", {"diff": 1.0}),
    ],
)
def test_kinds_of_change_are_drawn_by_their_shares(recipe: str, expected: dict[str, float]) -> None:
    found, _ = drawn(recipe)
    assert set(found) == set(expected)
    for kind, p in expected.items():
        assert abs(found[kind] - DRAWS * p) <= 4 * (DRAWS * p * (1 - p)) ** 0.5


def test_a_crossover_with_nobody_is_a_rewrite() -> None:
    found, _ = drawn("shinka-evolve", uses=("0",))
    assert set(found) == {"diff", "rewrite"}
    assert abs(found["rewrite"] - DRAWS * 0.4) <= 4 * (DRAWS * 0.4 * 0.6) ** 0.5


def test_shares_are_a_setting() -> None:
    shares = {f"rollout__write__kinds__{kind}": str(x) for kind, x in (("diff", 0), ("rewrite", 1), ("cross", 3))}
    found, _ = drawn("shinka-evolve", **shares)
    assert set(found) == {"rewrite", "cross"}
    assert abs(found["cross"] - DRAWS * 3 / 4) <= 4 * (DRAWS * 3 / 16) ** 0.5


@pytest.mark.parametrize("openings", [1, 2, 4])
def test_how_a_prompt_opens_is_drawn(openings: int) -> None:
    _, lines = drawn("alphaevolve", rollout__write__openings=str(openings))
    found = Counter(lines)
    assert len(lines) == DRAWS
    assert len(found) == openings
    assert all(abs(n - DRAWS / openings) <= 4 * (DRAWS / openings) ** 0.5 for n in found.values())


def test_alphaevolve_draws_of_four_openings_and_others_have_one() -> None:
    assert [len(set(drawn(recipe)[1])) for recipe in ("alphaevolve", "openevolve", "shinka-evolve")] == [4, 1, 1]


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
