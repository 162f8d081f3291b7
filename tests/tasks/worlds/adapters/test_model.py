"""The model that seeds and sizes stand for, beside transformers, PEFT and the platform's own evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from evolvent.bench.evaluate import Subject
from evolvent.core.ledger import Ledger
from evolvent.engine.local import LocalEngine
from evolvent.engine.perturb import draw
from evolvent.models.load import find_model, load_policy
from evolvent.models.lora import save_adapter
from evolvent.tasks.base import distinct, split_of
from evolvent.tasks.countdown import Countdown
from evolvent.tasks.worlds.adapters.model import RANK, adapted, asked, evolved, likely, measured, right, start
from evolvent.tasks.worlds.adapters.world import PROBLEMS

GENOME = ((7, 1.0), (123, -0.4), (2**32 - 1, 0.2))
N = 24


def theirs() -> Any:
    """The seed model as transformers has it."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(find_model("tiny")).eval()


def by_hand() -> Any:
    """Transformers' model with every linear map but the head changed, one seed after the other, in float64."""
    model = theirs()
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and name != "lm_head":
            weight = module.weight.data.double()
            for seed, size in reversed(GENOME):
                a, b = draw(seed, name, *weight.shape, RANK)
                weight += 0.01 * size / np.sqrt(RANK) * a.double() @ b.double().T
            module.weight.data = weight.float()
    return model


def chances(model: Any, count: int) -> np.ndarray:
    """Log-probability of the known solutions, problem by problem, by transformers' forward pass."""
    task, format, found = Countdown(), start().format, []
    for problem in distinct(task, "train", count):
        (piece,) = task.gold(problem) or ()
        prompt = format.prompt(problem.prompt)
        row = [*prompt, *format.encode(piece.text), *format.ends]
        with torch.no_grad():
            told = model(torch.tensor([row])).logits[0].double().log_softmax(-1)
        found.append(sum(float(told[i - 1, row[i]]) for i in range(len(prompt), len(row))))
    return np.array(found)


def test_without_seeds_it_is_the_model_that_ships() -> None:
    value, accuracy = measured((), "train", N, N)
    assert value == pytest.approx(np.exp(chances(theirs(), N)).mean(), abs=1e-6)
    policy, task = load_policy("tiny"), Countdown()
    subject = Subject(policy, LocalEngine(policy, Ledger()), task, Ledger())
    groups = subject.roll(distinct(task, "train", N), 1, 0.0, "greedy")
    assert accuracy == np.mean([g.trajectories[0].outcome for g in groups])
    assert 0.1 < accuracy < 0.5
    assert not adapted(()).adapters


def test_seeds_and_sizes_are_what_the_formula_says() -> None:
    np.testing.assert_allclose(likely(evolved(GENOME), asked("train", N)), chances(by_hand(), N), atol=2e-4)
    assert abs(measured(GENOME, "train", N, N)[0] - measured((), "train", N, N)[0]) > 1e-3


def test_the_order_of_seeds_moves_no_more_than_rounding_does() -> None:
    one, other = (likely(evolved(g), asked("train", N)) for g in (GENOME, GENOME[::-1]))
    np.testing.assert_allclose(one, other, atol=2e-4)


def test_the_model_that_ships_is_untouched_and_values_repeat() -> None:
    before = {name: w.clone() for name, w in start().weights().items()}
    threads, grad = torch.get_num_threads(), torch.is_grad_enabled()
    assert measured(GENOME, "gate", N, N) == measured(GENOME, "gate", N, N)
    assert all(torch.equal(w, before[name]) for name, w in start().weights().items())
    assert (torch.get_num_threads(), torch.is_grad_enabled()) == (threads, grad)
    assert not any(torch.equal(w, before[n]) for n, w in evolved(GENOME).weights().items() if "_proj" in n)
    assert all(torch.equal(w, before[n]) for n, w in evolved(GENOME).weights().items() if "_proj" not in n)


def test_problems_of_the_splits_share_no_key() -> None:
    keys = {split: {p.key for p in asked(split, PROBLEMS.get(split, 2000))} for split in ("train", "gate", "test")}
    assert {split: len(found) for split, found in keys.items()} == {"train": 2000, **PROBLEMS}
    assert not keys["train"] & keys["gate"]
    assert not keys["test"] & (keys["train"] | keys["gate"])
    assert all(split_of(key) == split for split, found in keys.items() for key in found)


def test_what_is_exported_is_the_model_that_was_evaluated(tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    policy = adapted(GENOME)
    policy.save(tmp_path / "model")
    save_adapter(policy, "policy", tmp_path / "adapter")
    tokens = torch.tensor([start().format.prompt(asked("test", 1)[0].prompt)])
    select = torch.ones_like(tokens, dtype=torch.bool)
    select[:, 0] = False
    with torch.no_grad():
        ours = evolved(GENOME).logits(tokens, select).log_softmax(-1)
        beside = PeftModel.from_pretrained(theirs(), tmp_path / "adapter")
        for model in (
            AutoModelForCausalLM.from_pretrained(tmp_path / "model").eval(),
            beside.merge_and_unload(),
            load_policy(str(tmp_path / "model")),
        ):
            got = model.logits(tokens, select) if hasattr(model, "logits") else model(tokens).logits[0, :-1]
            torch.testing.assert_close(got.log_softmax(-1), ours, atol=1e-5, rtol=1e-5)
    assert right(load_policy(str(tmp_path / "model")), asked("test", N)).mean() == measured(GENOME, "test", N, N)[1]
