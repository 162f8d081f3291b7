"""An OpenAI-compatible server for one model: chat and text completions, streamed or whole.

    app = create_app(policy, engine, name="tiny")
    serve(app, port=8000)

Seed models have no chat format of their own: the messages of a conversation are read one after the other. A choice's
tokens are a function of its seed and its place; without a seed, of the server's own and a counter.
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import socket
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from evolvent.core.errors import UserError, nearest
from evolvent.core.random import identifier
from evolvent.core.records import Message
from evolvent.engine.base import Actor, Engine, Sampling
from evolvent.models.policy import Policy
from evolvent.serve.replies import Chat, Completion, Reply, sse
from evolvent.serve.schema import ApiError, ChatRequest, CompletionRequest, Generation, parse
from evolvent.serve.worker import Event, Job, Worker

DONE = b"data: [DONE]\n\n"


class Server:
    """The handlers, and what they share."""

    def __init__(self, policy: Policy, engine: Engine, name: str, key: str | None, seed: int, worker: Worker) -> None:
        self.policy, self.engine, self.name, self.seed, self.worker = policy, engine, name, seed, worker
        self.format, self._key = policy.format, key
        self.created = int(time.time())
        self.counter: Iterator[int] = itertools.count()

    # --- what is there ---

    def card(self, name: str) -> dict[str, Any]:
        """A model as the list shows it; context and wording beside OpenAI's fields."""
        return {
            "id": name,
            "object": "model",
            "created": self.created,
            "owned_by": "evolvent",
            "max_model_len": self.policy.context,
            "evolvent_wording": self.format.wording,
        }

    async def models(self, request: Request) -> Response:
        """GET /v1/models."""
        self._admit(request)
        return JSONResponse({"object": "list", "data": [self.card(name) for name in self.worker.actors]})

    async def model(self, request: Request) -> Response:
        """GET /v1/models/NAME."""
        self._admit(request)
        return JSONResponse(self.card(self._known(request.path_params["name"])))

    async def health(self, request: Request) -> Response:
        """GET /health: 200 while the model's thread runs."""
        alive = self.worker.alive
        state = {"status": "ok" if alive else "stopped", "model": self.name, "waiting": self.worker.queued}
        return JSONResponse(state, 200 if alive else 503)

    def _admit(self, request: Request) -> None:
        given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if self._key is not None and not hmac.compare_digest(given.encode(), self._key.encode()):
            raise ApiError(401, "Incorrect API key provided", code="invalid_api_key")

    def _known(self, name: str) -> str:
        if name not in self.worker.actors:
            near = nearest(name, self.worker.actors)
            there = ", ".join(self.worker.actors)
            raise ApiError(
                404, f"The model `{name}` does not exist{near} (there is {there})", "model", "model_not_found"
            )
        return name

    # --- completions ---

    async def chat(self, request: Request) -> Response:
        """POST /v1/chat/completions."""
        self._admit(request)
        asked = parse(ChatRequest, await request.body())
        messages = [Message("system" if m.role == "developer" else m.role, m.text) for m in asked.messages]
        prompt = self._tokens(lambda: self.format.prompt(messages), "messages")
        return await self._answer(request, asked, [prompt], Chat)

    async def complete(self, request: Request) -> Response:
        """POST /v1/completions."""
        self._admit(request)
        asked = parse(CompletionRequest, await request.body())
        if asked.best_of not in (None, asked.n or 1):
            raise ApiError(400, "best_of is not supported", "best_of")
        if asked.echo and asked.logprobs is not None:
            raise ApiError(400, "echo together with logprobs is not supported", "echo")
        if not asked.prompts:
            raise ApiError(400, "prompt: there is none", "prompt")
        prompts = [self._tokens(lambda p=p: self._raw(p), "prompt") for p in asked.prompts]
        return await self._answer(request, asked, prompts, Completion)

    def _raw(self, prompt: str | list[int]) -> list[int]:
        """Tokens of a text without a conversation's format, or the tokens themselves."""
        if isinstance(prompt, str):
            raw = getattr(self.format, "raw", None)  # chat formats; for the others a prompt is nothing but its text
            return raw(prompt) if raw else self.format.prompt([Message("user", prompt)])
        size = int(self.policy.config.get("vocab_size", 2**31))
        if not prompt or min(prompt) < 0 or max(prompt) >= size:
            raise ApiError(400, f"prompt: tokens must be from 0 to {size - 1}, at least one of them", "prompt")
        return prompt

    def _tokens(self, make: Any, param: str) -> np.ndarray:
        """A prompt's tokens, checked against the context; `param` is what the request calls it."""
        try:
            tokens = np.array(make(), np.int32)
        except UserError as reason:
            raise ApiError(400, str(reason), param) from None
        context = self.policy.context
        if len(tokens) >= context:
            raise ApiError(
                400,
                f"This model's maximum context length is {context} tokens, and the prompt has {len(tokens)}",
                param,
                "context_length_exceeded",
            )
        return tokens

    async def _answer(
        self, request: Request, asked: Generation, prompts: Sequence[np.ndarray], kind: type[Reply]
    ) -> Response:
        actor, number = self._known(asked.model), next(self.counter)
        if asked.stream_options is not None and not asked.stream:
            raise ApiError(400, "stream_options needs stream to be true", "stream_options")
        wanted = asked.alternatives  # type: ignore[attr-defined]
        if wanted and "alternatives" not in self.engine.offers:
            raise ApiError(400, "this model's engine reports no top alternatives", "top_logprobs")
        each = asked.n or 1
        root = ("seeded", asked.seed) if asked.seed is not None else ("request", self.seed, number)
        events: asyncio.Queue[Event] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def emit(event: Event) -> None:
            with suppress(RuntimeError):  # the server's loop has ended
                loop.call_soon_threadsafe(events.put_nowait, event)

        rows = [(prompt, identifier(0, *root, p, i)) for p, prompt in enumerate(prompts) for i in range(each)]
        job = Job(
            actor,
            [prompt for prompt, _ in rows],
            [uid for _, uid in rows],
            [min(asked.limit or self.policy.context, self.policy.context - len(p)) for p, _ in rows],  # type: ignore[attr-defined]
            Sampling(
                temperature=1.0 if asked.temperature is None else asked.temperature,
                top_p=1.0 if asked.top_p is None else asked.top_p,
                top_k=max(asked.top_k or 0, 0),
                ends=self.format.ends,
                alternatives=wanted or 0,
            ),
            asked.stops,
            wanted is not None,
            bool(asked.stream),
            emit,
        )
        if not self.worker.submit(job):
            raise ApiError(429, "too many requests are waiting; try again later", code="rate_limit_exceeded")
        echo = [self.format.decode(p) for p, _ in rows] if getattr(asked, "echo", False) else [""] * len(rows)
        usage = {"prompt_tokens": sum(len(p) for p in prompts)}
        reply = kind(f"{kind.prefix}-{number:08x}", asked.model, self.policy.version, echo, wanted is not None, usage)
        if asked.stream:
            options = asked.stream_options
            chunks = self._stream(job, events, reply, bool(options and options.include_usage))
            return StreamingResponse(chunks, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})
        gone = asyncio.ensure_future(disconnected(request))
        done = asyncio.ensure_future(self._collect(job, events, reply))
        try:
            await asyncio.wait({gone, done}, return_when=asyncio.FIRST_COMPLETED)
            return JSONResponse(done.result()) if done.done() else Response(status_code=499)
        finally:
            job.cancelled = True  # has no effect on one that is complete
            gone.cancel()
            done.cancel()

    async def _events(self, job: Job, events: asyncio.Queue[Event]) -> AsyncIterator[Event]:
        """News of a job until all its choices are complete; `ApiError` 500 if the engine failed."""
        left = len(job.uids)
        while left:
            event = await events.get()
            if event.error is not None:
                raise ApiError(500, event.error)
            left -= bool(event.finish)
            yield event

    async def _collect(self, job: Job, events: asyncio.Queue[Event], reply: Reply) -> dict[str, Any]:
        async for event in self._events(job, events):
            reply.add(event)
        return reply.whole()

    async def _stream(
        self, job: Job, events: asyncio.Queue[Event], reply: Reply, with_usage: bool
    ) -> AsyncIterator[bytes]:
        try:
            for chunk in reply.opening():
                yield sse(chunk, with_usage)
            async for event in self._events(job, events):
                for chunk in reply.chunks(event):
                    yield sse(chunk, with_usage)
            if with_usage:
                yield sse(reply.usage_chunk(), False)
        except ApiError as reason:  # the status has gone out already
            yield sse(reason.body(), False)
        finally:
            job.cancelled = True
        yield DONE


