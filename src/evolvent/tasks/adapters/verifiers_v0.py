"""An environment of verifiers 0.x (its "v0", gone since 0.4): `verifiers:my_env` calls `my_env.load_environment()`.

Taken by its shape, without importing verifiers: `get_dataset()` (and an evaluation set, which becomes the test split)
with rows of prompt or question, answer, info; `rubric` or a group of rubrics, with `funcs` and `weights`; in several
turns `env_response(messages, state)`, `setup_state`, `is_completed` and methods marked as stop conditions.

Reward functions are called by the names of their parameters, one with plural names for all attempts at a problem at
once. Outcome: the weighted sum over the sum of the positive weights, never below 0; so 1 is full marks by every
function. Each function is also there as shaping, under its own name. One that raises is an error of the attempt
(verifiers itself would count it as 0). Tools of the model's own call format are not handled, nor groups of
environments; both are refused.

The environment runs in this process: its state may hold any object, and reward functions want to see it.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.records import Problem
from evolvent.tasks.adapters.foreign import attribute, brief, guarded, import_module, own_signals
from evolvent.tasks.base import Attempt, Demo, Reply, Score
from evolvent.tasks.extract import final_answer
from evolvent.tasks.rows import MAX_TOKENS, Row, RowTask, key_of_row

GROUP_NAMES = {"prompts", "completions", "answers", "states", "tasks", "infos"}
MAX_TURNS = 10
LIMITS = {"max_turns_reached", "prompt_too_long", "timeout_reached", "max_total_completion_tokens_reached"}
KEPT = 8192  # finished episodes whose state is kept until they are judged


def load(rest: str) -> VerifiersTask:
    """The task of `verifiers:rest`, a module or a `.py` file with `load_environment()`."""
    name = f"verifiers:{rest}"
    if not rest:
        raise UserError("`verifiers:` names no environment; use verifiers:module, or verifiers:file.py")
    with own_signals():
        make = attribute(import_module(rest, name), "load_environment", name)
        try:
            made = make()
        except Exception as reason:
            raise UserError(f"{name}: load_environment() failed ({brief(reason)})") from reason
    return VerifiersTask(name, made)


class Message(dict[str, Any]):
    """A message that can be read as a dict and by attributes, as different releases do."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name)


