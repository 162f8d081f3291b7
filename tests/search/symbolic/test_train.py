"""Agent symbolic learning: order rules, gradients, the gate, early stopping; by rules and by an endpoint."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Answering, Scripted, chat_reply

from evolvent.core.errors import UserError
from evolvent.core.step import Step
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.archive import archive_of
from evolvent.search.symbolic.train import ACCEPTED, LEVELS, Train, accepted, turn
from evolvent.search.symbolic.write import node_edit, pipeline_edit, prompt_edit, tagged
from evolvent.search.teams.evolve import value_on
from evolvent.tasks.worlds.workflow.seeds import CHAIN
from evolvent.tasks.worlds.workflow.team import TeamError, read

TASK = "program:workflow:questions=4,beta=0"


def system(**settings: Any) -> Assembled:
    named = {k.replace("__", "."): v for k, v in settings.items()}
    return assemble(RunSpec("agent-symbolic-learning", TASK, "none", settings=named))


def taken(made: Assembled, count: int) -> list[Step]:
    return [s for _ in range(count) for s in made.system.step()]


def test_order_rules() -> None:
    made = system()
    s = Step(1, made.main_role)
    assert [turn("in_turn", LEVELS, i, s)[0] for i in range(4)] == ["pipeline", "node", "prompt", "pipeline"]
    assert turn("in_turn", ("prompt", "pipeline"), 1, s) == ["prompt", "pipeline"]
    assert turn("top_down", LEVELS, 5, s) == ["pipeline", "node", "prompt"]
    assert turn("bottom_up", LEVELS, 5, s) == ["prompt", "node", "pipeline"]
    drawn = {turn("random", LEVELS, 0, Step(t, made.main_role))[0] for t in range(30)}
    assert drawn == set(LEVELS)


def test_early_stopping() -> None:
    part = Train(threshold=0.9)
    part.scores = [0.95, 0.85, 0.95, 0.96]
    assert not part.stopped()
    part.scores.append(0.91)
    assert part.stopped()
    part = Train(flat=True)
    part.scores = [0.2, 0.5, 0.5, 0.4]
    assert not part.stopped()
    part.scores.append(0.4)
    assert part.stopped()
    part.flat = False
    assert not part.stopped()


def test_the_gate_keeps_whoever_is_better_on_the_batch() -> None:
    made = system(propose__batch=3)
    archive, part = archive_of(made.main_role), made.main_role.slots["propose"]
    backs = 0
    for i in range(30):
        before = part.current
        old_score = part.scores[-1] if i else 0.0
        [s] = taken(made, 1)
        part.batches -= 1
        names = part.names(made.main_role)
        part.batches += 1
        if not i:
            continue
        new = archive.history[-1]
        assert new.parents == (before,)
        score = value_on(new, names)
        old = value_on(archive.history[before], names)  # -inf where it was not executed on all of these
        back = score < old_score and old > score
        assert s.metrics["rolled_back"] == back
        assert new.notes[ACCEPTED] == (not back)
        assert part.current == (before if back else new.uid)
        assert part.scores[-1] == pytest.approx(old if back else score)
        assert accepted(archive.history) is archive.history[part.current]
        backs += back
    assert backs > 0
    free = system(propose__batch=3, propose__rollback=False)
    assert all(s.metrics.get("rolled_back", 0) == 0 for s in taken(free, 8))
    assert len(archive_of(free.main_role).history) == 8


def test_back_propagation_repairs_an_early_node_and_output_feedback_does_not() -> None:
    both = {}
    for nodes in ("all", "last"):
        made = system(rollout__mutate__nodes=nodes, propose__batch=24)
        taken(made, 15)
        team = read(archive_of(made.main_role).best.text)  # type: ignore[union-attr]
        both[nodes] = [team[n] == CHAIN[n] if n in team.names else False for n in ("finder", "reckoner")]
        assert made.system.ledger.of("model_calls") > 15 * 24 * 4
    assert not all(both["all"])
    assert all(both["last"])


@pytest.mark.parametrize(
    "settings",
    [{"propose__order": "up"}, {"propose__optimizers": ("edges",)}, {"propose__batch": 0},
     {"rollout__mutate__nodes": "first"}, {"rollout__mutate__attempts": 0}],
)  # fmt: skip
def test_settings_that_cannot_be(settings: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        system(**settings)


def test_edits_that_a_model_writes() -> None:
    node = {"backbone": "tiny", "tools": [], "prompt": {"steps": ["Check."], "method": [], "output": ""}}
    made = node_edit(CHAIN, "finder", [{"op": "add", "name": "checker", "after": "writer", "node": node}])
    assert (made.last, made.before("checker"), made["checker"].backbone) == ("checker", ["writer"], "tiny")
    made = node_edit(
        CHAIN, "finder", [{"op": "delete", "name": "planner"}, {"op": "rewrite", "name": "finder", "node": node}]
    )
    assert (made.first, made["finder"].steps) == (("finder",), ("Check.",))
    assert node_edit(CHAIN, "finder", []) == prompt_edit(CHAIN, "finder", {}) == CHAIN
    assert prompt_edit(CHAIN, "finder", node["prompt"])["finder"].tools == ("lookup",)
    assert pipeline_edit(CHAIN, "", {"edges": [*map(list, CHAIN.edges), ["planner", "writer"]]}).before("writer") == [
        "reckoner", "planner"
    ]  # fmt: skip
    for wrong in ([{"op": "burn", "name": "finder"}], [{"op": "delete", "name": "x"}], {}, [1]):
        with pytest.raises(TeamError):
            node_edit(CHAIN, "finder", wrong)
    with pytest.raises(TeamError, match="circle"):
        pipeline_edit(CHAIN, "", {"edges": [*map(list, CHAIN.edges), ["writer", "planner"]]})
    assert tagged("<gradient> a </gradient><gradient>b</gradient>", "gradient") == "b"
    assert tagged("<requirement>None.</requirement>", "requirement") == ""


class Model:
    """Every node says 5; the requirement goes back to the finder, whose prompt is then rewritten."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.backward: list[str] = []

    def __call__(self, a: Answering) -> None:
        text = "\n".join(str(m["content"]) for m in a.body["messages"])
        if "Say what is wrong with it" in text:
            self.kinds.append("loss")
            return a.say(chat_reply("<verdict>bad</verdict><requirement>need: the right mass</requirement>"))
        if "One agent of a pipeline" in text:
            self.kinds.append("backward")
            name = text.split("One agent of a pipeline, ")[1].split(",")[0]
            self.backward.append(name)
            assert "need: the right mass" in text
            gradient = "name the item exactly" if name == "finder" else "none"
            needs = "none" if name == "finder" else "need: the right mass"
            return a.say(chat_reply(f"<gradient>{gradient}</gradient><requirement>{needs}</requirement>"))
        if "The prompt of the agent finder" in text:
            again = "could not be used" in text
            self.kinds.append("prompt again" if again else "prompt")
            new = {"steps": ["Find the exact item."], "method": [], "output": "The record."}
            return a.say(chat_reply(f"```json\n{json.dumps(new) if again else '{broken'}\n```"))
        if "This is a pipeline" in text:
            self.kinds.append("other")
            return a.say(chat_reply("```json\n[]\n```"))
        self.kinds.append("node")
        return a.say(chat_reply("answer: 5"))


def test_a_model_writes_losses_gradients_and_edits(tmp_path: Path) -> None:
    model = Model()
    settings = {"propose.batch": "2", "propose.optimizers": "prompt"}
    with Scripted(model) as server:
        spec = RunSpec(
            "agent-symbolic-learning", "program:workflow:questions=1", f"{server.url}#m", "2 steps", 1, settings
        )
        result = begin(spec, tmp_path / "runs", logs=("jsonl",), final=False)
    counts = Counter(model.kinds)
    assert (counts["loss"], counts["prompt"], counts["prompt again"]) == (2, 1, 1)
    assert Counter(model.backward) == {"writer": 2, "reckoner": 2, "finder": 2}  # the planner is not asked
    made = json.loads(result.view.candidates[1]["payload"]["program"])
    assert made["nodes"]["finder"]["prompt"]["steps"] == ["Find the exact item."]
    assert made["nodes"]["writer"] == json.loads(CHAIN.text())["nodes"]["writer"]
