"""The loop of each category, by runs: turns, samples, pools, parents, and what a model reads and writes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Answering, Scripted, chat_reply

from evolvent.core.errors import UserError
from evolvent.run.assemble import assemble
from evolvent.run.result import Result
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.curation.loop import read_issues
from evolvent.search.segments import differing, segments
from evolvent.tasks.evaluation import INSTANCE
from evolvent.tasks.worlds.curation.library import FILTER, SEED
from evolvent.tasks.worlds.curation.texts import CATEGORIES

TASK = "program:data-curation"


def run(folder: Path, budget: str, model: str = "none", **settings: str) -> Result:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return begin(RunSpec("data-evolve", TASK, model, budget, settings=named), folder, logs=("jsonl",), final=False)


def made(result: Result) -> list[Any]:
    return [result.view.candidates[uid] for uid in sorted(result.view.candidates)]


def score(candidate: Any, category: str) -> float:
    return float(candidate["evaluation"]["metrics"][f"{INSTANCE}train-{category}"])


@pytest.fixture(scope="module")
def searched(sandboxed: str, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return run(tmp_path_factory.mktemp("curation"), "29 steps")


def test_categories_take_turns_and_each_generation_has_a_sample_of_its_own(searched: Result) -> None:
    found = made(searched)
    assert [c["notes"]["category"] for c in found[1:]] == [*CATEGORIES] * 7
    assert [c["notes"]["generation"] for c in found[1:]] == [g for g in range(1, 8) for _ in CATEGORIES]
    assert len({c["notes"]["instance"] for c in found[1:]}) == 28
    assert searched.ledger.of("verifier_calls") == 4 + 28


def test_a_child_stands_beside_the_best_of_the_other_categories_and_has_their_scores(searched: Result) -> None:
    found = made(searched)
    for i, child in enumerate(found[1:], 1):
        own, before = child["notes"]["category"], [c for c in found[:i] if c["evaluation"]["value"] is not None]
        for category in set(CATEGORIES) - {own}:
            rows = [c for c in before if c["notes"].get("category", category) == category]
            top = max(rows, key=lambda c: (score(c, category), -c["uid"]))
            place = CATEGORIES.index(category)
            texts = [segments(c["payload"]["program"])[place] for c in (child, top)]
            assert texts[0] == texts[1]
            if child["evaluation"]["value"] is not None:
                assert score(child, category) == score(top, category)
        if child["evaluation"]["value"] is not None:
            assert child["evaluation"]["complete"]
            assert child["evaluation"]["value"] == pytest.approx(sum(score(child, c) for c in CATEGORIES) / 4)


def test_parents_are_among_the_three_best_of_the_category(searched: Result) -> None:
    found = made(searched)
    parents = Counter[int]()
    for i, child in enumerate(found[1:], 1):
        own = child["notes"]["category"]
        rows = [c for c in found[:i] if c["evaluation"]["value"] is not None and c["notes"].get("category", own) == own]
        order = sorted(rows, key=lambda c: (-score(c, own), c["uid"]))
        parents[[c["uid"] for c in order].index(child["parents"][0])] += 1
        place = CATEGORIES.index(own)
        parent = found[child["parents"][0]]["payload"]["program"]
        assert segments(parent)[place] != segments(child["payload"]["program"])[place]
    assert set(parents) == {0, 1, 2}


def test_beside_the_parent_are_the_two_best_others_of_the_category(searched: Result) -> None:
    found = made(searched)
    for i, child in enumerate(found[1:], 1):
        own, (parent, *others) = child["notes"]["category"], child["parents"]
        rows = [c for c in found[:i] if c["evaluation"]["value"] is not None and c["notes"].get("category", own) == own]
        order = sorted(rows, key=lambda c: (-score(c, own), c["uid"]))
        assert others == [c["uid"] for c in order if c["uid"] != parent][:2]
    assert {len(c["parents"]) for c in found[1:]} == {1, 2, 3}


def test_a_model_reads_other_good_strategies(sandboxed: str, tmp_path: Path) -> None:
    """Two generations of prose, with the other categories between them: the second sees the other of two strategies."""

    def act(a: Answering) -> None:
        shown = "\n".join(m["content"] for m in a.body["messages"])
        category = next(c for c in CATEGORIES if f"of the category {c}," in shown)
        text = f"def clean_{category}(text):\n    return text.replace('Read more {len(server.bodies)}', '')"
        a.say(chat_reply(f"```python\n{text}\n```"))

    with Scripted(act) as server:
        result = run(tmp_path, "6 steps", f"{server.url}#m", propose__observed="0")
        designs = ["\n".join(m["content"] for m in body["messages"]) for body in server.bodies]
    assert len(designs) == 5
    assert not any("Another good strategy" in shown for shown in designs[:4])
    child = made(result)[5]
    assert sorted(child["parents"]) == [0, 1]
    assert f"Another good strategy:\n\n```python\n{prose(made(result)[child['parents'][1]])}" in designs[4]


def prose(candidate: Any) -> str:
    return segments(candidate["payload"]["program"])[CATEGORIES.index("prose")]


def test_issues_are_found_and_something_is_done_about_them(searched: Result) -> None:
    issues = [x for _, x in searched.view.curve("issues")]
    assert issues[-1] > issues[0] > 0
    fresh = [x for _, x in searched.view.curve("fresh")]
    assert sum(fresh) <= sum(issues[-4:])  # the pool also learns from the judge, and repeats nothing
    about = [c["notes"]["issue"] for c in made(searched)[1:]]
    assert sum(map(bool, about)) > 14
    assert {c["operator"] for c in made(searched)[1:] if c["notes"]["issue"]} <= {"address", "except"}


def test_strategies_get_better(searched: Result) -> None:
    found = made(searched)
    assert max(c["evaluation"]["value"] or 0 for c in found) > found[0]["evaluation"]["value"] + 0.5


def test_after_the_last_generation_nothing_is_proposed(sandboxed: str, tmp_path: Path) -> None:
    result = run(tmp_path, "9 steps", propose__generations="1")
    assert [c["notes"].get("generation", 0) for c in made(result)] == [0, 1, 1, 1, 1]


def test_the_fixed_filter_and_no_pools(sandboxed: str, tmp_path: Path) -> None:
    result = run(tmp_path / "a", "5 steps", propose__generations="1", rollout__mutate__fixed="true")
    for child, place in zip(made(result)[1:], range(4), strict=True):
        assert segments(child["payload"]["program"])[place] == segments(FILTER)[place]
    settings = {"propose__observed": "0", "propose__learn": "false", "rollout__mutate__directed": "0"}
    result = run(tmp_path / "b", "5 steps", propose__samples="false", **settings)
    assert [x for _, x in result.view.curve("issues")] == [0.0] * 4
    assert [c["notes"]["instance"] for c in made(result)[1:]] == [f"train-{c}" for c in CATEGORIES]
    assert not any(c["notes"]["issue"] for c in made(result)[1:])


@pytest.mark.parametrize(
    ("task", "settings", "reason"),
    [
        ("program:heilbronn", {}, "give --task program:data-curation"),
        (TASK, {"propose.observed": -1}, "at least 0"),
        (TASK, {"rollout.mutate.directed": 2}, "rollout.mutate.directed is a share"),
        (TASK, {"rollout.mutate.tries": 0}, "rollout.mutate.tries"),
        (TASK, {"rollout.write.attempts": 0}, "rollout.write.attempts"),
    ],
)
def test_what_makes_no_sense_is_refused(sandboxed: str, task: str, settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        assemble(RunSpec("data-evolve", task, "none", settings=settings))


def test_issues_of_an_answer() -> None:
    text = "Here they are:\n- promotion: Buy now!\n* Markup : <em>\n- nothing\nas in a: b"
    assert read_issues(text) == [("promotion", "Buy now!"), ("markup", "<em>")]


def test_a_model_observes_and_designs(sandboxed: str, tmp_path: Path) -> None:
    good = "```python\ndef clean_prose(text):\n    return text.replace('Read more', '')\n```"
    answers = iter(
        ["- cut: Read more »\n- odd thing: zzz", "no program", "```python\ndef other(x): return x\n```", good]
    )

    def act(a: Answering) -> None:
        a.say(chat_reply(next(answers)))

    with Scripted(act) as server:
        result = run(tmp_path, "2 steps", f"{server.url}#m")
        observe, *design = ["\n".join(m["content"] for m in body["messages"]) for body in server.bodies]
    seed, child = made(result)
    assert "Document 8:" in observe
    assert "\n- cut (found 1 times): Read more »" in design[0]
    assert "- odd thing (found 1 times): zzz" in design[0]
    assert "left of boilerplate: 100%" in design[0]
    assert segments(SEED)[0] in design[0]
    assert f"score {score(seed, 'prose'):.2f} of 10" in design[0]
    assert "An earlier answer could not be used" in design[1]
    assert "it must define clean_prose(text)" in design[2]
    assert differing(SEED, child["payload"]["program"]) == [0]
    assert "return text.replace('Read more', '')" in child["payload"]["program"]
    assert child["operator"] == "design"
    assert child["notes"]["category"] == "prose"
    assert [x for _, x in result.view.curve("asked")] == [3.0]
    assert [x for _, x in result.view.curve("issues")] == [2.0]


def test_an_answer_that_is_never_usable_is_no_strategy(sandboxed: str, tmp_path: Path) -> None:
    def act(a: Answering) -> None:
        a.say(chat_reply("nothing"))

    with Scripted(act) as server:
        result = run(tmp_path, "2 steps", f"{server.url}#m", rollout__write__attempts="2", propose__observed="0")
        assert len(server.bodies) == 2
    assert made(result)[1]["evaluation"]["status"] == "unusable"
