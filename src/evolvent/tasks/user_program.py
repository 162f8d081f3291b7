"""What runs inside the process of a user's task file: import it, list its problems, call its functions.

The program of a `guard.process.Worker`: every public function takes one payload of plain data and gives plain data
back. Standard library only, so that the user's own imports meet a clean interpreter.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import inspect
import math
import os
import random
import sys
import time
import traceback
import types
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

CHUNK = 500  # rows in a frame
FLUSH = 0.05  # seconds of results that may wait before they are handed over
TOGETHER = 32  # calls of an async function under way at once
MOST_ROWS = 200_000


Arguments = tuple[list[Any], dict[str, Any]]


class State:
    """The module, the environments under way, and the event loop that its async functions share."""

    module: Any = None
    path = ""
    folder = ""
    timeout = 10.0
    environments: dict[int, Any] = {}  # noqa: RUF012
    opened = 0
    runner: Any = None


def load(payload: dict[str, Any]) -> dict[str, Any]:
    """Import the file `path`; its constants, the names of its functions, and whether `problems` takes a split."""
    State.path, State.timeout = payload["path"], payload["timeout"]
    State.folder = os.path.dirname(State.path)
    stem = os.path.splitext(os.path.basename(State.path))[0]
    name = stem if stem.isidentifier() and stem not in {*sys.stdlib_module_names, *sys.modules} else f"task_{stem}"
    packages = [i for i, p in enumerate(sys.path) if "site-packages" in p or "dist-packages" in p]
    sys.path.insert(min(packages, default=len(sys.path)), State.folder)  # the standard library keeps its names
    spec = importlib.util.spec_from_file_location(name, State.path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    random.seed(0)  # problems() gives the same rows at every start, also where its author forgot the seed
    spec.loader.exec_module(module)
    State.module = module
    if isinstance(timeout := getattr(module, "TIMEOUT", None), int | float):
        State.timeout = float(timeout)
    constants = {}
    for key in ("NAME", "MAX_TOKENS", "MAX_TURNS", "TURN_END", "TIMEOUT"):
        if hasattr(module, key):
            constants[key] = plain(getattr(module, key), key)
    functions = [k for k, v in vars(module).items() if callable(v) and not k.startswith("_")]
    takes_split = "problems" in functions and "split" in Call(module.problems).names
    return {"constants": constants, "functions": functions, "takes_split": takes_split}


class Call:
    """A function that is called by the names of its parameters."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        parameters = inspect.signature(function).parameters.values()
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        self.first = [p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_ONLY]
        self.rest = [p for p in parameters if p.kind in named]
        self.open = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
        self.names = {p.name for p in [*self.first, *self.rest]}

    def arguments(self, values: Mapping[str, Any], extra: Mapping[str, Any] | None = None) -> Arguments:
        """What is asked for, by position and by name; `extra` only goes where it is named. `Asked` if it is lacking."""
        known = {**values, **extra} if extra else values
        for p in [*self.first, *self.rest]:
            if p.name not in known and p.default is inspect.Parameter.empty:
                near = difflib.get_close_matches(p.name, known, n=1)
                hint = f"; did you mean `{near[0]}`?" if near else ""
                raise Asked(f"asks for `{p.name}`, which no column is called (there are: {', '.join(known)}){hint}")
        first = [known.get(p.name, p.default) for p in self.first]
        rest = {p.name: known[p.name] for p in self.rest if p.name in known}
        return first, {**values, **rest} if self.open else rest

    def __call__(self, values: Mapping[str, Any], extra: Mapping[str, Any] | None = None) -> Any:
        """Call with what is asked for."""
        first, rest = self.arguments(values, extra)
        return self.function(*first, **rest)


class Asked(TypeError):
    """A function asks for an argument that there is not."""


class Refused(Exception):
    """What the user's code gave cannot be used; the text says why and what to do."""


