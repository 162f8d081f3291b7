"""Calc as a chat model plays it: native calls where the template has them, brackets where it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from tests.hub import hub_tokenizer
from torch import Tensor

from evolvent.core.ledger import Ledger
from evolvent.core.records import Problem, Request, Trajectory
from evolvent.core.step import Step
from evolvent.engine.base import Actor, Sampling
from evolvent.engine.branches import TokenTree
from evolvent.models.chat import ChatFormat
from evolvent.rollout.sample import Sample, Turns, opening, turn_ends
from evolvent.tasks.base import one_user
from evolvent.tasks.calc import HELP, Calc

PROBLEM = Problem("k", one_user("Work out 12*7+5."), {"expression": "12*7+5", "answer": 89}, "2x2", "calc:2x2")


def native(expression: str) -> str:
    return f'<tool_call>\n{{"name": "calculator", "arguments": {{"expression": "{expression}"}}}}\n</tool_call>'


class Script:
    """A model that says given lines, one a turn, whatever it is told; the runner of a real tree."""

    context = 2000

    def __init__(self, format: ChatFormat, lines: Sequence[str], marks: frozenset[int]) -> None:
        self.format = format
        self.turns = [format.encode(line) for line in lines]
        self.turns = [t if t and t[-1] in marks else [*t, format.eos] for t in self.turns]
        self.opening = format.reply("x")[-3:]  # what every turn of the assistant opens with
        self.rows: list[list[int]] = []

    def logits(self, row: list[int]) -> Tensor:
        starts = [i for i in range(3, len(row) + 1) if row[i - 3 : i] == self.opening]
        turn, written = self.turns[len(starts) - 1], len(row) - starts[-1]
        made = torch.zeros(400)
        made[turn[written] if written < len(turn) else self.format.eos] = 50.0
        return made

    def prefill(self, prefixes: Sequence[np.ndarray], actors: Sequence[str], rows: np.ndarray) -> Tensor:
        self.rows = [prefixes[i].tolist() for i in rows]
        return torch.stack([self.logits(row) for row in self.rows])

    def step(self, tokens: np.ndarray, positions: np.ndarray) -> Tensor:
        for row, token, position in zip(self.rows, tokens.tolist(), positions.tolist(), strict=True):
            row[position:] = [token]
        return torch.stack([self.logits(row) for row in self.rows])

    def extend(self, rows: Sequence[int], chunks: Sequence[np.ndarray], starts: Sequence[int]) -> Tensor:
        for i, chunk, start in zip(rows, chunks, starts, strict=True):
            self.rows[i][start:] = chunk.tolist()
        return torch.stack([self.logits(self.rows[i]) for i in rows])

    def keep(self, rows: np.ndarray) -> None:
        self.rows = [self.rows[i] for i in rows]

    def add(self, like: int | None, actor: str) -> None:
        self.rows.append([] if like is None else list(self.rows[like]))


class ScriptEngine:
    offers = frozenset({"tokens", "logprobs", "fork", "append"})

    def __init__(self, format: ChatFormat, lines: Sequence[str], task: Calc) -> None:
        self.script, self.ledger = Script(format, lines, turn_ends(task, format)), Ledger()

    def start(
        self, stubs: Sequence[Trajectory], actors: Mapping[str, Actor], sampling: Sampling, limits: Sequence[int]
    ) -> TokenTree:
        return TokenTree(self.script, self.ledger, stubs, sampling, limits)


class Part:
    """As much of a role as a roll-out needs."""

    name, seed = "", 0

    def __init__(self, family: str, lines: Sequence[str]) -> None:
        self.format = ChatFormat(hub_tokenizer(family))
        self.policy, self.task = self, Calc(("2x2",), "plain")
        self.engine = ScriptEngine(self.format, lines, self.task)
        self.ledger = self.engine.ledger

    def play(self) -> Trajectory:
        """One episode of the problem."""
        step = Step(0, self, [Actor("policy", 0)])  # type: ignore[arg-type]
        return Sample(stride=1)([Request(PROBLEM, 1)], step)[0].trajectories[0]


def shown(part: Part, trajectory: Trajectory) -> list[tuple[str, str]]:
    """What each segment says, special tokens included."""
    decode = part.format.tokenizer.decode
    return [(s.kind, decode(trajectory.tokens[s.start : s.stop].tolist())) for s in trajectory.segments]


def test_native_calls_in_the_form_that_the_template_names() -> None:
    part = Part("chatml", [f"First the product.\n{native('12*7')}", native("84+5"), "<answer>89</answer>"])
    made = part.play()
    (_, prompt), *rest = shown(part, made)
    assert '"name": "calculator"' in prompt  # the tools are in the prompt, and brackets are not
    assert "[12*7]" not in prompt
    assert prompt.endswith("<|im_start|>user\nWork out 12*7+5.<|im_end|>\n<|im_start|>assistant\n")

    def reply(result: str) -> str:
        return f"\n<|im_start|>user\n<tool_response>\n{result}\n</tool_response><|im_end|>\n<|im_start|>assistant\n"

    assert rest == [
        ("policy", f"First the product.\n{native('12*7')}<|im_end|>"),
        ("tool", reply("84")),
        ("policy", f"{native('84+5')}<|im_end|>"),
        ("tool", reply("89")),
        ("policy", "<answer>89</answer><|im_end|>"),
    ]
    assert made.completion == "<answer>89</answer>"
    assert made.info == {"calls": 2, "failed_calls": 0}
    assert (made.stop, made.terminated) == ("end", True)
    assert part.task.score(PROBLEM, made.completion).outcome == 1
    written = sum(s.stop - s.start for s in made.segments if s.kind == "policy")
    assert made.mask.sum() == written == part.ledger.spent["method"]["sampled"]


def test_what_is_wrong_with_a_call_is_told_and_counted() -> None:
    lines = [
        native("12*7+5"),
        '<tool_call>{"name": "python", "arguments": {}}</tool_call>',
        "<tool_call>{oops</tool_call>",
        native("1+1") + native("2+2"),
        "<answer>5</answer>",
    ]
    part = Part("chatml", lines)
    made = part.play()
    tools = [text for kind, text in shown(part, made) if kind == "tool"]
    assert HELP in tools[0]
    assert "there is no tool python, only calculator" in tools[1]
    assert "no valid JSON" in tools[2]
    assert tools[3].count("<tool_response>") == 2
    assert made.info == {"calls": 5, "failed_calls": 3}
    assert part.task.score(PROBLEM, made.completion).outcome == 0


@pytest.mark.parametrize("family", ["chatml", "gemma"])
def test_brackets_are_understood_by_any_model(family: str) -> None:
    """With a native template as well: a turn without a call of that form goes to the task's own convention."""
    part = Part(family, ["[12*7]", "[84+5]", "<answer>89</answer>"])
    made = part.play()
    (_, prompt), *rest = shown(part, made)
    assert ("[12*7], and stop" in prompt) is (family == "gemma")
    end, start = ("<|im_end|>", "<|im_start|>") if family == "chatml" else ("<end_of_turn>", "<start_of_turn>")
    name = "assistant" if family == "chatml" else "model"
    stopped = end if family == "chatml" else ""  # gemma's turn ends at the bracket, and the reply closes it
    assert rest[0] == ("policy", f"[12*7]{stopped}")
    assert rest[1] == ("tool", f"{'' if stopped else end}\n{start}user\n84{end}\n{start}{name}\n")
    assert made.info == {"calls": 2, "failed_calls": 0}
    assert part.task.score(PROBLEM, made.completion).outcome == 1


