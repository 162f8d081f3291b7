"""The server, by raw HTTP and through the official client."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import openai
import pytest
from tests.hub import hub_folder
from tests.loopback import serving
from tests.toys import random_policy, stub

from evolvent.core.errors import UserError
from evolvent.core.ledger import Ledger
from evolvent.core.random import identifier
from evolvent.core.records import Message
from evolvent.engine.base import Actor, Sampling
from evolvent.engine.endpoint import EndpointEngine
from evolvent.engine.local import LocalEngine
from evolvent.models.load import load_policy
from evolvent.models.policy import Policy
from evolvent.serve.app import bind, create_app
from evolvent.serve.worker import safe

POLICY = random_policy()
LEDGER = Ledger()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(create_app(POLICY, LocalEngine(POLICY, LEDGER), "toy")) as address:
        yield address


@pytest.fixture
def client(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=url, api_key="none", max_retries=0)


def directly(prompt: str, uid: int, limit: int, **sampling: float) -> tuple[list[str], list[float], str]:
    """Text and log-prob of each token but the last one's end mark, and the stop reason, from the engine itself."""
    tokens = [POLICY.format.bos, *POLICY.format.encode(prompt)]
    how = Sampling(ends=POLICY.format.ends, **sampling)  # type: ignore[arg-type]
    tree = LocalEngine(POLICY, Ledger()).start([stub(uid, tokens)], {"policy": Actor("policy", 0)}, how, [limit])
    while tree.live:
        tree.advance()
    branch = tree.branches[0]
    written = branch.tokens[len(tokens) : branch.length - (branch.stop == "end")]
    texts = [POLICY.format.decode([t]) for t in written]
    return texts, branch.logprob[len(tokens) :][: len(written)].tolist(), branch.stop


def test_completion_is_what_the_engine_samples_for_that_seed(client: openai.OpenAI) -> None:
    made = client.completions.create(model="toy", prompt="1+2=", max_tokens=20, seed=5, n=3, logprobs=0)
    for i, choice in enumerate(made.choices):
        texts, logprobs, stop = directly("1+2=", identifier(0, "seeded", 5, 0, i), 20)
        assert choice.text == "".join(texts)
        assert choice.logprobs.tokens == texts  # special tokens other than the end have no text
        assert choice.finish_reason == ("stop" if stop == "end" else "length")
        np.testing.assert_allclose(choice.logprobs.token_logprobs, logprobs, atol=1e-4)
        assert choice.logprobs.text_offset == [len("".join(texts[:k])) for k in range(len(texts))]
    assert len({c.text for c in made.choices}) == 3
    assert made.usage.prompt_tokens == 5
    assert made.usage.total_tokens == 5 + made.usage.completion_tokens


def test_the_batch_does_not_change_a_reply(client: openai.OpenAI) -> None:
    def ask(i: int) -> str:
        return client.completions.create(model="toy", prompt=f"{i}+2=", max_tokens=5 + i, seed=i).choices[0].text

    alone = [ask(i) for i in range(8)]
    together: dict[int, str] = {}
    threads = [threading.Thread(target=lambda i=i: together.update({i: ask(i)})) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[i] for i in range(8)] == alone


def test_chat_with_top_logprobs(client: openai.OpenAI) -> None:
    made = client.chat.completions.create(
        model="toy",
        messages=[{"role": "system", "content": "12"}, {"role": "user", "content": [{"type": "text", "text": "+1="}]}],
        temperature=0,
        max_completion_tokens=6,
        logprobs=True,
        top_logprobs=3,
    )
    choice = made.choices[0]
    assert choice.message.content == "".join(directly("12+1=", 1, 6, temperature=0.0)[0])
    for entry in choice.logprobs.content:
        assert len(entry.top_logprobs) == 3
        assert entry.logprob == entry.top_logprobs[0].logprob  # greedy takes the first
        assert bytes(entry.bytes).decode() == entry.token
    assert made.system_fingerprint == "version-0"


