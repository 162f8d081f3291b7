"""Where a run ran, as far as its result may depend on it; and the hash of the code."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from pathlib import Path

import evolvent


@cache
def code_hash() -> str:
    """Hash of all Python files of the package."""
    root = Path(evolvent.__file__).parent
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def environment() -> dict[str, object]:
    """Versions and processor; no names of machines, users or folders."""
    import numpy
    import torch

    return {
        "evolvent": evolvent.__version__,
        "code": code_hash(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }
