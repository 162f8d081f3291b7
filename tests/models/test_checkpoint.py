"""Model folders are written whole or not at all, and say what they hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from tests.hub import hub_folder
from tests.toys import random_policy

from evolvent.models.checkpoint import read_decoder, tensors, weight_files, write_policy
from evolvent.models.load import load_policy
from evolvent.models.policy import Policy


def test_a_seed_model_comes_back_bit_for_bit_and_in_transformers(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    policy = random_policy()
    write_policy(policy, tmp_path / "m")
    again = read_decoder(tmp_path / "m")
    for (name, mine), (other, theirs) in zip(policy.model.named_parameters(), again.named_parameters(), strict=True):
        assert name == other
        assert torch.equal(mine, theirs)
        assert theirs.requires_grad
    torch.testing.assert_close(again.cos, policy.model.cos)
    tokens = torch.randint(4, 90, (2, 30), generator=torch.Generator().manual_seed(0))
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "m").eval()
    with torch.no_grad():
        torch.testing.assert_close(loaded(tokens).logits, again.head(again(tokens)), atol=1e-4, rtol=1e-4)
    text = "12+34=46"
    assert AutoTokenizer.from_pretrained(tmp_path / "m")(text)["input_ids"] == policy.format.encode(text)


@pytest.mark.parametrize("kind", ["qwen2", "gpt2"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_written_says_its_dtype_and_loads_as_such(kind: str, dtype: str, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    policy = load_policy(str(hub_folder(tmp_path / "a", kind)), dtype=dtype)
    policy.save(tmp_path / "b")
    config = json.loads((tmp_path / "b" / "config.json").read_text())
    assert config.get("dtype", config.get("torch_dtype")) == dtype
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "b").dtype == getattr(torch, dtype)
    with safe_open(tmp_path / "b" / "model.safetensors", "pt") as file:
        assert {file.get_tensor(n).dtype for n in file.keys()} == {getattr(torch, dtype)}  # noqa: SIM118
    again = load_policy(str(tmp_path / "b"), dtype=dtype)
    assert again.format.ends == policy.format.ends  # generation settings came along


def test_reading_does_not_touch_the_global_generator(tmp_path: Path) -> None:
    write_policy(random_policy(), tmp_path / "m")
    before = torch.random.get_rng_state()
    read_decoder(tmp_path / "m")
    assert torch.equal(torch.random.get_rng_state(), before)


def test_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = random_policy(seed=0), random_policy(seed=1)
    write_policy(first, tmp_path / "m")
    before = {p.name: p.read_bytes() for p in (tmp_path / "m").iterdir()}

    def full_disk(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(second.format, "save", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_policy(second, tmp_path / "m")
    assert {p.name: p.read_bytes() for p in (tmp_path / "m").iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_names_of_weight_files(tmp_path: Path) -> None:
    write_policy(random_policy(), tmp_path / "m")
    assert [p.name for p in weight_files(tmp_path / "m")] == ["model.safetensors"]
    assert sorted(n for n, _ in tensors(tmp_path / "m")) == sorted(dict(random_policy().model.named_parameters()))


def test_saving_takes_no_part_in_training(tmp_path: Path) -> None:
    policy = random_policy()
    for parameter in policy.model.parameters():
        parameter.grad = torch.ones_like(parameter)
    weights = {n: p.clone() for n, p in policy.weights().items()}
    policy.save(tmp_path / "m")
    assert isinstance(policy, Policy)
    for name, parameter in policy.model.named_parameters():
        assert torch.equal(parameter, weights[name])
        assert parameter.grad is not None
        assert bool((parameter.grad == 1).all())
