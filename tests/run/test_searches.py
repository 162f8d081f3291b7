"""Searches as runs: a seed program that fails leaves nothing, a target ends them, evaluators stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_runs import call, data
from tests.loopback import Scripted
from tests.small_model import small_model
from tests.toys import random_policy

import evolvent as ev
from evolvent.cli.main import main
from evolvent.core.errors import UserError
from evolvent.lineage import pack
from evolvent.lineage.runs import read_run, run_names
from evolvent.lineage.store import Store
from evolvent.models.checkpoint import write_policy
from evolvent.run.assemble import assemble
from evolvent.run.session import Session, begin, resume
from evolvent.run.spec import RunSpec

EVALUATOR = """
import importlib.util

def evaluate(path):
    spec = importlib.util.spec_from_file_location("candidate", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return {"combined_score": float(made.value())}
"""
PROGRAM = "# EVOLVE-BLOCK-START\ndef value():\n    return 2.0 + 1.0\n# EVOLVE-BLOCK-END\n"


@pytest.fixture
def task(tmp_path: Path, sandboxed: str) -> str:
    """A user's own evaluator and seed program."""
    (tmp_path / "e.py").write_text(EVALUATOR)
    (tmp_path / "p.py").write_text(PROGRAM)
    return f"program:{tmp_path}/e.py:{tmp_path}/p.py"


def searching(task: str, budget: str) -> RunSpec:
    """Hill climbing by rules."""
    return RunSpec("hill-climbing", task, "none", budget)


@pytest.mark.parametrize("broken", ["def evaluate(path):\n    raise OSError('out')\n", EVALUATOR + "raise OSError\n"])
def test_a_search_whose_seed_program_fails_leaves_nothing_behind(task: str, tmp_path: Path, broken: str) -> None:
    (tmp_path / "e.py").write_text(broken)
    store = Store(tmp_path / "runs")
    with pytest.raises(UserError, match="the seed program is not valid"):
        begin(searching(task, "10 evaluations"), store)
    assert run_names(store) == []
    assert [p.name for p in store.root.iterdir() if p.is_dir() and p.name != "objects"] == []
    (tmp_path / "e.py").write_text(EVALUATOR)
    assert begin(searching(task, "10 evaluations"), store, logs=()).name.endswith("-1")


def test_a_search_may_go_on_with_other_workers(task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path / "runs")
    begin(searching(task, "9 evaluations"), store, "one", logs=(), final=False)
    how = "--budget", "17 evaluations", "--store", store.root, "--no-report"
    call(capsys, "resume", "one", "--workers", "2", *how)
    begin(searching(task, "17 evaluations"), store, "whole", logs=(), final=False)
    assert texts_of(store, "one") == texts_of(store, "whole")


def texts_of(store: Store, name: str) -> list[str]:
    """The programs of a run, in order."""
    return [c["payload"]["program"] for c in read_run(store, name).candidates.values()]


def test_no_progress_is_claimed_for_a_seed_program_that_fails(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.py").write_text(PROGRAM.replace("return 2.0", "return undefined"))
    with pytest.raises(SystemExit):
        main(["run", "hill-climbing", f"--task={task}", "--budget=10 evaluations", f"--store={tmp_path / 'runs'}"])
    said = capsys.readouterr().err
    assert "nothing valid in full yet" in said
    assert "score" not in said


def test_a_search_stops_when_its_best_value_reaches_the_target(task: str, tmp_path: Path) -> None:
    found = begin(searching(task, "500 evaluations"), tmp_path / "runs", target=3.5, logs=())
    best = [value for _, value in found.curve("best")]
    assert found.reached
    assert best[-1] >= 3.5 > max(best[:-1])


def test_a_target_of_a_search_may_be_any_number(task: str, tmp_path: Path) -> None:
    assert not begin(searching(task, "4 evaluations"), tmp_path / "runs", target=1e9, logs=()).reached
    with pytest.raises(UserError, match="a number that can be reached"):
        begin(searching(task, "4 evaluations"), tmp_path / "runs", target=float("inf"), logs=())


@pytest.mark.parametrize("file", ["e.py", "p.py"])
def test_a_search_is_not_carried_on_by_another_evaluator_or_seed_program(task: str, tmp_path: Path, file: str) -> None:
    store, spec = Store(tmp_path / "runs"), searching(task, "2 steps")
    Session(store, spec, "one", logs=()).start(assemble(spec))
    path = tmp_path / file
    text = path.read_text()
    path.write_text(text + "\nSCALE = 2\n")
    with pytest.raises(UserError, match="was changed after run one had begun"):
        resume(store, "one", budget="3 steps", logs=())
    path.write_text(text)
    assert len(resume(store, "one", budget="3 steps", logs=()).view.steps) == 3


def test_the_table_of_runs_has_whole_names_and_best_values(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "runs")
    name = "a-name-that-is-long-" * 4 + "1"
    found = begin(searching(task, "20 evaluations"), store, name, logs=())
    text = call(capsys, "runs", "--store", store.root)
    [line] = text.splitlines()[1:]
    assert name in line
    assert f"best {found.curve('best')[-1][1]:.6g}" in line
    assert "20 evaluations" in line


def test_what_is_for_weights_is_refused_of_a_search(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "runs")
    begin(searching(task, "4 evaluations"), store, "one", logs=())
    where = "--store", store.root
    for more in (("--version", 0), ("--adapter",), ("--role", "x")):
        assert "is the name of a file" in call(capsys, "export", "one", tmp_path / "best.py", *more, *where, code=2)
        assert "trained none" in call(capsys, "export", "one", tmp_path / "folder", *more, *where, code=2)
    assert not (tmp_path / "best.py").exists()
    assert "`evolvent export one best.py`" in call(capsys, "serve", "one", *where, code=2)
    assert "no model to talk to" in call(capsys, "try", "one", *where, code=2)
    assert "candidates: `evolvent report one`" in call(capsys, "lineage", "one", *where)


def test_a_dry_run_says_what_a_search_takes(task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = "run", "hill-climbing", "--task", task, "--budget", "80 evaluations", "--dry-run"
    found = data(capsys, *args)
    assert found["verifier_calls"] == pytest.approx(80, abs=8)
    assert found["steps"] == pytest.approx(10, abs=2)
    assert found["measuring"]["verifier_calls"] > 0
    assert "the best anew" in call(capsys, *args)
    assert data(capsys, *args, "--no-final")["measuring"] is None


def test_a_dry_run_counts_the_instances_on_which_the_best_are_evaluated_anew(
    capsys: pytest.CaptureFixture[str], sandboxed: str
) -> None:
    found = data(capsys, "run", "hill-climbing", "--task", "program:regret:5", "--budget", "2 steps", "--dry-run")
    spec = RunSpec("hill-climbing", "program:regret:5", "none", "2 steps")
    world = assemble(spec).task
    anew = 5 * len(world.instances("gate")) + len(world.instances("test"))
    assert found["measuring"]["verifier_calls"] == 5 * anew  # where values vary each is evaluated five times


def test_a_dry_run_goes_on_until_somebody_is_evaluated(capsys: pytest.CaptureFixture[str], sandboxed: str) -> None:
    """Steps of HGM that only make a child evaluate nobody."""
    args = "run", "hgm", "--task", "program:repair:10", "--model", "none", "--budget", "40 evaluations", "--dry-run"
    found = data(capsys, *args)
    assert found["verifier_calls"] == 40
    assert found["steps"] > 1


def test_a_dry_run_over_an_endpoint_says_how_many_answers_a_step_of_a_search_asks_for(
    task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Scripted(lambda a: a.hang_up()) as server:
        args = "run", "hill-climbing", "--task", task, "--model", f"{server.url}#m", "--dry-run"
        [step] = data(capsys, *args, "--set", "propose.children=3")["steps"]
        assert server.bodies == []
    assert step["requests_per_step"] == 3


def test_a_target_that_was_reached_does_not_stop_the_run_that_is_carried_on(task: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    assert begin(searching(task, "40 evaluations"), store, "one", target=3.0, logs=()).reached
    more = resume(store, "one", budget="12 evaluations", logs=())
    assert not more.reached
    assert more.view.spent["method"]["verifier_calls"] >= 12
    with pytest.raises(UserError, match="budget of 12 evaluations is used up"):
        resume(store, "one", budget="12 evaluations", logs=())


def test_from_python_a_search_has_its_best_program(task: str, tmp_path: Path) -> None:
    evaluator, program = task.removeprefix("program:").split(":")
    found = ev.run("hill-climbing", evaluator, "none", "12 evaluations", seed_program=program, store=tmp_path, logs=())
    best = found.best
    assert best is not None
    assert found.spec.task == task
    assert best.value == best.anew == max(c["evaluation"]["value"] or 0 for c in found.view.candidates.values())
    assert best.files == found.view.candidates[best.candidate]["payload"]
    assert "def value" in best.text
    still: dict[str, Any] = {"model": small_model(), "store": tmp_path, "final": False, "logs": ()}
    assert ev.run("no-change", "arith:1x1", budget="1 step", **still).best is None


def test_a_script_reads_what_a_search_has_found(task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    how = "--task", task, "--model", "none", "--store", str(tmp_path / "runs"), "--json", "--no-report"
    told = data(capsys, "run", "hill-climbing", *how, "--budget", "12 evaluations")
    [row] = data(capsys, "runs", "--store", str(tmp_path / "runs"), "--json")
    assert row["best"] == row["anew"] == told["best"]["value"] == told["best"]["anew"] >= 3.0
    assert "def value" in next(iter(told["best"]["files"].values()))


def test_steps_that_are_larger_than_the_budget_are_told(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    how = "--task", task, "--model", "none", "--store", str(tmp_path / "runs"), "--no-report"
    said = call(capsys, "run", "hill-climbing", *how, "--budget", "4 evaluations", "--set", "propose.children=12")
    assert "evaluations of 4 evaluations: a budget ends between steps, and a step took about" in said
    assert "a budget ends" not in call(capsys, "run", "hill-climbing", *how, "--budget", "40 evaluations")


def test_a_folder_that_was_there_stays(task: str, tmp_path: Path) -> None:
    (tmp_path / "e.py").write_text("def evaluate(path):\n    return 'much'\n")
    folder = tmp_path / "runs" / "mine"
    folder.mkdir(parents=True)
    with pytest.raises(UserError, match="the seed program is not valid"):
        begin(searching(task, "10 evaluations"), Store(tmp_path / "runs"), "mine", logs=())
    assert list(folder.iterdir()) == []


def test_two_searches_differ_by_their_best_programs(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "runs")
    begin(searching(task, "4 evaluations"), store, "one", logs=())
    found = begin(searching(task, "60 evaluations"), store, "two", logs=())
    text = call(capsys, "diff", "one", "two", "--store", store.root)
    assert f"{found.curve('best')[-1][1]:.6g}, anew" in text
    assert "\n-    return" in text
    assert "weights" not in text


def test_a_search_with_a_model_here_exports_the_model_to_a_folder_and_the_program_to_a_file(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "runs")
    write_policy(random_policy(layers=1, width=16, context=8192), tmp_path / "babbles")
    begin(RunSpec("random-search", task, str(tmp_path / "babbles"), "1 step"), store, "one", logs=(), final=False)
    where = "--store", store.root
    assert "the model" in call(capsys, "export", "one", tmp_path / "my-v1.5", *where)
    assert (tmp_path / "my-v1.5" / "config.json").is_file()
    assert "candidate" in call(capsys, "export", "one", tmp_path / "best.py", *where)
    assert "def value" in (tmp_path / "best.py").read_text()


def test_a_checkpoint_of_other_code_is_refused_in_a_sentence(task: str, tmp_path: Path, monkeypatch: Any) -> None:
    store = Store(tmp_path / "runs")
    spec = RunSpec("openevolve", task, "none", "6 evaluations")
    folder = begin(spec, store, "one", logs=(), final=False).folder
    state = pack.load(folder / "checkpoint.safetensors")
    [islands] = [part for path, part in state["system"]["parts"].items() if path.endswith("islands")]
    del islands["turn"]  # as code had it that had no turns
    pack.save(folder / "checkpoint.safetensors", state)
    with pytest.raises(KeyError, match="turn"):  # ours, and so a mistake of ours
        resume(store, "one", budget="8 evaluations", logs=(), final=False)
    monkeypatch.setattr("evolvent.run.environment.code_hash", lambda: "other")
    with pytest.raises(UserError, match=r"does not fit this code of evolvent \(KeyError: 'turn'\); resume it with"):
        resume(store, "one", budget="8 evaluations", logs=(), final=False)
