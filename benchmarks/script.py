"""A scripted model behind an OpenAI-compatible address: numbers its answers, writes nothing down, answers at once."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Look = Callable[[int], None]  # called before the answer of this number is given


def answer(i: int, prompt: str) -> str:
    """The i-th answer: a diff, a whole program, or for GEPA a new instruction."""
    x = f"X = {1 + 0.001 * (i + 1):.3f}"
    lines = re.findall(r"^X = .*$", prompt, re.MULTILINE)
    if not lines:
        return f"```\nNew instruction variant {i + 1}: answer with the number {i + 1}.\n```"
    name = f"<NAME>\nstep_{i}\n</NAME>\n<DESCRIPTION>\nscripted\n</DESCRIPTION>\n"
    if "<<<<<<< SEARCH" in prompt:
        return f"{name}<DIFF>\n<<<<<<< SEARCH\n{lines[-1]}\n=======\n{x}\n>>>>>>> REPLACE\n</DIFF>\n"
    program = f"# EVOLVE-BLOCK-START\n{x}\n# EVOLVE-BLOCK-END\ndef run():\n    return X\n"
    return f"{name}<CODE>\n```python\n{program}```\n</CODE>\n"


class Model(ThreadingHTTPServer):
    """The server: when each request came, and when its answer was given. Every `unusable`-th holds nothing of use."""

    def __init__(self, unusable: int = 0, look: Look = lambda i: None) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.unusable, self.look, self.lock = unusable, look, threading.Lock()
        self.asked: list[float] = []
        self.answered: dict[int, float] = {}
        self.address = f"http://127.0.0.1:{self.server_port}/v1"

    def reply(self, prompt: str, came: float) -> tuple[int, str]:
        """The number of the next answer, and the answer."""
        with self.lock:
            i = len(self.asked)
            self.asked.append(came)
        self.look(i)
        nothing = self.unusable and i % self.unusable == self.unusable - 1
        return i, "I have no idea." if nothing else answer(i, prompt)


class Request(BaseHTTPRequestHandler):
    """One request."""

    protocol_version, wbufsize, disable_nagle_algorithm = "HTTP/1.1", 1 << 16, True
    server: Model

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """The list of models."""
        self.say({"object": "list", "data": [{"id": "stub", "object": "model"}]})

    def do_POST(self) -> None:
        """The next answer."""
        came = time.perf_counter()
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = "\n".join(str(m["content"]) for m in asked.get("messages", []))
        i, text = self.server.reply(prompt, came)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": 50, "total_tokens": len(prompt) // 4 + 50}
        head = {"id": f"{i}", "object": "chat.completion", "created": int(time.time()), "model": "stub"}
        self.say({**head, "choices": [choice], "usage": usage})
        self.server.answered[i] = time.perf_counter()

    def say(self, data: object) -> None:
        """A reply."""
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


@contextmanager
def scripted(unusable: int = 0, look: Look = lambda i: None) -> Iterator[Model]:
    """The model, at work."""
    with Model(unusable, look) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
