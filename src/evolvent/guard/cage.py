"""The command lines that put the sandbox's server into a cage, and what of the machine it sees there."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INSIDE = Path(__file__).with_name("inside")
PACKAGE = INSIDE.parents[1]
CAGED = "/evolvent/inside"  # where `INSIDE` lies behind bubblewrap
PRIVATE = "/sandbox"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/etc/ld.so.cache", "/etc/alternatives")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
ENVIRONMENT = {
    "PATH": f"{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin",  # `python` is this interpreter
    "HOME": PRIVATE,
    "USER": "sandbox",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "MALLOC_ARENA_MAX": "2",  # each arena takes 64 MiB of the address space, and each thread likes one of its own
}
# The interpreter is isolated: no environment variables for Python, no folder of the program, no packages of the user.
START = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("inside", {folder!r} + "/__init__.py")
sys.modules["inside"] = importlib.util.module_from_spec(spec)
from inside import server
server.main()
"""
FLAGS = ("-I", "-B", "-u")
LOCK = """
import json, shutil, sys, sandlock
plan = json.loads(sys.argv[1])
try:
    code = sandlock.Sandbox(**plan["policy"]).run_interactive(plan["command"])
finally:
    shutil.rmtree(plan["scratch"], ignore_errors=True)
sys.exit(code)
"""
MOST_PROCESSES = 4096  # of all calls together, behind sandlock; each call has its own limit


@dataclass(frozen=True)
class Cage:
    """How to start a server: command line, environment, what it is told first, the folder to remove when it has ended.

    `setup` has the keys mode, packages, read, scratch and temporary; preload and spare come to them. See
    `inside/server.py`.
    """

    command: list[str]
    setup: dict[str, Any]
    environment: dict[str, str]
    scratch: str | None = None


def package_folders() -> list[str]:
    """The folders of installed packages that this interpreter imports from."""
    return [p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages") and os.path.isdir(p)]


def visible(folders: Sequence[Path]) -> list[str]:
    """Everything that can be read inside: the system, the interpreter, the packages, and `folders`; outermost first."""
    own = [sys.prefix, sys.base_prefix, sys.exec_prefix, *package_folders()]
    paths = {*own, *map(os.path.realpath, own), *(os.path.abspath(f) for f in folders)}
    paths = {p for p in paths if os.path.exists(p)}
    found = [p for p in SYSTEM if os.path.lexists(p)]
    for path in sorted(paths):
        if not any(Path(path).is_relative_to(outer) for outer in found):
            found.append(path)
    return found


def bubblewrap(folders: Sequence[Path]) -> Cage:
    """Behind bubblewrap: own namespaces, a root that holds `visible` and nothing more, all of it read-only."""
    command = [shutil.which("bwrap") or "bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc"]
    command += [
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--as-pid-1",
        "--hostname",
        "sandbox",
        "--uid",
        "1000",
        "--gid",
        "1000",
    ]
    command += ["--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN"]  # in its own namespace, to make those of candidates
    paths = visible(folders)
    # Devices one by one: --dev needs a second user namespace, from which those of candidates cannot be made.
    command += ["--proc", "/proc", "--tmpfs", "/dev", "--dir", "/dev/shm", "--tmpfs", PRIVATE, "--dir", "/tmp"]
    for device in DEVICES:
        command += ["--dev-bind", device, device]
    for name in ("fd", "fd/0", "fd/1", "fd/2"):
        link = {"fd/0": "stdin", "fd/1": "stdout", "fd/2": "stderr"}.get(name, name)
        command += ["--symlink", f"/proc/self/{name}", f"/dev/{link}"]
    for path in paths:
        if os.path.islink(path) and path in SYSTEM:
            command += ["--symlink", os.readlink(path), path]
        else:
            command += ["--ro-bind", path, path]
    if any(
        PACKAGE.is_relative_to(path) for path in paths
    ):  # a world's right answers are none of a candidate's business
        command += ["--tmpfs", str(PACKAGE)]
    command += ["--ro-bind", str(INSIDE), CAGED, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--"]
    command += [sys.executable, *FLAGS, "-c", START.format(folder=CAGED)]
    setup = {
        "mode": "namespaces",
        "packages": package_folders(),
        "read": [*paths, *DEVICES, CAGED],
        "scratch": PRIVATE,
        "temporary": not any(Path(p).is_relative_to("/tmp") for p in paths),  # whether /tmp may be laid over
    }
    return Cage(command, setup, ENVIRONMENT)


def plain(folders: Sequence[Path]) -> Cage:
    """In no cage: a process with a clean environment."""
    scratch = tempfile.mkdtemp(prefix="evolvent-sandbox-")
    setup = {"mode": "group", "packages": package_folders(), "read": [], "scratch": scratch, "temporary": False}
    command = [sys.executable, *FLAGS, "-c", START.format(folder=str(INSIDE))]
    return Cage(command, setup, {**ENVIRONMENT, "HOME": scratch, "TMPDIR": scratch}, scratch)


def sandlock(folders: Sequence[Path]) -> Cage:
    """Behind sandlock: Landlock for files, seccomp for network and system calls; no namespaces and no rights needed."""
    outer = plain(folders)
    paths = [*visible(folders), *DEVICES, str(INSIDE)]
    policy = {
        "fs_readable": paths,
        "fs_writable": [outer.scratch, "/dev/null"],
        "clean_env": True,
        "env": outer.environment,
        "max_processes": MOST_PROCESSES,
    }
    plan = {"policy": policy, "command": outer.command, "scratch": outer.scratch}
    command = [sys.executable, "-P", "-c", LOCK, json.dumps(plan)]
    return Cage(command, {**outer.setup, "mode": "landlock", "read": paths}, outer.environment, outer.scratch)


CAGES = {"bubblewrap": bubblewrap, "sandlock": sandlock, "none": plain}


def installed(kind: str) -> bool:
    """Whether the program or package of the kind is there."""
    if kind == "bubblewrap":
        return shutil.which("bwrap") is not None
    return kind == "none" or importlib.util.find_spec(kind) is not None
