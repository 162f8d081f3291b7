"""The other end of `process.Worker`: a loop that calls the functions of a program file, one frame in, frames out.

Run as a script by a bare interpreter. It imports nothing but the standard library and puts no folder on the path, so
that neither the platform nor a file that happens to lie beside the program can get in its way.

A frame is four bytes (its length, big-endian) and JSON. In: {id, function, payload}. Out: {id, part} for each value
that a generator yields, then {id, done} with the returned value, or {id, error} with what was raised.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import resource
import select
import signal
import struct
import sys
import threading
import traceback
import types
from typing import Any


def die_with(lifeline: int) -> None:
    """End this process group as soon as the other end of the pipe is closed, even in the middle of a C function."""
    if hasattr(fcntl, "F_SETSIG"):  # Linux: the kernel kills the group
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    else:

        def wait() -> None:
            os.read(lifeline, 1)
            os.killpg(os.getpgrp(), signal.SIGKILL)

        threading.Thread(target=wait, daemon=True).start()
    if select.select([lifeline], [], [], 0)[0]:  # it was closed before the signal was set up
        os._exit(1)


def receive(source: int) -> Any:
    """The next frame; None when the other end is closed."""
    head = _exactly(source, 4)
    if head is None:
        return None
    body = _exactly(source, struct.unpack(">I", head)[0])
    return None if body is None else json.loads(body)


def _exactly(source: int, count: int) -> bytes | None:
    parts = []
    while count:
        part = os.read(source, min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def packed(frame: dict[str, Any]) -> bytes:
    """A frame as bytes; `TypeError` where it holds anything but plain data."""
    body = json.dumps(frame).encode()
    return struct.pack(">I", len(body)) + body


def send(sink: int, frame: bytes) -> None:
    """Write a frame."""
    data = memoryview(frame)
    while data:
        data = data[os.write(sink, data) :]


def describe(reason: BaseException, hidden: set[str]) -> dict[str, Any]:
    """An exception as data: its type, its message, and the frames [file, line, function, text] of the user's code."""
    frames = [
        [f.filename, f.lineno, f.name, f.line or ""]
        for f in traceback.extract_tb(reason.__traceback__)
        if f.filename not in hidden and not f.filename.startswith("<frozen")
    ]
    message = str(reason)
    if isinstance(reason, SyntaxError):
        message = reason.msg
        if reason.filename:
            frames.append([reason.filename, reason.lineno or 0, "", (reason.text or "").strip()])
    with contextlib.suppress(Exception):
        message = message.encode("utf-8", "replace").decode()
    return {"type": type(reason).__name__, "message": message[:2000], "frames": frames[-8:]}


def answer(program: Any, request: dict[str, Any], sink: int, hidden: set[str]) -> None:
    """Carry out one request."""
    number = request["id"]
    try:
        result = getattr(program, request["function"])(request["payload"])
        if isinstance(result, types.GeneratorType):
            try:
                while True:
                    send(sink, packed({"id": number, "part": next(result)}))
            except StopIteration as end:
                result = end.value
        frame = packed({"id": number, "done": result})
    except BaseException as reason:  # SystemExit and the like end the call, not the worker
        frame = packed({"id": number, "error": describe(reason, hidden)})
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    send(sink, frame)


def main() -> None:
    """Set up, load the program, and answer until the pipe is closed."""
    setup = json.loads(sys.argv[1])
    source, sink, lifeline = setup["source"], setup["sink"], setup["lifeline"]
    for pipe in (source, sink, lifeline):
        os.set_inheritable(pipe, False)
    die_with(lifeline)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if setup["memory"]:
        resource.setrlimit(resource.RLIMIT_AS, (setup["memory"], setup["memory"]))
    sys.argv = [setup["program"]]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace", line_buffering=True)
    spec = importlib.util.spec_from_file_location("evolvent_program", setup["program"])
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    sys.modules["evolvent_program"] = program
    spec.loader.exec_module(program)
    hidden = {__file__, setup["program"]}
    while (request := receive(source)) is not None:
        answer(program, request, sink, hidden)


if __name__ == "__main__":
    main()
