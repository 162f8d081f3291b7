"""The audit of a task's verifier, before anything is spent on it.

A policy finds whatever earns reward. So it is tried first what a policy would find: right answers have to earn full
marks; garbage, nothing, the prompt again, another problem's answer, several candidates at once must not. Failures have
to be errors and not rewards, the same input has to earn the same twice, and the splits have to share no problem.

    report = audit(load_task("countdown"))
    print(report.table()); report.failed

A check that needs a right answer is skipped, and said to be, for a task without `gold`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any, Literal

import numpy as np

from evolvent.core.errors import EngineError, UserError, VerifierError
from evolvent.core.random import stream
from evolvent.core.records import Problem
from evolvent.tasks.base import SPLITS, Attempt, Score, Split, Task, distinct, score_all
from evolvent.tasks.evaluation import judges_answers
from evolvent.tasks.probe import FULL, LONG, Sheet, answers, combined, find_golds, play, turns_of, wrong_answers
from evolvent.tasks.user import NotTried, UserTask

Severity = Literal["ok", "warn", "fail", "skipped"]
PROBLEMS = 32
LOOKED_AT = 100  # problems of each split whose keys and prompts are compared
SLOW_DRAW = 0.02  # seconds for a problem, above which no more of them are drawn than are tried
SLOW_VERDICT = 0.02  # seconds for a verdict, above which only `FEW` problems are tried
FEW = 4
REWRITTEN = 8  # problems that are rewritten, once in depth and once in breadth
TOO_SLOW = 1.0  # seconds for one verdict that are worth a warning
MOST_SHOWN = 60
MOST_LATE = 2  # verdicts of a batch that are waited for in vain: each takes the time-out twice
VERY_LONG = {"long garbage", "long gold"}  # kinds of answers that a verifier may fail on with a warning
OPEN = "not made: the task is open-ended, a good answer is good for every problem"


@dataclass(frozen=True)
class Check:
    """One finding: how bad, what was found, an example, and what to do about it."""

    name: str
    severity: Severity
    finding: str
    example: str = ""
    remedy: str = ""


@dataclass
class Report:
    """All findings about a task."""

    task: str
    problems: int
    checks: list[Check] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failed(self) -> list[Check]:
        """The findings for which a run should not begin."""
        return [c for c in self.checks if c.severity == "fail"]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for `--json`."""
        return {**asdict(self), "failed": bool(self.failed)}

    def first_failure(self) -> str:
        """The first finding for which a run should not begin, in one line; empty if there is none."""
        if not self.failed:
            return ""
        check = self.failed[0]
        return f"{check.finding}" + (f" ({check.example})" if check.example else "")

    def table(self) -> str:
        """The findings as lines, with example and remedy where something is wrong."""
        width = max((len(c.name) for c in self.checks), default=0)
        lines = [f"audit of {self.task}: {self.problems} problems, {self.seconds:.1f} s"]
        for c in self.checks:
            lines.append(f"  {c.severity:<7}  {c.name:<{width}}  {c.finding}")
            if c.severity in ("warn", "fail"):
                indent = " " * (width + 13)
                lines += [f"{indent}{part}" for part in (c.example, c.remedy and f"-> {c.remedy}") if part]
        bad = len(self.failed)
        lines.append(f"{bad} of {len(self.checks)} checks failed" if bad else "nothing failed")
        return "\n".join(lines)


def audit(task: Task, problems: int = PROBLEMS, seed: int = 0) -> Report:
    """Try the verifier on `problems` problems, fewer if it is slow. `UserError` if the task cannot even draw them."""
    if not judges_answers(task):
        raise UserError(f"{task.name} has an evaluator of programs, and no verifier of answers that could be audited")
    begun = time.perf_counter()
    try:
        count = _drawable(task, problems, seed)
        drawn = {split: distinct(task, split, count, seed) for split in SPLITS}
    except VerifierError as reason:
        raise UserError(f"task `{task.name}` fails to draw problems: {reason}") from reason
    with impatient(task):
        report = _looked_at(task, drawn, problems, seed)
    report.seconds = time.perf_counter() - begun
    return report


