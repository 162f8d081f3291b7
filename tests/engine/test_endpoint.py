"""The endpoint client: against our own server, and against one that misbehaves by script."""

from __future__ import annotations

import json
import logging
import math
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.loopback import Answering, Scripted, chat_reply, serving
from tests.toys import Digits, random_policy, stub

from evolvent.core.build import Builder
from evolvent.core.errors import UserError
from evolvent.core.ledger import Budget, Ledger
from evolvent.core.loop import System, TooManyErrors, everyone
from evolvent.core.recipe import compile_plan
from evolvent.core.records import Message, Problem, Segment, Trajectory
from evolvent.core.role import Role
from evolvent.engine import is_endpoint
from evolvent.engine.base import Actor, Sampling
from evolvent.engine.endpoint import EndpointEngine, parse_endpoint
from evolvent.engine.local import LocalEngine
from evolvent.engine.reply import guess, retry_after, short, spread
from evolvent.engine.text import TextFormat
from evolvent.engine.transport import Pace
from evolvent.models.decoder import Low
from evolvent.recipes import all_recipes
from evolvent.recipes.profiles import PAPER
from evolvent.run.assemble import DEFAULTS, assemble
from evolvent.run.check import refuse_endless
from evolvent.run.spec import RunSpec
from evolvent.serve.app import create_app
from evolvent.tasks.calc import Calc

ACTORS = {"policy": Actor("policy", 0)}
QUICK = {"backoff": 0.01, "timeout": 5.0}
KEY = "sk-very-secret-0123456789"
POLICY = random_policy()


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EVOLVENT_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(create_app(POLICY, LocalEngine(POLICY, Ledger()), "toy")) as address:
        yield address


def prompts(*texts: str, wording: str = "plain", uid: int = 100) -> list[Trajectory]:
    """A stub for each prompt."""
    format = TextFormat(wording)
    return [stub(uid + i, format.prompt([Message("user", text)])) for i, text in enumerate(texts)]


def finish(engine: EndpointEngine, stubs: list[Trajectory], limit: int = 20, **sampling: Any) -> list[Any]:
    """The branches of a tree that has run to its end."""
    tree = engine.start(stubs, ACTORS, Sampling(**sampling), [limit] * len(stubs))
    while tree.live:
        tree.advance()
    return tree.branches


def system(recipe: str, task: Any, engine: EndpointEngine, settings: Mapping[str, str] | None = None) -> System:
    """A system as a run assembles it."""
    builder = Builder(compile_plan(recipe, all_recipes(), settings or {}, {}), PAPER)
    made = builder.role("", DEFAULTS)
    builder.finish()
    role = Role("", task, engine.policy, engine, engine.ledger, 0, slots=made.slots, parts=made.parts)  # type: ignore[arg-type]
    whole = System({"": role}, engine.policy, engine.ledger, everyone)  # type: ignore[arg-type]
    whole.setup()
    return whole


# --- addresses and keys ---


