"""The connection of this process to Ray: a cluster of its own on this machine, or one that is running already.

local        a cluster of this process's own, which ends with it
auto         the cluster that runs on this machine
HOST:PORT    the cluster whose head node is there; this machine has to be one of its nodes
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import sys
import weakref
from typing import Any

from evolvent.core.errors import UserError

LOCAL, AUTO = "local", "auto"
HEAD = re.compile(r"([A-Za-z0-9.-]+):([0-9]{1,5})")
REACH = 5.0  # seconds that a head node has to answer
ATTEMPTS = 2  # to start a cluster of our own
OBJECTS = 128 << 20  # bytes of memory for objects in a cluster of our own: what travels is small


def check_address(address: str) -> None:
    """`UserError` for what is no address, and for a head node where nothing answers."""
    if address in (LOCAL, AUTO):
        return
    match = HEAD.fullmatch(address)
    if not match or not 0 < int(match[2]) < 1 << 16:
        raise UserError(f"`{address}` is no address of a Ray cluster; name HOST:PORT of its head node, or `auto`")
    try:
        with socket.create_connection((match[1], int(match[2])), REACH) as connection:
            if os.environ.get("RAY_USE_TLS") != "1":
                greet(connection)
    except OSError as reason:
        raise UserError(
            f"no Ray cluster answers at {address} ({reason}); start one there by `ray start --head --port={match[2]}`, "
            "or leave the address out for a cluster of this process's own"
        ) from None


def greet(connection: socket.socket) -> None:
    """Greet as a client of HTTP/2 does, and wait for the server's settings (RFC 9113, 3.4): Ray tries for minutes to
    reach a head node at something else, and then ends the process. Raises `ConnectionError` where that is no answer."""
    settings = b"\0\0\0\4\0\0\0\0\0"  # a frame without content
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings)
    head = b""
    while len(head) < 9:
        part = connection.recv(9 - len(head))
        if not part:
            break
        head += part
    if len(head) < 9 or head[3] != 4:
        raise ConnectionError("what answers there is no head node")


def load(address: str) -> Any:
    """The module `ray`. `UserError` where it is not installed."""
    ours = address == LOCAL and "ray" not in sys.modules
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anybody
    if (
        ours and "RAY_AUTH_MODE" not in os.environ
    ):  # its ports are open to the network: only who knows this may use them
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    try:
        import ray
    except ImportError:
        raise UserError('Ray is not installed; pip install "evolvent[scale]", or leave out the pool') from None
    return ray


def connect(user: object, address: str, workers: int) -> Any:
    """The module `ray`, connected, for as long as `user` needs it. A connection that somebody else made is used as it
    is. `UserError` where there is no cluster, or this process is connected to another one."""
    ray = load(address)
    if not ray.is_initialized():
        check_address(address)
        own: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": OBJECTS}
        settings = own if address == LOCAL else {}
        for attempt in range(ATTEMPTS):
            try:
                ray.init(address=address, log_to_driver=False, logging_level="ERROR", **settings)
                break
            except Exception as reason:  # Ray has no class for these
                ray.shutdown()
                if address == LOCAL and attempt + 1 < ATTEMPTS:
                    continue  # it gives a cluster half a minute to start, which a busy machine may exceed
                text = " ".join(str(reason).split())[:300]
                raise UserError(
                    f"cannot connect to a Ray cluster at {address}: {text} (`ray status` says what runs here)"
                ) from None
        OURS["address"] = address
    elif OURS.get("address", address) != address:
        raise UserError(
            f"this process is connected to a Ray cluster at {OURS['address']}, and cannot use one at {address}, too; "
            "close the other pools first"
        )
    USERS.add(user)
    return ray


def release(user: object) -> None:
    """The user needs it no longer; the last one closes a connection that we have made."""
    USERS.discard(user)
    if OURS and not USERS:
        OURS.clear()
        load(LOCAL).shutdown()


USERS: weakref.WeakSet[object] = weakref.WeakSet()
OURS: dict[str, str] = {}  # the address of the connection, if it was made here; Ray has one for each process
