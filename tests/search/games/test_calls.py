"""Whole calls: by rules, and by a scripted endpoint."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Answering, Scripted, chat_reply

from evolvent.core.errors import UserError
from evolvent.core.step import Step
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.games.calls import Calls, entries_of, never_realised
from evolvent.search.games.plan import compared, plan_of
from evolvent.search.games.reward import Signals, Weights, surface_score
from evolvent.search.games.versions import games_of, versions_of
from evolvent.tasks.worlds.grid_games.differ import difference, mechanics
from evolvent.tasks.worlds.grid_games.language import read, text_of
from evolvent.tasks.worlds.grid_games.world import read_collection, seeds

TASK = "program:grid-games:2"


def system(task: str = TASK, seed: int = 0, **settings: Any) -> Assembled:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return assemble(RunSpec("creativegame", task, "none", seed=seed, settings=named))


def taken(made: Assembled, count: int) -> list[Step]:
    return [s for _ in range(count) for s in made.system.step()]


def memory_of(made: Assembled) -> Any:
    [calls] = [p for p in made.main_role.parts.values() if isinstance(p, Calls)]
    return calls.memory


@pytest.fixture(scope="module")
def run() -> tuple[Assembled, list[Step]]:
    made = system()
    return made, taken(made, 4)


def test_lineages_have_their_turns_and_grow(run: tuple[Assembled, list[Step]]) -> None:
    made, _ = run
    archive, task = versions_of(made.main_role), games_of(made.main_role)
    assert [c.notes.get("lineage") for c in archive.history] == [None, "crates", "keys", "crates", "keys"]
    assert [c.notes.get("generation") for c in archive.history] == [None, 1, 1, 2, 2]
    last = read_collection(archive.history[-1].text)
    assert {name: texts[0] for name, texts in last.items()} == {name: seeds()[name] for name in task.names}
    assert [len(texts) for texts in last.values()] == [3, 3]
    assert task.evaluate([archive.history[-1].text])[0] == archive.history[-1].evaluation
    assert archive.best is archive.history[-1]
    assert json.loads(archive.files()["best.py"]) == last


def test_the_version_that_is_saved_has_the_highest_reward(run: tuple[Assembled, list[Step]]) -> None:
    made, steps = run
    for s, c in zip(steps, versions_of(made.main_role).history[1:], strict=True):
        rows = [t for g in s.groups for t in g.valid]
        rewards = [t.rewards["value"].value for t in rows]
        [saved] = [t for t in rows if t.info.get("saved")]
        assert saved.rewards["value"].value == max(rewards) == s.metrics["reward"]
        assert s.metrics["iterations"] == len(rows) <= 3
        assert all(r < 0.8 for r in rewards[:-1])
        assert [i["reward"] for i in c.notes["iterations"]] == rewards
        assert read_collection(c.text)[c.notes["lineage"]][-1] == saved.info["program"]
    calls = sum(1 + t.info["repairs"] for s in steps for g in s.groups for t in g.valid)
    assert made.system.ledger.of("verifier_calls") == calls


def test_the_reward_is_that_of_its_signals(run: tuple[Assembled, list[Step]]) -> None:
    for s in run[1]:
        for t in (t for g in s.groups for t in g.valid):
            x: Signals = t.info["signals"]
            total = 0.25 * x.structural + 0.2 * x.realised + 0.2 * x.novel + 0.15 * x.creative + 0.1 * x.playable
            total -= 0.15 * x.cosmetic + 0.1 * x.regression
            total *= (1 if x.sanity >= 0.6 else 0.25) * (1 if x.runs else 0.5)
            assert t.rewards["value"].value == pytest.approx(total)
            before, after = read(t.problem.data["before"]), read(t.info["program"])
            found = difference(before, after)
            assert x.structural == pytest.approx(min(1, (len(found.new) + len(found.changed) / 2
                + len(found.dropped) / 4) / 6))  # fmt: skip
            plan = plan_of(t.problem.data["plan"])
            assert x.realised == compared(plan, before, after, found, t.info["verdict"].report.fired).share
            assert x.creative == pytest.approx(max(0, surface_score(t.info["program"]) - 3) / 7)
            assert {*plan.keep, *plan.change} == {str(m) for m in mechanics(before)}


def test_lessons_stay_in_their_lineage(run: tuple[Assembled, list[Step]]) -> None:
    made, _ = run
    memory, archive = memory_of(made), versions_of(made.main_role)
    assert {*memory.lessons} == {"crates", "keys"}
    for name, mine in memory.lessons.items():
        planned = {e for r in archive.records(name) for e in r["planned"]}
        assert {x for x in mine if not x.startswith("change ")} == planned
    counted = [e for name in memory.lessons for r in archive.records(name) for e in r["planned"]]
    assert sum(memory.used.values()) == len(counted)


def test_with_memory_nothing_that_came_to_nothing_is_planned_again() -> None:
    steps = taken(system("program:grid-games:1", seed=3), 4)
    assert [s.metrics["again"] for s in steps] == [0] * 4


def test_what_has_never_been_realised() -> None:
    records = [{"planned": ["a", "b"], "realised": [0.0, 0.5]}, {"planned": ["a", "c"], "realised": [0.0, 0.0]}]
    assert never_realised(records) == {"a", "c"}
    assert never_realised([*records, {"planned": ["a"], "realised": [1.0]}]) == {"c"}


def test_mechanisms_can_be_switched_off() -> None:
    off = system(
        "program:grid-games:1", propose__plan=False, propose__memory__lineage=False, propose__memory__archive=False,
        rollout__mutate__repairs=0, propose__iterations=1, propose__saved="last",
    )  # fmt: skip
    for s in taken(off, 2):
        [t] = [t for g in s.groups for t in g.valid]
        assert t.info["signals"].realised == 0
        assert t.info["repairs"] == 0
        assert s.metrics["lessons"] == s.metrics["found"] == s.metrics["again"] == 0
        assert t.problem.data["plan"]["add"] == []
        assert t.info["difference"].new or t.info["verdict"].findings  # it has added what it likes
    alone = dict.fromkeys(("structural", "realised", "novel", "playable", "cosmetic", "regression", "sane"), 0.0)
    named = {f"judge__weights__{k}": v for k, v in alone.items()}
    by_score = system("program:grid-games:1", **named, judge__weights__creative=1.0, judge__weights__failed=1.0)
    [s] = taken(by_score, 1)
    for t in (t for g in s.groups for t in g.valid):
        assert t.rewards["value"].value == pytest.approx(max(0, surface_score(t.info["program"]) - 3) / 7)
    archive = system("program:grid-games:1", judge__against="archive")
    [s] = taken(archive, 1)
    rows = [t for g in s.groups for t in g.valid]
    assert any(t.info["signals"].novel < 0.5 for t in rows)  # most of it is in the archive


def test_what_succeeds_becomes_an_entry_of_the_archive() -> None:
    before = read(seeds()["coins"])
    data = json.loads(seeds()["coins"])
    data["objects"] = {{"player": "hero"}.get(k, k): v for k, v in data["objects"].items()}
    data["rules"] = [
        {"on": "enter", "who": "hero", "what": "coin", "do": [["remove", "what"]]},
        {"on": "enter", "who": "hero", "what": "coin", "if": [["on", "hero", "coin"]], "do": [["drop", "wall"]]},
    ]
    [entry] = entries_of(read(text_of(data)), before, "coins")
    assert [str(m) for m in entry.forms] == ["enter player A: if on player A, drop B"]
    assert {n: o["place"] for n, o in entry.objects.items()} == {"coin": 1, "wall": 0}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"propose__iterations": 0}, "must be at least 1"),
        ({"propose__saved": "first"}, "propose.saved is best or last"),
        ({"propose__memory__alpha": 0.0}, "alpha is above 0"),
        ({"judge__weights__novel": -1.0}, "judge.weights.novel"),
        ({"judge__against": "all"}, "judge.against is lineage or archive"),
        ({"rollout__mutate__repairs": -1}, "repairs must be at least 0"),
        ({"propose__speak__prompts": "/nowhere"}, "there is no folder"),
    ],
)
def test_settings_that_cannot_be(settings: Mapping[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        system(**settings)


def test_other_tasks_are_refused() -> None:
    with pytest.raises(UserError, match="program:grid-games:8"):
        assemble(RunSpec("creativegame", "program:landscape", "none"))


PIT = {
    "name": "pits", "about": "Holes.", "objects": {"pit": {"symbol": "v", "place": 1}},
    "rules": [{"on": "enter", "who": "player", "what": "pit", "do": [["lose"]]}],
}  # fmt: skip


class Model:
    """Plans a pit; its rules are broken at first, its visual stage writes no game; then it mends them."""

    KINDS = (
        ("You plan the next", "plan"), ("Write the skeleton", "skeleton"), ("Write its rules", "feature"),
        ("Give it a better title", "visual"), ("Refine it", "refinement"), ("It does not run", "repair"),
        ("How creative", "judge"), ("was written by a plan", "reflect"),
    )  # fmt: skip

    def __init__(self, verdict: str = "stop") -> None:
        self.lock = threading.Lock()
        self.shown: list[tuple[str, str]] = []
        self.verdict = verdict

    def __call__(self, a: Answering) -> None:
        told = "\n".join(m["content"] for m in a.body["messages"] if m["role"] == "system")
        kind = next(name for mark, name in self.KINDS if mark in told)
        with self.lock:
            self.shown.append((kind, told))
            number = [k for k, _ in self.shown].count(kind)
        a.say(chat_reply(self.answer(kind, number)))

    def answer(self, kind: str, number: int) -> str:
        game = json.loads(seeds()["crates"])
        game["objects"]["pit"] = {"symbol": "v"}
        game["levels"] = [[row.replace("#......#", "#.....v#") for row in rows] for rows in game["levels"]]
        broken = {**game, "rules": [*game["rules"], *PIT["rules"]], "lose": [["count", "air", "<", 1]]}
        mended = {**broken, "lose": [], "title": "Pits"}
        return {
            "plan": "no idea" if number == 1 else "Well:\n" + json.dumps({"add": [PIT], "change": []}),
            "skeleton": json.dumps(game),
            "feature": "```json\n" + json.dumps(broken) + "\n```",
            "visual": "I would rather not.",
            "repair": json.dumps(mended),
            "refinement": json.dumps({**mended, "title": "Deeper"}),
            "judge": "9 of 10, I would say",
            "reflect": json.dumps({"verdict": self.verdict, "lessons": {"pits": "Pits frighten."}}),
        }[kind]


def written(folder: Path, model: Model, steps: int = 1, **settings: str) -> Any:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    with Scripted(model) as server:
        spec = RunSpec("creativegame", "program:grid-games:1", f"{server.url}#m", f"{steps} steps", 1, named)
        return begin(spec, folder, logs=("jsonl",))


def test_a_model_plans_writes_repairs_judges_and_reflects(tmp_path: Path) -> None:
    model = Model()
    result = written(tmp_path / "runs", model, 2)
    kinds = [kind for kind, _ in model.shown]
    assert kinds[:8] == ["plan", "plan", "skeleton", "feature", "visual", "repair", "judge", "reflect"]
    shown = [told for _, told in model.shown]
    assert "could not be used: the answer holds no JSON object" in shown[1]
    assert "bump player A: push" in shown[0]
    for told in shown[2:6]:
        assert "add pits: Holes. (enter player A: lose)" in told
        assert "keep: bump player A: push" in told
    assert "there is no counter `air`" in shown[5]
    assert "pits: 1.0" in shown[7]
    *_, last = result.view.candidates.values()
    first = list(result.view.candidates.values())[1]
    [record] = first["notes"]["iterations"]
    assert (record["planned"], record["realised"], record["repairs"]) == (["pits"], [1.0], 1)
    assert record["new"] == ["enter player A: lose"]
    assert record["signals"]["creative"] == pytest.approx(6 / 7)
    assert record["reward"] == pytest.approx(Weights()(Signals(**record["signals"])))
    version = json.loads(first["payload"]["program"])["crates"][1]
    assert json.loads(version)["title"] == "Pits"
    assert kinds[8] == "plan"
    assert "pits: " in shown[8]
    assert "Pits frighten." in shown[8]  # the lesson
    assert last["notes"]["generation"] == 2


def test_a_model_refines_when_it_says_so(tmp_path: Path) -> None:
    model = Model("continue")
    result = written(tmp_path / "runs", model, propose__iterations="2", propose__enough="0.1")
    kinds = [kind for kind, _ in model.shown]
    assert kinds[8:] == ["plan", "refinement", "judge", "reflect"]
    assert "Tried just now: pits" in model.shown[8][1]
    *_, last = result.view.candidates.values()
    assert len(last["notes"]["iterations"]) == 2
