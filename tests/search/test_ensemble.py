"""Several models that write, each behind a real endpoint on loopback whose answers follow a script."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Answering, Scripted, chat_reply

from evolvent.core.errors import UserError
from evolvent.run.result import Result
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.ensemble import Ensemble

ENSEMBLE = "rollout.write.ensemble."


@contextlib.contextmanager
def writer(change: float) -> Iterator[Scripted]:
    """A model that moves x by `change` in each program that it is shown."""

    def act(a: Answering) -> None:
        shown = str(a.body["messages"][0]["content"])
        line = next(line for line in shown.split("\n") if line.startswith("    x = "))
        x = float(line.partition("=")[2])
        with server.lock:
            number = len(server.bodies)
        new = f"    x = {x + change + number * 1e-6}"
        a.say(chat_reply(f"<<<<<<< SEARCH\n{line}\n=======\n{new}\n>>>>>>> REPLACE"))

    with Scripted(act) as server:
        yield server


def run(folder: Path, task: str, own: Scripted, other: Scripted, steps: int, **settings: str) -> Result:
    named = {ENSEMBLE + name.replace("__", "."): value for name, value in settings.items()}
    fixed = {
        "rollout.write.kinds.rewrite": "0",
        "rollout.write.kinds.cross": "0",
        ENSEMBLE + "models": f"{other.url}#m",
    }
    spec = RunSpec("hill-climbing", task, f"{own.url}#m", f"{steps} steps", 1, {**fixed, **named})
    return begin(spec, folder, logs=("jsonl",))


def written(result: Result) -> list[dict[str, Any]]:
    return [c for c in result.view.candidates.values() if c["parents"]]


@pytest.mark.slow
def test_shares_of_the_models(tmp_path: Path, task: str) -> None:
    with writer(0.01) as own, writer(0.02) as other:
        found = written(run(tmp_path / "runs", task, own, other, 9, shares="0.75,0.25"))
    asked = Counter(c["notes"]["model"] for c in found)
    assert asked == {f"{own.url}#m": len(own.bodies), f"{other.url}#m": len(other.bodies)}
    assert 32 <= asked[f"{own.url}#m"] <= 60  # of 64; P < 1e-4 outside
    assert all("usd" not in c["notes"] for c in found)


def test_a_bandit_asks_who_brings_something(tmp_path: Path, task: str) -> None:
    bandit = {"choice": "evolvent.search.choice:AsymmetricUCB", "choice__c": "0.1", "choice__epsilon": "0.1"}
    with writer(-0.5) as own, writer(0.05) as other:
        found = written(run(tmp_path / "runs", task, own, other, 7, prices="1,2", **bandit))
    late = Counter(c["notes"]["model"] for c in found[16:])
    assert late[f"{other.url}#m"] > 2 * late[f"{own.url}#m"]
    priced = [c["notes"]["usd"] for c in found if c["notes"]["model"] == f"{other.url}#m"]
    assert all(usd > 0 for usd in priced)


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(UserError, match="2 models need as many shares"):
        Ensemble(models=("openai:a",), shares=(1.0,)).check(None)
    with pytest.raises(UserError, match="give two for each"):
        Ensemble(models=("openai:a",), prices=(1.0,)).check(None)


def test_the_same_model_twice(tmp_path: Path, task: str) -> None:
    with writer(0.1) as own, pytest.raises(UserError, match="is there already"):
        run(tmp_path / "runs", task, own, own, 2)
