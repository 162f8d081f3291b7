"""An engine for any OpenAI-compatible endpoint: the model, its tokenizer and its weights are elsewhere.

A branch is a conversation in text (`engine.text`), an advance is one request for each live branch. What it can do
depends on the API:

    .../v1#model                chat completions. A turn is answered whole, whatever `k` an advance asks for. A tool's
                                reply goes out as a user message. A text that has begun cannot be continued: no forks,
                                hints or paused episodes in the middle of a turn.
    .../v1/completions#model    text completions. Anything can be continued, so branches fork and stop in mid-turn;
                                each time the service reads the whole prefix again, and cuts it into tokens anew.

There are no tokens of ours and no gradients: such runs are for recipes that do not train. With `logprobs=True` a
token's log-prob, as the service reports it, stands at the token's first character and the others have 0, so that
sums over a turn are right (the end-of-turn token is not among them); else the stream is nan where the model wrote.
Services report log-probs at temperature 1, before any truncation, so other temperatures are refused then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from evolvent.core.errors import UserError, unknown
from evolvent.core.ledger import Ledger
from evolvent.core.random import identifier
from evolvent.core.records import Trajectory
from evolvent.core.untrusted import read_json
from evolvent.engine.base import Actor, Sampling
from evolvent.engine.reply import read_choice, read_usage, short, spread
from evolvent.engine.requests import Answer, RequestBranch, RequestTree
from evolvent.engine.text import FixedPolicy, TextFormat
from evolvent.engine.transport import Outcome, Pace, Replay, Secret, Transport

OPENAI = "https://api.openai.com/v1"
SEEDS = 2**31 - 1  # what every service accepts as a seed
NAMES_STOP = {"vllm", "sglang", "evolvent"}  # servers whose replies say which stop string ended them
EXAMPLES = "http://127.0.0.1:8000/v1#name, https://host/v1/completions#name or openai:name"


@dataclass(frozen=True)
class Endpoint:
    """Where a model is: the base address (up to /v1), its name there (empty: the only one), and which API to use."""

    url: str
    model: str
    api: str = "chat"
    key_names: tuple[str, ...] = ("EVOLVENT_API_KEY",)

    @property
    def path(self) -> str:
        """Of the requests, below the base address."""
        return "/chat/completions" if self.api == "chat" else "/completions"


def parse_endpoint(spec: str) -> Endpoint:
    """`http(s)://host:port/v1#model`, `.../v1/completions#model` or `openai:model`; `UserError` for anything else.

    OPENAI_API_KEY is only ever sent to OpenAI, or to where OPENAI_BASE_URL points for `openai:`.
    """
    kind, _, name = spec.partition(":")
    if kind == "openai":
        url, name = os.environ.get("OPENAI_BASE_URL") or OPENAI, name.strip()
        if not name:
            raise UserError(f"`{spec}` names no model; write for example openai:gpt-4.1-mini")
        return Endpoint(url.rstrip("/"), name, "chat", ("EVOLVENT_API_KEY", "OPENAI_API_KEY"))
    address, _, model = spec.partition("#")
    try:
        parts = urlsplit(address)
        host, user = parts.hostname, parts.username or parts.password
        _ = parts.port
    except ValueError:
        host = user = None
    if kind not in ("http", "https") or not host:
        raise UserError(f"`{spec}` is no address of an endpoint; write for example {EXAMPLES}")
    if user or parts.query:
        raise UserError(
            "an endpoint's address may hold no password, key or query; put the key into the environment variable "
            "EVOLVENT_API_KEY"
        )
    path, api = parts.path.rstrip("/"), "chat"
    for ending, which in (("/chat/completions", "chat"), ("/completions", "completions")):
        if path.endswith(ending):
            path, api = path.removesuffix(ending), which
            break
    keys = ("EVOLVENT_API_KEY", "OPENAI_API_KEY") if host == urlsplit(OPENAI).hostname else ("EVOLVENT_API_KEY",)
    return Endpoint(f"{kind}://{parts.netloc}{path}", model.strip(), api, keys)


def find_key(endpoint: Endpoint, variable: str | None = None) -> Secret:
    """The key from a named environment variable, or from the endpoint's usual ones; empty if there is none."""
    if variable is not None:
        if not os.environ.get(variable):
            raise UserError(f"the environment variable {variable} is not set; it should hold the endpoint's key")
        return Secret(os.environ[variable].strip())
    found = [os.environ[name].strip() for name in endpoint.key_names if os.environ.get(name)]
    return Secret(found[0] if found else "")


