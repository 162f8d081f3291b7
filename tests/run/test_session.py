"""How runs begin, stop, go on and fail: names, locks, signals, budgets, rollbacks, full disks, secrets."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from tests.run.lives import KILLED, begin, end, live, record, same, view_of
from tests.run.test_resume import GATED, SETTINGS, again, command, die_in_checkpoint
from tests.small_model import small_model

import evolvent as ev
from evolvent.cli.main import main
from evolvent.core.errors import UserError
from evolvent.core.loop import TooManyErrors
from evolvent.core.records import Problem
from evolvent.lineage import pack
from evolvent.lineage.rollback import go_back
from evolvent.lineage.runs import list_runs
from evolvent.lineage.store import Store
from evolvent.run import final, pace
from evolvent.run.assemble import assemble
from evolvent.run.result import Progress
from evolvent.run.session import Session, check_name
from evolvent.run.session import begin as begin_run
from evolvent.run.spec import RunSpec
from evolvent.tasks import user
from evolvent.tasks.adapters import foreign
from evolvent.tasks.base import Attempt, one_user

FLAKY = """
import os
def problems():
    return [{{"prompt": f"{{i}}+1=", "answer": str(i + 1)}} for i in range(40)]
def reward(completion, answer):
    if os.path.getsize({out!r}):
        raise OSError("the judge is out")
    return float(completion == answer)
"""


def refused(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the command line says of bad input, which must be one line and exit code 2."""
    with pytest.raises(SystemExit) as end:
        main(args)
    assert end.value.code == 2
    said = capsys.readouterr().err.strip()
    assert said.startswith("evolvent: ")
    assert "\n" not in said
    return said


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one finished run; tests that change it copy it."""
    store = tmp_path_factory.mktemp("finished") / "runs"
    assert live(command(store, steps=6)).code == 0
    return store


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    """A copy of that store."""
    return Path(shutil.copytree(finished, tmp_path / "runs"))


def wait_for_steps(store: Path, count: int, seconds: float = 120) -> None:
    """Until a run has done some steps."""
    lines, deadline = store / "run/metrics.jsonl", time.monotonic() + seconds
    while time.monotonic() < deadline:
        if lines.is_file() and len(lines.read_text().splitlines()) >= count:
            return
        time.sleep(0.05)
    raise AssertionError("the run does not get going")


def test_ctrl_c_saves_and_the_run_goes_on_to_the_same_bits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also what a second process is told meanwhile."""
    store = tmp_path / "runs"
    first = [*command(store, steps=100_000), "--no-final"]
    running = begin(first, said=tmp_path / "said.txt")
    wait_for_steps(store, 4)
    assert [v.status for v in list_runs(Store(store))] == ["running"]
    assert "under way in another process" in refused(again(store), capsys)
    assert "there is a run in" in refused(first, capsys)
    with pytest.raises(UserError, match="under way; stop it first"):
        go_back(Store(store), "run", 0)
    os.kill(running, signal.SIGINT)
    life = end(running)
    said = (tmp_path / "said.txt").read_text()
    assert life.code == 130, said
    assert "finishing this step" in said
    assert "evolvent resume run" in said
    view = view_of(store, "run")
    assert view.status == "interrupted"
    steps = len(view.steps)
    assert steps == pack.load(store / "run/checkpoint.safetensors")["system"]["t"]
    budget = f"{steps + 3} steps"
    assert live([*again(store), "--budget", budget]).code == 0
    assert live([*command(tmp_path / "whole", steps=steps + 3), "--no-final"]).code == 0
    a, b = record(tmp_path / "whole", "run"), record(store, "run")
    assert same(a, b) == []
    assert view_of(store, "run").spec["budget"] == budget


def test_a_killed_process_leaves_an_interrupted_run(tmp_path: Path) -> None:
    store = tmp_path / "runs"
    life = live(command(store, steps=100_000), kill_after=1.0)
    assert life.code == -signal.SIGKILL
    assert [v.status for v in list_runs(Store(store))] == ["interrupted"]