class Loop:
    """An event loop in a thread of its own, so that async functions run wherever the platform is called from."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True, name="verifiers").start()

    def result(self, value: Any) -> Any:
        """What an awaitable comes to; anything else as it is."""
        if not inspect.isawaitable(value):
            return value

        async def wait() -> Any:
            return await value

        return asyncio.run_coroutine_threadsafe(wait(), self.loop).result()

    def call(self, function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
        """Call a function, sync or async, with those of `values` that it names (all of them if it takes `**`)."""
        parameters = inspect.signature(function).parameters
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            return self.result(function(**values))
        return self.result(function(**{k: v for k, v in values.items() if k in parameters}))


class VerifiersTask(RowTask):
    """The task of an environment object."""

    def __init__(self, name: str, env: Any) -> None:
        """`UserError` for an environment that cannot be taken."""
        self.env, self.loop = env, Loop()
        if getattr(env, "envs", None):
            raise UserError(f"{name} is a group of environments; name one of them, and add them as tasks with +")
        if getattr(env, "tool_defs", None) or getattr(env, "tools", None) or getattr(env, "oai_tools", None):
            raise UserError(f"{name} calls tools in the model's own format, which this adapter does not handle")
        self.functions = list(_functions(getattr(env, "rubric", None)))
        self.scale = sum(max(weight, 0.0) for _, weight, _ in self.functions)
        if not self.scale > 0:
            raise UserError(f"{name}: its rubric has no reward function with a weight above 0")
        limit = getattr(env, "max_turns", None)
        rows = _rows(name, env)
        super().__init__(name, name, rows, max_tokens=int(getattr(env, "max_tokens", None) or MAX_TOKENS))
        self.sessions: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._numbers = itertools.count()
        if hasattr(env, "env_response") and limit != 1:
            self.episode = self._episode
            self.max_turns = int(limit) if isinstance(limit, int) and limit > 0 else MAX_TURNS
        self._answers_are_gold = not hasattr(self, "episode") and self._answers_pass()

    def _answers_pass(self) -> bool:
        problems = self.listed("train")[:8]
        if not all(str(p.data.get("answer", "")).strip() for p in problems):
            return False
        scores = self.score_many([Attempt(p, str(p.data["answer"])) for p in problems])
        return all(isinstance(score, Score) and score.outcome == 1 for score in scores)

    def gold(self, problem: Problem) -> Demo | None:
        """The row's answer, where the rubric gives that full marks; None otherwise."""
        return super().gold(problem) if self._answers_are_gold else None

    def state(self, problem: Problem) -> dict[str, Any]:
        """The state that an episode starts with."""
        data = deepcopy(dict(problem.data))
        prompt = [Message(role=m.role, content=m.content) for m in problem.prompt]
        info = data.get("info") or {}
        task = data.get("task") or "default"
        common = {
            "prompt": prompt,
            "answer": data.get("answer", ""),
            "info": info,
            "example_id": problem.key,
            "task": task,
        }
        return {
            **data,
            **common,
            "input": {**data, **common},
            "completion": [],
            "trajectory": [],
            "turn": 0,
            "trajectory_id": problem.key,
            "model": "policy",
            "is_completed": False,
            "is_truncated": False,
            "stop_condition": None,
            "final_env_response": None,
            "error": None,
            "reward": None,
            "metrics": None,
        }

    def _episode(self, problem: Problem) -> VerifiersEpisode:
        return VerifiersEpisode(self, problem)

    def remember(self, state: dict[str, Any]) -> str:
        """Keep a state until it is judged; its name."""
        name = f"session {next(self._numbers)}"
        self.sessions[name] = state
        while len(self.sessions) > KEPT:
            self.sessions.popitem(last=False)
        return name

    def _judged_state(self, attempt: Attempt) -> dict[str, Any]:
        name = attempt.info.get("verifiers")
        if name is not None and name not in self.sessions:
            raise VerifierError(f"{self.name}: the state of this episode is gone; judge it in the run that made it")
        if name is not None:
            state = self.sessions[name]
        elif hasattr(self, "episode"):
            state = VerifiersEpisode(self, attempt.problem).state
        else:
            state = self.state(attempt.problem)
        if last_turn(state) != attempt.completion:  # a turn that was cut never reached respond()
            add_turn(state, attempt.completion)
        return state

    def score(self, problem: Problem, completion: str) -> Score:
        """The verdict on one completion."""
        (result,) = self.score_many([Attempt(problem, completion)])
        if isinstance(result, VerifierError):
            raise result
        return result

    def score_many(self, attempts: Sequence[Attempt]) -> list[Score | VerifierError]:
        """Verdicts, problem by problem, so that functions of a whole group see the group."""
        groups: dict[str, list[int]] = {}
        for i, attempt in enumerate(attempts):
            groups.setdefault(attempt.problem.key, []).append(i)
        results: dict[int, Score | VerifierError] = {}
        for places in groups.values():
            states: dict[int, dict[str, Any]] = {}
            for i in places:
                try:
                    states[i] = self._judged_state(attempts[i])
                except VerifierError as reason:
                    results[i] = reason
            if states:
                results |= zip(states, self._judge(list(states.values())), strict=True)
        return [results[i] for i in range(len(attempts))]

    def _judge(self, states: Sequence[dict[str, Any]]) -> list[Score | VerifierError]:
        totals, named = [0.0] * len(states), [dict[str, float]() for _ in states]
        errors: dict[int, VerifierError] = {}
        for function, weight, objects in self.functions:
            name = getattr(function, "__name__", "reward")
            for i, value in enumerate(self._values(function, name, objects, states)):
                if isinstance(value, VerifierError):
                    errors.setdefault(i, value)
                    continue
                totals[i] += weight * value
                named[i][name] = value
        scores: list[Score | VerifierError] = []
        for i, (total, state) in enumerate(zip(totals, states, strict=True)):
            outcome = max(total / self.scale, 0.0)
            if i in errors:
                scores.append(errors[i])
            elif outcome > 1 + 1e-6:
                what = f"the rewards add up to {total:g}, above the sum of the weights, {self.scale:g}"
                scores.append(VerifierError(f"{self.name}: {what}; a function should return at most 1"))
            else:
                scores.append(Score(min(outcome, 1.0), final_answer(last_turn(state) or ""), named[i]))
        return scores

    def _values(
        self, function: Callable[..., Any], name: str, objects: Mapping[str, Any], states: Sequence[dict[str, Any]]
    ) -> list[float | VerifierError]:
        """What a reward function gives for each state."""
        if is_group_function(function):
            columns = {f"{k}s": [s[k] for s in states] for k in ("prompt", "completion", "answer", "task", "info")}
            found = self._number(function, name, {**objects, **columns, "states": list(states)}, len(states))
            return found if isinstance(found, list) else [found] * len(states)
        values: list[float | VerifierError] = []
        for state in states:
            row = {k: v for k, v in state["input"].items() if k not in objects}
            own = {**row, **objects, "completion": state["completion"], "state": state}
            found = self._number(function, name, own, None)
            values.append(found[0] if isinstance(found, list) else found)
        return values

    def _number(
        self, function: Callable[..., Any], name: str, values: Mapping[str, Any], count: int | None
    ) -> list[float | VerifierError] | VerifierError:
        try:
            with guarded(f"{self.name}: {name}() raised"):
                made = self.loop.call(function, values)
                found = [float(made)] if count is None else [float(x) for x in made]
        except VerifierError as reason:
            return reason
        if count is not None and len(found) != count:
            return VerifierError(f"{self.name}: {name}() gave {len(found)} rewards for a group of {count}")
        wrong = VerifierError(f"{self.name}: {name}() gave a reward that is no finite number")
        return [value if math.isfinite(value) else wrong for value in found]