async def disconnected(request: Request) -> None:
    """Returns when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def api_error(request: Request, reason: Exception) -> Response:
    """Errors in OpenAI's form."""
    assert isinstance(reason, ApiError)
    headers = {"Retry-After": "1"} if reason.status == 429 else None
    return JSONResponse(reason.body(), reason.status, headers)


async def http_error(request: Request, reason: Exception) -> Response:
    """Unknown addresses and methods in OpenAI's form."""
    assert isinstance(reason, HTTPException)
    error = ApiError(reason.status_code, f"{reason.detail}: {request.method} {request.url.path}", code="unknown_url")
    return JSONResponse(error.body(), reason.status_code)


def create_app(
    policy: Policy, engine: Engine, name: str | None = None, *, key: str | None = None, seed: int = 0, **settings: int
) -> Starlette:
    """The application that serves `policy` on `engine`, and each of its adapters as `name:adapter`.

    key       if given, requests must carry it as a bearer token
    settings  of `Worker`: waves, rows, stride, waiting
    """
    name = name or policy.name or "model"
    actors = {name: Actor(name, policy.version)}
    for adapter in policy.adapters:
        actors[f"{name}:{adapter}"] = Actor(f"{name}:{adapter}", policy.version, policy.low(adapter))
    worker = Worker(engine, policy.format, actors, **settings)
    server = Server(policy, engine, name, key, seed, worker)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        worker.start()
        yield
        await asyncio.to_thread(worker.close)

    app = Starlette(
        routes=[
            Route("/health", server.health),
            Route("/v1/models", server.models),
            Route("/v1/models/{name:path}", server.model),
            Route("/v1/chat/completions", server.chat, methods=["POST"]),
            Route("/v1/completions", server.complete, methods=["POST"]),
        ],
        exception_handlers={ApiError: api_error, HTTPException: http_error},
        lifespan=lifespan,
    )
    app.state.worker = worker
    return app


def bind(host: str = "127.0.0.1", port: int = 8000) -> socket.socket:
    """A socket that listens there (port 0: any free one); `UserError` if it cannot be had."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as reason:
        why = str(reason.strerror).partition(" (while")[0]  # Python repeats the address
        raise UserError(f"cannot listen on {host}:{port} ({why}); choose another with --port") from None


def serve(app: Starlette, host: str = "127.0.0.1", port: int = 8000) -> None:
    """Serve until interrupted. Only this machine can reach 127.0.0.1; give a key before binding elsewhere."""
    with bind(host, port) as listening:
        serve_at(app, listening)


def serve_at(app: Starlette, listening: socket.socket) -> None:
    """Serve at a socket of `bind` until interrupted."""
    uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5)).run([listening])
