"""What to say, and what to change, where a stage ran out of memory. Knows torch's errors without importing torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from evolvent.core.errors import UserError

ALLOCATOR = ("not enough memory", "can't allocate memory", "out of memory", "buffer size")  # in messages of torch


def remedy(stage: str) -> str:
    """What to change where a stage ran out of memory."""
    if stage == "learn":
        return (
            "lower learn.micro_tokens or set learn.recompute=true (the gradient stays the same), train a LoRA adapter "
            "(--lora), or load the model in bfloat16"
        )
    return "lower propose.problems, propose.n or rollout.max_tokens, or load the model in bfloat16"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch or Python could not allocate."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":  # torch's is a RuntimeError, too
        return True
    return isinstance(error, RuntimeError) and any(text in str(error).lower() for text in ALLOCATOR)


@contextmanager
def explained(stage: str) -> Iterator[None]:
    """Turn a failed allocation in a stage (`rollout`, `learn`, ...) into a `UserError` that names the remedy."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        first = str(error).strip().splitlines()[0][:160] if str(error).strip() else type(error).__name__
        raise UserError(f"out of memory in `{stage}`: {remedy(stage)} ({first})") from None
