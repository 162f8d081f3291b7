"""What runs inside the process of a file that evaluates texts: import it, find its evaluator, evaluate.

The program of a `guard.process.Worker`, beside `tasks.user_program`. Standard library only.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import sys
import tempfile
import time
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

TASKS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SERVICES = {  # packages whose errors are those of a service, not of what was sent to it
    "aiohttp", "anthropic", "botocore", "google", "httpcore", "httpx", "litellm", "openai", "requests", "urllib3",
}  # fmt: skip
SETS = {"train": "trainset", "gate": "valset", "test": "testset"}


def beside(name: str) -> Any:
    """A module of the platform that needs nothing but the standard library, by the name of its file."""
    spec = importlib.util.spec_from_file_location(f"evolvent_{name}", os.path.join(TASKS, f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


user = beside("user_program")
returned = beside("returned")


A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


@dataclass
class EvaluationBatch(Generic[A, B]):
    """Stands in for GEPA's, where that is not installed: what an adapter gives back, example by example."""

    outputs: list[Any]
    scores: list[float]
    trajectories: list[Any] | None = None
    objective_scores: list[dict[str, float]] | None = None
    num_metric_calls: int | None = None


class GEPAAdapter(Generic[A, B, C]):
    """Stands in for GEPA's protocol, which adapters may inherit from."""

    propose_new_texts = None


NAMES = {  # of gepa.core.adapter
    "EvaluationBatch": EvaluationBatch,
    "GEPAAdapter": GEPAAdapter,
    "Candidate": dict[str, str],
    **dict.fromkeys(("DataInst", "Trajectory", "RolloutOutput", "ProposalFn", "BatchEvaluateFn"), Any),
}


class State:
    """What evaluates, how it is called, and the examples of each split."""

    adapter: Any = None
    takes = ""  # of a function: texts, path or example
    examples: dict[str, list[Any]] = {}  # noqa: RUF012


def load(payload: dict[str, Any]) -> dict[str, Any]:
    """Import the file `path`; what it evaluates with, its texts and goal, and how many examples it has by split."""
    stand_in()
    about = user.load(payload)
    module = user.State.module
    State.examples = {split: _examples(module, name) for split, name in SETS.items()}
    own_tests = bool(State.examples["test"])
    State.examples["test"] = State.examples["test"] or State.examples["gate"]
    State.adapter = _adapter(module)
    if State.adapter is None:
        State.takes = _takes(getattr(module, "evaluate", None))
    if State.adapter is not None and not State.examples["train"]:
        raise user.Refused("it has an adapter, and no examples; add trainset = [...], and valset = [...] to choose by")
    if State.takes == "example" and not State.examples["train"]:
        raise user.Refused("evaluate asks for an example, and there is none; add trainset = [...]")
    goal = getattr(module, "GOAL", None) or inspect.getdoc(module) or ""
    return {
        **about,
        "reads": "path" if State.takes == "path" else "texts",
        "sizes": {split: len(rows) for split, rows in State.examples.items()} if _by_example() else {"train": 1},
        "seed": user.plain(getattr(module, "seed_candidate", None), "seed_candidate"),
        "tested": own_tests or not State.examples["gate"],
        "goal": goal if isinstance(goal, str) else "",
    }


def _by_example() -> bool:
    return State.adapter is not None or State.takes == "example"


def stand_in() -> None:
    """Modules that files written for GEPA or OpenEvolve import, where these are not installed."""
    if importlib.util.find_spec("gepa") is None:
        for name in ("gepa", "gepa.core", "gepa.core.adapter"):
            sys.modules[name] = module = types.ModuleType(name)
            module.__dict__.update(NAMES, __path__=[])
    if importlib.util.find_spec("openevolve") is None:
        result = beside("evaluation_result")
        for name in ("openevolve", "openevolve.evaluation_result"):
            sys.modules[name] = module = types.ModuleType(name)
            module.__dict__.update(EvaluationResult=result.EvaluationResult, __path__=[])


def _examples(module: Any, name: str) -> list[Any]:
    found = getattr(module, name, None)
    rows = found() if callable(found) else found
    if rows is None:
        return []
    if isinstance(rows, str | bytes | Mapping) or not hasattr(rows, "__iter__"):
        raise user.Refused(f"{name} is {user.kind_of(rows)}; make it a list of examples, or a function that gives one")
    return list(rows)


def _adapter(module: Any) -> Any:
    """The object `adapter`, or what a function or class of that name makes; else the only class that is an adapter."""
    found = getattr(module, "adapter", None)
    if found is None and not callable(_of(module, "evaluate")):
        made = [
            thing
            for thing in vars(module).values()
            if isinstance(thing, type) and thing.__module__ == module.__name__ and callable(_of(thing, "evaluate"))
        ]
        made = [one for one in made if not any(one in other.__mro__[1:] for other in made)]
        if len(made) > 1:
            raise user.Refused(f"it has {len(made)} classes with evaluate(); add adapter = {made[-1].__name__}(...)")
        found = made[0] if made else None
    if isinstance(found, type) or inspect.isfunction(found):
        try:
            found = found()
        except TypeError as reason:
            raise user.Refused(f"its adapter cannot be made without arguments ({reason}); add adapter = ...") from None
    if found is not None and not callable(_of(found, "evaluate")):
        raise user.Refused(f"adapter is {user.kind_of(found)} without evaluate(batch, candidate, capture_traces)")
    return found


def _of(thing: Any, name: str) -> Any:
    return getattr(thing, name, None)


