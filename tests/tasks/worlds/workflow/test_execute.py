"""The executor and the scripted worker: what is handed to whom, what limits it, what it costs; structure decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evolvent.core.errors import UserError
from evolvent.tasks.evaluation import INSTANCE
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds.workflow.diagnose import faults, faults_in
from evolvent.tasks.worlds.workflow.execute import Trace, answer_in, execute, same
from evolvent.tasks.worlds.workflow.library import METHOD, OUTPUT, STEPS
from evolvent.tasks.worlds.workflow.questions import KINDS, named, names
from evolvent.tasks.worlds.workflow.scripted import Work, work
from evolvent.tasks.worlds.workflow.seeds import PARALLEL, POOL, WITHOUT_FAULTS, chain, node
from evolvent.tasks.worlds.workflow.team import Node, Team, check

QUESTIONS = [named(n) for n in names("train", 10)]


def right(team: Team, kind: str = "") -> float:
    traces = execute([(team, q) for q in QUESTIONS if kind in q.kind])
    return sum(t.right for t in traces) / len(traces)


def test_a_team_without_faults_is_always_right_and_the_seeds_are_not() -> None:
    assert right(WITHOUT_FAULTS) == 1.0
    assert all(right(team) < 0.4 for team in POOL.values())
    assert max(right(team) for team in POOL.values()) > 0.1


def test_costs_and_trajectories() -> None:
    [trace] = execute([(WITHOUT_FAULTS, q) for q in QUESTIONS if q.kind == "tour"][:1])
    assert [run.name for run in trace.runs] == ["finder", "converter", "writer"]
    calls = [call[0] for run in trace.runs for call in run.done.calls]
    foreign = sum(" mi" in " ".join(r for r in trace.question.tables["roads"] if r.startswith(f"{w[1]}: "))
                  for w in trace.question.wants.values())  # fmt: skip
    assert (calls.count("lookup"), calls.count("calculator"), calls.count("converter")) == (3, 1, foreign)
    assert trace.cost == pytest.approx(4 + 1 + 1 + 0.2 * len(calls) + 0.5 * 3)
    assert trace.runs[1].text == trace.runs[0].done.text
    assert trace.runs[0].text == f"question: {trace.question.text}"
    assert trace.runs[-1].done.text == f"answer: {trace.question.answer}"


def test_who_hands_what_to_whom_decides() -> None:
    team = chain(
        node("planner", "small", "plan"),
        node("odd", "small", "find-odd read", "exact unit", "new", "lookup"),
    )
    even = node("even", "small", "find-even read", "exact unit", "new", "lookup")
    solver = node("solver", "large", "convert calculate round", "with-converter with-calculator", "answer",
                  "converter calculator")  # fmt: skip
    edges = [("planner", "odd"), ("planner", "even"), ("planner", "solver"), ("odd", "solver"), ("even", "solver")]
    whole = check(Team((*team.nodes, even, solver), tuple(edges), ("planner",), "solver"))
    assert right(whole, "weigh") > 0.5
    for lost in (("planner", "solver"), ("odd", "solver"), ("even", "solver")):
        assert right(replace(whole, edges=tuple(e for e in edges if e != lost)), "weigh") == 0
    one = check(replace(whole, nodes=(*team.nodes, solver), edges=(edges[0], edges[2], edges[3])))
    assert right(one, "weigh") == 0  # half of the look-ups are nobody's
    assert right(whole, "home") == 0  # what depends on a fact cannot be looked up beside it


def replaced(team: Team, name: str, **fields: object) -> Team:
    return check(team.changed(replace(team[name], **fields)))  # type: ignore[arg-type]


def without(team: Team, name: str, sentence: str) -> Team:
    at = team[name]
    return replaced(team, name, steps=tuple(s for s in at.steps if s != sentence),
                    method=tuple(s for s in at.method if s != sentence))  # fmt: skip


PLANTED = [
    ("finder", METHOD["exact"], "record wrong"),
    ("finder", METHOD["unit"], "fact wrong"),
    ("finder", METHOD["latest"], "fact wrong"),
    ("finder", STEPS["plan"], "plan lacking"),
    ("finder", STEPS["read"], "fact lacking"),
    ("converter", METHOD["with-converter"], "value wrong"),
    ("writer", STEPS["calculate"], "result lacking"),
    ("writer", METHOD["with-calculator"], "result wrong"),
    ("writer", STEPS["round"], "answer lacking"),
]


@pytest.mark.parametrize(("name", "sentence", "label"), PLANTED)
def test_a_planted_fault_is_found_where_it_is(name: str, sentence: str, label: str) -> None:
    team = without(WITHOUT_FAULTS, name, sentence)
    wrong = [t for t in execute([(team, q) for q in QUESTIONS]) if not t.right]
    assert wrong
    first = [faults(team, t)[-1] for t in wrong]
    assert {(f.node, f.label) for f in first} == {(name, label)}, [
        (f, t.question.name) for f, t in zip(first, wrong, strict=True)
    ]
    told = load_task("program:workflow:questions=10").evaluate([team.text()])[0].feedback  # type: ignore[attr-defined]
    read_in = faults_in(told)
    assert {n: faults[-1] for n, faults in read_in.items()} == {
        t.question.name: f for t, f in zip(wrong, first, strict=True)
    }


@pytest.mark.parametrize(
    ("team", "node", "label"),
    [
        (replaced(WITHOUT_FAULTS, "finder", tools=()), "finder", "record lacking tool"),
        (replaced(WITHOUT_FAULTS, "converter", tools=()), "converter", "value wrong tool"),
        (replaced(WITHOUT_FAULTS, "finder", output=OUTPUT["answer"]), "finder", "value withheld"),
        (replaced(WITHOUT_FAULTS, "finder", backbone="small"), "finder", "fact wrong unheeded"),
    ],
)
def test_what_stood_in_the_way_is_told(team: Team, node: str, label: str) -> None:
    found = [faults(team, t) for t in execute([(team, q) for q in QUESTIONS if q.kind == "ride"]) if not t.right]
    assert found
    assert any(node in (f.node for f in row) for row in found)
    if label != "value withheld":
        assert any(f.label == label for row in found for f in row), found


def test_right_answers_have_no_faults() -> None:
    assert faults(WITHOUT_FAULTS, execute([(WITHOUT_FAULTS, QUESTIONS[0])])[0]) == []


def test_limits_of_backbones() -> None:
    known = ["formula: 1*a in kg with 0 decimals", "fact a: 5.0 kg"]
    long = "\n".join([*known, *(f"note {i} is of no use" for i in range(80))])
    writer = Node("writer", "tiny", (STEPS["calculate"], STEPS["round"], STEPS["guess"]), (), OUTPUT["answer"])
    done = work(Work(writer, QUESTIONS[0], long))
    assert done.text == "answer: 5"
    assert done.limits == ("cut", "unheeded")
    late = "\n".join([*(f"note {i} is of no use" for i in range(50)), *known])
    assert [work(Work(replace(writer, backbone=b), QUESTIONS[0], late)).text for b in ("large", "tiny")] == [
        "answer: 5",
        "",
    ]
    finder = node("finder", "tiny", "plan find", tools="lookup")
    text = f"question: {next(q for q in QUESTIONS if q.kind == 'tour').text}"
    done = work(Work(finder, next(q for q in QUESTIONS if q.kind == "tour"), text))
    assert (len(done.calls), done.limits) == (1, ("calls",))


def test_a_world_counts_answers_and_costs() -> None:
    task = load_task("program:workflow:questions=2,beta=0.1")
    [found] = task.evaluate([PARALLEL.text()])  # type: ignore[attr-defined]
    traces: list[Trace] = execute([(PARALLEL, named(n)) for n in task.instances("train")])  # type: ignore[attr-defined]
    assert found.metrics["right"] == sum(t.right for t in traces) / 12
    values = [t.right - 0.1 * t.cost for t in traces]
    assert [found.metrics[INSTANCE + t.question.name] for t in traces] == values
    assert found.value == pytest.approx(sum(values) / 12)
    [wrong, lost] = task.evaluate(["{}", "[1"])  # type: ignore[attr-defined]
    assert (wrong.value, wrong.status, lost.status) == (None, "unreadable", "unreadable")
    assert len(task.instances("test")) == 170 * len(KINDS)  # type: ignore[attr-defined]


def test_a_node_that_fails_is_no_wrong_answer() -> None:
    task = load_task("program:workflow:questions=1")
    task.worker = lambda jobs: ["gone" for _ in jobs]  # type: ignore[attr-defined]
    [found] = task.evaluate([PARALLEL.text()])  # type: ignore[attr-defined]
    assert found.status == "lost"


def test_answers_are_read_strictly() -> None:
    assert answer_in("answer: 3\nAnswer: `-4.50` minutes") == "-4.50"
    assert answer_in("it is 5") == ""
    assert same("4.50", "4.5")
    assert not same("", "4.5")
    assert not same("4.51", "4.5")


@pytest.mark.parametrize("settings", ["questions=0", "beta=2", "size=3"])
def test_settings_that_cannot_be(settings: str) -> None:
    with pytest.raises(UserError, match="workflow"):
        load_task(f"program:workflow:{settings}")
