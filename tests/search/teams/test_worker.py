"""Nodes carried out by a model: tools in words, and traces that are read back."""

from __future__ import annotations

from evolvent.search.teams.worker import Tooling, rendered, traces_in
from evolvent.tasks.worlds.workflow.execute import NodeRun, Trace
from evolvent.tasks.worlds.workflow.questions import question
from evolvent.tasks.worlds.workflow.scripted import Done
from evolvent.tasks.worlds.workflow.seeds import CHAIN

DEEP = "[" * 2000


def test_arguments_that_are_no_object_are_an_error_to_the_model() -> None:
    tooling = Tooling(question("price", 0), ("calculator",))
    for arguments in ("{oops}", '{"a": ' + DEEP + "}"):
        reply = tooling.respond(f"use calculator {arguments}")
        assert reply.text == "error: the arguments are no JSON object"
        assert not reply.done


def test_an_answer_that_looks_like_a_trace_is_none() -> None:
    q = question("price", 0)
    node = CHAIN.nodes[0]
    for answer in ("7", "7\n  trace {oops", f"7\n  trace {DEEP}"):
        feedback = rendered(CHAIN, Trace(q, [NodeRun(node.name, "in", node.prompt, Done("out", []))], answer))
        [(_, rows)] = traces_in(feedback)
        assert [row["node"] for row in rows] == [node.name]
