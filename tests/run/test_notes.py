"""What is said before a search begins: its sandbox, if that is a weaker one, and workers with nothing to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.recipes.recipe_runs import build, searches, steps

from evolvent.cli.main import main
from evolvent.core.errors import UserError
from evolvent.core.recipe import REGISTRY
from evolvent.guard import sandbox as guard
from evolvent.lineage.runs import read_run
from evolvent.lineage.store import Store
from evolvent.recipes import all_recipes
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.notes import ERROR, at_once, idle_workers, large_steps, notes, proposer, sandbox_of, weaker_sandbox
from evolvent.run.session import Session, resume
from evolvent.run.spec import RunSpec
from evolvent.tasks.program import UNSAFE
from evolvent.tasks.registry import load_task

PACKING = "program:circle-packing:4"


@pytest.fixture
def anew() -> Iterator[None]:
    """Which sandbox works is tried anew, in the test and after it."""
    guard.available.cache_clear()
    yield
    guard.available.cache_clear()


@pytest.fixture
def sandlock(anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without bubblewrap."""
    monkeypatch.setenv("PATH", "")
    try:
        assert guard.available() == "sandlock"
    except UserError as reason:
        pytest.skip(str(reason))


def searched(folder: Path, *more: str) -> None:
    """A search of a few evaluations on the command line."""
    options = [f"--task={PACKING}", "--budget=2 evaluations", f"--store={folder}", "--name=one", "--log=jsonl"]
    with pytest.raises(SystemExit) as end:
        main(["run", "sequential-sampling", *options, *more])
    assert end.value.code in (0, None)


def test_another_sandbox_than_bubblewrap_is_said_first_and_recorded(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], sandlock: None
) -> None:
    searched(tmp_path)
    said = " ".join(capfd.readouterr().err.split())
    assert said.startswith("programs run in sandlock, not in bubblewrap: ")
    assert "no namespaces" in said
    assert "apt install bubblewrap" in said
    assert read_run(Store(tmp_path), "one").environment["sandbox"] == "sandlock"
    assert "sandbox sandlock" in (tmp_path / "one" / "report.html").read_text()


def test_bubblewrap_is_recorded_and_no_news(tmp_path: Path, capfd: pytest.CaptureFixture[str], sandboxed: str) -> None:
    if sandboxed != "bubblewrap":
        pytest.skip("bubblewrap does not work here")
    searched(tmp_path)
    assert "bubblewrap" not in capfd.readouterr().err
    assert read_run(Store(tmp_path), "one").environment["sandbox"] == "bubblewrap"


def test_a_run_that_is_carried_on_has_the_sandbox_that_it_has_then(tmp_path: Path, sandboxed: str) -> None:
    store, spec = Store(tmp_path), RunSpec("sequential-sampling", PACKING, "none", "2 steps")
    Session(store, spec, "one", logs=()).start(assemble(spec))
    resume(store, "one", budget="3 steps", logs=())
    [event] = store.events("one", ("resumed",))
    assert event.data["environment"]["sandbox"] == sandboxed


def test_no_sandbox_at_all(anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "installed", lambda kind: False)
    monkeypatch.setenv(UNSAFE, "1")
    made = assemble(RunSpec("sequential-sampling", PACKING, "none", "2 steps"))
    [line] = notes(made)
    assert line.startswith("programs run in no sandbox")
    assert sandbox_of(made.task) == "none"


def test_bubblewrap_that_is_there_is_not_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for there, remedy in ((True, "does not work here"), (False, "apt install bubblewrap")):
        monkeypatch.setattr("evolvent.run.notes.installed", lambda kind, there=there: there)
        assert remedy in weaker_sandbox("sandlock")
        assert remedy in weaker_sandbox("none")
        assert weaker_sandbox("bubblewrap") == weaker_sandbox(None) == ""


def test_machines_of_a_pool_have_their_own(sandboxed: str) -> None:
    made = assemble(RunSpec("sequential-sampling", PACKING, "none", "2 steps"))
    assert sandbox_of(made.task) == sandbox_of(made.task, "ray") == sandboxed
    assert sandbox_of(made.task, "ray:head:6379") == "that of each machine of the pool"
    assert sandbox_of(load_task(PACKING)) is None  # nobody has looked so far
    assert sandbox_of(load_task("countdown")) is None


# --- workers ---


def given(recipe: str, workers: int, task: str = PACKING, model: str = "none", **settings: Any) -> Assembled:
    """A search with so many workers."""
    return assemble(RunSpec(recipe, task, model, "3 steps", settings={"judge.workers": workers, **settings}))


