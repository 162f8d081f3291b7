"""Real servers on the loopback for tests: our own application, and one that misbehaves by script."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import uvicorn
from starlette.applications import Starlette

from evolvent.serve.app import bind


@contextlib.contextmanager
def serving(app: Starlette) -> Iterator[str]:
    """The application behind a free port; its base address, up to /v1."""
    listening = bind(port=0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


Act = Callable[["Answering"], None]


class Answering(BaseHTTPRequestHandler):
    """One request under way. A script reads `body` and calls `say`, `raw` or nothing at all."""

    protocol_version = "HTTP/1.1"
    body: dict[str, Any]

    def do_GET(self) -> None:
        """Lists of models have an answer of their own."""
        self.server.models(self)  # type: ignore[attr-defined]

    def do_POST(self) -> None:
        """Everything else is the script's."""
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        scripted: Scripted = self.server.owner  # type: ignore[attr-defined]
        with scripted.lock:
            scripted.bodies.append(self.body)
            scripted.headers.append(dict(self.headers))
            scripted.times.append(time.monotonic())
            scripted.under_way += 1
            scripted.most = max(scripted.most, scripted.under_way)
        try:
            scripted.act(self)
        finally:
            with scripted.lock:
                scripted.under_way -= 1

    def say(self, data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """A whole reply; data that is no text is sent as JSON."""
        text = (data if isinstance(data, str) else json.dumps(data)).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        with contextlib.suppress(OSError):  # the client may have gone
            self.wfile.write(text)

    def stream(self, chunks: Iterable[Any], end: str = "data: [DONE]\n\n") -> None:
        """A reply in server-sent events; the connection's end is its end, as where nobody knows its length."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        with contextlib.suppress(OSError):
            for event in [*(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), end]:
                self.wfile.write(event.encode())
                self.wfile.flush()

    def hang_up(self, after: bytes = b"") -> None:
        """Begin a reply, send some of it, and close the connection."""
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(after)
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Quiet."""


def asking(mark: str, verdict: str, write: Callable[[], str]) -> tuple[Act, list[str]]:
    """A script for a model that writes, and is asked for its verdict by prompts that have a mark in them; and these
    prompts, as they come. The verdict `error` is a request that fails."""
    asked: list[str] = []

    def act(a: Answering) -> None:
        prompt = a.body["messages"][0]["content"]
        if mark not in prompt:
            a.say(chat_reply(write()))
            return
        asked.append(prompt)
        if verdict == "error":
            a.say({"error": "no"}, status=400)
        else:
            a.say(chat_reply(verdict))

    return act, asked


class Scripted:
    """A server whose POSTs are answered by `act`; `bodies`, `headers` and `times` are what arrived."""

    def __init__(self, act: Act, models: Act | None = None) -> None:
        self.act = act
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.lock, self.under_way, self.most = threading.Lock(), 0, 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.server.daemon_threads = True
        self.server.owner = self  # type: ignore[attr-defined]
        self.server.models = models or (lambda a: a.say({"data": [{"id": "m"}]}))  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def chat_reply(text: Any, finish: str = "stop", prompt: int = 7, completion: int = 3, **choice: Any) -> dict[str, Any]:
    """A chat completion."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    message = {"role": "assistant", "content": text}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish} | choice], "usage": usage}