@pytest.mark.parametrize(
    ("spec", "url", "model", "api"),
    [
        ("http://127.0.0.1:8000/v1#tiny", "http://127.0.0.1:8000/v1", "tiny", "chat"),
        ("http://127.0.0.1:8000/v1/#", "http://127.0.0.1:8000/v1", "", "chat"),
        ("https://h.org/a/v1/chat/completions#x/y:z", "https://h.org/a/v1", "x/y:z", "chat"),
        ("https://h.org/v1/completions#m", "https://h.org/v1", "m", "completions"),
        ("openai:gpt-4.1-mini", "https://api.openai.com/v1", "gpt-4.1-mini", "chat"),
        ("http://[::1]:80/v1#m", "http://[::1]:80/v1", "m", "chat"),
    ],
)
def test_parse_endpoint(spec: str, url: str, model: str, api: str) -> None:
    made = parse_endpoint(spec)
    assert (made.url, made.model, made.api) == (url, model, api)
    assert is_endpoint(spec)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("tiny", "no address of an endpoint"),
        ("ftp://h/v1#m", "no address of an endpoint"),
        ("http://", "no address of an endpoint"),
        ("http://h:99999/v1#m", "no address of an endpoint"),
        ("openai:", "names no model"),
        (f"https://me:{KEY}@h/v1#m", "no password"),
        (f"https://h/v1?key={KEY}#m", "no password, key or query"),
    ],
)
def test_parse_endpoint_refuses(spec: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        parse_endpoint(spec)
    assert KEY not in str(caught.value)


def test_openai_key_goes_to_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "OPENAI_API_KEY" in parse_endpoint("openai:x").key_names
    assert "OPENAI_API_KEY" in parse_endpoint("https://api.openai.com/v1#x").key_names
    assert "OPENAI_API_KEY" not in parse_endpoint("https://elsewhere.org/v1#x").key_names
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Scripted(lambda a: a.say(chat_reply("1"))) as server:
        finish(EndpointEngine(f"{server.url}#m", Ledger()), prompts("x"))
        assert "Authorization" not in server.headers[0]
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        finish(EndpointEngine("openai:m", Ledger()), prompts("x"))
        assert server.headers[1]["Authorization"] == f"Bearer {KEY}"
        monkeypatch.setenv("MINE", "other")
        finish(EndpointEngine(f"{server.url}#m", Ledger(), variable="MINE"), prompts("x"))
        assert server.headers[2]["Authorization"] == "Bearer other"
    with pytest.raises(UserError, match="NOTSET is not set"):
        EndpointEngine("http://h/v1#m", Ledger(), variable="NOTSET")


def test_the_key_appears_nowhere(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("EVOLVENT_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []

    def echo(a: Answering) -> None:
        said = {"error": {"message": f"bad: {a.headers['Authorization']}"}}
        if len(server.bodies) < 3:
            a.say(chat_reply(f"your key is {KEY}"))
        else:
            a.say(said, 400 if len(server.bodies) < 5 else 401)

    log = Log()
    with Scripted(echo) as server:
        engine = EndpointEngine(f"{server.url}#m", Ledger(), replay=log, concurrency=1)
        branches = finish(engine, prompts("a", "b", "c", "d"))
        assert TextFormat().decode(branches[0].tokens[branches[0].start :]) == "your key is ***"
        assert branches[2].error.startswith("endpoint: status 400: bad: Bearer ***")
        with pytest.raises(UserError) as caught:
            finish(engine, prompts("e"))
        seen += [str(caught.value), repr(caught.value), str([b.error for b in branches])]
        seen += [repr(x) for x in (engine, engine.transport, engine.transport.secret, vars(engine), engine.policy)]
        seen += [json.dumps(log.replies), caplog.text, repr(vars(engine.transport))]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert len(caplog.text) > 100
    assert not any(KEY in text for text in seen)


# --- before anything is spent ---


def test_an_endpoint_that_is_down() -> None:
    with Scripted(lambda a: None) as server:
        address = server.url
    with pytest.raises(UserError, match=r"no answer from http.*is the server running"):
        EndpointEngine(f"{address}#m", Ledger()).connect()


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, {"error": {"message": "no"}}, "wants a key .* set the environment variable EVOLVENT_API_KEY"),
        (500, "oops", "status 500 .oops.; it is busy or broken; try again later"),
        (400, "oops", "status 400 .oops.; an endpoint's address usually ends in /v1"),
        (404, "nothing here", None),
        (200, "<html>welcome</html>", "no list of models"),
        (200, [1, 2], "no list of models"),
        (200, "[" * 2000, "no list of models"),
        (500, "[" * 2000, "it is busy or broken"),
        (200, {"data": [{"id": "other"}, {"id": "modest"}]}, "unknown model `model`; did you mean modest"),
    ],
)
def test_connect(status: int, body: Any, says: str | None) -> None:
    with Scripted(lambda a: None, models=lambda a: a.say(body, status)) as server:
        engine = EndpointEngine(f"{server.url}#model", Ledger())
        if says is None:
            engine.connect()  # a service without a list
        else:
            with pytest.raises(UserError, match=says):
                engine.connect()
        assert server.bodies == []
        assert not any(engine.ledger.spent["method"].values())


def test_a_single_model_needs_no_name() -> None:
    with Scripted(lambda a: None, models=lambda a: a.say({"data": [{"id": "only", "max_model_len": 99}]})) as server:
        engine = EndpointEngine(server.url, Ledger())
        assert engine.policy.name == f"{server.url}#only"
        assert engine.policy.context == 99
    two = {"data": [{"id": "a"}, {"id": "b"}]}
    with (
        Scripted(lambda a: None, models=lambda a: a.say(two)) as server,
        pytest.raises(UserError, match=r"several models; put #name at the end of the address: a, b"),
    ):
        EndpointEngine(server.url, Ledger()).connect()


def test_a_recipe_that_trains_is_refused(url: str) -> None:
    engine = EndpointEngine(f"{url}#toy", Ledger())
    with pytest.raises(UserError, match="cannot be trained or read; choose a recipe that does not train"):
        system("grpo", Digits(), engine)
    for attempt in (lambda p: p.model, lambda p: p.bump(), lambda p: p.low("x"), lambda p: p.set_weights({"a": 1})):
        with pytest.raises(UserError, match="cannot be trained"):
            attempt(engine.policy)


def test_what_cannot_be_said_is_refused(url: str) -> None:
    engine = EndpointEngine(f"{url}#toy", Ledger(), logprobs=True)
    with pytest.raises(UserError, match="log-probs at temperature 1"):
        finish(engine, prompts("1"), temperature=0.5)
    with pytest.raises(UserError, match="no entropies and no alternatives"):
        finish(engine, prompts("1"), entropy=True, alternatives=2)
    changed = {"policy": Actor("policy", 0, {"x": Low(None, None)})}  # type: ignore[arg-type]
    with pytest.raises(UserError, match="no low-rank changes"):
        engine.start(prompts("1"), changed, Sampling(), [5])
    hinted = prompts("1")[0]
    hinted.tokens = np.append(hinted.tokens, ord("h")).astype(np.int32)
    with pytest.raises(UserError, match=r"use its completions API: http.*/v1/completions#toy"):
        finish(engine, [hinted])


