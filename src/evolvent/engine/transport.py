"""Requests to an OpenAI-compatible service: concurrency, pacing, retries, and what was paid.

Everything that can go wrong with one request ends in an `Outcome` with an error; what no request can survive (a
refused key, an address that leads nowhere, an empty account) is a `UserError`. Paid replies can be recorded and read
back instead of being paid for again.
"""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

import httpx

from evolvent.core.errors import UserError
from evolvent.core.random import digest, stream
from evolvent.core.untrusted import read_json
from evolvent.engine.events import Broken, is_stream, whole
from evolvent.engine.reply import body_text, counts, guess, message, reply_text, retry_after, short

T = TypeVar("T")
Read = Callable[[Mapping[str, Any]], object]  # of a reply; raises a `ValueError` where it holds no answer
TOO_LONG = "; serve the model with a longer context, or ask for less: shorter prompts, a lower rollout.max_tokens"
LONG = 10.0  # seconds of a pause that is told of
USELESS = 3  # replies without an answer that are paid for, before a request is given up
AGAIN = {408, 409, 425, 429, 500, 502, 503, 504, 529}  # statuses that another attempt may cure


def too_long(status: int, text: str) -> bool:
    """Whether an endpoint refuses a request since it does not fit into the model's context, in the words of OpenAI."""
    return status == 400 and ("context_length_exceeded" in text or "maximum context length" in text)


class Replay(Protocol):
    """A log of paid replies, by the hash of their request. Values are plain data for JSON.

    Both are called in the thread that called the engine, `record` as soon as a reply has come. What failed is not
    recorded: a run that goes on later asks again.
    """

    def get(self, key: str, /) -> Mapping[str, Any] | None: ...
    def record(self, key: str, reply: Mapping[str, Any], /) -> None: ...


class Secret:
    """A key that no print, log or traceback shows."""

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def reveal(self) -> str:
        """The key itself."""
        return self._value

    def scrub(self, text: str) -> str:
        """The text with every occurrence of the key blotted out."""
        return text.replace(self._value, "***") if self._value else text


class Bearer(httpx.Auth):
    """Puts the key into the request just before it is sent."""

    def __init__(self, secret: Secret) -> None:
        self.secret = secret

    def auth_flow(self, request: httpx.Request) -> Any:
        """See httpx."""
        if key := self.secret.reveal():
            request.headers["Authorization"] = f"Bearer {key}"
        yield request


@dataclass
class Outcome:
    """What came of one request: the reply or why there is none, and what was paid, failed attempts included.

    prefilled, sampled  tokens as the service counts them; `estimated` counts replies that did not say
    """

    reply: dict[str, Any] | None = None
    error: str | None = None
    calls: int = 0
    prefilled: int = 0
    sampled: int = 0
    estimated: int = 0
    retries: int = 0

    def charge(self, body: Mapping[str, Any], text: str) -> dict[str, Any] | None:
        """Count one answered attempt; the JSON object that it holds, if it does."""
        try:
            reply = read_json(text)
        except ValueError:
            reply = None
        reply = reply if isinstance(reply, dict) else None
        self.calls += 1
        if (usage := counts(reply)) is not None:
            self.prefilled += usage[0]
            self.sampled += usage[1]
        else:
            self.prefilled += guess(body_text(body))
            self.sampled += guess(reply_text(reply)) if reply is not None else guess(text)
            self.estimated += 1
        return reply


@dataclass
class Pace:
    """Spreads requests evenly over time, so that no more than so many requests and tokens a minute are sent."""

    requests: float | None = None
    tokens: float | None = None
    free: float = field(default=0.0, init=False)  # when the next request may go

    def reserve(self, tokens: int, now: float) -> float:
        """Seconds to wait before a request of about so many tokens may be sent."""
        at = max(now, self.free)
        spans = [60 / self.requests if self.requests else 0.0, tokens * 60 / self.tokens if self.tokens else 0.0]
        self.free = at + max(spans)
        return at - now

    def pause(self, seconds: float, now: float) -> None:
        """Nobody sends for so long."""
        self.free = max(self.free, now + seconds)


