"""Reading the replies of OpenAI-compatible services, chat and completions alike, without trusting their shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

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
    if not isinstance(text, str):
        raise ValueError("the reply has no text" if text is None else f"the reply's text is a {type(text).__name__}")
    if finish not in ("stop", "length"):
        raise ValueError(f"the reply's finish_reason is {finish!r}, not stop or length")
    stopped_by = choice.get("stop_reason", choice.get("matched_stop"))
    return Choice(text, finish, stopped_by if isinstance(stopped_by, str) else "", read_pairs(choice.get("logprobs")))


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
