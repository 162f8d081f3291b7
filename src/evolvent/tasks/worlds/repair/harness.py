"""What runs inside of the sandbox: an agent on faulty programs, patched programs on tests, an agent on its own text.

It stands alone, since it is copied there. Every program has a process of its own, which gives back data through a pipe;
right answers of hidden tests are never here.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

STEPS = 2000  # lines that one call of a patched program may execute
PULSE = 0.25  # seconds of processor time of one call, for what a line takes too long
PATIENCE = 10  # times
SIZE = 10_000  # characters of a result
MEMORY = 256 << 20  # bytes beyond those of the process
PROGRAM = "program.py"


class Exhausted(RuntimeError):
    """No test runs are left."""


class TooLong(BaseException):
    """A patched program takes too many steps; nothing that it catches."""


class Tools:
    """What an agent has: the visible tests of a function, and a number of times that it may run one of them.

    examples  [{"arguments": [...], "gives": value} or {"arguments": [...], "raises": name}]
    rng       a generator of `random`
    """

    def __init__(self, function: str, examples: list[dict[str, Any]], runs: int, seed: str) -> None:
        self.function, self.examples, self.left, self.rng = function, examples, runs, random.Random(seed)

    def test(self, source: str, i: int) -> bool:
        """Whether a program passes an example; a run less is left. `Exhausted` if none was."""
        return self.trace(source, i)[0]

    def trace(self, source: str, i: int) -> tuple[bool, list[int]]:
        """The same, with the lines that were executed."""
        if self.left < 1:
            raise Exhausted("no runs are left")
        self.left -= 1
        example = self.examples[i]
        found, lines = called(source, self.function, example["arguments"])
        return same(found, example), lines


def same(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether a call ended as it should: the same value of the same type, or the same exception."""
    kind = "raises" if "raises" in wanted else "gives"
    return kind in found and json.dumps(found[kind], sort_keys=True) == json.dumps(wanted[kind], sort_keys=True)


def called(source: str, function: str, arguments: list[Any]) -> tuple[dict[str, Any], list[int]]:
    """What a function of a program gives, or how it fails; and the lines that were executed."""
    lines: dict[int, None] = {}
    try:
        code = compile(source, "<patched>", "exec")
        with limited(lines):
            names: dict[str, Any] = {"__name__": "patched"}
            exec(code, names)
            value = names[function](*copy.deepcopy(arguments))
        text = json.dumps(value)
        return ({"gives": json.loads(text)} if len(text) <= SIZE else {"failed": "too large"}), list(lines)
    except TooLong:
        return {"failed": "too many steps"}, list(lines)
    except Exception as reason:  # a patched program may do anything
        return {"raises": type(reason).__name__}, list(lines)


@contextmanager
def limited(lines: dict[int, None]) -> Iterator[None]:
    """Count lines of the patched program, and end what goes on for too long."""
    steps = 0

    def line(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        if event == "line":
            steps += 1
            lines[frame.f_lineno] = None
            if steps > STEPS:
                raise TooLong
        return line

    def over(*_: Any) -> None:
        raise TooLong

    signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, PULSE)
    sys.settrace(lambda frame, event, _: line if frame.f_code.co_filename == "<patched>" else None)
    try:
        yield
    finally:
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def apart(work: Callable[[], Any], seconds: float) -> Any:
    """What `work` gives in a process of its own, as JSON data; {"error": ...} if it fails, or takes longer.

    Seconds are of the processor, so that a busy machine changes nothing; on the clock it may be `PATIENCE` times more.
    """
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        answer = b""
        try:
            os.close(ours)
            signal.setitimer(signal.ITIMER_PROF, seconds)  # ends the process
            with contextlib.suppress(OSError):  # where /proc is closed, the sandbox's own limit has to do
                room = resource.getrlimit(resource.RLIMIT_AS)
                wanted = used() + MEMORY
                resource.setrlimit(resource.RLIMIT_AS, (wanted if room[0] < 0 else min(room[0], wanted), room[1]))
            answer = json.dumps(work()).encode()
        except BaseException as reason:
            answer = json.dumps({"error": f"{type(reason).__name__}: {reason}"[:300]}).encode()
        while answer:
            answer = answer[os.write(theirs, answer) :]
        os._exit(0)
    os.close(theirs)
    parts, end = [], time.monotonic() + seconds * PATIENCE
    while select.select([ours], [], [], max(0.0, end - time.monotonic()))[0]:
        part = os.read(ours, 1 << 16)
        if not part:
            break
        parts.append(part)
    else:
        parts = [b'{"error": "took too long"}']
    os.close(ours)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    try:
        return json.loads(b"".join(parts))
    except ValueError:
        return {"error": "ended without an answer"}