class EndpointEngine:
    """Rolls out the model behind an endpoint. `connect` checks address, key and model before anything is spent.

    prices      US dollars for a million prompt tokens and for a million completion tokens
    variable    environment variable that holds the key (None: EVOLVENT_API_KEY, and OPENAI_API_KEY for OpenAI)
    replay      log of paid replies: consulted before paying, told of each paid reply
    requests_per_minute, tokens_per_minute   limits of the service; requests are spread evenly below them

    The other settings are those of `Transport`. Requests carry a seed made from the branch's uid and position, also
    where the temperature is 0, so that no two requests of a run are the same and a replayed run asks the same ones.
    The ledger of a replayed run is that of the run that paid.
    """

    def __init__(
        self,
        endpoint: Endpoint | str,
        ledger: Ledger,
        *,
        seed: int = 0,
        logprobs: bool = False,
        prices: tuple[float, float] | None = None,
        variable: str | None = None,
        concurrency: int = 16,
        timeout: float = 120.0,
        attempts: int = 8,
        backoff: float = 0.5,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        replay: Replay | None = None,
    ) -> None:
        self.endpoint = parse_endpoint(endpoint) if isinstance(endpoint, str) else endpoint
        self.ledger, self.logprobs, self.prices, self.variable = ledger, logprobs, prices, variable
        self.transport = Transport(
            self.endpoint.url,
            find_key(self.endpoint, variable),
            concurrency=concurrency,
            timeout=timeout,
            attempts=attempts,
            backoff=backoff,
            pace=Pace(requests_per_minute, tokens_per_minute),
            seed=seed,
            replay=replay,
        )
        self.offers = frozenset(
            {"append"}
            | ({"fork"} if self.endpoint.api == "completions" else set())
            | ({"logprobs"} if logprobs else set())
        )
        self.model = self.endpoint.model
        self.context: int | None = None
        self.wording, self.names_stop, self.connected = "plain", False, False
        self.estimated = self.retries = 0  # replies without usage, and attempts after the first

    def __repr__(self) -> str:
        return f"EndpointEngine({self.endpoint.url}#{self.model})"

    def close(self) -> None:
        """Close connections."""
        self.transport.close()

    @property
    def policy(self) -> FixedPolicy:
        """What stands for the model in a run."""
        self.connect()
        return FixedPolicy(f"{self.endpoint.url}#{self.model}", TextFormat(self.wording), self.context)

    def connect(self) -> None:
        """Ask which models there are. `UserError` if nobody answers, the key is refused or the model is unknown."""
        if self.connected:
            return
        status, text = self.transport.get("/models")
        if status in (404, 405, 501) and self.model:
            self.connected = True  # a service without a list: the first request will tell
            return
        if status in (401, 403):
            name = self.variable or " or ".join(self.endpoint.key_names)
            given = "refuses the key" if self.transport.secret.reveal() else "wants a key"
            raise UserError(f"{self.endpoint.url} {given} (status {status}); set the environment variable {name}")
        if status != 200:
            busy = status == 429 or status >= 500
            remedy = "it is busy or broken; try again later" if busy else "an endpoint's address usually ends in /v1"
            raise UserError(f"{self.endpoint.url}/models answers with status {status} ({short(text)}); {remedy}")
        try:
            cards = {str(card["id"]): card for card in read_json(text)["data"]}
        except (ValueError, KeyError, TypeError):
            raise UserError(
                f"{self.endpoint.url}/models gives no list of models ({short(text)}); is this an OpenAI-compatible "
                "endpoint? its address usually ends in /v1"
            ) from None
        self._choose(cards)
        self.connected = True

    def _choose(self, cards: Mapping[str, Mapping[str, Any]]) -> None:
        if not cards:
            raise UserError(f"{self.endpoint.url} serves no model; load one there, then begin again")
        if not self.model and len(cards) == 1:
            self.model = next(iter(cards))
        if not self.model:
            listed = ", ".join(list(cards)[:10])
            raise UserError(f"{self.endpoint.url} has several models; put #name at the end of the address: {listed}")
        card = cards.get(self.model) or cards.get(f"{self.model}:latest")  # Ollama's way to name a default
        if card is None:
            listed = ", ".join(list(cards)[:10]) + (", ..." if len(cards) > 10 else "")
            raise unknown("model", self.model, cards, f"models at {self.endpoint.url}: {listed}")
        context = card.get("max_model_len")
        self.context = context if isinstance(context, int) else None
        self.names_stop = card.get("owned_by") in NAMES_STOP
        self.wording = str(card.get("evolvent_wording", "plain"))

    def start(
        self,
        stubs: Sequence[Trajectory],
        actors: Mapping[str, Actor],
        sampling: Sampling,
        limits: Sequence[int],
    ) -> EndpointTree:
        """See `engine.base.Engine`. `limits` are in the service's own tokens."""
        self.connect()
        asked = {
            "top_k": sampling.top_k > 0,
            "entropies": sampling.entropy,
            "alternatives": sampling.alternatives > 0,
            "low-rank changes": any(a.low is not None for a in actors.values()),
        }
        if missing := [name for name, wanted in asked.items() if wanted]:
            raise UserError(f"an endpoint offers no {' and no '.join(missing)}; choose a local model for that")
        if self.logprobs and (sampling.temperature not in (0, 1) or sampling.top_p < 1):
            raise UserError(
                "endpoints report log-probs at temperature 1; set rollout.temperature=1, or do without log-probs"
            )
        return EndpointTree(self, stubs, sampling, limits)

    def body(self, tokens: np.ndarray, uid: int, limit: int, sampling: Sampling) -> dict[str, Any]:
        """One request. `UserError` where the chat API cannot say it."""
        format = TextFormat(self.wording)
        made: dict[str, Any] = {"model": self.model}
        if self.endpoint.api == "chat":
            messages = format.messages(tokens)
            if messages[-1].role != "assistant" or messages[-1].content:
                raise UserError(
                    "a chat endpoint cannot continue a text that has begun (a hint, a fork, a paused episode); use "
                    f"its completions API: {self.endpoint.url}/completions#{self.model}"
                )
            as_user = {"tool": "user"}  # a tool message would need a native tool call before it
            made["messages"] = [{"role": as_user.get(m.role, m.role), "content": m.content} for m in messages[:-1]]
            made["logprobs"] = self.logprobs
        else:
            made["prompt"] = format.decode(tokens)
            made["logprobs"] = 0 if self.logprobs else None
        if not self.logprobs:
            del made["logprobs"]
        official = self.endpoint.url == OPENAI and self.endpoint.api == "chat"
        made["max_completion_tokens" if official else "max_tokens"] = limit
        made |= {"temperature": sampling.temperature, "seed": identifier(uid, len(tokens)) % SEEDS}
        if sampling.top_p < 1:
            made["top_p"] = sampling.top_p
        if self.names_stop and sampling.ends:
            made["stop"] = [chr(e) for e in sorted(sampling.ends)]
        return made


