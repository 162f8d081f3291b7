"""The warm server: one interpreter with modules loaded, which forks a keeper for every call that it is handed.

It gets, over a socket at descriptor 0, first its set-up as a frame, then for each call one byte with a socket attached;
everything else about the call goes over that socket. It ends when the other side has closed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil
import signal
import socket
import sys
import threading
from typing import Any

from . import kernel
from .keeper import keep, receive, send


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
    """Fork a keeper for every call until the other side closes."""
    signal.signal(signal.SIGCHLD, lambda *_: reap())
    while True:
        byte, sockets, _, _ = socket.recv_fds(control, 1, 1)
        if not byte:
            return
        if sockets and os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            keep(socket.socket(fileno=sockets[0]), mode, place)
        for number in sockets:
            os.close(number)


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
