"""Plans, lessons and programs that are tried, over a real endpoint on loopback whose answers follow a script."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Answering, Scripted, chat_reply

from evolvent.core.errors import UserError
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.candidate import Candidate
from evolvent.search.lessons import ancestry
from evolvent.tasks.evaluation import Evaluation

MARKS = {"plan": "You plan the next change", "lesson": "A program was changed"}


class Model:
    """Plans with numbers, lessons that repeat the plan; what it writes is up to `write(shown, line, number)`."""

    def __init__(self, write: Callable[[str, str, int], str]) -> None:
        self.lock, self.write = threading.Lock(), write
        self.shown: dict[str, list[str]] = {"plan": [], "lesson": [], "write": []}

    def __call__(self, a: Answering) -> None:
        shown = "\n".join(m["content"] for m in a.body["messages"] if m["role"] == "system")
        kind = next((k for k, mark in MARKS.items() if mark in shown), "write")
        with self.lock:
            self.shown[kind].append(shown)
            number = len(self.shown[kind])
        if kind != "write":
            a.say(chat_reply(f"{kind} {number}."))
            return
        line = next(line for line in shown.split("\n") if line.startswith("    x = "))
        a.say(chat_reply(f"<<<<<<< SEARCH\n{line}\n=======\n{self.write(shown, line, number)}\n>>>>>>> REPLACE"))


def run(folder: Path, task: str, model: Model, steps: int = 8, **settings: str) -> Any:
    fixed = {f"rollout.write.kinds.{k}": str(float(k == "diff")) for k in ("diff", "rewrite", "cross")}
    named = {name.replace("__", "."): value for name, value in settings.items()}
    with Scripted(model) as server:
        spec = RunSpec("loongflow", task, f"{server.url}#m", f"{steps} steps", 1, {**fixed, **named})
        return begin(spec, folder, logs=("jsonl",))


def on(shown: str, line: str, number: int) -> str:
    return f"{line}{number}"


def test_plans_are_carried_out_and_lessons_read(tmp_path: Path, task: str) -> None:
    model = Model(on)
    result = run(tmp_path / "runs", task, model)
    children = [c for c in result.view.candidates.values() if c["parents"]]
    assert len(model.shown["plan"]) == len(model.shown["write"]) == len(children) == 7
    for number, (c, shown) in enumerate(zip(children, model.shown["write"], strict=True), start=1):
        assert c["notes"]["told"] == [f"Carry out this plan:\n\nplan {number}."]
        assert f"plan {number}." in shown
    assert len(model.shown["lesson"]) == 6  # of all but the last one, whom nobody has looked at yet
    assert all(f"plan {i}." in shown for i, shown in enumerate(model.shown["lesson"], start=1))
    by_uid = {c["uid"]: c for c in children}
    for c, shown in zip(children, model.shown["plan"], strict=True):
        line = c["parents"][0]
        for _ in range(3):
            assert not line or f"lesson {line}." in shown
            line = by_uid[line]["parents"][0] if line else 0
    assert result.view.curve("lessons")[-1][1] == 6


def test_without_lessons(tmp_path: Path, task: str) -> None:
    model = Model(on)
    run(tmp_path / "runs", task, model, propose__plans__lessons="false")
    assert not model.shown["lesson"]
    assert not any("lesson" in shown for shown in model.shown["plan"])


def test_what_fails_is_mended(tmp_path: Path, task: str) -> None:
    """Every first try of a plan divides by zero; whoever reads that it failed does better."""

    def write(shown: str, line: str, number: int) -> str:
        return f"    x = 1.{number}" if "This program did not work" in shown else "    x = 1 / 0"

    tries = {}
    for rounds in ("1", "3"):
        model = Model(write)
        result = run(tmp_path / f"runs{rounds}", task, model, steps=4, rollout__tested__rounds=rounds)
        children = [c for c in result.view.candidates.values() if c["parents"]]
        tries[rounds] = Counter(c["evaluation"]["value"] is not None for c in children)
        assert result.ledger.of("verifier_calls") == 1 + 3 * (1 + (rounds == "3"))
        assert result.view.errors == {}
    assert tries == {"1": {False: 3}, "3": {True: 3}}


def test_what_never_works_is_given_up(tmp_path: Path, task: str) -> None:
    result = run(tmp_path / "runs", task, Model(lambda shown, line, number: "    x = 1 / 0"), steps=2)
    found = result.view.candidates[1]
    assert "ZeroDivisionError" in found["evaluation"]["feedback"]
    assert result.ledger.of("verifier_calls") == 4


def test_ancestry() -> None:
    history = [Candidate(i, {"program": ""}, Evaluation(0.0), p) for i, p in enumerate([(), (0,), (0,), (2, 1)])]
    assert [c.uid for c in ancestry(history[3], history)] == [3, 2, 0]


def test_settings_that_make_no_sense(tmp_path: Path, task: str) -> None:
    for name, value, least in (("propose__plans__ancestors", "-1", 0), ("rollout__tested__rounds", "0", 1)):
        with pytest.raises(UserError, match=f"{name.replace('__', '.')} must be at least {least}, got"):
            run(tmp_path / "runs", task, Model(on), 2, **{name: value})
