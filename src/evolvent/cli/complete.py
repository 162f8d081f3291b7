"""What a shell completes for arguments: recipes, tasks, models, runs, keys of --set, and files.

Nothing here imports what is completed: a person who presses Tab waits a tenth of a second, not for torch.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

import evolvent
from evolvent.tasks import ADAPTERS, BUILT_IN
from evolvent.tasks.texts import TEXT_FILES
from evolvent.tasks.worlds import WORLDS

PACKAGE = Path(evolvent.__file__).parent
RECIPE = re.compile(r'^\w+ = recipe\(\s*"([^"]+)"', re.MULTILINE)
DATA_SET = re.compile(r'(?:DATASET_NAME = |register_dataset\()"(\w+)"')
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Names = Callable[[click.Context, str], Iterable[str]]


def completes(names: Names, files: bool = False) -> Complete:
    """A completer of names, and of files where none fits. Whatever fails, a shell shows nothing of it."""

    def complete(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
        head, sign, last = begun.rpartition("+")  # the last one of a composition
        try:
            found = [CompletionItem(head + sign + n) for n in sorted(names(context, last)) if n.startswith(last)]
        except Exception:  # for instance a store that is damaged
            found = []
        return found or ([CompletionItem(begun, type="file")] if files else [])

    return complete


def recipe_names(*_: object) -> Iterable[str]:
    """All recipes, as their files name them: importing those takes longer than a person waits."""
    return [n for path in (PACKAGE / "recipes").rglob("*.py") for n in RECIPE.findall(path.read_text("utf-8"))]


def task_names(_: click.Context, begun: str) -> Iterable[str]:
    """Tasks of the package and the beginnings of families; of a single family, or after its colon, what is in it."""
    name, colon, rest = begun.partition(":")
    if colon:
        return [f"{name}:{one}" for one in below(name, rest)]
    fit = [n for n in (*BUILT_IN, "rg/", *(f"{a}:" for a in ADAPTERS)) if n.startswith(begun)]
    if begun.startswith("rg/") or fit == ["rg/"]:
        return [f"rg/{n}" for n in data_sets()]
    if len(fit) == 1 and fit[0].endswith(":"):
        return [fit[0] + one for one in below(fit[0][:-1], "")] or fit
    return fit


def below(name: str, rest: str) -> list[str]:
    """What can follow `name:`, where `rest` is there already: levels, worlds and their sizes, files."""
    first, colon, second = rest.partition(":")
    if name in BUILT_IN:
        before, comma, _ = rest.rpartition(",")
        return [before + comma + level for level in BUILT_IN[name].levels.split(", ")]
    if name == "program" and not colon:
        return [*WORLDS, *files_at(rest, (".py",))]
    if name == "program" and first in WORLDS:
        return [f"{first}:{size}" for size in WORLDS[first][1].split(", ") if size]
    if name in ("program", "texts") and first.endswith(".py"):
        return [f"{first}:{path}" for path in files_at(second, (".py",) if name == "program" else TEXT_FILES)]
    return files_at(rest, (".py",)) if name == "texts" else []


def files_at(begun: str, endings: tuple[str, ...]) -> list[str]:
    """Files with one of the endings, and folders, that begin like this: behind a colon a shell would not look."""
    folder = begun[: begun.rfind("/") + 1]
    there = [p for p in Path(folder or ".").iterdir() if not p.name.startswith((".", "__"))]
    return [f"{folder}{p.name}{'/' if p.is_dir() else ''}" for p in there if p.is_dir() or p.name.endswith(endings)]


def data_sets() -> list[str]:
    """The data sets of reasoning-gym that are not refused, as the files of both packages name them."""
    found = importlib.util.find_spec("reasoning_gym")
    folders = (found.submodule_search_locations or []) if found else []
    files = [p for f in folders for p in Path(f).rglob("*.py")]
    names = {n for p in files for n in DATA_SET.findall(p.read_text("utf-8"))}
    for line in ast.parse((PACKAGE / "tasks/reasoning_gym/source.py").read_text("utf-8")).body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "REFUSED":
            names -= set(ast.literal_eval(line.value))
    return sorted(names)


def model_names(*_: object) -> Iterable[str]:
    """The seed models."""
    return ["tiny", *(path.parent.name for path in (PACKAGE / "models/seeds").glob("*/config.json"))]


def runs_of_store(context: click.Context, _: str) -> Iterable[str]:
    """The runs of the store that the command line names."""
    from evolvent.cli.options import STORE
    from evolvent.lineage.runs import run_names
    from evolvent.lineage.store import Store

    place = context.params.get("store_") or os.environ.get("EVOLVENT_STORE") or STORE
    return ["last", *run_names(Store(Path(place)))] if (Path(place) / "store.db").is_file() else []


def key_names(context: click.Context, _: str) -> Iterable[str]:
    """Keys of --set for the recipes that the command line names.

    They are in `args` yet: an option without its value, as here, ends click's reading before it hands out arguments.
    """
    from evolvent.cli.keys import keys_of

    arms = context.args or ["grpo"]
    return {f"{key}=" for arm in arms for part in arm.partition("[")[0].split("+") for key in keys_of(part)}


recipes = completes(recipe_names, files=True)
tasks = completes(task_names, files=True)
models = completes(model_names, files=True)
runs = completes(runs_of_store)
runs_and_models = completes(lambda context, _: [*runs_of_store(context, _), *model_names()], files=True)
keys = completes(key_names)


class Bash(BashComplete):
    """Bash takes a word apart at `:` and `=`, and puts what is completed in the place of the last piece only."""

    name = "bash"
    source_template = r"""%(complete_func)s() {
    local IFS=$'\n' line type value
    COMPREPLY=()
    for line in $(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_PIECE="${COMP_WORDS[COMP_CWORD]}" \
            %(complete_var)s=bash_complete "$1"); do
        IFS=',' read -r type value <<< "$line"
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[:/=] ]] && compopt -o nospace
    return 0
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""
    cut = 0  # characters of a completed word that stand before the last piece

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is begun, and that one whole."""
        if "COMP_LINE" not in os.environ:  # click's own script, printed by an earlier version
            return super().get_completion_args()
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)[1:]
        begun = words.pop() if words and not line[-1].isspace() else ""
        if begun.startswith("--") and "=" in begun:
            option, _, begun = begun.partition("=")
            words.append(option)
        piece = os.environ.get("COMP_PIECE", "").strip(":=")
        self.cut = len(begun) - len(piece) if begun.endswith(piece) else 0
        return words, begun

    def format_completion(self, item: CompletionItem) -> str:
        """A line for the script."""
        return f"{item.type},{item.value[self.cut :]}"


add_completion_class(Bash)
