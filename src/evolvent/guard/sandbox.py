"""The sandbox: runs functions of programs that nobody trusts, and gives back data and how each call ended.

A warm server behind bubblewrap (or sandlock, where bubblewrap is not installed) forks a process for each call, in
namespaces of its own that are made ahead of the call: no network, no files but the interpreter and what is named, an
empty environment, limits on time, memory, processes, files and output. Whatever it started ends with the call. What
comes back is JSON that was read here and never executed; a program can lie about its own value, so its verifier runs
elsewhere, on what came back.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import selectors
import signal
import socket
import struct
import subprocess
import threading
import time
import weakref
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from evolvent.core.errors import UserError
from evolvent.guard.cage import CAGES, installed
from evolvent.guard.caged import Server
from evolvent.guard.inside.watch import Watch
from evolvent.guard.worker import packed

Status = Literal[
    "ok", "raised", "exited", "crashed", "timeout", "memory", "processes", "output", "unreadable", "lost"
]  # fmt: skip
KINDS = ("bubblewrap", "sandlock")
REMEDY = (
    "install bubblewrap (apt install bubblewrap) or pip install sandlock, "
    "or pass --unsafe-no-sandbox if you trust what runs"
)
PROTECTION = {
    "namespaces": "each call has its own user, process, mount, network and IPC namespaces inside bubblewrap",
    "landlock": "each call has its own Landlock domain, without network and other files",
    "group": "nothing protects this machine from what runs: limits and a clean environment only",
}
SETTLE = 0.5  # seconds that a server, of which a call was lost, is given to end
SLACK = 60.0  # seconds beyond its limit after which a call without an answer counts as lost
SURROGATE = re.compile(rb"\\u[dD][89abAB]|\\u[dD][c-fC-F]")


@dataclass(frozen=True)
class Limits:
    """What one call may use."""

    seconds: float = 10.0  # on the clock
    memory: int = 1024  # MiB of address space beyond the warm process, of each process; and held by all together
    processes: int = 32  # threads included
    output: int = 2**20  # bytes of the returned value, and of printed text
    disk: int = 64  # MiB in the private folder

    def data(self) -> dict[str, Any]:
        """With all sizes in bytes."""
        return {**asdict(self), "memory": self.memory << 20, "disk": self.disk << 20}


@dataclass(frozen=True)
class Call:
    """One function call: `module.function(*arguments, **keywords)`, in a new folder that holds `files`.

    files      name (also `folder/name`) -> text, or bytes
    arguments  JSON data, as are the keywords
    seed       for `random` and NumPy, before the module is imported; without, each call draws differently
    """

    files: Mapping[str, str | bytes]
    module: str
    function: str
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None

    def data(self) -> dict[str, Any]:
        """As JSON data. Raises `UserError` for a file name that leads out of the folder."""
        for name in self.files:
            parts = PurePosixPath(name).parts
            if not parts or name.startswith("/") or ".." in parts or "\0" in name:
                raise UserError(f"`{name}` is no name for a file of a program (use names like `main.py` or `lib/a.py`)")
        binary = {name: b64encode(x).decode() for name, x in self.files.items() if isinstance(x, bytes)}
        return {**{n: getattr(self, n) for n in ("module", "function", "seed")}} | {
            "files": {name: text for name, text in self.files.items() if isinstance(text, str)},
            **({"binary": binary} if binary else {}),
            "arguments": list(self.arguments),
            "keywords": dict(self.keywords),
        }


@dataclass(frozen=True)
class Outcome:
    """How a call ended.

    status   ok: `value` is there. raised: an exception. exited: ended itself. crashed: ended by a signal. timeout,
             memory, processes, output: went beyond that limit. unreadable: what it returned is no JSON data.
             lost: the server was ended from outside, or could not start the call; nothing is known of the program.
    value    JSON data; arrays and scalars of NumPy have become lists and numbers, nan and inf are floats
    error    one line: exception, message, file and line of the program
    printed  the end of what it printed
    seconds  on the clock; `cpu`: of the processor, children included
    """

    status: Status
    value: Any = None
    error: str = ""
    printed: str = ""
    seconds: float = 0.0
    cpu: float = 0.0


@dataclass
class Flight:
    """A call that is on its way: its socket, what is still to be sent, what has come, what it uses.

    Where calls have no namespace of processes, they are watched from here: inside, /proc is closed.
    """

    index: int
    socket: socket.socket
    watched: bool
    out: memoryview
    deadline: float
    limits: dict[str, Any]
    answer: bytearray = field(default_factory=bytearray)
    watch: Watch | None = None

    @property
    def begun(self) -> bool:
        """Whether its keeper has told its number, which it does before it runs anything."""
        return len(self.answer) >= 4

    def look(self) -> None:
        """Have the call ended if it uses more than it may."""
        if self.watched and self.watch is None and self.begun:
            self.watch = Watch(struct.unpack(">I", self.answer[:4])[0], self.limits)
        end = self.watch.look() if self.watch else ""
        if end:
            self.watched, self.watch = False, None
            with contextlib.suppress(OSError):
                self.socket.send(packed({"end": end}))


class Sandbox:
    """Runs calls, up to `workers` at once. The server starts at the first run and ends with `close` or this process.

    preload  modules that every call finds loaded
    folders  that programs may read, at their own paths
    unsafe   where neither bubblewrap nor sandlock works: run without a sandbox instead of refusing
    kind     `bubblewrap`, `sandlock` or `none` instead of the first that works; for tests and measurements

    Safe to use from several threads; runs take turns. Raises `UserError` where nothing works, with the remedy.
    """

    def __init__(
        self,
        workers: int = 1,
        preload: Sequence[str] = ("numpy",),
        folders: Sequence[Path] = (),
        unsafe: bool = False,
        *,
        kind: str | None = None,
    ) -> None:
        if workers < 1:
            raise UserError(f"a sandbox needs at least one worker, got {workers}")
        for folder in folders:
            if not Path(folder).is_dir():
                raise UserError(f"there is no folder {folder} to show to the sandbox (make it, or name another)")
        if kind is None:
            try:
                kind = available()
            except UserError:
                if not unsafe:
                    raise
                kind = "none"
        elif kind == "none" and not unsafe:
            raise UserError("nothing runs without a sandbox unless --unsafe-no-sandbox says so")
        self.workers, self.preload, self.folders, self.kind = workers, tuple(preload), tuple(folders), kind
        self._server: Server | None = None
        self._lock = threading.Lock()
        self.starts = 0

    def describe(self) -> str:
        """One sentence on what protects; starts the server."""
        with self._lock:
            mode = self._started().mode
        return f"{self.kind}: {PROTECTION[mode]}"

    @property
    def pid(self) -> int | None:
        """The process that leads the server's session; None when there is none."""
        return self._server.process.pid if self._server else None

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server with everything in it. The next run starts another."""
        with self._lock:
            self._stop()

    def run(self, calls: Sequence[Call], limits: Limits | None = None) -> list[Outcome]:
        """The outcomes of the calls, in their order. Raises `UserError` where calls are no JSON or nothing starts."""
        wanted = (limits or Limits()).data()
        try:
            for call in calls:  # whole frames are made one by one: files may be large
                packed(replace(call, files=dict.fromkeys(call.files, "")).data())
        except (TypeError, ValueError, RecursionError) as reason:
            raise UserError(f"arguments of a call have to be JSON data ({reason})") from None
        with self._lock:
            outcomes: dict[int, Outcome] = {}
            with selectors.DefaultSelector() as selector:
                try:
                    self._run(calls, wanted, selector, outcomes)
                finally:  # an interrupt: keepers see their socket close, and end their call
                    for key in list(selector.get_map().values()):
                        key.data.socket.close()
            return [outcomes[index] for index in range(len(calls))]

    def _run(
        self,
        calls: Sequence[Call],
        limits: dict[str, Any],
        selector: selectors.BaseSelector,
        outcomes: dict[int, Outcome],
    ) -> None:
        waiting = list(reversed(range(len(calls))))
        flights: set[int] = set()
        returned: set[int] = set()
        while len(outcomes) < len(calls):
            while waiting and len(flights) < self.workers:
                index = waiting.pop()
                deadline = time.monotonic() + limits["seconds"] + SLACK
                flight = Flight(
                    index, *self._open(limits), memoryview(packed({"call": calls[index].data()})), deadline, limits
                )
                flights.add(index)
                selector.register(flight.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, flight)
            ready = selector.select(0.02 if any(k.data.watched for k in selector.get_map().values()) else 1.0)
            for key in selector.get_map().values():
                key.data.look()
            now = time.monotonic()
            overdue = [(k, 0) for k in selector.get_map().values() if now > k.data.deadline]
            for key, events in [*ready, *overdue]:
                flight = key.data
                if flight.index in outcomes:
                    continue
                outcome = self._proceed(flight, events, selector) if events else lost("it did not answer")
                if outcome is None:
                    continue
                if outcome.status == "lost" and not flight.begun and flight.index not in returned:
                    returned.add(flight.index)
                    waiting.append(flight.index)
                    self._settle()
                else:
                    outcomes[flight.index] = outcome
                flights.discard(flight.index)
                selector.unregister(flight.socket)
                flight.socket.close()
                if not events:
                    self._stop()

    def _proceed(self, flight: Flight, events: int, selector: selectors.BaseSelector) -> Outcome | None:
        """Send and receive what is possible now; the outcome once it is known."""
        try:
            if events & selectors.EVENT_WRITE and flight.out:
                flight.out = flight.out[flight.socket.send(flight.out[: 1 << 20]) :]
                if not flight.out:
                    selector.modify(flight.socket, selectors.EVENT_READ, flight)
            if events & selectors.EVENT_READ:
                part = flight.socket.recv(1 << 20)
                flight.answer += part
                parts = unpacked(flight.answer)
                if parts:
                    return outcome_of(*parts)
                if not part:
                    return lost("it was ended from outside")
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            return lost("it was ended from outside")
        return None

    def _open(self, limits: dict[str, Any]) -> tuple[socket.socket, bool]:
        """A socket to a new keeper, and whether it is to be watched; starts the server again if it is gone."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            for attempt in range(3):
                try:
                    server = self._started()
                    server.hand(theirs, limits)
                    return ours, server.mode == "landlock" and self.kind == "sandlock"
                except (BrokenPipeError, ConnectionResetError):
                    self._stop()
                    if attempt == 2:
                        ours.close()
                        raise UserError("the sandbox's server ends as soon as it has started") from None
        raise AssertionError

    def _started(self) -> Server:
        if self._server is not None and self._server.process.poll() is not None:
            self._stop()
        if self._server is None:
            server = Server(CAGES[self.kind](self.folders), self.preload, self.workers)
            self._server, self._guard = server, weakref.finalize(self, server.stop)
            self.starts += 1
        return self._server

    def _settle(self) -> None:
        """Give a server that seems to be ending the time to end: until then it takes calls, and loses them."""
        if self._server is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._server.process.wait(SETTLE)

    def _stop(self) -> None:
        if self._server is not None:
            self._guard()
            self._server = None