# --- against our own server ---


@pytest.mark.parametrize("api", ["", "/completions"])
def test_greedy_text_and_logprobs_are_those_of_the_local_engine(url: str, api: str) -> None:
    engine = EndpointEngine(f"{url}{api}#toy", Ledger(), logprobs=True)
    assert engine.policy.format.wording == "compact"
    texts = ["1+2=", "33*4=", "7-7="]
    far = finish(engine, prompts(*texts), temperature=0)
    format = POLICY.format
    near_ledger = Ledger()
    stubs = [stub(i, [format.bos, *format.encode(t)]) for i, t in enumerate(texts)]
    tree = LocalEngine(POLICY, near_ledger).start(stubs, ACTORS, Sampling(temperature=0, ends=format.ends), [20] * 3)
    while tree.live:
        tree.advance()
    for a, b, t in zip(far, tree.branches, texts, strict=True):
        assert TextFormat().decode(a.tokens[a.start :]) == format.decode(b.tokens[len(t) + 1 :])
        assert a.stop == b.stop
        written = b.logprob[len(t) + 1 : b.length - (b.stop == "end")]
        assert a.logprob[a.start :].sum() == pytest.approx(written.sum(), abs=1e-3)
        assert not a.logprob[: a.start].any()
    spent = engine.ledger.spent["method"]
    assert spent["model_calls"] == 3
    assert spent["prefilled"] == near_ledger.of("prefilled")
    assert spent["sampled"] == near_ledger.of("sampled")


def test_without_logprobs_the_stream_is_nan(url: str) -> None:
    branch = finish(EndpointEngine(f"{url}#toy", Ledger()), prompts("1+1="))[0]
    assert np.isnan(branch.logprob[branch.start :]).all()
    assert branch.mask[branch.start :].all()
    assert not branch.mask[: branch.start].any()


def test_completions_continue_fork_and_append(url: str) -> None:
    engine = EndpointEngine(f"{url}/completions#toy", Ledger())
    assert engine.offers == {"append", "fork"}
    whole = finish(engine, prompts("12+1="), limit=12, temperature=0)[0]
    tree = engine.start(prompts("12+1="), ACTORS, Sampling(temperature=0), [12])
    tree.advance(5)
    first = tree.branches[0]
    assert first.used == 5
    assert not first.stop
    twin = tree.fork(first, 7)
    other = tree.fork(first, 8, at=first.start + 1, token=ord("9"))
    late = tree.fork(first, 9)
    tree.append(late, TextFormat().encode("="), "tool")
    while tree.live:
        tree.advance(4)
    assert twin.tokens.tolist() == first.tokens.tolist() == whole.tokens.tolist()
    assert other.tokens[: first.start + 2].tolist() == [*first.tokens[: first.start + 1].tolist(), ord("9")]
    assert other.parent == first.uid
    assert other.fork_at == first.start + 1
    assert [b.root for b in tree.branches] == [0, 0, 0, 0]
    assert [s.kind for s in late.segments] == ["prompt", "policy", "tool", "policy"]
    assert first.info["completion_tokens"] == first.used <= 12


def test_states_that_an_engine_does_not_give_are_refused_with_a_way_out(url: str) -> None:
    with pytest.raises(UserError, match="no hidden states; take a model that runs in this process"):
        EndpointEngine(f"{url}#toy", Ledger()).start(prompts("1+1="), ACTORS, Sampling(hidden=True), [12])


def test_a_run_without_training(url: str) -> None:
    engine = EndpointEngine(f"{url}#toy", Ledger(), prices=(1.0, 2.0))
    whole = system("best-of-n", Digits(), engine, {"propose.problems": "4", "propose.n": "3", "gate.every": "0"})
    for steps in whole.run(Budget(2, "steps")):
        metrics = steps[0].metrics
        assert metrics["trajectories"] == 12
        assert metrics["errors"] == 0
        assert 0 <= metrics["outcome"] <= metrics["answered"] <= 1
    spent = engine.ledger.spent["method"]
    assert spent["model_calls"] == 24
    assert spent["money"] == pytest.approx((spent["prefilled"] + 2 * spent["sampled"]) / 1e6)
    assert whole.state_dict()["policy"] == {"version": 0, "weights": {}}


