"""A user's own task: a Python file with `problems()` and `reward(completion, ...)`, or a data file and such a function.

The file runs in a process of its own (`user_file`); here are its problems, the verdicts that come back, and a sentence
for everything that can be wrong with these. What is wrong at the start is a `UserError`, what goes wrong with one
completion later is a `VerifierError` in the place of its score. `docs/write-a-task.md` tells what a file may hold.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.records import Problem
from evolvent.core.secrets import redact
from evolvent.guard.process import Crashed, ProcessError, TimedOut
from evolvent.tasks.base import SPLITS, Attempt, Demo, Piece, Reply, Score, key_of
from evolvent.tasks.extract import final_answer
from evolvent.tasks.misplaced import refuse_evaluator
from evolvent.tasks.rows import MAX_TOKENS, Row, RowTask, load_rows, read_rows
from evolvent.tasks.user_file import IMPORT_TIME, UserFile

MOST_FAILURES = 16  # crashes and time-outs in one batch, after which the rest of it is not tried
MAX_TURNS = 8
TRIED = 16  # problems that the reward is tried on when the task is loaded
FEW = 4  # of them, where a call crashes or takes too long
MOST_ERRORS = 0.5  # share of the tries that may fail: a run loses as many trajectories of a step (`core.loop`)
FILE = re.compile(r"(.+?\.(?:py|jsonl|csv|parquet))(?::(.*))?$")
CODE = re.compile(r"(.+\.py)(?::(\w+))?")
NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


class NotTried(VerifierError):
    """A verdict that was not asked for, since too many others of its batch had crashed or timed out."""


class UserTask(RowTask):
    """A task whose verdicts come from a function of a user's file.

    path       the Python file, with `problems` too unless `rows` are given
    function   the name of the reward function
    rows       of a data file, and `source`, what errors call it
    most_late  time-outs in one batch, after which the rest of it is not tried; an audit waits for fewer
    """

    most_late = MOST_FAILURES

    def __init__(
        self,
        path: Path,
        function: str = "reward",
        rows: Sequence[Row] | None = None,
        source: str = "",
        categories: Sequence[str] = (),
        import_time: float = IMPORT_TIME,
    ) -> None:
        if rows is None:
            refuse_evaluator(path, function)
        self.file, self.function = UserFile(path, import_time), function
        self.file.need(function, f"def {function}(completion, answer): return float(completion.strip() == answer)")
        name = self.file.constant("NAME", Path(source).stem if source else path.stem, (str,))
        if not NAME.fullmatch(name):
            name = re.sub(r"\W+", "-", name).strip("-") or "task"
        rows = self.file.rows() if rows is None else rows
        self.multi_turn = self.file.has("environment")
        openings = self.file.openings(rows) if self.multi_turn and rows else None
        full = f"{name}:{','.join(categories)}" if categories else name
        super().__init__(
            full,
            source or self.file.name,
            rows,
            categories,
            self.file.constant("MAX_TOKENS", MAX_TOKENS, (int,)),
            openings,
        )
        self._answers_are_gold = False
        if self.multi_turn:
            self.episode = self._episode
            self.max_turns = self.file.constant("MAX_TURNS", MAX_TURNS, (int,))
            self.turn_end = self.file.constant("TURN_END", None, (str,))
        if self.file.has("rewrite"):
            self.rewrite = self._rewrite
            self._known = {p.key for p in self.all_rows} | {p.prompt for p in self.all_rows}
        self._try_out()

    def close(self) -> None:
        """End the file's process; it starts again when it is needed."""
        self.file.worker.close()

    @property
    def fingerprint(self) -> str:
        """Hash of the problems, their splits, and the file with the functions (not of what that imports)."""
        return key_of("fingerprint", [super().fingerprint, self.file.digest])

    def score(self, problem: Problem, completion: str) -> Score:
        """The verdict on one completion."""
        (result,) = self.score_many([Attempt(problem, completion)])
        if isinstance(result, VerifierError):
            raise result
        return result

    def score_many(self, attempts: Sequence[Attempt]) -> list[Score | VerifierError]:
        """Verdicts in one round trip, in the order of the attempts; a failure stands in the place of its score.

        After a crash or a time-out, completions are tried one by one until the one that did it is found. After
        `MOST_FAILURES` of them, or `most_late` time-outs, the rest is not tried.
        """
        results: dict[int, Score | VerifierError] = {}
        alone, failures, late = False, 0, 0
        while waiting := [i for i in range(len(attempts)) if i not in results]:
            if failures >= MOST_FAILURES or late >= self.most_late:
                rest = NotTried(f"{self._called} was not tried: {failures} crashes or time-outs in one batch")
                results |= dict.fromkeys(waiting, rest)
                break
            chosen = waiting[:1] if alone else waiting
            try:
                for i, result in self._judge(attempts, chosen):
                    results[i] = self._verdict(attempts[i], result)
            except (TimedOut, Crashed) as reason:
                alone = len(chosen) > 1
                if not alone:
                    more = f"; {self.file.longer}" if isinstance(reason, TimedOut) else ""
                    results[chosen[0]] = self._failed(attempts[chosen[0]], f"failed: {reason}{more}")
                    failures += 1
                    late += isinstance(reason, TimedOut)
            except VerifierError as reason:  # the process cannot be brought back to where it was
                results |= dict.fromkeys(chosen, reason)
        return [results[i] for i in range(len(attempts))]

    def _judge(
        self, attempts: Sequence[Attempt], chosen: Sequence[int], one_by_one: bool = True
    ) -> Iterator[tuple[int, Any]]:
        """What the function said of each chosen attempt, as the program reports it. Every row travels once."""
        rows: dict[str, int] = {}
        table: list[Any] = []
        items: list[Any] = []
        for i in chosen:
            problem, completion, info = attempts[i]
            if problem.key not in rows:
                rows[problem.key] = len(table)
                table.append(problem.data)
            extra = {"state": info.get("environment", {}).get("state")} if self.multi_turn else None
            items.append([rows[problem.key], completion, extra])
        payload = {"function": self.function, "rows": table, "items": items, "one_by_one": one_by_one}
        for part in self.file.worker.stream("rewards", payload):
            for place, result in part or ():
                yield chosen[place], result

    @property
    def _called(self) -> str:
        return f"{self.file.name}: {self.function}()"

    def _verdict(self, attempt: Attempt, result: Any) -> Score | VerifierError:
        if isinstance(result, float):
            return Score(result, final_answer(attempt.completion))
        if "score" not in result:
            return self._failed(attempt, _said(result))
        shaping = dict(result["score"])
        return Score(shaping.pop("outcome"), final_answer(attempt.completion), shaping)

    def _failed(self, attempt: Attempt, what: str) -> VerifierError:
        return VerifierError(f"{self._called} {what} ({_which(attempt)})")

    def _try_out(self) -> None:
        """Call the reward on a few problems; `UserError` if it fails more often than a run puts up with."""
        problems = [p for split in SPLITS for p in self.listed(split)]
        problems = problems[:: max(1, len(problems) // TRIED)][:TRIED]
        opened = self._first_states(problems) if self.multi_turn else [(p, dict[str, Any]()) for p in problems]
        answers = [str(p.data.get("answer", "")) for p, _ in opened]
        others = answers[1:] + answers[:1]
        attempts = []
        for (problem, info), own, other in zip(opened, answers, others, strict=True):
            attempts += [Attempt(problem, text, info) for text in (own, "", "?", other)]
        try:
            found = dict(self._judge(attempts, range(len(attempts)), one_by_one=False))
            if any("all" in r and "error" in r for r in found.values() if isinstance(r, dict)):
                found = dict(self._judge(attempts, range(len(attempts))))  # one may have failed the batch, as in a run
        except ProcessError as reason:
            right = self._try_few(attempts[: 4 * FEW], reason)[::4]
        else:
            self._refuse_failing(attempts, found)
            right = [self._verdict(attempts[i], found[i]) for i in range(0, len(attempts), 4)]
        given = [score for score, answer in zip(right, answers, strict=False) if answer.strip()]
        full = [score.outcome for score in given if isinstance(score, Score)]
        self._answers_are_gold = not self.multi_turn and len(full) == len(right) and min(full) == 1

    def _refuse_failing(self, attempts: Sequence[Attempt], found: Mapping[int, Any]) -> None:
        """`UserError` where too many tries gave no reward, or it lies in how the function is written."""
        bad = {i: r for i, r in found.items() if isinstance(r, dict) and "score" not in r}
        wrong = [i for i, r in bad.items() if "asks" in r or ("all" in r and "error" not in r)]
        if wrong:
            first = bad[min(wrong)]
            raise UserError(f"{self._called} {_said(first)}; {_remedy(first)}")
        if len(bad) > MOST_ERRORS * len(attempts):  # the audit tells of fewer
            first = bad[min(bad)]
            alike = sum(r.get("bad") == first.get("bad") for r in bad.values())
            where = f"{alike} of {len(attempts)} completions (first: {_which(attempts[min(bad)])})"
            raise UserError(f"{self._called} {_said(first)} for {where}; {_remedy(first)}")

    def _try_few(self, attempts: Sequence[Attempt], reason: ProcessError) -> list[Score | VerifierError]:
        """Verdicts of tries one by one, after one of them ended the process; `UserError` if too many do."""
        scores: list[Score | VerifierError] = []
        if isinstance(reason, TimedOut | Crashed) and any(  # else it would be long until all have failed
            isinstance(self.score_many([attempts[i]])[0], Score) for i in (0, 2)
        ):
            scores = self.score_many(attempts)
        if sum(isinstance(score, Score) for score in scores) < (1 - MOST_ERRORS) * len(attempts):
            what = f"fails in {self.function}()"
            raise UserError(self.file.explain(reason, what, "it is called with ordinary strings")) from None
        return scores

    def _first_states(self, problems: Sequence[Problem]) -> list[tuple[Problem, dict[str, Any]]]:
        """Problems, and what is known of their episodes after one empty turn; `UserError` where most fail on it."""
        found, failed = [], []
        for problem in problems:
            try:
                found.append((problem, self._episode(problem).respond("").note or {}))
            except VerifierError as reason:
                failed.append(reason)
        if len(failed) > MOST_ERRORS * len(problems):
            raise UserError(f"{failed[0]}; an empty turn is no reason to fail")
        return found

    def gold(self, problem: Problem) -> Demo | None:
        """What `gold(**row)` gives; without one, the column `answer` if the reward gives it full marks."""
        if not self.file.has("gold"):
            return super().gold(problem) if self._answers_are_gold else None
        try:
            (found,) = self.file.worker.call("gold", {"rows": [problem.data]})
        except ProcessError as reason:
            raise VerifierError(self.file.explain(reason, "fails in gold()", "give text, or None")) from None
        if found is None or not self.multi_turn:
            return None if found is None else [Piece("".join(found) if isinstance(found, list) else found)]
        episode = self._episode(problem)
        demo: Demo = []
        for turn in found if isinstance(found, list) else [found]:
            demo.append(Piece(turn))
            reply = episode.respond(turn)
            if reply.done:
                break
            demo.append(Piece(reply.text, policy=False))
        return demo if demo[-1].policy else demo[:-1]

    def _rewrite(self, problem: Problem, deeper: bool, rng: np.random.Generator) -> Problem | None:
        """What the file's `rewrite` makes of a problem, for training; None for what is in the file already, or nothing.

        `VerifierError` if it fails, or gives what cannot be a problem.
        """
        payload = {"row": problem.data, "deeper": deeper, "seed": int(rng.integers(2**31))}
        try:
            made = self.file.worker.call("rewrite", payload)
            if made is None:
                return None
            row = Row("what rewrite() returned", {"category": problem.data.get("category"), **made})
            if row.data["category"] is None:
                del row.data["category"]
            (opening,) = self.file.openings([row]) if self.multi_turn else (None,)
            child = self._problem(row, opening, "category" in problem.data)
        except ProcessError as reason:
            raise VerifierError(self.file.explain(reason, "fails in rewrite()", "give a row, or None")) from None
        except UserError as reason:
            raise VerifierError(str(reason)) from None
        if child.category not in self.categories:
            named = ", ".join(self.categories)
            raise VerifierError(
                f"{self.file.name}: rewrite() gave the category {child.category}, which is none of {named}"
            )
        if lacking := [column for column in problem.data if column not in child.data]:
            raise VerifierError(f"{self.file.name}: rewrite() left out the column `{lacking[0]}`, which its row has")
        known = child.key in self._known or (not self.multi_turn and child.prompt in self._known)
        return None if known else replace(child, origin=problem.key)

    def _episode(self, problem: Problem) -> UserEpisode:
        """The user's environment for a problem."""
        return UserEpisode(self.file, problem)


class UserEpisode:
    """One episode in an environment that lives in the file's process."""

    def __init__(self, file: UserFile, problem: Problem) -> None:
        self.file = file
        made = self._call("begin", problem.data)
        self.number, self.start = made["number"], file.worker.starts
        weakref.finalize(self, file.forgotten.append, (self.start, self.number))
        if not problem.prompt[-1].content.endswith(made["text"]):
            raise VerifierError(
                f"{file.name}: reset() gave {made['text'][:60]!r} now and another text before; it may depend on the "
                "row alone, so seed what is random from the row"
            )

    def respond(self, turn: str) -> Reply:
        """The environment's answer. Its `state` goes into the trajectory's info, for the reward to see."""
        if self.file.worker.starts != self.start or self.file.worker.pid is None:
            raise VerifierError(f"{self.file.name}: the environment was lost when its process was restarted")
        made = self._call("respond", {"number": self.number, "text": turn})
        text = made["text"]
        return Reply(text or "", done=text is None, note={"environment": {"state": made["state"]}})

    def _call(self, function: str, payload: Any) -> Any:
        """Call the program; environments that nobody holds any more are closed first."""
        worker = self.file.worker
        try:
            if self.file.forgotten:
                numbers = [n for start, n in self.file.forgotten if start == worker.starts]
                self.file.forgotten.clear()
                worker.call("end", numbers)
            return worker.call(function, payload)
        except ProcessError as reason:
            raise VerifierError(self.file.explain(reason, f"fails in {function}()", "mend the environment")) from None


def _which(attempt: Attempt) -> str:
    text = redact(attempt.completion)  # before it is cut: half a secret is not found any more
    text = text if len(text) <= 40 else text[:37] + "..."
    return f'problem {attempt.problem.key[:4]}, completion "{text}"'


def _said(result: Mapping[str, Any]) -> str:
    return str(result["bad"]) if "bad" in result else f"raised {' '.join(str(result['error']).split())}"


def _remedy(result: Mapping[str, Any]) -> str:
    if "error" in result:
        return "a wrong or odd answer is worth 0, so raise only where judging itself fails"
    if "asks" in result:
        return "rename the parameter, or give it a default"
    if "all" in result:
        return "return one number for each completion, in their order"
    return "return a number from 0 to 1, a dict with `outcome`, or raise"


def load_user_task(spec: str) -> RowTask:
    """`task.py`, `data.jsonl`, `data.csv:reward.py`, `data.jsonl:reward.py:function`; categories may follow a colon."""
    found = FILE.match(spec)
    if not found:
        raise UserError(f"{spec} is no task file; use a .py file, or .jsonl, .csv or .parquet with a reward function")
    path, rest = Path(found[1]), found[2] or ""
    code = CODE.fullmatch(rest)
    if path.suffix == ".py" or not code:
        categories = tuple(c.strip() for c in rest.split(",") if c.strip())
        return UserTask(path, categories=categories) if path.suffix == ".py" else load_rows(path, categories)
    return UserTask(Path(code[1]), code[2] or "reward", read_rows(path), path.name)
