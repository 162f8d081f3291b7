"""A scripted model behind an OpenAI-compatible address: numbers its answers, logs nothing, answers at once.

usage: script.py PORT UNUSABLE     every UNUSABLE-th answer holds nothing of use (0: none); GET /stats: {"n": answers}
"""

import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, UNUSABLE = int(sys.argv[1]), int(sys.argv[2])
LOCK, COUNT = threading.Lock(), {"n": 0}


def answer(i: int, prompt: str) -> str:
    """The i-th answer: a diff, a whole program, or for GEPA a new instruction."""
    if UNUSABLE and i % UNUSABLE == UNUSABLE - 1:
        return "I have no idea."
    x = f"X = {1 + 0.001 * (i + 1):.3f}"
    lines = re.findall(r"^X = .*$", prompt, re.MULTILINE)
    if not lines:
        return f"```\nNew instruction variant {i + 1}: answer with the number {i + 1}.\n```"
    name = f"<NAME>\nstep_{i}\n</NAME>\n<DESCRIPTION>\nscripted\n</DESCRIPTION>\n"
    if "<<<<<<< SEARCH" in prompt:
        return f"{name}<DIFF>\n<<<<<<< SEARCH\n{lines[-1]}\n=======\n{x}\n>>>>>>> REPLACE\n</DIFF>\n"
    program = f"# EVOLVE-BLOCK-START\n{x}\n# EVOLVE-BLOCK-END\ndef run():\n    return X\n"
    return f"{name}<CODE>\n```python\n{program}```\n</CODE>\n"


class Answers(BaseHTTPRequestHandler):
    """One request."""

    protocol_version, wbufsize, disable_nagle_algorithm = "HTTP/1.1", 1 << 16, True

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """What has been asked, or the list of models."""
        self.say(COUNT if self.path.endswith("stats") else {"object": "list", "data": [{"id": "stub"}]})

    def do_POST(self) -> None:
        """The next answer."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = "\n".join(str(m["content"]) for m in asked.get("messages", []))
        with LOCK:
            i, COUNT["n"] = COUNT["n"], COUNT["n"] + 1
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer(i, prompt)}}
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": 50, "total_tokens": len(prompt) // 4 + 50}
        head = {"id": f"a{i}", "object": "chat.completion", "created": int(time.time()), "model": "stub"}
        self.say({**head, "choices": [choice], "usage": usage})

    def say(self, data: object) -> None:
        """A reply."""
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", PORT), Answers).serve_forever()
