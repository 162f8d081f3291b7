"""One thread that runs the model for all clients: requests that wait together become one tree.

A tree cannot take new branches from outside, so requests are served in waves. Up to `waves` trees are under way at
once and advance in turn, `stride` tokens each; what arrives meanwhile waits, and starts together when one of them is
done. Rows leave their tree as they finish, so a wave grows cheaper as it ends.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evolvent.core.records import Problem
from evolvent.engine.base import Actor, Branch, Engine, Sampling, Tree
from evolvent.models.tokenizer import Format
from evolvent.rollout.sample import blank

NOBODY = Problem("served", (), {})  # stubs need a problem; a served request has none


@dataclass(frozen=True)
class Piece:
    """One token of a reply: its text (empty until a character is complete), log-prob, and top alternatives."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Event:
    """News of one choice: more text, its tokens where asked for, and at the end why it stopped.

    `sampled` counts the tokens so far; `error` ends the whole request.
    """

    choice: int
    text: str = ""
    pieces: tuple[Piece, ...] = ()
    finish: str = ""
    stopped_by: str | None = None
    sampled: int = 0
    error: str | None = None


@dataclass(eq=False)
class Job:
    """One client's request: a branch for each prompt and uid, and where news of them goes."""

    actor: str
    prompts: Sequence[np.ndarray]
    uids: Sequence[int]
    limits: Sequence[int]
    sampling: Sampling
    stops: tuple[str, ...]
    logprobs: bool
    stream: bool  # news as it comes, or only of complete choices
    emit: Callable[[Event], None]
    cancelled: bool = field(default=False, init=False)


class Writer:
    """The text of one branch as it grows; nothing that a stop string may yet take back is given out."""

    def __init__(self, job: Job, choice: int, branch: Branch, format: Format) -> None:
        self.job, self.choice, self.branch, self.format = job, choice, branch, format
        self.start = len(job.prompts[choice])
        self.sent = 0  # characters given out
        self.ends: list[int] = []  # where each token's text ends, where log-probs are asked for
        self.told = 0  # tokens given out
        self.finish = ""

    def read(self) -> Event | None:
        """What is new, if anything; sets `finish` when the choice is complete."""
        stop = self.branch.stop
        if not (stop or self.job.stream or self.job.stops):
            return None
        tokens = self.branch.tokens[self.start :]
        sampled = len(tokens)
        if stop == "end" and sampled and int(tokens[-1]) in self.format.ends:
            tokens = tokens[:-1]
        text = self.format.decode(tokens)
        found = [(text.find(s), s) for s in self.job.stops]
        at, stopped_by = min([f for f in found if f[0] >= 0], default=(-1, None))
        if stopped_by is not None:
            text, self.finish = text[:at], "stop"
        elif stop:
            self.finish = "stop" if stop == "end" else "length"
        else:
            text = text[: safe(text, self.job.stops)]
        if not self.finish and not self.job.stream:
            return None
        new = text[self.sent :]
        pieces = self._pieces(tokens, len(text)) if self.job.logprobs else ()
        if not (new or pieces or self.finish):
            return None
        self.sent = max(self.sent, len(text))
        return Event(self.choice, new, pieces, self.finish, stopped_by, sampled)

    def _pieces(self, tokens: np.ndarray, size: int) -> tuple[Piece, ...]:
        """Tokens not given out yet whose text lies within the first `size` characters."""
        for i in range(len(self.ends), len(tokens)):
            self.ends.append(len(self.format.decode(tokens[: i + 1]).rstrip("\ufffd")))
        whole = self.format.decode(tokens)
        if self.finish and self.told < len(tokens):
            self.ends[len(tokens) - 1] = len(whole)  # a character that stays incomplete
        made = []
        while self.told < len(tokens):
            begin, end = self.ends[self.told - 1] if self.told else 0, self.ends[self.told]
            if end > size and not (self.finish and begin < size):
                break
            place = self.start + self.told
            text = whole[begin : min(end, size)]
            made.append(Piece(text, float(self.branch.logprob[place]), self._top(place)))
            self.told += 1
        return tuple(made)

    def _top(self, place: int) -> tuple[tuple[str, float], ...]:
        alternatives = getattr(self.branch, "alternatives", None)
        if alternatives is None:
            return ()
        return tuple(
            (self.format.decode([int(t)]), float(p)) for t, p in zip(*(a[place] for a in alternatives), strict=True)
        )


