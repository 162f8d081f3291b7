"""Runs in the sandbox, beside a program that learns: trains it for each seed, and lets it answer with what it learned.

Training and answering are processes of their own, each with so many seconds of the processor, whatever else the machine
does. The program is imported in these alone, and they can write no file: all that goes from one to the other are the
weights, as 32-bit floats. What comes back is read as numbers and text, never as objects. It imports nothing of the
package.
"""

from __future__ import annotations

import base64
import json
import math
import os
import resource
import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

LATE = 0.1  # share of its seconds by which a process may be over them at its end


class Failed(Exception):
    """A process of the program came to no good end: (status, what happened)."""


def refused(reason: str) -> dict[str, Any]:
    """What is said of a program that is not run at all."""
    return {"status": "refused", "reason": reason}


def learn(given: Any, jobs: Sequence[tuple[int, Any]], seconds: float, most: int) -> dict[str, Any]:
    """For each job (seed, questions) the weights after training on `given`, base64 of float32, and the answers.

    The program has `train(*given, rng)`, which gives a list of arrays, at most `most` numbers in all, and
    `predict(weights, questions)`, which gives numbers.
    """
    found = []
    try:
        for seed, questions in jobs:
            head, numbers = apart(lambda: trained(given, seed, most), seconds)  # noqa: B023
            weights = arrays(head, numbers)
            answers, _ = apart(lambda: (answered(weights, questions), b""), seconds)  # noqa: B023
            found.append({"weights": base64.b64encode(numbers).decode(), "answers": answers})
    except Failed as end:
        return {"status": end.args[0], "reason": end.args[1]}
    return {"status": "ok", "found": found}


def trained(given: Any, seed: int, most: int) -> tuple[Any, bytes]:
    """The shapes of the weights, and their numbers."""
    import program  # type: ignore[import-not-found]  # lies beside this file

    weights = flattened(program.train(*map(unpacked, given), np.random.default_rng(seed)), most)
    return [w.shape for w in weights], b"".join(w.tobytes() for w in weights)


def answered(weights: Sequence[np.ndarray], questions: Any) -> Any:
    """What the program says with these weights."""
    import program

    return np.asarray(program.predict(list(weights), unpacked(questions))).tolist()


def arrays(shapes: Any, numbers: bytes) -> list[np.ndarray]:
    """The weights again, writable. Raises `Failed` where shapes and numbers are not those of arrays."""
    try:
        sizes = [math.prod(shape) for shape in shapes]
        parts = np.split(np.frombuffer(numbers, np.float32).copy(), np.cumsum(sizes)[:-1]) if sizes else []
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
    except (TypeError, ValueError) as reason:
        raise Failed("crashed", f"the weights are no arrays ({reason})") from None


def packed(array: np.ndarray) -> dict[str, Any]:
    """An array of bytes as JSON data."""
    return {"shape": list(array.shape), "bytes": base64.b64encode(array.astype(np.uint8).tobytes()).decode()}


def unpacked(data: Mapping[str, Any]) -> np.ndarray:
    """The array, writable."""
    return np.frombuffer(base64.b64decode(data["bytes"]), np.uint8).reshape(data["shape"]).copy()


def flattened(weights: Any, most: int) -> list[np.ndarray]:
    """The weights as arrays of float32. Raises ValueError for too many, or for what is no list of numbers."""
    if not isinstance(weights, list | tuple):
        raise ValueError(f"train has to return a list of arrays, not {type(weights).__name__}")
    arrays = [np.asarray(w, np.float32) for w in weights]
    size = sum(a.size for a in arrays)
    if size > most:
        raise ValueError(f"the model has {size} parameters, at most {most} are allowed")
    if not all(np.isfinite(a).all() for a in arrays):
        raise ValueError("the weights are not finite after training")
    return arrays


def apart(work: Callable[[], tuple[Any, bytes]], seconds: float) -> tuple[Any, bytes]:
    """What `work` gives, JSON data and bytes, in a process of its own that may use so much of the processor and write
    no file. Raises `Failed`."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        signal.setitimer(signal.ITIMER_PROF, seconds)  # it ends the process
        try:
            data, numbers = work()
            said = json.dumps(["ok", data]).encode() + b"\n" + numbers
        except BaseException as reason:
            said = json.dumps(["raised", told(reason)]).encode() + b"\n"
        with open(write, "wb") as out:
            out.write(said)
        os._exit(0)
    os.close(write)
    with open(read, "rb") as inp:
        head, _, numbers = inp.read().partition(b"\n")
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGPROF or used.ru_utime + used.ru_stime > seconds * (1 + LATE):
        raise Failed("timeout", f"it took more than {seconds:g} s of the processor")
    try:
        kind, value = json.loads(head)
    except ValueError:
        raise Failed("crashed", f"a process of the program ended with {code}") from None
    if code or kind != "ok":
        raise Failed("raised" if not code else "crashed", str(value) if not code else f"it ended with {code}")
    return value, numbers


def told(reason: BaseException) -> str:
    """Type, message, and the last line of the program that was reached."""
    text = f"{type(reason).__name__}: {reason}"
    frames = [f for f in traceback.extract_tb(reason.__traceback__) if f.filename.endswith("program.py")]
    return text + (f" (program.py:{frames[-1].lineno}: {frames[-1].line})" if frames else "")
