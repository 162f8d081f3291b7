"""The process that runs one call: load the module, call the function, write what came of it as one piece of JSON.

Nothing here is a guard, the code that it runs can change all of it; the guards are around the process. The JSON has one
key: `ok` with the value, or the name of another outcome with a line of text.
"""

from __future__ import annotations

import binascii
import contextlib
import errno
import importlib
import importlib.util
import json
import os
import random
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

LONGEST_ERROR = 1000


class Unreadable(Exception):
    """The value is not data."""


def plain(value: Any) -> Any:
    """The value as JSON data; arrays and scalars of NumPy become lists and numbers. Raises `Unreadable`."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise Unreadable("a dictionary with keys that are not strings")
        return {key: plain(part) for key, part in value.items()}
    raise Unreadable(f"a value of type {type(value).__name__}")


def encode(value: Any) -> bytes:
    """The frame of a returned value. Raises `Unreadable`."""
    try:
        return json.dumps({"ok": plain(value)}).encode()
    except RecursionError:
        raise Unreadable("a value that is nested too deeply, or contains itself") from None
    except (ValueError, TypeError) as reason:
        raise Unreadable(f"a value that is no JSON ({reason})") from None


def line(reason: BaseException, folder: str) -> str:
    """Type, message and the last line of the candidate's own files that was reached."""
    text = f"{type(reason).__name__}: {reason}" if str(reason) else type(reason).__name__
    if isinstance(reason, SyntaxError) and reason.filename:
        text = f"{type(reason).__name__}: {reason.msg} ({os.path.basename(reason.filename)}:{reason.lineno})"
    frames = [f for f in traceback.extract_tb(reason.__traceback__) if f.filename.startswith(folder + "/")]
    if frames:
        last = frames[-1]
        text += f" ({last.filename[len(folder) + 1 :]}:{last.lineno}: {last.line or ''})"
    return " ".join(text.split())[:LONGEST_ERROR]


def failed(reason: BaseException, folder: str) -> tuple[str, str]:
    """The kind of outcome that an exception stands for, and its line."""
    if isinstance(reason, MemoryError):
        kind = "memory"
    elif isinstance(reason, SystemExit):
        code = 0 if reason.code is None else reason.code if isinstance(reason.code, int) else 1
        return "exited", f"sys.exit({code})" if isinstance(reason.code, int | None) else f"sys.exit: {reason.code}"
    elif isinstance(reason, Unreadable):
        return "unreadable", f"returned {reason}"
    elif (isinstance(reason, BlockingIOError) and reason.errno == errno.EAGAIN) or "start new thread" in str(reason):
        kind = "processes"
    else:
        kind = "raised"
    return kind, line(reason, folder)


def seed(number: int | None) -> None:
    """Seed `random` and NumPy; without a number differently in each process, as in a fresh interpreter."""
    random.seed(number)
    if "numpy" in sys.modules or (number is not None and importlib.util.find_spec("numpy")):
        importlib.import_module("numpy").random.seed(None if number is None else number % 2**32)


def write_files(files: dict[str, str], folder: str, binary: dict[str, str] | None = None) -> None:
    """Put the files of the call into its folder; `binary` are those that are no text, in base64."""
    for name, coded in (binary or {}).items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(binascii.a2b_base64(coded))
    for name, text in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if name.endswith(".py"):  # its own modules come before those of the same name that the server has loaded
            sys.modules.pop(Path(name).parts[0].removesuffix(".py"), None)
    sys.path.insert(0, folder)
    importlib.invalidate_caches()


def run(call: dict[str, Any], folder: str, result: int) -> NoReturn:
    """Carry out the call, write the frame to the pipe `result`, and end the process."""
    own = os.getpid()
    try:
        write_files(call["files"], folder, call.get("binary"))
        seed(call["seed"])
        function = getattr(importlib.import_module(call["module"]), call["function"])
        frame = encode(function(*call["arguments"], **call["keywords"]))
    except BaseException as reason:
        kind, text = "raised", type(reason).__name__  # where even its text raises
        with contextlib.suppress(BaseException):
            kind, text = failed(reason, folder)
        frame = json.dumps({kind: text}).encode()
    if os.getpid() != own:  # a fork of the candidate that came back out of its function
        os._exit(0)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()
    view = memoryview(frame)
    while view:
        view = view[os.write(result, view) :]
    os._exit(0)