def wait(value: Any) -> Any:
    """The result of an async function, or the value itself."""
    if not inspect.isawaitable(value):
        return value
    import asyncio  # three quarters of what it would take this process to start

    if State.runner is None:
        State.runner = asyncio.Runner()

    async def waited() -> Any:
        return await value

    return State.runner.run(waited())


def plain(value: Any, where: str) -> Any:
    """The value as text, numbers, lists and dicts; `Refused` says where something else was."""
    if value is None or isinstance(value, bool | int | float | str):
        if type(value) in (bool, int, float, str, types.NoneType):
            return value
        return next(kind(value) for kind in (bool, int, float, str) if isinstance(value, kind))
    if isinstance(value, list | tuple):
        return [plain(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, Mapping):
        if odd := [k for k in value if not isinstance(k, str)]:
            raise Refused(f"{where} has the key {odd[0]!r}; keys are strings")
        return {str(k): plain(v, f"{where}[{k!r}]") for k, v in value.items()}
    for method in ("tolist", "item"):  # arrays and their scalars
        if hasattr(value, method):
            return plain(getattr(value, method)(), where)
    raise Refused(
        f"{where} is a {type(value).__name__}; use text, numbers, True, False, None, lists and dicts of these"
    )


def rows(payload: dict[str, Any]) -> Generator[Any, None, int]:
    """The rows that `problems()` gives, in chunks; returns how many."""
    split = {"split": payload["split"]} if payload["split"] else {}
    made = wait(Call(State.module.problems)(split))
    if isinstance(made, str | bytes | Mapping) or not hasattr(made, "__iter__"):
        raise Refused(f"it returned {kind_of(made)}; return a list of rows, or yield them")
    chunk: list[Any] = []
    count, last = 0, time.monotonic()
    for row in made:
        where = f"row {count}"
        if count >= MOST_ROWS:
            raise Refused(f"it gives more than {MOST_ROWS} rows; end it, as with itertools.islice")
        if isinstance(row, str):
            row = {"prompt": row}
        if not isinstance(row, Mapping):
            raise Refused(f"{where} is {kind_of(row)}; a row is a dict, or a string that is the prompt")
        chunk.append({str(k): plain(v, f"{where}, column `{k}`,") for k, v in row.items()})
        count += 1
        if len(chunk) >= CHUNK or time.monotonic() - last > 1:
            yield chunk
            chunk, last = [], time.monotonic()
    yield chunk
    return count


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    if value is None:
        return "None"
    if isinstance(value, str):
        return f"the string {value[:30]!r}"
    article = "an" if type(value).__name__[0].lower() in "aeiou" else "a"
    return f"{article} {type(value).__name__}"


def number(value: Any) -> float | None:
    """A real number out of what a function returned, or None."""
    if isinstance(value, bool | int | float):
        return float(value)
    if hasattr(value, "item") and not isinstance(value, Mapping):
        with contextlib.suppress(Exception):
            inner = value.item()
            return float(inner) if isinstance(inner, bool | int | float) else None
    return None


def judged(value: Any) -> Any:
    """A reward: the outcome, {score: {outcome, ...}}, or {bad: what is wrong with it}."""
    if type(value) in (float, int, bool) and 0 <= value <= 1:
        return float(value)
    named = dict(value) if isinstance(value, Mapping) else {"outcome": value}
    if "outcome" not in named:
        return {"bad": f"returned a dict without `outcome` (it has {', '.join(map(str, named)) or 'nothing'})"}
    score: dict[str, float] = {}
    for name, part in named.items():
        what = f"for `{name}`" if isinstance(value, Mapping) else ""
        found = number(part)
        if found is None:
            return {"bad": f"returned {kind_of(part)} {what}".strip()}
        if not math.isfinite(found):
            return {"bad": f"returned {found} {what}".strip()}
        score[str(name)] = found
    if not 0 <= score["outcome"] <= 1:
        return {"bad": f"returned {score['outcome']:g}, which is not between 0 and 1"}
    return {"score": score}


def failure(reason: BaseException) -> dict[str, Any]:
    """What was raised, and where in the user's own files."""
    if isinstance(reason, Asked):
        return {"bad": str(reason), "asks": True}
    frames = traceback.extract_tb(reason.__traceback__)
    own = [f for f in frames if f.filename == State.path] or [f for f in frames if f.filename.startswith(State.folder)]
    place = f" (line {own[-1].lineno}: `{own[-1].line}`)" if own else ""
    text = f"{type(reason).__name__}: {reason}" if str(reason) else type(reason).__name__
    return {"error": f"{text[:500]}{place}"}


def rewards(payload: dict[str, Any]) -> Iterator[Any]:
    """Judge items [row, completion, extra] by the function; yields lists of [index, result].

    A result is a number (the outcome), {score}, {bad} (it returned what is no reward) or {error} (it raised). A
    function that asks for `completions` is called once with lists; if that fails as a whole and `one_by_one` is true,
    once for each.
    """
    call = Call(getattr(State.module, payload["function"]))
    table, items = payload["rows"], payload["items"]
    if "completions" in call.names:
        yield from _all_at_once(call, table, items, payload["one_by_one"])
        return
    plans = [_plan(call, row) for row in table]
    if inspect.iscoroutinefunction(call.function):
        for start in range(0, len(items), TOGETHER):
            part = range(start, min(start + TOGETHER, len(items)))
            results = wait(_gathered(call, [(plans[items[i][0]], items[i]) for i in part]))
            yield [[i, result] for i, result in zip(part, results, strict=True)]
        return
    ready: list[Any] = []
    last = time.monotonic()
    for index, item in enumerate(items):
        try:
            first, rest = plans[item[0]](item)
            result = judged(wait(call.function(*first, **rest)))
        except BaseException as reason:
            result = failure(reason)
        ready.append([index, result])
        now = time.monotonic()
        if now - last > FLUSH:
            yield ready
            ready, last = [], now
    yield ready


def _plan(call: Call, row: Mapping[str, Any]) -> Callable[[Any], Arguments]:
    """From an item of this row to the arguments; what all items of the row share is looked up once."""
    values = {"prompt": row.get("question"), **row}
    plain_call = not call.first and "completion" in call.names
    shared: dict[str, Any] = {}

    def arguments(item: Any) -> Arguments:
        _, text, extra = item
        if not plain_call or extra:
            return call.arguments({**values, "completion": text}, extra)
        if not shared:
            shared.update(call.arguments({**values, "completion": text})[1])
        return [], {**shared, "completion": text}

    return arguments


async def _gathered(call: Call, planned: list[Any]) -> list[Any]:
    import asyncio

    async def called(plan: Any, item: Any) -> Any:
        try:
            first, rest = plan(item)
            return judged(await call.function(*first, **rest))
        except asyncio.CancelledError:
            raise
        except BaseException as reason:  # a SystemExit must not reach the event loop
            return failure(reason)

    async def one(plan: Any, item: Any) -> Any:
        try:
            return await asyncio.wait_for(called(plan, item), State.timeout)
        except TimeoutError:
            return {
                "error": f"TimeoutError: no answer after {State.timeout:g} s; TIMEOUT = ... in the file allows more"
            }

    return await asyncio.gather(*[one(plan, item) for plan, item in planned])


def _all_at_once(call: Call, table: list[Any], items: list[Any], one_by_one: bool) -> Iterator[Any]:
    picked = [table[row] for row, _, _ in items]
    columns = list(dict.fromkeys(name for row in picked for name in row))
    values: dict[str, Any] = {name: [row.get(name) for row in picked] for name in columns}
    prompts = [row.get("prompt", row.get("question")) for row in picked]
    plural = {f"{name}s": column for name, column in values.items() if f"{name}s" not in values}
    extra = {**plural, "completions": [text for _, text, _ in items], "prompts": prompts, "prompt": prompts}
    extra["states"] = [(more or {}).get("state") for _, _, more in items]
    try:
        made = wait(call(values, extra))
        if hasattr(made, "tolist"):
            made = made.tolist()
        if isinstance(made, list | tuple) and len(made) == len(items):
            yield [[i, judged(value)] for i, value in enumerate(made)]
            return
        several = isinstance(made, list | tuple)
        what = f"{len(made)} rewards for a batch of {len(items)}" if several else f"{kind_of(made)} instead of a list"
        result = {"bad": f"returned {what}"}
    except BaseException as reason:
        result = failure(reason)
    if one_by_one and len(items) > 1:
        for i, item in enumerate(items):
            for ((_, alone),) in _all_at_once(call, table, [item], False):
                yield [[i, alone]]
    else:
        yield [[i, {**result, "all": True}] for i in range(len(items))]


def gold(payload: dict[str, Any]) -> list[Any]:
    """What `gold(**row)` gives for each row: text, a list of turns, or None."""
    call = Call(State.module.gold)
    found = [plain(wait(call(row)), "what gold() returned") for row in payload["rows"]]
    for value in found:
        turns = value if isinstance(value, list) and value else [value]
        if value is not None and not all(isinstance(turn, str) for turn in turns):
            raise Refused(f"it returned {kind_of(value)}; return the text of a right answer, a list of turns, or None")
    return found


def rewrite(payload: dict[str, Any]) -> dict[str, Any] | None:
    """What `rewrite(**row)` makes of a row, or None; it may ask for `deeper`, `seed` and the whole `row`, too."""
    row = payload["row"]
    made = wait(Call(State.module.rewrite)(row, {"row": row, "deeper": payload["deeper"], "seed": payload["seed"]}))
    if made is None:
        return None
    if isinstance(made, str):
        made = {"prompt": made}
    if not isinstance(made, Mapping):
        raise Refused(f"it returned {kind_of(made)}; return a row, or None where nothing comes of it")
    return {str(k): plain(v, f"column `{k}`") for k, v in made.items()}


def _made(row: Mapping[str, Any]) -> tuple[Any, str]:
    """The environment of a row, reset, and its first text."""
    made = wait(Call(State.module.environment)(row, {"row": row}))
    if not hasattr(made, "respond"):
        raise Refused(f"it returned {kind_of(made)}, which has no respond(text)")
    first = wait(made.reset()) if hasattr(made, "reset") else ""
    if first is not None and not isinstance(first, str):
        raise Refused(f"reset() returned {kind_of(first)}; return the first text, or None")
    return made, first or ""


def openings(payload: dict[str, Any]) -> Iterator[Any]:
    """The first text of the environment of each row, one by one."""
    for row in payload["rows"]:
        yield _made(row)[1]


def begin(row: dict[str, Any]) -> dict[str, Any]:
    """Start the environment of a row; its number and its first text."""
    made, first = _made(row)
    State.opened += 1
    State.environments[State.opened] = made
    return {"number": State.opened, "text": first}


def respond(payload: dict[str, Any]) -> dict[str, Any]:
    """Hand a turn to an environment: its answer (None: the episode is over), and its `state` if it shows one."""
    made = State.environments[payload["number"]]
    text = wait(made.respond(payload["text"]))
    if text is not None and not isinstance(text, str):
        raise Refused(f"respond() returned {kind_of(text)}; return the text that answers, or None at the end")
    state = getattr(made, "state", None)
    return {"text": text, "state": plain(state() if callable(state) else state, "the state of the environment")}


def end(numbers: list[int]) -> None:
    """Forget environments; their `close` is called if they have one."""
    for each in numbers:
        made = State.environments.pop(each, None)
        if hasattr(made, "close"):
            wait(made.close())
