"""The sandbox, attacked: every fault is an ordinary outcome, nothing gets out, and nothing survives."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from evolvent.core.errors import UserError
from evolvent.guard.cage import installed
from evolvent.guard.inside.keeper import measured_size, own_size
from evolvent.guard.sandbox import Call, Limits, Outcome, Sandbox, trial

KINDS = ("bubblewrap", "sandlock", "none")
QUICK = Limits(seconds=20.0, memory=256, processes=8, disk=4)  # for what ends by itself; the machine may be busy
SHORT = Limits(seconds=1.0, memory=256, processes=8, disk=4)


@functools.cache
def why_not(kind: str) -> str:
    """Why a kind does not work here; empty where it does."""
    if kind == "none":
        return ""
    if not installed(kind):
        return f"{kind} is not installed"
    try:
        with trial(kind) as sandbox:
            outcome = run(sandbox, "def f(): return 42", QUICK)
        return "" if outcome.value == 42 else f"{kind} does not work here: {outcome}"
    except UserError as reason:
        return str(reason)


def made(kind: str, **options: Any) -> Sandbox:
    """A sandbox of the kind; skips the test where it does not work."""
    if reason := why_not(kind):
        pytest.skip(reason)
    return Sandbox(kind=kind, unsafe=kind == "none", **options)


def call(text: str, *arguments: Any, **options: Any) -> Call:
    """A call of `f` in a program."""
    return Call({"program.py": textwrap.dedent(text)}, "program", "f", arguments, **options)


def run(sandbox: Sandbox, text: str, limits: Limits, *arguments: Any) -> Outcome:
    """The outcome of one call of `f`."""
    [outcome] = sandbox.run([call(text, *arguments)], limits)
    return outcome


@pytest.fixture(scope="module", params=KINDS)
def any_kind(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox of every kind that works here, without protection too: outcomes are the same."""
    with made(request.param, workers=2) as sandbox:
        yield sandbox


@pytest.fixture(scope="module", params=KINDS[:2])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox that protects, of every kind that works here."""
    with made(request.param, workers=2) as sandbox:
        yield sandbox


def until(true: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Wait for something; whether it came. A process that ends while it is asked about says nothing yet."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(psutil.NoSuchProcess):
            if true():
                return True
        time.sleep(0.02)
    return False


def with_marker(marker: str) -> list[int]:
    """Processes that carry the marker in their command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(marker in part for part in process.cmdline()):
                found.append(process.pid)
        except psutil.Error:
            pass
    return found


# values


def test_a_value_comes_back_with_its_time_and_what_was_printed(any_kind: Sandbox) -> None:
    outcome = run(
        any_kind, "def f(a, b=2):\n    print('words')\n    return {'sum': a + b, 'l': (1, [None, True])}", QUICK, 3
    )
    assert outcome.status == "ok"
    assert outcome.value == {"sum": 5, "l": [1, [None, True]]}
    assert outcome.printed == "words"
    assert outcome.seconds > 0
    assert outcome.cpu > 0


def test_a_folder_of_data_may_have_the_name_of_a_module(any_kind: Sandbox) -> None:
    """The program meets the module that was seeded, or loaded before, and its own file beside it."""
    text = "import random\nfrom pathlib import Path\ndef f(): return random.random(), Path('random/x.txt').read_text()"
    one = Call({"program.py": text, "random/x.txt": "data"}, "program", "f", (), seed=3)
    first, second = any_kind.run([one, one], QUICK)
    assert first.value == second.value == [random.Random(3).random(), "data"]


def test_files_may_be_bytes(any_kind: Sandbox) -> None:
    text = "from pathlib import Path\ndef f(): return [list(Path(n).read_bytes()) for n in ('x.bin', 'd/y.npy')]"
    one = Call({"program.py": text, "x.bin": bytes(range(256)), "d/y.npy": b""}, "program", "f", ())
    [outcome] = any_kind.run([one], QUICK)
    assert outcome.value == [list(range(256)), []]


def test_python_is_the_interpreter_of_the_run(any_kind: Sandbox) -> None:
    text = """
        import shutil, subprocess
        def f():
            ask = ["-c", "import sys, numpy; print(sys.prefix)"]
            return [subprocess.check_output([name, *ask], text=True).strip() for name in ("python", "python3")]
    """
    outcome = run(any_kind, text, Limits(seconds=60.0))
    assert outcome.value == [sys.prefix] * 2, outcome