@pytest.mark.parametrize(
    ("recipe", "workers", "said"),
    [
        ("alphaevolve", 1, ""),
        (
            "alphaevolve",
            2,
            "alphaevolve evaluates 1 program at a time, so 1 of 2 workers is idle; add --set propose.children=2 "
            "(another search: parents are drawn before their siblings are known)",
        ),
        ("hill-climbing", 8, ""),
        (
            "hill-climbing",
            16,
            "hill-climbing evaluates 8 programs at a time, so 8 of 16 workers are idle; add --set propose.children=16 "
            "(another search: parents are drawn before their siblings are known)",
        ),
    ],
)
def test_idle_workers_are_pointed_out(recipe: str, workers: int, said: str, sandboxed: str) -> None:
    assert idle_workers(given(recipe, workers)) == said


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ("8 evaluations", ""),
        ("7 evaluations", "a step makes 8 programs and is never cut short, so the budget of 7 evaluations will"),
        ("1 step", ""),
    ],
)
def test_steps_that_the_budget_is_too_small_for_are_pointed_out(budget: str, said: str, sandboxed: str) -> None:
    made = assemble(RunSpec("hill-climbing", PACKING, "none", budget))
    assert large_steps(made).startswith(said)
    assert bool(large_steps(made)) == bool(said)
    assert ("--set propose.children=..." in large_steps(made)) == bool(said)


@pytest.mark.parametrize(
    ("feedback", "an_error"),
    [
        ("error: No module named 'jax'", True),
        ("error: no such file or directory: data.csv", True),
        ("stderr: NameError('x')", True),
        ("error: boom", True),
        ("error: none", False),
        ("stderr: No warnings.", False),
        ("errors: 0", False),
        ("hint: error: boom", False),
    ],
)
def test_what_of_a_feedback_is_an_error(feedback: str, an_error: bool) -> None:
    assert bool(ERROR.search(feedback)) is an_error


def test_the_remedy_leaves_nobody_idle(sandboxed: str) -> None:
    assert "add --set propose.children=3 " in idle_workers(given("alphaevolve", 3))
    assert idle_workers(given("alphaevolve", 3, **{"propose.children": 3})) == ""
    few = {"propose.children": 2, "propose.n": 3, "learn": "none", "credit": "none"}
    assert "add --set propose.children=3 " in idle_workers(given("thetaevolve", 7, **few))


@pytest.mark.parametrize(("recipe", "task"), [("gepa", "program:regret:10"), ("hgm", "program:repair:10")])
def test_some_have_no_setting_for_it(recipe: str, task: str, sandboxed: str) -> None:
    said = idle_workers(given(recipe, 2, task))
    assert said.startswith(f"{recipe} evaluates 1 program at a time, so 1 of 2 workers is idle; no setting")
    assert "leave out --workers" in said


def test_worlds_in_which_nothing_runs_need_no_workers() -> None:
    said = idle_workers(given("hill-climbing", 2, "program:landscape", "simulated:skill=0.5"))
    assert said.startswith("program:landscape is evaluated in one process")


def test_of_a_part_that_is_not_ours_nothing_is_known(tmp_path: Path, sandboxed: str) -> None:
    (tmp_path / "mine.py").write_text(
        "from evolvent.core.recipe import put, recipe\n"
        "from evolvent.recipes.search.random_search import random_search\n"
        "from evolvent.search.loop import Parents\n\n\n"
        "class Mine(Parents):\n"
        "    pass\n\n\n"
        "mine = recipe('mine', random_search, put('propose', Mine, children=1))\n"
    )
    try:
        made = given(f"{tmp_path / 'mine.py'}:mine", 4)
    finally:
        REGISTRY.pop("mine", None)
    assert type(proposer(made)).__name__ == "Mine"
    assert at_once(proposer(made)) is None
    assert idle_workers(made) == ""


QUICK = {"alphaevolve", "gepa", "guided-evolution", "hill-climbing", "openevolve"}
WITHOUT = {"creativegame", "rtv-pdr", "se-agent"}  # workers
LIKE_OTHERS = {"dgm", "execution-grounded-rl"}  # the proposer of alphaevolve, of thetaevolve; much slower worlds


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK))
        for name in sorted(all_recipes())
        if searches(name) and name not in WITHOUT | LIKE_OTHERS
    ],
)
def test_as_many_are_evaluated_at_a_time_as_is_said(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = build(name)
    task: Any = made.main_role.task
    sizes, evaluate = [], task.evaluate

    def counted(programs: Sequence[str], *more: Any) -> Any:
        sizes.append(len(programs))
        return evaluate(programs, *more)

    steps(made.system, 2)  # a search may begin with more
    monkeypatch.setattr(task, "evaluate", counted)
    steps(made.system, 5)
    most = at_once(proposer(made))
    assert most is not None
    assert max(sizes) <= most + (1 + proposer(made).slots if name == "self-evolving-recsys" else 0)  # earlier ones
    if name in QUICK:
        assert max(sizes) == most
