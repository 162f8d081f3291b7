"""Bad input: exit code 2, one sentence that says what to do, no traceback, and nothing half-written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from tests.toys import random_policy

from evolvent.cli.main import COMMANDS, main
from evolvent.models.checkpoint import write_policy

PACKING = "program:circle-packing:8"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained model with room for 24 tokens."""
    folder = tmp_path_factory.mktemp("model")
    write_policy(random_policy(layers=1, width=16, context=24), folder)
    return folder


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is said; the folder must be as it was."""
    before = sorted(Path().rglob("*"))
    with pytest.raises(SystemExit) as end:
        main(args)
    said = capsys.readouterr().err.strip()
    assert end.value.code == 2, said
    assert said.startswith("evolvent: ")
    assert "Traceback" not in said
    assert len(said.splitlines()) == 1
    assert sorted(Path().rglob("*")) == before
    return said


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["grppo"], "unknown recipe `grppo`; did you mean grpo"),
        (["grpo+"], "no recipe on one side of a .[+]"),
        (["nothing.py:mine"], "there is no recipe file nothing.py"),
        (["grpo", "--task", "countdwn"], "did you mean countdown"),
        (["grpo", "--task", "countdown:9x9x9"], "has no level `9x9x9`"),
        (["grpo", "--task", "mine.py"], "there is no file mine.py"),
        (["grpo", "--set", "learn.lrr=1"], "no key `learn.lrr`.*did you mean learn.lr"),
        (["grpo", "--set", "lern.lr=1"], "no slot `lern`; did you mean learn"),
        (["grpo", "--set", "learn..lr=1"], "is no path"),
        (["grpo", "--set", "learn.lr"], "wants path=value"),
        (["grpo", "--set", "learn.lr=fast"], "learn.lr must be float"),
        (["grpo", "--set", "learn.lr=nan"], "must be a number, got nan"),
        (["grpo", "--set", "judge.shaping.lines=nan"], r"judge.shaping.lines must be a number, got nan"),
        (["grpo", "--set", "propose.n=0"], "at least 1 problem and 1 rollout"),
        (["grpo", "--set", "rollout.temperature=-1"], "temperature must be at least 0"),
        (["grpo", "--set", "credit.baseline=nonsense"], "no part `nonsense`"),
        (["grpo", "--set", "learn=no.such:Thing"], "cannot import `no.such:Thing`"),
        (["gspo+cispo"], "put different values at .*; choose with --take"),
        (["grpo", "--take", "learn.lr=dapo"], "`dapo` is not part of this composition"),
        (["grpo", "--budget", "300"], "has no unit"),
        (["grpo", "--budget", "0 steps"], "above zero"),
        (["grpo", "--budget", "-5 steps"], "above zero"),
        (["grpo", "--budget", "5 bananas"], "no unit of the ledger"),
        (["grpo", "--target", "0.5"], "would never be looked at.*--set gate.every=1"),
        (["grpo", "--target", "0.5", "--set", "gate.every=0"], "would never be reached"),
        (["grpo", "--target", "50"], "from 0 to 1"),
        (["grpo", "--profile", "huge"], "unknown profile `huge`"),
        (["grpo", "--dtype", "float31"], "float31"),
        (["grpo", "--device", "gpu7"], "gpu7"),
        (["grpo", "--lora", "0"], "rank of a LoRA adapter must be a whole number above 0"),
        (["grpo", "--lora", "many"], "adapter.rank must be int"),
        (["grpo", "--name", "../elsewhere", "--skip-audit"], "elsewhere"),
        (["grpo", "--log", "carrier-pigeon", "--skip-audit"], "unknown log `carrier-pigeon`"),
        (["grpo", "--threads", "0"], "--threads"),
        (["grpo", "--workers", "2"], "--workers is for searches .* grpo has none; leave it out"),
        (["grpo", "--workers", "2", "--set", "learn.lrr=1"], "no key `learn.lrr`"),
        (["grpo", "--set", "judge.workers=2"], "no key `judge.workers` .set by you"),
        (["creativegame", "--task", "program:grid-games:2", "--workers", "2"], "that of creativegame has none; leave"),
        (["grpo", "--seed", "one"], "--seed"),
        (["grpo", "--taks", "countdown"], "--taks"),
        (["grpo", "--task", "arith:12x12", "--skip-audit"], "leaves no room in the model's context of 24"),
    ],
)
def test_run(args: list[str], said: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usual = {"--model": str(model), "--task": "arith:1x1", "--budget": "2 steps"}
    more = [word for option, value in usual.items() if option not in args for word in (option, value)]
    assert_matches(said, refused(["run", *args, *more], capsys))


def assert_matches(wanted: str, said: str) -> None:
    """What is said has the pattern in it."""
    import re

    assert re.search(wanted, said), said


def test_models(model: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(name: str) -> str:
        return refused(["run", "grpo", "--task", "arith:1x1", "--model", name], capsys)

    assert "unknown model `tyni`" in said("tyni")
    (here / "empty").mkdir()
    assert "empty" in said("empty")
    (here / "bare").mkdir()
    (here / "bare/config.json").write_bytes((model / "config.json").read_bytes())
    assert "weights" in said("bare")
    (here / "broken").mkdir()
    for path in model.iterdir():
        (here / "broken" / path.name).write_bytes(path.read_bytes())
    weights = load_file(here / "broken/model.safetensors")
    name = next(iter(weights))
    weights[name].view(-1)[0] = float("nan")
    save_file(weights, here / "broken/model.safetensors", {"format": "pt"})
    assert f"weights of {name} are infinite or no numbers" in said("broken")
    (here / "broken/model.safetensors").write_bytes(b"nonsense")
    assert "model.safetensors" in said("broken")
    (here / "broken/config.json").write_text("{")
    assert "config.json" in said("broken")
    (here / "broken/config.json").write_text('{"model_type": "perceptron"}')
    assert "perceptron" in said("broken")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("task = ", "is not TOML"),
        ("seed = " + "1" * 5000, "is not TOML"),
        ("tsak = 'arith'", "no key `tsak`"),
        ("budget = 300", "has no unit"),
        ("seed = 'one'", "'one' is not a valid integer"),
        ("task = 5", "unknown task `5`"),
        ("task = {x = 1}", "should be one value"),
        ("set = 3", "`set` should be a table"),
        ("take = 'x'", "`take` should be a table"),
        ("[set]\nlearn.lrr = 1", "no key `learn.lrr`"),
        ("[set.learn]\nlr = 'fast'", "learn.lr must be float"),
    ],
)
def test_config_files(text: str, said: str, model: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "run.toml").write_text(text)
    assert said in refused(["run", "grpo", "--config", "run.toml", "--model", str(model)], capsys)


@pytest.mark.parametrize("command", [["run", "grpo", "--dry-run"], ["compare", "grpo", "no-change"]])
def test_a_verifier_that_any_answer_satisfies(
    command: list[str], model: Path, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is planned, and no methods are compared, on rewards that mean nothing."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # importing the file leaves nothing beside it
    rows = "def problems(): return [{'prompt': f'{i}+1=', 'answer': str(i + 1)} for i in range(30)]\n"
    (here / "always.py").write_text(rows + "def reward(completion, answer): return 1.0\n")
    said = refused([*command, "--task", "always.py", "--model", str(model)], capsys)
    assert "the verifier of always fails its audit" in said
    assert "--skip-audit runs nevertheless" in said


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["rnu"], "no command `rnu`; did you mean run"),
        (["run", "--config", "no.toml"], "cannot read no.toml"),
        (["resume", "last"], "there is no store in runs"),
        (["lineage", "last"], "there is no store in runs"),
        (["report", "last"], "there is no store in runs"),
        (["diff", "a", "b"], "there is no store in runs"),
        (["rollback", "last", "3"], "there is no store in runs"),
        (["export", "last", "out"], "there is no store in runs"),
        (["gc"], "there is no store in runs"),
        (["show", "grppo"], "did you mean grpo"),
        (["show"], "(?i)missing argument"),
        (["tasks", "countdwn"], "did you mean countdown"),
        (["models", "tinny"], "did you mean tiny"),
        (["compare", "grpo", "rloo"], "needs --task"),
        (["compare", "grpo", "--task", "arith"], "at least two arms"),
        (["compare", "grpo", "grpo", "--task", "arith"], "two arms are the same"),
        (["compare", "grpo", "rlo", "--task", "arith"], "did you mean rloo"),
        (["compare", "grpo", "rloo", "--task", "arith", "--seeds", "1"], "2 to 64 seeds"),
        (["compare", "grpo", "rloo", "--task", "arith", "--budget", "5"], "has no unit"),
        (["compare", "grpo", "rloo", "--task", "arith", "--picture", "no/where.png"], "cannot draw no/where.png"),
        (["compare", "grpo", "rloo", "--task", "arith", "--picture", "curves.odt"], "ending in .png"),
        (["compare", "grpo", "--task", PACKING], "grpo has a model answer problems"),
        (["compare", "hill-climbing", "--task", PACKING, "--no-baselines"], "leave the baselines on"),
        (["compare", "hill-climbng", "--task", PACKING], "did you mean hill-climbing"),
        (["compare", "hill-climbing", "--task", PACKING, "--test", "arith"], "leave out --test"),
        (["compare", "hill-climbing", "random-search", "--task", PACKING, "--budget", "5"], "has no unit"),
        (["claims", "grppo"], "did you mean grpo"),
        (["claims", "grpo"], "makes no claims"),
        (["claims", "--stale"], "there is no evidence in /.*/evidence; .*--evidence FOLDER"),
        (["claims", "--stale", "--json", "--evidence", "no/where"], "there is no evidence in /.*/no/where"),
        (["claims", "--carry"], "there is no evidence in /"),
        (["audit", "countdwn"], "did you mean countdown"),
        (["new", "task", "mine.txt"], "mine"),
        (["new", "method", "mine.py"], "method"),
        (["pretrain", "out", "--shape", "huge"], "unknown shape `huge`"),
        (["pretrain", "out", "--shape", "99x64"], "layers go from 1 to 16"),
        (["completion", "dosh"], "dosh"),
        (["completion"], "Missing argument .* Choose from: bash, zsh, fish"),
        (["serve", "last"], "last"),
        (["serve", "tiny", "--port", "99999"], "'--port': 99999 is not in the range"),
        (
            ["runs", "--store", "postgresql://host/db?user=me&password=hunter22x"],
            "no password in the address .*PGPASSWORD",
        ),
        (["try", "last"], "last"),
    ],
)
def test_other_commands(args: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert args[0] in COMMANDS or args[0] == "rnu"
    assert_matches(said, refused(args, capsys))


PART = """from evolvent.core.recipe import put, recipe
from evolvent.recipes.policy_gradient.grpo import grpo


def rows(advantages):
    return halved(advantages)


def halved(advantages):
    return 1 / 0


failing_part = recipe("failing-part", grpo, put("credit.rows", rows), title="Mine")
"""


def test_an_error_in_a_part_of_the_users_own(model: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "part.py").write_text(PART)
    with pytest.raises(SystemExit) as end:
        main(
            [
                "run",
                "part.py:failing-part",
                "--task",
                "arith:1x1",
                "--model",
                str(model),
                "--no-final",
                "--quiet",
                "-b",
                "2 steps",
            ]
        )
    said = capsys.readouterr().err
    assert end.value.code == 1
    assert f"an error in {here / 'part.py'}, line 10" in said
    assert "in rows" in said
    assert "ZeroDivisionError: division by zero" in said
    assert re.search(r"once that is mended: evolvent resume failing-part-arith\S*$", said.strip())
    assert "evolvent/core" not in said


def test_an_error_of_the_package_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evolvent.cli.options.Path", None)
    with pytest.raises(TypeError):
        main(["runs"])