def lost(reason: str) -> Outcome:
    """The outcome of a call whose server or keeper is gone."""
    return Outcome("lost", error=f"the sandbox lost the call: {reason}")


def unpacked(answer: bytearray) -> tuple[dict[str, Any], bytes, bytes] | None:
    """Head, printed text and result of a whole answer, or None while some is missing."""
    if len(answer) < 8:
        return None
    start = 8 + struct.unpack(">I", answer[4:8])[0]  # the first four are the keeper's number
    if len(answer) < start:
        return None
    head = json.loads(answer[8:start])
    printed, value = head["sizes"]
    if len(answer) < start + printed + value:
        return None
    return head, bytes(answer[start : start + printed]), bytes(answer[start + printed : start + printed + value])


def outcome_of(head: dict[str, Any], printed: bytes, frame: bytes) -> Outcome:
    """What the keeper saw and the program wrote, put together; where they differ, the keeper is right."""
    end, code = head["end"], head.get("code", 0)
    status, value, error = judge(end, code, frame) if end != "setup" else ("lost", None, str(head.get("error", "")))
    return Outcome(
        status,  # type: ignore[arg-type]
        value,
        error,
        printed.decode("utf-8", "replace").strip(),
        head.get("seconds", 0.0),
        head.get("cpu", 0.0),
    )