def test_arrays_become_lists_and_nan_stays_a_float(any_kind: Sandbox) -> None:
    text = """
        import numpy as np
        def f(x): return [np.arange(3) * x, np.float32(0.5), np.int64(7), np.bool_(True), float("nan"), float("-inf")]
    """
    outcome = run(any_kind, text, QUICK, 2)
    assert outcome.status == "ok", outcome
    *front, nan, infinite = outcome.value
    assert front == [[0, 2, 4], 0.5, 7, True]
    assert math.isnan(nan)
    assert infinite == -math.inf


@pytest.mark.parametrize(
    "value",
    ["{1, 2}", "b'x'", "object()", "{1: 2}", "1j", "[1, [2, f]]", "(lambda x: (x.append(x), x)[1])([])", "10 ** 5000"],
)
def test_what_is_no_data_is_unreadable(any_kind: Sandbox, value: str) -> None:
    outcome = run(any_kind, f"def f(): return {value}", QUICK)
    assert (outcome.status, outcome.value) == ("unreadable", None)


def test_half_a_character_comes_back_as_a_question_mark(any_kind: Sandbox) -> None:
    outcome = run(any_kind, "def f(): return {'a': ['x\\ud800', '\U0001f600', float('inf')], '\\udfff': 1}", QUICK)
    assert (outcome.status, outcome.value) == ("ok", {"a": ["x?", "\U0001f600", math.inf], "?": 1})


def test_seeds_are_set_before_the_import(any_kind: Sandbox) -> None:
    text = "import random, numpy\nDRAWN = [random.random(), float(numpy.random.rand())]\ndef f(): return DRAWN"
    outcomes = any_kind.run([call(text, seed=1), call(text, seed=1), call(text, seed=2), call(text), call(text)], QUICK)
    first, again, other, free, free_again = (o.value for o in outcomes)
    assert first == again
    assert first != other
    assert free[0] != free_again[0]
    assert free[1] != free_again[1]


def test_several_files_and_a_name_that_is_loaded_already(any_kind: Sandbox) -> None:
    files = {"json.py": "from lib.a import X\ndef f(*, k): return [X, k]", "lib/__init__.py": "", "lib/a.py": "X = 5"}
    [outcome] = any_kind.run([Call(files, "json", "f", keywords={"k": "v"})], QUICK)
    assert outcome.value == [5, "v"]


def test_calls_share_nothing(any_kind: Sandbox) -> None:
    text = """
        import os, sys
        def f():
            seen = os.path.exists("left"), hasattr(sys, "left")
            open("left", "w").close()
            sys.left = 1
            return seen
    """
    outcomes = any_kind.run([call(text)] * 3, QUICK)
    assert [o.value for o in outcomes] == [[False, False]] * 3


# faults


def test_raise(any_kind: Sandbox) -> None:
    outcome = run(any_kind, "def f():\n    return 1 / 0\n", QUICK)
    assert outcome.status == "raised"
    assert outcome.error == "ZeroDivisionError: division by zero (program.py:2: return 1 / 0)"


def test_a_syntax_error_and_a_missing_function(any_kind: Sandbox) -> None:
    broken, absent = any_kind.run([call("def f(:\n"), call("x = 1")], QUICK)
    assert (broken.status, absent.status) == ("raised", "raised")
    assert "program.py:1" in broken.error
    assert "has no attribute 'f'" in absent.error


@pytest.mark.parametrize(("leave", "code"), [("os._exit(3)", 3), ("sys.exit(4)", 4), ("os._exit(0)", 0), ("exit()", 0)])
def test_exit(any_kind: Sandbox, leave: str, code: int) -> None:
    outcome = run(any_kind, f"import os, sys\nfrom sys import exit\ndef f(): {leave}", QUICK)
    assert outcome.status == "exited"
    assert str(code) in outcome.error


@pytest.mark.parametrize(
    "crash", ["import ctypes; ctypes.string_at(0)", "import os; os.abort()", "import os; os.kill(os.getpid(), 9)"]
)
def test_crash(any_kind: Sandbox, crash: str) -> None:
    outcome = run(any_kind, f"def f():\n    {crash}", QUICK)
    assert outcome.status == "crashed"
    assert "SIG" in outcome.error


