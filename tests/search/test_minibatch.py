"""GEPA's minibatches: on what a child is tried, who is accepted, whose turn a segment is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.loopback import Answering, Scripted, chat_reply

from evolvent.core.errors import UserError
from evolvent.core.records import Request
from evolvent.core.step import Step
from evolvent.run.assemble import assemble
from evolvent.run.result import Result
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.archive import archive_of
from evolvent.search.candidate import PROGRAM, Candidate
from evolvent.search.loop import programs_of
from evolvent.search.minibatch import SEGMENT, OneSegment
from evolvent.search.segments import differing, segments
from evolvent.tasks.evaluation import INSTANCE, Evaluation

TASK = "program:regret:10"


def run(folder: Path, budget: str, model: str = "none", **settings: str) -> Result:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return begin(RunSpec("gepa", TASK, model, budget, settings=named), folder, logs=("jsonl",))


def instances(candidate: Any) -> dict[str, float]:
    metrics = candidate["evaluation"]["metrics"]
    return {k.removeprefix(INSTANCE): v for k, v in metrics.items() if k.startswith(INSTANCE)}


@pytest.fixture(scope="module")
def searched(sandboxed: str, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return run(tmp_path_factory.mktemp("gepa"), "25 steps", propose__minibatch="2", propose__perfect="9")


def made(result: Result) -> list[Any]:
    return [result.view.candidates[uid] for uid in sorted(result.view.candidates)]


def children(result: Result) -> list[Any]:
    return [c for c in made(result)[1:] if c["evaluation"]["value"] is not None]


def test_a_child_is_evaluated_on_its_minibatch_and_on_everything_only_if_it_did_better_there(searched: Result) -> None:
    found = made(searched)
    verdicts = Counter[bool]()
    for child in children(searched):
        own, names = instances(child), child["notes"]["minibatch"]
        others = [sum(instances(found[p])[name] for name in names) for p in child["parents"]]
        mine = sum(own[name] for name in names)
        better = mine >= max(others) if child["operator"] == "merge" else mine > others[0]
        assert child["evaluation"]["complete"] == better
        assert len(own) == (4 if better else 2)
        assert better == (set(own) != set(names))
        verdicts[better] += 1
    assert verdicts[True]
    assert verdicts[False]


def test_evaluations_are_paid_for_one_by_one(searched: Result) -> None:
    valid = sum(len(instances(c)) for c in made(searched))
    invalid = sum(len(c["notes"]["minibatch"]) for c in made(searched)[1:] if not instances(c))
    assert valid <= searched.ledger.of("verifier_calls") <= valid + invalid + 4 * len(made(searched))
    assert searched.ledger.of("verifier_calls") < 4 * len(made(searched))  # what everything would cost


def test_parents_are_those_who_were_accepted(searched: Result) -> None:
    found = made(searched)
    assert all(found[p]["evaluation"]["complete"] for c in found for p in c["parents"])
    assert {p for c in found for p in c["parents"]} != {0}


def test_instances_come_again_when_all_have_had_their_turn(searched: Result) -> None:
    batches = [c["notes"]["minibatch"] for c in made(searched)[1:] if c["operator"] != "merge"]
    for first, second in zip(batches[::2], batches[1::2], strict=False):
        assert len({*first, *second}) == 4


@pytest.mark.slow
def test_where_the_parent_is_perfect_the_next_instances_are_taken(sandboxed: str, tmp_path: Path) -> None:
    result = run(tmp_path, "3 steps", propose__minibatch="1", propose__perfect="-99")
    assert [x for _, x in result.view.curve("skipped")] == [4.0, 4.0]  # everything is, so it goes on with the last


@pytest.mark.slow
def test_a_model_reads_how_the_parent_did_on_the_minibatch(sandboxed: str, tmp_path: Path) -> None:
    def act(a: Answering) -> None:
        a.say(chat_reply("no program"))

    with Scripted(act) as server:
        result = run(tmp_path, "2 steps", f"{server.url}#m", rollout__write__attempts="1", propose__minibatch="2")
        texts = "\n".join(m["content"] for m in server.bodies[0]["messages"])
    seed, child = made(result)
    for name in child["notes"]["minibatch"]:
        assert f"{name}: {instances(seed)[name]}" in texts
    assert "Say to yourself what makes it fall short there" in texts
    assert child["evaluation"]["status"] == "unusable"


def test_without_a_model_nothing_but_the_segment_changes(sandboxed: str) -> None:
    role = next(iter(assemble(RunSpec("random-search", "program:digits", "none")).system.roles.values()))
    seed = programs_of(role).seed_program
    archive_of(role).history.append(Candidate(0, {PROGRAM: seed}, Evaluation(0.5)))
    problem = role.task.draw("train", np.random.default_rng(0))
    for place in range(len(segments(seed))):
        request = Request(replace(problem, data={SEGMENT: place}), 3, uses=("0",))
        (group,) = OneSegment()([request], Step(place + 1, role))
        texts = [t.info["program"] for t in group.trajectories]
        assert len(set(texts)) == 3
        assert all(differing(seed, text) == [place] for text in texts)


def test_a_world_without_instances_is_refused_with_a_remedy() -> None:
    with pytest.raises(UserError, match="has none; give --task program:repair"):
        assemble(RunSpec("gepa", "program:circle-packing:4", "none"))


@pytest.mark.parametrize("setting", ["propose.minibatch", "propose.shared", "rollout.mutate.tries"])
def test_numbers_below_one_are_refused(setting: str, sandboxed: str) -> None:
    with pytest.raises(UserError, match=f"{setting} must be at least 1, got 0"):
        assemble(RunSpec("gepa", TASK, "none", settings={setting: "0"}))
