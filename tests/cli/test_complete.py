"""What a shell completes: by the functions that click asks, by the process that a shell starts, and in a real bash."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from tests.cli.finished import store_with_runs

from evolvent.cli.keys import keys_of
from evolvent.cli.main import cli
from evolvent.core.recipe import show_path
from evolvent.recipes import all_recipes
from evolvent.recipes.catalogue import settings_of
from evolvent.tasks.registry import load_task, module_of
from evolvent.tasks.worlds import WORLDS

PROMPT = "ready> "


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def completed(begun: str) -> list[str]:
    """What is offered for the last word of a line."""
    *before, last = begun.split(" ")
    return [item.value for item in ShellComplete(cli, {}, "evolvent", "").get_completions(before, last)]


def test_commands() -> None:
    assert completed("ro") == ["rollback"]
    assert completed("run --wor") == ["--workers"]


def test_all_recipes_of_the_package_are_offered() -> None:
    """They are read from the files; importing those would take too long."""
    assert completed("show ") == sorted(name for name, r in all_recipes().items() if "evolvent/recipes" in r.file)
    assert completed("run grpo+sec") == ["grpo+sec"]


def test_models() -> None:
    assert completed("run -m ti")[:2] == ["tiny", "tiny-0"]


def test_where_no_name_fits_the_shell_looks_for_files() -> None:
    (item,) = ShellComplete(cli, {}, "evolvent", "").get_completions(["run", "--task"], "my_ta")
    assert item.type == "file"


def test_tasks_are_offered_by_family_and_then_one_by_one() -> None:
    all_of_them = completed("run -t ")
    assert {"arith", "countdown", "rg/", "program:", "texts:", "gym:", "verifiers:"} <= set(all_of_them)
    assert len(all_of_them) < 20  # not all data sets and worlds at once
    assert completed("run -t prog") == sorted(f"program:{world}" for world in WORLDS)
    assert completed("run -t program:circ") == ["program:circle-packing"]
    assert completed("run -t program:circle-packing:") == ["program:circle-packing:26", "program:circle-packing:32"]
    assert completed("run -t program:data-curation:") == ["program:data-curation:"]  # no sizes: a file's name
    assert completed("run -t arith:2x1,2x2-") == ["arith:2x1,2x2-mul"]
    assert completed("run -t arith+count") == ["arith+countdown"]


@pytest.mark.parametrize("command", ["run -t ", "tasks ", "audit ", "compare grpo -t ", "compare --test ", "try x -t "])
def test_every_command_that_takes_a_task_completes_it(command: str) -> None:
    assert completed(f"{command}program:workf") == ["program:workflow"]


def test_tasks_that_are_offered_are_there() -> None:
    for task in completed("run -t prog"):
        assert module_of(task) == "evolvent.tasks.program"
    for task in completed("run -t arith:"):
        assert load_task(task).name == task


def test_data_sets_are_those_of_reasoning_gym_that_are_not_refused() -> None:
    from evolvent.tasks.reasoning_gym.source import NAMES

    assert completed("run -t rg/") == [f"rg/{name}" for name in NAMES]
    assert completed("run -t rg/prod") == ["rg/products"]


def test_files_behind_a_colon(here: Path) -> None:
    (here / "deep").mkdir()
    for name in ("evaluator.py", "deep/program.py", "prompts.toml", "table.csv", ".hidden.py"):
        (here / name).write_text("")
    assert completed("run -t texts:") == ["texts:deep/", "texts:evaluator.py"]
    assert completed("run -t texts:evaluator.py:") == ["texts:evaluator.py:deep/", "texts:evaluator.py:prompts.toml"]
    assert completed("run -t texts:evaluator.py:p") == ["texts:evaluator.py:prompts.toml"]
    assert completed("run -t program:ev") == ["program:evaluator.py"]
    assert completed("run -t program:evaluator.py:deep/") == ["program:evaluator.py:deep/program.py"]


def test_keys_of_the_recipe_that_is_named() -> None:
    assert completed("run grpo --set learn.clip") == ["learn.clip_high=", "learn.clip_low="]
    assert completed("run --set learn.clip_l") == ["learn.clip_low="]  # the default recipe
    assert completed("run gepa --set learn.clip") == []
    assert completed("show grpo+gepa -s propose.min") == completed("show gepa -s propose.min") != []
    assert "learn.clip_low=" in completed("compare gepa grpo[propose.n=4] --set learn.")
    assert completed("run nothing --set learn.") == []


@pytest.mark.parametrize("recipe", ["grpo", "alphaevolve", "proposer-solver", "spear"])
def test_keys_are_those_that_a_run_accepts(recipe: str) -> None:
    """Read from the text of the files they are what building the parts finds, but for slots that nothing is in."""
    known = {show_path(s.path) for s in settings_of(recipe, {}, {}, "paper")}
    found = set(keys_of(recipe))
    assert found <= known
    assert [key for key in known - found if "." in key] == []


def installed(folder: Path) -> Path:
    """The command as pip installs it, in a folder."""
    script = folder / "evolvent"
    script.write_text(f"#!{sys.executable}\nfrom evolvent.cli.main import main\n\nmain()\n")
    script.chmod(0o755)
    return script


def asked(line: str, piece: str, folder: Path, **more: str) -> tuple[list[str], float]:
    """What the process that bash starts prints, and the seconds that it takes, with a torch that must not be."""
    (folder / "torch.py").write_text("raise SystemExit('torch is imported')")
    env = os.environ | {"_EVOLVENT_COMPLETE": "bash_complete", "COMP_LINE": line, "COMP_PIECE": piece, **more}
    begun = time.perf_counter()
    done = subprocess.run([installed(folder)], capture_output=True, text=True, env=env, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines(), time.perf_counter() - begun


@pytest.mark.parametrize(
    ("line", "piece", "wanted"),
    [
        ("evolvent run gr", "gr", "plain,grpo"),
        ("evolvent run -t program:circ", "circ", "plain,circle-packing"),
        ("evolvent run --task=program:circ", "circ", "plain,circle-packing"),
        ("evolvent run -t program:", ":", "plain,circle-packing"),
        ("evolvent run -t rg/prod", "rg/prod", "plain,rg/products"),
        ("evolvent run grpo --set learn.l", "learn.l", "plain,learn.lr="),
        ("evolvent run -m tiny-", "tiny-", "plain,tiny-0"),
    ],
)
def test_bash_gets_the_last_piece_soon_and_without_torch(line: str, piece: str, wanted: str, here: Path) -> None:
    said, seconds = asked(line, piece, here)
    assert wanted in said
    assert seconds < 5  # a tenth of that on an idle machine; with torch, more


def test_runs_of_the_store_that_is_named(here: Path) -> None:
    said, _ = asked("evolvent report --store there o", "o", here)
    assert "".join(said) == ""
    store = str(store_with_runs())
    assert asked(f"evolvent report --store {store} o", "o", here)[0] == ["plain,other"]
    assert asked("evolvent report ", "", here, EVOLVENT_STORE=store)[0] == ["plain,last", "plain,other", "plain,run"]


class Terminal:
    """A bash that somebody types into."""

    def __init__(self, folder: Path) -> None:
        env = {"PATH": f"{folder}:/usr/bin:/bin", "PS1": PROMPT, "TERM": "dumb", "HOME": str(folder)}
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(shutil.which("bash") or "bash", ["bash", "--norc", "--noprofile", "-i"], env)

    def type(self, text: str, until: str, seconds: float = 30.0) -> str:
        """Send text; what the terminal shows up to `until`."""
        os.write(self.end, text.encode())
        shown, last = "", time.monotonic() + seconds
        while until not in shown and time.monotonic() < last:
            if select.select([self.end], [], [], 0.1)[0]:
                shown += os.read(self.end, 4096).decode(errors="replace")
        assert until in shown, shown
        return shown


@pytest.fixture
def terminal(here: Path) -> Iterator[Terminal]:
    """A bash with the script of `evolvent completion bash`, and an `evolvent` on its path."""
    if not shutil.which("bash"):
        pytest.skip("there is no bash")
    installed(here)
    one = Terminal(here)
    one.type("", PROMPT)
    one.type("source <(evolvent completion bash); echo so''urced\n", "sourced")
    yield one
    os.write(one.end, b"\x15exit\n")  # the line that is begun, away
    os.waitpid(one.pid, 0)
    os.close(one.end)


def test_in_bash_words_with_colons_and_equal_signs_are_completed(terminal: Terminal) -> None:
    terminal.type("evolvent run -t program:circ\t", "program:circle-packing ")
    terminal.type("--set propose.probl\t16", "propose.problems=16")  # no space after the sign
