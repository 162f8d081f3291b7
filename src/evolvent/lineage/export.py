"""Write what evolved for use elsewhere: a program, a Hugging Face folder, or an adapter in PEFT's format."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evolvent.core.errors import UserError, unknown
from evolvent.core.files import whole, writing
from evolvent.lineage.descent import Candidate, believed, best_of, text_of
from evolvent.lineage.figures import percent
from evolvent.lineage.runs import RunView, Version, read_run
from evolvent.lineage.store import Store
from evolvent.lineage.versions import chosen, has_weights, load_version
from evolvent.tasks.registry import load_task
from evolvent.tasks.texts import TEXT_FILES
from evolvent.tasks.texts.module import read
from evolvent.tasks.worlds import WORLDS

if TYPE_CHECKING:
    from evolvent.models.policy import Policy

PROGRAMS = (".py", *TEXT_FILES)  # endings of files for programs and texts; all other names are of folders


@dataclass(frozen=True)
class Exported:
    """What was written."""

    run: str
    version: int
    step: int


def export_version(
    store: Store, run: str, folder: Path, number: int | None = None, adapter: bool = False, role: str | None = None
) -> Exported:
    """Write a version (None: the head) to a new folder, whole or not at all; `UserError` if something is there."""
    refuse_taken(folder)
    view = read_run(store, run)
    version = chosen(view, number)
    policy = load_version(store, view, version.number)
    if role is not None:
        if role not in policy.adapters:
            raise unknown("adapter", role, policy.adapters, f"this run has {', '.join(policy.adapters) or 'none'}")
        policy.activate(role)
    if adapter and policy.active is None:
        raise UserError(f"run {view.name} trained all weights and has no adapter; export it without --adapter")
    write_model(policy, folder, adapter, card(view, version, adapter))
    return Exported(view.name, version.number, version.step)


def write_model(policy: Policy, folder: Path, adapter: bool, about: str) -> None:
    """A policy, or its active adapter alone, with a card as a new folder, whole or not at all."""
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        with writing(folder):
            if adapter:
                from evolvent.models.lora import save_adapter

                save_adapter(policy, str(policy.active), part)
            else:
                policy.save(part)
        (part / "README.md").write_text(about)
        if folder.is_dir():
            folder.rmdir()
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def refuse_taken(folder: Path) -> None:
    """`UserError` where something is there."""
    if folder.exists() and (folder.is_file() or any(folder.iterdir())):
        raise UserError(f"{folder} is there already and nothing is overwritten; choose another folder")


def task_of_models(view: RunView) -> Any:
    """The task of a search whose programs stand for models (it has `policy_of(text)`), else None."""
    kind, _, world = view.spec["task"].partition(":")
    if kind != "program" or world.partition(":")[0] not in WORLDS:
        return None
    task = load_task(view.spec["task"])
    return task if hasattr(task, "policy_of") else None


def export_model_of_program(view: RunView, task: Any, folder: Path, adapter: bool) -> int:
    """Write the model that the best program of a search stands for to a new folder, or its adapter alone; the program's
    number. `UserError` if something is there, if none is valid, or if the best one changes nothing and was to be an
    adapter."""
    refuse_taken(folder)
    best = best_of(view)
    policy = task.policy_of(text_of(best))
    if adapter and policy.active is None:
        raise UserError(f"the best program of {view.name} changes no weights; export it without --adapter")
    write_model(policy, folder, adapter, card_of_program(view, best, policy, adapter))
    return int(best["uid"])


def export_search(
    store: Store, view: RunView, folder: Path, number: int | None = None, adapter: bool = False, role: str | None = None
) -> str | None:
    """Write what a search found, and say what it is: the best program, or texts, to a file; to a folder the model that
    the best program stands for. None, and nothing is written, where the search trained a model that goes there."""
    is_file = folder.suffix in PROGRAMS
    task = None if is_file else task_of_models(view)
    trained = not is_file and task is None and has_weights(store, view)
    if trained:
        return None
    if number is not None or role or (adapter and task is None):
        what = f"{folder} is the name of a file" if is_file else f"{view.name} trained none"
        raise UserError(f"--version, --adapter and --role are for weights, and {what}; leave them out")
    if task is None:
        return f"candidate {export_program(view, folder)} of {view.name}"
    uid = export_model_of_program(view, task, folder, adapter)
    return f"the {'adapter' if adapter else 'model'} that candidate {uid} of {view.name} stands for"


def export_program(view: RunView, file: Path) -> int:
    """Write the best program, or texts, of a search to a new file; its number. `UserError` if that is there, or none is
    valid."""
    if file.exists():
        raise UserError(f"{file} is there already and nothing is overwritten; choose another name")
    best = best_of(view)
    text = text_of(best)
    if view.spec["task"].startswith("texts:") and file.suffix != ".py":
        text = plain_texts(read(text), file)
    with writing(file), whole(file) as part:
        part.write_text(text, encoding="utf-8")
    return int(best["uid"])


def plain_texts(texts: Mapping[str, str], file: Path) -> str:
    """Named texts as a file of this name holds them: JSON, or one text as it is. `UserError` for other files."""
    if file.suffix == ".json":
        return json.dumps(texts, indent=1, ensure_ascii=False) + "\n"
    if file.suffix == ".toml":
        return "".join(f'"{escaped(name)}" = {toml_string(text)}\n' for name, text in texts.items())
    if file.suffix in (".txt", ".md") and len(texts) == 1:
        return next(iter(texts.values()))
    raise UserError(
        f"{len(texts)} text(s) cannot be written to {file.name}; take .toml, .json, .py, or for one text .txt or .md"
    )


def toml_string(text: str) -> str:
    """A string of TOML: over as many lines as the text has."""
    lines = re.sub(r"(?<!\\)((?:\\\\)*)\\n", r"\1\n", escaped(text))
    return f'"{lines}"' if "\n" not in lines else f'"""\n{lines}"""'


def escaped(text: str) -> str:
    """What stands between the quotes of a string of TOML on one line."""
    return json.dumps(text, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f")


def card(view: RunView, version: Version, adapter: bool) -> str:
    """A model card: where the weights come from, and what was measured."""
    spec = view.spec
    what = "A LoRA adapter" if adapter else "A model"
    lines = [
        *head(adapter),
        f"# {view.name}, version {version.number}",
        "",
        f"{what} evolved with evolvent {view.environment.get('evolvent', '')}: recipe `{spec['recipe']}` on the task "
        f"`{spec['task']}`, {version.step} steps, seed {spec['seed']}, from `{Path(spec['model']).name}`.",
        "",
        f"Command: `{view.command or 'evolvent run ' + spec['recipe'] + ' --task ' + spec['task']}`",
    ]
    rows = []
    for number in dict.fromkeys((view.versions[0].number, version.number)):
        if found := view.evaluation(number):
            e = found["evaluation"]
            cells = [percent(e[k]) for k in KEYS]
            rows.append(f"| {'this model' if number == version.number else 'start model'} | {' | '.join(cells)} |")
    if rows:
        lines += [
            "",
            "Accuracy in % on problems of the test split, with 97.5 % intervals:",
            "",
            "| | greedy | sampled at temperature 1 | pass@16 |",
            "|---|---|---|---|",
            *rows,
        ]
    return "\n".join(lines) + "\n"


def card_of_program(view: RunView, best: Candidate, policy: Policy, adapter: bool) -> str:
    """A model card: the program, where it comes from, and what was measured."""
    spec, anew = view.spec, believed(view.rescored) if view.rescored else ""
    lines = [
        *head(adapter),
        f"# {view.name}, candidate {best['uid']}",
        "",
        f"{'A LoRA adapter' if adapter else 'A model'} evolved with evolvent {view.environment.get('evolvent', '')}: "
        f"search `{spec['recipe']}` on `{spec['task']}`, seed {spec['seed']}, from `{policy.name}`.",
        "",
        f"Value in the search: {best['evaluation']['value']:z.6g}. {anew}".rstrip(),
        "",
        "The program that it was written down by:",
        "",
        "```python",
        text_of(best).strip(),
        "```",
    ]
    return "\n".join(lines) + "\n"


def head(adapter: bool) -> list[str]:
    """The first lines of a card, for the hub."""
    return ["---", "library_name: " + ("peft" if adapter else "transformers"), "tags: [evolvent]", "---"]


KEYS = ("greedy", "sampled", "pass_at_k")