def test_stream_has_role_text_finish_usage_and_done(url: str) -> None:
    body = {
        "model": "toy",
        "messages": [{"role": "user", "content": "1+2="}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "n": 2,
        "seed": 9,
        "max_tokens": 30,
    }
    whole = httpx.post(f"{url}/chat/completions", json=body | {"stream": False, "stream_options": None}).json()
    with httpx.stream("POST", f"{url}/chat/completions", json=body) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in reply.iter_lines() if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    chunks = [json.loads(line[6:]) for line in lines[:-1]]
    assert [c["choices"][0]["delta"]["role"] for c in chunks[:2]] == ["assistant", "assistant"]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == whole["usage"]
    assert all(c["usage"] is None for c in chunks[:-1])
    assert len(chunks) > 2 * 3 + 1  # the text came in pieces
    for i in range(2):
        mine = [c["choices"][0] for c in chunks[:-1] if c["choices"][0]["index"] == i]
        text = "".join(c["delta"].get("content", "") for c in mine)
        assert text == whole["choices"][i]["message"]["content"]
        assert [c["finish_reason"] for c in mine if c["finish_reason"]] == [whole["choices"][i]["finish_reason"]]


def test_streamed_logprobs_are_those_of_the_whole_reply(client: openai.OpenAI) -> None:
    ask = {"model": "toy", "prompt": "7*8=", "max_tokens": 25, "seed": 2, "logprobs": 2}
    whole = client.completions.create(**ask).choices[0]
    parts = [c.choices[0] for c in client.completions.create(**ask, stream=True)]
    assert "".join(p.text for p in parts) == whole.text
    found = [x for p in parts if p.logprobs for x in p.logprobs.token_logprobs]
    np.testing.assert_allclose(found, whole.logprobs.token_logprobs, atol=1e-5)
    assert [x for p in parts if p.logprobs for x in p.logprobs.text_offset] == whole.logprobs.text_offset


def test_stop_strings_cut_and_are_named(client: openai.OpenAI) -> None:
    whole = client.completions.create(model="toy", prompt="7*8=", max_tokens=40, seed=3).choices[0].text
    stop = whole[9:12]
    at = whole.index(stop)
    cut = client.completions.create(
        model="toy", prompt="7*8=", max_tokens=40, seed=3, stop=["nonesuch", stop], logprobs=0
    )
    choice = cut.choices[0]
    assert choice.text == whole[:at]
    assert choice.finish_reason == "stop"
    assert choice.model_extra["stop_reason"] == stop
    assert "".join(choice.logprobs.tokens) == whole[:at]
    parts = client.completions.create(model="toy", prompt="7*8=", max_tokens=40, seed=3, stop=stop, stream=True)
    assert "".join(p.choices[0].text for p in parts) == whole[:at]


def test_safe_holds_back_what_a_stop_string_may_take() -> None:
    assert safe("hello", ()) == 5
    assert safe("hello", ("lot",)) == 3  # `lo` may become `lot`
    assert safe("hello", ("tea", "oh")) == 4
    assert safe("hello", ("tea",)) == 5
    assert safe("a\ufffd", ()) == 1


def test_prompts_of_every_kind_and_echo(client: openai.OpenAI) -> None:
    tokens = [POLICY.format.bos, *POLICY.format.encode("1+2=")]
    ask = {"model": "toy", "max_tokens": 8, "temperature": 0}
    text = client.completions.create(prompt="1+2=", **ask).choices[0].text
    assert client.completions.create(prompt=tokens, **ask).choices[0].text == text
    several = client.completions.create(prompt=["1+2=", "3+4="], echo=True, **ask)
    assert [c.index for c in several.choices] == [0, 1]
    assert several.choices[0].text == "1+2=" + text
    assert several.usage.prompt_tokens == 10
    both = client.completions.create(prompt=[tokens, tokens], **ask)
    assert [c.text for c in both.choices] == [text, text]


def test_without_a_seed_replies_differ(client: openai.OpenAI) -> None:
    texts = {client.completions.create(model="toy", prompt="1", max_tokens=20).choices[0].text for _ in range(3)}
    assert len(texts) == 3


def test_the_reply_ends_at_the_context(client: openai.OpenAI) -> None:
    made = client.chat.completions.create(model="toy", messages=[{"role": "user", "content": "1" * 100}], temperature=0)
    assert made.usage.total_tokens <= POLICY.context
    long = client.completions.create(model="toy", prompt="1" * 100, max_tokens=1000, seed=1)
    if long.choices[0].finish_reason == "length":
        assert long.usage.total_tokens == POLICY.context


@pytest.mark.parametrize(
    ("change", "status", "param", "says"),
    [
        ({"model": "toi"}, 404, "model", "did you mean toy"),
        ({"model": None}, 400, "model", "string"),
        ({"messages": []}, 400, "messages", "at least 1"),
        ({"messages": [{"role": "user", "content": "1" * 500}]}, 400, "messages", "maximum context length is 128"),
        ({"messages": [{"role": "wizard", "content": "1"}]}, 400, "messages.0.role", "system"),
        ({"messages": [{"role": "user", "content": "é"}]}, 400, "messages", "printable ASCII"),
        ({"foo": 1}, 400, "foo", "Unrecognized request argument supplied: foo"),
        ({"tools": [{"type": "function"}]}, 400, "tools", "not supported"),
        ({"presence_penalty": 0.5}, 400, "presence_penalty", "not supported"),
        ({"response_format": {"type": "json_object"}}, 400, "response_format.type", "not supported"),
        ({"temperature": 3}, 400, "temperature", "less than or equal to 2"),
        ({"temperature": "1"}, 400, "temperature", "number"),
        ({"max_tokens": 0}, 400, "max_tokens", "greater than or equal to 1"),
        ({"n": 1000}, 400, "n", "less than or equal to 128"),
        ({"top_logprobs": 3}, 400, "top_logprobs", "needs logprobs"),
        ({"stream_options": {"include_usage": True}}, 400, "stream_options", "needs stream"),
    ],
)
def test_bad_requests(url: str, change: dict[str, object], status: int, param: str, says: str) -> None:
    body = {"model": "toy", "messages": [{"role": "user", "content": "1"}]} | change
    reply = httpx.post(f"{url}/chat/completions", json=body)
    error = reply.json()["error"]
    assert reply.status_code == status
    assert error["param"] == param
    assert says in error["message"]
    assert error["type"] == "invalid_request_error"


def test_neutral_parameters_are_accepted(client: openai.OpenAI) -> None:
    made = client.chat.completions.create(
        model="toy",
        messages=[{"role": "user", "content": "1", "name": "somebody"}],
        max_tokens=2,
        presence_penalty=0,
        response_format={"type": "text"},
        user="me",
        store=False,
        tools=[],
    )
    assert len(made.choices) == 1


def test_malformed_json_unknown_addresses_and_methods(url: str) -> None:
    bad = httpx.post(f"{url}/chat/completions", content=b"{nope")
    assert bad.status_code == 400
    assert "not valid JSON" in bad.json()["error"]["message"]
    assert httpx.get(f"{url}/nothing").status_code == 404
    assert "error" in httpx.get(f"{url}/nothing").json()
    assert httpx.get(f"{url}/chat/completions").status_code == 405
    for prompt in ([], [[]], [10**6], [-1], 5, [1.5]):
        reply = httpx.post(f"{url}/completions", json={"model": "toy", "prompt": prompt})
        assert reply.status_code == 400, prompt
        assert reply.json()["error"]["message"]


def test_models_and_health(url: str, client: openai.OpenAI) -> None:
    card = client.models.retrieve("toy")
    assert [m.id for m in client.models.list()] == ["toy"]
    assert card.owned_by == "evolvent"
    assert card.model_extra == {"max_model_len": POLICY.context, "evolvent_wording": "compact"}
    health = httpx.get(url.removesuffix("/v1") + "/health")
    assert health.json() == {"status": "ok", "model": "toy", "waiting": 0}


def test_a_key_keeps_strangers_out() -> None:
    with serving(create_app(POLICY, LocalEngine(POLICY, Ledger()), "toy", key="open sesame")) as address:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "open"}):
            reply = httpx.get(f"{address}/models", headers=headers)
            assert reply.status_code == 401
            assert reply.json()["error"]["code"] == "invalid_api_key"
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=address, api_key="x", max_retries=0).models.list()
        assert openai.OpenAI(base_url=address, api_key="open sesame").models.list().data[0].id == "toy"


