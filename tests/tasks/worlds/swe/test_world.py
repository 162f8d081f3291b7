"""The world `swe`: what agents get, what decides, and that nothing else does."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evolvent.core.errors import UserError
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.tasks.program import ProgramTask
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds.swe import world
from evolvent.tasks.worlds.swe.bugs import Bug, bugs
from evolvent.tasks.worlds.swe.sources import repositories

TASK = "program:swe:12"
KEEP = "\n\ndef improve(own, entry, log, components, shop):\n    return own, 'nothing'\n"
NAMES = tuple(next(n for n, b in bugs().items() if b.repository.name == name) for name in ("boltons", "parse"))


def value(task: ProgramTask, solve: str, names: tuple[str, ...] = NAMES[:1]) -> Any:
    return task.evaluate([solve + KEEP], [names])[0]


def right(it: Bug) -> str:
    return it.repository.files[it.file]


def handing_in(changed: dict[str, str]) -> str:
    return f"def solve(files, tools):\n    return {changed!r}\n"


@pytest.mark.slow
def test_the_original_repairs_a_fault_and_another_layout_of_the_fault_does_not(task: ProgramTask) -> None:
    known = {bugs()[name].file: right(bugs()[name]) for name in NAMES}
    agent = f"""
KNOWN = {known!r}


def solve(files, tools):
    return {{path: text for path, text in KNOWN.items() if path in files}}
"""
    found = value(task, agent, NAMES)
    assert found.value == 1.0
    assert found.metrics == {f"instance/{name}": 1.0 for name in NAMES}
    it = bugs()[NAMES[0]]
    found = value(task, handing_in({it.file: it.files[it.file] + "# mended\n"}))
    assert found.value == 0.0
    assert f"empty/{NAMES[0]}" not in found.metrics


def test_other_files_than_sources_are_not_taken(task: ProgramTask) -> None:
    name = NAMES[0]
    hook = "def pytest_runtest_makereport(item, call):\n    raise SystemExit(0)\n"
    files = dict.fromkeys(bugs()[name].repository.tests, "def test_nothing():\n    pass\n")
    files |= dict.fromkeys(("conftest.py", "tests/conftest.py", "sitecustomize.py", "usercustomize.py"), hook)
    files |= {"pytest.ini": "[pytest]\naddopts = --collect-only\n", "empty.ini": "[pytest]\naddopts = --collect-only\n"}
    files |= {"../suite.py": hook, "pyproject.toml": "[tool.pytest.ini_options]\n", "tests/__init__.py": hook}
    found = value(task, handing_in(files))
    assert found.value == 0.0
    assert found.metrics[f"empty/{name}"] == 1.0
    given = {"attempts": [{"changed": files}]}
    [row] = world.check(given, [name]).arguments[1]
    assert row["changed"] == {}
    files[bugs()[name].file] = right(bugs()[name])  # beside a repair they do no harm
    assert value(task, handing_in(files)).value == 1.0


@pytest.mark.parametrize(
    ("trick", "told"),
    [
        ("import os; os._exit(0)\n", "something else than the bodies of functions"),
        ("import _pytest.runner as r\nr.check_interactive_exception = None\n", "something else"),
        ("import sys\nsys.modules['pytest'].main = lambda *a, **k: 0\n", "something else"),
        ("def __getattr__(name):\n    return print\n", "something else"),
        ("(", "no program"),
    ],
)
def test_what_happens_at_import_is_refused(task: ProgramTask, trick: str, told: str) -> None:
    it = bugs()[NAMES[0]]
    found = value(task, handing_in({it.file: it.files[it.file] + trick}))
    assert found.value == 0.0
    assert told in found.feedback
    assert found.feedback.startswith(f"{it.name}: {it.file} is refused: ")


@pytest.mark.parametrize("body", ["raise SystemExit(0)", "raise KeyboardInterrupt", "while True:\n        pass"])
def test_a_patch_that_ends_or_hangs_the_suite_is_no_repair(
    task: ProgramTask, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "SUITE", 1.0)
    it = next(b for b in bugs().values() if b.repository.name == "inflection")
    text = it.files[it.file].replace(
        "def underscore(word: str) -> str:\n", f"def underscore(word: str) -> str:\n    {body}\n"
    )
    assert text != it.files[it.file]
    found = value(task, handing_in({it.file: text}), (it.name,))
    assert (found.value, found.feedback) == (0.0, "")


def test_a_suite_that_ends_its_process_has_reached_nothing(task: ProgramTask, monkeypatch: pytest.MonkeyPatch) -> None:
    it = next(b for b in bugs().values() if b.repository.name == "inflection")
    monkeypatch.setattr(world, "refusal", lambda text, before: "")  # what would be refused is run for once
    found = value(task, handing_in({it.file: right(it) + "\nimport os\nos._exit(0)\n"}), (it.name,))
    assert found.value == 0.0


def test_hidden_tests_and_the_right_sources_never_come_to_the_agent() -> None:
    for name in NAMES:
        it = bugs()[name]
        sent = json.dumps(world.call(world.SEED, [name]).data())
        assert json.dumps(right(it))[1:-1] not in sent
        for path, text in it.repository.tests.items():
            assert path not in it.data()["files"]
            assert json.dumps(text)[1:-1] not in sent
        assert name not in sent
        shown = {test["function"] for test in it.visible}
        hidden = {test.partition("::")[2].partition("[")[0] for test in it.suite} - shown
        assert not any(f"def {function}(" in sent for function in hidden if function.startswith("test_"))
        assert world.check({"attempts": [{"changed": {}}]}, [name]).arguments[0] == {}


@pytest.mark.slow
def test_an_agent_finds_no_tests_and_no_installed_package(task: ProgramTask, sandboxed: str) -> None:
    if sandboxed != "bubblewrap":
        pytest.skip("sandlock can only allow")
    agent = """
