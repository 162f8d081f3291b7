"""Runs in the sandbox, beside a program that learns: trains it for each seed, and lets it answer with what it learned.

Training and answering are processes of their own, each with so many seconds of the processor, whatever else the machine
does. All that goes from one to the other are the weights, as 32-bit floats. It imports nothing of the package.
"""

from __future__ import annotations

import base64
import os
import pickle
import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


class Failed(Exception):
    """A process of the program came to no good end: (status, what happened)."""


def refused(reason: str) -> dict[str, Any]:
    """What is said of a program that is not run at all."""
    return {"status": "refused", "reason": reason}


def learn(given: Any, jobs: Sequence[tuple[int, Any]], seconds: float, most: int) -> dict[str, Any]:
    """For each job (seed, questions) the weights after training on `given`, base64 of float32, and the answers.

    The program has `train(*given, rng)`, which gives a list of arrays, at most `most` numbers in all, and
    `predict(weights, questions)`, which gives whole numbers.
    """
    import program  # type: ignore[import-not-found]  # lies beside this file

    found = []
    try:
        for seed, questions in jobs:
            lesson = [unpacked(part) for part in given]
            rng = np.random.default_rng(seed)
            weights = apart(lambda: flattened(program.train(*lesson, rng), most), seconds)  # noqa: B023
            asked = unpacked(questions)
            answers = apart(lambda: np.asarray(program.predict(weights, asked)).tolist(), seconds)  # noqa: B023
            numbers = b"".join(w.tobytes() for w in weights)
            found.append({"weights": base64.b64encode(numbers).decode(), "answers": answers})
    except Failed as end:
        return {"status": end.args[0], "reason": end.args[1]}
    return {"status": "ok", "found": found}


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


def apart(work: Callable[[], Any], seconds: float) -> Any:
    """What `work` gives, in a process of its own that may use so much of the processor. Raises `Failed`."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        signal.setitimer(signal.ITIMER_PROF, seconds)  # it ends the process
        try:
            said = ("ok", work())
        except BaseException as reason:
            said = ("raised", told(reason))
        with open(write, "wb") as out:
            pickle.dump(said, out)
        os._exit(0)
    os.close(write)
    with open(read, "rb") as inp:
        answer = inp.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGPROF:
        raise Failed("timeout", f"it took more than {seconds:g} s of the processor")
    if code or not answer:
        raise Failed("crashed", f"a process of the program ended with {code}")
    status, value = pickle.loads(answer)
    if status != "ok":
        raise Failed(status, value)
    return value


def told(reason: BaseException) -> str:
    """Type, message, and the last line of the program that was reached."""
    text = f"{type(reason).__name__}: {reason}"
    frames = [f for f in traceback.extract_tb(reason.__traceback__) if f.filename.endswith("program.py")]
    return text + (f" (program.py:{frames[-1].lineno}: {frames[-1].line})" if frames else "")