@pytest.mark.parametrize(
    "hang",
    ["while True: pass", "import time; time.sleep(60)", "import re; re.match(r'(a+)+$', 'a' * 60 + 'b')"],
)
def test_hang(any_kind: Sandbox, hang: str) -> None:
    begun = time.monotonic()
    outcome = run(any_kind, f"def f():\n    {hang}", Limits(seconds=0.5))
    assert outcome.status == "timeout"
    assert 0.5 <= outcome.seconds < time.monotonic() - begun < 10


def test_fork_bomb(sandbox: Sandbox) -> None:
    outcome = run(sandbox, "import os\ndef f():\n    while True: os.fork()", SHORT)
    assert outcome.status in ("processes", "timeout")
    assert run(sandbox, "def f(): return 1", QUICK).value == 1


def test_too_many_threads(sandbox: Sandbox) -> None:
    text = """
        import threading, time
        def f():
            for _ in range(50): threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
            time.sleep(5)
    """
    ample = replace(QUICK, memory=1024)  # a thread for which there is no memory hangs its maker, in Python itself
    assert run(sandbox, text, ample).status == "processes"


def test_threads_that_allocate_do_not_use_the_address_space_up(any_kind: Sandbox) -> None:
    text = """
        import threading, time
        def f():
            done = []
            def work():
                held = [bytearray(1000) for _ in range(100)]
                time.sleep(0.2)
                done.append(len(held))
            threads = [threading.Thread(target=work) for _ in range(20)]
            for t in threads: t.start()
            for t in threads: t.join()
            return sum(done)
    """
    assert run(any_kind, text, replace(QUICK, memory=512, processes=32)).value == 2000


def test_allocation_of_4_gib(any_kind: Sandbox) -> None:
    outcome = run(any_kind, "import numpy\ndef f(): return len(numpy.ones(2**29)) + len(bytearray(2**32))", QUICK)
    assert outcome.status == "memory"


def test_memory_of_several_processes_counts_together(any_kind: Sandbox) -> None:
    text = """
        import os, time
        def f():
            for _ in range(3):
                if not os.fork(): break
            held = os.urandom(1 << 20) * 100
            time.sleep(20)
    """
    assert run(any_kind, text, QUICK).status == "memory"


@pytest.mark.parametrize("start", [0, 1])
def test_nothing_survives_a_call(any_kind: Sandbox, start: int) -> None:
    marker = f"marker-{uuid.uuid4()}"
    text = """
        import os, subprocess, sys, time
        def f(marker, hang):
            sleep = [sys.executable, "-c", "import time; time.sleep(1000)", marker]
            if os.fork() == 0:
                os.setsid()
                if os.fork(): os._exit(0)
                subprocess.Popen(["sleep", "1000"], start_new_session=True)
                subprocess.Popen(sleep, start_new_session=True)
                time.sleep(1000)
            subprocess.Popen(sleep, start_new_session=True)
            while hang: pass
            return "left them behind"
    """
    outcome = run(any_kind, text, SHORT if start else QUICK, marker, start)
    assert outcome.status == ("timeout" if start else "ok"), outcome
    assert with_marker(marker) == []


def test_writes_outside_its_folder(sandbox: Sandbox, tmp_path: Path) -> None:
    text = """
        import os, sys
        def f(*paths):
            done = []
            for path in paths:
                try:
                    open(path, "w").close()
                    done.append(path)
                except OSError: pass
            open("mine", "w").write("x")
            return done
    """
    inside = os.path.join(os.path.dirname(os.__file__), "evolvent_was_here.py")
    paths = [str(tmp_path / "x"), "/etc/x", "/usr/x", "/proc/sys/kernel/core_pattern", inside, "/sandbox/x", "/x"]
    assert run(sandbox, text, QUICK, *paths).value in ([], ["/sandbox/x"])  # in namespaces that one is its own
    assert list(tmp_path.iterdir()) == []
    assert not os.path.exists(inside)


def test_a_full_disk(sandbox: Sandbox) -> None:
    text = """
        def f():
            for i in range(100):
                with open(f"file{i}", "wb") as file:
                    file.write(bytes(1 << 20))
            import time; time.sleep(3)
    """
    outcome = run(sandbox, text, QUICK)
    assert outcome.status in ("raised", "output"), outcome