class VerifiersEpisode:
    """One episode. The state stays with the task, under a name that goes into the trajectory's info."""

    def __init__(self, task: VerifiersTask, problem: Problem) -> None:
        self.task, self.state = task, task.state(problem)
        if hasattr(task.env, "setup_state"):
            with guarded(f"{task.name}: setup_state() failed"):
                made = task.loop.call(task.env.setup_state, {"state": self.state})
                self.state = made if isinstance(made, dict) else self.state
        self.name = task.remember(self.state)

    def respond(self, turn: str) -> Reply:
        """The environment's messages, or the end of the episode."""
        state, note = self.state, {"verifiers": self.name}
        with guarded(f"{self.task.name}: the environment failed in turn {len(state['trajectory']) + 1}"):
            add_turn(state, turn)
            if self._completed():
                return Reply("", True, 1, note, truncated=state.get("stop_condition") in LIMITS)
            messages = [*state["prompt"], *state["completion"]]
            made = self.task.loop.call(self.task.env.env_response, {"messages": messages, "state": state})
            if isinstance(made, tuple):
                made, other = made
                state.update(other)
            final = state.get("final_env_response")
            replies = as_messages(made if final is None else final)
            state["completion"].extend(replies)
            done = final is not None or self._completed(after_reply=True)
        return Reply("" if done else "\n".join(str(m["content"]) for m in replies), done, 1, note)

    def _completed(self, after_reply: bool = False) -> bool:
        """By `is_completed(messages, state)` or `is_completed(state)`; without it, by the marked stop conditions.

        Older releases ask again after the environment has answered, those with stop conditions do not.
        """
        env, state, loop = self.task.env, self.state, self.task.loop
        if state.get("error") is not None:
            raise VerifierError(f"{self.task.name}: {brief(state['error'])}")
        values = {"messages": [*state["prompt"], *state["completion"]], "state": state}
        if hasattr(env, "is_completed"):
            if after_reply and "messages" not in inspect.signature(env.is_completed).parameters:
                return False
            return bool(loop.call(env.is_completed, values))
        found = [] if after_reply else inspect.getmembers(env, lambda m: inspect.ismethod(m) and hasattr(m, "stop"))
        return any(bool(loop.call(condition, values)) for _, condition in found)


