"""The world `repair`: what agents get, what decides, and that nothing else does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evolvent.core.errors import UserError
from evolvent.guard.sandbox import Sandbox
from evolvent.tasks.program import ProgramTask
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds.repair import world
from evolvent.tasks.worlds.repair.units import units

TASK = "program:repair:10"
NAMES = ("clock-1", "wrap-1", "turned-1")
KEEP = "\n\ndef improve(own, entry, log, components, shop):\n    return own, 'nothing'\n"


def value(task: ProgramTask, solve: str, names: tuple[str, ...] = NAMES) -> Any:
    return task.evaluate([solve + KEEP], [names])[0]


def oracle(names: tuple[str, ...] = NAMES) -> str:
    """An agent that knows the right programs."""
    right = {world.bug(name)["function"]: world.bugs()[name][0].source for name in names}
    return f"RIGHT = {right!r}\n\n\ndef solve(source, tools):\n    return RIGHT[tools.function]\n"


def test_the_right_program_passes_and_the_faulty_one_does_not(task: ProgramTask) -> None:
    found = value(task, oracle())
    assert found.value == 1.0
    assert found.metrics == {f"instance/{name}": 1.0 for name in NAMES}
    found = value(task, "def solve(source, tools):\n    return source + '# mended'")
    assert found.value == 0.0
    assert found.metrics == {
        f"{kind}/{name}": float(kind == "empty") for kind in ("instance", "empty") for name in NAMES
    }


def test_learning_the_visible_tests_by_heart_is_of_no_use(task: ProgramTask) -> None:
    agent = """
import json


def solve(source, tools):
    known = {json.dumps(e["arguments"]): e.get("gives") for e in tools.examples}
    text = f"import json\\ndef {tools.function}(*a):\\n    return {known!r}.get(json.dumps(list(a)))"
    good = [tools.test(text, i) for i, e in enumerate(tools.examples) if "gives" in e]
    assert good and all(good), good
    return text
"""
    found = value(task, agent)
    assert found.value == 0.0
    assert found.feedback == ""


@pytest.mark.parametrize(
    "trick",
    [
        "import json; json.dumps = lambda *a, **k: '\"same\"'",
        "import sys, os; [os.write(fd, b'true') for fd in range(3, 9)]",
        "import gc; [o.clear() for o in gc.get_objects() if isinstance(o, dict) and 'raises' in o]",
        "import os; os._exit(0)",
        "while True: pass",
        "class A:\n    def __eq__(self, other): return True",
    ],
)
def test_a_patch_that_tampers_with_its_tests_does_not_pass(task: ProgramTask, trick: str) -> None:
    body = trick + "\ndef clock(*a):\n    return '0:00'\n"
    found = value(task, f"def solve(source, tools):\n    return {body!r}\n", ("clock-1",))
    assert found.value in (0.0, None)


def test_no_right_answer_of_a_hidden_test_enters_the_sandbox() -> None:
    text = world.bugs()["clock-1"][0].source
    call = world.check({"attempts": [{"patch": text}]}, ["clock-1"])
    sent = json.dumps(call.data()["arguments"])
    assert "gives" not in sent
    assert "raises" not in sent
    seen = json.dumps(world.call(world.SEED, ["clock-1"]).data()["arguments"])
    shown = [e["arguments"] for e in world.bug("clock-1")["examples"]]
    hidden = [arguments for arguments, _ in world.hidden("clock-1")]
    assert len(shown) + len(hidden) == len(units()["clock"].tests)
    assert not [a for a in hidden if a in shown]
    assert all(json.dumps(a) not in seen.replace(json.dumps(shown), "") or a in shown for a in hidden[:5])


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ("def improve(*a): pass", "has no function solve"),
        ("def solve(source, tools): return source", "has no function improve"),
        ("raise RuntimeError('no')", "no function improve and no solve: RuntimeError: no"),
        ("import os; os._exit(3)", "ended without an answer"),
    ],
)
def test_what_is_no_agent_is_not_valid(task: ProgramTask, agent: str, told: str) -> None:
    found = task.evaluate([agent], [NAMES[:1]])[0]
    assert found.value is None
    assert told in found.feedback


def test_all_patches_empty_is_not_valid_on_a_whole_stage_only(task: ProgramTask) -> None:
    lazy = "def solve(source, tools):\n    return source"
    assert value(task, lazy, task.world.stages[0]).feedback == "all patches are empty"
    assert value(task, lazy, task.world.stages[0][:1]).value == 0.0
    assert value(task, lazy, ()).value == 0.0  # nothing but whether it works


def test_runs_are_limited_and_failures_stay_with_their_instance(task: ProgramTask) -> None:
    agent = (
        oracle()
        + """