def used() -> int:
    """Bytes of address space of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def loaded(source: str, name: str) -> dict[str, Any]:
    """The names of an agent."""
    names: dict[str, Any] = {"__name__": name, "Exhausted": Exhausted}
    exec(compile(source, name, "exec"), names)
    return names


def solved(agent: str, bug: dict[str, Any], runs: int) -> dict[str, Any]:
    """What an agent makes of a bug: the patched program, the runs that it took, and whether it had none left."""
    tools = Tools(bug["function"], bug["examples"], runs, bug["name"])
    found = {"patch": bug["source"], "error": ""}
    try:
        patch = loaded(agent, PROGRAM)["solve"](bug["source"], tools)
        if not isinstance(patch, str):
            raise TypeError(f"solve gave no text: {patch!r:.80}")
        found["patch"] = patch
    except Exhausted:
        pass
    except Exception as reason:  # an agent may do anything
        found["error"] = f"{type(reason).__name__}: {reason}"[:300]
    return {**found, "runs": runs - tools.left, "exhausted": tools.left == 0}


def attempts(bugs: list[dict[str, Any]], runs: int, seconds: float) -> dict[str, Any]:
    """`solve` of the agent in program.py on each bug, and which of its two functions it has."""
    with open(PROGRAM) as file:
        agent = file.read()
    named = ("solve", "improve")
    has = apart(lambda: [name for name in named if callable(loaded(agent, PROGRAM).get(name))], seconds)
    rows = [apart(lambda bug=bug: solved(agent, bug, runs), seconds) for bug in bugs]  # type: ignore[misc]
    return {"defined": has if isinstance(has, list) else [], "attempts": rows}


def results(patches: list[dict[str, Any]], seconds: float) -> list[Any]:
    """What each patched program gives for each of its calls: {"gives": value}, {"raises": name} or {"failed": why}."""

    def of(patch: dict[str, Any]) -> list[dict[str, Any]]:
        return [called(patch["source"], patch["function"], arguments)[0] for arguments in patch["calls"]]

    return [apart(lambda patch=patch: of(patch), seconds) for patch in patches]  # type: ignore[misc]


class Workshop:
    """What an agent has that changes an agent: it may try a text on the bugs of the log, `left` times.

    rng  a generator of `random`
    """

    def __init__(self, bugs: list[dict[str, Any]], runs: int, seconds: float, tries: int, seed: str) -> None:
        self.bugs, self.runs, self.seconds, self.left = bugs, runs, seconds, tries
        self.rng = random.Random(seed)

    def attempt(self, source: str, i: int) -> dict[str, Any]:
        """What an agent of this text makes of bug i: `patch`, `runs`, `exhausted`, `error`, and `passed`, how many of
        the visible tests. `Exhausted` if nothing is left."""
        if self.left < 1:
            raise Exhausted("no tries are left")
        self.left -= 1
        return tried(source, self.bugs[i], self.runs, self.seconds)


def tried(agent: str, bug: dict[str, Any], runs: int, seconds: float) -> dict[str, Any]:
    """An attempt, and how many visible tests the patch passes."""

    def work() -> dict[str, Any]:
        found = solved(agent, bug, runs)
        tools = Tools(bug["function"], bug["examples"], len(bug["examples"]), "")
        return {**found, "passed": sum(tools.test(found["patch"], i) for i in range(len(bug["examples"])))}

    return {"patch": bug["source"], "runs": 0, "exhausted": False, "error": "", "passed": 0} | apart(work, seconds)


def logs(bugs: list[dict[str, Any]], runs: int, seconds: float) -> list[dict[str, Any]]:
    """What the agent in program.py made of these bugs, with what it saw."""
    with open(PROGRAM) as file:
        agent = file.read()
    return [{**bug, **tried(agent, bug, runs, seconds)} for bug in bugs]


def improved(
    editor: str,
    entry: str,
    bugs: list[dict[str, Any]],
    components: list[dict[str, Any]],
    runs: int,
    seconds: float,
    tries: int,
    seed: str,
) -> dict[str, Any]:
    """`improve` of an editor's text on the agent in program.py: {"source": its new text, "note": what was done}."""
    with open(PROGRAM) as file:
        own = file.read()
    log = logs(bugs, runs, seconds)

    def work() -> dict[str, Any]:
        shop = Workshop(bugs, runs, seconds, tries, seed)
        source, note = loaded(editor, PROGRAM)["improve"](own, entry, log, components, shop)
        return {"source": str(source), "note": str(note)[:60]}

    return dict(apart(work, seconds * (tries + 1)))
