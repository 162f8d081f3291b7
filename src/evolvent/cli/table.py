"""The table at the end of a run."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from evolvent.cli.display import counted, duration
from evolvent.core.ledger import Budget
from evolvent.engine import is_endpoint
from evolvent.lineage.descent import Candidate, believed, chosen, descent, valid, worth
from evolvent.lineage.figures import percent
from evolvent.run.check import in_words
from evolvent.run.notes import evaluations_ask
from evolvent.run.session import Result
from evolvent.run.spec import RunSpec
from evolvent.tasks.evaluation import judges_answers

UNPROMOTED = (
    "No candidate reached the thresholds of all stages of its evaluation, so these are values of the first stages; "
    "--set judge.promote=everybody evaluates all wholly, --set judge.promote.thresholds=0.1,0.5 asks for less."
)
BEYOND = 1.2  # times the budget, from which on it is said that steps are larger
FAILED = 0.25  # share of the candidates, from which on it is said how they failed
MANY = 10  # valid candidates, after which it is strange that all have the same value


def print_final(result: Result, report: Path | None, where: str = "") -> None:
    """Accuracies before and after with controls, what was spent, where things are, what to do next.

    `where` is what the next commands need to find the store.
    """
    console = Console(highlight=False, soft_wrap=True, markup=False)
    console.print()
    if result.interrupted:
        steps = result.assembled.system.t
        console.print(f"Stopped after step {steps}. Carry on with: evolvent resume {result.name}{where}")
    if "start" in result.evaluations and "evolved" in result.evaluations:
        console.print(accuracy_table(result.evaluations))
    else:
        console.print(searched(result) if result.view.candidates else practice(result))
    if result.reached:
        console.print("The target was reached.")
    console.print(spent_line(result))
    if beyond := overspent(result):
        console.print(beyond)
    for kind, count in result.assembled.system.errors.items():
        console.print(f"Errors (left out of every update): {count} x {kind}")
    if report:
        console.print(f"Report:     {report}")
    console.print(f"Checkpoint: {result.folder / 'checkpoint.safetensors'}")
    if result.view.candidates:
        more = (f'evolvent resume {result.name}{where} --budget "..."', "search on, with a larger budget")
        commands = [] if result.interrupted else [more]  # of which it is said above how they go on
    else:
        commands = [(f"evolvent try {result.name}{where}", "talk to the model before and after")]
    task = result.assembled.task
    if result.policy.size or hasattr(task, "policy_of"):  # nothing was evolved where the weights are elsewhere
        commands += [(f"evolvent export {result.name} my-model{where}", "write it as a Hugging Face folder")]
    if result.policy.size and judges_answers(task):
        words = ["evolvent", "compare", result.spec.recipe, "no-change", "--task", result.spec.task]
        words += ["--model", result.spec.model] if result.spec.model != RunSpec.model else []
        commands += [(shlex.join(words), "is the gain real? several seeds")]
    if commands:
        console.print("Next:")
    for command, text in commands:
        console.print(f"  {command:<62} {text}")


def overspent(result: Result) -> str:
    """That a search spent more than its budget, whose last step is never cut; empty where it is little."""
    budget, spent = Budget.parse(result.spec.budget), result.ledger.spent["method"]
    used = spent[budget.unit]
    if not result.view.candidates or used < BEYOND * budget.amount or budget.unit == "steps":
        return ""
    what = in_words(Budget(used, budget.unit), result.view)
    step = f"{used / max(1.0, spent['steps']):,.4g}"
    return f"That is {what} of {result.spec.budget}: a budget ends between steps, and a step took about {step}."


def spent_line(result: Result) -> str:
    """What the method spent, and what measuring took beside it.

    What the ledger calls verifier calls are evaluations in a search; where the world has instances, these are more than
    there are candidates.
    """
    spent, instances = result.ledger.spent["method"], getattr(result.assembled.task, "instances", None)
    judged = f"{spent['verifier_calls']:,.0f} verifier calls"
    beside = f"on measuring: {result.ledger.of('sampled', 'evidence'):,.0f} tokens"
    if result.view.candidates:
        each = ", each of one program on one instance" if instances and instances("train") else ""
        judged = counted(spent["verifier_calls"], "evaluation") + each
        beside = f"on the best anew: {counted(result.ledger.of('verifier_calls', 'evidence'), 'evaluation')}"
    return (
        f"Spent: {spent['steps']:,.0f} steps, {spent['sampled']:,.0f} tokens sampled, {spent['trained']:,.0f} trained, "
        f"{judged}, {asked(result)}{duration(spent['seconds'])}" + (f"; {beside}" if not result.interrupted else "")
    )


def asked(result: Result) -> str:
    """What was asked of models that are elsewhere, and what it cost; empty where there are none."""
    account, engines = result.ledger.of, [role.engine for role in result.assembled.system.roles.values()]
    calls, money = (account(unit) + account(unit, "evidence") for unit in ("model_calls", "money"))
    if not calls or not is_endpoint(result.spec.model):
        return ""
    again = sum({id(e): getattr(e, "retries", 0) for e in engines}.values())
    failed = f" ({again:,} sent again after a failure)" * bool(again)
    return f"{calls:,.0f} model calls{failed}, " + (f"${money:,.4g}, " if money else "")


def failures(candidates: Collection[Candidate]) -> str:
    """How most of the candidates that have no value failed, where these are many; else nothing."""
    found = Counter(c["evaluation"]["status"] for c in candidates if not worth(c))
    if not found or found.total() < FAILED * len(candidates):
        return ""
    status, count = found.most_common(1)[0]
    return f"{found.total()} of {len(candidates)} candidates failed, most often with the status `{status}` ({count})."


def searched(result: Result) -> str:
    """The best candidate of a search beside the seed program, and what it is worth when it is evaluated anew."""
    line, failed = descent(result.view), failures(result.view.candidates.values())
    if not line:
        return " ".join([f"None of {len(result.view.candidates)} candidates is valid.", failed])
    first, best = line[0], line[-1]
    count = sum(worth(c) for c in result.view.candidates.values())
    values = {c["evaluation"]["value"] for c in result.view.candidates.values() if worth(c)}
    if count >= MANY and len(values) == 1:
        value = f"{best['value']:z.10g}"
        same = f"All {count} valid candidates have the value {value}: does the evaluator look at the program?"
        return "\n".join(filter(None, [same, failed]))
    program = result.folder / "best.py"
    whole = chosen(result.view) is not None or any(map(valid, result.view.candidates.values()))
    most = max((c["evaluation"]["value"] for c in result.view.candidates.values() if valid(c)), default=best["value"])
    loses = result.view.rescored and chosen(result.view) is None and most > best["value"]
    lead = f"The best in the search, {most:z.10g}, loses anew to one that had" if loses else "Best value"
    found = (
        f"{lead} {best['value']:z.10g} (seed program {first['value']:z.10g}): candidate {best['uid']} of "
        f"{len(result.view.candidates)}, {count} of them valid, by {best['operator']} in step {best['step']}, "
        f"{len(line) - 1} change{'s' * (len(line) != 2)} from the seed program."
    )
    written = f"Program:    {program}" if program.exists() else f"`evolvent export {result.name} best.py` writes it."
    anew = believed(result.view.rescored) if result.view.rescored else unasked(result)
    return "\n".join(filter(None, [found, failed, "" if whole else UNPROMOTED, anew, written]))


def unasked(result: Result) -> str:
    """Why the best of a search were not evaluated anew, where nobody has said that they should not be."""
    if result.interrupted or not evaluations_ask(result.assembled):
        return ""
    return "Not evaluated anew, since evaluations ask the model and are paid for; with --final they are."


def practice(result: Result) -> str:
    """What the last quarter of the steps scored on problems of the train split."""
    curves = {name: result.view.curve(name, result.assembled.main_role.name) for name in ("outcome", "answered")}
    means = []
    for name, text in (("outcome", "mean outcome"), ("answered", "of the answers that the verifier chose")):
        last = [value for _, value in curves[name][-max(1, len(curves[name]) // 4) :]]
        means += [f"{text} {sum(last) / len(last):.3f}"] if last else []
    return f"On training problems, last quarter of the steps: {', '.join(means) or 'no outcome'}"


def accuracy_table(evaluations: dict[str, Any]) -> Table:
    """Test accuracy in per cent with 97.5 % intervals."""
    start, evolved = evaluations["start"], evaluations["evolved"]
    a, b = start["evaluation"], evolved["evaluation"]
    k = a["k"]
    title = f"Test accuracy in % [97.5 % interval], {a['problems']} problems that training never saw"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    table.add_column("before")
    table.add_column("after", style="bold")
    table.add_row("greedy", percent(a["greedy"]), percent(b["greedy"]))
    table.add_row("sampled, temperature 1", percent(a["sampled"]), percent(b["sampled"]))
    table.add_row(f"pass@{k}", percent(a["pass_at_k"]), percent(b["pass_at_k"]), end_section=True)
    table.add_row(f"start model at its best temperature, {start['best_temperature']}", percent(start["at_best"]), "")
    table.add_row(f"majority@{k}", percent(a["majority_at_k"]), percent(b["majority_at_k"]))
    needs = f"best-of-{k} (needs the verifier at answer time)"
    table.add_row(needs, percent(a["pass_at_k"]), percent(b["pass_at_k"]))
    return table