import os, sys


def solve(files, tools):
    found = []
    for top, folders, names in os.walk("/"):
        folders[:] = [f for f in folders if f not in ("proc", "sys", "dev")]
        found += [os.path.join(top, n) for n in names if n in ("test_strutils.py", "test_parse.py", "faults.json")]
    refused = []
    for folder in [path for path in sys.path if path.endswith("site-packages")]:
        for look in (os.listdir, os.scandir, lambda path: open(path + "/pytest/__init__.py")):
            try:
                look(folder)
            except PermissionError:
                refused.append(folder)
    try:
        import subprocess
        subprocess.run(["ls", "/"])
    except PermissionError:
        refused.append("run")
    every = 3 * len(set(refused) - {'run'}) + 1
    raise ValueError(f"found {found}, refused {len(refused)} of {every}, {tools.left} left")
"""
    found = value(task, agent)
    assert found.feedback == f"{NAMES[0]}: ValueError: found [], refused 4 of 4, 40 left"


def test_an_agent_finds_no_other_instance_in_memory(task: ProgramTask) -> None:
    one, other = [name for name, it in bugs().items() if it.repository.name == "boltons"][:2]
    agent = """
import gc


def solve(files, tools):
    found = set()
    for o in gc.get_objects():
        if isinstance(o, dict):
            found |= {path for path in files if isinstance(o.get(path), str) and o[path] != files[path]}
    try:
        open("/proc/self/mem")
    except PermissionError:
        raise ValueError(f"found {sorted(found)}")
"""
    found = value(task, agent, (one, other))
    assert found.feedback == f"{one}: ValueError: found []\n{other}: ValueError: found []"


@pytest.mark.slow
def test_visible_tests_are_run_as_often_as_there_are_runs(task: ProgramTask) -> None:
    it = bugs()[NAMES[0]]
    agent = f"""
RIGHT = {{{it.file!r}: {right(it)!r}}}


def solve(files, tools):
    assert [tools.test({{}}, i) for i in range(len(tools.examples))] == {[False] + [True] * (len(it.visible) - 1)}
    assert all(tools.test(RIGHT, i) for i in range(len(tools.examples)))
    assert not tools.test({{{it.file!r}: "("}}, 0)
    assert not tools.test({{{it.file!r}: "while True: pass"}}, 0)
    assert not tools.test({{{it.file!r}: "import os; os._exit(0)"}}, 0)
    passed, lines = tools.trace({{}}, 0)
    assert {it.file!r} in [path for path, _ in lines]
    assert tools.report
    while tools.left:
        tools.trace(RIGHT, 0)
    try:
        tools.test(RIGHT, 0)
    except Exhausted:
        return RIGHT