def test_a_run_sets_what_the_service_wants(url: str) -> None:
    service = {
        "engine.prices": "1,2",
        "engine.concurrency": "3",
        "engine.requests_per_minute": "6000",
        "propose.n": "2",
    }
    made = assemble(RunSpec("best-of-n", "countdown", f"{url}#toy", "0.5 usd", settings=service))
    engine = made.main_role.engine
    assert isinstance(engine, EndpointEngine)
    assert engine.prices == (1.0, 2.0)
    assert (engine.transport.concurrency, engine.transport.pace.requests) == (3, 6000.0)
    refuse_endless(made, Budget.parse("0.5 usd"))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"engine.concurency": "3"}, "engine.concurency.*did you mean engine.concurrency"),
        ({"engine.concurrency": "0"}, "at least 1"),
        ({"engine.concurrency": "many"}, "engine.concurrency must be int"),
        ({"engine.requests_per_minute": "-1"}, "must not be negative"),
        ({"engine.prices": "1"}, "engine.prices must be"),
        ({"engine.prices": "1,-2"}, "must not be negative"),
        ({"engine.timeout": "0"}, "time"),
        ({"engine.replay": "x"}, "engine.replay"),
    ],
)
def test_settings_that_no_service_has(url: str, settings: dict[str, str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        assemble(RunSpec("best-of-n", "countdown", f"{url}#toy", "2 steps", settings=settings))


def test_a_local_model_reads_no_settings_of_a_service() -> None:
    with pytest.raises(UserError, match=r"nothing reads engine.concurrency: tiny is no endpoint"):
        assemble(RunSpec("grpo", settings={"engine.concurrency": "3"}, task="countdown"))


# --- tools ---


def calculator(a: Answering) -> None:
    """A model that calls the calculator for a+b, and repeats its result; it talks on after a call, as models do."""
    messages = a.body["messages"]
    turns = len(messages)
    assert [m["role"] for m in messages] == ["user", "assistant", "user"][:turns]
    problem = messages[0]["content"].split(". You have")[0].removeprefix("Work out ")
    text = f"[{problem}] that is it" if turns == 1 else f"<answer>{messages[2]['content']}</answer>"
    stop = a.body.get("stop")
    if stop and stop[0] in text:
        a.say(chat_reply(text.split(stop[0])[0], stop_reason=stop[0]))
    else:
        a.say(chat_reply(text))


@pytest.mark.parametrize("owner", ["somebody", "vllm"])
def test_tool_episodes(owner: str) -> None:
    task = Calc(("2x1",), wording="plain")
    models = {"data": [{"id": "m", "owned_by": owner}]}
    with Scripted(calculator, models=lambda a: a.say(models)) as server:
        engine = EndpointEngine(f"{server.url}#m", Ledger())
        whole = system("no-change", task, engine, {"propose.problems": "6", "propose.n": "2", "gate.every": "0"})
        step = next(whole.run(Budget(1, "steps")))[0]
        assert ("stop" in server.bodies[0]) == (owner == "vllm")
    assert step.metrics["outcome"] == 1
    trajectory = step.groups[0].trajectories[0]
    assert [s.kind for s in trajectory.segments] == ["prompt", "policy", "tool", "policy"]
    assert engine.ledger.of("model_calls") == 24
    assert engine.ledger.of("environment_steps") == 12


# --- faults ---


def one(act: Any, **settings: Any) -> tuple[Any, EndpointEngine, Scripted]:
    """One branch, its engine and the server after it has run."""
    with Scripted(act) as server:
        engine = EndpointEngine(f"{server.url}#m", Ledger(), **(QUICK | settings))
        return finish(engine, prompts("tell me"))[0], engine, server


def calling(call: Any) -> dict[str, Any]:
    """A reply that calls a tool instead of saying anything."""
    reply = chat_reply(None, "tool_calls")
    reply["choices"][0]["message"]["tool_calls"] = [call]
    return reply


@pytest.mark.parametrize(
    ("reply", "says", "calls", "sampled"),
    [
        ("{this is no json", "not a JSON object: {this is no json", 1, guess("{this is no json")),
        ("", "not a JSON object: (empty)", 1, 0),
        ("[1]", "not a JSON object: [1]", 1, 1),
        ({"usage": {"prompt_tokens": 5, "completion_tokens": 2}}, "no choices", 1, 2),
        ({"choices": []}, "no choices", 1, 0),
        ("[" * 2000, "not a JSON object: [[[[", 1, guess("[" * 2000)),
        ({"choices": {"a": 1}}, "no choices", 1, 0),
        ({"choices": [{"message": None, "finish_reason": "stop"}]}, "no message", 1, 0),
        (chat_reply(None), "no text", 1, 3),
        (chat_reply(7), "text is a int", 1, 3),
        (chat_reply("x", "tool_calls"), "finish_reason is 'tool_calls'", 1, 3),
        (calling({"function": {"name": "search", "arguments": "{}"}}), r"calls a tool (search), though none", 1, 3),
        (calling(7), r"calls a tool (unnamed), though none", 1, 3),
        (chat_reply("x", "content_filter"), "content filter", 1, 3),
        (chat_reply("x", None), "finish_reason is None", 1, 3),  # type: ignore[arg-type]
    ],
)
def test_replies_that_cannot_be_used_are_errors_and_are_paid(reply: Any, says: str, calls: int, sampled: int) -> None:
    branch, engine, server = one(lambda a: a.say(reply))
    assert branch.stop == "error"
    assert says in branch.error
    assert len(server.bodies) == 3  # each of which is paid
    assert engine.ledger.of("model_calls") == 3 * calls
    assert engine.ledger.of("sampled") == 3 * sampled
    assert engine.ledger.of("prefilled") > 0


@pytest.mark.parametrize(
    ("reply", "text", "stop"),
    [
        (chat_reply("fine"), "fine", "end"),
        (chat_reply("", "stop"), "", "end"),
        (chat_reply(None, "length"), "", "length"),
        (chat_reply("cut of", "length"), "cut of", "length"),
        ({"choices": [{"message": {"content": None, "refusal": "no!"}, "finish_reason": "stop"}]}, "no!", "end"),
        (
            {"choices": [{"message": {"content": "snow ☃ 𝄞"}, "finish_reason": "stop"}], "usage": None},
            "snow ☃ 𝄞",
            "end",
        ),
    ],
)
def test_odd_replies_that_can_be_used(reply: Any, text: str, stop: str) -> None:
    branch, engine, _ = one(lambda a: a.say(reply))
    assert branch.error is None
    assert branch.stop == stop
    assert TextFormat().decode(branch.tokens[branch.start :]) == text
    assert engine.estimated == ("usage" not in reply or reply["usage"] is None)


def failing(times: int, act: Any) -> Any:
    """A script that misbehaves so many times and then answers."""
    left = [times]

    def script(a: Answering) -> None:
        left[0] -= 1
        if left[0] >= 0:
            act(a)
        else:
            a.say(chat_reply("at last"))

    return script


@pytest.mark.parametrize("reply", ["{this is no json", {"choices": []}, chat_reply("x", "content_filter")])
def test_a_reply_without_an_answer_is_asked_for_again(reply: Any) -> None:
    branch, engine, server = one(failing(2, lambda a: a.say(reply)))
    assert TextFormat().decode(branch.tokens[branch.start :]) == "at last"
    assert len(server.bodies) == engine.ledger.of("model_calls") == 3


def test_there_is_a_pause_before_a_reply_without_an_answer_is_asked_for_again() -> None:
    begun = time.perf_counter()
    one(failing(2, lambda a: a.say({"choices": []})), backoff=0.2)
    assert time.perf_counter() - begun >= 0.5 * (0.2 + 0.4)


def test_a_service_that_answers_is_not_given_up_however_useless_its_replies() -> None:
    with Scripted(lambda a: a.say({"choices": []})) as server:
        engine = EndpointEngine(f"{server.url}#m", Ledger(), concurrency=1, attempts=1, **QUICK)
        branches = finish(engine, prompts("a", "b", "c"))
    assert all("no choices" in str(b.error) for b in branches)
    assert len(server.bodies) == 3


def test_what_is_no_answer_is_not_replayed() -> None:
    log: dict[str, Any] = {}
    replay = SimpleNamespace(get=log.get, record=log.__setitem__)
    branch, _, first = one(lambda a: a.say({"choices": []}), replay=replay)
    assert branch.stop == "error"
    assert not any("reply" in one for one in log.values())
    assert len(first.bodies) == 3


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_passing_failures_are_tried_again(status: int) -> None:
    branch, engine, server = one(failing(2, lambda a: a.say("busy", status)))
    assert branch.error is None
    assert len(server.bodies) == 3
    assert engine.retries == 2
    assert engine.ledger.of("model_calls") == 1  # a refusal costs nothing
    assert len({json.dumps(b) for b in server.bodies}) == 1


def test_a_connection_that_breaks_off_is_tried_again_and_paid() -> None:
    branch, engine, _ = one(failing(1, lambda a: a.hang_up(b'{"choices": [')))
    assert branch.error is None
    assert engine.ledger.of("model_calls") == 2


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda a: a.say("broken", 500), "status 500: broken"),
        (lambda a: a.hang_up(b'{"choices": ['), "endpoint: "),
        (lambda a: a.hang_up(), "endpoint: "),
        (lambda a: time.sleep(1), "no reply within 0.2 s"),
    ],
)
def test_lasting_failures_are_errors_of_the_trajectory(act: Any, says: str) -> None:
    branch, _, server = one(act, attempts=3, timeout=0.2)
    assert branch.stop == "error"
    assert says in branch.error
    assert len(server.bodies) == 3


