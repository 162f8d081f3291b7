"""A worker process: values come back, failures are told apart, and nothing outlives its parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from evolvent.core.errors import VerifierError
from evolvent.guard.process import Crashed, Raised, TimedOut, Worker, clean_environment

PROGRAM = """
import os, re, subprocess, sys, time

def echo(x): return x
def add(x): return x[0] + x[1]
def count(n):
    for i in range(n):
        yield i
    return "end"
def slow_count(pause):
    for i in range(4):
        time.sleep(pause)
        yield i
def divide(x): return 1 / x
def leave(code): sys.exit(code)
def die(code): os._exit(code)
def broken(_): os.kill(os.getpid(), 11)
def in_c(_): re.match(r"(a+)+$", "a" * 60 + "b")
def talk(n):
    for _ in range(n):
        print("y" * 1000)
    print("last words", file=sys.stderr)
    return n
def not_plain(_): return {1, 2}
def child(_):
    made = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    return made.pid
def environment(_): return dict(os.environ)
def path(_): return sys.path
def forge(_):
    os.write(int(_), b"\\x00\\x00\\x00\\x04oops")
    time.sleep(5)
def map_memory(n): return len(bytearray(n))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def worker(program: Path) -> Iterator[Worker]:
    made = Worker(program, timeout=5)
    yield made
    made.close()


