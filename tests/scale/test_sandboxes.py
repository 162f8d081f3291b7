"""Sandboxes in workers of a real Ray: outcomes as on this machine, and workers that are killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from evolvent.core.errors import UserError
from evolvent.guard.sandbox import Call, Limits, Outcome, Sandbox
from evolvent.lineage.replies import Replies
from evolvent.lineage.store import Store
from evolvent.run.assemble import assemble
from evolvent.run.session import Session
from evolvent.run.spec import RunSpec
from evolvent.scale.pool import Worker
from evolvent.scale.sandboxes import Sandboxes
from evolvent.search.archive import archive_of

ray = pytest.importorskip("ray")

LONG = Limits(seconds=120.0, memory=256, processes=8, disk=4)  # for what ends by itself; the machine may be busy
SHORT = Limits(seconds=2.0, memory=256, processes=8, disk=4)
PROGRAMS = {
    "value": "def f(x): return {'x': [x, float('inf')]}",
    "random": "import random\ndef f(x): return random.random() + x",
    "prints": "def f(x): print('hello', x); return x",
    "raises": "def f(x): raise ValueError(f'not {x}')",
    "exits": "import os\ndef f(x): os._exit(3)",
    "crashes": "import os\ndef f(x): os.kill(os.getpid(), 11)",
    "data": "def f(x): return object()",
    "network": "import socket\ndef f(x): socket.create_connection(('127.0.0.1', 6379), 1)",
}
SLEEP = "import time\ndef f(x, seconds): time.sleep(seconds); return x * x"


def call(text: str, *arguments: Any) -> Call:
    """A call of `f`, with a seed."""
    return Call({"program.py": text}, "program", "f", arguments, seed=7)


def told(outcome: Outcome) -> tuple[Any, ...]:
    """All of an outcome but what it took."""
    return outcome.status, outcome.value, outcome.error, outcome.printed


@pytest.fixture(scope="module")
def boxes() -> Iterator[Sandboxes]:
    """Two workers, each with a sandbox of its own."""
    with Sandboxes(2, preload=()) as found:
        found.run([call(SLEEP, 0, 1.0), call(SLEEP, 1, 1.0)], LONG)  # as long as both need to be there
        yield found
    assert not ray.is_initialized()  # the last pool has closed what it began


def busy_with(boxes: Sandboxes, index: int, not_in: set[str] = frozenset()) -> Worker:  # type: ignore[assignment]
    """The worker that has a row, once it has it and has run it for a moment."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for worker in list(boxes.pool.team):
            if worker.index == index and worker.facts and worker.facts["process"] not in not_in:
                time.sleep(0.5)
                return worker
        time.sleep(0.02)
    raise AssertionError(f"nobody runs row {index}")


def kill(worker: Worker) -> list[psutil.Process]:
    """End the process of a worker; the processes that it has left."""
    process = psutil.Process(int(worker.facts["process"]))
    left = process.children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    return left


class Running(threading.Thread):
    """A run beside the test."""

    def __init__(self, boxes: Sandboxes, calls: list[Call]) -> None:
        super().__init__(daemon=True)
        self.boxes, self.calls = boxes, calls
        self.found: list[Any] = []
        self.start()

    def run(self) -> None:
        """Run all."""
        self.found = self.boxes.run(self.calls, LONG)

    def outcomes(self) -> list[Outcome]:
        """All of them."""
        self.join(240)
        assert not self.is_alive()
        return self.found


def test_outcomes_are_those_of_the_sandbox_on_this_machine(boxes: Sandboxes) -> None:
    calls = [call(text, number) for number, text in enumerate(PROGRAMS.values())]
    with Sandbox(2, preload=()) as here:
        expected = here.run(calls, LONG)
        found = boxes.run(calls, LONG)
    assert [o.status for o in expected] == ["ok", "ok", "ok", "raised", "exited", "crashed", "unreadable", "raised"]
    assert [told(o) for o in found] == [told(o) for o in expected]


def test_order_is_that_of_the_calls_and_both_workers_have_some(boxes: Sandboxes) -> None:
    run = Running(boxes, [call(SLEEP, i, 1.5 if i == 0 else 0.0) for i in range(12)])
    first, second = busy_with(boxes, 0), None
    while run.is_alive() and second is None:
        second = next((w for w in list(boxes.pool.team) if w.index not in (0, None)), None)
    assert [o.value for o in run.outcomes()] == [i * i for i in range(12)]
    assert {w.facts["process"] for w in boxes.pool.team} >= {first.facts["process"]}
    assert len({w.facts["process"] for w in boxes.pool.team}) == 2


def test_a_call_that_hangs_is_ended_and_is_no_loss(boxes: Sandboxes) -> None:
    replaced = boxes.pool.replaced
    outcomes = boxes.run([call("def f(x):\n while True: pass", 0), call("def f(x): return x", 1)], SHORT)
    assert [o.status for o in outcomes] == ["timeout", "ok"]
    assert boxes.pool.replaced == replaced


def test_arguments_that_are_no_json_are_refused_before_anything_runs(boxes: Sandboxes) -> None:
    with pytest.raises(UserError, match="JSON data"):
        boxes.run([call("def f(x): return x", 1), call("def f(x): return x", {1, 2})], LONG)