class Background:
    """An event loop in a thread of its own, so that waiting works in scripts and notebooks alike."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None

    def run(self, work: Coroutine[Any, Any, T], news: queue.SimpleQueue[Any] | None = None) -> T:
        """Wait for a coroutine, calling here what it puts into `news`; an interrupt cancels it."""
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            threading.Thread(target=self.loop.run_forever, name="endpoint", daemon=True).start()
        news = news or queue.SimpleQueue()
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        future.add_done_callback(lambda _: news.put(None))
        try:
            while (call := news.get()) is not None:
                call()
            return future.result()
        except BaseException:
            future.cancel()
            while not news.empty():
                if (call := news.get()) is not None:
                    call()
            raise

    def close(self) -> None:
        """End the thread."""
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.loop = None


class Transport:
    """Sends requests to `url`.

    concurrency  requests under way at once
    timeout      seconds for one reply, from sending to its last byte
    attempts     how often a request is sent before it is given up
    backoff      seconds before the second attempt; doubled each time, times a draw in [0.5, 1) from (seed, request)
    """

    def __init__(
        self,
        url: str,
        secret: Secret,
        *,
        concurrency: int = 16,
        timeout: float = 120.0,
        attempts: int = 8,
        backoff: float = 0.5,
        pace: Pace | None = None,
        seed: int = 0,
        replay: Replay | None = None,
    ) -> None:
        for name, value in (("concurrency", concurrency), ("attempts", attempts)):
            if value < 1:
                raise UserError(f"an endpoint's {name} must be at least 1, got {value}")
        if not timeout > 0:
            raise UserError(f"an endpoint's timeout must be above 0 seconds, got {timeout}")
        self.url, self.secret, self.concurrency, self.timeout = url, secret, concurrency, timeout
        self.attempts, self.backoff, self.pace, self.seed, self.replay = attempts, backoff, pace or Pace(), seed, replay
        self.lost = 0  # requests in a row that were given up
        self.why: str | None = None  # of the latest of these
        self.say: Callable[[str], None] = lambda line: None  # of long pauses, in the thread of whoever waits
        self._told = 0.0  # until when it was said to wait
        self._background = Background()
        self._client: httpx.AsyncClient | None = None

    def __repr__(self) -> str:
        return f"Transport({self.url})"

    def close(self) -> None:
        """Close connections and the thread."""
        if self._client is not None:
            self._background.run(self._client.aclose())
            self._client = None
        self._background.close()

    # --- what engines call ---

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of one GET, tried once; if nobody answers, those of the log, else `UserError`."""

        async def work() -> tuple[int, str]:
            status, _, text = await self._once("GET", path, None)
            return status, text

        key = self.key(path, {})
        seen = self.replay.get(key) if self.replay is not None else None
        try:
            status, text = self._background.run(work())
        except (httpx.RequestError, TimeoutError) as reason:
            if seen is not None:
                return int(seen["status"]), str(seen["text"])
            raise UserError(
                f"no answer from {self.url} ({self.reason(reason)}): is the server running, and is this its address?"
            ) from None
        if self.replay is not None and seen is None:
            self.replay.record(key, {"status": status, "text": text})
        return status, text

    def post_all(
        self,
        path: str,
        bodies: Sequence[Mapping[str, Any]],
        read: Read = lambda reply: None,
    ) -> tuple[list[Outcome | None], UserError | None]:
        """Outcomes in the order of the bodies; replies that were paid before come from the log.

        What `read` refuses is asked for again, some times, and not recorded.

        With them comes the error that no request can survive, if there was one; what was then under way is None.
        """
        keys = [self.key(path, body) for body in bodies]
        outcomes: list[Outcome | None] = [None] * len(bodies)
        if self.replay is not None:
            for i, key in enumerate(keys):
                if (seen := self.replay.get(key)) is not None:
                    outcomes[i] = Outcome(**seen)
        todo = [i for i, outcome in enumerate(outcomes) if outcome is None]
        news: queue.SimpleQueue[Any] = queue.SimpleQueue()

        async def work() -> None:
            gate = asyncio.Semaphore(self.concurrency)

            async def one(i: int) -> None:
                async with gate:
                    outcome = outcomes[i] = await self._post(path, bodies[i], keys[i], read, news)
                if self.replay is not None and outcome.reply is not None:  # at once, but in the thread of whoever waits
                    news.put(partial(self.replay.record, keys[i], asdict(outcome)))

            async with asyncio.TaskGroup() as group:
                for i in todo:
                    group.create_task(one(i))

        self.lost = 0
        try:
            if todo:
                self._background.run(work(), news)
        except BaseExceptionGroup as group:
            found, other = group.split(UserError)
            if found is None or other is not None:
                raise
            reason: BaseException = found
            while isinstance(reason, BaseExceptionGroup):
                reason = reason.exceptions[0]
            return outcomes, UserError(str(reason))
        return outcomes, None

    def key(self, path: str, body: Mapping[str, Any]) -> str:
        """Hash of a request; the same in every run that would send it."""
        return digest(self.url, path, json.dumps(body, sort_keys=True)).hex()

    # --- one request ---

    async def _once(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[int, httpx.Headers, str]:
        if self._client is None:
            local = httpx.URL(self.url).host in ("localhost", "127.0.0.1", "::1")
            self._client = httpx.AsyncClient(
                auth=Bearer(self.secret),
                timeout=httpx.Timeout(self.timeout, connect=min(10.0, self.timeout), pool=None),
                limits=httpx.Limits(max_connections=self.concurrency, max_keepalive_connections=self.concurrency),
                trust_env=not local,
            )
        content = None if body is None else json.dumps(body).encode()  # ASCII: a text may hold half a surrogate pair
        headers = {"Content-Type": "application/json"} if content else None
        async with asyncio.timeout(self.timeout):
            answer = await self._client.request(method, self.url + path, content=content, headers=headers)
        return answer.status_code, answer.headers, self.secret.scrub(answer.text)

    async def _post(
        self, path: str, body: Mapping[str, Any], key: str, read: Read, news: queue.SimpleQueue[Any]
    ) -> Outcome:
        """One request, with as many attempts as it takes or may take."""
        made, useless = Outcome(), 0
        rng = stream(self.seed, "retry", key)
        for attempt in range(self.attempts):
            if self.lost >= self.concurrency:
                why = f"the last {self.lost} requests to {self.url} all failed: {self.why}"
                made.error = made.error or f"not sent, since {why}"
                return made
            await asyncio.sleep(self.pace.reserve(self._size(body), now()))
            made.retries = attempt
            wait = self.backoff * 2**attempt * (0.5 + 0.5 * rng.random())
            try:
                status, headers, text = await self._once("POST", path, body)
                if 200 <= status < 300 and is_stream(headers, text):
                    status, text = whole(text)
                    text = self.secret.scrub(text)  # again: a key may have come in pieces
            except Broken as reason:
                made.charge(body, self.secret.scrub(reason.said))
                made.error = self.reason(reason)
            except (httpx.RequestError, TimeoutError) as reason:
                if not isinstance(reason, httpx.ConnectError | httpx.ConnectTimeout):
                    made.charge(body, "")  # it was sent, so it may well be billed
                made.error = self.reason(reason)
            else:
                if 200 <= status < 300:
                    self.lost = 0
                    reply, useless = made.charge(body, text), useless + 1
                    made.error = self._useless(reply, text, read)
                    if made.error is None or useless == USELESS:
                        made.reply = reply if made.error is None else None
                        return made
                else:
                    made.error = f"status {status}: {message(text)}" + TOO_LONG * too_long(status, text)
                    self._fatal(status, text)
                    if status not in AGAIN:
                        self.lost = 0
                        return made
                    if (asked := retry_after(headers)) is not None:
                        wait = max(wait, asked)
                        if attempt + 1 < self.attempts:
                            self.pace.pause(asked, now())
                            if asked >= LONG and now() + asked > self._told + 1:
                                self._told = now() + asked
                                news.put(partial(self.say, f"{self.url} asks to wait {asked:.0f} s (status {status})"))
            if attempt + 1 < self.attempts:
                await asyncio.sleep(wait)
        self.lost, self.why = self.lost + (not useless), made.error
        return made

    @staticmethod
    def _useless(reply: Mapping[str, Any] | None, text: str, read: Read) -> str | None:
        """Why a reply holds no answer; None for one that does."""
        if reply is None:
            return f"the reply is not a JSON object: {short(text)}"
        try:
            read(reply)
        except ValueError as reason:
            return str(reason)
        return None

    @staticmethod
    def _size(body: Mapping[str, Any]) -> int:
        """Tokens that a request may take at most, roughly."""
        return guess(body_text(body)) + int(body.get("max_tokens") or body.get("max_completion_tokens") or 0)

    def _fatal(self, status: int, text: str) -> None:
        """Raise `UserError` for answers that every request would get."""
        said = message(text)
        if status == 401:
            raise UserError(
                f"{self.url} refuses the key ({said}); set EVOLVENT_API_KEY, or name the variable that holds it"
            )
        if status in (404, 405):
            raise UserError(
                f"{self.url} has no such address or model ({said}); the address usually ends in /v1, and "
                "`#name` at its end names the model"
            )
        if status == 402 or "insufficient_quota" in text:
            raise UserError(f"the account at {self.url} has run out of credit ({said})")
        if 300 <= status < 400:
            raise UserError(f"{self.url} redirects elsewhere (status {status}); give the address that it redirects to")

    def reason(self, error: BaseException) -> str:
        """A transport error in words, without the key."""
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            return f"no reply within {self.timeout:g} s"
        return self.secret.scrub(str(error) or type(error).__name__)


now: Callable[[], float] = time.monotonic