def judge(end: str, code: int, frame: bytes) -> tuple[str, Any, str]:
    """Status, value and error line of a call that has started."""
    if end == "disk":
        return "output", None, "wrote more files than allowed"
    if end != "ended":
        return end, None, {"output": "returned or printed more than allowed"}.get(end, f"went beyond its {end} limit")
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return "crashed", None, f"ended by {name}"
    if code or not frame:
        return "exited", None, f"ended itself with exit code {code}"
    try:
        found = json.loads(frame.decode())
        [(kind, value)] = found.items()
        if SURROGATE.search(frame):  # half a character can neither be stored nor sent on; what stands for it can
            value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError, AttributeError):
        return "unreadable", None, "what came back is no JSON"
    if kind == "ok":
        return "ok", value, ""
    if kind not in ("raised", "exited", "memory", "processes", "unreadable", "crashed") or not isinstance(value, str):
        return "unreadable", None, "what came back is no result"
    return kind, None, "".join(c if c.isprintable() else " " for c in value)[:1000]


@functools.cache
def available() -> str:
    """The kind of sandbox that works here, tried once. Raises `UserError` with the remedy where none does."""
    reasons = []
    for kind in KINDS:
        if not installed(kind):
            reasons.append(f"{kind} is not installed")
            continue
        try:
            with trial(kind) as sandbox:
                [outcome] = sandbox.run([Call({"probe.py": "def probe(): return 42"}, "probe", "probe")])
            if outcome.value == 42:
                return kind
            reasons.append(f"{kind} does not work ({outcome.error})")
        except UserError as reason:
            reasons.append(f"{kind} does not work ({reason})")
    raise UserError(f"programs cannot be run safely here: {', '.join(reasons)}; {REMEDY}")


@contextlib.contextmanager
def trial(kind: str) -> Iterator[Sandbox]:
    """A sandbox of a kind with nothing loaded."""
    with Sandbox(preload=(), kind=kind) as sandbox:
        yield sandbox
