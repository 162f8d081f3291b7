"""A process of its own for code that the platform does not trust to return, or to return what it should.

`Worker` keeps one interpreter warm and calls functions of a program file in it, JSON in and JSON out. What comes back
is data and is never executed. A call that takes too long is ended by killing the whole process group; the next call
starts a fresh process. The process dies with its parent, also when that is killed and also in the middle of a C call.

This contains accidents: hangs, crashes, exits, prints, floods of output. It does not contain an attacker: the code can
read files and use the network, and a grandchild in a session of its own survives.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evolvent.core.errors import VerifierError

SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
HARMLESS = {"TOKENIZERS_PARALLELISM"}
PASS = "EVOLVENT_PASS"  # names of variables that are handed on although they look like secrets, with commas
KEPT_OUTPUT = 4096  # bytes of what the process printed last
LONGEST_FRAME = 1 << 28
LOOK = 0.1  # seconds between two looks at whether the process is alive


class ProcessError(VerifierError):
    """A call did not come back with a value. `output` is the end of what the process printed during the call."""

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class TimedOut(ProcessError):
    """The call took too long; the process was killed."""


class Crashed(ProcessError):
    """The process ended during the call, or broke the protocol."""


class Raised(ProcessError):
    """The function raised. `kind` is the exception's type, `reason` its text, `frames` [file, line, function, text]."""

    def __init__(self, kind: str, reason: str, frames: list[tuple[str, int, str, str]], output: str = "") -> None:
        super().__init__(f"{kind}: {reason}" if reason else kind, output)
        self.kind, self.reason, self.frames = kind, reason, frames