def test_a_finished_run_wants_a_larger_budget(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(again(copy), capsys)
    assert "finished: its budget of 6 steps is used up" in said
    assert "--budget" in said
    assert live([*again(copy), "--budget", "8 steps"]).code == 0
    assert len(view_of(copy, "run").steps) == 8


def test_a_longer_run_is_a_shorter_one_carried_on(copy: Path, tmp_path: Path) -> None:
    """Weights and curves; the versions differ by the one at the end of the shorter run."""
    assert live([*again(copy), "--budget", "8 steps"]).code == 0
    assert live(command(tmp_path / "whole")).code == 0
    a, b = record(tmp_path / "whole", "run"), record(copy, "run")
    assert same(a["state"]["system"]["policy"], b["state"]["system"]["policy"]) == []
    assert same(a["steps"], b["steps"]) == []


def test_after_a_rollback_the_run_goes_on_from_there(copy: Path) -> None:
    store = Store(copy)
    before = view_of(copy, "run")
    start = before.version(0)
    go_back(store, "run", 0)
    assert view_of(copy, "run").head == 0
    assert live([*again(copy), "--budget", "7 steps", "--set-nothing"]).code == 2  # no such option: nothing happens
    assert live([*again(copy), "--budget", "9 steps"]).code == 0
    view = view_of(copy, "run")
    numbers = [v.number for v in view.versions]
    assert len(numbers) == len(set(numbers))
    new = [v for v in view.versions if v.number > max(v.number for v in before.versions)]
    assert new
    assert new[0].parents == (0,)
    assert view.head == new[-1].number
    assert len(view.steps) == 9
    assert start in view.versions
    go_back(store, "run", before.head or 0)  # undo
    assert view_of(copy, "run").head == before.head


@pytest.mark.slow
def test_killed_after_a_rollback_it_does_not_go_back_twice(copy: Path, tmp_path: Path) -> None:
    go_back(Store(copy), "run", 0)
    other = Path(shutil.copytree(copy, tmp_path / "other"))
    more = ["--budget", "10 steps"]
    life = live([*again(copy), *more])
    assert life.code == 0
    for share in (0.4, 0.7, 0.9):
        live([*again(other), *more], kill_after=share * life.seconds)
    if view_of(other, "run").status != "finished":
        assert live([*again(other), *more]).code == 0
    assert same(record(copy, "run"), record(other, "run")) == []


def late(number: int) -> None:
    """Save as rarely as may be, and die before the `number`-th checkpoint is written."""
    die_in_checkpoint(number, 0.0)
    pace.SHARE = 1e-9


def test_killed_then_rolled_back_nothing_is_lost_and_nothing_is_free(tmp_path: Path) -> None:
    """The checkpoint goes with the version, so that a kill can undo the last one only; a rollback does not undo it."""
    store, settings = tmp_path / "runs", {**SETTINGS, "gate.every": 2}
    args = [*command(store, steps=10, settings=settings), "--no-final"]
    assert live(args, before=lambda: late(5)).code == KILLED  # the start, the first step, two versions; dies at step 6
    assert pack.load(store / "run/checkpoint.safetensors")["system"]["t"] == 4
    before = view_of(store, "run")
    assert [v.step for v in before.versions] == [0, 2, 4, 6]
    go_back(Store(store), "run", before.versions[1].number)
    (listed,) = list_runs(Store(store))
    assert listed.spent == before.spent
    assert live(again(store)).code == 0
    view = view_of(store, "run")
    assert view.versions[:4] == before.versions
    assert [v.step for v in view.versions[4:]] == [8, 10]
    assert view.versions[4].parents == (before.versions[1].number,)
    assert view.steps.keys() == set(range(10))
    assert {t: view.steps[t] for t in range(6)} == before.steps
    for unit in ("steps", "sampled", "trained"):
        spent = [view.steps[t]["spent"]["method"][unit] for t in range(10)]
        assert all(a < b for a, b in pairwise(spent)), unit
    assert spent[-1] == pack.load(store / "run/checkpoint.safetensors")["system"]["ledger"]["method"]["trained"]
    go_back(Store(store), "run", before.versions[3].number)
    assert live([*again(store), "--budget", "12 steps"]).code == 0
    after = view_of(store, "run")
    assert after.versions[:6] == view.versions
    assert [(v.step, v.parents) for v in after.versions[6:]] == [(12, (before.versions[3].number,))]


def test_a_longer_run_comes_from_the_last_version_of_the_shorter_one(tmp_path: Path) -> None:
    store = tmp_path / "runs"
    assert live([*command(store, steps=5), "--no-final"]).code == 0  # the gate looked at the third
    last = view_of(store, "run").versions[-1]
    assert last.step == 5
    assert live([*again(store), "--budget", "6 steps"]).code == 0
    assert [(v.step, v.parents) for v in view_of(store, "run").versions[-1:]] == [(6, (last.number,))]


def test_a_run_that_is_carried_on_shows_no_figures_of_before(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished = view_of(copy, "run")
    running = begin([*again(copy), "--budget", "100000 steps"], said=copy.parent / "said.txt")
    wait_for_steps(copy, 12)
    os.kill(running, signal.SIGINT)
    assert end(running).code == 130
    view = view_of(copy, "run")
    said = (copy.parent / "said.txt").read_text()
    assert f"Stopped after step {len(view.steps)}. Carry on with: evolvent resume run" in said
    assert "Test accuracy" not in said
    assert set(view.evaluations) == {"start"}
    assert view.evaluation(finished.head or 0) == finished.evaluations["evolved"]
    few = refused([*again(copy), "--budget", "7 steps"], capsys)
    assert f"has spent {len(view.steps)} steps already, and a budget of 7 steps is no more; `evolvent resume run" in few


def test_a_gate_that_goes_back_does_not_undo_a_rollback(tmp_path: Path) -> None:
    """Its memory of later versions is not that of the version gone back to."""
    store = tmp_path / "runs"
    assert live([*command(store, "calc:1x1", 4, GATED), "--no-final"]).code == 0
    view = view_of(store, "run")
    go_back(Store(store), "run", 0)
    assert live([*again(store), "--budget", "5 steps"]).code == 0
    state = pack.load(store / "run/checkpoint.safetensors")["system"]
    assert state["parts"]["gate"]["accepted"] is None  # step 5 was not looked at yet
    assert view_of(store, "run").versions[-1].parents == (0,)
    assert len(view.versions) > 2


def test_a_target_ends_the_run(tmp_path: Path) -> None:
    args = [*command(tmp_path / "runs", steps=50), "--no-final", "--target", "0.0"]
    assert live(args).code == 0
    view = view_of(tmp_path / "runs", "run")
    assert view.status == "finished"
    assert len(view.steps) == SETTINGS["gate.every"]


def test_a_target_is_of_the_role_that_works_on_the_task(tmp_path: Path) -> None:
    """Metrics have the role before their names where there are several; the display is told the main role's too."""
    seen: list[Progress] = []
    result = ev.run(
        "proposer-solver",
        "countdown:2x20",
        budget="3 steps",
        settings={
            "proposer/propose.problems": 2,
            "solver/propose.problems": 4,
            "proposer/gate.every": 0,
            "solver/gate.every": 1,
        },
        store=tmp_path / "runs",
        watch=seen.append,
        target=0.0,
        final=False,
    )
    assert result.reached
    assert "gate/accuracy" in seen[-1].metrics


def test_bad_input_from_python_leaves_nothing(tmp_path: Path) -> None:
    for bad in ({"recipe": "grppo"}, {"budget": "5"}, {"target": 2.0}, {"name": "a/b"}, {"logs": ("no",)}):
        with pytest.raises(UserError):
            ev.run(**{"task": "arith:1x1", "model": str(small_model()), "store": tmp_path / "runs", **bad})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("named", [True, False])
def test_a_locked_store_leaves_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.setattr(Store.__init__, "__defaults__", (None, 0.5))  # seconds of patience
    Store(tmp_path / "runs").close()
    args = command(tmp_path / "runs", steps=2)
    if not named:
        place = args.index("--name")
        del args[place : place + 2]
    with sqlite3.connect(tmp_path / "runs/store.db", isolation_level=None) as other:
        before = sorted(p.name for p in (tmp_path / "runs").iterdir() if p.is_dir())
        other.execute("BEGIN EXCLUSIVE")
        assert "another process keeps it locked" in refused(args, capsys)
    assert sorted(p.name for p in (tmp_path / "runs").iterdir() if p.is_dir()) == before


@pytest.mark.parametrize("name", ["", "..", "a/b", "last", "objects", "-x", "a b", "x" * 101, "é"])
def test_names_that_no_run_can_have(name: str) -> None:
    with pytest.raises(UserError, match="cannot name a run"):
        check_name(name)


def test_a_run_that_fails_too_often_says_where_it_goes_on(tmp_path: Path) -> None:
    """The verifier is out from the third step on: of the latest 20 trajectories more than 10 have failed at the fourth.
    The version of the second is the last checkpoint."""
    out = tmp_path / "out"
    out.write_text("")
    (tmp_path / "flaky.py").write_text(FLAKY.format(out=str(out)))
    settings = {"propose.problems": 4, "propose.n": 2, "gate.every": 2, "gate.problems": 2, "rollout.max_tokens": 4}
    spec = RunSpec("grpo", str(tmp_path / "flaky.py"), small_model(), "9 steps", settings=settings)
    said = (
        r"mend that, then .*`evolvent resume run`, which goes on after step 2; if it is .*flaky.py that you change, beg"
    )
    with pytest.raises(TooManyErrors, match=said):
        begin_run(spec, Store(tmp_path / "runs"), "run", final=False, watch=lambda p: out.write_text("x" * (p.t >= 2)))
    view = view_of(tmp_path / "runs", "run")
    assert view.status == "failed"
    assert view.notes[-1].endswith("the checkpoint is from after step 2")


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs/run").mkdir(parents=True)
    (tmp_path / "runs/run/mine.txt").write_text("mine")
    assert "choose another --name" in refused(command(tmp_path / "runs"), capsys)
    assert [p.name for p in (tmp_path / "runs/run").iterdir()] == ["mine.txt"]


def test_a_password_in_the_description_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-0123456789abcdef")
    for settings in ({"judge.shaping": {"x": "sk-0123456789abcdef"}}, {"learn.lr": "http://me:hunter22@host"}):
        spec = RunSpec("no-change", "arith:1x1", small_model(), "1 steps", settings={})
        secret = RunSpec(**{**spec.as_dict(), "settings": settings})
        with pytest.raises(UserError, match="EVOLVENT_API_KEY") as told:
            Session(Store(tmp_path / "runs"), secret, "run").start(assemble(spec))
        assert "hunter22" not in str(told.value)
        assert not (tmp_path / "runs/run").exists()


def test_a_number_is_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUMMY_API_KEY", "00000000")
    settings = {"learn.lr": 0.30000000000000004, "propose.problems": 2, "propose.n": 2}
    spec = RunSpec("grpo", "arith:1x1", small_model(), "1 step", 100000000, settings)
    result = begin_run(spec, Store(tmp_path / "runs"), final=False)
    assert result.view.spec["settings"] == settings
    assert result.view.spec["seed"] == 100000000


def test_secrets_are_nowhere_in_what_a_run_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the environment and on the command line, a password in the address of the store."""
    monkeypatch.setenv("MY_API_KEY", "sk-0123456789abcdef")
    spec = RunSpec("grpo", "arith:1x1", small_model(), "2 steps", settings=SETTINGS)
    result = begin_run(
        spec,
        Store(tmp_path / "runs"),
        final=False,
        command="evolvent run --store postgresql://me:hunter22@h/d --key sk-0123456789abcdef",
    )
    main_args = ["report", result.name, "--store", str(tmp_path / "runs")]
    with pytest.raises(SystemExit) as end:
        main(main_args)
    assert end.value.code == 0
    assert result.view.command == "evolvent run --store postgresql://***@h/d --key ***"
    for path in (p for p in tmp_path.rglob("*") if p.is_file()):
        data = path.read_bytes()
        assert b"sk-0123456789" not in data, path
        assert b"hunter22" not in data, path


@pytest.mark.slow
def test_secrets_astride_a_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a secret would not be found any more by what looks for the whole one."""
    monkeypatch.setenv("SOME_API_KEY", "sk-1234567890")
    problem = Problem("k", one_user("1+1="), {}, task="t")
    told = [
        final.cut("x" * (final.LONGEST_TEXT - 8) + "sk-1234567890 and more"),
        user._which(Attempt(problem, "x" * 30 + "sk-1234567890 and more")),
        foreign.brief(ValueError("x" * 292 + "sk-1234567890 and more")),
    ]
    assert [text for text in told if "sk-1" in text] == []


@pytest.mark.slow
def test_a_full_disk_ends_the_run_and_it_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """A file system of 2 MB in a mount namespace: the run fills it, says so, and is resumed elsewhere."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("mount namespaces are not allowed here")
    disk, copied = tmp_path / "disk", tmp_path / "copy"
    disk.mkdir()
    args = [*command(disk / "runs", steps=100_000), "--no-final", "--set", "gate.every=1", "--set", "gate.problems=2"]
    script = 'mount -t tmpfs -o size=2m none "$1"; "${@:3}" || code=$?; cp -r "$1" "$2"; exit $code'
    line = ["unshare", "-rm", "bash", "-ec", script, "bash", str(disk), str(copied)]
    done = subprocess.run([*line, sys.executable, "-m", "evolvent.cli.main", *args], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr[-2000:]
    last = done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert "free some space" in last
    assert not list(copied.rglob("*.part"))
    steps = pack.load(copied / "runs/run/checkpoint.safetensors")["system"]["t"]
    assert steps > 3
    assert live([*again(copied / "runs"), "--budget", f"{steps + 2} steps"]).code == 0
    assert len(view_of(copied / "runs", "run").steps) == steps + 2


def test_the_python_interface(tmp_path: Path) -> None:
    seen = []
    result = ev.run(
        "grpo",
        "arith:1x1",
        small_model(),
        "3 steps",
        settings=SETTINGS,
        store=tmp_path / "runs",
        watch=seen.append,
        final=False,
    )
    assert result.name == "grpo-arith-1"
    assert [p.t for p in seen] == [1, 2, 3]
    assert len(result.curve("outcome")) == 3
    assert result.curves["outcome"] == result.curve("outcome")
    assert result.ledger.of("steps") == 3
    lines = [json.loads(x) for x in (result.folder / "metrics.jsonl").read_text().splitlines()]
    assert [x["outcome"] for x in lines] == [y for _, y in result.curve("outcome")]
    assert os.path.exists(result.folder / "checkpoint.safetensors")
