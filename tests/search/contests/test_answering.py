"""With a model: it writes the SQL and the agents; by a scripted endpoint."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

from tests.loopback import Answering, Scripted, chat_reply

from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.tasks.worlds.sql.agents import SEED
from evolvent.tasks.worlds.sql.questions import questions

RIGHT = {q.text: q.sql for name in ("train-0", "train-1", "test-0") for q in questions(name)}


def test_it_writes_the_queries_and_the_agents(tmp_path: Path, sandboxed: str) -> None:
    lock, births, asked = threading.Lock(), [], []

    def act(a: Answering) -> None:
        shown = "\n".join(m["content"] for m in a.body["messages"])
        question = re.search(r"The question: (.*)", shown)
        if question is None:
            with lock:
                births.append(shown)
                text = SEED.replace("Write one query", f"Version {len(births)}: write one query")
            a.say(chat_reply("I have no agent." if len(births) == 1 else f"```python\n{text}```"))
            return
        with lock:
            asked.append(shown)
        good = "Version" in shown
        sql = RIGHT.get(question[1], "SELECT 1") if good else "SELECT 'wrong'"
        a.say(chat_reply(f"Here it is.\n```sql\n{sql}\n```" if len(asked) % 7 else "I do not know."))

    settings: dict[str, Any] = {"propose.databases": "1", "propose.questions": "5"}
    with Scripted(act) as server:
        spec = RunSpec("robophd", "program:sql:2", f"{server.url}#m", "20 evaluations", seed=1, settings=settings)
        result = begin(spec, tmp_path / "runs", logs=("jsonl",), final=False)
    assert result.view.errors == {}
    found = [*result.view.candidates.values()]
    assert [c["operator"] for c in found[:2]] == ["seed", "rewrite"]
    assert "An earlier answer could not be used" in births[1]
    assert "questions failed when it was evaluated last" in births[0]
    assert "Agent 0" in births[0]
    assert "accuracy" in births[0]
    assert all(
        ("table " in shown and "column " in shown and "Write one query" in shown) or "Version" in shown
        for shown in asked
    )
    best = [c["evaluation"]["metrics"] for c in found]
    contests = [{k: v for k, v in m.items() if k.startswith("contest/")} for m in best]
    assert contests[0]["contest/1"] == 0
    assert any(max(c.values(), default=0) >= 0.6 for c in contests[1:])
    assert "no block of SQL" in "".join(str(c["evaluation"]["feedback"]) for c in found)