def gone(pid: int, seconds: float = 5.0) -> bool:
    """Whether a process ends within some seconds; a zombie has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def test_values_come_back_as_they_were_sent(worker: Worker) -> None:
    value = {"text": "ä\n\u2028\U0001f600", "numbers": [1, -2.5, True, None], "deep": {"a": [[]]}}
    assert worker.call("echo", value) == value
    assert worker.call("add", [2, 3]) == 5
    big = "x" * 3_000_000
    assert worker.call("echo", big) == big
    assert worker.starts == 1


def test_a_generator_streams_and_its_time_out_is_for_each_part(worker: Worker) -> None:
    assert list(worker.stream("count", 3)) == [0, 1, 2, "end"]
    assert list(worker.stream("slow_count", 0.2, timeout=0.6)) == [0, 1, 2, 3, None]  # 0.8 s in all


def test_leaving_a_stream_early_does_not_spoil_the_next_call(worker: Worker) -> None:
    for part in worker.stream("count", 1000):
        if part == 2:
            break
    assert worker.call("echo", "next") == "next"


def test_an_exception_names_its_kind_text_and_line(worker: Worker, program: Path) -> None:
    with pytest.raises(Raised, match="ZeroDivisionError: division by zero") as caught:
        worker.call("divide", 0)
    assert caught.value.kind == "ZeroDivisionError"
    assert isinstance(caught.value, VerifierError)
    assert worker.call("divide", 2) == 0.5
    assert worker.starts == 1


def test_sys_exit_ends_the_call_and_not_the_process(worker: Worker) -> None:
    with pytest.raises(Raised) as caught:
        worker.call("leave", 3)
    assert caught.value.kind == "SystemExit"
    assert worker.call("echo", 1) == 1
    assert worker.starts == 1


@pytest.mark.parametrize(
    ("function", "payload", "said"),
    [("die", 7, "exit code 7"), ("die", 0, "exit code 0"), ("broken", None, "SIGSEGV")],
)
def test_the_end_of_the_process_is_told_and_the_next_call_starts_another(
    worker: Worker, function: str, payload: int | None, said: str
) -> None:
    with pytest.raises(Crashed, match=said):
        worker.call(function, payload)
    assert worker.call("echo", 1) == 1
    assert worker.starts == 2


def test_a_hang_inside_a_c_function_is_killed_on_time(worker: Worker) -> None:
    worker.start()
    pid, begun = worker.pid, time.monotonic()
    assert pid is not None
    with pytest.raises(TimedOut, match=r"0\.5 s"):
        worker.call("in_c", timeout=0.5)
    assert time.monotonic() - begun < 3
    assert gone(pid)
    assert worker.call("echo", 1) == 1


def test_prints_disturb_nothing_and_their_end_is_kept_for_messages(worker: Worker) -> None:
    assert worker.call("talk", 3000) == 3000  # 3 MB through a pipe that holds 64 kB
    with pytest.raises(Raised) as caught:
        worker.call("talk", "three")
    assert "last words" not in caught.value.output
    assert list(worker.stream("count", 1)) == [0, "end"]


def test_what_is_not_plain_data_is_an_error(worker: Worker) -> None:
    with pytest.raises(Raised, match="set is not JSON"):
        worker.call("not_plain")
    with pytest.raises(Raised, match="no attribute"):
        worker.call("nothing_of_the_kind")
    assert worker.starts == 1


def test_a_forged_answer_is_a_crash_and_not_a_value(worker: Worker) -> None:
    worker.start()
    assert worker.call("echo", 0) == 0  # it runs: its command line can be read
    assert worker.pid is not None
    setup = json.loads(psutil.Process(worker.pid).cmdline()[-1])
    with pytest.raises(Crashed, match="no answer"):
        worker.call("forge", setup["sink"])
    assert worker.call("echo", 1) == 1


def test_kill_takes_the_whole_process_group(worker: Worker) -> None:
    grandchild = worker.call("child")
    worker.kill()
    assert worker.pid is None
    assert gone(grandchild)


def test_prepare_runs_after_every_start(program: Path) -> None:
    seen: list[int] = []
    worker = Worker(program, prepare=lambda w: seen.append(w.call("echo", 5)))
    with pytest.raises(Crashed):
        worker.call("die", 1)
    assert worker.call("echo", 6) == 6
    worker.restart()
    assert seen == [5, 5, 5]
    worker.close()


def test_memory_limit(program: Path) -> None:
    worker = Worker(program, memory=1 << 30)
    with pytest.raises(Raised, match="MemoryError"):
        worker.call("map_memory", 2 << 30)
    assert worker.call("map_memory", 1 << 20) == 1 << 20
    worker.close()


def test_secrets_stay_here_unless_named(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "db_password", "AWS_SECRET_ACCESS"):
        monkeypatch.setenv(name, "hush")
    monkeypatch.setenv("PLAIN", "here")
    inside = worker.call("environment")
    assert inside["PLAIN"] == "here"
    assert "hush" not in inside.values()
    monkeypatch.setenv("EVOLVENT_PASS", "OPENAI_API_KEY, other")
    assert clean_environment()["OPENAI_API_KEY"] == "hush"
    assert "HF_TOKEN" not in clean_environment()


def test_the_platform_is_not_found_beside_the_program(worker: Worker, program: Path) -> None:
    path = worker.call("path")
    assert str(program.parent) not in path
    assert not any(Path(p).name == "guard" for p in path)


def test_several_threads_take_turns(program: Path) -> None:
    worker, found, errors = Worker(program), [], []

    def ask(i: int) -> None:
        try:
            found.append(worker.call("add", [i, i]))
        except Exception as reason:
            errors.append(reason)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(found) == [2 * i for i in range(16)]
    assert worker.starts == 1
    worker.close()


def test_the_process_outlives_the_thread_that_started_it(program: Path) -> None:
    worker = Worker(program)
    thread = threading.Thread(target=worker.start)
    thread.start()
    thread.join()
    time.sleep(0.1)
    assert worker.call("echo", 1) == 1
    assert worker.starts == 1
    worker.close()


PARENT = """
import sys, threading, time
from pathlib import Path
from evolvent.guard.process import Worker
worker = Worker(Path(sys.argv[1]))
print(worker.call("child"), worker.pid, flush=True)
if sys.argv[2] == "busy":
    threading.Thread(target=lambda: worker.call("in_c", timeout=60)).start()
time.sleep(60)
"""


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_no_orphan_is_left_when_the_parent_is_killed(program: Path, state: str) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(program), state], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    grandchild, pid = map(int, parent.stdout.readline().split())
    time.sleep(0.3)  # the busy one is inside a regular expression by now, and holds the interpreter's lock
    assert psutil.pid_exists(pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert gone(pid)
    assert gone(grandchild)


def test_dropping_the_worker_ends_the_process(program: Path) -> None:
    worker: Worker | None = Worker(program)
    assert worker is not None
    worker.start()
    pid = worker.pid
    assert pid is not None
    del worker
    assert gone(pid)


def test_open_pipes_do_not_pile_up(program: Path) -> None:
    worker = Worker(program)
    worker.call("echo", 1)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        worker.restart()
    assert len(os.listdir("/proc/self/fd")) == before
    worker.close()


def fastest_ms(call: Callable[[], object], times: int = 30) -> float:
    """Milliseconds of the fastest call: what the code costs, whatever else the machine does."""
    best = float("inf")
    for _ in range(times):
        begun = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begun)
    return best * 1e3


def test_a_call_costs_little(worker: Worker) -> None:
    worker.start()
    assert fastest_ms(lambda: worker.call("echo", 1)) < 2
