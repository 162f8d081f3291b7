"""A cell of a search: what counts within the budget, what is recorded, and when it is the same cell as another."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Scripted, chat_reply

from evolvent.bench.search_cell import SearchCell, Tally, means, run_search
from evolvent.core.errors import UserError
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.candidate import Candidate
from evolvent.tasks.evaluation import Evaluation


def candidate(uid: int, value: float | None, complete: bool = True) -> Candidate:
    """A candidate; the programs of even and odd numbers are the same but for their looks."""
    text = f"def run():\n    x = {uid // 2}  # {uid}\n    return x\n"
    return Candidate(uid, {"program": text}, Evaluation(value, complete=complete), step=(uid + 2) // 3)


@pytest.fixture
def tally() -> Tally:
    """The seed program, then steps of three: 1, 9 and 6 seconds long, with 1, 3 and 3 evaluations."""
    made = Tally()
    values = [1.0, None, 3.0, 2.0, 5.0, 4.0, 7.0]
    all_of_them = [candidate(i, v) for i, v in enumerate(values)]
    made.add(all_of_them[:1], (0.0, 0.0), (1.0, 1.0))
    made.add(all_of_them[1:4], (1.0, 1.0), (10.0, 4.0))
    made.add(all_of_them[4:], (10.0, 4.0), (16.0, 7.0))
    return made


def test_a_step_is_shared_out_among_its_candidates(tally: Tally) -> None:
    assert tally.spent == [1.0, 4.0, 7.0, 10.0, 12.0, 14.0, 16.0]
    assert tally.evaluations == [1, 2, 3, 4, 5, 6, 7]
    assert [tally.within(x) for x in (0.5, 1, 3.9, 4, 11, 100)] == [1, 1, 1, 2, 4, 7]


def test_records_are_of_what_beats_all_before_it(tally: Tally) -> None:
    assert tally.records(16.0) == [[1.0, 1.0, 1.0], [7.0, 3.0, 3.0], [12.0, 5.0, 5.0], [16.0, 7.0, 7.0]]
    assert tally.records(15.9) == tally.records(16.0)[:3]
    assert tally.records(0.1) == tally.records(16.0)[:1]  # the seed program is always there


def test_who_is_evaluated_further_counts_from_then_on(tally: Tally) -> None:
    half = candidate(7, 50.0, complete=False)
    tally.add([half], (16.0, 7.0), (17.0, 8.0))
    assert [r[2] for r in tally.records(20.0)] == [1.0, 3.0, 5.0, 7.0]
    whole = candidate(7, 9.0)
    tally.revise([*tally.candidates[:7], whole], (19.0, 10.0))
    assert tally.records(20.0)[-1] == [19.0, 10.0, 9.0]
    assert tally.records(18.0)[-1] == [16.0, 7.0, 7.0]
    assert tally.curve(20.0, 1)[-1]["best"] == 9.0
    assert tally.candidates[7] is whole


def test_the_curve_has_equal_shares_of_the_budget_and_nothing_beyond(tally: Tally) -> None:
    curve = tally.curve(12.0, 3)
    assert [p["spent"] for p in curve] == [1.0, 4.0, 8.0, 12.0]
    assert [p["best"] for p in curve] == [1.0, 1.0, 3.0, 5.0]
    assert [p["candidates"] for p in curve] == [1, 2, 3, 5]
    assert [p["valid"] for p in curve] == [1.0, 0.5, 2 / 3, 0.8]
    assert [p["distinct"] for p in curve] == [1.0, 0.5, 2 / 3, 3 / 5]  # 0 and 1 are alike, as are 2 and 3
    assert [p["step"] for p in curve] == [0, 1, 1, 2]


def test_before_the_first_value_there_is_no_best() -> None:
    made = Tally()
    made.add([candidate(0, None), candidate(1, 2.0)], (0.0, 0.0), (2.0, 2.0))
    assert [p["best"] for p in made.curve(2.0, 1)] == [None, 2.0]


def test_means_are_over_the_steps_that_have_the_metric() -> None:
    assert means([{"a": 1.0}, {"a": 2.0, "b": 5.0}]) == {"a": 1.5, "b": 5.0}
    assert means([]) == {}


# --- for real ---


def cell(task: str, **changes: Any) -> SearchCell:
    """A short climb."""
    made = SearchCell("climb", "hill-climbing", task, "none", 1, "20 evaluations", {"propose.children": 6}, evals=4)
    return dataclasses.replace(made, **changes)


def settled(result: dict[str, Any]) -> dict[str, Any]:
    """Without times."""
    spent = {k: v for k, v in result["spent"].items() if "seconds" not in k}
    return {**result, "spent": spent, "seconds": None, "cell": {**result["cell"], "arm": ""}}


def test_a_cell_is_what_the_same_run_found_within_the_budget(task: str, tmp_path: Path) -> None:
    result = run_search(cell(task))
    settings = {"propose.children": "6"}
    run = begin(RunSpec("hill-climbing", task, "none", "20 evaluations", 1, settings), tmp_path / "runs", logs=())
    tried = [c["evaluation"]["value"] for c in run.view.candidates.values()]
    assert len(tried) == result["spent"]["verifier_calls"] == 25  # steps of six after the first
    within = [v for v in tried[:20] if v is not None]
    assert result["records"][-1][2] == max(within)
    assert result["curve"][-1]["best"] == max(within)
    assert [p["candidates"] for p in result["curve"]] == [1, 5, 10, 15, 20]
    assert result["curve"][-1]["valid"] == len(within) / 20
    assert result["rescored"]["same"]
    assert result["rescored"]["value"] == max(within)
    assert result["train"]["parent_rank"] == 0.0  # always the best
    assert result["spent"]["verifier_seconds"] > 0
    assert settled(run_search(cell(task, arm="other"))) == settled(result)


def test_a_budget_in_seconds_of_the_processor(task: str) -> None:
    result = run_search(cell(task, budget="0.3 verifier_seconds", recipe="random-search"))
    assert result["spent"]["verifier_seconds"] >= 0.3
    assert [p["spent"] for p in result["curve"][1:]] == pytest.approx([0.075, 0.15, 0.225, 0.3])
    assert result["curve"][-1]["evaluations"] <= result["spent"]["verifier_calls"]
    assert all(record[0] <= 0.3 for record in result["records"])


@pytest.mark.parametrize("model", ["none", "simulated:skill=0.6"])
def test_worlds_that_run_nothing_and_models_that_are_simulated(model: str) -> None:
    result = run_search(cell("program:landscape:kind=nk,k=1", model=model, budget="60 evaluations"))
    assert result["records"][-1][2] > result["records"][0][2]
    assert result["rescored"]["value"] == result["records"][-1][2]
    assert (result["spent"]["sampled"] > 0) == (model != "none")
    assert result["spent"]["verifier_seconds"] > 0


def test_a_budget_that_is_never_spent_ends_with_a_sentence(task: str) -> None:
    with pytest.raises(UserError, match="would never be used up by hill-climbing; give evaluations"):
        run_search(cell(task, budget="10k tokens", settings={"propose.children": 1}))


CHANGES = {
    "recipe": "random-search",
    "task": "program:heilbronn:11",
    "model": "tiny-1",
    "seed": 2,
    "budget": "21 evaluations",
    "settings": {"propose.children": 3},
    "take": {"propose.children": "hill-climbing"},
    "profile": "paper",
    "evals": 5,
    "top": 3,
    "repeats": 2,
}


def test_the_key_knows_everything_but_the_arms_name() -> None:
    plain = cell("program:circle-packing:8")
    assert {f.name for f in dataclasses.fields(SearchCell)} == {*CHANGES, "arm"}
    keys = {dataclasses.replace(plain, **{name: value}).key("code") for name, value in CHANGES.items()}
    assert len(keys) == len(CHANGES)
    assert plain.key("code") not in keys
    assert plain.key("other code") != plain.key("code")
    assert dataclasses.replace(plain, arm="ours").key("code") == plain.key("code")


def test_a_search_that_is_stuck_ends_with_what_it_has(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its seed program is evaluated, and one more; the model then never writes another. What came of the steps in which
    nothing could be evaluated is no part of the result."""
    monkeypatch.setattr("evolvent.search.archive.PATIENCE", 5)
    replies = iter(["<<<<<<< SEARCH\n    y = 1.0\n=======\n    y = 0.0\n>>>>>>> REPLACE"])
    with Scripted(lambda a: a.say(chat_reply(next(replies, "I would rather not.")))) as server:
        settings = {"propose.children": "1", "rollout.write.attempts": "1"}
        found = run_search(SearchCell("a", "random-search", task, f"{server.url}#m", 0, "9 evaluations", settings))
    assert "none of the last 5 candidates in 5 requests could be evaluated" in found["stuck"]
    assert found["spent"]["verifier_calls"] == 2
    assert found["curve"][-1]["candidates"] == 2
    assert found["curve"][-1]["valid"] == found["curve"][-1]["distinct"] == 1
    assert found["rescored"]["value"] == found["curve"][-1]["best"] == -5.0
    assert found["train"]["valid"] == found["late"]["valid"] == 1


def test_nothing_is_found_where_nothing_could_ever_be_evaluated(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evolvent.search.archive.PATIENCE", 5)
    with Scripted(lambda a: a.say(chat_reply("I would rather not."))) as server:
        cell = SearchCell("a", "random-search", task, f"{server.url}#m", 0, "9 money", {"rollout.write.attempts": "1"})
        with pytest.raises(UserError, match="could be evaluated"):
            run_search(cell)