def patient(source, tools):
    try:
        while True:
            tools.test(source, 0)
    except Exhausted:
        return RIGHT[tools.function]


plain = solve


def solve(source, tools):
    if tools.function == "clock":
        return patient(source, tools)
    if tools.function == "wrap":
        raise ValueError("not this one")
    return plain(source, tools)
"""
    )
    found = value(task, agent)
    assert found.value == pytest.approx(2 / 3)
    assert found.metrics["exhausted/clock-1"] == 1.0
    assert found.metrics["instance/clock-1"] == 1.0
    assert "exhausted/wrap-1" not in found.metrics
    assert found.feedback == "wrap-1: ValueError: not this one"


def test_a_hanging_agent_costs_its_instance_only(task: ProgramTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "SECONDS", 0.3)
    agent = (
        oracle()
        + """

plain = solve


def solve(source, tools):
    while tools.function == "wrap":
        pass
    return plain(source, tools)
"""
    )
    found = value(task, agent)
    assert found.metrics["instance/wrap-1"] == 0.0
    assert found.value == pytest.approx(2 / 3)


def test_the_seed_agent_solves_some(task: ProgramTask) -> None:
    first, again = task.evaluate([world.SEED, world.SEED])
    assert first == again
    assert 0 < first.value < 0.4  # type: ignore[operator]


def test_sizes() -> None:
    assert len(world.world("25").instances["train"]) == 25
    assert [len(stage) for stage in world.world("60").stages] == [10, 20, 30]
    assert [len(stage) for stage in world.world("30").stages] == [10, 20]
    for size in ("9", "many", "331"):
        with pytest.raises(UserError, match="the number of faults goes from 10 to 330"):
            load_task(f"program:repair:{size}")


@pytest.mark.slow
def test_components_can_be_put_in_and_an_agent_with_them_still_works(task: ProgramTask) -> None:
    names: dict[str, Any] = {}
    exec(world.SEED, names)
    roles = {c["role"] for c in world.components()}
    assert roles == {"operator", "suspects", "arrange", "works", "settle", "setting", "choose", "check", "improve"}
    assert len({c["name"] for c in world.components()}) == len(world.components())
    for component in world.components():
        text = names["insert"](world.SEED, component)
        assert text != world.SEED
        if component["role"] != "setting":
            assert component["name"] in names["defined"](text)
    text = world.SEED
    wanted = {"ochiai", "rare_first", "killers_first", "cap_150"}
    for component in world.components():
        if component["role"] == "operator" or component["name"] in wanted:
            text = names["insert"](text, component)
    better, seed = task.evaluate([text, world.SEED])
    assert better.value > seed.value  # type: ignore[operator]


def test_programs_do_not_see_the_package_that_holds_the_answers(sandboxed: str) -> None:
    from pathlib import Path

    import evolvent
    from evolvent.guard.sandbox import Call

    if sandboxed != "bubblewrap":
        pytest.skip("sandlock can only allow")
    folder = Path(evolvent.__file__).parent
    code = "import os\n\n\ndef look(path):\n    return [os.path.isdir(path), os.listdir(path)]"
    with Sandbox(1, (), (folder.parent,)) as sandbox:
        (outcome,) = sandbox.run([Call({"main.py": code}, "main", "look", (str(folder),))])
    assert outcome.value == [True, []]