class Broken:
    """An engine that fails at its second tree."""

    offers = frozenset({"tokens", "logprobs"})

    def __init__(self) -> None:
        self.inner, self.count = LocalEngine(POLICY, Ledger()), 0

    def start(self, *args: object) -> object:
        self.count += 1
        if self.count == 2:
            raise RuntimeError("no more memory")
        return self.inner.start(*args)  # type: ignore[arg-type]


def test_a_failing_engine_gives_500_and_the_next_request_is_served() -> None:
    with serving(create_app(POLICY, Broken(), "toy")) as address:
        client = openai.OpenAI(base_url=address, api_key="x", max_retries=0)
        ask = {"model": "toy", "prompt": "1", "max_tokens": 3, "seed": 1}
        first = client.completions.create(**ask).choices[0].text
        with pytest.raises(openai.InternalServerError, match="no more memory"):
            client.completions.create(**ask)
        assert client.completions.create(**ask).choices[0].text == first
        with pytest.raises(openai.BadRequestError, match="top alternatives"):
            client.completions.create(**ask, logprobs=2)


class Slow:
    """An engine whose trees take their time, and remember who was stopped."""

    offers = LocalEngine.offers

    def __init__(self) -> None:
        self.inner = LocalEngine(POLICY, Ledger())
        self.stopped: list[str] = []
        self.advances = 0

    def start(self, *args: object) -> object:
        tree = self.inner.start(*args)  # type: ignore[arg-type]
        advance, stop = tree.advance, tree.stop

        def slower(k: int | None = None) -> None:
            time.sleep(0.05)
            self.advances += 1
            advance(1)

        def noted(branch: object, why: str) -> None:
            self.stopped.append(why)
            stop(branch, why)  # type: ignore[arg-type]

        tree.advance, tree.stop = slower, noted  # type: ignore[method-assign]
        return tree


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_stops_its_branches(stream: bool) -> None:
    slow = Slow()
    with serving(create_app(POLICY, slow, "toy")) as address:
        body = {"model": "toy", "prompt": "1", "max_tokens": 100, "n": 2, "seed": 4, "stream": stream}
        if stream:
            with httpx.stream("POST", f"{address}/completions", json=body) as reply:
                next(reply.iter_lines())
        else:
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{address}/completions", json=body, timeout=0.3)
        deadline = time.monotonic() + 5
        while "cancelled" not in slow.stopped and time.monotonic() < deadline:
            time.sleep(0.02)
        assert slow.stopped.count("cancelled") == 2
        assert slow.advances < 60


