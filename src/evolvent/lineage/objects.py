"""Content-addressed files: what a version is made of, stored once under the hash of its bytes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import fsspec

from evolvent.core.errors import UserError


class Objects:
    """Files under `root` (a folder, or any URL that fsspec knows), named by BLAKE2b of their content."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")
        self.fs, self.base = fsspec.core.url_to_fs(self.root)

    def _path(self, name: str) -> str:
        return f"{self.base}/{name[:2]}/{name[2:]}"

    def put(self, file: Path) -> str:
        """Store a file; its name. Writing it again costs nothing."""
        digest = hashlib.blake2b(digest_size=20)
        with file.open("rb") as source:
            while block := source.read(1 << 20):
                digest.update(block)
        name = digest.hexdigest()
        path = self._path(name)
        if not self.fs.exists(path):
            self.fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            part = f"{path}.{os.getpid()}.part"
            self.fs.put_file(str(file), part)
            self.fs.mv(part, path)
        return name

    def get(self, name: str, to: Path) -> Path:
        """Copy a stored file to a place on this machine."""
        path = self._path(name)
        if not self.fs.exists(path):
            raise UserError(f"the store has lost the file {name[:12]} of a version; `evolvent gc` may have removed it")
        to.parent.mkdir(parents=True, exist_ok=True)
        self.fs.get_file(path, str(to))
        return to

    def names(self) -> Iterator[tuple[str, int]]:
        """Name and size in bytes of everything stored."""
        if not self.fs.exists(self.base):
            return
        for path, info in self.fs.find(self.base, detail=True).items():
            folder, _, rest = path.rpartition("/")
            if not rest.endswith(".part"):
                yield folder[-2:] + rest, int(info["size"])

    def remove(self, name: str) -> None:
        """Delete a stored file."""
        self.fs.rm_file(self._path(name))
