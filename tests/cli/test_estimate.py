"""What a dry run says that a run would take, and that it leaves nothing behind."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tests.cli.test_runs import call, data
from tests.loopback import Scripted
from tests.serve.test_searches import USEFUL, write_model
from tests.small_model import small_model
from tests.toys import random_policy

from evolvent.cli import estimate
from evolvent.models.checkpoint import write_policy


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def dry(recipe: str, *more: str, budget: str = "3 steps") -> tuple[str, ...]:
    """A dry run of a recipe with the small model."""
    return ("run", recipe, "--task", "arith:1x1", "--model", small_model(), "--budget", budget, "--dry-run", *more)


def test_a_dry_run_says_what_measuring_takes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = "run", "grpo", "--task", "arith:1x1", "--model", small_model(), "--budget", "3 steps", "--dry-run"
    found = data(capsys, *args)
    assert found["measuring"]["tokens_sampled"] > 0
    assert found["steps"] == 3
    assert "measured on the test split" in call(capsys, *args)
    assert data(capsys, *args, "--no-final")["measuring"] is None
    assert list(here.iterdir()) == []


def test_a_dry_run_of_what_samples_nothing_knows_no_pace(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = "run", "sft", "--task", "arith:1x1", "--model", small_model(), "--budget", "3 steps", "--dry-run"
    assert "how long is not known, as no step samples" in call(capsys, *args)
    assert data(capsys, *args)["measuring"] is None


def test_a_dry_run_measures_no_more_problems_than_a_file_has(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.dumps({"prompt": f"{i}+1=", "answer": str(i + 1)}) for i in range(10)]  # 2 to test, 1 for the gate
    (here / "rows.jsonl").write_text("\n".join(rows))
    options = "--model", small_model(), "--budget", "1 step", "--set", "propose.problems=4", "--set", "propose.n=4"
    found = data(capsys, "run", "grpo", "--task", "rows.jsonl", *options, "--dry-run")
    rollouts = 2 * 17 * (2 + 1)
    assert found["measuring"]["tokens_sampled"] == round(rollouts * found["tokens_sampled"] / (4 * 4))


def test_a_budget_is_as_many_steps_as_it_pays_for(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = "--set", "propose.problems=4", "--set", "propose.n=8"
    one = data(capsys, *dry("grpo", *size, budget="1 step"))
    assert one["verifier_calls"] == 4 * 8
    found = data(capsys, *dry("grpo", *size, budget="320 verifier calls"))
    assert (found["steps"], found["verifier_calls"]) == (10, 320)
    assert found["tokens_sampled"] == 10 * one["tokens_sampled"]
    told = call(capsys, *dry("grpo", *size, budget="320 verifier calls"))
    assert "320 verifier calls (from one step" in told
    assert "  verifier calls   320\n" in told
    assert "  steps            10\n" in told
    assert list(here.iterdir()) == []


def test_what_a_dry_run_says_comes_true(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The counts of a run of one step, which is the one that was thrown away."""
    found = data(capsys, *dry("grpo", budget="1 step"))
    args = [
        word for word in dry("grpo", "--no-final", "--skip-audit", "--quiet", budget="1 step") if word != "--dry-run"
    ]
    spent = data(capsys, *args)["spent"]["method"]
    assert spent["sampled"] == found["tokens_sampled"]
    assert spent["trained"] == found["tokens_trained"]
    assert spent["verifier_calls"] == found["verifier_calls"]


def test_memory_that_may_not_do_is_a_warning_and_too_little_is_a_refusal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peak = data(capsys, *dry("grpo"))["peak_memory_bytes"]
    monkeypatch.setattr("evolvent.models.memory.available", lambda device: 1)
    assert "more than is free on cpu" in data(capsys, *dry("grpo"))["warning"]
    assert "  warning  " in call(capsys, *dry("grpo"))
    monkeypatch.setattr(estimate, "total", lambda device: int(peak / estimate.HOPELESS) - 1)
    assert "more than is free on cpu" in call(capsys, *dry("grpo"), code=2)


def test_nothing_is_asked_of_an_endpoint_which_may_have_to_be_paid(capsys: pytest.CaptureFixture[str]) -> None:
    with Scripted(lambda a: a.hang_up()) as server:
        how = "--model", f"{server.url}#m", "--task", "arith:1x1", "--budget", "100 calls", "--dry-run"
        size = "--set", "propose.problems=3", "--set", "propose.n=5"
        (role,) = data(capsys, "run", "best-of-n", *how, *size)["steps"]
        assert role["requests_per_step"] == 15
        said = call(capsys, "run", "best-of-n", *how, *size)
        assert f"each step: 15 answers of at most {role['max_tokens']} tokens" in said
        assert server.bodies == []


def of_a_search(model: str) -> tuple[str, ...]:
    """A dry run of 30 evaluations, three children a step."""
    Path("evaluator.py").write_text("def evaluate(program_path): return float(len(open(program_path).read()))\n")
    Path("program.py").write_text("def point():\n    x = 1.0\n    return x\n")
    task = "--task", "evaluator.py", "--seed-program", "program.py"
    size = "--set", "propose.children=3", "--set", "rollout.write.inner.max_tokens=8"
    return ("run", "random-search", *task, "--model", model, *size, "--budget", "30 evaluations", "--dry-run")


def test_a_search_is_reckoned_by_a_step_with_children(
    here: Path, sandboxed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first one evaluates nothing but the seed program, and the last one goes beyond the budget."""
    told = call(capsys, *of_a_search(str(write_model(here / "knows", USEFUL))))
    assert "with knows, 30 evaluations (from" in told.replace(f"{here}/", "")
    assert "  steps            11\n" in told
    assert "  evaluations      31\n" in told
    assert "tokens sampled   0" not in told
    assert "verifier calls" not in told
    assert "test split" not in told


def test_a_model_that_writes_no_program_uses_up_no_evaluations(
    here: Path, sandboxed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_policy(random_policy(layers=1, width=16, context=8192), here / "babbles")
    said = call(capsys, *of_a_search("babbles"), code=2)
    assert "spent nothing of a budget of 30 evaluations; try --dry-run with a budget in steps" in said


def test_a_search_that_evaluates_its_children_later_is_reckoned_by_steps_that_do(
    here: Path, sandboxed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """HGM evaluates the seed program on ten instances, makes five children, and then mostly evaluates one of them."""
    how = "run", "hgm", "--task", "program:repair:10", "--model", "none"
    found = data(capsys, *how, "--budget", "40 evaluations", "--dry-run")
    assert (found["steps"], found["verifier_calls"]) == (1 + 5 + 30, 40)
    run = data(capsys, *how, "--budget", "40 evaluations", "--no-final", "--no-report", "--quiet", "--skip-audit")
    assert found["steps"] / 1.5 < run["steps"] < 1.5 * found["steps"]
    short = data(capsys, *how, "--budget", "3 steps", "--dry-run")  # which end before anybody is evaluated again
    assert (short["steps"], short["verifier_calls"]) == (3, 10)


def test_it_takes_no_longer_than_a_step_or_two(capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.perf_counter()
    found = data(capsys, *dry("grpo", budget="100000 steps"))
    assert found["steps"] == 100_000
    assert time.perf_counter() - begun < found["seconds"]
