"""`evolvent serve`: a process that answers on the loopback until Ctrl-C, and what it refuses before it listens."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from tests.cli.finished import store_with_runs
from tests.cli.test_runs import call, data
from tests.loopback import serving
from tests.small_model import small_model

from evolvent.serve.app import bind

KEY = "a key of the tests"
ASKED = {"prompt": "1+2=", "max_tokens": 4, "temperature": 0, "logprobs": 0}


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The head of a run behind a key, in a process of its own; it must end at Ctrl-C without a traceback."""
    with bind(port=0) as free:
        port = free.getsockname()[1]
    args = [
        "serve",
        "run",
        "--store",
        str(store_with_runs()),
        "--port",
        str(port),
        "--key-env",
        "MY_KEY",
        "--threads",
        "1",
    ]
    command, env = [sys.executable, "-m", "evolvent", *args], os.environ | {"MY_KEY": KEY}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stderr is not None
        try:
            address = f"http://127.0.0.1:{port}/v1"
            assert process.stderr.readline() == f"serving run on {address} (Ctrl-C ends it)\n"
            for _ in range(600):
                if answers(address):
                    break
                time.sleep(0.05)
            yield address
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130)
        assert "Traceback" not in process.stderr.read()


def answers(url: str) -> bool:
    """Whether a server does."""
    try:
        return httpx.get(f"{url}/models").status_code > 0
    except httpx.TransportError:
        return False


def answered(url: str, name: str, key: str = KEY) -> httpx.Response:
    """The reply to a completion that anybody would get alike."""
    asked = {"model": name, **ASKED}
    return httpx.post(f"{url}/completions", json=asked, headers={"Authorization": f"Bearer {key}"}, timeout=30)


def tried(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What `evolvent try` says that the start and the head of the run answer to the same prompt."""
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{ASKED['prompt']}\n"))
    (row,) = data(capsys, "try", "run", "--store", store_with_runs())
    return {
        name.partition(" ")[0]: "".join(text for _, text in one["turns"]) for name, (one,) in row["answers"].items()
    }


def test_the_head_of_a_run_is_served_under_its_name(
    served: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = answered(served, "run")
    assert reply.status_code == 200, reply.text
    said = reply.json()["choices"][0]["text"]
    assert said
    assert tried(capsys, monkeypatch)["version"].startswith(said)


def test_nobody_gets_in_without_the_key(served: str) -> None:
    assert answered(served, "run", "another key").status_code == 401
    assert httpx.get(f"{served}/models").status_code == 401


def test_another_name_is_not_served(served: str) -> None:
    reply = answered(served, "runn")
    assert reply.status_code == 404
    assert "did you mean run" in reply.json()["error"]["message"]


def test_a_port_that_is_taken_is_said_instead_of_a_promise(served: str, capsys: pytest.CaptureFixture[str]) -> None:
    port = served.rpartition(":")[2].partition("/")[0]
    assert f"127.0.0.1:{port} (Address already in use)" in call(capsys, "serve", small_model(), "--port", port, code=2)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> list[Starlette]:
    """The applications that would be served; nobody listens."""
    found: list[Starlette] = []
    monkeypatch.setattr("evolvent.serve.app.serve_at", lambda app, listening: found.append(app))
    return found


def test_an_earlier_version_under_a_name_of_its_own(
    served: str, app: list[Starlette], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with bind(port=0) as free:
        port = free.getsockname()[1]
    call(capsys, "serve", "run", "--version", 0, "--name", "begun", "--port", port, "--store", store_with_runs())
    with serving(app[0]) as url:
        (start,) = answered(url, "begun").json()["choices"]
    assert tried(capsys, monkeypatch)["start"].startswith(start["text"])
    (head,) = answered(served, "run").json()["choices"]
    assert start["logprobs"]["token_logprobs"] != head["logprobs"]["token_logprobs"]  # another model


def test_a_model_without_any_store(app: list[Starlette], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with bind(port=0) as free:
        port = free.getsockname()[1]
    call(capsys, "serve", small_model(), "--name", "small", "--port", port, "--store", tmp_path / "none")
    with serving(app[0]) as url:
        assert [m["id"] for m in httpx.get(f"{url}/models").json()["data"]] == ["small"]
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("tiny", "--host", "0.0.0.0"), "0.0.0.0 can be reached by others; give a key with --key-env"),
        (("tiny", "--key-env", "NOT_SET"), "the environment variable NOT_SET is not set"),
        (("run", "--version", "999"), "has no version 999"),
        (("rum",), "unknown model `rum`"),
    ],
)
def test_refusals(args: tuple[str, ...], said: str, app: list[Starlette], capsys: pytest.CaptureFixture[str]) -> None:
    assert said in call(capsys, "serve", *args, "--store", store_with_runs(), code=2)
    assert app == []