def _takes(function: Any) -> str:
    """How a function `evaluate` is called: with the path of a file, with the texts, or with texts and an example."""
    if not callable(function):
        raise user.Refused(
            "it has nothing that evaluates; add def evaluate(texts): ..., or def evaluate(texts, example): ... with "
            "trainset = [...], or a GEPA adapter"
        )
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    given = [p for p in parameters if p.kind in kinds]
    needed = [p for p in given if p.default is inspect.Parameter.empty]
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is inspect.Parameter.empty]
    if not given or len(needed) > 2 or named:
        raise user.Refused("evaluate should take the texts, or the texts and an example, by their places")
    if re.search(r"(^|_)(path|file|filename)$", given[0].name):
        return "path"
    return "example" if len(needed) == 2 or (len(given) > 1 and State.examples["train"]) else "texts"


def evaluate(payload: dict[str, Any]) -> dict[str, Any]:
    """What the evaluator says of the named `texts`, on the examples `places` of a `split`.

    {"results": one for each, or one in all, "records": what an adapter has to say by text, "cpu": seconds}, or
    {"failed": why the texts are invalid}.

    What an adapter raises is its own failure, as GEPA's contract says; what a function raises is the texts', unless a
    service could not be reached.
    """
    begun, texts = time.process_time(), dict(payload["texts"])
    rows = [State.examples[payload["split"]][i] for i in payload["places"]] if _by_example() else []
    if State.adapter is not None:
        made = _by_adapter(texts, rows, payload["traces"])
    else:
        try:
            made = {"results": _by_function(texts, rows, payload["file"])}
        except Exception as reason:
            if elsewhere(reason):
                raise
            made = {"failed": user.failure(reason).get("error", str(reason))}
    return {**made, "cpu": time.process_time() - begun}


def elsewhere(reason: BaseException) -> bool:
    """Whether a failure is that of the network or of a service."""
    return isinstance(reason, ConnectionError | TimeoutError) or type(reason).__module__.partition(".")[0] in SERVICES


def _by_function(texts: dict[str, str], rows: list[Any], file: str) -> list[Any]:
    function = user.State.module.evaluate
    if State.takes == "example":
        if inspect.iscoroutinefunction(function):
            return [_result(value) for value in user.wait(_together(function, texts, rows))]
        return [_result(user.wait(function(dict(texts), row))) for row in rows]
    if State.takes == "texts":
        return [_result(user.wait(function(texts)))]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, file)
        with open(path, "w", encoding="utf-8") as out:
            out.write(next(iter(texts.values())))
        return [_result(user.wait(function(path)))]


async def _together(function: Any, texts: dict[str, str], rows: list[Any]) -> list[Any]:
    """What an async function says of the examples, `user.TOGETHER` of them under way at once."""
    import asyncio

    gate = asyncio.Semaphore(user.TOGETHER)

    async def one(row: Any) -> Any:
        async with gate:
            return await function(dict(texts), row)

    return await asyncio.gather(*(one(row) for row in rows))


def _result(value: Any) -> Any:
    """A number, or a dict of numbers and texts, as data."""
    if isinstance(value, tuple) and len(value) == 2:  # a score and what there is to say, as GEPA's evaluators give
        score, told = value
        scores = told.get("scores") if isinstance(told, Mapping) else None
        value = {**(scores if isinstance(scores, Mapping) else {}), "score": score, "feedback": _lines(told)}
    try:
        found = user.plain(returned.data(value), "what evaluate() returned")
    except user.Refused as reason:
        raise ValueError(str(reason)) from None
    if isinstance(found, dict):
        return {k: float(v) if isinstance(v, bool) else v for k, v in found.items()}
    return float(found) if isinstance(found, bool) else found


def _lines(told: Any) -> str:
    """What there is to say, as text: a line for each name where it has names."""
    if isinstance(told, Mapping):
        return "\n".join(f"{key}: {value}" for key, value in told.items())
    return told if isinstance(told, str) else str(told)


def _by_adapter(texts: dict[str, str], rows: list[Any], traces: bool) -> dict[str, Any]:
    batch = State.adapter.evaluate(list(rows), dict(texts), capture_traces=traces)
    scores = [user.number(x) for x in batch.scores]
    if len(scores) != len(rows) or None in scores:
        raise user.Refused(f"the adapter gave {len(scores)} scores for {len(rows)} examples; each is a number")
    results: list[Any] = [{"score": x} for x in scores]
    for result, named in zip(results, getattr(batch, "objective_scores", None) or [], strict=False):
        result.update({k: v for k, v in user.plain(dict(named), "objective_scores").items() if k != "score"})
    if not traces or not callable(_of(State.adapter, "make_reflective_dataset")):
        return {"results": results}
    return {"results": results, "records": {name: _reflected(name, texts, batch) for name in texts}}


def _reflected(name: str, texts: dict[str, str], batch: Any) -> list[dict[str, str]]:
    """What an adapter has to say about one text; a failure to say it costs no scores, and is told in its place."""
    try:
        made = State.adapter.make_reflective_dataset(dict(texts), batch, [name]) or {}
        several = (made.get(name) if isinstance(made, Mapping) else made) or []
        return [_words(one) for one in ([several] if isinstance(several, str | Mapping) else several)]
    except Exception as reason:
        return [{"nothing to reflect on": user.failure(reason).get("error", str(reason))}]


def _words(record: Any) -> dict[str, str]:
    """A record of a reflective data set: what it says, by heading."""
    if not isinstance(record, Mapping):
        return {"": str(record)}
    return {str(key): value if isinstance(value, str) else str(value) for key, value in record.items()}