def add_turn(state: dict[str, Any], text: str) -> None:
    """Add what the policy wrote to the state."""
    said = Message(role="assistant", content=text)
    prompt = [*state["prompt"], *state["completion"]]
    step = {"prompt": prompt, "completion": [said], "response": None, "tokens": None, "reward": None, "advantage": None}
    state["trajectory"].append({**step, "is_truncated": False, "trajectory_id": state["trajectory_id"], "extras": {}})
    state["completion"].append(said)
    state["turn"] = len(state["trajectory"])


def last_turn(state: Mapping[str, Any]) -> str | None:
    """What the policy wrote last; None if it has written nothing."""
    return next((m["content"] for m in reversed(state["completion"]) if m["role"] == "assistant"), None)


def as_messages(made: Any) -> list[Message]:
    """What an environment answers as messages: text, one message, or several, dicts or objects."""
    if isinstance(made, str):
        return [Message(role="user", content=made)]
    if isinstance(made, Mapping) or hasattr(made, "role"):
        made = [made]
    found = []
    for m in made or ():
        role, content = (m.get("role"), m.get("content")) if isinstance(m, Mapping) else (m.role, m.content)
        found.append(Message(role=str(role or "user"), content="" if content is None else content))
    return found


def is_group_function(function: Callable[..., Any]) -> bool:
    """Whether a reward function judges all attempts at a problem at once: plural parameters, or a list as result."""
    signature = inspect.signature(function)
    returned = str(getattr(signature.return_annotation, "__name__", signature.return_annotation))
    return bool(GROUP_NAMES & set(signature.parameters)) or returned.split("[")[0] in ("list", "List")


def _functions(rubric: Any) -> Iterable[tuple[Callable[..., Any], float, dict[str, Any]]]:
    """Reward functions with their weights, and the objects that the rubric hands to them, group by group."""
    objects = dict(getattr(rubric, "class_objects", None) or {})
    if getattr(rubric, "parser", None) is not None:
        objects.setdefault("parser", rubric.parser)
    functions = next(
        (f for f in (getattr(rubric, n, None) for n in ("funcs", "reward_funcs")) if isinstance(f, list)), []
    )
    weights = next((w for w in (getattr(rubric, n, None) for n in ("weights", "reward_weights")) if w), None)
    for i, function in enumerate(functions):
        yield function, float(weights[i]) if weights else 1.0, objects
    for inner in getattr(rubric, "rubrics", None) or ():
        yield from _functions(inner)


def _rows(name: str, env: Any) -> list[Row]:
    """Training rows and, if the environment has a set for evaluation, test rows. Repeats are left out: they are not
    the user's to remove."""
    rows: list[Row] = []
    seen: set[str] = set()
    evaluation = None
    try:
        if getattr(env, "eval_dataset", None) is not None or getattr(env, "eval_dataset_source", None) is not None:
            evaluation = env.get_eval_dataset()
        training = env.get_dataset()
    except Exception as reason:
        raise UserError(f"{name}: its data set cannot be read ({brief(reason)})") from reason
    for split, dataset in (("test", evaluation), ("train", training)):
        for i, row in enumerate(dataset if dataset is not None else ()):
            data = {
                k: v for k, v in dict(row).items() if k not in ("example_id", "split", "category") and v is not None
            }
            if isinstance(data.get("info"), str):
                with guarded(f"{name}: info of row {i}"):
                    data["info"] = json.loads(data["info"])
            data = json.loads(json.dumps(data, default=str))
            if "prompt" not in data:
                system = getattr(env, "system_prompt", None)
                opening = [{"role": "system", "content": system}] if system else []
                shots = [dict(m) for m in getattr(env, "few_shot", None) or ()]
                data["prompt"] = [*opening, *shots, {"role": "user", "content": str(data.get("question", ""))}]
            elif isinstance(data["prompt"], list):
                data["prompt"] = [{"role": m["role"], "content": m["content"]} for m in data["prompt"]]
            mark = key_of_row({"prompt": data["prompt"]})
            if mark not in seen:
                seen.add(mark)
                rows.append(Row(f"row {i}", {**data, "split": split} if evaluation is not None else data))
    return rows