@contextmanager
def impatient(task: Task) -> Iterator[None]:
    """Wait for few verdicts that do not come: what hangs on some answers would keep an audit for many minutes."""
    if isinstance(task, UserTask):
        task.most_late = MOST_LATE
    try:
        yield
    finally:
        if isinstance(task, UserTask):
            del task.most_late


def _looked_at(task: Task, drawn: dict[Split, list[Problem]], problems: int, seed: int) -> Report:
    """All checks; of a verifier that hangs on ordinary answers only those that say so."""
    sample = _sample(drawn, _affordable(task, drawn["train"], problems))
    report = Report(task.name, len(sample))
    golds, gold_error = find_golds(task, sample)
    sheet = Sheet(task, sample, golds)
    sheet.try_all(answers(sheet, stream(seed, "audit", task.name)))
    if any(isinstance(s, NotTried) and t[1] not in VERY_LONG for t, s in zip(sheet.tried, sheet.scores, strict=True)):
        report.checks += [_splits(task, drawn, seed), _prompts(task, drawn), _errors(sheet)]
        return report
    sheet.try_all(combined(sheet, wrong_answers(sheet)))
    report.checks += [_splits(task, drawn, seed), _prompts(task, drawn), _draws(task, seed)]
    report.checks += [_gold(sheet, gold_error), _room(task, sheet)]
    report.checks += [_undeserved(sheet, kind, what, share) for kind, what, share in UNDESERVED]
    report.checks += [_fixed_answer(sheet), _long(sheet), _values(sheet), _errors(sheet)]
    report.checks += [_same_again(sheet), _constant(sheet)]
    if hasattr(task, "rewrite"):
        report.checks.append(_rewrites(task, sample, seed))
    return report


def _drawable(task: Task, problems: int, seed: int) -> int:
    """How many problems of each split are looked at."""
    begun = time.perf_counter()
    found = distinct(task, "gate", 4, seed)
    seconds = (time.perf_counter() - begun) / max(1, len(found))
    return problems // 2 + 1 if seconds > SLOW_DRAW else max(LOOKED_AT, problems)


def _affordable(task: Task, drawn: Sequence[Problem], problems: int) -> int:
    """How many problems the verifier is tried on."""
    score_all(task, [Attempt(drawn[0], "zzz")])  # whatever has to be set up first
    begun = time.perf_counter()
    score_all(task, [Attempt(p, "zzz") for p in drawn[:2]])
    seconds = (time.perf_counter() - begun) / len(drawn[:2])
    return min(problems, FEW) if seconds > SLOW_VERDICT else problems