def clean_environment(keep: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without variables that look like secrets, except those that `EVOLVENT_PASS` names.

    Hashes of strings are fixed, so that what iterates over a set does the same every time; numeric libraries get one
    thread unless told otherwise.
    """
    passed = {name.strip() for name in os.environ.get(PASS, "").split(",")} | HARMLESS
    clean = {k: v for k, v in os.environ.items() if k in passed or not SECRET.search(k)}
    return {"OMP_NUM_THREADS": "1", **clean, "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1", **(keep or {})}


class Child:
    """One running process and its pipes."""

    def __init__(self, program: Path, memory: int | None) -> None:
        pipes = [os.pipe(), os.pipe(), os.pipe(), os.pipe()]
        (source, self.requests), (self.answers, sink), (lifeline, self.lifeline), (self.printed, output) = pipes
        setup = {"source": source, "sink": sink, "lifeline": lifeline, "program": str(program), "memory": memory}
        script = str(Path(__file__).with_name("worker.py"))
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", script, json.dumps(setup)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(source, sink, lifeline),
                env=clean_environment(),
                start_new_session=True,
            )
        except BaseException:
            for pipe in (self.requests, self.answers, self.lifeline, self.printed):
                os.close(pipe)
            raise
        finally:
            for pipe in (source, sink, lifeline, output):
                os.close(pipe)
        for pipe in (self.requests, self.answers, self.printed):
            os.set_blocking(pipe, False)
        self.owner = os.getpid()
        self.buffer = bytearray()
        self.tail = bytearray()
        self.mute = False  # nobody holds the other end of `printed` any more

    def end(self) -> None:
        """Kill the process group and close the pipes; nothing happens the second time, or in a forked copy."""
        if self.owner != os.getpid():
            return
        self.owner = -1
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.requests, self.answers, self.lifeline, self.printed):
            os.close(pipe)

    def drain(self) -> None:
        """Read what was printed; keep the end of it."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(16):
                part = os.read(self.printed, 1 << 16)
                self.mute = not part
                if self.mute:
                    return
                self.tail += part
                del self.tail[:-KEPT_OUTPUT]

    def frame(self) -> Any:
        """A whole frame out of the buffer, or None."""
        if len(self.buffer) < 4:
            return None
        size = struct.unpack(">I", self.buffer[:4])[0]
        if size > LONGEST_FRAME:
            raise ValueError(f"a result of {size} bytes")
        if len(self.buffer) < 4 + size:
            return None
        body = bytes(self.buffer[4 : 4 + size])
        del self.buffer[: 4 + size]
        return json.loads(body)


class Worker:
    """A long-lived process that runs the functions of `program`, a Python file.

    timeout  seconds that a call, or one part of a streamed answer, may take unless the call says otherwise
    memory   bytes of address space that the process may map (None: no limit)
    prepare  called with the worker after each start, to bring the process into the state that calls expect

    Safe to use from several threads; calls take turns.
    """

    def __init__(
        self,
        program: Path,
        timeout: float = 10.0,
        memory: int | None = None,
        prepare: Callable[[Worker], None] | None = None,
    ) -> None:
        self.program, self.timeout, self.memory, self.prepare = program, timeout, memory, prepare
        self._child: Child | None = None
        self._guard: Any = None
        self._number = 0
        self._lock = threading.RLock()
        self.starts = 0

    @property
    def pid(self) -> int | None:
        """The process, which leads a process group of its own; None when there is none."""
        return self._child.process.pid if self._child else None

    def start(self) -> None:
        """Start the process if there is none."""
        with self._lock:
            if self._child is not None and self._child.process.poll() is None:
                return
            self.kill()
            child = Child(self.program, self.memory)
            self._child, self._guard = child, weakref.finalize(self, child.end)
            self.starts += 1
            if self.prepare:
                try:
                    self.prepare(self)
                except BaseException:
                    self.kill()
                    raise

    def kill(self) -> None:
        """End the process with everything in its group. The next call starts another one."""
        with self._lock:
            if self._guard is not None:
                self._guard()
            self._child = self._guard = None

    close = kill

    def restart(self) -> None:
        """A fresh process."""
        with self._lock:
            self.kill()
            self.start()

    def call(self, function: str, payload: Any = None, timeout: float | None = None) -> Any:
        """What `function(payload)` returns. Raises `TimedOut`, `Crashed` or `Raised`."""
        *_, last = self.stream(function, payload, timeout)
        return last

    def stream(self, function: str, payload: Any = None, timeout: float | None = None) -> Iterator[Any]:
        """The values that a generator function yields, then the one that it returns (None included).

        The time-out is for each of them. Leaving before the end kills the process.
        """
        limit = self.timeout if timeout is None else timeout
        with self._lock:
            self.start()
            child = self._child
            assert child is not None
            self._number += 1
            number, over = self._number, False
            child.drain()
            child.tail.clear()
            body = json.dumps({"id": number, "function": function, "payload": payload}).encode()
            out = memoryview(struct.pack(">I", len(body)) + body)
            try:
                while not over:
                    frame, out = self._exchange(child, out, limit)
                    if frame["id"] != number:
                        raise ValueError("an answer to another call")
                    if "error" in frame:
                        over = True
                        child.drain()
                        error = frame["error"]
                        frames = [(str(f[0]), int(f[1]), str(f[2]), str(f[3])) for f in error["frames"]]
                        raise Raised(str(error["type"]), str(error["message"]), frames, self._output(child))
                    over = "done" in frame
                    yield frame["done"] if over else frame["part"]
            except (ValueError, TypeError, KeyError, IndexError, RecursionError) as reason:
                over = False
                raise Crashed(f"the process sent something that is no answer ({reason})", self._output(child)) from None
            finally:
                if not over:
                    self.kill()

    def _exchange(self, child: Child, out: memoryview, limit: float) -> tuple[Any, memoryview]:
        """Write what is left of the request and wait for a frame."""
        deadline = time.monotonic() + limit
        while (frame := child.frame()) is None:
            poll = select.poll()
            poll.register(child.answers, select.POLLIN)
            if not child.mute:
                poll.register(child.printed, select.POLLIN)
            if out:
                poll.register(child.requests, select.POLLOUT)
            left = deadline - time.monotonic()
            if left <= 0:
                child.drain()
                raise TimedOut(f"no answer after {limit:g} s", self._output(child))
            alive = child.process.poll() is None
            ready = dict(poll.poll(min(left, LOOK) * 1000))
            if child.printed in ready:
                child.drain()
            if child.requests in ready:
                try:
                    out = out[os.write(child.requests, out[: 1 << 20]) :]
                except BlockingIOError:
                    pass
                except BrokenPipeError:
                    out = out[:0]
            if ready.get(child.answers, 0) & select.POLLIN:
                with contextlib.suppress(BlockingIOError):
                    child.buffer += os.read(child.answers, 1 << 20)
            elif child.answers in ready or not alive:
                child.drain()
                raise Crashed(self._ending(child), self._output(child))
        return frame, out

    @staticmethod
    def _ending(child: Child) -> str:
        try:
            code = child.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "the process closed its pipe"
        if code < 0:
            return f"the process was ended by {signal.Signals(-code).name}"
        return f"the process ended with exit code {code}"

    @staticmethod
    def _output(child: Child) -> str:
        return child.tail.decode("utf-8", "replace").strip()