def test_a_reply_that_trickles_is_cut_off() -> None:
    def trickle(a: Answering) -> None:
        a.send_response(200)
        a.send_header("Content-Length", "100")
        a.end_headers()
        try:
            for _ in range(100):
                a.wfile.write(b" ")
                a.wfile.flush()
                time.sleep(0.05)
        except OSError:
            pass

    start = time.monotonic()
    branch, _, _ = one(trickle, attempts=1, timeout=0.3)
    assert "no reply within 0.3 s" in branch.error
    assert time.monotonic() - start < 2


def test_a_long_pause_is_told_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evolvent.engine.transport.LONG", 0.3)
    said: list[str] = []
    with Scripted(failing(3, lambda a: a.say("slow down", 429, {"Retry-After": "0.4"}))) as server:
        engine = EndpointEngine(f"{server.url}#m", Ledger(), **QUICK)
        engine.transport.say = said.append
        finish(engine, prompts("a", "b", "c"))
    assert said == [f"{server.url} asks to wait 0 s (status 429)"]
    assert engine.retries == 3


def test_a_first_reply_that_cannot_be_read_is_a_sentence() -> None:
    with (
        Scripted(lambda a: None, models=lambda a: a.say("abcde", 200, {"Content-Encoding": "gzip"})) as server,
        pytest.raises(UserError, match="no answer from .* incorrect header check"),
    ):
        finish(EndpointEngine(server.url, Ledger(), **QUICK), prompts("a"))


