"""Notes and instructions beside a search, over a real endpoint on loopback whose answers follow a script."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Answering, Scripted, chat_reply

from evolvent.core.errors import UserError
from evolvent.lineage.store import Store
from evolvent.run.assemble import assemble
from evolvent.run.result import Progress
from evolvent.run.session import Session, begin, resume
from evolvent.run.spec import RunSpec
from evolvent.search.instructions import FIRST, Instructions

GOOD = "Move x by a lot."


class Model:
    """Writes diffs that move x; under `GOOD` by more. Answers other prompts by their kind."""

    def __init__(self) -> None:
        self.lock, self.asked = threading.Lock(), Counter[str]()
        self.shown: list[str] = []

    def __call__(self, a: Answering) -> None:
        system = [m["content"] for m in a.body["messages"] if m["role"] == "system"]
        shown = "\n".join(system)
        kind = next((k for k, mark in MARKS.items() if mark in shown), "write")
        with self.lock:
            self.asked[kind] += 1
            number = self.asked.total()
        if kind != "write":
            a.say(chat_reply(ANSWERS[kind]))
            return
        with self.lock:
            self.shown.append(shown)
        line = next(line for line in shown.split("\n") if line.startswith("    x = "))
        x = float(line.partition("=")[2])
        new = f"    x = {x + (0.05 if GOOD in shown else -0.01) + number * 1e-6}"
        a.say(chat_reply(f"<<<<<<< SEARCH\n{line}\n=======\n{new}\n>>>>>>> REPLACE"))


MARKS = {
    "summary": "Say in at most five lines",
    "notes": "You keep the notes",
    "recommend": "Recommend at most",
    "instruct": "Rewrite this one",
    "novelty": "NEW or the word SAME",
}
ANSWERS = {
    "summary": "It moves x.",
    "notes": "Moving x helps.",
    "recommend": "Here they are:\n1. Move x on.\n2) Move y.\n- Try both.\n",
    "instruct": GOOD,
    "novelty": "SAME, but for a number.",
}


def run(recipe: str, folder: Path, task: str, model: Scripted, steps: int = 24, **settings: str) -> Any:
    fixed = {f"rollout.write.kinds.{k}": str(float(k == "diff")) for k in ("diff", "rewrite", "cross")}
    named = {name.replace("__", "."): value for name, value in settings.items()}
    spec = RunSpec(recipe, task, f"{model.url}#m", f"{steps} steps", 1, {**fixed, **named})
    return begin(spec, folder, logs=("jsonl",))


def test_the_scratchpad_sums_up_and_recommends(tmp_path: Path, task: str) -> None:
    script = Model()
    with Scripted(script) as server:
        result = run("shinka-evolve", tmp_path / "runs", task, server, 24)
    found = [c for c in result.view.candidates.values() if c["parents"]]
    # after 10 and after 20 candidates, the seed program among them
    valid = [c for c in list(result.view.candidates.values())[:20] if c["evaluation"]["value"] is not None]
    assert script.asked["summary"] == len(valid)
    assert script.asked["notes"] == script.asked["recommend"] == 2
    assert all("told" not in c["notes"] for c in found[:9])
    advice = [c["notes"]["told"][0].split("\n")[-1] for c in found[9:]]
    assert set(advice) == {"Move x on.", "Move y.", "Try both."}
    told = [[line for line in set(advice) if line in shown] for shown in script.shown]
    assert {len(lines) for lines in told[:9]} == {0}
    assert {len(lines) for lines in told[-10:]} == {1}  # one of them in each prompt
    assert result.view.curve("recommendations")[-1][1] == 3


@pytest.mark.slow
def test_instructions_that_pay_are_given_more_often(tmp_path: Path, task: str) -> None:
    script = Model()
    with Scripted(script) as server:
        result = run("alphaevolve", tmp_path / "runs", task, server, 60)
    told = [c["notes"]["told"][0] for c in result.view.candidates.values() if c["parents"]]
    assert set(told[:9]) == {FIRST}
    late = Counter(told[30:])
    assert late[GOOD] > late[FIRST] > 0
    assert script.asked["instruct"] == 5
    assert result.view.curve("instructions")[-1][1] == 2  # the same one again is none


def test_scores_of_instructions() -> None:
    part = Instructions(inner=None)
    assert part.score(FIRST) == 0.5
    part.counts[FIRST] = [3, 4]
    assert part.score(FIRST) == pytest.approx(4 / 6)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["shinka-evolve", "alphaevolve"])
def test_a_search_with_notes_goes_on_where_it_was(tmp_path: Path, task: str, recipe: str) -> None:
    fixed = {f"rollout.write.kinds.{k}": str(float(k == "diff")) for k in ("diff", "rewrite", "cross")}
    found = []
    for stop_at in (0, 12):
        with Scripted(lambda a: a.say(chat_reply(steady(a)))) as server:
            store = Store(tmp_path / f"runs{stop_at}")
            spec = RunSpec(recipe, task, f"{server.url}#m", "16 steps", 1, fixed)
            session = Session(store, spec, "one", logs=("jsonl",))

            def stop(progress: Progress, session: Session = session, stop_at: int = stop_at) -> None:
                if progress.t == stop_at:
                    session.stopping.set()

            session.watch = stop
            result = session.start(assemble(spec))
            if stop_at:
                assert result.interrupted
                result = resume(store, "one")
            rows = [{**c, "notes": c["notes"].get("told", [])} for c in result.view.candidates.values()]
            found.append((rows, len(server.bodies)))
    assert found[0] == found[1]  # nothing is decided differently, and nothing paid twice


def steady(a: Answering) -> str:
    """An answer that depends on the prompt alone."""
    shown = "\n".join(m["content"] for m in a.body["messages"] if m["role"] == "system")
    kind = next((k for k, mark in MARKS.items() if mark in shown), "write")
    line = next((line for line in shown.split("\n") if line.startswith("    x = ")), "")
    return ANSWERS.get(kind, f"<<<<<<< SEARCH\n{line}\n=======\n{line}1\n>>>>>>> REPLACE")


ADVICE = "Earlier programs of this search suggest"


@pytest.mark.parametrize(("every", "asked"), [("", 1), ("0", 0)])
def test_a_scratchpad_that_is_off_asks_nobody(tmp_path: Path, task: str, every: str, asked: int) -> None:
    script = Model()
    settings = {"propose__scratchpad__every": every} if every else {}
    with Scripted(script) as server:
        result = run("shinka-evolve", tmp_path / "runs", task, server, 11, **settings)
    assert len(script.shown) >= 10
    assert script.asked["notes"] == script.asked["recommend"] == asked
    assert (script.asked["summary"] > 0) == asked
    assert any(ADVICE in shown for shown in script.shown) == asked
    assert any("told" in c["notes"] for c in result.view.candidates.values()) == asked


@pytest.mark.parametrize(("every", "asked"), [("", 1), ("0", 0)])
def test_instructions_that_are_off_stand_in_no_prompt(tmp_path: Path, task: str, every: str, asked: int) -> None:
    script = Model()
    settings = {"propose__instructions__every": every} if every else {}
    with Scripted(script) as server:
        result = run("alphaevolve", tmp_path / "runs", task, server, 11, **settings)
    children = [c for c in result.view.candidates.values() if c["parents"]]
    assert script.asked["instruct"] == asked
    assert {bool(c["notes"].get("told")) for c in children} == {bool(asked)}
    assert any(text in shown for shown in script.shown for text in (FIRST, GOOD)) == asked


def test_settings_that_make_no_sense(tmp_path: Path, task: str) -> None:
    with Scripted(Model()) as server:
        for name, value, told in (
            ("propose__scratchpad__every", "-1", "propose.scratchpad.every must be at least 0, got -1"),
            ("propose__scratchpad__most", "0", "at least 1"),
            ("propose__scratchpad__prompts", str(tmp_path / "nowhere"), "no folder"),
            ("rollout__write__openings", "9", "from 1 to 4"),
        ):
            with pytest.raises(UserError, match=told):
                run("shinka-evolve", tmp_path / "runs", task, server, 2, **{name: value})
