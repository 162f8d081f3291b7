"""States as one safetensors file: records and plain data as JSON, arrays beside them; nothing is pickled.

Arrays of one type share a flat buffer, so that a replay buffer of thousands of trajectories stays cheap.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from evolvent.core.errors import UserError
from evolvent.core.files import whole
from evolvent.core.records import Batch, Change, Group, Message, Problem, Reward, Segment, Trajectory

RECORDS: dict[str, Any] = {c.__name__: c for c in (Batch, Change, Group, Message, Problem, Reward, Segment, Trajectory)}
FORMAT = "evolvent-state-1"
TREE = "tree"  # the buffer that holds the JSON; a header of safetensors is limited to 100 MB
KINDS: dict[Any, str] = {tuple: "t", set: "s", frozenset: "z"}


NUMPY = frozenset(
    [
        "bool",
        "complex64",
        *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)),
        *(f"float{b}" for b in (16, 32, 64)),
    ]
)


class Packer:
    """Turns a state into a JSON tree and flat buffers."""

    def __init__(self) -> None:
        self.buffers: dict[str, list[Any]] = {}
        self.sizes: dict[str, int] = {}

    def encode(self, value: Any) -> Any:
        """The JSON form of a value; arrays go to the buffers. `TypeError` for what could not be read back."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray) or _is_tensor(value):
            return self._array(value)
        kind = type(value)
        if RECORDS.get(kind.__name__) is kind:
            if dataclasses.is_dataclass(value):
                fields = [getattr(value, f.name) for f in dataclasses.fields(value)]
            else:
                fields = list(value)
            return {"$": kind.__name__, "f": [self.encode(v) for v in fields]}
        if kind is list:
            return [self.encode(v) for v in value]
        if kind in KINDS:
            items = list(value) if kind is tuple else sorted(value, key=repr)
            return {"$": KINDS[kind], "f": [self.encode(v) for v in items]}
        if isinstance(value, Mapping):
            if all(isinstance(k, str) and k != "$" for k in value):
                return {k: self.encode(v) for k, v in value.items()}
            return {"$": "d", "f": [[self.encode(k), self.encode(v)] for k, v in value.items()]}
        raise TypeError(f"a state holds a {kind.__name__}, which cannot be saved; keep plain data, arrays or records")

    def _array(self, value: Any) -> dict[str, Any]:
        shape, origin = list(value.shape), "n"
        if isinstance(value, np.ndarray):
            flat: Any = np.ascontiguousarray(value, value.dtype.newbyteorder("=")).reshape(-1)
            kind = flat.dtype.name
            if kind not in NUMPY:
                raise TypeError(f"a state holds an array of {kind}, which cannot be saved; keep numbers")
        else:
            origin, flat = "p", value.detach().cpu().reshape(-1)
            kind = str(flat.dtype).removeprefix("torch.")
            flat = flat.numpy() if kind in NUMPY else flat
        start, count = self.sizes.get(kind, 0), math.prod(shape)
        self.buffers.setdefault(kind, []).append(flat)
        self.sizes[kind] = start + count
        return {"$": "a", "f": [origin, kind, start, shape]}


def decode(tree: Any, buffers: Mapping[str, Any]) -> Any:
    """The value of a JSON form."""
    if isinstance(tree, list):
        return [decode(v, buffers) for v in tree]
    if not isinstance(tree, dict):
        return tree
    kind = tree.get("$")
    if kind is None:
        return {k: decode(v, buffers) for k, v in tree.items()}
    fields = tree["f"]
    if kind == "a":
        origin, dtype, start, shape = fields
        part = buffers[dtype][start : start + math.prod(shape)].reshape(shape)
        return part.copy() if origin == "n" else _tensor(part)
    if kind == "d":
        return {decode(k, buffers): decode(v, buffers) for k, v in fields}
    values = [decode(v, buffers) for v in fields]
    for made, name in KINDS.items():
        if kind == name:
            return made(values)
    return RECORDS[kind](*values)


def _is_tensor(value: Any) -> bool:
    """Whether it is one of torch's; a run that never imported torch, as of a search, has none."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _tensor(part: Any) -> Any:
    """A tensor of its own."""
    import torch

    return torch.from_numpy(part.copy()) if isinstance(part, np.ndarray) else part.clone()


def save(path: Path, state: Any) -> None:
    """Write a state whole or not at all; `OSError` if that fails."""
    packer = Packer()
    tree = json.dumps(packer.encode(state), separators=(",", ":")).encode()
    arrays = {kind: np.concatenate(parts) for kind, parts in packer.buffers.items() if kind in NUMPY}
    arrays[TREE] = np.frombuffer(tree, np.uint8)
    others = {kind: parts for kind, parts in packer.buffers.items() if kind not in NUMPY}
    with whole(path) as part:
        if others:
            _save_tensors(arrays, others, part)
        else:
            save_file(arrays, part, metadata={"format": FORMAT})


def _save_tensors(arrays: Mapping[str, np.ndarray], others: Mapping[str, Any], path: Path) -> None:
    """With tensors of types that only torch has, as bfloat16."""
    import torch
    from safetensors.torch import save_file

    tensors = {kind: torch.from_numpy(array.copy()) for kind, array in arrays.items()}
    save_file(tensors | {kind: torch.cat(parts) for kind, parts in others.items()}, path, metadata={"format": FORMAT})


def load(path: Path) -> Any:
    """Read a state; `UserError` if the file is not one."""
    try:
        with safe_open(path, "np") as file:
            meta, names = file.metadata() or {}, set(file.keys())
            buffers = {name: file.get_tensor(name) for name in names & {TREE, *NUMPY}}
        if others := names - set(buffers):  # types that only torch has
            with safe_open(path, "pt") as file:
                buffers |= {name: file.get_tensor(name) for name in others}
    except Exception as reason:
        raise UserError(f"{path} cannot be read ({reason}); it is damaged, start the run again") from None
    if meta.get("format") != FORMAT:
        raise UserError(
            f"{path} was written by another version of evolvent; finish that run with the version it began with"
        )
    return decode(json.loads(buffers.pop(TREE).tobytes()), buffers)