def test_the_death_of_a_worker_costs_only_what_it_was_evaluating(boxes: Sandboxes) -> None:
    replaced, lost = boxes.pool.replaced, boxes.pool.lost
    run = Running(boxes, [call(SLEEP, i, 8.0 if i == 0 else 0.0) for i in range(6)])
    victim = busy_with(boxes, 0)
    others = {w.facts["process"] for w in boxes.pool.team} - {victim.facts["process"]}
    left = kill(victim)
    assert [(o.status, o.value) for o in run.outcomes()] == [("ok", i * i) for i in range(6)]
    assert boxes.pool.replaced == replaced + 1
    assert boxes.pool.lost == lost
    assert others <= {w.facts["process"] for w in boxes.pool.team if w.facts}  # the other one lives on
    assert left, "a worker has a sandbox's server and the call below it"
    _, alive = psutil.wait_procs(left, 30)
    assert not alive  # its sandbox ends with it, and so does what ran there


def test_what_is_lost_twice_is_lost_and_no_result(boxes: Sandboxes) -> None:
    lost = boxes.pool.lost
    run = Running(boxes, [call(SLEEP, i, 20.0 if i == 0 else 0.0) for i in range(4)])
    first = busy_with(boxes, 0)
    kill(first)
    second = busy_with(boxes, 0, {first.facts["process"]})
    assert second.facts["process"] != first.facts["process"]
    kill(second)
    outcomes = run.outcomes()
    assert [o.status for o in outcomes] == ["lost", "ok", "ok", "ok"]
    assert outcomes[0].value is None
    assert "lost the call: its worker died" in outcomes[0].error
    assert boxes.pool.lost == lost + 1


def test_a_worker_whose_sandbox_cannot_start_says_why() -> None:
    with Sandboxes(1, preload=("no_such_module",)) as boxes, pytest.raises(UserError, match="no_such_module"):
        boxes.run([call("def f(x): return x", 1)], LONG)


def searched(folder: Path, boxes: Sandboxes | None, killing: bool = False) -> list[tuple[Any, ...]]:
    """A search with a seed: all its candidates, in their order."""
    spec = RunSpec("random-search", "program:circle-packing:26", "none", budget="2 steps", seed=3, settings={
        "propose.children": 3, "judge.workers": 2})  # fmt: skip
    made = assemble(spec, Replies())
    task: Any = made.task
    if boxes is not None:
        task.sandbox = boxes

    def end_one(progress: Any) -> None:
        if killing and boxes is not None:
            kill(boxes.pool.team[0])

    Session(Store(folder), spec, "run", final=False, watch=end_one).start(made)
    if boxes is None:
        task.sandbox.close()
    history = archive_of(made.main_role).history
    return [(c.uid, c.text, c.operator, c.value if c.valid else None, c.evaluation.status) for c in history]


def test_a_search_with_a_seed_has_the_same_candidates(tmp_path: Path) -> None:
    here = searched(tmp_path / "here", None)
    with Sandboxes(2) as boxes:
        there = searched(tmp_path / "there", boxes, killing=True)
        assert boxes.pool.replaced >= 1
    assert len(here) == 4  # the seed program, and three children
    assert there == here


@pytest.mark.slow
def test_a_cluster_that_is_running_is_used_and_left_running(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    start = [sys.executable, "-c", "from ray.scripts.scripts import main; main()", "start", "--head", "--block",
             f"--port={port}", "--num-cpus=2", "--include-dashboard=false", "--node-ip-address=127.0.0.1"]  # fmt: skip
    head = subprocess.Popen(start, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    script = tmp_path / "user.py"
    script.write_text(
        "import sys\n"
        "from evolvent.guard.sandbox import Call, Limits\n"
        "from evolvent.scale.sandboxes import Sandboxes\n"
        f"with Sandboxes(2, preload=(), address='127.0.0.1:{port}') as boxes:\n"
        "    calls = [Call({'p.py': 'def f(x): return x * x'}, 'p', 'f', (i,)) for i in range(5)]\n"
        "    print([o.value for o in boxes.run(calls, Limits(seconds=120.0))])\n"
    )
    try:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            with socket.socket() as asking:
                if asking.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.5)
        for _ in range(2):  # the second one finds it still there
            done = subprocess.run(
                [sys.executable, script], env=environment, capture_output=True, text=True, timeout=400
            )
            assert done.stdout.strip() == "[0, 1, 4, 9, 16]", done.stderr
    finally:
        for process in psutil.Process(head.pid).children(recursive=True):
            process.kill()
        head.kill()


@pytest.mark.slow
def test_nothing_is_left_of_a_run_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "user.py"
    script.write_text(
        "from evolvent.guard.sandbox import Call, Limits\n"
        "from evolvent.scale.sandboxes import Sandboxes\n"
        "boxes = Sandboxes(1, preload=())\n"
        "print(boxes.describe(), flush=True)\n"
        "boxes.run([Call({'p.py': 'import time\\ndef f(): time.sleep(600)'}, 'p', 'f')], Limits(seconds=600.0))\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert "in 1 workers of Ray" in run.stdout.readline()
        time.sleep(3)
        left = psutil.Process(run.pid).children(recursive=True)
        assert len(left) >= 4  # the cluster's own, the worker, its sandbox and what runs there
        run.kill()
    _, alive = psutil.wait_procs(left, 120)
    assert not alive
