"""Evaluations that cost money: none is paid twice when a step is done again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Answering, Scripted, chat_reply

from evolvent.lineage.evaluations import Evaluations, begun
from evolvent.lineage.store import Store
from evolvent.run.session import begin, resume
from evolvent.run.spec import RunSpec
from evolvent.tasks.texts.module import read, written
from evolvent.tasks.texts.task import TextsFile, TextsTask

CODE = """
from pathlib import Path

seed_candidate = {{"system": "Answer"}}


def evaluate(texts):
    with Path({paid!r}).open("a") as file:
        file.write(texts["system"] + "\\n")
    return len(texts["system"])
"""
SETTINGS = {"propose.children": "4", "rollout.write.kinds": {"diff": 0.0, "rewrite": 1.0, "cross": 0.0}}


def test_each_is_handed_out_once_and_only_what_came_after(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = Evaluations(store, "r")
    first.add("a", {"n": 1})
    store.add("r", "step", {"t": 0})
    first.add("a", {"n": 2})
    first.add("b", {"n": 3})
    first.add("a", {"n": 4})
    store.add("r", "step", {"t": 1})
    store.add("other", "step", {"t": 0})
    assert first.take("a") is None  # a run that goes on pays for what it asks for
    again = Evaluations(store, "r", begun(store, "r", 1))
    assert [again.take(key) for key in ("a", "b", "a", "a", "b")] == [{"n": 2}, {"n": 3}, {"n": 4}, None, None]
    whole = Evaluations(store, "r", begun(store, "r", 0))
    assert whole.take("a") == {"n": 1}
    assert Evaluations(store, "r", begun(store, "r", 2)).take("a") is None


def longer(a: Answering) -> None:
    """A model that adds a word: how long the text was."""
    prompt = "\n".join(message["content"] for message in a.body["messages"])
    [program, *_] = [part for part in re.findall(r"```python\n(.*?)```", prompt, re.DOTALL) if "texts = {}" in part]
    texts = read(program)
    texts["system"] += f" {len(texts['system'])}"
    a.say(chat_reply(f"```python\n{written(texts)}```"))


@pytest.mark.parametrize("stop", [0, 3, 9])
def test_a_search_over_texts_that_was_killed_pays_for_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    asked, calls = TextsTask._asked, [0]

    def killed(self: TextsTask, file: TextsFile, job: Mapping[str, Any]) -> Any:
        calls[0] += 1
        if calls[0] == stop + 1:
            raise KeyboardInterrupt
        return asked(self, file, job)

    paid = {}
    with Scripted(longer) as server:
        for name in ("alone", "killed"):
            store = Store(tmp_path / name)
            (tmp_path / f"{name}.py").write_text(CODE.format(paid=str(tmp_path / f"{name}.txt")))
            spec = RunSpec(
                "hill-climbing", f"texts:{tmp_path / name}.py", f"{server.url}#m", "4 steps", settings=SETTINGS
            )
            with monkeypatch.context() as patch:
                if name == "killed":
                    patch.setattr(TextsTask, "_asked", killed)
                    with pytest.raises(KeyboardInterrupt):
                        begin(spec, store, "r")
                else:
                    begin(spec, store, "r")
            if name == "killed":
                resume(store, "r")
            paid[name] = (tmp_path / f"{name}.txt").read_text().splitlines()
    assert paid["killed"] == paid["alone"]
    assert len(paid["alone"]) > 10
