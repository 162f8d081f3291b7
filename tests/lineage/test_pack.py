"""States survive saving: any nesting of plain data, records and arrays comes back equal; nothing half-written stays."""

from __future__ import annotations

import errno
import json
import math
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.torch import save_file

from evolvent.core.errors import UserError
from evolvent.core.records import Batch, Change, Group, Message, Problem, Reward, Segment, Trajectory
from evolvent.lineage import pack

FLOATS = (np.float16, np.float32, np.float64)
KINDS = [np.dtype(t) for t in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", *FLOATS, "c8")]
ARRAYS = st.sampled_from(KINDS).flatmap(
    lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
TORCH = st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool])
TENSORS = st.builds(
    lambda kind, shape, seed: (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 9).to(kind),
    TORCH,
    st.lists(st.integers(0, 3), max_size=3),
    st.integers(0, 99),
)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
KEYS = st.text() | st.integers() | st.tuples(st.integers(), st.text())
PROBLEMS = st.builds(
    Problem, st.text(), st.tuples(st.builds(Message, st.text(), st.text())), st.dictionaries(st.text(), PLAIN)
)
TRAJECTORIES = st.builds(
    lambda problem, size, reward: Trajectory(
        size,
        problem,
        np.arange(size, dtype=np.int32),
        np.ones(size, bool),
        np.zeros(size, np.float32),
        segments=(Segment("prompt", 0, size),),
        rewards={"outcome": Reward(reward, "verifier", np.full(size, reward, np.float32))},
        alternatives=(np.zeros((size, 2), np.int32), np.zeros((size, 2), np.float32)),
    ),
    PROBLEMS,
    st.integers(0, 5),
    st.floats(0, 1),
)
RECORDS = (
    PROBLEMS
    | TRAJECTORIES
    | st.builds(Change, st.text(), st.integers(), st.integers())
    | st.builds(lambda p, ts: Group(p, ts, {"a": 1}), PROBLEMS, st.lists(TRAJECTORIES, max_size=2))
    | st.lists(TRAJECTORIES, max_size=2).map(lambda ts: Batch(ts, np.ones(len(ts), np.float32)))
)
STATES = st.recursive(
    PLAIN | ARRAYS | TENSORS | RECORDS | st.sets(st.integers()) | st.frozensets(st.text()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.just("$"), inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=12,
)


def equal(a: Any, b: Any) -> bool:
    """Same type, same values; nan equals nan."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num())
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if hasattr(a, "__dataclass_fields__"):
        return all(equal(getattr(a, f), getattr(b, f)) for f in a.__dataclass_fields__)
    return a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b))


@settings(max_examples=300)
@given(STATES)
def test_what_is_saved_comes_back_equal(tmp_path_factory: pytest.TempPathFactory, state: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "state.safetensors"
    pack.save(path, state)
    assert equal(pack.load(path), state)


def test_arrays_of_the_state_are_not_those_of_the_file(tmp_path: Path) -> None:
    weights = torch.zeros(3)
    pack.save(tmp_path / "s", {"a": weights})
    first, second = pack.load(tmp_path / "s"), pack.load(tmp_path / "s")
    first["a"] += 1
    assert torch.equal(second["a"], weights)


def test_numbers_of_numpy_become_numbers_and_other_byte_orders_are_read(tmp_path: Path) -> None:
    pack.save(tmp_path / "s", [np.int32(3), np.float64(0.5), np.bool_(True), np.arange(3, dtype=">i4")])
    found = pack.load(tmp_path / "s")
    assert found[:3] == [3, 0.5, True]
    assert found[3].tolist() == [0, 1, 2]


@pytest.mark.parametrize("value", [object(), {"a": b"bytes"}, type("Row", (tuple,), {})((1, 2)), np.array(["text"])])
def test_what_could_not_be_read_back_is_not_saved(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "s.safetensors"
    pack.save(path, {"good": 1})
    with pytest.raises(TypeError):
        pack.save(path, value)
    assert pack.load(path) == {"good": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["s.safetensors"]


@pytest.mark.parametrize("damage", ["empty", "torn", "text", "other format"])
def test_a_file_that_is_no_state_ends_in_one_sentence(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "s.safetensors"
    pack.save(path, {"a": torch.arange(1000)})
    data = path.read_bytes()
    if damage == "other format":
        save_file({"tree": torch.zeros(1, dtype=torch.uint8)}, path, metadata={"format": "evolvent-state-0"})
    else:
        path.write_bytes({"empty": b"", "torn": data[: len(data) // 2], "text": b"hello" * 100}[damage])
    with pytest.raises(UserError, match=r"(?i)another version|damaged"):
        pack.load(path)


def test_a_full_disk_leaves_the_state_before(tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: the system refuses the write in the middle."""
    path = tmp_path / "s.safetensors"
    pack.save(path, {"a": 1})
    large = {"a": torch.zeros(1_000_000)}
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)  # those of the pool are not in the copy, and would be waited for
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        code = 1
        try:
            pack.save(path, large)
        except OSError as reason:
            code = 0 if reason.errno in (errno.ENOSPC, errno.EFBIG) and not path.with_suffix(".part").exists() else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pack.load(path) == {"a": 1}


def test_the_file_is_plain_safetensors_without_pickle(tmp_path: Path) -> None:
    """Any reader of safetensors gets the arrays and the JSON, without our code."""
    pack.save(tmp_path / "s.safetensors", {"step": 3, "w": torch.tensor([1.0, 2.0])})
    text = (
        "import json, sys; from safetensors.numpy import load_file; f = load_file(sys.argv[1]); "
        "print(json.dumps([json.loads(f['tree'].tobytes()), f['float32'].tolist()]))"
    )
    out = subprocess.run([sys.executable, "-c", text, tmp_path / "s.safetensors"], check=True, capture_output=True)
    tree, values = json.loads(out.stdout)
    assert tree == {"step": 3, "w": {"$": "a", "f": ["p", "float32", 0, [2]]}}
    assert values == [1.0, 2.0]
