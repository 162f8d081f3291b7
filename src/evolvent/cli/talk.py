"""`evolvent try`: talk to a model, before and after a run side by side."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import click

from evolvent.cli import complete
from evolvent.cli.options import emit, json_option, open_store, store_option
from evolvent.core.errors import UserError, nearest


@dataclass
class Speaker:
    """A model under a name, with what it takes to run it."""

    label: str
    policy: Any
    role: Any  # the role whose task, engine and adapter are used


@click.command(name="try")
@click.argument("run_or_model", metavar="RUN_OR_MODEL", shell_complete=complete.runs_and_models)
@click.option("--problems", "-n", type=click.IntRange(1), help="take so many problems that training never saw")
@click.option(
    "--task",
    "-t",
    help="the task that problems and tools come from (default: the run's)",
    shell_complete=complete.tasks,
)
@click.option("--temperature", type=click.FloatRange(0, 100), default=0.0, show_default=True, help="0 is greedy")
@click.option("--samples", type=click.IntRange(1, 64), default=1, show_default=True, help="answers to each prompt")
@click.option("--version", "number", type=int, help="a version of `evolvent lineage RUN` (default: the head)")
@click.option("--seed", default=0, show_default=True, help="of the sampling")
@store_option
@json_option
def try_(run_or_model: str, problems: int | None, store_: str, as_json: bool, **o: Any) -> None:
    """Type a prompt and see what the model answers: the start of the run and its head, side by side.

    \b
    evolvent try last                              type prompts
    evolvent try last --problems 5                 problems of the run's task
    echo "3,5,7>22:" | evolvent try last --json    for scripts
    evolvent try tiny --task countdown -n 5        a model that no run has changed

    Answers are greedy unless --temperature is given. Tools of the task are there, and their replies are shown.
    """
    speakers, task = find_speakers(run_or_model, store_, o["task"], o["number"])
    found = []
    live = sys.stdin.isatty() and not as_json and problems is None
    if live:
        example = task_problems(task, 1)[0].prompt if task else None
        if example:
            click.echo(f"A prompt looks like this: {''.join(m.content for m in example)!r}")
        click.echo("Type a prompt; an empty line or Ctrl-D ends.")
    asked = task_problems(task, problems, need=True) if problems else typed(live, task)
    for place, problem in enumerate(asked):
        ask = {"temperature": o["temperature"], "samples": o["samples"], "seed": o["seed"], "judge": bool(problems)}
        try:
            answers = {s.label: answer(s, problem, place, **ask) for s in speakers}
        except UserError as reason:
            if not live:
                raise
            click.echo(f"evolvent: {reason}", err=True)
            continue
        prompt = "".join(m.content for m in problem.prompt)
        found.append({"prompt": prompt, "answers": answers})
        if live:
            show(found[-1:])
    if as_json:
        emit(found)
    elif found and not live:
        show(found)


def find_speakers(name: str, store: str, task: str | None, number: int | None) -> tuple[list[Speaker], Any]:
    """The start and the chosen version of a run, or a model by itself; and the task, None if there is none."""
    from pathlib import Path

    from evolvent.core.ledger import Ledger
    from evolvent.engine import is_endpoint
    from evolvent.engine.endpoint import EndpointEngine
    from evolvent.engine.huggingface import local_engine
    from evolvent.lineage.runs import read_run, run_names
    from evolvent.lineage.versions import chosen, load_assembled
    from evolvent.models.load import load_policy
    from evolvent.tasks.registry import load_task

    there = open_store(store) if "://" in store or (Path(store) / "store.db").is_file() else None
    if there is not None and (name == "last" or name in run_names(there)):
        view = read_run(there, name)
        if view.candidates and view.spec["model"] == "none":
            raise UserError(
                f"run {view.name} evolved programs by rules, and there is no model to talk to; "
                f"`evolvent export {view.name} ...` writes what it found"
            )
        start = next(v.number for v in view.versions if v.verdict == "start")
        head = chosen(view, number).number
        speakers = []
        for label, version in [("start", start)] + ([(f"version {head}", head)] if head != start else []):
            assembled = load_assembled(there, view, version)
            speakers.append(Speaker(label, assembled.policy, assembled.main_role))
        if task is not None:
            other = load_task(task, speakers[0].policy.format.wording)
            speakers = [replace(s, role=replace(s.role, task=other)) for s in speakers]
        return speakers, speakers[0].role.task
    if number is not None:
        raise UserError(f"--version is for runs, and there is no run `{name}` in {store}")
    if is_endpoint(name):
        remote = EndpointEngine(name, Ledger())
        asked = load_task(task, remote.policy.format.wording) if task else None
        return [Speaker("model", remote.policy, bare_role(remote.policy, asked, remote))], asked
    try:
        policy = load_policy(name)
    except UserError as reason:
        near = nearest(name, run_names(there)) if there is not None else ""
        raise UserError(f"{store} has no run `{name}`{near}; and as a model: {reason}") from None
    chosen_task = load_task(task, policy.format.wording) if task else None
    engine = local_engine(policy, Ledger())
    return [Speaker("model", policy, bare_role(policy, chosen_task, engine))], chosen_task


class NoTask:
    """Where a model is tried without a task: plain completions of some length."""

    name, categories, max_tokens = "none", ("",), 256


def bare_role(policy: Any, task: Any, engine: Any) -> Any:
    """A role that only acts."""
    from evolvent.core.role import Role

    wanted: Any = task or NoTask()
    return Role("", wanted, policy, engine, engine.ledger, 0, adapter=policy.active)


def task_problems(task: Any, count: int, need: bool = False) -> list[Any]:
    """Problems of the gate split, the same ones each time."""
    from evolvent.tasks.base import distinct

    if task is None:
        raise UserError("--problems needs a task: --task countdown, for example (`evolvent tasks` lists them)")
    found = distinct(task, "gate", count)
    if need and not found:
        raise UserError(f"task {task.name} has no problems in its gate split; type prompts instead")
    return found


def typed(live: bool, task: Any) -> Iterator[Any]:
    """Problems whose prompt a person types, or that come in as lines."""
    from evolvent.core.records import Problem
    from evolvent.tasks.base import key_of, one_user

    while True:
        if live:
            try:
                line = click.prompt("prompt", default="", show_default=False, prompt_suffix="> ")
            except click.Abort:
                return
        else:
            line = sys.stdin.readline()
            if not line:
                return
        text = line.rstrip("\n")
        if not text:
            if live:
                return
            continue
        yield Problem(key_of("typed", text), one_user(text), {}, task=task.name if task else "")


def answer(s: Speaker, problem: Any, place: int, temperature: float, samples: int, seed: int, judge: bool) -> list[Any]:
    """What a model answers, turn by turn; with `judge`, what the verifier says of it."""
    from evolvent.core.records import Request
    from evolvent.core.step import Step
    from evolvent.judge.verify import verify
    from evolvent.rollout.sample import Sample
    from evolvent.run.final import tell

    role = replace(s.role, seed=seed)
    step = Step(place, role, [role.policy_actor()], label="try")
    try:
        rows = Sample(temperature=temperature)([Request(problem, samples)], step)[0].trajectories
    except (KeyError, TypeError) as reason:
        raise UserError(
            f"the environment of {role.task.name} needs a problem of its own ({reason}); use --problems, do not type"
        ) from None
    if judge:
        for t, score in zip(rows, verify(role.task, rows, role.ledger), strict=True):
            if isinstance(score, Exception):
                t.error = t.error or f"verifier: {score}"
            else:
                t.reward("outcome", score.outcome)
                t.info["answer"] = score.answer
    told = [tell(t, role.policy.format) for t in rows]
    return told if judge else [{k: v for k, v in a.items() if k not in ("outcome", "answer")} for a in told]


def show(rows: list[dict[str, Any]]) -> None:
    """Prompts with their answers side by side."""
    from rich.table import Table
    from rich.text import Text

    from evolvent.cli.runs import console

    table = Table(show_lines=True)
    for label in ("prompt", *rows[0]["answers"]):
        table.add_column(label, overflow="fold")
    for row in rows:
        for place, answers in enumerate(zip(*row["answers"].values(), strict=True)):
            table.add_row(Text(row["prompt"] if place == 0 else ""), *(told(a) for a in answers))
    console().print(table)


def told(a: dict[str, Any]) -> Any:
    """One answer: the policy's turns, tool replies in another colour, and the verdict."""
    from rich.text import Text

    text = Text()
    for who, words in a["turns"]:
        style = {"policy": "", "tool": "cyan", "hint": "dim"}.get(who, "dim")
        text.append(f" -> {words} " if who == "tool" else words, style=style)
    if a["error"]:
        text.append(f"  error: {a['error']}", style="red")
    elif "outcome" in a:
        right = a["outcome"] >= 1
        text.append("  right" if right else "  wrong", style="green" if right else "red")
    if a["stop"] in ("length", "turns"):
        text.append(f"  (cut: {a['stop']})", style="dim")
    return text