def test_reads_of_files_and_secrets(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("swordfish")
    text = """
        import os
        def f(*paths):
            seen = []
            for path in paths:
                try:
                    seen.append(os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(100).hex())
                except OSError: pass
            return seen, dict(os.environ)
    """
    home = os.path.expanduser("~/.profile")
    seen, environment = run(
        sandbox,
        text,
        QUICK,
        str(tmp_path / "secret"),
        home,
        "/etc/passwd",
        "/etc/shadow",
        __file__,
        str(Path.cwd() / "README.md"),
    ).value
    assert seen == []
    assert "swordfish" not in str(environment)
    assert set(environment) <= {
        *("PATH", "HOME", "USER", "LANG", "TMPDIR", "PWD", "LC_CTYPE", "PYTHONHASHSEED"),
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX"),
    }


def test_environment_of_this_process_stays_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "swordfish")
    for kind in KINDS:
        if not why_not(kind):
            with made(kind, preload=()) as fresh:
                text = "import os\ndef f(): return [dict(os.environ), open('/proc/self/environ').read()]"
                assert "swordfish" not in str(run(fresh, text, QUICK))


def test_other_processes_are_out_of_reach(sandbox: Sandbox) -> None:
    text = """
        import os, signal
        def f(outside):
            reached = []
            for pid in [outside, *range(2, 200), os.getppid()]:
                if pid == os.getpid(): continue
                for path in ("environ", "mem", "maps"):
                    try:
                        open(f"/proc/{pid}/{path}", "rb").read(1)
                        reached.append([pid, path])
                    except OSError: pass
                try:
                    os.kill(pid, signal.SIGSTOP)
                    reached.append([pid, "kill"])
                except OSError: pass
            return [r for r in reached if r != [1, "kill"]]
    """
    assert run(sandbox, text, QUICK, os.getpid()).value == []


def test_network(sandbox: Sandbox, tmp_path: Path) -> None:
    import socket

    server, datagrams, local = socket.socket(), socket.socket(type=socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX)
    hidden = socket.socket(socket.AF_UNIX)
    name = f"\0evolvent-{uuid.uuid4()}"
    with server, datagrams, local, hidden:
        server.bind(("127.0.0.1", 0))
        datagrams.bind(("127.0.0.1", 0))
        local.bind(str(tmp_path / "s"))
        hidden.bind(name)
        for listener in (server, local, hidden):
            listener.listen()
        datagrams.settimeout(0.2)
        text = """
            import socket
            def f(port, datagrams, path, name):
                reached = []
                for kind, address in ((2, ("127.0.0.1", port)), (1, path), (1, name)):
                    try:
                        socket.socket(kind).connect(address)
                        reached.append(address)
                    except OSError: pass
                try: socket.socket(2, 2).sendto(b"x", ("127.0.0.1", datagrams))
                except OSError: pass
                return reached
        """
        ports = server.getsockname()[1], datagrams.getsockname()[1]
        outcome = run(sandbox, text, QUICK, *ports, str(tmp_path / "s"), name)
        assert outcome.value == []
        with pytest.raises(TimeoutError):
            datagrams.recv(10)


@pytest.mark.parametrize("flood", ["while True: print('x' * 10000)", "return 'x' * (1 << 25)"])
def test_output_flood(any_kind: Sandbox, flood: str) -> None:
    outcome = run(any_kind, f"def f():\n    {flood}", QUICK)
    assert outcome.status == "output"
    assert len(outcome.printed) <= 4096


def test_privileges(sandbox: Sandbox) -> None:
    text = """
        import ctypes, os
        def f():
            libc = ctypes.CDLL(None, use_errno=True)
            done = [n for n, flags in (("user", 0x10000000), ("mount", 0x20000)) if libc.unshare(flags) == 0]
            if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0: done.append("tmpfs")
            if libc.mount(b"none", b"/", None, 32, None) == 0: done.append("remount")
            if libc.ptrace(16, os.getppid(), 0, 0) == 0: done.append("ptrace")
            open("mine", "w").close()
            try: os.chown("mine", 5, 5); done.append("chown")
            except OSError: pass
            return done
    """
    assert run(sandbox, text, QUICK).value == []


# forgery


def test_a_forged_result_does_not_hide_a_crash(any_kind: Sandbox) -> None:
    text = """
        import os
        def f():
            for pipe in range(3, 256):
                try: os.write(pipe, b'{"ok": 1}')
                except OSError: pass
            os.kill(os.getpid(), 11)
    """
    assert run(any_kind, text, QUICK).status == "crashed"


@pytest.mark.parametrize("junk", ["not json", '{"ok": 1, "x": 2}', '{"timeout": "x"}', "[" * 100000])
def test_a_forged_result_that_is_none(any_kind: Sandbox, junk: str) -> None:
    text = f"import os\ndef f():\n    os.write(3, {junk!r}.encode()); os._exit(0)"
    assert run(any_kind, text, QUICK).status == "unreadable"


