"""Tool calls in the text of a turn, in the forms that chat models are trained to write."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from evolvent.core.untrusted import read_json

TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)  # Hermes, Qwen, and many after them
FUNCTION = re.compile(r"<function=([^>\s]+)>(.*?)(?:</function>|\Z)", re.DOTALL)  # Llama 3.1, Qwen3-Coder
PARAMETER = re.compile(r"<parameter=([^>\s]+)>\n?(.*?)\n?(?:</parameter>|\Z)", re.DOTALL)
MISTRAL = "[TOOL_CALLS]"
NAMED = re.compile(
    r"\s*([\w.-]+)\s*(?:\[CALL_ID\][\w-]*)?(?:\[ARGS\])?\s*(?=\{)"
)  # Mistral since 2025: name[ARGS]{...}
FENCE = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)


class Call(NamedTuple):
    """One call. `error` says what is wrong with one that cannot be read; it then has no name."""

    name: str
    arguments: dict[str, Any]
    error: str = ""


def parse_calls(turn: str) -> list[Call]:
    """All calls of a turn, in order; none of those that the model only thought about before `</think>`."""
    text = turn.rpartition("</think>")[2]
    if tagged := TAGGED.findall(text):
        return [call for body in tagged for call in _tagged(body)]
    if MISTRAL in text:
        return _mistral(text.partition(MISTRAL)[2].strip())
    if functions := FUNCTION.findall(text):
        return [_function(name, body) for name, body in functions]
    return _whole(text.replace("<|python_tag|>", "").strip())


def _tagged(body: str) -> list[Call]:
    functions = FUNCTION.findall(body)
    return [_function(name, inner) for name, inner in functions] if functions else _json(body)


def _function(name: str, body: str) -> Call:
    parameters = PARAMETER.findall(body)
    if parameters or not body.strip():
        return Call(name, {key: _value(text) for key, text in parameters})
    return _arguments(name, body)


def _value(text: str) -> Any:
    """A parameter that stands alone: JSON where it is that, else the text."""
    try:
        return read_json(text)
    except ValueError:
        return text


def _mistral(text: str) -> list[Call]:
    if not NAMED.match(text):
        return _json(text)
    calls: list[Call] = []
    decoder = json.JSONDecoder()
    while match := NAMED.match(text):
        try:
            _, end = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError) as reason:
            return [*calls, Call("", {}, f"the call is no valid JSON ({reason})")]
        calls.append(_arguments(match[1], text[match.end() : end]))
        text = text[end:].removeprefix(MISTRAL)
    return calls


def _whole(text: str) -> list[Call]:
    """A turn that is nothing but calls in JSON; other JSON is an answer and no call."""
    fenced = FENCE.fullmatch(text)
    try:
        found = read_json(fenced[1] if fenced else text)
    except ValueError:
        return []
    entries = found if isinstance(found, list) else [found]
    called = all(isinstance(e, dict) and "name" in e and ("arguments" in e or "parameters" in e) for e in entries)
    return _read(found) if entries and called else []


def _json(body: str) -> list[Call]:
    try:
        return _read(read_json(body))
    except ValueError as reason:
        return [Call("", {}, f"the call is no valid JSON ({reason})")]


def _read(found: Any) -> list[Call]:
    """Calls from parsed JSON: one, or a list of them."""
    calls: list[Call] = []
    for entry in found if isinstance(found, list) else [found]:
        inner = entry.get("function", entry) if isinstance(entry, dict) else None
        if isinstance(inner, str):  # {"function": "name", "arguments": ...}
            inner = entry | {"name": inner}
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
            calls.append(Call("", {}, "the call has no name"))
        else:
            calls.append(_arguments(inner["name"], inner.get("arguments", inner.get("parameters"))))
    return calls


def _arguments(name: str, found: Any) -> Call:
    """A call with arguments as an object, or as the JSON text of one."""
    if isinstance(found, str):
        try:
            found = read_json(found)
        except ValueError as reason:
            return Call("", {}, f"the arguments of {name} are no valid JSON ({reason})")
    if not isinstance(found, dict | None):
        return Call("", {}, f"the arguments of {name} are no JSON object")
    return Call(name, found or {})
