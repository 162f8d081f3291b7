"""EvoMAS: edits of one component, crossing, memory, selection, and whole runs by rules and by a scripted endpoint."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.loopback import Answering, Scripted, chat_reply

from evolvent.core.errors import UserError
from evolvent.core.step import Step
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.archive import archive_of
from evolvent.search.teams.crossing import counterpart, crossed
from evolvent.search.teams.edits import COMPONENTS, Edit, applied, difference, possible
from evolvent.search.teams.evolve import TASK, picked, value_on
from evolvent.search.teams.experience import Experience, experience_of
from evolvent.search.teams.variation import mend, shares_of
from evolvent.tasks.evaluation import INSTANCE
from evolvent.tasks.worlds.workflow.diagnose import Fault
from evolvent.tasks.worlds.workflow.library import METHOD, STEPS
from evolvent.tasks.worlds.workflow.questions import question
from evolvent.tasks.worlds.workflow.seeds import CHAIN, CHECKED, PARALLEL, POOL
from evolvent.tasks.worlds.workflow.team import TeamError, check, read


@pytest.mark.parametrize("name", POOL)
def test_an_edit_changes_its_component_alone(name: str) -> None:
    team, made = POOL[name], Counter[str]()
    for component in COMPONENTS:
        for node in team.names:
            for i, edit in enumerate(possible(team, node, component)):
                try:
                    after = applied(team, edit, np.random.default_rng(i))
                except TeamError:
                    continue
                made[component] += 1
                assert read(after.text()) == after == check(after)
                changed = set(difference(team, after))
                assert component in changed
                assert changed == {component} or edit.op in ("split", "remove", "copy"), edit
    assert min(made[c] for c in COMPONENTS) >= 2


def test_topology_edits() -> None:
    rng = np.random.default_rng(0)
    copied = applied(PARALLEL, Edit("topology", "copy", "odd"), rng)
    assert set(copied.edges) - set(PARALLEL.edges) == {("planner", "odd-2"), ("odd-2", "solver")}
    gone = applied(CHAIN, Edit("topology", "remove", "planner"), rng)
    assert (gone.first, gone.edges) == (("finder",), (("finder", "reckoner"), ("reckoner", "writer")))
    last = applied(CHAIN, Edit("topology", "after", "writer", STEPS["again"]), rng)
    assert (last.last, last.before("writer-2")) == ("writer-2", ["writer"])
    two = applied(CHAIN, Edit("topology", "split", "reckoner"), rng)
    assert two["reckoner"].steps + two["reckoner-2"].steps == CHAIN["reckoner"].steps
    with pytest.raises(TeamError, match="circle"):
        applied(CHAIN, Edit("topology", "hand to", "writer", "planner"), rng)


def test_crossing_has_one_topology_and_attributes_of_both() -> None:
    assert counterpart(CHAIN["writer"], CHECKED).name == "checker"
    seen = set()
    for i in range(30):
        child = crossed(CHAIN, CHECKED, np.random.default_rng(i))
        assert (child.edges, child.names, child.first) == (CHAIN.edges, CHAIN.names, CHAIN.first)
        seen.add((child["finder"].backbone, child["finder"].method))
        for n in child.nodes:
            other = counterpart(CHAIN[n.name], CHECKED)
            assert n.backbone in (CHAIN[n.name].backbone, other.backbone)
            assert (n.steps, n.method) in [(CHAIN[n.name].steps, CHAIN[n.name].method), (other.steps, other.method)]
    assert len(seen) == 4
    blamed = crossed(CHAIN, CHECKED, np.random.default_rng(0), faulty={"finder"}, others={"checker"})
    assert (blamed["finder"].steps, blamed["finder"].backbone) == (CHECKED["finder"].steps, "large")
    assert blamed["writer"] == CHAIN["writer"]


def test_a_fault_chooses_component_and_sentence() -> None:
    exact = Fault("finder", "record", "wrong", (), "The name in a record is not exactly that of the wanted item.")
    assert shares_of(exact)["prompt"] == 0.7
    rng = np.random.default_rng(0)
    found = Counter(e.what for _ in range(300) if (e := mend(CHAIN, exact, 12.0, rng)) and e.op == "add")
    assert found.most_common(1)[0][0] in (METHOD["exact"], STEPS["check"])
    tool = Fault("reckoner", "value", "wrong", ("tool",), "It has no converter.")
    edits = [mend(CHAIN, tool, 6.0, rng) for _ in range(200)]
    assert 0.7 < sum(e is not None and e.component == "tools" for e in edits) / 200 < 0.9
    assert {e.op for e in edits if e and e.component == "tools"} == {"give"}


def test_memory_advises_what_has_helped() -> None:
    memory, rng = Experience(recall=1.0), np.random.default_rng(0)
    good, bad = Edit("tools", "give", "a", "converter"), Edit("prompt", "add", "b", STEPS["greet"])
    memory.add(
        "ride", 3, 0.4, "x", [("value wrong", good, 0.3), ("value wrong", good, 0.1), ("value wrong", bad, -0.1)]
    )
    assert memory.gains("value wrong") == {good.kind: pytest.approx(0.2), bad.kind: -0.1}
    assert {memory.advice("value wrong", rng) for _ in range(20)} == {good.kind}
    assert memory.advice("record wrong", rng) is None
    memory.recall = 0.0
    assert memory.advice("value wrong", rng) is None
    memory.add("tour", 5, 0.6, "y", [])
    assert memory.best_for("ride") == [3]
    assert memory.told("ride") == ["tour (value 0.600): y", "ride (value 0.400): x"]


def system(model: str = "none", **settings: Any) -> Assembled:
    named = {k.replace("__", "."): v for k, v in settings.items()}
    return assemble(RunSpec("evomas", "program:workflow:questions=3", model, settings=named))


def taken(made: Assembled, count: int) -> list[Step]:
    return [s for _ in range(count) for s in made.system.step()]


def test_tasks_select_evolve_and_give_back() -> None:
    made = system(propose__generations=2, propose__children=4, propose__seeds=2)
    archive = archive_of(made.main_role)
    taken(made, 1)
    assert [c.notes["name"] for c in archive.history] == list(POOL)
    assert all(c.evaluation.complete for c in archive.history)
    steps = taken(made, 3)
    names = [n for n in made.main_role.task.instances("train") if n.startswith("weigh")]  # type: ignore[attr-defined]
    part = made.main_role.slots["propose"]
    order = sorted(archive.history[:4], key=lambda c: (value_on(c, names), c.merit))[::-1]
    children = archive.history[4:]
    assert len(children) == 8
    assert {c.parents[0] for c in children[:4]} <= {c.uid for c in order[:2]}
    for c in children:
        assert c.valid
        assert c.notes[TASK] == 0
        assert {m for m in c.evaluation.metrics if m.startswith(INSTANCE)} >= {INSTANCE + n for n in names}
    best = max([*order[:2], *children], key=lambda c: value_on(c, names))
    entry = experience_of(made.main_role).entries[0]  # type: ignore[union-attr]
    assert (entry["task"], entry["value"]) == ("weigh", value_on(best, names))
    complete = [c.uid for c in children if c.evaluation.complete]
    assert complete == ([entry["best"]] if entry["best"] > 3 else [])
    assert {c.uid for c in archive.members} == {0, 1, 2, 3, *complete}
    assert steps[2].metrics["gain"] == pytest.approx(value_on(best, names) - value_on(order[0], names))
    assert made.system.ledger.of("verifier_calls") == 4 * 18 + 8 * 3 + 15 * len(complete)
    assert (part.number, part.generation) == (1, 0 if complete else 1)


def test_mechanisms_can_be_switched_off() -> None:
    made = system(propose__crossover=0.0, rollout__mutate__traced=False, propose__memory__recall=0.0)
    steps = taken(made, 4)
    history = archive_of(made.main_role).history[4:]
    assert all(c.operator != "cross" and c.notes["fault"] == "unknown" for c in history)
    assert all(s.metrics.get("recalled", 0) == 0 for s in steps)
    still = system(propose__generations=0)
    taken(still, 3)
    assert len(archive_of(still.main_role).history) == 4
    assert still.system.ledger.of("verifier_calls") == 3 * 4 * 18


@pytest.mark.parametrize(
    "settings",
    [
        {"propose__seeds": 0},
        {"propose__crossover": 2.0},
        {"rollout__mutate__tries": 0},
        {"propose__memory__recall": 2.0},
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="must be|goes from|is at least"):
        system(**settings)


def test_other_tasks_are_refused() -> None:
    with pytest.raises(UserError, match="program:workflow"):
        assemble(RunSpec("evomas", "program:landscape", "none"))


def test_seeds_that_a_model_names_come_first() -> None:
    pool = archive_of(taken_pool()).history
    assert [c.uid for c in picked("Two of them.\nSeeds: 3, 1, 9", pool)] == [3, 1, 0, 2]
    assert [c.uid for c in picked("none", pool)] == [0, 1, 2, 3]


def taken_pool() -> Any:
    made = system()
    taken(made, 1)
    return made.main_role


class Model:
    """Nodes look up and answer by rote; as an operator it gives a tool to a node, first badly."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def __call__(self, a: Answering) -> None:
        text = "\n".join(str(m["content"]) for m in a.body["messages"])
        if "Seeds: 1, 2, 3" in text:
            self.kinds.append("select")
            return a.say(chat_reply("Seeds: 0"))
        if "A task is over" in text:
            self.kinds.append("lesson")
            return a.say(chat_reply("Converters help."))
        if "change exactly one component" in text:
            again = "could not be used" in text
            self.kinds.append("mutate again" if again else "mutate")
            data = json.loads(re.findall(r"```json\n(.*?)```", text, re.DOTALL)[0])
            data["nodes"]["reckoner"]["tools"] = ["calculator", "converter"]
            if not again:
                data["nodes"]["writer"]["backbone"] = "tiny"
            return a.say(chat_reply(f"So.\n```json\n{json.dumps(data)}\n```"))
        self.kinds.append("node")
        if "Look up" in text and "use lookup" not in str(a.body["messages"][-1]["content"]) and "carts:" not in text:
            return a.say(chat_reply('use lookup {"table": "goods", "name": "x"}'))
        return a.say(chat_reply("answer: 5"))


def test_a_model_is_nodes_and_operator(tmp_path: Path) -> None:
    model = Model()
    settings = {"propose.generations": "1", "propose.children": "1", "propose.crossover": "0", "propose.seeds": "1"}
    with Scripted(model) as server:
        spec = RunSpec("evomas", "program:workflow:questions=1", f"{server.url}#m", "3 steps", 1, settings)
        result = begin(spec, tmp_path / "runs", logs=("jsonl",), final=False)
    counts = Counter(model.kinds)
    assert counts["node"] > 0
    # nobody is ever right, so that a seed stays the best, and the third step begins the next task at once
    assert (counts["select"], counts["mutate"], counts["mutate again"], counts["lesson"]) == (2, 2, 2, 1)
    child = result.view.candidates[4]
    assert json.loads(child["payload"]["program"])["nodes"]["reckoner"]["tools"] == ["calculator", "converter"]
    assert "trace [" in child["evaluation"]["feedback"]
    assert question("weigh", 0).answer not in ("",)
