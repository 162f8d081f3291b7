"""The world `patches`: books of patches, visible and hidden tests, the scripted agent and a model's episodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from evolvent.core.errors import UserError
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds.repair import patches, world

PLAIN = {"operators": ["comparisons"], "entry": "failing", "order": "weighted", "known": [], "focus": [], "avoid": []}


@pytest.fixture(scope="module")
def task(sandboxed: str) -> Iterator[patches.Patches]:
    found = load_task("program:patches:gate-4")
    assert isinstance(found, patches.Patches)
    yield found
    found.sandbox.close()


def right(name: str) -> str:
    return world.bugs()[name][0].source


def test_a_book_is_read_as_it_was_written() -> None:
    texts = {"a-1": "def f():\n    return '''x'''\n", "b-2": "", "c-3": "x = 'ä'\\\n\n"}
    assert patches.read_book(patches.book(texts)) == texts
    assert patches.read_book("PATCHES['a'] = 1\nPATCHES['b'] = open('x')\nOTHER['c'] = 'x'\nPATCHES['d'] = 'y'") == {
        "d": "y"
    }
    assert patches.read_book("def (") == {}


def test_visible_tests_are_the_value_and_hidden_ones_the_figure(task: patches.Patches) -> None:
    names = task.names
    by_heart = {name: learned(name) for name in names[:1]}
    every = [
        patches.book({name: right(name) for name in names}),
        task.seed_program,
        patches.book(by_heart | {name: right(name) for name in names[1:]}),
    ]
    values = {
        split: [e.value for e in task.evaluate(every, [task.instances(split)] * 3)] for split in ("train", "test")
    }
    assert values == {"train": [1.0, 0.0, 1.0], "test": [1.0, 0.0, 0.75]}


def learned(name: str) -> str:
    """A program that knows the visible tests by heart."""
    it = world.bug(name)
    known = {json.dumps(e["arguments"]): e.get("gives") for e in it["examples"]}
    wrong = {json.dumps(e["arguments"]): e["raises"] for e in it["examples"] if "raises" in e}
    return (
        f"import json\n\n\ndef {it['function']}(*a):\n    key = json.dumps(list(a))\n    if key in {wrong!r}:\n"
        f"        raise getattr(__builtins__, {wrong!r}[key], ValueError)\n    return {known!r}.get(key)\n"
    )


def test_no_right_answer_enters_the_sandbox(task: patches.Patches) -> None:
    sent = json.dumps(patches.call(task.seed_program, task.instances("test")).data()["arguments"])
    assert "gives" not in sent
    assert "raises" not in sent


def test_splits_share_no_function() -> None:
    functions = {s: {world.bugs()[n][0].function for n in patches.task(s + "40").names} for s in ("", "gate-")}
    assert len(functions[""]) > 10
    assert not functions[""] & functions["gate-"]
    assert all(world.bugs()[name][0].split == "test" for name in patches.task("40").names)


@pytest.mark.parametrize("size", ["0", "many", "gate-", "99999", "train-3"])
def test_sizes(size: str) -> None:
    with pytest.raises(UserError, match="the number of bugs goes from 1 to"):
        patches.task(size)


def attempt(task: patches.Patches, name: str, runs: int = 60, seed: str = "1", **changed: Any) -> dict[str, Any]:
    [outcome] = task.sandbox.run([patches.script([(name, {**PLAIN, **changed}, seed)], runs)], task.world.limits)
    assert outcome.status == "ok", outcome
    found: dict[str, Any] = outcome.value[0]
    return found


def test_the_scripted_agent_follows_its_strategy(task: patches.Patches) -> None:
    name = task.names[0]
    count = len(world.bug(name)["examples"])
    every = attempt(task, name, operators=["variables", "off_by_one"], runs=count + 5)
    assert every["runs"] == count + 5
    assert every["exhausted"]
    assert {t[1] for t in every["tried"]} <= {"variables", "off_by_one"}
    again = attempt(task, name, operators=["variables", "off_by_one"], runs=count + 5)
    assert again == every
    without = attempt(
        task, name, operators=["variables", "off_by_one"], avoid=[t[0] for t in every["tried"]], runs=count + 5
    )
    assert not {t[0] for t in without["tried"]} & {t[0] for t in every["tried"]}
    last = every["tried"][-1]
    first = attempt(task, name, operators=[last[1]], focus=[[last[1], last[2]]], seed="2")["tried"][0]
    assert first[1:3] == last[1:3]


def test_what_is_known_is_tried_first_and_ends_the_attempt(task: patches.Patches) -> None:
    name = task.names[0]
    count = len(world.bug(name)["examples"])
    found = attempt(task, name, known=[right(name)])
    assert found["patch"] == right(name)
    assert found["runs"] == 2 * count
    assert [t[1] for t in found["tried"]] == ["known"]


def test_every_operator_works_on_every_fault(task: patches.Patches) -> None:
    """None of them fails, or an attempt would be lost."""
    names = [patches.task("40").names, patches.task("gate-20").names]
    jobs = [(name, {**PLAIN, "operators": list(patches.tools())}, "1") for group in names for name in group[::4]]
    [outcome] = task.sandbox.run([patches.script(jobs, 1)], task.world.limits)
    assert [row.get("error") for row in outcome.value] == [None] * len(jobs)
    assert not {"layouts", "doubles", "zeros", "items"} & patches.tools().keys()
    assert len(patches.tools()) == 19


def test_an_episode_tells_which_visible_tests_fail(task: patches.Patches) -> None:
    name = task.names[1]
    problem = task.problem(name)
    assert world.bug(name)["source"].rstrip() in problem.prompt[0].content
    assert right(name) not in problem.prompt[0].content
    episode = task.episode(problem)
    assert episode is not None
    assert "no program" in episode.respond("I do not know.").text
    told = episode.respond(f"```python\n{world.bug(name)['source']}```")
    [visible] = task.visible([(name, world.bug(name)["source"])])
    assert told.text.startswith(f"{visible.count(False)} visible tests fail")
    assert not told.done
    end = episode.respond(f"So:\n```python\n{right(name)}```\n")
    assert end.done
    assert end.note == {"handed": [(world.bug(name)["source"], sum(visible)), (right(name), len(visible))]}