def _sample(drawn: dict[Split, list[Problem]], problems: int) -> list[Problem]:
    """Training problems, and a quarter from each other split."""
    few = max(1, problems // 4)
    return [*drawn["train"][: problems - 2 * few], *drawn["gate"][:few], *drawn["test"][:few]]


UNDESERVED = (  # kind of answer, what it is, and the share of full marks from which on it is a failure
    ("garbage", "garbage", 0.0),
    ("nothing", "an empty answer", 0.0),
    ("echo", "the prompt, repeated,", 0.5),
    ("other", "another problem's answer", 0.9),
    ("followed", "a right answer followed by a wrong one", 0.0),
    ("many", "a right answer among several", 0.0),
)
REMEDIES = {
    "garbage": "score only what was found to be right",
    "nothing": "give 0 where there is no answer",
    "echo": "do not look for the answer in the whole text",
    "other": "make the score depend on the problem's own answer",
    "followed": "take one final answer out of the text and compare it as a whole, instead of searching for it",
    "many": "take one final answer out of the text and compare it as a whole, instead of searching for it",
}


def _undeserved(sheet: Sheet, kind: str, what: str, share: float) -> Check:
    name = {"nothing": "empty", "other": "other answers", "followed": "two answers", "many": "many answers"}.get(
        kind, kind
    )
    rows = sheet.of(kind)
    if kind == "other" and _open_ended(sheet.task):
        return Check(name, "skipped", OPEN)
    if not rows and any(t[1] == kind for t in sheet.tried):
        return Check(name, "skipped", "not known: every try failed, see `errors`")
    if not rows:
        reason = "several turns, or no" if hasattr(sheet.task, "episode") else "no"
        return Check(name, "skipped", f"not made: {reason} right answers and wrong ones to put together")
    full, partly = sheet.full(kind), [row for row in rows if 0 < row[2].outcome < FULL]
    found = f"{what} earns full marks in {len(full)} of {len(rows)} tries"
    if not full and not partly:
        return Check(name, "ok", f"{what} earns nothing")
    if not full:
        most = max(partly, key=lambda row: row[2].outcome)
        found = f"{what} earns up to {most[2].outcome:.2f} ({len(partly)} of {len(rows)} tries earn something)"
        return Check(name, "warn", found, _show(most[1]), "part credit belongs into a named reward beside `outcome`")
    bad = len(full) > share * len(rows)
    usual = 0.6 * len(rows) if kind == "other" else 0
    severity: Severity = "fail" if bad else "warn" if len(full) > usual else "ok"
    return Check(name, severity, found, _show(full[0][1]), REMEDIES[kind])


def _gold(sheet: Sheet, error: str) -> Check:
    known = sum(demo is not None for demo in sheet.golds)
    if error:
        return Check("gold", "fail", "gold() fails", error, "let it return None where no solution is known")
    if not known:
        return Check("gold", "skipped", "not made: the task has no gold(), nobody knows whether full marks can be had")
    failed = {
        t[0]
        for t, s in zip(sheet.tried, sheet.scores, strict=True)
        if t[1] == "gold" and not isinstance(s, Score | NotTried)
    }
    rows = [row for row in sheet.of("gold") if row[2].outcome < FULL]
    if rows:
        found = f"{len(rows)} of {known} right answers earn less than 1 (lowest {min(r[2].outcome for r in rows):.2f})"
        return Check("gold", "fail", found, _show(rows[0][1]), "mend the verifier, or gold(): they disagree")
    if failed:
        return Check("gold", "fail", f"{len(failed)} of {known} right answers cannot be judged", "", "see `errors`")
    missing = len(sheet.golds) - known
    note = f"; {missing} problems have none" if missing else ""
    return Check("gold", "ok", f"{known} right answers earn full marks{note}")


def _room(task: Task, sheet: Sheet) -> Check:
    """Whether the solutions fit into `max_tokens`, counted in characters of the policy's turns."""
    sizes = {i: sum(len(t) for t in turns_of(demo)) for i, demo in enumerate(sheet.golds) if demo}
    if not sizes:
        return Check("length", "skipped", "not made: no right answers")
    longest = max(sizes, key=lambda i: sizes[i])
    found = f"the longest right answer has {sizes[longest]} characters, max_tokens is {task.max_tokens}"
    if sizes[longest] <= task.max_tokens:
        return Check("length", "ok", found)
    example = _show(Attempt(sheet.problems[longest], turns_of(sheet.golds[longest] or [])[-1]))
    return Check("length", "warn", found, example, "character models cannot write it: raise MAX_TOKENS")


def _fixed_answer(sheet: Sheet) -> Check:
    """The best that one and the same answer earns over all problems."""
    texts = list(dict.fromkeys(t[3] for t in sheet.tried if t[1] == "gold"))[:8]
    if _open_ended(sheet.task):
        return Check("one answer", "skipped", OPEN)
    if not texts or hasattr(sheet.task, "episode"):
        return Check("one answer", "skipped", "not made: several turns, or no right answers")
    problems = sheet.problems
    scores = score_all(sheet.task, [Attempt(p, text) for text in texts for p in problems])
    means = [
        float(np.mean([s.outcome if isinstance(s, Score) else 0.0 for s in scores[i : i + len(problems)]]))
        for i in range(0, len(scores), len(problems))
    ]
    best = int(np.argmax(means))
    found = f"the best of {len(texts)} fixed answers earns {means[best]:.2f} on average"
    if means[best] <= 0.75:
        return Check("one answer", "ok", found)
    severity: Severity = "fail" if means[best] > 0.9 else "warn"
    remedy = "balance the problems, so that a policy has to read them"
    return Check("one answer", severity, found, f'"{_cut(texts[best])}"', remedy)


def _long(sheet: Sheet) -> Check:
    """Very long answers: quickly judged, or an error, and never full marks."""
    full = [*sheet.full("long garbage"), *sheet.full("long gold")]
    if full:
        return Check("long answers", "fail", "a very long answer earns full marks", _show(full[0][1]), REMEDIES["many"])
    attempts = [t[2] for t in sheet.tried if t[1] in VERY_LONG and len(t[3]) >= LONG][:3]
    begun = time.perf_counter()
    score_all(sheet.task, attempts)
    seconds = (time.perf_counter() - begun) / max(1, len(attempts))
    found = f"{LONG} characters are judged in {seconds:.3f} s"
    if seconds > TOO_SLOW:
        return Check("long answers", "warn", found, "", "limit the length of what is parsed")
    return Check("long answers", "ok", found)


def _values(sheet: Sheet) -> Check:
    for (_, _, attempt, _), score in zip(sheet.tried, sheet.scores, strict=True):
        if not isinstance(score, Score):
            continue
        odd = {k: v for k, v in {"outcome": score.outcome, **score.shaping}.items() if not math.isfinite(v)}
        if odd or not 0 <= score.outcome <= 1:
            found = f"a reward is {odd or score.outcome}"
            return Check(
                "values", "fail", found, _show(attempt), "outcomes lie between 0 and 1; raise where judging fails"
            )
    return Check("values", "ok", "all rewards are numbers, all outcomes lie between 0 and 1")


def _errors(sheet: Sheet) -> Check:
    errors = [s for s in sheet.scores if isinstance(s, Exception) and not isinstance(s, NotTried)]
    if not errors:
        return Check("errors", "ok", f"none in {len(sheet.scores)} verdicts")
    untried = sum(isinstance(s, NotTried) for s in sheet.scores)
    found = f"{len(errors)} of {len(sheet.scores) - untried} verdicts failed"
    found += f"; {untried} more were not asked for" if untried else ""
    kinds = {t[1] for t, s in zip(sheet.tried, sheet.scores, strict=True) if isinstance(s, Exception)}
    severity: Severity = "warn" if kinds <= VERY_LONG else "fail"
    return Check(
        "errors", severity, found, str(errors[0]), "a wrong answer is worth 0; raise only where judging itself fails"
    )


def _same_again(sheet: Sheet) -> Check:
    """Judge the same attempts twice, the second time in the opposite order (rewards may compare those of a batch)."""
    kept = zip(sheet.tried, sheet.scores, strict=True)
    attempts = [t[2] for t, score in kept if isinstance(score, Score) and len(t[3]) < LONG]
    first, again = score_all(sheet.task, attempts), score_all(sheet.task, attempts[::-1])[::-1]
    changed = [i for i in range(len(attempts)) if _numbers(first[i]) != _numbers(again[i])]
    if not changed:
        return Check("same twice", "ok", f"{len(attempts)} verdicts came out the same a second time")
    outcomes = [s.outcome if isinstance(s, Score) else "an error" for s in (first[changed[0]], again[changed[0]])]
    found = f"{len(changed)} of {len(attempts)} verdicts came out differently a second time"
    example = f"{_show(attempts[changed[0]])}: {outcomes[0]} and then {outcomes[1]}"
    return Check("same twice", "fail", found, example, "no chance, clock or memory of earlier calls in rewards")


def _numbers(score: Score | VerifierError) -> Any:
    return repr((score.outcome, score.shaping)) if isinstance(score, Score) else None


def _constant(sheet: Sheet) -> Check:
    """Problems on which all answers that were tried earn the same."""
    seen: dict[int, set[float]] = {}
    for (place, _, _, _), score in zip(sheet.tried, sheet.scores, strict=True):
        if isinstance(score, Score):
            seen.setdefault(place, set()).add(score.outcome)
    flat = [i for i, values in seen.items() if len(values) == 1]
    found = f"on {len(flat)} of {len(seen)} problems every answer that was tried earns the same"
    if not flat:
        return Check("constant", "ok", found)
    if not any(sheet.golds) and all(seen[i] == {0.0} for i in flat):
        return Check(
            "constant", "warn", found + ", nothing", "", "add gold(**row), so that the audit can try right answers"
        )
    severity: Severity = "fail" if len(flat) == len(seen) else "warn"
    remedy = "a reward that never changes teaches nothing: look at what it compares"
    return Check("constant", severity, found, _show(Attempt(sheet.problems[flat[0]], "")), remedy)


def _rewrites(task: Any, sample: Sequence[Problem], seed: int) -> Check:
    """Whether the task's own `rewrite` makes problems of its problems, deeper and not, that the verifier can judge."""
    rng, failed, made, tried = stream(seed, "audit", "rewrite"), list[str](), 0, 0
    for problem in sample[:REWRITTEN]:
        for deeper in (False, True):
            tried += 1
            try:
                child = task.rewrite(problem, deeper, rng)
                if child is None:
                    continue
                (score,) = score_all(task, [play(task, child, ["zzz"])])
                if isinstance(score, VerifierError):
                    raise score
                made += 1
            except (VerifierError, EngineError) as reason:
                failed.append(str(reason))
    if failed:
        found = f"{len(failed)} of {tried} rewrites fail"
        severity: Severity = "fail" if len(failed) == tried else "warn"
        return Check("rewrite", severity, found, failed[0], "give a whole row that the reward can judge, or None")
    if not made:
        return Check("rewrite", "warn", f"none of {tried} rewrites gives a new problem", "", "change what the row asks")
    return Check("rewrite", "ok", f"{made} of {tried} rewrites give new problems, which can be judged")


def _splits(task: Task, drawn: dict[Split, list[Problem]], seed: int) -> Check:
    """Whether two splits share a key, and whether `draw` gives the category that was asked for."""
    keys = {split: {p.key: p for p in drawn[split]} for split in SPLITS}
    for a, b in combinations(SPLITS, 2):
        if shared := keys[a].keys() & keys[b].keys():
            found, example = f"{a} and {b} share {len(shared)} problems", _show(Attempt(keys[a][min(shared)], ""))
            return Check("splits", "fail", found, example, "decide the split by the key")
    rng = stream(seed, "audit", "category")
    for category in task.categories:
        got = task.draw("train", rng, category).category
        if not category.endswith(got):  # a sum of tasks puts the task's name before it
            return Check("splits", "fail", f"asked for category {category}, got {got}", "", "draw what is asked for")
    sizes = ", ".join(f"{len(keys[s])} {s}" for s in SPLITS)
    return Check("splits", "ok", f"no problem in two of them ({sizes} looked at)")


def _prompts(task: Task, drawn: dict[Split, list[Problem]]) -> Check:
    """Whether problems with different keys show the same prompt, above all across splits."""
    where: dict[Any, tuple[str, Problem]] = {}
    repeats, leaks, example = 0, 0, ""
    for split in SPLITS:
        for problem in drawn[split]:
            first = where.setdefault(problem.prompt, (split, problem))
            if first[1] is not problem:
                repeats += 1
                leaks += first[0] != split
                example = example or _show(Attempt(problem, ""))
    total = sum(map(len, drawn.values()))
    if _open_ended(task):
        return Check("prompts", "skipped", OPEN)
    if not repeats:
        return Check("prompts", "ok", f"{total} problems, {total} prompts")
    found = f"{repeats} of {total} problems show a prompt that another one shows, {leaks} of them in another split"
    if hasattr(task, "episode"):
        remedy = "right if the environment hides what differs; else its episodes do not depend on the problem"
        return Check("prompts", "warn", found, example, remedy)
    return Check("prompts", "fail", found, example, "tell the problems apart in the prompt, or remove the repeats")


def _draws(task: Task, seed: int) -> Check:
    """Whether the same stream draws the same problems."""
    first, second = ([task.draw("train", stream(seed, "audit", i)).key for i in range(5)] for _ in range(2))
    if first != second:
        found = "the same random stream draws other problems a second time"
        return Check("draws", "fail", found, "", "use only the generator that draw() is given")
    return Check("draws", "ok", "the same random stream draws the same problems")


def _open_ended(task: Any) -> bool:
    """Whether a task says of itself that an answer need not fit a problem: `open_ended = True`."""
    return bool(getattr(task, "open_ended", False))


def _cut(text: str) -> str:
    shown = text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 3] + "..."
    return shown.replace("\n", "\\n")


def _show(attempt: Attempt) -> str:
    prompt = _cut("".join(m.content for m in attempt.problem.prompt))
    return f'problem {attempt.problem.key[:4]} "{prompt}"' + (
        f', answer "{_cut(attempt.completion)}"' if attempt.completion else ""
    )
