"""Float32 products at the rate that the processor has.

torch computes them with MKL, which leaves AVX-512 aside on processors that are not Intel's. oneDNN, which comes with
torch too, does not: there it is twice as fast, and as exact. It takes half a millisecond over every shape that it has
not met before, so small maps and few rows stay where they are; on Intel's processors, where it gains nothing and takes
milliseconds, everything does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

SMALL = 2**15  # elements of a weight, up to which a map counts as small
FEW = 64  # rows
LARGE = 500_000  # parameters, from which on training gains
SHORT = 512  # positions, up to which attention needs no fused kernel


@cache
def available() -> bool:
    """Whether oneDNN is there and the faster one: it has AVX-512 to use, and MKL does not use it."""
    known = hasattr(torch.ops.mkldnn, "_linear_pointwise") and torch.backends.mkldnn.is_available()
    return known and "AVX512" in torch.backends.cpu.get_cpu_capability() and not made_by_intel()


def made_by_intel(about: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor is one of Intel's, as far as the system tells."""
    return about.is_file() and "GenuineIntel" in about.read_text()


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b, without a gradient."""
    small = weight.numel() <= SMALL or x.numel() < FEW * weight.shape[1]
    if small or x.dtype != torch.float32 or x.device.type != "cpu" or not available():
        return F.linear(x, weight, bias)
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


@contextmanager
def fast(device: torch.device, parameters: int, longest: int) -> Iterator[None]:
    """For training passes over rows of up to `longest` tokens.

    `medium` lets float32 products go through oneDNN. Its fused attention is slow with that setting; plain products
    are not, but their scores take memory that grows with the square of the length.
    """
    if device.type != "cpu" or parameters < LARGE or longest > SHORT or not (available() and exact()):
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


@cache
def exact() -> bool:
    """Whether `medium` keeps float32 here: processors with AMX round to bfloat16 there."""
    before = torch.get_float32_matmul_precision()
    x = torch.randn(256, 256, generator=torch.Generator().manual_seed(0))
    torch.set_float32_matmul_precision("medium")
    try:
        error = (x @ x).double() - x.double() @ x.double()
    finally:
        torch.set_float32_matmul_precision(before)
    return float(error.abs().max()) < 1e-3  # rounding to bfloat16 makes it 0.3
