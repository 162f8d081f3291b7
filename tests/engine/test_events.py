"""Streams joined into replies: written by hand, and those of our own server beside its replies in one piece."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from tests.loopback import serving
from tests.toys import random_policy

from evolvent.core.ledger import Ledger
from evolvent.engine.events import Broken, events, is_stream, whole
from evolvent.engine.local import LocalEngine
from evolvent.engine.reply import counts, read_choice
from evolvent.serve.app import create_app


def chat(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of a chat completion."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish} | more
    return {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def text(piece: str, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of a text completion."""
    choice = {"index": 0, "text": piece, "finish_reason": finish} | more
    return {"id": "c2", "object": "text_completion", "choices": [choice]}


def usage(prompt: int, completion: int, choices: Any = ()) -> dict[str, Any]:
    """What comes last where usage is reported."""
    return {"choices": choices, "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}


def sent(*chunks: Any, end: str = "data: [DONE]\n\n") -> str:
    """A stream of these events."""
    return "".join(f"data: {c if isinstance(c, str) else json.dumps(c)}\n\n" for c in chunks) + end


def joined(*chunks: Any, end: str = "data: [DONE]\n\n") -> dict[str, Any]:
    """The reply of a stream that comes to its end."""
    status, made = whole(sent(*chunks, end=end))
    assert status == 200
    return json.loads(made)


def test_a_chat_stream_becomes_one_completion() -> None:
    opening = chat({"role": "assistant", "content": "", "refusal": None})
    made = joined(
        opening, chat({"content": "4"}), chat({"content": "2 ☃"}), chat({}, "stop", stop_reason="x"), usage(7, 3)
    )
    message = {"role": "assistant", "content": "42 ☃", "refusal": None}
    choice = {"index": 0, "finish_reason": "stop", "stop_reason": "x", "message": message, "logprobs": None}
    counted = {"prompt_tokens": 7, "completion_tokens": 3}
    assert made == {"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": counted}
    assert read_choice(made, "chat").text == "42 ☃"


def test_a_stream_of_text_becomes_one_completion() -> None:
    made = joined(text("a"), text("b\n"), text("", "length"), usage(2, 9))
    choice = {"index": 0, "finish_reason": "length", "text": "ab\n", "logprobs": None}
    counted = {"prompt_tokens": 2, "completion_tokens": 9}
    assert made == {"id": "c2", "object": "text_completion", "choices": [choice], "usage": counted}


def test_logprobs_are_joined_in_the_form_of_their_api() -> None:
    def entry(token: str, logprob: float) -> dict[str, Any]:
        return {"content": [{"token": token, "logprob": logprob, "bytes": list(token.encode())}], "refusal": None}

    made = joined(
        chat({"content": "a"}, logprobs=entry("a", -1.0)),
        chat({"content": "☃"}, logprobs=entry("☃", -2.0)),
        chat({}, "stop", logprobs=None),
    )
    assert read_choice(made, "chat").pairs == [(b"a", -1.0), ("☃".encode(), -2.0)]
    made = joined(
        text("a", logprobs={"tokens": ["a"], "token_logprobs": [-1.0], "text_offset": [0], "top_logprobs": None}),
        text("bc", "stop", logprobs={"tokens": ["b", "c"], "token_logprobs": [-2.0, -3.0], "text_offset": [1, 2]}),
    )
    assert read_choice(made, "completions").pairs == [(b"a", -1.0), (b"b", -2.0), (b"c", -3.0)]
    assert made["choices"][0]["logprobs"]["text_offset"] == [0, 1, 2]


def test_the_last_usage_counts_and_there_may_be_none() -> None:
    growing = chat({"content": "a"}) | {"usage": {"prompt_tokens": 5, "completion_tokens": 1}}
    assert counts(joined(growing, chat({}, "stop"), usage(5, 2), chat() | {"usage": None})) == (5, 2)
    assert counts(joined(growing, chat({}, "stop"))) == (5, 1)
    assert "usage" not in joined(chat({"content": "a"}, "stop"))


def test_choices_are_told_apart() -> None:
    made = joined(text("b", index=1), text("a"), text("B", "stop", index=1), text("A", "length"))
    assert [(c["text"], c["finish_reason"]) for c in made["choices"]] == [("aA", "length"), ("bB", "stop")]


def test_a_refusal_in_words_is_read_as_in_one_piece() -> None:
    made = joined(
        chat({"role": "assistant", "content": ""}), chat({"refusal": "I'd "}), chat({"refusal": "rather not"}, "stop")
    )
    assert read_choice(made, "chat").text == "I'd rather not"


@pytest.mark.parametrize(
    ("chunks", "says"),
    [
        ([], "no choices"),
        ([chat({"role": "assistant"}, "stop")], "no text"),
        ([chat({"content": 7}, "stop")], "text is a int"),
        ([chat({"content": "x"})], "finish_reason is None"),
        ([chat({"tool_calls": [{"index": 0, "function": {"name": "f"}}]}, "tool_calls")], r"calls a tool \(f\)"),
        ([chat({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}, "tool_calls")], "no text"),
        ([chat({"content": "x", "tool_calls": []}, "tool_calls")], "finish_reason is 'tool_calls'"),
        ([chat({"content": "x"}, "content_filter")], "content filter"),
        ([{"choices": 3}, {"choices": [4]}, 5, None, {"choices": [{"delta": "x", "index": "y"}]}], "no message"),
    ],
)
def test_what_holds_no_answer_is_refused_as_in_one_piece(chunks: list[Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_choice(joined(*chunks), "chat")


# --- events ---


def test_comments_empty_lines_and_other_fields_are_ignored() -> None:
    stream = ": ping\n\n\n\nevent: message\nid: 7\nretry: 10\ndata: 1\n\ndata\n\ndata:\n\n:\ndata:2\n:x\n\n"
    assert list(events(stream)) == ["1", "2"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_all_ends_of_lines_are_known_and_no_others(end: str) -> None:
    stream = "\ufeff" + f'data: {{"a":{end}data: "x\u2028\x85\x0c"}}{end}{end}data:  b{end}{end}'
    assert list(events(stream)) == ['{"a":\n"x\u2028\x85\x0c"}', " b"]


def test_the_last_event_needs_no_empty_line() -> None:
    assert list(events("data: 1\n\ndata: 2")) == ["1", "2"]


def test_nothing_counts_after_the_end() -> None:
    assert joined(text("a", "stop"), end="data: [DONE] \n\ndata: {\n\n" + sent(text("b")))["choices"][0]["text"] == "a"


def test_what_is_a_stream() -> None:
    assert is_stream(httpx.Headers({"Content-Type": "Text/Event-Stream ; charset=utf-8"}), "data: {}")
    assert not is_stream(httpx.Headers({"Content-Type": "text/event-stream"}), ' {"choices": []}')
    assert not is_stream(httpx.Headers({"Content-Type": "application/json"}), "data: {}")
    assert not is_stream({}, "data: {}")


# --- ends before the end ---


@pytest.mark.parametrize(
    ("stream", "texts"),
    [
        ("", []),
        (": ping\n\n", []),
        (sent("[" * 2000), []),
        (sent(text("4"), end=""), ["4"]),
        (sent(text("4"), end='data: {"choices": [{"tex'), ["4"]),
        (sent(text("4"), "nonsense", text("2", "stop")), ["4"]),
        (sent(text("a", "stop"), text("b", index=1), end=""), ["a", "b"]),
    ],
)
def test_a_stream_that_breaks_off_is_no_reply(stream: str, texts: list[str]) -> None:
    with pytest.raises(Broken, match="breaks off before the end of the reply") as caught:
        whole(stream)
    assert [choice["text"] for choice in json.loads(caught.value.said)["choices"]] == texts


def test_a_reply_that_has_ended_needs_neither_done_nor_usage() -> None:
    assert joined(chat({"content": "x"}, "stop"), end="")["choices"][0]["message"]["content"] == "x"
    assert "usage" not in joined(chat({"content": "x"}, "stop"), end='data: {"choices": [], "usa')


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"message": "slow down", "code": 429}, 429),
        ({"message": "slow down", "code": "503"}, 503),
        ({"message": "slow down", "code": "rate_limit_exceeded"}, 500),
        ({"message": "slow down", "code": 200}, 500),
        ({"message": "slow down"}, 500),
        ("slow down", 500),
    ],
)
def test_an_error_is_an_error_reply_or_breaks_off_what_has_begun(error: Any, status: int) -> None:
    opening = chat({"role": "assistant", "content": ""})
    assert whole(sent(opening, {"error": error})) == (status, json.dumps({"error": error}))
    with pytest.raises(Broken, match=f"breaks off with status {status}: slow down") as caught:
        whole(sent(opening, chat({"content": "4"}), usage(7, 1), {"error": error}))
    assert counts(json.loads(caught.value.said)) == (7, 1)
    assert joined(chat({"content": "x"}, "stop") | {"error": None})["choices"][0]["finish_reason"] == "stop"


# --- our own server ---


@pytest.mark.parametrize(("path", "asked"), [("chat/completions", True), ("completions", 0)])
def test_a_joined_stream_is_the_reply_in_one_piece(path: str, asked: Any) -> None:
    policy = random_policy()
    prompt = {"prompt": "1+2="} if path == "completions" else {"messages": [{"role": "user", "content": "1+2="}]}
    body = prompt | {"model": "toy", "logprobs": asked, "n": 2, "seed": 3, "max_tokens": 12}
    with serving(create_app(policy, LocalEngine(policy, Ledger()), "toy")) as url:
        plain = httpx.post(f"{url}/{path}", json=body).json()
        streaming = body | {"stream": True, "stream_options": {"include_usage": True}}
        answer = httpx.post(f"{url}/{path}", json=streaming)
    assert is_stream(answer.headers, answer.text)
    made = json.loads(whole(answer.text)[1])
    api = path.removesuffix("/completions")
    first, second = ([read_choice({"choices": [c]}, api) for c in reply["choices"]] for reply in (plain, made))
    assert first == second
    assert len(first) == 2
    assert all(choice.pairs for choice in first)
    assert (made["object"], made["usage"]) == (plain["object"], plain["usage"])