def test_a_candidate_holds_its_own_pipes_only(any_kind: Sandbox) -> None:
    text = "import os\ndef f(): return [n for n in range(256) if os.path.exists(f'/dev/fd/{n}')] or list(range(4))"
    text = """
        import os
        def f():
            held = []
            for n in range(256):
                try: held.append(n if os.fstat(n) else n)
                except OSError: pass
            return held
    """
    assert run(any_kind, text, QUICK).value == [0, 1, 2, 3]


def test_a_fork_that_returns_does_not_answer(any_kind: Sandbox) -> None:
    text = "import os\ndef f():\n    pid = os.fork()\n    if pid: os.waitpid(pid, 0)\n    return pid > 0"
    outcome = run(any_kind, text, QUICK)
    assert (outcome.status, outcome.value) == ("ok", True)


# the server


def test_two_workers_overlap_and_outcomes_keep_their_order(any_kind: Sandbox) -> None:
    text = """
        import time
        def f(i):
            begun = time.monotonic()
            time.sleep(1.0 - 0.2 * i)
            return [i, begun, time.monotonic()]
    """
    outcomes = any_kind.run([call(text, i) for i in range(2)], QUICK)
    (first, start, end), (second, other_start, other_end) = (o.value for o in outcomes)
    assert (first, second) == (0, 1)
    assert start < other_end
    assert other_start < end


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_server_loses_the_call_in_flight_and_starts_again(kind: str) -> None:
    with made(kind, preload=()) as sandbox:
        assert run(sandbox, "def f(): return 1", QUICK).value == 1
        assert sandbox.pid is not None
        server = psutil.Process(sandbox.pid)

        def end() -> None:
            until(lambda: any(p.name() == "sleep" for p in server.children(recursive=True)))
            for process in [server, *server.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    process.kill()

        killer = threading.Thread(target=end)
        killer.start()
        hang = "import subprocess\ndef f(): subprocess.run(['sleep', '30'])"
        outcomes = sandbox.run([call(hang), call("def f(): return 2")], QUICK)
        killer.join()
        assert [o.status for o in outcomes] == ["lost", "ok"]
        assert sandbox.starts == 2


def test_limits_are_those_of_the_call_and_not_of_the_one_before(any_kind: Sandbox) -> None:
    text = "import time\ndef f(seconds, size):\n    time.sleep(seconds)\n    return len(bytearray(size))"
    large, small, short = (Limits(seconds, memory) for seconds, memory in ((20.0, 512), (20.0, 64), (0.5, 512)))
    for limits, seconds, size, status in (
        (large, 0, 200 << 20, "ok"),
        (small, 0, 200 << 20, "memory"),
        (short, 10, 1, "timeout"),
        (large, 1, 200 << 20, "ok"),
    ):
        [outcome] = any_kind.run([call(text, seconds, size)], limits)
        assert outcome.status == status, outcome


def test_time_begins_with_the_call_and_not_with_the_confinement_made_ahead(any_kind: Sandbox) -> None:
    run(any_kind, "def f(): return 1", SHORT)
    time.sleep(1.5)  # longer than the limit
    outcome = run(any_kind, "def f(): return 1", SHORT)
    assert (outcome.status, outcome.value) == ("ok", 1)
    assert outcome.seconds < 1.0


def test_confinements_that_were_ended_while_they_waited_are_made_again() -> None:
    with made("bubblewrap", preload=()) as sandbox:
        assert run(sandbox, "def f(): return 1", QUICK).value == 1
        assert sandbox.pid is not None
        leader = psutil.Process(sandbox.pid)

        def waiting() -> list[psutil.Process]:
            return [k for server in leader.children() for k in server.children()]

        assert until(lambda: bool(waiting()))
        for keeper in waiting():
            keeper.kill()
        assert until(lambda: not any(k.is_running() and k.status() != "zombie" for k in waiting()))
        assert run(sandbox, "def f(): return 2", QUICK).value == 2
        assert sandbox.starts == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["close", "exit", "kill"])
