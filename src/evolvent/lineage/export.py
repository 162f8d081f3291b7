"""Write a version for use elsewhere: a Hugging Face folder, or an adapter in PEFT's format, with a card."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evolvent.core.errors import UserError, unknown
from evolvent.core.files import whole, writing
from evolvent.lineage.descent import best_of, text_of
from evolvent.lineage.figures import percent
from evolvent.lineage.runs import RunView, Version, read_run
from evolvent.lineage.store import Store
from evolvent.lineage.versions import chosen, load_version
from evolvent.tasks.texts.module import read


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
    if folder.exists() and (folder.is_file() or any(folder.iterdir())):
        raise UserError(f"{folder} is there already and nothing is overwritten; choose another folder")
    view = read_run(store, run)
    version = chosen(view, number)
    policy = load_version(store, view, version.number)
    if role is not None:
        if role not in policy.adapters:
            raise unknown("adapter", role, policy.adapters, f"this run has {', '.join(policy.adapters) or 'none'}")
        policy.activate(role)
    if adapter and policy.active is None:
        raise UserError(f"run {view.name} trained all weights and has no adapter; export it without --adapter")
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        with writing(folder):
            if adapter:
                from evolvent.models.lora import save_adapter

                save_adapter(policy, str(policy.active), part)
            else:
                policy.save(part)
        (part / "README.md").write_text(card(view, version, adapter))
        if folder.is_dir():
            folder.rmdir()
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return Exported(view.name, version.number, version.step)


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
    if file.suffix in (".txt", ".md") and len(texts) == 1:
        return next(iter(texts.values()))
    raise UserError(
        f"{len(texts)} text(s) cannot be written to {file.name}; take .json, .py, or for one text .txt or .md"
    )


def card(view: RunView, version: Version, adapter: bool) -> str:
    """A model card: where the weights come from, and what was measured."""
    spec = view.spec
    what = "A LoRA adapter" if adapter else "A model"
    lines = [
        "---",
        "library_name: " + ("peft" if adapter else "transformers"),
        "tags: [evolvent]",
        "---",
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


KEYS = ("greedy", "sampled", "pass_at_k")