class EndpointTree(RequestTree):
    """Branches over an `EndpointEngine`."""

    def __init__(
        self, engine: EndpointEngine, stubs: Sequence[Trajectory], sampling: Sampling, limits: Sequence[int]
    ) -> None:
        self.engine = engine
        super().__init__(stubs, sampling, limits)

    def ask(self, branches: Sequence[RequestBranch], limits: Sequence[int]) -> list[Answer]:
        """See `RequestTree.ask`; everything paid is charged, also for replies that cannot be used."""
        engine = self.engine
        if engine.endpoint.api == "chat":  # a turn cannot be continued, so it is asked for whole
            limits = [b.limit - b.used for b in branches]
        bodies = [engine.body(b.tokens, b.uid, n, self.sampling) for b, n in zip(branches, limits, strict=True)]
        read = partial(read_choice, api=engine.endpoint.api)
        outcomes, fatal = engine.transport.post_all(engine.endpoint.path, bodies, read)
        for outcome in outcomes:
            if outcome is not None:
                self._charge(outcome)
        if fatal is not None:
            raise fatal
        return [self._answer(o, n) for o, n in zip(outcomes, limits, strict=True) if o is not None]

    def _charge(self, outcome: Outcome) -> None:
        prices = self.engine.prices or (0.0, 0.0)
        money = (outcome.prefilled * prices[0] + outcome.sampled * prices[1]) / 1e6
        self.engine.ledger.charge(
            model_calls=outcome.calls, prefilled=outcome.prefilled, sampled=outcome.sampled, money=money
        )
        self.engine.estimated += outcome.estimated
        self.engine.retries += outcome.retries

    def _answer(self, outcome: Outcome, limit: int) -> Answer:
        none = np.zeros(0, np.float32)

        def failed(problem: object) -> Answer:
            return Answer(none.astype(np.int32), none, 0, "error", f"endpoint: {problem}")

        if outcome.reply is None:
            return failed(outcome.error)
        try:
            choice = read_choice(outcome.reply, self.engine.endpoint.api)
        except ValueError as problem:  # in the log of an older run
            return failed(problem)
        text, ended = choice.text, choice.finish == "stop"
        used = read_usage(outcome.reply)
        if used is None:
            used = limit if choice.finish == "length" else outcome.sampled
        if ended and len(choice.stopped_by) == 1 and ord(choice.stopped_by) in self.sampling.ends:
            text += choice.stopped_by
        cut = next((i + 1 for i, c in enumerate(text) if ord(c) in self.sampling.ends), None)
        if cut is not None:  # what follows the end of the turn was not asked for
            text, ended = text[:cut], True
        logprob = spread(text, choice.pairs) if self.engine.logprobs else np.full(len(text), np.nan, np.float32)
        if logprob is None:
            return failed("no log-probs came back, or not those of the text; do without log-probs")
        # cut short with fewer tokens than asked for: the model's context is full
        full = self.engine.endpoint.api == "chat" or used < limit
        stop = "end" if ended else "length" if full else ""
        info = {"prompt_tokens": outcome.prefilled, "completion_tokens": max(used, 1)}
        return Answer(np.array([ord(c) for c in text], np.int32), logprob, max(used, 1), stop, None, info)
