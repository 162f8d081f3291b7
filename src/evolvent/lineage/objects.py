"""Content-addressed files: what a version is made of, stored once under the hash of its bytes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import fsspec

from evolvent.core.errors import UserError


@dataclass(frozen=True)
class Stored:
    """A file in the store: where, its name, size in bytes, last change; `pid` of the process that is writing it."""

    path: str
    name: str
    size: int
    changed: float
    pid: int | None


class Objects:
    """Files under `root` (a folder, or any URL that fsspec knows), named by BLAKE2b of their content."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")
        self.fs, self.base = fsspec.core.url_to_fs(self.root)

    def _path(self, name: str) -> str:
        return f"{self.base}/{name[:2]}/{name[2:]}"

    def put(self, file: Path) -> str:
        """Store a file; its name. Writing it again costs nothing."""
        name = name_of(file)
        path = self._path(name)
        if not self.fs.exists(path):
            self.fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            part = f"{path}.{os.getpid()}.part"
            try:
                self.fs.put_file(str(file), part)
                self.fs.mv(part, path)
            except OSError:
                if self.fs.exists(part):
                    self.fs.rm_file(part)
                raise
        return name

    def has(self, name: str) -> bool:
        """Whether a file is there."""
        return bool(self.fs.exists(self._path(name)))

    def get(self, name: str, to: Path) -> Path:
        """Copy a stored file to a place on this machine."""
        path = self._path(name)
        if not self.fs.exists(path):
            raise UserError(f"the store has lost the file {name[:12]} of a version; `evolvent gc` may have removed it")
        to.parent.mkdir(parents=True, exist_ok=True)
        self.fs.get_file(path, str(to))
        if name_of(to) != name:
            raise UserError(f"the file {name[:12]} of a version is damaged in the store")
        return to

    def files(self) -> Iterator[Stored]:
        """Everything stored, files on their way included."""
        if not self.fs.exists(self.base):
            return
        for path, info in sorted(self.fs.find(self.base, detail=True).items()):
            folder, _, rest = path.rpartition("/")
            name, _, pid = rest.removesuffix(".part").partition(".")
            changed = info.get("mtime") or info.get("LastModified") or 0.0
            changed = changed.timestamp() if hasattr(changed, "timestamp") else float(changed)
            yield Stored(path, folder[-2:] + name, int(info["size"]), changed, int(pid) if pid.isdigit() else None)

    def remove(self, stored: Stored) -> None:
        """Delete a stored file."""
        self.fs.rm_file(stored.path)


def name_of(file: Path) -> str:
    """The hash that a file is stored under."""
    digest = hashlib.blake2b(digest_size=20)
    with file.open("rb") as source:
        while block := source.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
