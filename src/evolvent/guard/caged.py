"""The sandbox's server as seen from outside: a process in its cage, and the socket that ends it when it closes."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import weakref
from collections.abc import Mapping, Sequence

from evolvent.core.errors import UserError
from evolvent.guard.cage import Cage
from evolvent.guard.worker import packed

STARTUP = 120.0  # seconds that loading the modules may take
GRACE = 3.0  # seconds that the server has to end by itself


class Server:
    """A running server, which has `spare` confinements ready. Raises `UserError` where it does not start, with what it
    said."""

    def __init__(self, cage: Cage, preload: Sequence[str], spare: int = 0) -> None:
        self.scratch, self.owner = cage.scratch, os.getpid()
        self.control, theirs = socket.socketpair()
        with theirs, tempfile.TemporaryFile() as said:
            # Not --die-with-parent: it means the thread that started it. The end of the socket is the same for all.
            self.process = subprocess.Popen(
                cage.command,
                stdin=theirs.fileno(),
                stdout=said,
                stderr=said,
                env=cage.environment,
                cwd="/",
                start_new_session=True,
            )
            theirs.close()
            SERVERS.add(self)
            try:
                self._send({**cage.setup, "preload": list(preload), "spare": spare})
                reply = self._receive()
            except (OSError, EOFError) as reason:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(GRACE)
                said.seek(0)
                text = " ".join(said.read().decode("utf-8", "replace").split())[-500:]
                reply = {"error": text or f"it did not start ({reason or 'no answer'})"}
            except BaseException:
                self.stop()
                raise
        if "error" in reply:
            self.stop()
            raise UserError(f"the sandbox could not be started: {reply['error']}")
        self.mode: str = reply["ready"]

    def hand(self, end: socket.socket, limits: Mapping[str, object]) -> None:
        """Give a keeper the socket of its call, and the limits that the call has."""
        frame = packed({"limits": dict(limits)})
        sent = socket.send_fds(self.control, [frame], [end.fileno()])
        self.control.sendall(frame[sent:])

    def stop(self) -> None:
        """End it and everything in it; nothing happens the second time, or in a forked copy."""
        if self.owner != os.getpid():
            return
        self.owner = -1
        self.control.close()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if self.scratch:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def _send(self, frame: dict[str, object]) -> None:
        self.control.sendall(packed(frame))

    def _receive(self) -> dict[str, str]:
        data = b""
        while len(data) < 4 or len(data) < 4 + struct.unpack(">I", data[:4])[0]:
            if not select.select([self.control], [], [], STARTUP)[0]:
                raise EOFError(f"no answer after {STARTUP:g} s")
            part = self.control.recv(1 << 16)
            if not part:
                raise EOFError
            data += part
        reply: dict[str, str] = json.loads(data[4:])
        return reply


SERVERS: weakref.WeakSet[Server] = weakref.WeakSet()


def forget() -> None:
    """In a fork of this process: close its copies of the sockets, so that the servers end with the original."""
    for server in list(SERVERS):
        server.control.close()


os.register_at_fork(after_in_child=forget)
