"""A small policy that edits programs: what it is shown, what becomes of its answers, and that it learns from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.loopback import Answering, Scripted, chat_reply

from evolvent.core.errors import UserError
from evolvent.core.step import Step
from evolvent.learn.forward import rescored
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.archive import archive_of
from evolvent.search.variation.language import apply, listing, menu

WORLD = "program:landscape:parts=5,options=3"
LARGER = "program:landscape:parts=8,options=4"
SMALL = {
    "propose.children": 2,
    "propose.n": 8,
    "keep.islands.count": 1,
    "rollout.edit.warmup": 40,
    "learn.lr": 3e-3,
}
DIFF = "<<<<<<< SEARCH\n    x = 1.0\n=======\n    x = {}\n>>>>>>> REPLACE"


def made(**settings: Any) -> Assembled:
    """The recipe with a seed model in a small world."""
    named = {key.replace("__", "."): value for key, value in settings.items()}
    return assemble(RunSpec("thetaevolve", WORLD, "tiny", settings={**SMALL, **named}))


def taken(assembled: Assembled, count: int) -> list[Step]:
    """Steps of the only role."""
    return [assembled.system.step()[0] for _ in range(count)]


@pytest.fixture(scope="module")
def learning() -> tuple[Assembled, list[Step]]:
    """A search that has learned for three steps."""
    one = made()
    return one, taken(one, 3)


def test_every_parent_has_a_group_of_children(learning: tuple[Assembled, list[Step]]) -> None:
    one, (first, second, _) = learning
    assert [len(g.trajectories) for g in first.groups] == [1]
    assert [len(g.trajectories) for g in second.groups] == [8, 8]
    assert all(len({t.uses[0] for t in g.trajectories}) == 1 for g in second.groups)
    assert len(archive_of(one.main_role).history) == 1 + 2 * 16


def test_it_is_shown_the_parent_and_its_value(learning: tuple[Assembled, list[Step]]) -> None:
    one, steps = learning
    history = archive_of(one.main_role).history
    choices = menu(one.main_role.task.components, one.main_role.task.seed_program)
    for g in steps[-1].groups:
        parent = history[int(g.trajectories[0].uses[0])]
        assert g.problem.prompt[-1].content == f"{parent.value:.3f}{listing(parent.text, choices)}\n"


@pytest.mark.slow
def test_most_answers_are_edits_after_the_warm_up_and_none_before() -> None:
    before = taken(made(rollout__edit__warmup=0, learn__train=False), 2)[1].metrics["unusable_rung"]
    after = taken(made(rollout__edit__warmup=80, learn__train=False), 2)[1].metrics["unusable_rung"]
    assert before > 0.8
    assert after < 0.5


def test_answers_become_the_programs_that_their_edits_make(learning: tuple[Assembled, list[Step]]) -> None:
    one, steps = learning
    history = archive_of(one.main_role).history
    choices = menu(one.main_role.task.components, one.main_role.task.seed_program)
    good = [t for g in steps[-1].groups for t in g.trajectories if "unusable" not in t.info]
    assert good
    for t in good:
        assert t.info["program"] == apply(history[int(t.uses[0])].text, t.completion, choices)


def test_siblings_are_each_others_baseline(learning: tuple[Assembled, list[Step]]) -> None:
    step = learning[1][-1]
    (batch,) = step.batches
    scores = [np.array([t.score for t in g.trajectories]) for g in step.groups]
    expected = np.concatenate([(x - x.mean()) / (x.std(ddof=1) + 1e-4) for x in scores])
    assert np.allclose(batch.weight, expected, atol=1e-5)


def test_the_seed_program_teaches_nothing(learning: tuple[Assembled, list[Step]]) -> None:
    assert learning[1][0].batches == []


def test_the_sampler_has_the_log_probs_of_the_trainer() -> None:
    one = made(learn__train=False)
    rows = [t for g in taken(one, 2)[1].groups for t in g.trajectories]
    for t, now in zip(rows, rescored(one.main_role, rows), strict=True):
        assert np.allclose(now[t.mask], t.logprob[t.mask], atol=1e-4)


@pytest.mark.slow
def test_a_frozen_policy_makes_the_same_first_children_and_stays_as_it_is(
    learning: tuple[Assembled, list[Step]],
) -> None:
    one, steps = learning
    frozen = made(learn__train=False)
    before = {k: v.clone() for k, v in frozen.policy.weights().items()}
    same = taken(frozen, 3)
    assert [t.completion for g in same[1].groups for t in g.trajectories] == [
        t.completion for g in steps[1].groups for t in g.trajectories
    ]
    assert all(torch.equal(v, frozen.policy.weights()[k]) for k, v in before.items())
    assert not all(torch.equal(v, one.policy.weights()[k]) for k, v in before.items())
    assert [s.metrics["learns"] for s in (*steps, *same)] == [1, 1, 1, 0, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_what_it_learns_is_to_write_better_children(seed: int) -> None:
    """Without the penalty for what is there already, so that rewards are values."""
    settings = {**SMALL, "propose.n": 16, "rollout.edit.warmup": 80, "learn.lr": 1e-3, "judge.ladder.level": 0}
    scores = []
    for train in (None, False):
        named = {**settings, "learn.train": train}
        steps = taken(assemble(RunSpec("thetaevolve", LARGER, "tiny", seed=seed, settings=named)), 9)
        scores.append(float(np.mean([s.metrics["score"] for s in steps[4:]])))
    assert scores[0] > scores[1] + 0.1


def test_behind_an_endpoint_diffs_are_written_and_nothing_is_learned(tmp_path: Path, task: str) -> None:
    def act(a: Answering) -> None:
        with server.lock:
            number = len(server.bodies)
        a.say(chat_reply(DIFF.format(float(number))))  # the first one changes nothing

    with Scripted(act) as server:
        settings = {"propose.children": "1", "propose.n": "3", "engine.concurrency": "1", "keep.islands.count": "1"}
        spec = RunSpec("thetaevolve", task, f"{server.url}#m", "2 steps", settings={**settings, **LOW})
        result = begin(spec, tmp_path / "runs", logs=("jsonl",))
        with pytest.raises(UserError, match="cannot be trained"):
            assemble(RunSpec("thetaevolve", task, f"{server.url}#m", settings={"learn.train": "true"}))
    assert len(server.bodies) == 3  # an answer that cannot be used is not asked for again
    system, user = server.bodies[0]["messages"]
    assert "SEARCH" in system["content"]
    assert "x = 1.0" in system["content"]
    assert "Another program" not in system["content"]
    assert "def evaluate" in user["content"]
    found = list(result.view.candidates.values())
    assert [c["evaluation"]["status"] for c in found] == ["ok", "lazy", "ok", "ok"]
    assert [c["evaluation"]["value"] for c in found[2:]] == [pytest.approx(-5.0), pytest.approx(-4.0)]
    assert result.view.curve("learns")[-1][1] == 0
    assert result.view.curve("score")[-1][1] == pytest.approx((-0.3 + 5 * 0.5**3 + 5 * 0.6**3) / 3)


LOW = {"judge.ladder.shape": "power", "judge.ladder.shape.low": "-10", "judge.ladder.shape.high": "0"}


def test_without_a_model_operators_vary_and_nothing_is_learned() -> None:
    one = assemble(RunSpec("thetaevolve", WORLD, "none", settings=SMALL))
    steps = taken(one, 3)
    assert [s.metrics["learns"] for s in steps] == [0, 0, 0]
    assert len(archive_of(one.main_role).history) == 1 + 2 * 16
    with pytest.raises(UserError, match="model is `none`"):
        assemble(RunSpec("thetaevolve", WORLD, "none", settings={**SMALL, "learn.train": True}))


def test_values_that_are_worth_less_than_failures_are_refused(tmp_path: Path, sandboxed: str) -> None:
    (tmp_path / "evaluator.py").write_text("def evaluate(path):\n    return -2.0\n")
    (tmp_path / "first.py").write_text("def f():\n    return 1\n")
    files = f"program:{tmp_path / 'evaluator.py'}:{tmp_path / 'first.py'}"
    one = assemble(RunSpec("thetaevolve", files, "tiny", settings={"rollout.edit.warmup": 1}))
    with pytest.raises(UserError, match="judge.ladder.shape=power"):
        one.system.step()