def test_retry_after_is_obeyed() -> None:
    _, _, server = one(failing(1, lambda a: a.say("slow down", 429, {"Retry-After": "0.4"})))
    assert server.times[1] - server.times[0] >= 0.4
    assert retry_after({"retry-after": "2"}) == 2
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 -0000"}) == 0
    assert retry_after({"retry-after": "1e9"}) == 600
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({"retry-after": "nan"}) is None
    assert retry_after({}) is None


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, {"error": {"message": "who are you"}}, "refuses the key .who are you."),
        (404, {"error": {"message": "no model"}}, "no such address or model .no model."),
        (402, "pay", "run out of credit"),
        (429, {"error": {"message": "quota", "code": "insufficient_quota"}}, "run out of credit .quota."),
        (307, "", "redirects elsewhere"),
    ],
)
def test_what_no_request_survives_ends_the_run(status: int, body: Any, says: str) -> None:
    def act(a: Answering) -> None:
        a.say(chat_reply("ok")) if len(server.bodies) == 1 else a.say(body, status)

    with Scripted(act) as server:
        engine = EndpointEngine(f"{server.url}#m", Ledger(), concurrency=1, **QUICK)
        with pytest.raises(UserError, match=says):
            finish(engine, prompts("a", "b", "c"))
        assert len(server.bodies) == 2
        assert engine.ledger.of("model_calls") == 1  # the reply before is charged all the same


def test_a_bad_request_hurts_its_own_trajectory_only() -> None:
    def act(a: Answering) -> None:
        if a.body["messages"][0]["content"] == "b":
            a.say({"error": {"message": "maximum context length is 5 tokens"}}, 400)
        else:
            a.say(chat_reply("ok"))

    with Scripted(act) as server:
        branches = finish(EndpointEngine(f"{server.url}#m", Ledger(), **QUICK), prompts("a", "b", "c"))
    assert [b.error is None for b in branches] == [True, False, True]
    said = "endpoint: status 400: maximum context length is 5 tokens; serve the model with a longer context"
    assert str(branches[1].error).startswith(said)


def test_an_endpoint_that_dies_ends_the_run_soon() -> None:
    with Scripted(lambda a: a.say("gone", 503)) as server:
        engine = EndpointEngine(f"{server.url}#m", Ledger(), concurrency=2, attempts=2, backoff=0.05)
        whole = system("no-change", Digits(), engine, {"propose.problems": "50", "propose.n": "2", "gate.every": "0"})
        with pytest.raises(TooManyErrors, match=r"100 of 100 .* status 503: gone"):
            next(whole.run(Budget(1, "steps")))
        assert len(server.bodies) <= 8  # the others were not even sent


def test_errors_are_counted_and_left_out() -> None:
    def act(a: Answering) -> None:
        place = list(map(json.dumps, server.bodies)).index(json.dumps(server.bodies[-1]))  # the same when asked again
        asked.append(place) if place not in asked else None
        a.say("{", 200) if asked.index(place) % 4 == 0 else a.say(chat_reply("123"))

    asked: list[int] = []

    with Scripted(act) as server:
        engine = EndpointEngine(f"{server.url}#m", Ledger(), concurrency=1, **QUICK)
        whole = system("no-change", Digits(), engine, {"propose.problems": "4", "propose.n": "4", "gate.every": "0"})
        step = next(whole.run(Budget(1, "steps")))[0]
    assert step.metrics["errors"] == 4
    assert step.metrics["trajectories"] == 12
    assert step.metrics["outcome"] == 1  # what failed is no wrong answer
    assert list(whole.errors.values()) == [4]


# --- streams that nobody asked for ---


