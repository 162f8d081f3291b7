"""What the adapters share: import somebody else's module or file, and say in one sentence what went wrong with it."""

from __future__ import annotations

import importlib
import importlib.util
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from evolvent.core.errors import UserError, VerifierError, nearest
from evolvent.core.secrets import redact


def import_module(name: str, what: str) -> ModuleType:
    """A module by its dotted name, or a `.py` file by its path. `UserError` if there is none or if it fails."""
    try:
        if not name.endswith(".py"):
            return importlib.import_module(name)
        path = Path(name).resolve()
        if not path.is_file():
            raise UserError(f"{what}: there is no file {name}")
        spec = importlib.util.spec_from_file_location(f"foreign_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module.__name__] = module
        spec.loader.exec_module(module)
        return module
    except UserError:
        raise
    except ModuleNotFoundError as reason:
        raise UserError(f"{what} needs the module `{reason.name}`, which is not installed; install it") from None
    except Exception as reason:
        raise UserError(f"{what}: {name} does not import ({brief(reason)}); mend it") from reason


def attribute(module: ModuleType, name: str, what: str) -> Any:
    """A member of a module; the error suggests the nearest name."""
    if not hasattr(module, name):
        raise UserError(f"{what}: {module.__name__} has no `{name}`{nearest(name, dir(module))}")
    return getattr(module, name)


def brief(reason: BaseException) -> str:
    """An exception in a few words."""
    text = redact(" ".join(str(reason).split()))[:300]  # a secret that is cut is not found any more
    return f"{type(reason).__name__}: {text}" if text else type(reason).__name__


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """What foreign code raises becomes a `VerifierError`."""
    try:
        yield
    except VerifierError:
        raise
    except Exception as reason:
        raise VerifierError(f"{what}: {brief(reason)}") from reason


@contextmanager
def own_signals() -> Iterator[None]:
    """Put the handlers of Ctrl-C and termination back afterwards: some libraries take them over when they load."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
