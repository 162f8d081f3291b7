"""States as one safetensors file: records and plain data as JSON, arrays beside them; nothing is pickled.

Arrays of one type share a flat buffer, so that a replay buffer of thousands of trajectories stays cheap.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from evolvent.core.errors import UserError
from evolvent.core.files import whole
from evolvent.core.records import Batch, Change, Group, Message, Problem, Reward, Segment, Trajectory

RECORDS: dict[str, Any] = {c.__name__: c for c in (Batch, Change, Group, Message, Problem, Reward, Segment, Trajectory)}
FORMAT = "evolvent-state-1"
TREE = "tree"  # the buffer that holds the JSON; a header of safetensors is limited to 100 MB
KINDS: dict[Any, str] = {tuple: "t", set: "s", frozenset: "z"}


class Packer:
    """Turns a state into a JSON tree and flat buffers."""

    def __init__(self) -> None:
        self.buffers: dict[str, list[torch.Tensor]] = {}
        self.sizes: dict[str, int] = {}

    def encode(self, value: Any) -> Any:
        """The JSON form of a value; arrays go to the buffers. `TypeError` for what could not be read back."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray | torch.Tensor):
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

    def _array(self, value: np.ndarray | torch.Tensor) -> dict[str, Any]:
        if isinstance(value, np.ndarray):
            origin, native = "n", value.astype(value.dtype.newbyteorder("="), copy=False)
            tensor = torch.from_numpy(np.ascontiguousarray(native))
        else:
            origin, tensor = "p", value.detach().cpu()
        kind = str(tensor.dtype).removeprefix("torch.")
        start = self.sizes.get(kind, 0)
        self.buffers.setdefault(kind, []).append(tensor.reshape(-1))
        self.sizes[kind] = start + tensor.numel()
        return {"$": "a", "f": [origin, kind, start, list(value.shape)]}


def decode(tree: Any, buffers: Mapping[str, torch.Tensor]) -> Any:
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
        tensor = buffers[dtype][start : start + int(np.prod(shape, dtype=np.int64))].reshape(shape).clone()
        return tensor.numpy() if origin == "n" else tensor
    if kind == "d":
        return {decode(k, buffers): decode(v, buffers) for k, v in fields}
    values = [decode(v, buffers) for v in fields]
    for made, name in KINDS.items():
        if kind == name:
            return made(values)
    return RECORDS[kind](*values)


def save(path: Path, state: Any) -> None:
    """Write a state whole or not at all; `OSError` if that fails."""
    packer = Packer()
    tree = json.dumps(packer.encode(state), separators=(",", ":")).encode()
    tensors = {kind: torch.cat(parts) for kind, parts in packer.buffers.items()}
    tensors[TREE] = torch.frombuffer(bytearray(tree), dtype=torch.uint8)
    with whole(path) as part:
        save_file(tensors, part, metadata={"format": FORMAT})


def load(path: Path) -> Any:
    """Read a state; `UserError` if the file is not one."""
    try:
        with safe_open(path, "pt") as file:
            meta = file.metadata() or {}
            buffers = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except Exception as reason:
        raise UserError(f"{path} cannot be read ({reason}); it is damaged, start the run again") from None
    if meta.get("format") != FORMAT:
        raise UserError(
            f"{path} was written by another version of evolvent; finish that run with the version it began with"
        )
    return decode(json.loads(buffers.pop(TREE).numpy().tobytes()), buffers)
