"""Reading the replies of OpenAI-compatible services, chat and completions alike, without trusting their shape."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import numpy as np

from evolvent.core.secrets import redact
from evolvent.core.untrusted import read_json

CHARACTERS_PER_TOKEN = 4  # for estimates, where a service does not report its usage
LONGEST_PAUSE = 600.0  # seconds that a Retry-After is obeyed for

Pairs = list[tuple[bytes, float]]  # text and log-prob of each token


class Choice(NamedTuple):
    """A reply's first choice. `finish` is stop or length; `stopped_by` the stop string that ended it, where said."""

    text: str
    finish: str
    stopped_by: str
    pairs: Pairs


def read_choice(reply: Mapping[str, Any], api: str) -> Choice:
    """The first choice of a reply; `ValueError` says what is wrong with it.

    A refusal in words is an ordinary answer. An empty text is one only where the length limit cut it.
    """
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ValueError("the reply has no choices")
    choice = choices[0]
    finish = choice.get("finish_reason")
    if finish == "content_filter":
        raise ValueError("the service's content filter withheld the reply")
    if api == "chat":
        message = choice.get("message")
        if not isinstance(message, dict):
            raise ValueError("the reply's choice has no message")
        text = message.get("content")
        if text is None:
            text = message.get("refusal") or ("" if finish == "length" else None)
    else:
        text = choice.get("text")
    called = tools_called(choice.get("message"))
    if called and (finish == "tool_calls" or not text):
        raise ValueError(
            f"the reply calls a tool ({called}), though none was offered; take a model, or a setting of its service, "
            "that answers in text"
        )
    if not isinstance(text, str):
        raise ValueError("the reply has no text" if text is None else f"the reply's text is a {type(text).__name__}")
    if finish not in ("stop", "length"):
        raise ValueError(f"the reply's finish_reason is {finish!r}, not stop or length")
    text = text.encode("utf-8", "replace").decode()  # half a character, as JSON can hold, can be neither kept nor sent
    stopped_by = choice.get("stop_reason", choice.get("matched_stop"))
    return Choice(text, finish, stopped_by if isinstance(stopped_by, str) else "", read_pairs(choice.get("logprobs")))


def tools_called(message: Any) -> str:
    """The names of the tools that a message of the chat API calls, as far as it says them."""
    found = message.get("tool_calls") if isinstance(message, dict) else None
    functions = [call.get("function") for call in found if isinstance(call, dict)] if isinstance(found, list) else []
    named = [str(f["name"]) for f in functions if isinstance(f, dict) and f.get("name")]
    return short(", ".join(named), 80) if named else "unnamed" if found else ""


def read_usage(reply: Mapping[str, Any]) -> int | None:
    """Completion tokens, where the reply says."""
    said = reply.get("usage")
    count = said.get("completion_tokens") if isinstance(said, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else None


def read_pairs(found: Any) -> Pairs:
    """Tokens and log-probs from either API's form; empty if they are missing or malformed."""
    try:
        if "content" in found:
            return [
                (bytes(entry["bytes"]) if entry.get("bytes") else entry["token"].encode(), float(entry["logprob"]))
                for entry in found["content"]
            ]
        pairs = zip(found["tokens"], found["token_logprobs"], strict=True)
        return [(token.encode(), float(logprob)) for token, logprob in pairs]
    except (AttributeError, KeyError, TypeError, ValueError):
        return []


def spread(text: str, pairs: Pairs) -> np.ndarray | None:
    """Log-probs of tokens at the first characters of their text, float32 [characters]; None if they do not fit it.

    Tokens after the text (the end of the turn, or what was cut off) are left out; a token that is only a part of a
    character adds to that character.
    """
    made = np.zeros(len(text), np.float32)
    whole = text.encode("utf-8", "surrogatepass")
    owner = np.repeat(np.arange(len(text)), [len(c.encode("utf-8", "surrogatepass")) for c in text])
    at = 0
    for token, logprob in pairs:
        if at >= len(whole):
            break
        if not whole.startswith(token[: len(whole) - at], at):
            return None
        made[owner[at]] += logprob
        at += len(token)
    return made if at >= len(whole) else None


# --- usage, errors and waiting ---


def counts(reply: Mapping[str, Any] | None) -> tuple[int, int] | None:
    """Prompt and completion tokens, where a reply says both."""
    usage = (reply or {}).get("usage")
    found = [usage.get(n) if isinstance(usage, dict) else None for n in ("prompt_tokens", "completion_tokens")]
    whole = [n for n in found if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
    return (whole[0], whole[1]) if len(whole) == 2 else None


def guess(text: str) -> int:
    """Roughly how many tokens a text has."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def body_text(body: Mapping[str, Any]) -> str:
    """The text that a request makes the model read."""
    return str(body.get("prompt", "")) + "".join(str(m["content"]) for m in body.get("messages", ()))


def reply_text(reply: Mapping[str, Any] | None) -> str:
    """Whatever text a reply holds, well-formed or not."""
    choices = (reply or {}).get("choices")
    found = []
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, dict):
            message = choice.get("message")
            found += [choice.get("text"), message.get("content") if isinstance(message, dict) else None]
    return "".join(t for t in found if isinstance(t, str))


def short(text: str, size: int = 200) -> str:
    """A text on one line, cut; secrets go first, as half a key would no longer be known for one."""
    text = redact(" ".join(text.split()))
    return (text[:size] + "...") if len(text) > size else text or "(empty)"


def message(text: str) -> str:
    """What an error reply says."""
    try:
        error = read_json(text)["error"]
        return short(str(error["message"] if isinstance(error, dict) else error))
    except (ValueError, KeyError, TypeError):
        return short(text)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a reply asks to wait, from Retry-After in seconds or as a date."""
    text = headers.get("retry-after")
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            at = parsedate_to_datetime(text)
        except ValueError:
            return None
        seconds = (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), LONGEST_PAUSE) if seconds == seconds else None