def safe(text: str, stops: Sequence[str]) -> int:
    """How much of a growing text may be given out: no half character, no beginning of a stop string at its end."""
    size = len(text.rstrip("\ufffd"))
    for stop in stops:
        for n in range(min(len(stop) - 1, size), 0, -1):
            if text.endswith(stop[:n], 0, size):
                size -= n
                break
    return size


class Wave:
    """Jobs that started together: one tree, and a writer for each unfinished branch."""

    def __init__(self, tree: Tree, writers: list[Writer]) -> None:
        self.tree, self.writers = tree, writers


class Worker:
    """Runs jobs on an engine until `close`. `actors` are the models that jobs may name."""

    def __init__(
        self,
        engine: Engine,
        format: Format,
        actors: Mapping[str, Actor],
        *,
        waves: int = 2,
        rows: int = 256,
        stride: int = 8,
        waiting: int = 1024,
    ) -> None:
        self.engine, self.format, self.actors = engine, format, actors
        self.waves, self.rows, self.stride, self.waiting = waves, rows, stride, waiting
        self._queue: queue.Queue[Job | None] = queue.Queue()
        self._todo: list[Job] = []
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to work."""
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after the present advance; jobs that are not done get an error."""
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join(timeout=30)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def queued(self) -> int:
        """Requests that wait, roughly."""
        return self._queue.qsize() + len(self._todo)

    def submit(self, job: Job) -> bool:
        """Queue a job; False if too many wait already."""
        if self.queued >= self.waiting:
            return False
        self._queue.put(job)
        return True

    def _run(self) -> None:
        active: list[Wave] = []
        while self._take(block=not active and not self._todo):
            if self._todo and len(active) < self.waves:
                active += self._begin()
            for wave in active:
                self._advance(wave)
            active = [w for w in active if w.writers]
        for job in [*self._todo, *{id(w.job): w.job for wave in active for w in wave.writers}.values()]:
            job.emit(Event(0, error="the server is shutting down"))

    def _take(self, block: bool) -> bool:
        """Move what has arrived to `_todo`; False when it is time to stop."""
        while True:
            try:
                job = self._queue.get(block=block)
            except queue.Empty:
                return True
            if job is None:
                return False
            self._todo.append(job)
            block = False

    def _begin(self) -> list[Wave]:
        """Trees for the jobs at the head of the queue that want the same kind of sampling as the first."""
        self._todo = [job for job in self._todo if not job.cancelled]
        if not self._todo:
            return []
        sampling = self._todo[0].sampling
        chosen: list[Job] = []
        room = self.rows
        for job in self._todo:
            if job.sampling == sampling and (not chosen or len(job.uids) <= room):
                chosen.append(job)
                room -= len(job.uids)
        self._todo = [job for job in self._todo if job not in chosen]
        stubs = [blank(u, NOBODY, p, job.actor) for job in chosen for u, p in zip(job.uids, job.prompts, strict=True)]
        limits = [n for job in chosen for n in job.limits]
        used = {name: self.actors[name] for name in dict.fromkeys(job.actor for job in chosen)}
        try:
            tree = self.engine.start(stubs, used, sampling, limits)
        except Exception as reason:  # whatever the engine meets, the others are still to be served
            for job in chosen:
                job.emit(Event(0, error=f"{type(reason).__name__}: {reason}"))
            return []
        owners = [(job, i) for job in chosen for i in range(len(job.uids))]
        writers = [Writer(job, i, b, self.format) for (job, i), b in zip(owners, tree.branches, strict=True)]
        return [Wave(tree, writers)]

    def _advance(self, wave: Wave) -> None:
        """Some tokens for every branch of a wave, and the news to its clients."""
        try:
            for writer in wave.writers:
                if writer.job.cancelled:
                    wave.tree.stop(writer.branch, "cancelled")
                    writer.finish = "cancelled"
            wave.tree.advance(self.stride)
            events = [(w, w.read()) for w in wave.writers if w.finish != "cancelled"]
            for writer in wave.writers:
                if writer.finish and not writer.branch.stop:
                    wave.tree.stop(writer.branch, "stop")
        except Exception as reason:  # as above
            for job in {id(w.job): w.job for w in wave.writers}.values():
                job.emit(Event(0, error=f"{type(reason).__name__}: {reason}"))
            wave.writers = []
            return
        for writer, event in events:
            if event is not None:
                writer.job.emit(event)
        wave.writers = [w for w in wave.writers if not w.finish]
