"""The warm server: one interpreter with modules loaded, which forks a keeper for every call that it is handed.

It gets, over a socket at descriptor 0, first its set-up as a frame, then for each call a frame with the call's limits
and a socket attached; everything else about the call goes over that socket. It ends when the other side has closed.

Where calls have namespaces of their own some keepers wait ahead of the calls, their confinement made for the limits
that the last call had; each carries out one call.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import shutil
import signal
import socket
import struct
import sys
import threading
from collections import deque
from typing import Any

from . import kernel
from .keeper import exactly, keep, receive, send


def uncover() -> None:
    """Take away what bubblewrap has laid over parts of /proc: the kernel gives no fresh /proc below a covered one.

    The candidate's own is read-only.
    """
    with open("/proc/self/mountinfo") as file:
        places = [line.split()[4] for line in file]
    for place in reversed(places):
        if place.startswith("/proc/"):
            kernel.unmount(place)


def best_mode(wanted: str) -> str:
    """How candidates can be confined here: tried for the namespaces, asked for Landlock. Raises `RuntimeError`."""
    if wanted == "group":
        return wanted
    reason = ""
    if wanted == "namespaces":
        with contextlib.suppress(OSError):
            uncover()
        reason = trial()
        if not reason:
            return "namespaces"
    if kernel.landlock_version() >= kernel.SCOPES_SINCE:
        return "landlock"
    raise RuntimeError(reason or "the kernel has no Landlock 6 (Linux 6.12)")


def trial() -> str:
    """Why namespaces within namespaces do not work here, or an empty string."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            kernel.leave_user(
                kernel.NEW_PIDS | kernel.NEW_NET | kernel.NEW_IPC | kernel.NEW_NAME | kernel.NEW_MOUNTS, 1
            )
            if os.fork():
                os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
            kernel.mount("none", "/", "", kernel.PRIVATE | kernel.RECURSIVE)
            kernel.mount("proc", "/proc", "proc", kernel.READ_ONLY)
            os._exit(0)
        except BaseException as reason:
            os.write(tell, str(reason).encode()[:500])
            os._exit(1)
    os.close(tell)
    text = os.read(told, 1000).decode("utf-8", "replace")
    os.close(told)
    status = os.waitpid(pid, 0)[1]
    return text or ("namespaces within namespaces are refused" if status else "")


def serve(control: socket.socket, mode: str, place: dict[str, Any]) -> None:
    """Hand every call to a keeper until the other side closes."""
    signal.signal(signal.SIGCHLD, lambda *_: reap())
    keepers = Keepers(control, mode, place)
    while True:
        head, sockets, _, _ = socket.recv_fds(control, 4, 1)
        if not head:
            return
        head += exactly(control, 4 - len(head))
        limits = json.loads(exactly(control, struct.unpack(">I", head)[0]))["limits"]
        keepers.hand(sockets[0], limits)
        os.close(sockets[0])
        keepers.refill()


class Keepers:
    """The keepers that wait for a call, in the order in which they were forked."""

    def __init__(self, control: socket.socket, mode: str, place: dict[str, Any]) -> None:
        self.control, self.mode, self.place = control, mode, place
        self.most: int = place["spare"] if mode == "namespaces" else 0
        self.waiting: deque[socket.socket] = deque()
        self.limits: dict[str, int] = {}

    def fork(self) -> socket.socket:
        """A new keeper, and the socket over which it gets a call. Where that closes without one, it ends."""
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in (self.control, ours, *self.waiting):
                other.close()
            keep(theirs, self.mode, self.place, self.limits)
        theirs.close()
        return ours

    def hand(self, channel: int, limits: dict[str, int]) -> None:
        """Give a call to one that waits, if its confinement has the limits of the call, or else to a new one."""
        if limits != self.limits:
            while self.waiting:
                self.waiting.pop().close()
            self.limits = limits
        while True:
            with self.waiting.popleft() if self.waiting else self.fork() as keeper:
                try:
                    socket.send_fds(keeper, [b"c"], [channel])
                    return
                except (BrokenPipeError, ConnectionResetError):
                    continue  # it was ended from outside while it waited

    def refill(self) -> None:
        """Fork keepers for calls to come."""
        while len(self.waiting) < self.most:
            self.waiting.append(self.fork())


def reap() -> None:
    """Take note of keepers that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main() -> None:
    """Set up, load, say so, serve."""
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    setup = receive(control)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        sys.path += [p for p in setup["packages"] if p not in sys.path]
        for name in setup["preload"]:
            importlib.import_module(name)
        if "numpy" in sys.modules:
            importlib.import_module("numpy.random")  # every candidate seeds it
        if threading.active_count() > 1:
            raise RuntimeError("a preloaded module has started threads, which a fork does not take along")
        mode = best_mode(setup["mode"])
        kernel.filter_program()  # once for all candidates
        gc.collect()
        gc.freeze()
    except Exception as reason:
        send(control, {"error": f"{type(reason).__name__}: {reason}"})
        return
    send(control, {"ready": mode})
    sys.argv = [""]
    with contextlib.suppress(ConnectionError):
        serve(control, mode, setup)
    if mode == "group":  # keepers have seen it as well; elsewhere the cage cleans up
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
        shutil.rmtree(setup["scratch"], ignore_errors=True)
