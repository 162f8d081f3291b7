"""The world `sql`: agents that answer questions about databases in SQL, on SQLite.

An instance is one question about one database. An agent is a text with a script, `analyse`, which runs once for each
database and reports on it, INSTRUCTIONS for who writes SQL, and a DESCRIPTION. Who writes SQL sees the question, the
report (up to `LONGEST` characters) and the instructions, and neither the database nor the answer: a model, or without
one the scripted writer (`writer.py`). Script and queries run in the sandbox, in calls of their own; queries may only
read, and are ended where they take too long. An answer is right if set(its rows) == set(rows of the known query); what
failed is wrong. Right answers never enter the sandbox.

Databases of train, gate and test are of different domains. Of the databases some are plain and some odd in up to seven
ways (`databases.py`), so that how many questions an agent gets right depends much on which they are.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from evolvent.core.errors import UserError, VerifierError
from evolvent.guard.sandbox import Call, Limits
from evolvent.tasks.base import Split
from evolvent.tasks.evaluation import Evaluation, invalid, over_instances
from evolvent.tasks.program import PROGRAM, ProgramTask, World, unreadable
from evolvent.tasks.worlds.sized import read_size
from evolvent.tasks.worlds.sql.agents import SEED, constants
from evolvent.tasks.worlds.sql.databases import database
from evolvent.tasks.worlds.sql.directives import directives
from evolvent.tasks.worlds.sql.questions import QUESTIONS, Question, questions, rows_of
from evolvent.tasks.worlds.sql.report import read_report
from evolvent.tasks.worlds.sql.writer import Cannot, write

HARNESS = (Path(__file__).parent / "harness.py").read_text()
LONGEST = 5000  # characters of a report that are read
DATABASES = {"gate": 6, "test": 9}
GOAL = """Improve an agent that answers questions about databases in SQL. It is a Python text: analyse(db) gets a
connection to a SQLite database, once, and returns a report as a text of at most {longest} characters; INSTRUCTIONS is a
text for who writes the SQL, who sees the question, the report and the instructions, and nothing else of the database;
DESCRIPTION says in a sentence what the agent does. The value is the share of questions whose query gives the right set
of rows, on databases that nobody has seen before."""

Written = tuple[str | None, str]  # a query, or None and why there is none
Writer = Callable[[Sequence[tuple[str, str, str]]], list[Written]]  # (question, report, instructions) -> queries
Lost = str  # why nothing is known of a program


def scripted(asked: Sequence[tuple[str, str, str]]) -> list[Written]:
    """Queries of the scripted writer."""
    found: list[Written] = []
    for question, report, instructions in asked:
        try:
            found.append((write(question, _report(report), _told(instructions)), ""))
        except Cannot as reason:
            found.append((None, str(reason)))
    return found


_report, _told = lru_cache(maxsize=64)(read_report), lru_cache(maxsize=64)(directives)


def question_of(name: str) -> Question:
    """The question of an instance, `train-3/7`."""
    where, _, number = name.partition("/")
    return questions(where)[int(number)]


def grouped(names: Sequence[str]) -> dict[str, list[str]]:
    """Instances by database."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.partition("/")[0], []).append(name)
    return found


@lru_cache(maxsize=256)
def stored(name: str) -> str:
    """A database as a text that can be sent."""
    return base64.b64encode(database(name).data).decode()


def analysis(text: str, names: Sequence[str]) -> Call:
    """An agent's script on the databases of instances."""
    data = [stored(where) for where in grouped(names)]
    return Call({"harness.py": HARNESS, PROGRAM: text}, "harness", "reports", (data, LONGEST), seed=0)


def querying(queries: Mapping[str, Sequence[str]]) -> Call:
    """Queries on databases; nothing of the agent's script is there."""
    data = [stored(where) for where in queries]
    return Call({"harness.py": HARNESS}, "harness", "answers", (data, [list(texts) for texts in queries.values()]))


def judge(value: Any, names: Sequence[str]) -> Evaluation:
    """The verdict on [(query or None, what came back or why there is none)], one for each instance.

    The feedback has a line for each question that failed: instance, question, query, what happened.
    """
    if not names:
        return Evaluation(0.0)  # it works; nothing is known of how well
    values, lines = {}, []
    for name, (query, came) in zip(names, value, strict=True):
        asked = question_of(name)
        rows = came.get("rows") if isinstance(came, dict) else None
        values[name] = float(isinstance(rows, list) and rows_of(rows) == asked.answer)
        if not values[name]:
            wrong = f"{len(rows)} rows, which are not the right ones" if isinstance(rows, list) else str(came["error"])
            lines.append("\t".join((name, asked.text, query or "", " ".join(wrong.split()))))
    found = over_instances(values)
    return Evaluation(found.value, found.metrics, "\n".join(lines))


