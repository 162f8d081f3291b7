"""One final answer out of a completion. Strict on purpose: whatever names several candidates names none."""

from __future__ import annotations

import re

TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
NUMBER = re.compile(r"[-+]?\d+")


def final_answer(completion: str) -> str | None:
    """The final answer of a completion, stripped; None if there is none.

    The last `<answer>...</answer>` if there is one (which is what the plain wording asks for), otherwise the last
    line that is not empty.
    """
    tagged = TAG.findall(completion)
    if tagged:
        return tagged[-1].strip() or None
    lines = [line.strip() for line in completion.splitlines() if line.strip()]
    return lines[-1] if lines else None


def integer(text: str | None) -> int | None:
    """The integer that the whole text is, or None. `012` is not accepted, nor is anything around the number."""
    if text is None or not NUMBER.fullmatch(text) or len(text) > 30:
        return None
    return int(text) if str(int(text)) == text.removeprefix("+") else None
