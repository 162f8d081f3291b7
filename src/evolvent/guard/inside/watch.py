"""What the processes of a call use together, looked at from outside: their number, their memory, their files."""

from __future__ import annotations

import contextlib
import os
import signal
import time

PAGE = os.sysconf("SC_PAGESIZE")
SHARE = 20  # a look may take one part in so many of the time


class Watch:
    """The descendants of a keeper. `folder`: the real folder whose size is looked at, or None."""

    def __init__(self, keeper: int, limits: dict[str, int], folder: str | None = None) -> None:
        self.keeper, self.limits, self.folder = keeper, limits, folder
        self.pause, self.next = 0.01, 0.0

    def look(self) -> str:
        """The limit that was passed, or an empty string; looks only when it is time to."""
        begun = time.monotonic()
        if begun < self.next:
            return ""
        members, threads = self.members()
        end = ""
        if threads > self.limits["processes"] + 1:
            end = "processes"
        elif sum(map(own_memory, members)) > self.limits["memory"] and self.shared_out(members):
            end = "memory"
        elif self.folder and size_of(self.folder, self.limits["disk"]) > self.limits["disk"]:
            end = "disk"
        now = time.monotonic()
        self.pause = max(0.02, SHARE * (now - begun))
        self.next = now + self.pause
        return end

    def shared_out(self, members: list[int]) -> bool:
        """Whether their memory is too much as well when pages that several of them share count once."""
        return sum(map(proportional_memory, members)) > self.limits["memory"]

    def members(self) -> tuple[list[int], int]:
        """The processes below the keeper, and how many threads they have; nothing where /proc is closed."""
        parents: dict[int, list[int]] = {}
        threads: dict[int, int] = {}
        with contextlib.suppress(OSError):
            for name in os.listdir("/proc"):
                if name.isdigit():
                    with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{name}/stat") as file:
                        fields = file.read().rpartition(")")[2].split()
                        if fields[0] not in "ZX":
                            parents.setdefault(int(fields[1]), []).append(int(name))
                            threads[int(name)] = int(fields[17])
        found, waiting = [], [self.keeper]
        while waiting:
            below = parents.get(waiting.pop(), [])
            found += below
            waiting += below
        return found, sum(threads[pid] for pid in found)

    def kill_all(self) -> None:
        """End all of them, as often as there are new ones."""
        while members := self.members()[0]:
            for pid in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)


def own_memory(pid: int) -> int:
    """Bytes of memory that are no file's; 0 where it cannot be read."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/statm") as file:
        fields = file.read().split()
        return (int(fields[1]) - int(fields[2])) * PAGE
    return 0


def proportional_memory(pid: int) -> int:
    """Like `own_memory`, but a page that n processes share counts as an nth."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss_Anon:"):
                return int(line.split()[1]) * 1024
    return 0


def size_of(folder: str, most: int) -> int:
    """Bytes in a folder, every file counting as a page at least; stops counting above `most`."""
    total, waiting = 0, [folder]
    while waiting and total <= most:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    total += max(PAGE, entry.stat(follow_symlinks=False).st_blocks * 512)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                if total > most:
                    break
    return total