def test_no_orphans_of_the_platform(kind: str, how: str, tmp_path: Path) -> None:
    if reason := why_not(kind):
        pytest.skip(reason)
    program = """
        import os, sys, threading, time
        from evolvent.guard.sandbox import Call, Limits, Sandbox
        kind, how = sys.argv[1:]
        text = "import subprocess\\ndef f(x): return subprocess.Popen(['sleep', '1000']).wait() if x else 1"
        sandbox = Sandbox(workers=1, preload=(), unsafe=kind == "none", kind=kind)
        sandbox.run([Call({"a.py": text}, "a", "f", (0,))], Limits())
        print(sandbox.pid, flush=True)
        if how == "close": sandbox.close()
        if how == "kill":
            calls = [Call({"a.py": text}, "a", "f", (1,))]
            threading.Thread(target=sandbox.run, args=(calls, Limits(seconds=1000))).start()
            time.sleep(60)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), kind, how], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    if how == "kill":
        server = psutil.Process(pid)

        def sleeping() -> list[psutil.Process]:
            return [p for p in server.children(recursive=True) if p.name() == "sleep"]

        assert until(lambda: bool(sleeping()))
        family = [server, *server.children(recursive=True)]
        parent.send_signal(signal.SIGKILL)
    else:
        family = []
    parent.wait()
    parent.stdout.close()
    assert until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie")
    assert until(lambda: not any(p.is_running() and p.status() != "zombie" for p in family))


def test_an_interrupt_ends_the_call(any_kind: Sandbox) -> None:
    marker = f"marker-{uuid.uuid4()}"
    text = "import subprocess, sys\ndef f(m): subprocess.run([sys.executable, '-c', 'import time; time.sleep(99)', m])"

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with pytest.raises(KeyboardInterrupt):
            run(any_kind, text, Limits(seconds=50), marker)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert until(lambda: not with_marker(marker))
    assert run(any_kind, "def f(): return 1", QUICK).value == 1


# set-up


@pytest.mark.parametrize("kind", KINDS)
def test_named_folders_can_be_read_and_not_written(kind: str, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("data")
    with made(kind, preload=(), folders=[tmp_path]) as sandbox:
        assert run(sandbox, f"def f(): return open({str(tmp_path / 'data.txt')!r}).read()", QUICK).value == "data"
        if kind != "none":
            written = run(sandbox, f"def f(): open({str(tmp_path / 'data.txt')!r}, 'w')", QUICK)
            assert written.status == "raised"
        assert kind in sandbox.describe() or kind == "none"
    assert (tmp_path / "data.txt").read_text() == "data"


def test_errors_name_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from evolvent.guard import sandbox as module

    with pytest.raises(UserError, match="no name for a file"):
        Sandbox(kind="none", unsafe=True).run([Call({"../x.py": ""}, "x", "f")])
    with pytest.raises(UserError, match="JSON data"):
        Sandbox(kind="none", unsafe=True).run([call("", object())])
    with (
        Sandbox(kind="none", unsafe=True, preload=("no_such_module",)) as broken,
        pytest.raises(UserError, match="no_such"),
    ):
        run(broken, "def f(): return 1", QUICK)
    monkeypatch.setattr(module, "installed", lambda kind: False)
    module.available.cache_clear()
    try:
        with pytest.raises(UserError, match="apt install bubblewrap.*--unsafe-no-sandbox"):
            Sandbox()
        assert Sandbox(unsafe=True).kind == "none"
    finally:
        module.available.cache_clear()


def test_the_tests_say_which_sandbox_they_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    from evolvent.guard import sandbox as module

    def nothing() -> str:
        raise UserError("nothing works here")

    plugins = request.config.pluginmanager.get_plugins()
    begin = next(p for p in plugins if hasattr(p, "kind_of_sandbox")).pytest_sessionstart
    said: list[str] = []
    for available in (lambda: "bubblewrap", lambda: "sandlock", nothing):
        monkeypatch.setattr(module, "available", available)
        for reporter in (SimpleNamespace(write_line=said.append), None):  # workers of xdist have none
            manager = SimpleNamespace(get_plugin={"terminalreporter": reporter}.get)
            config = SimpleNamespace(pluginmanager=manager, option=SimpleNamespace(collectonly=False))
            begin(SimpleNamespace(config=config))
    assert said == ["sandbox: bubblewrap", "sandbox: sandlock", "sandbox: none"]


def test_the_size_of_a_process_is_known_without_proc() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    block = bytearray(100 << 20)
    sizes = (measured_size(), own_size())
    assert abs(sizes[0] - sizes[1]) < 4 << 20
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    del block
    assert sizes[0] - measured_size() > 90 << 20
