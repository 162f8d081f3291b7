"""The roll-out that most recipes use: sample every request, answer tool calls, hand back complete groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from evolvent.core.errors import EngineError, UserError, VerifierError
from evolvent.core.ledger import Ledger
from evolvent.core.out_of_memory import explained
from evolvent.core.random import identifiers
from evolvent.core.records import Group, Message, Problem, Request, Segment, Trajectory
from evolvent.core.step import Step
from evolvent.engine.base import Actor, Branch, Sampling, Tree
from evolvent.models.calls import Call
from evolvent.models.tokenizer import Format, ToolFormat
from evolvent.tasks.base import Reply, Tools


class Control(Protocol):
    """Looks at the tree every `stride` tokens and may fork, append or stop.

    A branch that it stops as "pruned" is dropped, and any other reason but "paused" leaves the trajectory in its group
    as it is. With one that is "paused" its whole group goes to `s.pending`: nothing is learned of a part of a group. It
    is up to who pauses that it goes on, in a `Request` with all of it in `resume`; nobody else does that.

    Optional: `begin(tree, requests, owner, s)`, called before the first token; `owner[branch.root]` is the place of a
    branch's request. `hidden = True` asks the engine for `branch.hidden`.
    """

    stride: int

    def between(self, tree: Tree, s: Step) -> None: ...


@dataclass
class Sample:
    """Sample `n` trajectories of each request. Roots stand in the order of the requests, resumed ones first; what of
    these is over already goes to its group as it is.

    temperature  of the sampling distribution; the learner scores tokens at the same one
    max_tokens   that the policy may write in an episode (None: what the task says)
    stride       tokens between two looks at tool calls; a tool's reply waits at most that long
    control      a controller of branches, or None
    """

    temperature: float = 1.0
    max_tokens: int | None = None
    stride: int = 4
    entropy: bool = False
    alternatives: int = 0
    control: Control | None = None

    @explained("rollout")
    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """Groups in the order of the requests, empty ones left out. One with a paused member goes to `s.pending`, what
        is over of it first."""
        role = s.role
        controls = [c for c in (self.control, *s.controls) if c is not None]
        actors = {a.id: a for a in s.actors}
        stubs, owner = self._stubs(requests, s)
        limit = self.max_tokens or role.task.max_tokens
        sampling = Sampling(
            temperature=self.temperature,
            ends=turn_ends(role.task, role.policy.format),
            entropy=self.entropy,
            alternatives=self.alternatives,
            hidden=any(getattr(c, "hidden", False) for c in controls),
            hold=hasattr(role.task, "episode"),
        )
        over = [[t for t in r.resume if not is_open(t)] for r in requests]
        paused: list[list[Trajectory]] = [[] for _ in requests]
        if not stubs:
            return self._complete(requests, over, paused, s)
        tree = role.engine.start(stubs, actors, sampling, [limit] * len(stubs))
        turns = Turns(role.task, role.policy.format, role.ledger)
        # an engine of whole requests pays for each of them, and ends turns by itself
        by_token = sampling.hold and "tokens" in role.engine.offers
        strides = [self.stride] * by_token + [c.stride for c in controls]
        for control in controls:
            if hasattr(control, "begin"):
                control.begin(tree, requests, owner, s)
        while tree.live:
            tree.advance(min(strides, default=None))
            if sampling.hold:
                turns.serve(tree)
            for control in controls:
                control.between(tree, s)
        for branch in tree.branches:
            made = harvest(branch, stubs[branch.root], role.policy.format, actors, self.temperature)
            made.info |= turns.notes.get(branch.uid, {})
            made.error = turns.errors.get(branch.uid) or getattr(branch, "error", None)
            if made.stop != "pruned":
                (paused if made.stop == "paused" else over)[owner[branch.root]].append(made)
        return self._complete(requests, over, paused, s)

    @staticmethod
    def _complete(
        requests: Sequence[Request], over: list[list[Trajectory]], paused: list[list[Trajectory]], s: Step
    ) -> list[Group]:
        """The groups that nothing is missing from. All members of the others wait, what is over first."""
        groups = []
        for request, done, later in zip(requests, over, paused, strict=True):
            if later:
                s.pending += done + later
            elif done:
                groups.append(Group(request.problem, done))
        return groups

    def _stubs(self, requests: Sequence[Request], s: Step) -> tuple[list[Trajectory], list[int]]:
        """A stub for each trajectory to be made, and the request that it belongs to. Actors are dealt in turn."""
        stubs: list[Trajectory] = []
        owner: list[int] = []
        names = [a.id for a in s.actors]
        for place, request in enumerate(requests):
            for paused in filter(is_open, request.resume):
                stubs.append(paused)
                owner.append(place)
            if request.n > len(request.resume):
                prefix, opened = opening(s.role.policy.format, request, s.role.task)
            uids = identifiers(request.n, s.role.seed, *s.path, s.round, place)
            for uid in uids[len(request.resume) :]:
                stub = blank(uid, request.problem, prefix, names[len(stubs) % len(names)])
                stub.uses = request.uses
                if request.hint:
                    stub.segments = (Segment("prompt", 0, opened), Segment("hint", opened, len(prefix)))
                    stub.info["hint"] = request.hint
                stubs.append(stub)
                owner.append(place)
        return stubs, owner

    def check(self, system: Any) -> None:
        """Temperature and limits in range."""
        if not 0 <= self.temperature < 100:
            raise UserError(f"rollout.temperature must be at least 0, got {self.temperature}; 1 is the policy itself")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise UserError(f"rollout.max_tokens must be at least 1, got {self.max_tokens}")
        if self.stride < 1 or self.alternatives < 0:
            raise UserError(
                "rollout.stride must be at least 1 and rollout.alternatives at least 0, "
                f"got {self.stride} and {self.alternatives}"
            )


def opening(format: Format, request: Request, task: Any = None) -> tuple[np.ndarray, int]:
    """Tokens of memory, prompt and hint, int32, and how many of them come before the hint.

    Where the task has tools, models are told of them: in their own format, or else in the task's words.
    """
    messages = [*request.memory, *request.problem.prompt]
    tools = tools_of(task, request.problem)
    if tools is not None and isinstance(format, ToolFormat) and format.native_tools:
        tokens = format.prompt(messages, tools.schemas)
    elif tools is not None:
        last = messages[-1]
        tokens = format.prompt([*messages[:-1], Message(last.role, f"{last.content}\n\n{tools.text}")])
    else:
        tokens = format.prompt(messages)
    return np.array(tokens + (format.encode(request.hint) if request.hint else []), np.int32), len(tokens)


def is_open(t: Trajectory) -> bool:
    """Whether a trajectory can go on: it was paused, or never begun."""
    return t.stop in ("", "paused")


def blank(uid: int, problem: Problem, prefix: np.ndarray, actor: str) -> Trajectory:
    """A trajectory that is nothing but its prefix."""
    size = len(prefix)
    return Trajectory(uid, problem, prefix, np.zeros(size, bool), np.zeros(size, np.float32), actor=actor)


def tools_of(task: Any, problem: Problem) -> Tools | None:
    """The tools of a problem, if its task has any."""
    return task.tools(problem) if hasattr(task, "tools") else None


def turn_ends(task: Any, format: Format) -> frozenset[int]:
    """Tokens that end the policy's turn: the format's own, and the task's mark if it is one token.

    Calls in a model's own format may contain the mark, so it does not count there.
    """
    mark = getattr(task, "turn_end", None)
    if hasattr(task, "tools") and isinstance(format, ToolFormat) and format.native_tools:
        mark = None
    found = format.encode(mark) if mark else []
    return format.ends | (frozenset(found) if len(found) == 1 else frozenset())


def turn_text(branch: Branch, segment: Segment, format: Format) -> str:
    """What the policy wrote in one turn, without the token that ended it."""
    turn = branch.tokens[segment.start : segment.stop]
    if len(turn) and int(turn[-1]) in format.ends:
        turn = turn[:-1]
    return format.decode(turn)


def harvest(
    branch: Branch, stub: Trajectory, format: Format, actors: dict[str, Actor], temperature: float
) -> Trajectory:
    """A finished branch as a trajectory with arrays of its own.

    `info["versions"]` of a resumed one says who sampled what: (version, up to which token), oldest first.
    """
    segments = branch.segments
    completion = ""
    for before, segment in zip([None, *segments], segments, strict=False):
        if segment.kind == "policy":
            hint = stub.info.get("hint", "") if before is not None and before.kind == "hint" else ""
            completion = hint + turn_text(branch, segment, format)
    alternatives = branch.alternatives
    info = stub.info | branch.info
    if stub.mask.any():  # begun in an earlier step
        earlier = stub.info.get("versions", [(stub.version, len(stub.tokens))])
        info["versions"] = [*earlier, (actors[branch.actor].version, len(branch.tokens))]
    return Trajectory(
        branch.uid,
        stub.problem,
        branch.tokens.copy(),
        branch.mask.copy(),
        branch.logprob.copy(),
        version=actors[branch.actor].version,
        actor=branch.actor,
        segments=segments,
        completion=completion,
        stop=branch.stop,
        temperature=temperature,
        parent=branch.parent,
        fork_at=branch.fork_at,
        uses=stub.uses,
        entropy=None if branch.entropy is None else branch.entropy.copy(),
        alternatives=None if alternatives is None else (alternatives[0].copy(), alternatives[1].copy()),
        info=info,
    )


class Turns:
    """Answers the policy's turns: tools and environments reply, or end the episode."""

    def __init__(self, task: Any, format: Format, ledger: Ledger) -> None:
        self.task, self.format, self.ledger = task, format, ledger
        self.max_turns = getattr(task, "max_turns", 1)
        self.episodes: dict[int, Any] = {}
        self.notes: dict[int, dict[str, Any]] = {}
        self.errors: dict[int, str] = {}
        self.done: set[int] = set()

    def serve(self, tree: Tree) -> None:
        """Answer every branch that has ended a turn since the last call."""
        for branch in tree.branches:
            if branch.stop == "end" and branch.uid not in self.done:
                try:
                    self._answer(branch, tree)
                except (VerifierError, EngineError) as reason:
                    self.errors[branch.uid] = f"environment: {reason}"
                    self._finish(branch, tree, "error")

    def _finish(self, branch: Branch, tree: Tree, why: str) -> None:
        tree.stop(branch, why)
        self.done.add(branch.uid)

    def _episode(self, branch: Branch, turns: list[Segment]) -> Any:
        """The branch's environment. That of a fork or of a resumed episode is replayed from its earlier turns."""
        if branch.uid not in self.episodes:
            made = self.task.episode(branch.problem)
            for turn in turns[:-1]:
                self._note(branch, self._respond(made, branch, turn)[0])
            self.episodes[branch.uid] = made
        return self.episodes[branch.uid]

    def _answer(self, branch: Branch, tree: Tree) -> None:
        turns = [s for s in branch.segments if s.kind == "policy"]
        episode = self._episode(branch, turns)
        if episode is None or not turns:
            self._finish(branch, tree, "end")
            return
        reply, tokens = self._respond(episode, branch, turns[-1])
        self.ledger.charge(environment_steps=reply.calls)
        self._note(branch, reply)
        if reply.done:
            self._finish(branch, tree, "turns" if reply.truncated else "env" if reply.calls else "end")
        elif len(turns) >= self.max_turns:
            self._finish(branch, tree, "turns")
        else:
            tree.append(branch, tokens)

    def _note(self, branch: Branch, reply: Reply) -> None:
        """Add up what a turn cost and what the environment says of it."""
        note = self.notes.setdefault(branch.uid, {"calls": 0})
        note["calls"] += reply.calls
        for name, value in (reply.note or {}).items():
            note[name] = note.get(name, 0) + value if isinstance(value, int | float) else value

    def _respond(self, episode: Any, branch: Branch, turn: Segment) -> tuple[Reply, list[int]]:
        """The environment's answer to a turn, and its tokens as they follow the turn."""
        format, text = self.format, turn_text(branch, turn, self.format)
        tools = tools_of(self.task, branch.problem)
        calls = format.calls(text) if tools is not None and isinstance(format, ToolFormat) else []
        if calls and tools is not None and isinstance(format, ToolFormat):
            replies = [self._call(episode, call, tools) for call in calls]
            reply = replies[0] if len(replies) == 1 else together(replies)
            tokens = [] if reply.done else format.results(calls, [r.text for r in replies])
        else:
            reply = episode.respond(text)
            tokens = [] if reply.done else format.reply(reply.text)
        ended = int(branch.tokens[turn.stop - 1]) in format.ends
        return reply, tokens if ended or reply.done else [*getattr(format, "close", ()), *tokens]

    @staticmethod
    def _call(episode: Any, call: Call, tools: Tools) -> Reply:
        """The result of one call; what is wrong with it is told to the model."""
        names = [schema["function"]["name"] for schema in tools.schemas]
        if not call.error and call.name in names:
            return episode.call(call.name, call.arguments)
        problem = call.error or f"there is no tool {call.name}, only {', '.join(names)}"
        return Reply(f"error: {problem}", note={"failed_calls": 1})


def together(replies: Sequence[Reply]) -> Reply:
    """Several results of one turn as one reply: counts add up, and the episode is over if one says so."""
    notes: dict[str, Any] = {}
    for reply in replies:
        for name, value in (reply.note or {}).items():
            notes[name] = notes.get(name, 0) + value if isinstance(value, int | float) else value
    text = "\n".join(reply.text for reply in replies)
    return Reply(text, any(reply.done for reply in replies), sum(reply.calls for reply in replies), notes)
