"""The keeper of one call: a process outside the candidate's confinement that makes it, watches it and ends it.

It makes the confinement, with the candidate's process in it, before it knows the call: that takes longer than handing
the call over, and can be done while another one runs.

Three ways to confine, from what the kernel offers here:
namespaces  own user, process, mount, network and IPC namespaces; the first process of the namespace is ours, and with
            it everything in it ends. The folder is a file system in memory that ends with it as well.
landlock    own Landlock domain, in which the keeper is and the candidate is one level deeper: `kill(-1)` of the keeper
            reaches everything that the candidate started, and nothing else. The folder is a real one.
group       nothing but limits, for machines where the user said that no sandbox is needed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import resource
import select
import shutil
import signal
import socket
import struct
import tempfile
import time
from typing import Any, NoReturn

from . import candidate, kernel
from .watch import Watch

PRIVATE = "/sandbox"  # the mount point of the private file system in namespaces
USER = 1000  # what the candidate's user is called in its namespace
TAIL = 4096  # bytes of printed text that are kept
SETUP = 20.0  # seconds that making the confinement may take on a machine under load
STARTED, FAILED, CLOCK = b"s", b"!", 9  # news of the first process; bytes of `STARTED` and the time that follows it
FRAME = 4096  # bytes that a result may have beyond the value: error line and braces


def receive(channel: socket.socket) -> Any:
    """A frame: four bytes (its length, big-endian) and JSON. `EOFError` where the other side has gone."""
    size = struct.unpack(">I", exactly(channel, 4))[0]
    return json.loads(exactly(channel, size))


def exactly(channel: socket.socket, count: int) -> bytes:
    """So many bytes."""
    parts = bytearray()
    while len(parts) < count:
        part = channel.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def send(channel: socket.socket, head: dict[str, Any], *bodies: bytes) -> None:
    """A frame with the sizes of the pieces that follow it."""
    text = json.dumps({**head, "sizes": [len(b) for b in bodies]}).encode()
    channel.sendall(struct.pack(">I", len(text)) + text + b"".join(bodies))


def keep(waiting: socket.socket, mode: str, place: dict[str, Any], limits: dict[str, int]) -> NoReturn:
    """Make a confinement, wait for the channel of a call, carry the call out, answer, and end."""
    folder, failed, keeper, channel = "", "", None, None
    try:
        try:
            if mode != "namespaces":
                folder = tempfile.mkdtemp(dir=place["scratch"])
            keeper = Keeper(mode, place, limits, folder or PRIVATE + "/work")
            keeper.prepare()
        except Exception as reason:
            failed = f"{type(reason).__name__}: {reason}"
        channel = called(waiting)
        call = receive(channel)["call"]
        channel.sendall(struct.pack(">I", os.getpid()))
        if failed or keeper is None:
            send(channel, {"end": "setup", "error": failed}, b"", b"")
        else:
            head, printed, value = keeper.run(channel, call)
            send(channel, head, printed, value)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except Exception as reason:
        with contextlib.suppress(OSError):
            if channel is not None:
                send(channel, {"end": "setup", "error": f"{type(reason).__name__}: {reason}"}, b"", b"")
    finally:
        with contextlib.suppress(Exception):
            if keeper is not None and keeper.root:
                keeper.kill()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def called(waiting: socket.socket) -> socket.socket:
    """The channel of the call, once there is one. `EOFError` if the server needs this keeper no longer."""
    _, sockets, _, _ = socket.recv_fds(waiting, 1, 1)
    if not sockets:
        raise EOFError
    waiting.close()
    return socket.socket(fileno=sockets[0])


class Keeper:
    """One call: its pipes, its processes, how it ended. `root`: the process that all others are below, 0 for none."""

    def __init__(self, mode: str, place: dict[str, Any], limits: dict[str, int], folder: str) -> None:
        self.mode, self.place, self.limits, self.folder = mode, place, limits, folder
        self.printed, self.value, self.flood = bytearray(), bytearray(), 0
        self.status: int | None = None
        self.root = 0

    def prepare(self) -> None:
        """Make the confinement, and in it the process that waits for the call."""
        if self.mode == "namespaces":
            kernel.leave_user(kernel.NEW_PIDS | kernel.NEW_NET | kernel.NEW_IPC | kernel.NEW_NAME, USER)
        elif self.mode == "landlock":
            kernel.landlock(files=False)
            self.sure_of_scope()
            kernel.control(kernel.SUBREAPER, 1)
        else:
            kernel.control(kernel.SUBREAPER, 1)
        self.memory = own_size() + self.limits["memory"]
        (out, self.out), (result, self.result), (told, self.tell) = os.pipe(), os.pipe(), os.pipe()
        self.asked, self.ask = os.pipe()
        self.root = os.fork()
        if self.root == 0:
            os.close(self.ask)
            try:
                self.first() if self.mode == "namespaces" else self.third()
            except BaseException as reason:
                with contextlib.suppress(OSError):
                    os.write(self.tell, FAILED + f"{type(reason).__name__}: {reason}".encode()[:500])
            finally:
                os._exit(1)
        for pipe in (self.out, self.result, self.tell, self.asked):
            os.close(pipe)
        for pipe in (out, result, told):
            os.set_blocking(pipe, False)
        self.pipes = out, result, told

    def run(self, channel: socket.socket, call: dict[str, Any]) -> tuple[dict[str, Any], bytes, bytes]:
        """Head, printed text and result frame."""
        self.channel, (out, result, told) = channel, self.pipes
        news, end, self.begun = b"", "", time.monotonic()
        try:
            self.hand(call)
            news, end = self.watch(self.root, out, result, told)
        finally:
            seconds = time.monotonic() - self.begun
            cpu = self.kill()
        for pipe in (out, result):
            while self.take(pipe, pipe == result):
                pass
        if end in ("", "ended"):
            end = self.overfull() or "ended"
        while part := self.read(told):
            news += part
        if news.startswith(FAILED) or (self.mode == "namespaces" and end == "ended" and len(news) < CLOCK + 4):
            error = news[1:].decode("utf-8", "replace") or "the first process of the sandbox was ended"
            return {"end": "setup", "error": error}, b"", b""
        if self.mode == "namespaces" and len(news) >= CLOCK + 4:
            self.status = struct.unpack(">i", news[CLOCK : CLOCK + 4])[0]
        code = os.waitstatus_to_exitcode(self.status) if self.status is not None else 0
        head = {"end": end, "code": code, "seconds": seconds, "cpu": cpu}
        return head, bytes(self.printed), bytes(self.value)

    def hand(self, call: dict[str, Any]) -> None:
        """Give the waiting process its call; where it has ended, its end says why."""
        text = json.dumps(call).encode()
        view = memoryview(struct.pack(">I", len(text)) + text)
        with contextlib.suppress(BrokenPipeError):
            while view:
                view = view[os.write(self.ask, view) :]
        os.close(self.ask)

    def watch(self, root: int, out: int, result: int, told: int) -> tuple[bytes, str]:
        """Read the pipes until the candidate has ended or gone beyond a limit: news of the first process, the end."""
        poll, news, process = select.poll(), b"", os.pidfd_open(root)
        for pipe in (out, result, told, process):
            poll.register(pipe, select.POLLIN)
        poll.register(self.channel, select.POLLIN)
        started = self.mode != "namespaces"
        deadline = self.begun + (self.limits["seconds"] if started else SETUP)
        watch = Watch(os.getpid(), self.limits, None if self.mode == "namespaces" else self.folder)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return news, "timeout" if started else "setup"
            ready = dict(poll.poll(max(1, min(left, watch.pause) * 1000)))
            for pipe in (out, result):
                if pipe in ready and not self.take(pipe, pipe == result):
                    poll.unregister(pipe)
            if told in ready:
                part = self.read(told)
                news += part or b""
                if not part:
                    poll.unregister(told)
                if not started and len(news) >= CLOCK:
                    started, self.begun = True, max(self.begun, struct.unpack(">d", news[1:CLOCK])[0])
                    deadline = self.begun + self.limits["seconds"]
            if self.channel.fileno() in ready:  # from outside, where /proc is open, or gone
                return news, str(receive(self.channel)["end"])
            end = self.overfull() or ("ended" if process in ready else "") or watch.look()
            if end:
                os.close(process)
                return news, end

    def read(self, pipe: int) -> bytes | None:
        """What there is to read now; empty or None at the end or where there is nothing."""
        try:
            return os.read(pipe, 1 << 16)
        except BlockingIOError:
            return None

    def take(self, pipe: int, value: bool) -> bool:
        """Read a piece of the result or of what was printed; whether there may be more."""
        part = self.read(pipe)
        if not part or self.overfull():
            return False
        if value:
            self.value += part
        else:
            self.flood += len(part)
            self.printed += part
            del self.printed[:-TAIL]
        return True

    def overfull(self) -> str:
        """`output` if more was returned or printed than allowed."""
        over = self.flood > self.limits["output"] or len(self.value) > self.limits["output"] + FRAME
        return "output" if over else ""

    def kill(self) -> float:
        """End everything that the candidate has started; seconds of processor time that it has used."""
        root, self.root = self.root, 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(root, signal.SIGKILL)
        if self.mode == "landlock":
            self.sure_of_scope()
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        cpu = 0.0
        while True:
            if self.mode == "group":
                Watch(os.getpid(), self.limits).kill_all()
            try:
                pid, status, used = os.wait4(-1, 0)
            except ChildProcessError:
                return cpu
            cpu += used.ru_utime + used.ru_stime
            if pid == root:
                self.status = status

    @staticmethod
    def sure_of_scope() -> None:
        """Raise unless signals to the server are refused, and with it those to everybody outside of our domain."""
        try:
            os.kill(os.getppid(), 0)
        except PermissionError:
            return
        raise RuntimeError("Landlock does not keep signals in")

    def first(self) -> None:
        """The first process of the namespaces: make the file systems, start the candidate, tell how it ended."""
        disk = self.limits["disk"]
        safe = kernel.NO_SETUID | kernel.NO_DEVICES
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # when memory is short, this goes first
        kernel.unshare(kernel.NEW_MOUNTS)
        kernel.mount("none", "/", "", kernel.PRIVATE | kernel.RECURSIVE)
        kernel.mount("tmpfs", PRIVATE, "tmpfs", safe, f"size={disk},nr_inodes={1024 + disk // 4096},mode=0700")
        os.mkdir(self.folder)
        for name, seen in (("shared", "/dev/shm"), ("temporary", "/tmp")):
            os.mkdir(f"{PRIVATE}/{name}", 0o700)
            if seen != "/tmp" or self.place["temporary"]:
                kernel.mount(f"{PRIVATE}/{name}", seen, "", kernel.BIND)
        kernel.mount("proc", "/proc", "proc", safe | kernel.NO_EXEC | kernel.READ_ONLY)
        kernel.drop_capabilities()
        kernel.control(kernel.NO_NEW_PRIVILEGES, 1)
        kernel.control(kernel.DUMPABLE, 0)  # the candidate, of the same user, must not look into us
        os.write(self.tell, STARTED + struct.pack(">d", time.monotonic()))
        pid = os.fork()
        if pid == 0:
            kernel.control(kernel.DUMPABLE, 1)
            self.third()
        for pipe in (self.out, self.result, self.asked):
            os.close(pipe)
        while True:
            ended, status = os.wait()
            if ended == pid:
                os.write(self.tell, struct.pack(">i", status))
                os._exit(0)

    def second(self) -> NoReturn:
        """The candidate: last confinements, then its code."""
        os.setsid()
        os.umask(0o077)
        nothing = os.open(os.devnull, os.O_RDONLY)
        asked = fcntl.fcntl(self.asked, fcntl.F_DUPFD, 10)  # out of the way of the others
        for source, target in ((nothing, 0), (self.out, 1), (self.out, 2), (self.result, 3), (asked, 4)):
            os.dup2(source, target, inheritable=target < 3)
        os.closerange(5, os.sysconf("SC_OPEN_MAX"))
        os.environ.update(HOME=self.folder, TMPDIR=self.folder, PWD=self.folder)
        os.chdir(self.folder)
        in_namespace = self.mode == "namespaces"
        # Two processes of the namespace are ours. Elsewhere the limit would count all processes of the user.
        kernel.limit(self.memory, self.limits["disk"], self.limits["processes"] + 2 if in_namespace else None)
        if self.mode == "landlock":
            kernel.landlock(self.place["read"], [self.folder, "/dev/null"])
        if self.mode != "group":
            kernel.drop_capabilities()
            kernel.control(kernel.NO_NEW_PRIVILEGES, 1)
            kernel.forbid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        with open(4, "rb", buffering=0) as asked_for:
            parts = bytearray()
            while part := asked_for.read(1 << 20):
                parts += part
        if len(parts) < 4 or len(parts) - 4 != struct.unpack(">I", parts[:4])[0]:
            os._exit(0)  # the keeper has gone
        candidate.run(json.loads(parts[4:]), self.folder, 3)

    def third(self) -> NoReturn:
        """`second`, where what fails before the candidate's code runs is told over its own pipe."""
        try:
            self.second()
        except BaseException as reason:
            text = f"the sandbox could not be made: {type(reason).__name__}: {reason}"
            with contextlib.suppress(OSError):
                os.write(3, json.dumps({"crashed": text}).encode())
        os._exit(0)


def own_size() -> int:
    """Bytes of address space of this process."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    except OSError:  # /proc is closed
        return measured_size()


def measured_size() -> int:
    """Bytes of address space of this process, to a MiB: the least limit under which there is room for a page more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    low, high = 0, 1 << 40
    try:
        while high - low > 1 << 20:
            middle = (low + high) // 2
            resource.setrlimit(resource.RLIMIT_AS, (middle, hard))
            try:
                mmap.mmap(-1, mmap.PAGESIZE).close()
                high = middle
            except (OSError, MemoryError):
                low = middle
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    return high
