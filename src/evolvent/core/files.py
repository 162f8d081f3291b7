"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Failures to write below a path as an `OSError` with that path, those of safetensors too."""
    try:
        yield
    except OSError as reason:
        reason.filename = reason.filename or str(path)
        raise
    except SafetensorError as reason:  # it says what the system said, in words only
        raise OSError(errno.ENOSPC, str(reason).removeprefix("Error while serializing: "), str(path)) from None


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A place to write a file to, which takes its name when all of it is there; `OSError` if that fails."""
    part = path.with_suffix(".part")
    try:
        with writing(path):
            yield part
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
