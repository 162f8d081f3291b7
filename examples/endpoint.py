"""A model behind an OpenAI-compatible endpoint: what is gained if the verifier chooses among 16 answers.

    python examples/endpoint.py "320 calls"

The endpoint is `evolvent serve` on this machine; `openai:NAME` or the address of any other service works as well.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

import evolvent as ev


@contextmanager
def served(model: str) -> Iterator[str]:
    """Serve a model on a free port; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "evolvent.cli.main", "serve", model, "--port", str(port)])
    try:
        while server.poll() is None:
            try:
                httpx.get(f"http://127.0.0.1:{port}/health").raise_for_status()
                break
            except httpx.TransportError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1#{model}"
    finally:
        server.terminate()
        server.wait()


def main(budget: str = "320 calls") -> None:
    """Compare single answers with chosen ones."""
    with served("tiny") as model:
        sizes = {"propose.problems": 4, "propose.n": 16}  # 64 requests a step; a budget ends with a step
        result = ev.run(recipe="best-of-n", task="countdown", model=model, budget=budget, settings=sizes, final=False)
    for metric, text in (("outcome", "one answer"), ("answered", "the best of 16, by the verifier")):
        values = [value for _, value in result.curve(metric)]
        print(f"{text:<32} {sum(values) / len(values):.3f}")
    spent = result.ledger.spent["method"]
    print(f"{spent['model_calls']:.0f} requests, {spent['sampled']:.0f} tokens")


if __name__ == "__main__":
    main(*sys.argv[1:])
