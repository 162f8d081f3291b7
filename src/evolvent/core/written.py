"""JSON that a model has written into its answer."""

from __future__ import annotations

import json
from typing import Any

from evolvent.core.untrusted import read_json


def read_written(text: str) -> Any:
    """As `read_json`; half characters, which escapes such as `\\ud800` make and nothing can keep, become `?`."""
    data = read_json(text)
    return json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")) if "\\u" in text else data