def test_a_model_without_a_template_is_told_of_the_brackets() -> None:
    format = ChatFormat(hub_tokenizer("base"))
    prompt, _ = opening(format, Request(PROBLEM, 1), Calc(("2x2",), "plain"))
    assert format.decode(prompt).startswith(
        "Work out 12*7+5.\n\nTo use the calculator, write the operation in brackets"
    )


def test_a_fork_repeats_its_earlier_calls() -> None:
    """The environment of a branch is replayed from its turns, native calls included."""
    part = Part("chatml", [native("12*7"), native("84+5"), "<answer>89</answer>"])
    heard: list[str] = []

    class Listening(type(part.task.episode(PROBLEM))):  # type: ignore[misc]
        def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
            heard.append(str(arguments["expression"]))
            return super().call(name, arguments)

    part.task.episode = lambda problem: Listening()  # type: ignore[method-assign]
    made = part.play()
    assert heard == ["12*7", "84+5"]
    turns = Turns(part.task, part.format, Ledger())

    class Seen:
        uid, problem, tokens, segments = 7, PROBLEM, made.tokens, made.segments

    policy = [s for s in made.segments if s.kind == "policy"]
    turns._episode(Seen(), policy)  # type: ignore[arg-type]
    assert heard == ["12*7", "84+5", "12*7", "84+5"]


def test_marks_of_the_task_do_not_cut_native_calls() -> None:
    calc, compact = Calc(("2x2",), "plain"), Calc(("2x2",))
    assert compact.tools(PROBLEM) is None
    for family, cut in {"chatml": False, "llama": False, "gemma": True, "base": True}.items():
        format = ChatFormat(hub_tokenizer(family))
        assert (turn_ends(calc, format) > format.ends) is cut
