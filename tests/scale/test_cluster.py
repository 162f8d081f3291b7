"""Addresses of clusters, and what is said where there is no Ray: all of this runs without it."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from evolvent.core.errors import UserError
from evolvent.lineage.runs import run_names
from evolvent.lineage.store import Store
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.scale.cluster import check_address
from evolvent.scale.sandboxes import Sandboxes, elsewhere
from evolvent.tasks.registry import load_task

PACKING = "program:circle-packing:10"


@pytest.mark.parametrize("address", ["", "here", "host", "host:0", "host:99999", "ray://host:1", "http://host:1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UserError, match="no address of a Ray cluster; name HOST:PORT"):
        check_address(address)


def test_an_address_where_nothing_answers_is_refused_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"no Ray cluster answers at 127.0.0.1:{port} .*ray start --head"):
            check_address(f"127.0.0.1:{port}")


def test_a_server_that_is_no_head_node_is_refused() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(UserError, match="what answers there is no head node"):
            check_address(f"127.0.0.1:{server.server_port}")
        server.shutdown()


@pytest.mark.parametrize("pool", ["ray", "ray:auto", "ray:127.0.0.1:6379"])
def test_without_ray_a_pool_says_what_to_install(pool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    with pytest.raises(UserError, match=r'Ray is not installed; pip install "evolvent\[scale\]"'):
        elsewhere(load_task(PACKING), pool)


def test_a_pool_that_is_not_rays_is_refused() -> None:
    with pytest.raises(UserError, match="no pool `slurm`; use ray"):
        elsewhere(load_task(PACKING), "slurm")


def test_nothing_runs_without_a_sandbox_by_accident() -> None:
    with pytest.raises(UserError, match="--unsafe-no-sandbox"):
        Sandboxes(2, kind="none")


@pytest.mark.parametrize("task", ["arith:1x1", "program:landscape"])
def test_a_pool_is_for_programs_that_are_run(task: str) -> None:
    with pytest.raises(UserError, match="runs none"):
        elsewhere(load_task(task), "ray")


@pytest.mark.parametrize("pool", ["ray:127.0.0.1:1", "ray:nowhere", "slurm"])
def test_a_pool_that_does_not_answer_leaves_no_run_behind(pool: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    with pytest.raises(UserError):
        begin(RunSpec("hill-climbing", PACKING, "none", "5 evaluations"), store, "one", pool=pool, logs=())
    assert run_names(store) == []
    assert not (tmp_path / "runs" / "one").exists()


def test_a_run_without_a_pool_does_not_import_ray() -> None:
    script = "import sys; import evolvent.scale.sandboxes, evolvent.scale.pool; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=120).returncode == 0
