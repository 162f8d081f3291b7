"""Where a stage runs out of memory, the error says what to change."""

from __future__ import annotations

import pytest
import torch

from evolvent.core.errors import UserError
from evolvent.core.out_of_memory import explained


def test_running_out_of_memory_names_the_remedy() -> None:
    """A real failure of the allocator, in either stage; other errors pass."""
    with pytest.raises(UserError, match=r"out of memory in `learn`: lower learn.micro_tokens"), explained("learn"):
        torch.empty(2**55)
    with pytest.raises(UserError, match=r"out of memory in `rollout`: lower propose.problems"), explained("rollout"):
        bytearray(2**62)
    with pytest.raises(RuntimeError, match="shape"), explained("learn"):
        torch.zeros(2).view(3)
    with pytest.raises(UserError, match="CUDA out of memory"), explained("learn"):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
