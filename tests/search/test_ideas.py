"""Ideas in epochs: how many exploit, what they are made of, and how far from what is known the others are."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.loopback import Answering, Scripted, chat_reply
from tests.search.test_segments import SOURCE

from evolvent.core.errors import UserError
from evolvent.run.assemble import assemble
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.candidate import Candidate
from evolvent.search.changes import change, overlap
from evolvent.search.ideas import TOLD, Epochs, ideas_of, joined, read_ideas
from evolvent.tasks.evaluation import Evaluation, invalid

NAME = "execution-grounded-research"


def spec(task: str = "program:landscape", model: str = "none", steps: int = 8, **settings: str) -> RunSpec:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return RunSpec(NAME, task, model, f"{steps} steps", seed=1, settings=named)


def by_step(candidates: dict[int, Any]) -> dict[int, list[Any]]:
    found = defaultdict(list)
    for c in candidates.values():
        found[c["step"]].append(c)
    return found


def test_the_share_that_exploits() -> None:
    expected = [0, 0.5, 0.6, 0.6, 0.7, 0.7, 0.8, 0.8, 0.8, 0.8]
    assert [Epochs().share(e) for e in range(10)] == pytest.approx(expected)
    assert [Epochs(exploit=0.0, rise=0.0).share(e) for e in range(4)] == [0, 0, 0, 0]


def made(uid: int, text: str, evaluation: Evaluation, *told: str) -> Candidate:
    notes = {"told": [TOLD + words for words in told]} if told else {}
    return Candidate(uid, {"program": text}, evaluation, (0,) if uid else (), notes=notes)


def test_an_idea_counts_once_with_its_best_result() -> None:
    history = [
        made(0, "a = 1\n", Evaluation(0.5)),
        made(1, "a = 2\n", Evaluation(0.6)),
        made(2, "a = 3\n", Evaluation(0.7), "More of it."),
        made(3, "a = 4\n", Evaluation(0.8), "more  of it."),
        made(4, "a = 5\n", invalid("too good", "gate")),
        made(5, "# again\na = 2\n", Evaluation(0.55)),
        made(6, "a = 1 / 0\n", invalid("division by zero", "raised")),
    ]
    ideas = ideas_of(history)
    assert [(idea.text, idea.best.uid) for idea in ideas] == [("", 1), ("more  of it.", 3), ("", 6)]
    assert ideas[0].change == {"- a = 1", "+ a = 2"}


def test_changes_of_two_ideas_are_joined() -> None:
    one, other = SOURCE.replace("x * 2", "x * 3"), SOURCE.replace("rate = 0.5", "rate = 0.1")
    assert joined(SOURCE, one, other) == one.replace("rate = 0.5", "rate = 0.1")
    assert joined(SOURCE, one, SOURCE) == one
    assert joined(SOURCE, one, SOURCE.replace("x * 2", "x * 4")) == one  # the line is not there any more


def test_epochs_without_a_model(tmp_path: Path) -> None:
    result = begin(spec(), tmp_path / "runs", logs=("jsonl",))
    found, exploit, apart = (result.view.candidates, *(dict(result.view.curve(n)) for n in ("exploit", "apart")))
    seed = found[0]
    base, before = seed["evaluation"]["value"], set()
    text = seed["payload"]["program"]
    for step, children in sorted(by_step(found).items()):
        if step == 0:
            continue
        good = {uid for uid, c in found.items() if 0 < c["step"] < step and (c["evaluation"]["value"] or -9) > base}
        count = round([0, 0.5, 0.6, 0.6, 0.7, 0.7, 0.8][step - 1] * 8) if good else 0
        built = [c for c in children if list(c["parents"]) != [0]]
        assert len(children) == 8
        assert len(built) == count
        assert exploit[step] == pytest.approx(count / 8)
        assert {uid for c in built for uid in c["parents"]} <= good
        far = []
        for c in children:
            if list(c["parents"]) == [0]:
                own = change(text, c["payload"]["program"])
                far.append(1 - max((overlap(own, other) for other in before), default=0.0))
        assert apart[step] == pytest.approx(np.mean(far))
        before |= {change(text, c["payload"]["program"]) for c in children}
    assert any(c["operator"] == "combine" for c in found.values())
    for c in found.values():
        if c["operator"] == "combine":
            one, other = (found[uid]["payload"]["program"] for uid in c["parents"])
            assert change(one, c["payload"]["program"]) & change(text, other)


def test_each_mechanism_is_switched_off(tmp_path: Path) -> None:
    never = begin(spec(propose__exploit="0", propose__rise="0"), tmp_path / "explore", logs=("jsonl",))
    assert {tuple(c["parents"]) for c in never.view.candidates.values()} == {(), (0,)}
    refined = begin(spec(rollout__mutate__combine="0"), tmp_path / "refine", logs=("jsonl",))
    assert all(c["operator"] != "combine" for c in refined.view.candidates.values())
    only = {"propose__exploit": "0", "propose__rise": "0"}
    anything = begin(spec(rollout__mutate__alike="2", **only), tmp_path / "anything", logs=("jsonl",))
    mean = {r.view is anything.view: np.mean([x for _, x in r.view.curve("apart")]) for r in (never, anything)}
    assert mean[False] > mean[True]


class Researcher:
    """Has ideas for x, good and bad in turn, and implements them; the first diff of each does not apply."""

    def __init__(self) -> None:
        self.lock, self.number = threading.Lock(), 0
        self.prompts: list[str] = []
        self.tried: set[str] = set()
        self.written: list[str] = []

    def __call__(self, a: Answering) -> None:
        shown = "\n".join(m["content"] for m in a.body["messages"] if m["role"] == "system")
        with self.lock:
            if wanted := re.search(r"Give (\d+) idea", shown):
                self.prompts.append(shown)
                texts = []
                for _ in range(int(wanted[1])):
                    self.number += 1
                    x = 1 + self.number / 10 if self.number % 2 else 1 - self.number / 10
                    texts.append(f"[Idea]\nset x to {x:.2f}\n[End]")
                a.say(chat_reply("\n".join(texts)))
                return
            self.written.append(shown)
            x = re.search(r"set x to (\S+)", shown)[1]  # type: ignore[index]
            line = "    x = 1.0" if x in self.tried else "    x = 7.0"
            self.tried.add(x)
        a.say(chat_reply(f"<<<<<<< SEARCH\n{line}\n=======\n    x = {x}\n>>>>>>> REPLACE"))


def test_with_a_model_ideas_are_words_and_each_is_a_diff_of_the_seed(tmp_path: Path, task: str) -> None:
    model = Researcher()
    with Scripted(model) as server:
        given = spec(task, f"{server.url}#m", 4, propose__children="4")
        result = begin(given, tmp_path / "runs", logs=("jsonl",))
    found = result.view.candidates
    children = [c for c in found.values() if c["parents"]]
    assert len(children) == 12
    for c in children:
        assert list(c["parents"]) == [0]
        (told,) = c["notes"]["told"]
        x = float(told.removeprefix(TOLD + "set x to "))
        assert c["evaluation"]["value"] == pytest.approx(-((x - 3) ** 2) - 4)
    assert len(model.written) == 24  # the second diff of each idea applies
    assert sum("could not be used" in shown for shown in model.written) == 12
    assert all("    x = 1.0" in shown for shown in model.written)
    building = [shown for shown in model.prompts if "building on these" in shown]
    others = [shown for shown in model.prompts if "building on these" not in shown]
    assert [re.search(r"Give (\d+)", shown)[1] for shown in building] == ["2", "2"]  # type: ignore[index]
    assert [re.search(r"Give (\d+)", shown)[1] for shown in others] == ["4", "2", "2"]  # type: ignore[index]
    for shown in building:
        values = [float(v) for v in re.findall(r"^Value (\S+):$", shown, re.MULTILINE)]
        assert values
        assert all(v > -8 for v in values)
    tried = [len(re.findall(r"^Value ", shown, re.MULTILINE)) for shown in others]
    assert tried == [0, 4, 8]
    assert [x for _, x in result.view.curve("ideas")] == [0, 4, 8]


def test_ideas_are_read() -> None:
    assert read_ideas("Well.\n[Idea]\none\n[End]\n[Idea] two\n[Idea]three[End]") == ["one", "two", "three"]
    assert read_ideas("none at all") == []


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("propose__exploit", "1.5", "propose.exploit must be at most 1, got 1.5"),
        ("propose__every", "0", "at least 1"),
        ("propose__prompts", "/no/such/folder", "there is no folder"),
        ("rollout__mutate__combine", "-1", "rollout.mutate.combine must be at least 0"),
        ("rollout__mutate__alike", "0", "above 0"),
    ],
)
def test_settings_that_cannot_work(name: str, value: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        assemble(spec(**{name: value}))
