"""Inner runs of a model behind a scripted endpoint: it plays, writes guidance, and rewrites the strategy section."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.loopback import Answering, Scripted, chat_reply

from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.tasks.worlds.text_games.world import FOOTER, HEADER, Settings, inner_run, strategy_of

TASK = "program:text-games:games=1,episodes=2,limit=3"


class Model:
    """An actor who looks until guidance tells it to take things; an adviser who says so if its strategy does."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.shown: list[tuple[str, list[dict[str, str]]]] = []

    def __call__(self, a: Answering) -> None:
        messages = a.body["messages"]
        text = "\n".join(m["content"] for m in messages)
        if "You improve the strategy section" in text:
            kind, answer = "reflect", "I see.\n```\nTell the actor to take things.\nBe short.\n```"
        elif HEADER.split(".")[0] in text:
            kind = "advise"
            answer = "<learn>Use take.</learn>" if "take things" in text else "<learn>Look around.</learn>"
        else:
            kind, answer = "play", "I think.\n> look"
            here = text.rsplit("Here: ", 1)[1].split(".")[0].split("; ")[0]
            if "Use take." in messages[0]["content"] and here != "nothing":
                answer = f"take {here}" if "closed" not in here else f"open {here.split(' ')[0]}"
        with self.lock:
            self.shown.append((kind, messages))
        a.say(chat_reply(answer))


def test_a_model_plays_advises_and_reflects(tmp_path: Path) -> None:
    model = Model()
    with Scripted(model) as server:
        spec = RunSpec("meta-ttl", TASK, f"{server.url}#m", "2 steps", 1, {})
        result = begin(spec, tmp_path / "runs", logs=("jsonl",), final=False)
    kinds = [kind for kind, _ in model.shown]
    inner = ["play"] * 3 + ["advise"] + ["play"] * 3
    assert kinds[:7] == inner  # the seed program
    assert kinds[7:15] == [*inner, "reflect"]  # the parent, to be looked at
    assert kinds[15:22] == inner  # the child
    first, second = (model.shown[i][1] for i in (0, 4))
    assert [m["role"] for m in first] == ["system", "user"]
    assert "Look around." not in first[0]["content"]
    assert "Look around." in second[0]["content"]
    assert "<< " in first[1]["content"]
    advised = "\n".join(m["content"] for m in model.shown[3][1])
    assert FOOTER in advised
    assert advised.count("[ACTION] look") == 3
    history = "\n".join(m["content"] for m in model.shown[14][1])
    assert history.count("[ACTION] look") == 6
    assert "Look around." in history
    *_, child = result.view.candidates.values()
    assert strategy_of(child["payload"]["program"]) == ("Tell the actor to take things.", "Be short.")
    assert child["operator"] == "reflect"
    assert result.ledger.of("verifier_calls") == 3
    assert inner_run((), "manor-0", Settings(1, 2, 3)).logs[0].count("[ACTION]") == 3


def test_an_answer_without_a_section_is_not_valid(tmp_path: Path) -> None:
    class Silent(Model):
        def __call__(self, a: Answering) -> None:
            improve = "You improve the strategy section" in a.body["messages"][0]["content"]
            a.say(chat_reply("I do not know." if improve else "look"))

    with Scripted(Silent()) as server:
        spec = RunSpec("meta-ttl", TASK, f"{server.url}#m", "2 steps", 1, {})
        result = begin(spec, tmp_path / "runs", logs=("jsonl",), final=False)
    *_, child = result.view.candidates.values()
    assert child["evaluation"]["status"] == "unusable"
    assert child["evaluation"]["value"] is None
