"""The world `sql`: what agents are worth, what they and the sandbox get to see, and what is no agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from evolvent.core.errors import UserError
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds.sql.agents import SEED, Agent, components, read_agent
from evolvent.tasks.worlds.sql.questions import QUESTIONS
from evolvent.tasks.worlds.sql.world import (
    LONGEST,
    Sql,
    analysis,
    judge,
    querying,
    question_of,
    read_answers,
    sql_of,
    task,
)

WHOLE = (
    "declared_keys", "shared_values", "few_values", "sampled_dates", "commented_units", "commented_meanings",
    "coded_missing", "case", "trim", "underscores", "spellings", "joins", "qualify", "once", "ties", "missing", "units",
    "dates", "decimals", "meanings",
)  # fmt: skip


def agent(*names: str) -> str:
    seed, made = read_agent(SEED), [components()[name] for name in names]
    parts = {**seed.parts, **{c.name: c.code for c in made if c.role == "part"}}
    return Agent("x", (*seed.sentences, *(c.code for c in made if c.role == "sentence")), parts).text()


@pytest.fixture(scope="module")
def sql(sandboxed: str) -> Iterator[Sql]:
    made = task("4")
    with made.sandbox:
        yield made


def test_splits_and_sizes() -> None:
    made = sql_of(load_task("program:sql:3"))
    named = {split: made.instances(split) for split in ("train", "gate", "test")}
    assert [len(names) for names in named.values()] == [3 * QUESTIONS, 6 * QUESTIONS, 9 * QUESTIONS]
    keys = [(question_of(n).text, question_of(n).sql) for names in named.values() for n in names[:QUESTIONS]]
    assert len(set(keys)) == len(keys)
    assert sql_of(made) is made
    for wrong in ("0", "x", "999"):
        with pytest.raises(UserError, match="databases goes from 1 to 200"):
            task(wrong)
    with pytest.raises(UserError, match="program:sql"):
        sql_of(load_task("program:heilbronn"))


def test_the_library_makes_good_and_bad_agents(sql: Sql) -> None:
    names = [sql.instances("test")]
    worth = [sql.evaluate([text], names)[0].value for text in (SEED, agent(*WHOLE), agent(*components()))]
    assert [value is not None for value in worth] == [True] * 3
    naive, whole, everything = (float(value or 0) for value in worth)
    assert 0.15 < naive < 0.4
    assert whole > 0.9
    assert everything < 0.6  # some of it does harm


def test_a_value_is_the_share_that_is_right(sql: Sql) -> None:
    names = sql.instances("train")[:50:3]
    both = sql.evaluate([agent(*WHOLE), SEED], [names, names])
    for e in both:
        failed = {line.split("\t")[0] for line in e.feedback.splitlines()}
        assert {n.removeprefix("instance/") for n, v in e.metrics.items() if v == 0} == failed
        assert e.value == pytest.approx(1 - len(failed) / len(names))
    assert both == sql.evaluate([agent(*WHOLE), SEED], [names, names])
    shuffled = [*names[::-1]]
    assert sql.evaluate([SEED], [shuffled])[0].metrics == both[1].metrics
    assert sql.evaluate([SEED], [()])[0].value == 0.0


def test_answers_are_compared_as_sets() -> None:
    name = next(n for n in task("2").instances("train") if question_of(n).form == "which")
    rows = [list(row) for row in question_of(name).answer]
    answers: list[dict[str, Any]] = [{"rows": rows}, {"rows": rows + rows[::-1]}, {"rows": rows[1:]}]
    answers += [{"rows": [[*r, 1] for r in rows]}, {"error": "interrupted"}, {"rows": []}]
    assert [judge([("", came)], [name]).value for came in answers] == [1, 1, 0, 0, 0, 0]


def test_right_answers_are_never_sent() -> None:
    names = task("2").instances("train")
    sent = json.dumps([analysis(SEED, names).data(), querying({"train-0": ["SELECT 1"]}).data()])
    for name in names:
        assert question_of(name).text not in sent
        assert question_of(name).sql not in sent


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"


def test_queries_that_fail_are_wrong_and_harm_nobody_else(sql: Sql) -> None:
    names = [n for n in sql.instances("train") if question_of(n).form == "count"][:4]
    right = [question_of(n).sql for n in names]
    queries = [(right[0], ""), (ENDLESS, ""), (None, "no idea"), (right[3], "")]
    sql.writer, before = (lambda asked: [queries[i] for i in range(len(asked))]), sql.writer
    try:
        [found] = sql.evaluate([SEED], [names])
    finally:
        sql.writer = before
    assert [found.metrics[f"instance/{n}"] for n in names] == [1, 0, 0, 1]
    assert "interrupted" in found.feedback
    assert "no idea" in found.feedback


BROKEN = SEED.replace('return "\\n".join', 'raise ValueError("broken")\n    return "\\n".join')


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("def analyse(db:", "unreadable", "SyntaxError"),
        ("def analyse(db):\n    return ''\n", "invalid", "INSTRUCTIONS"),
        ('INSTRUCTIONS = "x"\n', "invalid", "analyse"),
        (SEED + "\nimport os\nos._exit(3)\n", "exited", ""),
        (SEED + '\nraise RuntimeError("at once")\n', "raised", "at once"),
        (BROKEN, "ok", ""),
    ],
)
def test_what_is_no_agent(sql: Sql, text: str, status: str, said: str) -> None:
    [found] = sql.evaluate([text], [sql.instances("train")[:3]])
    assert found.status == status
    assert not found.value
    assert said in found.feedback


def test_an_agent_looks_at_a_database_once_and_reports_are_cut(sql: Sql) -> None:
    long = SEED.replace('return "\\n".join', 'return "x" * 9999 + "\\n".join')
    names = sql.instances("train")[:2]
    sql.evaluate([long], [names])
    assert sql.reports[long, "train-0"]["report"] == "x" * LONGEST
    looked = dict(sql.reports)
    sql.reports[long, "train-0"] = {"report": "table nothing", "error": ""}
    [found] = sql.evaluate([long], [names])
    assert "no table of" in found.feedback  # it was not asked again
    sql.reports.update(looked)


def test_nothing_is_taken_for_granted_of_what_comes_back() -> None:
    wrong = {"error": "why"}
    assert read_answers([[{"rows": []}], [{"rows": [[1]]}]], [1, 1], "why") == [{"rows": []}, {"rows": [[1]]}]
    assert read_answers([[{"rows": []}]], [1, 1], "why") == [wrong, wrong]
    assert read_answers([[7, {"rows": []}]], [2], "why") == [wrong, {"rows": []}]
    assert read_answers(None, [2], "") == [{"error": "no answer"}] * 2
