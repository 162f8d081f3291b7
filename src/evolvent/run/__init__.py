"""Carry runs out: description, session, log, final measurements.

Importing this package binds `evolvent.run`, which is also the name of the function of the Python interface; so the
package can be called, and is that function then.
"""

from __future__ import annotations

import sys
import types
from typing import Any


class _Run(types.ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Any:
        from evolvent.run.api import run

        return run(*args, **options)


sys.modules[__name__].__class__ = _Run
