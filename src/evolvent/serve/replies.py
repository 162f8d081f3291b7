"""The JSON of replies: chat and text completions, whole and in chunks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from evolvent.serve.worker import Event, Piece


def sse(data: dict[str, Any], with_usage: bool) -> bytes:
    """One server-sent event; where a usage chunk will follow, the others have an empty `usage`."""
    if with_usage:
        data = {**data, "usage": None}
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


class Reply:
    """What one request gets back; a subclass knows its API's form."""

    prefix: ClassVar[str]
    kind: ClassVar[str]
    chunk_kind: ClassVar[str]

    def __init__(
        self, id: str, model: str, version: int, echo: Sequence[str], logprobs: bool, usage: dict[str, int]
    ) -> None:
        self.head = {"id": id, "created": int(time.time()), "model": model, "system_fingerprint": f"version-{version}"}
        self.echo, self.logprobs, self.prompt_tokens = echo, logprobs, usage["prompt_tokens"]
        self.texts = list(echo)
        self.pieces: list[list[Piece]] = [[] for _ in echo]
        self.last: list[Event | None] = [None] * len(echo)

    def add(self, event: Event) -> None:
        """Take note of news."""
        self.texts[event.choice] += event.text
        self.pieces[event.choice] += event.pieces
        self.last[event.choice] = event

    @property
    def usage(self) -> dict[str, int]:
        """Tokens of the prompts, each counted once, and of all choices."""
        sampled = sum(e.sampled for e in self.last if e)
        total = self.prompt_tokens + sampled
        return {"prompt_tokens": self.prompt_tokens, "completion_tokens": sampled, "total_tokens": total}

    def whole(self) -> dict[str, Any]:
        """The reply in one piece."""
        choices = [
            {
                "index": i,
                **self.content(text),
                "logprobs": self.tokens(self.pieces[i], len(self.echo[i])) if self.logprobs else None,
                **ending(event),
            }
            for i, (text, event) in enumerate(zip(self.texts, self.last, strict=True))
        ]
        return {**self.head, "object": self.kind, "choices": choices, "usage": self.usage}

    def opening(self) -> Iterator[dict[str, Any]]:
        """Chunks before any news."""
        for i, text in enumerate(self.echo):
            if first := self.first(text):
                yield self.chunk({"index": i, **first, "logprobs": None, "finish_reason": None})

    def chunks(self, event: Event) -> Iterator[dict[str, Any]]:
        """Chunks for one event: its text, then its end."""
        at = len(self.texts[event.choice])
        self.add(event)
        if event.text or event.pieces:
            logprobs = self.tokens(list(event.pieces), at) if self.logprobs else None
            delta = self.delta(event.text)
            yield self.chunk({"index": event.choice, **delta, "logprobs": logprobs, "finish_reason": None})
        if event.finish:
            yield self.chunk({"index": event.choice, **self.delta(""), "logprobs": None, **ending(event)})

    def chunk(self, choice: dict[str, Any]) -> dict[str, Any]:
        """A chunk with one choice."""
        return {**self.head, "object": self.chunk_kind, "choices": [choice]}

    def usage_chunk(self) -> dict[str, Any]:
        """The last chunk, without choices."""
        return {**self.head, "object": self.chunk_kind, "choices": [], "usage": self.usage}

    def content(self, text: str) -> dict[str, Any]:
        """A choice's text."""
        raise NotImplementedError

    def first(self, echo: str) -> dict[str, Any]:
        """What opens a choice's stream; empty: nothing does."""
        raise NotImplementedError

    def delta(self, text: str) -> dict[str, Any]:
        """More text of a choice; the end has none."""
        raise NotImplementedError

    def tokens(self, pieces: Sequence[Piece], at: int) -> dict[str, Any]:
        """Log-probs of tokens; the first one's text begins at character `at` of the choice."""
        raise NotImplementedError


def ending(event: Event | None) -> dict[str, Any]:
    """Why a choice ended, and the stop string that did it (vLLM's field)."""
    assert event is not None
    return {"finish_reason": event.finish, "stop_reason": event.stopped_by}


class Chat(Reply):
    """Replies of /v1/chat/completions."""

    prefix, kind, chunk_kind = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def content(self, text: str) -> dict[str, Any]:
        """A message."""
        return {"message": {"role": "assistant", "content": text, "refusal": None}}

    def first(self, echo: str) -> dict[str, Any]:
        """The role."""
        return {"delta": {"role": "assistant", "content": "", "refusal": None}}

    def delta(self, text: str) -> dict[str, Any]:
        """More of the message."""
        return {"delta": {"content": text} if text else {}}

    def tokens(self, pieces: Sequence[Piece], at: int) -> dict[str, Any]:
        """One entry a token."""

        def entry(text: str, logprob: float) -> dict[str, Any]:
            return {"token": text, "logprob": finite(logprob), "bytes": list(text.encode())}

        content = [{**entry(p.text, p.logprob), "top_logprobs": [entry(*t) for t in p.top]} for p in pieces]
        return {"content": content, "refusal": None}


class Completion(Reply):
    """Replies of /v1/completions."""

    prefix, kind, chunk_kind = "cmpl", "text_completion", "text_completion"

    def content(self, text: str) -> dict[str, Any]:
        """The text."""
        return {"text": text}

    def first(self, echo: str) -> dict[str, Any]:
        """The prompt, where it is to be repeated."""
        return {"text": echo} if echo else {}

    def delta(self, text: str) -> dict[str, Any]:
        """More text."""
        return {"text": text}

    def tokens(self, pieces: Sequence[Piece], at: int) -> dict[str, Any]:
        """Parallel lists."""
        offsets = []
        for piece in pieces:
            offsets.append(at)
            at += len(piece.text)
        return {
            "tokens": [p.text for p in pieces],
            "token_logprobs": [finite(p.logprob) for p in pieces],
            "top_logprobs": [{t: finite(p) for t, p in piece.top} for piece in pieces],
            "text_offset": offsets,
        }


def finite(logprob: float) -> float:
    """JSON has no infinities; -9999 is what others write."""
    return max(logprob, -9999.0)
