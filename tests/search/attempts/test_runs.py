"""Whole runs of `se-agent` and `rtv-pdr`: by the scripted agent, and by a scripted endpoint."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Answering, Scripted, chat_reply

from evolvent.core.errors import UserError
from evolvent.core.step import Step
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.archive import archive_of
from evolvent.search.attempts.plan import Iterations
from evolvent.search.attempts.summary import Summary
from evolvent.search.attempts.work import bugs_of
from evolvent.tasks.worlds.repair import world
from evolvent.tasks.worlds.repair.patches import read_book

TASK = "program:patches:gate-3"


@contextmanager
def system(recipe: str, seed: int = 0, **settings: Any) -> Iterator[Assembled]:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    made = assemble(RunSpec(recipe, TASK, "none", seed=seed, settings=named))
    try:
        yield made
    finally:
        bugs_of(made.main_role).sandbox.close()


def taken(made: Assembled, count: int) -> list[Step]:
    return [s for _ in range(count) for s in made.system.step()]


@pytest.mark.slow
def test_the_book_is_worth_what_it_says(sandboxed: str) -> None:
    with system("se-agent", rollout__mutate__runs=80, rollout__mutate__each=8) as made:
        steps = taken(made, 3)
        task, archive = bugs_of(made.main_role), archive_of(made.main_role)
        assert len(archive.history) == 4
        books = [c.text for c in archive.history]
        found = task.evaluate(books, [task.instances("train")] * 4)
        assert [e.value for e in found] == pytest.approx([c.value for c in archive.history])
        assert archive.best is archive.history[-1]
        assert [s.metrics["solved"] for s in steps] == [
            b.value * 3 > a.value * 3 for a, b in zip(archive.history, archive.history[1:], strict=False)
        ]
        assert made.system.ledger.of("verifier_calls") == 12  # attempts
        for s, c, name in zip(steps, archive.history[1:], task.names, strict=True):
            operators = [a["operator"] for a in c.notes["attempts"]]
            assert operators == ["base", "revision", "recombination", "refinement"]
            assert c.notes["bug"] == name
            assert s.metrics["steered"] >= 0.5
            summaries = [t.info["summary"] for g in s.groups for t in g.valid]
            chosen = [t.info["summary"] for g in s.groups for t in g.valid if t.info["handed in"]]
            assert chosen == [max(summaries, key=Iterations().score)]
            assert read_book(c.text)[name] == (chosen[0].patch if chosen[0].passed else world.bug(name)["source"])
            used = {o for x in summaries for o in x.tools}
            assert s.metrics["covered"] == pytest.approx(len(used) / 19)


def test_a_plan_without_operators_is_of_independent_attempts(sandboxed: str) -> None:
    with system("se-agent", propose__plan=("base", "base")) as made:
        [s] = taken(made, 1)
        assert s.metrics["steered"] == 0
        assert all(not t.uses for g in s.groups for t in g.valid)


def test_elite_selection_weighs_completion_quality_and_efficiency() -> None:
    part = Iterations()
    a = Summary("p", passed=4, shown=4, edits=2, left=0.0)
    assert part.score(a) == pytest.approx(0.8 + 0.1 / 2)
    b = Summary("p", passed=3, shown=4, edits=1, left=1.0)
    assert part.score(b) == pytest.approx(0.6 + 0.1 + 0.1)
    assert part.best([b, a, a]) == 1
    assert Iterations(completion=0.0, quality=0.0).best([a, b]) == 1
    assert part.score(Summary("p", passed=0, shown=4, edits=0, left=0.5)) == pytest.approx(0.05)
    assert part.best([]) is None


def test_waves(sandboxed: str) -> None:
    with system("rtv-pdr", propose__n=4, propose__keep=2, propose__tournament__accuracy=1.0) as made:
        for s in taken(made, 3):
            first, second = s.groups[:4], s.groups[4:]
            assert len(second) == 4
            shares = [sum(g.trajectories[0].info["summary"].solved for g in wave) / 4 for wave in (first, second)]
            assert (s.metrics["first"], s.metrics["second"]) == tuple(shares)
            passing = sorted((g.trajectories[0].info["summary"].passed for g in first), reverse=True)
            assert s.metrics[f"second/given-{int(s.metrics['picked'])}"] == shares[1]
            best = max(g.trajectories[0].info["summary"].passed for g in second)
            [chosen] = [g.trajectories[0] for g in s.groups if g.trajectories[0].info["handed in"]]
            assert chosen in [g.trajectories[0] for g in second]
            assert chosen.info["summary"].passed == best  # the judge makes no mistakes
            if passing[0] > first[0].trajectories[0].info["summary"].before:
                assert best >= passing[0]  # what was known is tried first
        assert made.system.ledger.of("verifier_calls") == 24
    with system("rtv-pdr", propose__n=3, propose__waves=1) as made:
        [s] = taken(made, 1)
        assert len(s.groups) == 3
        assert "second" not in s.metrics


@pytest.mark.parametrize(
    ("recipe", "settings", "said"),
    [
        ("se-agent", {"propose__plan": ("base", "mutation")}, "operator"),
        ("se-agent", {"rollout__mutate__runs": 0}, "must be at least 1"),
        ("rtv-pdr", {"propose__tournament__accuracy": 0.0}, "accuracy is above 0"),
        ("rtv-pdr", {"propose__n": 0}, "must be at least 1"),
    ],
)
def test_settings_that_cannot_be(recipe: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said), system(recipe, **settings):
        pass


def test_other_tasks_are_refused() -> None:
    with pytest.raises(UserError, match="program:patches:40"):
        assemble(RunSpec("se-agent", "program:circle-packing:4", "none"))


class Model:
    """Mends a bug when what it is told says `magic`; sums up, plans and votes by number."""

    KINDS = (
        ("Sum it up", "summary"),
        ("orthogonal", "revision"),
        ("joins them", "recombination"),
        ("Write it anew", "refinement"),
        ("Compare them", "vote"),
    )

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.shown: list[tuple[str, str]] = []

    def __call__(self, a: Answering) -> None:
        system = "\n".join(m["content"] for m in a.body["messages"] if m["role"] == "system")
        user = "\n".join(m["content"] for m in a.body["messages"] if m["role"] == "user")
        kind = next((name for mark, name in self.KINDS if mark in system), "attempt")
        with self.lock:
            self.shown.append((kind, system))
            number = len(self.shown)
        name = next(n for n in bugs() if world.bug(n)["source"].rstrip() in user)
        source = world.bugs()[name][0].source if "magic" in system else world.bug(name)["source"] + f"# {number}\n"
        answers = {
            "attempt": f"I try.\n```python\n{source}```",
            "summary": json.dumps({"strategy": f"summed up {number}", "failure": f"failed {number}", "passed": 99}),
            "revision": "word " * 300,
            "recombination": "do magic",
            "refinement": "refined",
            "vote": "Best: 2",
        }
        a.say(chat_reply(answers[kind]))


def bugs() -> tuple[str, ...]:
    return tuple(name for name, (unit, _) in world.bugs().items() if unit.split == "gate")[:3]


def written(folder: Path, recipe: str, model: Model, **settings: str) -> Any:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    with Scripted(model) as server:
        return begin(RunSpec(recipe, TASK, f"{server.url}#m", "1 steps", 1, named), folder, logs=("jsonl",))


def test_a_model_makes_attempts_and_strategies(tmp_path: Path, sandboxed: str) -> None:
    model = Model()
    result = written(tmp_path / "runs", "se-agent", model, rollout__write__turns="2")
    kinds = [kind for kind, _ in model.shown]
    assert kinds == [
        *["attempt"] * 2, "summary", "revision", *["attempt"] * 2, "summary", "recombination", "attempt", "summary",
        "refinement", *["attempt"] * 2, "summary",
    ]  # fmt: skip
    shown = [system for _, system in model.shown]
    assert "strategy: summed up 3" in shown[3]
    assert shown[4].split() == ["word"] * 200
    assert "summed up 3" in shown[7]
    assert "summed up 7" in shown[7]
    assert shown[8] == "do magic"
    assert "failed 3" in shown[10]
    *_, last = result.view.candidates.values()
    attempts = last["notes"]["attempts"]
    assert [a["passed"] == a["shown"] for a in attempts] == [False, False, True, False]
    assert [a["left"] for a in attempts] == [0.0, 0.0, 0.5, 0.0]
    assert read_book(last["payload"]["program"])[bugs()[0]] == world.bugs()[bugs()[0]][0].source.strip("\n") + "\n"
    assert result.view.curve("solved")[-1][1] == 1


def test_a_model_votes_on_summaries(tmp_path: Path, sandboxed: str) -> None:
    model = Model()
    settings = {
        "propose__n": "4",
        "propose__keep": "2",
        "rollout__write__turns": "1",
        "propose__tournament__votes": "3",
    }
    written(tmp_path / "runs", "rtv-pdr", model, **settings)
    kinds = [kind for kind, _ in model.shown]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"attempt": 8, "summary": 8, "vote": (2 + 3) * 3}
    second = [system for kind, system in model.shown if kind == "attempt"][4:]
    assert len(set(second)) == 1
    assert second[0].count("summed up") == 2
    votes = [system for kind, system in model.shown if kind == "vote"]
    assert all(text.count("summed up") == 2 for text in votes)


def test_without_words_and_without_distilling(tmp_path: Path, sandboxed: str) -> None:
    model = Model()
    settings = {"propose__n": "2", "propose__keep": "1", "rollout__write__turns": "1", "propose__distil": "false"}
    written(tmp_path / "runs", "rtv-pdr", model, propose__remember__words="false", **settings)
    kinds = [kind for kind, _ in model.shown]
    assert kinds.count("summary") == 0
    assert all(system == "" for kind, system in model.shown if kind == "attempt")
