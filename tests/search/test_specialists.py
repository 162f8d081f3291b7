"""Specialists: who may change what, what they are told, what is refused, and second trials."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Answering, Scripted, chat_reply
from tests.search.test_segments import SOURCE

from evolvent.core.errors import UserError
from evolvent.run.assemble import assemble
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.blackboard import pattern_of
from evolvent.search.scopes import radius, scopes, within_scope

EVALUATOR = """
import importlib.util


def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("candidate", program_path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {"combined_score": float(module.run())}
"""


@pytest.fixture
def files(tmp_path: Path, sandboxed: str) -> str:
    (tmp_path / "evaluator.py").write_text(EVALUATOR)
    (tmp_path / "first.py").write_text(SOURCE)
    return f"program:{tmp_path / 'evaluator.py'}:{tmp_path / 'first.py'}"


def spec(task: str = "program:landscape", model: str = "none", steps: int = 6, **settings: str) -> RunSpec:
    named = {"propose.children": "4"} | {name.replace("__", "."): value for name, value in settings.items()}
    return RunSpec("auto-research-specialists", task, model, f"{steps} steps", seed=3, settings=named)


def failed(c: Any) -> bool:
    return c["evaluation"]["value"] is None


def test_rules_keep_to_scopes_and_make_no_failed_edit_again(tmp_path: Path, files: str) -> None:
    result = begin(spec(files, steps=8), tmp_path / "runs", logs=("jsonl",))
    found = result.view.candidates
    texts = {uid: c["payload"]["program"] for uid, c in found.items()}
    agents, patterns, repeated = set(), {}, 0
    best = 0
    for uid, c in sorted(found.items()):
        if not c["parents"]:
            continue
        (parent,) = c["parents"]
        notes = c["notes"]
        agents.add(notes["agent"])
        scope = next(part for part in scopes(texts[parent]) if part.name == notes["scope"])
        assert within_scope(texts[parent], texts[uid], scope)
        assert radius(texts[parent], texts[uid]) <= 12
        before = [u for u in found if found[u]["step"] < c["step"] and not failed(found[u])]
        best = max(before, key=lambda u: (found[u]["evaluation"]["value"], -u))
        assert parent == best  # the new parent is whoever improved
        if notes["trial"] == "trial" and c["operator"] != "none":
            assert patterns.get(pattern_of(scope.name, texts[parent], texts[uid]), c["step"]) >= c["step"]
        if failed(c):
            pattern = pattern_of(scope.name, texts[parent], texts[uid])
            repeated += patterns.get(pattern, c["step"]) < c["step"]
            patterns.setdefault(pattern, c["step"])
    assert agents == {"first", "second"}
    per_step = [sum(c["step"] == t for c in found.values()) for t in range(8)]
    followed = dict(result.view.curve("followed"))
    assert per_step == [1, *(4 + int(followed[t]) for t in range(1, 8))]
    assert result.view.errors == {}
    values = [c["evaluation"]["value"] for c in found.values() if not failed(c)]
    assert max(values) > found[0]["evaluation"]["value"]


def test_controls(tmp_path: Path, files: str) -> None:
    single = begin(
        spec(files, rollout__team="generic", rollout__agents="1"), tmp_path / "single", logs=("jsonl",)
    ).view.candidates
    assert {c["notes"].get("agent") for c in single.values()} == {None, "agent 1"}
    assert {c["notes"].get("scope") for c in single.values()} == {None, ""}
    alone = begin(spec(files, rollout__lineage="false", rollout__followed="false"), tmp_path / "alone", logs=("jsonl",))
    assert sum(x for _, x in alone.view.curve("avoided")) == 0
    assert sum(x for _, x in alone.view.curve("followed")) == 0
    assert [sum(c["step"] == t for c in alone.view.candidates.values()) for t in range(6)] == [1, 4, 4, 4, 4, 4]


class Team:
    """Specialists that follow a script: `edit(scope, number)` gives the lines to find and to put there."""

    def __init__(self, follow: str, edits: dict[str, list[tuple[str, str]]]) -> None:
        self.lock, self.follow, self.edits = threading.Lock(), follow, edits
        self.trials: list[str] = []
        self.reviews: list[str] = []
        self.count = dict.fromkeys(edits, 0)

    def __call__(self, a: Answering) -> None:
        shown = "\n".join(m["content"] for m in a.body["messages"] if m["role"] == "system")
        with self.lock:
            if "A second trial is made only if" in shown:
                self.reviews.append(shown)
                a.say(chat_reply(f"Well.\nFOLLOW-UP: {self.follow}"))
                return
            self.trials.append(shown)
            wanted = re.search(r"specialist for (\w+)", shown)
            name = wanted[1] if wanted else ""
            edits = self.edits[name]
            old, new = edits[min(self.count[name], len(edits) - 1)]
            self.count[name] += 1
        text = f"HYPOTHESIS: {new.strip()} is better.\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE"
        a.say(chat_reply(text))


RATE = "        rate = 0.5"
MULTIPLE = "    y = x * 2"


def written(tmp_path: Path, files: str, team: Team, steps: int = 3, **settings: str) -> Any:
    with Scripted(team) as server:
        given = {"propose__children": "1", "rollout__write__attempts": "1", **settings}
        return begin(spec(files, f"{server.url}#m", steps, **given), tmp_path / "runs", logs=("jsonl",))


def test_an_edit_out_of_scope_is_refused_before_it_is_evaluated(tmp_path: Path, files: str) -> None:
    team = Team("none", {"first": [(RATE, RATE + "0")], "second": [(MULTIPLE, MULTIPLE + "0")]})
    result = written(tmp_path, files, team)
    children = [c for c in result.view.candidates.values() if c["parents"]]
    assert [c["evaluation"]["status"] for c in children] == ["scope", "scope"]
    assert all("goes beyond" in c["evaluation"]["feedback"] for c in children)
    assert result.ledger.of("verifier_calls") == 1
    assert [x for _, x in result.view.curve("refused")] == [1, 1]
    assert not team.reviews
    assert "scope" in team.trials[1].split("The latest trials")[1]


def test_an_edit_of_too_many_lines_is_refused(tmp_path: Path, files: str) -> None:
    team = Team("none", {n: [(old, f"{old}\n{old}9\n{old}8")] for n, old in (("first", MULTIPLE), ("second", RATE))})
    result = written(tmp_path, files, team, 2, rollout__reach="1")
    assert "changes 2 lines, at most 1" in result.view.candidates[1]["evaluation"]["feedback"]


def test_the_blackboard_is_in_every_prompt_unless_it_is_off(tmp_path: Path, files: str) -> None:
    edits = {"first": [(MULTIPLE, "    y = x / 0")], "second": [(RATE, "        rate = 1 / 0")]}
    team = Team("none", edits)
    result = written(tmp_path, files, team, 4)
    children = [c for c in result.view.candidates.values() if c["parents"]]
    assert all(c["evaluation"]["status"] == "raised" for c in children)
    for number, shown in enumerate(team.trials):
        assert shown.count(", crash: ") == number
        assert ("These edits failed" in shown) == any(
            c["notes"]["scope"] == children[number]["notes"]["scope"] for c in children[:number]
        )
        own = children[number]["notes"]["scope"]
        other = "second" if own == "first" else "first"
        assert f"specialist for {own}." in shown.replace(". You", ". You")
        assert f"{other} belong to others" in shown
    assert children[0]["notes"]["hypothesis"].endswith("is better.")
    earlier = [{c["notes"]["scope"] for c in children[:i]} for i in range(3)]
    expected = [float(c["notes"]["scope"] in before) for c, before in zip(children, earlier, strict=True)]
    assert [x for _, x in result.view.curve("repeated")] == expected
    assert 1.0 in expected  # three trials by two agents
    (tmp_path / "off").mkdir()
    quiet = Team("none", edits)
    written(tmp_path / "off", files, quiet, 4, rollout__lineage="false")
    assert not any("crash" in shown or "failed" in shown.split("HYPOTHESIS")[1] for shown in quiet.trials)
    assert not any("The latest trials" in shown for shown in quiet.trials)


def test_a_concrete_follow_up_is_a_second_trial_of_the_same_run(tmp_path: Path, files: str) -> None:
    edits = {
        "first": [(MULTIPLE, "    y = x * 3"), (MULTIPLE, "    y = x * 4")],
        "second": [(RATE, "        rate = 0.7"), (RATE, "        rate = 0.9")],
    }
    team = Team("move it further", edits)
    result = written(tmp_path, files, team, 2)
    one, other = (c for c in result.view.candidates.values() if c["parents"])
    assert (one["notes"]["trial"], other["notes"]["trial"]) == ("trial", "follow-up")
    assert one["notes"]["agent"] == other["notes"]["agent"]
    assert one["step"] == other["step"] == 1
    assert other["evaluation"]["value"] > one["evaluation"]["value"] > result.view.candidates[0]["evaluation"]["value"]
    assert "move it further" in team.trials[1]
    assert "move it further" not in team.trials[0]
    assert result.view.curve("followed")[-1][1] == 1
    assert result.ledger.of("verifier_calls") == 3
    for follow, off in (("none", {}), ("move it", {"rollout__followed": "false"})):
        folder = tmp_path / (follow + str(len(off)))
        folder.mkdir()
        again = Team(follow, edits)
        assert len(written(folder, files, again, 2, **off).view.candidates) == 2
        assert bool(again.reviews) == (not off)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"rollout__team": "crowd"}, "specialists or generic"),
        ({"rollout__agents": "2"}, "team=generic"),
        ({"rollout__reach": "-1"}, "at least 0"),
        ({"rollout__tries": "0"}, "at least 1"),
        ({"rollout__prompts": "/no/such/folder"}, "there is no folder"),
    ],
)
def test_settings_that_cannot_work(settings: dict[str, str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        assemble(spec(**settings))
