"""Replies that come as server-sent events, asked for or not, joined into the reply that they would be in one piece."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evolvent.core.untrusted import read_json
from evolvent.engine.reply import message, reply_text

DONE = "[DONE]"
JOINED = {"index", "delta", "text", "logprobs"}  # of a choice; of anything else the last value counts


class Broken(ValueError):
    """A stream that ended before its reply did. `said` is the JSON of what came."""

    def __init__(self, why: str, said: str) -> None:
        super().__init__(why)
        self.said = said


def is_stream(headers: Mapping[str, str], text: str) -> bool:
    """Whether a reply is a stream of events. There are services that call any reply one, also a JSON object."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "text/event-stream" and not text.lstrip().startswith("{")


def whole(text: str) -> tuple[int, str]:
    """Status and JSON of the reply that a stream holds; `Broken` for one that does not come to its end.

    An error is an error reply if it comes first; after some text it breaks off a reply that is paid for.
    """
    chunks: list[dict[str, Any]] = []
    error, done = None, False
    for data in events(text):
        if done := data.strip() == DONE:
            break
        try:
            chunk = read_json(data)
        except ValueError:  # what comes after it cannot be trusted to be all
            break
        if isinstance(chunk, dict):
            if error := chunk.get("error"):
                break
            chunks.append(chunk)
    reply = join(chunks)
    if error:
        told = json.dumps({"error": error})
        if not reply_text(reply):
            return status_of(error), told
        raise Broken(f"the stream breaks off with status {status_of(error)}: {message(told)}", json.dumps(reply))
    if not done and not all(c.get("finish_reason") for c in reply["choices"] or [{}]):
        raise Broken("the stream breaks off before the end of the reply", json.dumps(reply))
    return 200, json.dumps(reply)


def events(text: str) -> Iterator[str]:
    """The data of each event that has some. Other fields and comments are left out.

    WHATWG, HTML Living Standard, 9.2.6; unlike there, a last event counts without an empty line after it, as services
    forget it.
    """
    data: list[str] = []
    for line in [*re.split("\r\n|\n|\r", text.removeprefix("\ufeff")), ""]:  # `splitlines` knows more ends than these
        name, _, value = line.partition(":")
        if name == "data":
            data.append(value.removeprefix(" "))
        elif not line:
            if any(data):
                yield "\n".join(data)
            data = []


def join(chunks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One reply, with usage from the last chunk that has it. Of tool calls only the names are kept."""
    reply: dict[str, Any] = {}
    parts: dict[int, list[Mapping[str, Any]]] = {}
    for chunk in chunks:
        reply |= {k: v for k, v in chunk.items() if k != "choices" and v}
        found = chunk.get("choices")
        for part in found if isinstance(found, list) else []:
            if isinstance(part, dict):
                index = part.get("index")
                parts.setdefault(index if isinstance(index, int) else 0, []).append(part)
    if isinstance(kind := reply.get("object"), str):
        reply["object"] = kind.removesuffix(".chunk")
    return reply | {"choices": [join_choice(i, parts[i]) for i in sorted(parts)]}


def join_choice(index: int, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One choice, in the form of its API."""
    made: dict[str, Any] = {"index": index, "finish_reason": None}
    for part in parts:
        made |= {k: v for k, v in part.items() if k not in JOINED and v}
    deltas = [p["delta"] for p in parts if isinstance(p.get("delta"), dict)]
    if deltas:
        content, refusal = (join_text(deltas, name) for name in ("content", "refusal"))
        role = next((d["role"] for d in deltas if d.get("role")), "assistant")
        # a stream opens with an empty content before it refuses; a reply in one piece has none then
        made["message"] = {"role": role, "content": content or (None if refusal else content), "refusal": refusal}
        if calls := [call for d in deltas for call in named_calls(d.get("tool_calls"))]:
            made["message"]["tool_calls"] = calls
    else:
        made["text"] = join_text(parts, "text")
    return made | {"logprobs": join_logprobs(parts)}


def named_calls(found: Any) -> list[dict[str, Any]]:
    """The parts of tool calls that say which function is called: the first of each."""
    calls = [call for call in found if isinstance(call, dict)] if isinstance(found, list) else []
    return [call for call in calls if isinstance(f := call.get("function"), dict) and f.get("name")]


def join_text(parts: Sequence[Mapping[str, Any]], name: str) -> Any:
    """The texts under a name, one after the other; None if there are none, the first value that is no text if any."""
    found = [p[name] for p in parts if p.get(name) is not None]
    odd = [value for value in found if not isinstance(value, str)]
    return odd[0] if odd else "".join(found) if found else None


def join_logprobs(parts: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]] | None:
    """Log-probs in the form of either API: lists of one item a token."""
    made: dict[str, list[Any]] = {}
    for part in parts:
        found = part.get("logprobs")
        for name, items in found.items() if isinstance(found, dict) else ():
            if isinstance(items, list):
                made.setdefault(name, []).extend(items)
    return made or None


def status_of(error: Any) -> int:
    """The HTTP status that an error object names as its code; that of a service that fails where it names none."""
    code = str(error.get("code")) if isinstance(error, dict) else ""
    return int(code) if re.fullmatch("[45][0-9][0-9]", code) else 500
