"""What a run's result depends on, as it is stored with the run: versions, the hash of the code, recipes and values."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evolvent
from evolvent.core.errors import UserError

if TYPE_CHECKING:
    from evolvent.lineage.runs import RunView
    from evolvent.run.assemble import Assembled


@cache
def code_hash() -> str:
    """Hash of all Python files of the package."""
    root = Path(evolvent.__file__).parent
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


@contextmanager
def fitting(view: RunView) -> Iterator[None]:
    """What goes wrong within, as the state of a run is read, is its older code's: `UserError`, unless that is this."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as reason:
        begun = view.environment
        if begun.get("code") == code_hash():
            raise
        raise UserError(
            f"the checkpoint of {view.name} does not fit this code of evolvent ({type(reason).__name__}: {reason}); "
            f"resume it with the code that wrote it ({begun.get('evolvent')}, code {begun.get('code')}), or begin anew"
        ) from reason


def environment(sandbox: str | None = None) -> dict[str, object]:
    """Versions and processor, and the kind of sandbox if programs run; no names of machines, users or folders."""
    import numpy

    torch = sys.modules.get("torch")  # not there in a search

    return {
        "evolvent": evolvent.__version__,
        "code": code_hash(),
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
        "numpy": numpy.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads() if torch else None,
        **({"sandbox": sandbox} if sandbox else {}),
    }


def describe_plan(assembled: Assembled) -> dict[str, Any]:
    """The recipes with their patches, and every value beside the paper's: what a report says even if recipes change."""
    from evolvent.core.recipe import USER, describe, show_path
    from evolvent.recipes.catalogue import op_line, settings_of

    plan, spec = assembled.plan, assembled.spec
    base = {s.path: s for s in settings_of(spec.recipe, {}, spec.take, assembled.profile)}
    values = []
    for s in (s for built in assembled.built.values() for s in built.settings):
        unset = base.get(s.path)
        if s.value is not None or (unset and unset.value is not None):
            row: dict[str, Any] = {"path": show_path(s.path), "value": describe(s.value), "origin": s.origin}
            row["paper"] = describe(unset.paper) if unset else None
            row["profile"] = describe(unset.value) if unset and unset.origin.startswith("profile") else None
            row["user"] = describe(s.value) if s.origin == USER else None
            values.append(row)
    return {
        "name": plan.name,
        "profile": assembled.profile,
        "parameters": assembled.policy.size,
        "recipes": [
            {
                "name": r.name,
                "parent": r.parent.name if r.parent else None,
                "title": r.title,
                "paper": r.paper,
                "doc": r.doc,
                "ops": [op_line(op) for op in r.ops],
            }
            for r in plan.recipes
        ],
        "values": values,
    }