def test_too_many_waiting_requests_are_sent_away() -> None:
    with serving(create_app(POLICY, Slow(), "toy", waves=1, waiting=1)) as address:
        statuses: list[int] = []

        def ask() -> None:
            body = {"model": "toy", "prompt": "1", "max_tokens": 6, "seed": 4}
            statuses.append(httpx.post(f"{address}/completions", json=body, timeout=30).status_code)

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
            time.sleep(0.03)
        for thread in threads:
            thread.join()
        assert set(statuses) == {200, 429}


@pytest.fixture(scope="module")
def chat_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Policy]]:
    policy = load_policy(str(hub_folder(tmp_path_factory.mktemp("chat"))))
    with serving(create_app(policy, LocalEngine(policy, Ledger()), "chat")) as address:
        yield address, policy


def test_a_model_with_a_chat_template(chat_url: tuple[str, Policy]) -> None:
    """Its tokens are parts of characters: whatever is streamed is whole ones, and the pieces join to the text."""
    url, policy = chat_url
    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    messages: list[Any] = [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "12*7? ☃"}]
    ask: dict[str, Any] = {"model": "chat", "messages": messages, "max_tokens": 60, "logprobs": True, "seed": 3}
    whole = client.chat.completions.create(**ask)
    prompt = policy.format.prompt([Message("system", "be brief"), Message("user", "12*7? ☃")])
    assert whole.usage is not None
    assert whole.usage.prompt_tokens == len(prompt)
    choice = whole.choices[0]
    assert choice.message.content
    assert choice.logprobs is not None
    assert "".join(entry.token for entry in choice.logprobs.content or []) == choice.message.content
    parts = [c.choices[0] for c in client.chat.completions.create(**ask, stream=True)]
    assert "".join(p.delta.content or "" for p in parts) == choice.message.content
    streamed = [e.logprob for p in parts if p.logprobs for e in p.logprobs.content or []]
    np.testing.assert_allclose(streamed, [e.logprob for e in choice.logprobs.content or []], atol=1e-4)
    raw = client.completions.create(model="chat", prompt="12*7", max_tokens=1)
    assert raw.usage is not None
    assert raw.usage.prompt_tokens == len(policy.format.encode("12*7"))


def test_the_client_reads_such_a_model(chat_url: tuple[str, Policy]) -> None:
    url, policy = chat_url
    engine = EndpointEngine(f"{url}#chat", Ledger(), logprobs=True)
    format = engine.policy.format
    assert format.wording == "plain"
    stubs = [stub(i, format.prompt([Message("user", f"{i}*7? ☃")])) for i in range(3)]
    tree = engine.start(stubs, {"policy": Actor("policy", 0)}, Sampling(temperature=0), [40] * 3)
    tree.advance()
    for i, branch in enumerate(tree.branches):
        assert branch.error is None
        near = stub(i, policy.format.prompt([Message("user", f"{i}*7? ☃")]))
        how = Sampling(temperature=0, ends=policy.format.ends)
        local = LocalEngine(policy, Ledger()).start([near], {"policy": Actor("policy", 0)}, how, [40])
        while local.live:
            local.advance()
        same = local.branches[0]
        written = slice(len(near.tokens), same.length - (same.stop == "end"))
        assert format.decode(branch.tokens[branch.start :]) == policy.format.decode(same.tokens[written])
        assert branch.logprob[branch.start :].sum() == pytest.approx(same.logprob[written].sum(), abs=1e-3)


def test_a_taken_port_is_a_user_error() -> None:
    with bind(port=0) as taken, pytest.raises(UserError, match="choose another with --port"):
        bind(port=taken.getsockname()[1])
