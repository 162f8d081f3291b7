"""Keep keys and passwords out of what is stored, logged and shown.

Three kinds are known: `user:password@` in an address, `password=` and its like in its query, and values of environment
variables that are named like secrets.
"""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache

NAMED = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
# passwords may hold @ and /, though they should not; what follows a port is a path
ADDRESS = re.compile(r"(://)[^/\s:@\"'?#\[]*:(?!\d+/)[^\s\"'<>]{1,200}(?=@)")
QUERY = re.compile(
    r"(://[^\s\"'<>{}]{1,200}?[?&](?:password|passwd|access_token|api_?key)=)[^&#\s\"'<>{}]+", re.IGNORECASE
)
SHORTEST = 8  # characters; shorter values are words that may stand anywhere


@lru_cache(maxsize=4)
def _pattern(values: tuple[str, ...]) -> re.Pattern[str] | None:
    return re.compile("|".join(_whole(v) for v in values)) if values else None


def _whole(value: str) -> str:
    """A pattern for a secret; one of digits is not looked for among the digits of a longer number."""
    return rf"(?<!\d)(?<!\d\.){value}(?!\d)" if value.isdecimal() else re.escape(value)


def redact(text: str) -> str:
    """The text with every known secret replaced by `***`."""
    values = {v for n, v in os.environ.items() if len(v) >= SHORTEST and NAMED.search(n)}
    values |= {json.dumps(v)[1:-1] for v in values}  # as they look inside JSON
    pattern = _pattern(tuple(sorted(values, key=lambda v: (-len(v), v))))
    if pattern is not None:
        text = pattern.sub("***", text)
    return QUERY.sub(r"\1***", ADDRESS.sub(r"\1***", text)) if "://" in text else text