"""
    found = value(task, agent)
    assert (found.value, found.feedback) == (1.0, "")
    assert found.metrics[f"exhausted/{it.name}"] == 1.0


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ("def improve(*a): pass", "has no function solve"),
        ("def solve(files, tools): return {}", "has no function improve"),
        ("raise RuntimeError('no')", "no function improve and no solve: RuntimeError: no"),
        ("import os; os._exit(3)", "ended without an answer"),
    ],
)
def test_what_is_no_agent_is_not_valid(task: ProgramTask, agent: str, told: str) -> None:
    found = task.evaluate([agent], [NAMES[:1]])[0]
    assert found.value is None
    assert told in found.feedback


def test_an_agent_that_hangs_or_gives_something_else_costs_its_instance_only(
    task: ProgramTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "SECONDS", 0.5)
    first, second = (bugs()[name] for name in NAMES)
    agent = f"""
def solve(files, tools):
    while {first.file!r} in files:
        pass
    return [1]
"""
    found = value(task, agent, NAMES)
    assert found.value == 0.0
    assert f"{first.name}: " in found.feedback
    assert f"{second.name}: TypeError: solve gave no texts of files by path: [1]" in found.feedback


def test_nothing_changed_is_not_valid_on_a_whole_stage_only(task: ProgramTask) -> None:
    lazy = "def solve(files, tools):\n    return {}"
    assert value(task, lazy, task.world.stages[0]).feedback == "nothing was changed anywhere"
    assert value(task, lazy, task.world.stages[0][:1]).value == 0.0
    assert value(task, lazy, ()).value == 0.0


def test_a_repair_needs_every_test_that_failed_and_none_that_passed_may_fail() -> None:
    it = replace(bugs()[NAMES[0]], suite=("a", "b", "c"), fails=2)
    assert [
        m for m in ("ppp", "pps", "ppf", "pp-", "psp", "pfp", "fpp", "pp", "pppp", "", None) if world.repaired(m, it)
    ] == [
        "ppp",
        "pps",
    ]


def test_sizes() -> None:
    every = sum(it.split == "train" for it in bugs().values())
    assert [len(world.world().instances[split]) for split in ("train", "gate", "test")] == [24, 12, 24]
    assert [len(stage) for stage in world.world("24").stages] == [8, 16]
    assert [len(stage) for stage in world.world("30").stages] == [8, 16, 6]
    for size in ("7", "many", str(every + 1)):
        with pytest.raises(UserError, match=f"the number of faults goes from 8 to {every}"):
            load_task(f"program:swe:{size}")
    assert len({bugs()[name].repository.name for name in world.world("12").instances["train"]}) == len(repositories())


def test_a_missing_pytest_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'evolvent\[swe\]'"):
        world.world()


def test_components_can_be_put_in() -> None:
    names: dict[str, Any] = {}
    tree = world.SEED.replace("import changes\n", "")
    exec(tree, names)
    assert {c["role"] for c in world.components()} == {
        "operator", "suspects", "arrange", "works", "settle", "setting", "choose", "check", "improve",
    }  # fmt: skip
    assert len({c["name"] for c in world.components()}) == len(world.components())
    for component in world.components():
        text = names["insert"](world.SEED, component)
        compile(text, "agent", "exec")
        if component["role"] not in ("setting",):
            assert component["name"] in names["defined"](text)
    assert "OPERATORS.append('negations')" in world.statements()
    assert "OPERATORS.append('arithmetic')" not in world.statements()


@pytest.mark.slow
def test_the_seed_agent_repairs_some_and_more_operators_repair_more(task: ProgramTask) -> None:
    names: dict[str, Any] = {}
    exec(world.SEED.replace("import changes\n", ""), names)
    text = world.SEED
    for component in world.components():
        if component["name"] in ("negations", "off_by_one", "connectives", "membership"):
            text = names["insert"](text, component)
    train = world.world("24").instances["train"][::2]
    seed, better = task.evaluate([world.SEED, text], [train, train])
    assert seed.value is not None
    assert better.value is not None
    assert 0.1 <= seed.value <= 0.5
    assert better.value > seed.value


@pytest.mark.slow
def test_a_recipe_runs(sandboxed: str, tmp_path: Path) -> None:
    result = begin(RunSpec("dgm", "program:swe:8", "none", "2 steps"), tmp_path, final=False)
    found = list(result.view.candidates.values())
    assert len(found) >= 2
    assert found[0]["evaluation"]["value"] is not None