class Sql(ProgramTask):
    """The task: agents, questions, and who writes the SQL, which is the scripted `writer` unless somebody sets another.

    Reports are kept: an agent looks at each database once.
    """

    scripted_agent: ClassVar = True  # evidence says so: rules act where a model would

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.writer: Writer = scripted
        self.reports: dict[tuple[str, str], Mapping[str, Any]] = {}

    def evaluate(self, programs: Sequence[str], names: Sequence[Sequence[str]] | None = None) -> list[Evaluation]:
        """Verdicts, in the order of the programs."""
        asked = [tuple(self.instances("train")) for _ in programs] if names is None else [tuple(n) for n in names]
        found: list[Evaluation | None] = [unreadable(program) or lacking(program) for program in programs]
        for i, verdict in enumerate(self._analysed(programs, asked, found)):
            found[i] = found[i] or verdict
        rest = [i for i, verdict in enumerate(found) if verdict is None]
        wanted = [(i, name) for i in rest for name in asked[i]]
        told = [
            (question_of(name).text, self.reports[programs[i], where(name)]["report"], instructions(programs[i]))
            for i, name in wanted
        ]
        try:
            queries = dict(zip(wanted, self.writer(told) if told else [], strict=True))
        except VerifierError as reason:  # nobody knows what these agents are worth
            return [verdict or invalid(str(reason), "lost") for verdict in found]
        for i, value in zip(rest, self._answered(rest, asked, queries), strict=True):
            found[i] = invalid(value, "lost") if isinstance(value, str) else judge(value, asked[i])
        return [verdict for verdict in found if verdict is not None]

    def _analysed(
        self, programs: Sequence[str], asked: Sequence[Sequence[str]], found: Sequence[Evaluation | None]
    ) -> list[Evaluation | None]:
        """Have each agent look at the databases that it has not seen. Of each what went wrong, if it was all of it."""
        new = [
            [n for n in names if (p, where(n)) not in self.reports] for p, names in zip(programs, asked, strict=True)
        ]
        todo = [i for i, verdict in enumerate(found) if verdict is None and (new[i] or not asked[i])]
        verdicts: list[Evaluation | None] = [None] * len(programs)
        for i, outcome in zip(todo, self.run([analysis(programs[i], new[i]) for i in todo]), strict=True):
            self.cpu_seconds += outcome.cpu
            places, rows = list(grouped(new[i])), outcome.value
            if outcome.status != "ok":
                verdicts[i] = invalid(outcome.error or outcome.status, outcome.status)
                continue
            if not isinstance(rows, list) or len(rows) != len(places):
                rows = [None] * len(places)
            for place, row in zip(places, rows, strict=True):
                report = row.get("report") if isinstance(row, dict) else None
                good = report if isinstance(report, str) else ""
                self.reports[programs[i], place] = {"report": good[:LONGEST], "error": _error(row)}
        return verdicts

    def _answered(
        self, rest: Sequence[int], asked: Sequence[Sequence[str]], queries: Mapping[tuple[int, str], Written]
    ) -> list[list[tuple[str | None, Any]] | Lost]:
        """What came back of the queries of each agent, in a call for each."""
        texts = [
            {
                place: [q for n in mine if (q := queries[i, n][0]) is not None]
                for place, mine in grouped(asked[i]).items()
            }
            for i in rest
        ]
        outcomes = iter(self.run([querying(t) for t in texts if any(t.values())]))
        found: list[list[tuple[str | None, Any]] | Lost] = []
        for i, t in zip(rest, texts, strict=True):
            came: list[Any] = []
            if any(t.values()):
                outcome = next(outcomes)
                self.cpu_seconds += outcome.cpu
                if outcome.status == "lost":
                    found.append(outcome.error)
                    continue
                came = read_answers(outcome.value, [len(texts) for texts in t.values()], outcome.error)
            given = iter(came)
            order = {n: k for k, n in enumerate(n for mine in grouped(asked[i]).values() for n in mine)}
            rows = [(q, next(given) if q is not None else {"error": why}) for q, why in (queries[i, n] for n in order)]
            found.append([rows[order[n]] for n in asked[i]])
        return found


def read_answers(value: Any, counts: Sequence[int], error: str) -> list[Any]:
    """What came back of all queries, one after the other; nothing is taken for granted of it."""
    wrong = {"error": error or "no answer"}
    found: list[Any] = []
    for k, count in enumerate(counts):
        mine = value[k] if isinstance(value, list) and len(value) == len(counts) else None
        mine = mine if isinstance(mine, list) and len(mine) == count else [wrong] * count
        found += [row if isinstance(row, dict) and ("rows" in row or "error" in row) else wrong for row in mine]
    return found


def where(name: str) -> str:
    """The database of an instance."""
    return name.partition("/")[0]


@lru_cache(maxsize=256)
def instructions(program: str) -> str:
    """What an agent tells who writes SQL."""
    return str(constants(program)["INSTRUCTIONS"])


def lacking(program: str) -> Evaluation | None:
    """The verdict on a text that is no agent."""
    if not instructions(program).strip():
        return invalid("the agent has no text INSTRUCTIONS")
    return None if "def analyse(" in program else invalid("the agent has no function analyse(db)")


def _error(row: Any) -> str:
    return str(row.get("error", ""))[:300] if isinstance(row, dict) else "no report"


def task(size: str = "20") -> Sql:
    """So many databases to search with, and others for gates and evidence; 40 questions about each. `UserError` for a
    number that is not in range."""
    n = read_size("sql", size, 1, 200, "databases")
    counts: dict[Split, int] = {"train": n, "gate": DATABASES["gate"], "test": DATABASES["test"]}
    return Sql(
        World(
            name=f"program:sql:{n}",
            goal=GOAL.format(longest=LONGEST),
            seed=SEED,
            call=analysis,
            judge=judge,
            instances={s: tuple(f"{s}-{i}/{k}" for i in range(m) for k in range(QUESTIONS)) for s, m in counts.items()},
            limits=Limits(seconds=60.0, output=2**24),
            preload=("numpy", "sqlite3", "json", "re", "base64"),
        )
    )


def sql_of(one: Any) -> Sql:
    """The task, which has to be this one: `UserError` otherwise."""
    if isinstance(one, Sql):
        return one
    raise UserError(f"this recipe evolves agents that write SQL, and {one.name} has none; give --task program:sql")
