"""Novelty by embeddings: by hand, against a real service on the loopback, and in a search that is resumed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.loopback import Answering, Scripted, chat_reply
from tests.search.test_novelty import archive

import evolvent as ev
from evolvent.core.errors import EngineError, UserError
from evolvent.engine.transport import Outcome
from evolvent.judge.embed_endpoint import vector_of
from evolvent.lineage.store import Store
from evolvent.run.session import resume
from evolvent.search.embedded import Embedded, cosine

PROGRAM = "import math\n# EVOLVE-BLOCK-START\n{}\n# EVOLVE-BLOCK-END\n"
KEY = "rollout.write.novel"
RULE = {KEY: "evolvent.search.embedded:Embedded", "rollout.write.kinds": {"diff": 0.0, "rewrite": 1.0, "cross": 0.0}}


def angles(degrees: dict[str, float]) -> Embedded:
    """The rule, with texts as unit vectors at these angles."""
    rule = Embedded(threshold=0.9)
    rule.embed = lambda texts: np.array(
        [[math.cos(math.radians(degrees[t])), math.sin(math.radians(degrees[t]))] for t in texts]
    )
    return rule


@pytest.mark.parametrize(("degree", "novel"), [(20.0, False), (25.0, False), (26.0, True), (90.0, True)])
def test_the_threshold_is_one_of_cosines(degree: float, novel: bool) -> None:  # arccos 0.9 = 25.84 degrees
    rule = angles({"a = 1": 0.0, "b = 2": degree, "c = 3": 180.0})
    assert rule("b = 2", archive(["a = 1", "c = 3"])) is novel
    assert rule("b = 2", archive([]))


def test_what_may_not_change_does_not_count() -> None:
    seen: list[str] = []

    def embed(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return np.eye(len(texts), 8)

    rule = Embedded()
    rule.embed = embed
    assert rule(PROGRAM.format("x = 1"), archive([PROGRAM.format("x = 2")]))
    assert seen == ["x = 1", "x = 2"]
    assert rule(PROGRAM.format("x = 3"), archive([PROGRAM.format("x = 2")]))
    assert seen == ["x = 1", "x = 2", "x = 3"]  # members are embedded once


def test_who_has_no_embedding_passes() -> None:
    def fails(texts: list[str]) -> np.ndarray:
        raise EngineError("no")

    rule = Embedded()
    rule.embed = fails
    assert rule("x = 1", archive(["x = 1"]))


def test_cosine() -> None:
    assert cosine(np.array([3.0, 4.0]), np.array([6.0, 8.0])) == pytest.approx(1)
    assert cosine(np.array([1.0, 0.0]), np.array([1.0, 1.0])) == pytest.approx(math.sqrt(0.5))
    assert cosine(np.zeros(2), np.ones(2)) == 0.0


def service(a: Answering) -> None:
    """Writes constants, one after another; embeds a text by its number, so that 1 to 9 are alike."""
    if "input" in a.body:
        number = int("".join(c for c in a.body["input"] if c.isdigit()) or 0)
        vector = [1.0, 0.0] if number < 10 else [0.0, 1.0]
        a.say({"data": [{"embedding": vector, "index": 0}], "usage": {"prompt_tokens": 5, "total_tokens": 5}})
        return
    asked = sum("messages" in body for body in a.server.owner.bodies)  # type: ignore[attr-defined]
    a.say(chat_reply(f"```python\nVALUE = {asked if asked < 4 else 30}\n```"))


@pytest.fixture
def task(tmp_path: Path) -> str:
    """Whose value is the program's constant."""
    (tmp_path / "first.py").write_text("VALUE = 0\n")
    (tmp_path / "evaluator.py").write_text(
        "import runpy\ndef evaluate(path):\n    return float(runpy.run_path(path)['VALUE'])\n"
    )
    return f"program:{tmp_path}/evaluator.py:{tmp_path}/first.py"


def test_a_search_by_embeddings(tmp_path: Path, task: str) -> None:
    settings = {**RULE, f"{KEY}.embed.price": 2.0, "engine.prices": [0.0, 0.0], "rollout.write.attempts": 9}
    with Scripted(service) as server:
        run = ev.run("sequential-sampling", task, f"{server.url}#m", "2 steps", settings=settings, store=tmp_path / "a")
        values = [c["evaluation"]["value"] for c in run.view.candidates.values()]
        assert values == [0.0, 30.0]  # 1, 2 and 3 were too like 0
        embedded = [body for body in server.bodies if "input" in body]
        assert [body["model"] for body in embedded] == ["text-embedding-3-small"] * 5
        assert run.ledger.spent["method"]["money"] == pytest.approx(5 * 5 * 2.0 / 1e6)
        again = len(server.bodies)
        resumed = resume(Store(tmp_path / "a"), run.view.name, budget="3 steps")
        assert len(resumed.view.candidates) == 3
        new = [body["input"] for body in server.bodies[again:] if "input" in body]
        assert set(new) <= {"VALUE = 30"}  # nothing is paid twice


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({f"{KEY}.threshold": 1.5}, "at most 1"),
        ({f"{KEY}.embed.price": -1.0}, "at least 0"),
    ],
)
def test_settings_that_make_no_sense(tmp_path: Path, task: str, settings: dict[str, float], told: str) -> None:
    with Scripted(service) as server, pytest.raises(UserError, match=told):
        ev.run("hill-climbing", task, f"{server.url}#m", "2 steps", settings=RULE | settings, store=tmp_path / "a")


def test_embeddings_need_a_service(tmp_path: Path, task: str) -> None:
    with pytest.raises(UserError, match="behind none; name one"):
        ev.run("hill-climbing", task, "none", "2 steps", settings=RULE, store=tmp_path / "a")


def test_another_service(tmp_path: Path, task: str) -> None:
    with Scripted(service) as writer, Scripted(service) as embedder:
        settings = {**RULE, f"{KEY}.embed.model": f"{embedder.url}#small"}
        ev.run("hill-climbing", task, f"{writer.url}#m", "2 steps", settings=settings, store=tmp_path / "a")
        assert embedder.bodies
        assert {body["model"] for body in embedder.bodies} == {"small"}
        assert not any("input" in body for body in writer.bodies)


@pytest.mark.parametrize("reply", [{"data": []}, {"data": [{"embedding": ["x"]}]}, {"data": [{"embedding": []}]}, {}])
def test_replies_that_hold_no_embedding(reply: dict[str, object]) -> None:
    with pytest.raises(EngineError, match="holds no embedding"):
        vector_of(Outcome(reply))


def test_a_search_goes_on_without_embeddings(tmp_path: Path, task: str) -> None:
    def act(a: Answering) -> None:
        if "input" in a.body:
            a.say({"error": "no such thing"}, 400)
        else:
            service(a)

    with Scripted(act) as server:
        run = ev.run("hill-climbing", task, f"{server.url}#m", "2 steps", settings=RULE, store=tmp_path / "a")
    assert len(run.view.candidates) > 1