def pieces(api: str, *texts: str, finish: str | None = "stop", usage: bool = True) -> list[dict[str, Any]]:
    """The chunks of a reply with these texts."""
    forms = [{"delta": {"content": t}} if api == "chat" else {"text": t} for t in texts]
    last = {"delta": {}} if api == "chat" else {"text": ""}
    parts = [f | {"index": 0, "finish_reason": None} for f in forms] + [last | {"index": 0, "finish_reason": finish}]
    kind = "chat.completion.chunk" if api == "chat" else "text_completion"
    chunks: list[dict[str, Any]] = [{"object": kind, "choices": [p], "usage": None} for p in parts]
    return chunks + [{"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5}}] * usage


@pytest.mark.parametrize("api", ["chat", "completions"])
@pytest.mark.parametrize("usage", [True, False])
def test_a_stream_that_nobody_asked_for_is_read(api: str, usage: bool) -> None:
    log = Log()
    with Scripted(lambda a: a.stream(pieces(api, "4", "2 ☃", usage=usage))) as server:
        path = "/completions" if api == "completions" else ""
        engine = EndpointEngine(f"{server.url}{path}#m", Ledger(), prices=(1.0, 2.0), replay=log, **QUICK)
        branch = finish(engine, prompts("tell me"))[0]
        assert len(server.bodies) == 1
        assert "stream" not in server.bodies[0]
    assert (branch.error, branch.stop) == (None, "end")
    assert TextFormat().decode(branch.tokens[branch.start :]) == "42 ☃"
    spent = engine.ledger.spent["method"]
    prefilled, sampled = (11, 5) if usage else (guess("tell me"), guess("42 ☃"))
    assert (spent["model_calls"], spent["prefilled"], spent["sampled"]) == (1, prefilled, sampled)
    assert spent["money"] == pytest.approx((prefilled + 2 * sampled) / 1e6)
    assert engine.estimated == (not usage)
    assert branch.info["completion_tokens"] == sampled
    assert sum("reply" in paid for paid in log.replies.values()) == 1  # and it can be replayed


def test_a_stream_that_breaks_off_is_tried_again_and_paid() -> None:
    cut = pieces("chat", "one or two", finish=None, usage=False)
    branch, engine, server = one(failing(3, lambda a: a.stream(cut, end="")))  # more often than useless replies are
    assert TextFormat().decode(branch.tokens[branch.start :]) == "at last"
    assert len(server.bodies) == engine.ledger.of("model_calls") == 4
    assert engine.ledger.of("sampled") == 3 * guess("one or two") + 3
    assert engine.estimated == engine.retries == 3
    branch, engine, _ = one(lambda a: a.stream(cut, end=""), attempts=2)
    assert branch.error == "endpoint: the stream breaks off before the end of the reply"
    assert engine.ledger.of("model_calls") == 2


def test_an_error_in_a_stream_is_told_like_an_error_reply() -> None:
    busy, bad = ({"error": {"message": f"it is {code}", "code": code}} for code in (503, 400))
    branch, engine, server = one(failing(2, lambda a: a.stream([busy])))
    assert branch.error is None
    assert (len(server.bodies), engine.ledger.of("model_calls")) == (3, 1)  # a refusal costs nothing
    branch, engine, server = one(lambda a: a.stream([bad]))
    assert branch.error == "endpoint: status 400: it is 400"
    assert (len(server.bodies), engine.ledger.of("model_calls")) == (1, 0)
    with pytest.raises(UserError, match=r"refuses the key .no."):
        one(lambda a: a.stream([{"error": {"message": "no", "code": 401}}]))
    begun = pieces("chat", "abcd", finish=None, usage=False)
    branch, engine, _ = one(lambda a: a.stream([*begun, busy]), attempts=2)
    assert branch.error == "endpoint: the stream breaks off with status 503: it is 503"
    assert (engine.ledger.of("model_calls"), engine.ledger.of("sampled")) == (2, 2)


def test_a_key_that_comes_in_pieces_is_blotted_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOLVENT_API_KEY", KEY)
    branch, _, _ = one(lambda a: a.stream(pieces("chat", "it is ", KEY[:7], KEY[7:])))
    assert TextFormat().decode(branch.tokens[branch.start :]) == "it is ***"


def test_a_reply_in_one_piece_is_read_whatever_it_calls_itself() -> None:
    branch, _, _ = one(lambda a: a.say(chat_reply("fine"), headers={"Content-Type": "text/event-stream"}))
    assert TextFormat().decode(branch.tokens[branch.start :]) == "fine"


# --- how many, how fast, how often ---


def test_concurrency_has_a_cap() -> None:
    def act(a: Answering) -> None:
        time.sleep(0.05)
        a.say(chat_reply("x"))

    with Scripted(act) as server:
        finish(EndpointEngine(f"{server.url}#m", Ledger(), concurrency=3), prompts(*"abcdefghi"))
        assert server.most == 3


def test_requests_are_spread_below_the_rate_limit() -> None:
    with Scripted(lambda a: a.say(chat_reply("x"))) as server:
        engine = EndpointEngine(f"{server.url}#m", Ledger(), requests_per_minute=1200)
        finish(engine, prompts(*"abcdef"))
        assert server.times[-1] - server.times[0] >= 5 * 0.05 - 0.02
    pace = Pace(tokens=600)
    assert [pace.reserve(20, 0.0) for _ in range(3)] == [0, 2, 4]
    pace.pause(10, 0.0)
    assert pace.reserve(1, 0.0) == 10


class Log:
    """A log of paid replies in memory."""

    def __init__(self) -> None:
        self.replies: dict[str, Any] = {}
        self.thread = threading.get_ident()

    def get(self, key: str, /) -> Mapping[str, Any] | None:
        return self.replies.get(key)

    def record(self, key: str, reply: Mapping[str, Any], /) -> None:
        assert threading.get_ident() == self.thread
        assert key not in self.replies
        self.replies[key] = json.loads(json.dumps(reply))


def test_a_run_replays_from_its_log_when_the_endpoint_is_gone() -> None:
    log = Log()
    few = {"propose.problems": "3", "propose.n": "2", "gate.every": "1", "gate.problems": "4"}

    def run(address: str) -> tuple[list[Any], dict[str, float]]:
        engine = EndpointEngine(f"{address}#toy", Ledger(), prices=(0.15, 0.6), replay=log, attempts=1)
        whole = system("no-change", Digits(), engine, few)
        found = [
            (t.uid, t.tokens.tolist(), t.error, t.score)
            for steps in whole.run(Budget(2, "steps"))
            for g in steps[0].groups
            for t in g.trajectories
        ]
        return found, {k: v for k, v in engine.ledger.spent["method"].items() if "seconds" not in k}

    with serving(create_app(POLICY, LocalEngine(POLICY, Ledger()), "toy")) as address:
        first, spent = run(address)
        paid = len(log.replies)
        assert paid == spent["model_calls"] + 1  # and the list of models
    again, same = run(address)
    assert len(log.replies) == paid
    assert again == first
    assert same == spent


def test_an_interrupt_ends_the_wait(request: pytest.FixtureRequest) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    def act(a: Answering) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(3)

    with Scripted(act) as server:
        engine = EndpointEngine(f"{server.url}#m", Ledger())
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            finish(engine, prompts("a"))
        assert time.monotonic() - start < 2


def test_seeds_follow_branch_and_position() -> None:
    with Scripted(lambda a: a.say({"choices": [{"text": "ab", "finish_reason": "length"}]})) as server:
        engine = EndpointEngine(f"{server.url}/completions#m", Ledger())
        tree = engine.start(prompts("x", "x"), ACTORS, Sampling(), [6, 6])
        while tree.live:
            tree.advance(2)
        seeds = [b["seed"] for b in server.bodies]
        assert len(set(seeds)) == 6
        assert all(0 <= s < 2**31 for s in seeds)
        again = engine.start(prompts("x", "x"), ACTORS, Sampling(), [6, 6])
        again.advance(2)
        assert {b["seed"] for b in server.bodies[6:]} == {b["seed"] for b in server.bodies[:2]}


# --- pieces ---


def test_half_a_surrogate_pair_is_replaced_where_it_comes_in() -> None:
    with Scripted(lambda a: a.say(chat_reply("x\ud800"))) as server:
        engine = EndpointEngine(f"{server.url}#m", Ledger())
        tree = engine.start(prompts("a"), ACTORS, Sampling(hold=True), [50])
        tree.advance()
        tree.append(tree.branches[0], TextFormat().reply("go on"))
        tree.advance()
        assert server.bodies[1]["messages"][1] == {"role": "assistant", "content": "x?"}


def test_spread_puts_logprobs_at_first_characters() -> None:
    snow = "☃".encode()
    made = spread("a☃b", [(b"a", -1.0), (snow[:1], -2.0), (snow[1:], -0.5), (b"b", -0.25), (b"<end>", -9.0)])
    assert made is not None
    assert made.tolist() == [-1.0, -2.5, -0.25]
    assert spread("abc", [(b"ab", -1.0)]) is None
    assert spread("abc", [(b"ax", -1.0), (b"c", -1.0)]) is None
    cut = spread("ab", [(b"a", -1.0), (b"bcd", -2.0)])
    assert cut is not None
    assert math.isclose(cut.sum(), -3.0)


def test_text_format_reads_back_what_it_wrote() -> None:
    format = TextFormat()
    messages = [
        Message("system", "be brief"),
        Message("user", "hi \u2603 \ud800"),
        Message("assistant", ""),
        Message("tool", "5"),
    ]
    tokens = format.prompt(messages)
    assert format.messages(tokens) == [*messages, Message("assistant", "")]
    assert format.decode(tokens) == "be briefhi \u2603 \ud8005"
    assert format.messages([*tokens, *format.encode("x"), *format.reply("r")])[-3:] == [
        Message("assistant", "x"),
        Message("tool", "r"),
        Message("assistant", ""),
    ]
    with pytest.raises(UserError, match="no role `wizard`"):
        format.prompt([Message("wizard", "x")])


def test_a_paused_episode_goes_on_where_it_stopped(url: str) -> None:
    engine = EndpointEngine(f"{url}/completions#toy", Ledger())
    whole = finish(engine, prompts("12+1="), limit=12, temperature=0)[0]
    tree = engine.start(prompts("12+1="), ACTORS, Sampling(temperature=0), [12])
    tree.advance(5)
    half = tree.branches[0]
    paused = Trajectory(
        half.uid,
        Problem("k", (), {}),
        half.tokens,
        half.mask,
        half.logprob,
        segments=(Segment("prompt", 0, half.start), *half.segments[1:]),
        info=dict(half.info),
    )
    rest = finish(engine, [paused], limit=12, temperature=0)[0]
    assert rest.tokens.tolist() == whole.tokens.tolist()
    assert rest.segments == whole.segments
    assert rest.info["completion_tokens"] == whole.info["completion_tokens"]


def test_a_key_is_taken_out_of_a_reply_before_the_reply_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOLVENT_API_KEY", "evkey-123456789")
    assert "evkey" not in short("x" * 185 + " evkey-123456789")
