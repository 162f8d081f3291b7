"""What training sees of a policy: logits at chosen positions, their gradient, and weights that come and go."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.hub import hub_model
from tests.toys import random_policy
from torch import Tensor

from evolvent.core.errors import UserError
from evolvent.learn.forward import token_logprobs
from evolvent.models.policy import Policy
from evolvent.models.tokenizer import SeedFormat, character_tokenizer

KINDS = ("decoder", "gpt2", "gpt_neox", "gemma2", "bloom", "mamba")


def policy_of(kind: str) -> Policy:
    if kind == "decoder":
        return random_policy()
    model = hub_model(kind, 99)
    return Policy(model, SeedFormat(character_tokenizer()), model.config.to_dict(), kind)


def batch() -> tuple[Tensor, Tensor]:
    """Right-padded rows of length 5, 12 and 20, with a prompt of three tokens and a gap that a tool wrote."""
    tokens = torch.randint(4, 90, (3, 20), generator=torch.Generator().manual_seed(0))
    mask = torch.zeros_like(tokens, dtype=torch.bool)
    for row, length in enumerate((5, 12, 20)):
        tokens[row, length:] = 0
        mask[row, 3:length] = True
    mask[2, 8:11] = False
    return tokens, mask


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_neither_logits_nor_gradients(kind: str) -> None:
    """Each row of a padded batch is what the row gives alone."""
    policy = policy_of(kind)
    tokens, mask = batch()
    weight = torch.linspace(-1, 1, int(mask.sum()))
    logits = policy.logits(tokens, mask)
    assert logits.requires_grad
    (torch.log_softmax(logits.float(), -1).gather(1, tokens[mask][:, None])[:, 0] * weight).sum().backward()
    together = {n: p.grad.clone() for n, p in policy.model.named_parameters() if p.grad is not None}
    policy.model.zero_grad(set_to_none=True)
    alone = []
    for row, length in enumerate((5, 12, 20)):
        own, chosen = tokens[row : row + 1, :length], mask[row : row + 1, :length]
        alone.append(policy.logits(own, chosen))
    torch.testing.assert_close(logits, torch.cat(alone), atol=1e-4, rtol=1e-4)
    (torch.log_softmax(torch.cat(alone).float(), -1).gather(1, tokens[mask][:, None])[:, 0] * weight).sum().backward()
    for name, parameter in policy.model.named_parameters():
        if parameter.grad is not None:
            scale = float(parameter.grad.abs().max()) + 1e-6
            torch.testing.assert_close(together[name] / scale, parameter.grad / scale, atol=1e-4, rtol=0)
    assert len(together) > 5


@pytest.mark.parametrize("kind", ["decoder", "gpt2", "gemma2"])
def test_recomputation_gives_the_same_gradient(kind: str) -> None:
    tokens, mask = batch()
    gradients = []
    for on in (False, True, False):
        policy = policy_of(kind)
        policy.recompute(True)
        policy.recompute(on)
        logprob, _ = token_logprobs(policy, tokens, mask, torch.ones(3))
        logprob.sum().backward()
        gradients.append({n: p.grad for n, p in policy.model.named_parameters() if p.grad is not None})
    for other in gradients[1:]:
        assert set(other) == set(gradients[0])
        for name, gradient in gradients[0].items():
            torch.testing.assert_close(other[name], gradient, atol=1e-6, rtol=1e-5)


def test_recomputation_that_a_model_does_not_have() -> None:
    from evolvent.core.errors import UserError

    policy = random_policy()
    policy.model = torch.nn.Linear(2, 2)  # no layers that could be recomputed
    with pytest.raises(UserError, match="Linear has no gradient checkpointing"):
        policy.recompute(True)


@pytest.mark.parametrize("kind", ["decoder", "gpt2"])
def test_training_in_bfloat16(kind: str) -> None:
    """Log-probs are float32 whatever the weights are; a few steps of gradient descent raise them."""
    policy = policy_of(kind)
    policy.model.bfloat16()
    tokens, mask = batch()
    optimizer = torch.optim.AdamW(policy.trainable().values(), 3e-3)
    seen = []
    for _ in range(15):
        logprob, entropy = token_logprobs(policy, tokens, mask, torch.ones(3), with_entropy=True)
        assert logprob.dtype == torch.float32
        assert entropy is not None
        assert torch.isfinite(logprob).all()
        assert torch.isfinite(entropy).all()
        optimizer.zero_grad(set_to_none=True)
        (-logprob.sum() / mask.sum()).backward()
        optimizer.step()
        seen.append(float(logprob.sum().detach() / mask.sum()))
    assert seen[-1] > seen[0] + 0.5


def test_rows_that_ask_for_nothing() -> None:
    tokens, mask = batch()
    for kind in ("decoder", "gpt2"):
        assert policy_of(kind).logits(tokens, torch.zeros_like(mask)).shape[0] == 0


@pytest.mark.parametrize("kind", ["decoder", "gpt2"])
def test_weights_come_back_and_versions_never_repeat(kind: str) -> None:
    policy = policy_of(kind)
    state = {"version": policy.version, "weights": {n: w.clone() for n, w in policy.weights().items()}}
    assert policy.bump() == 1
    policy.set_weights({n: w + 1 for n, w in state["weights"].items()})
    assert policy.version == 1
    policy.load_state_dict(state)
    assert policy.version == 0
    for name, weight in policy.weights().items():
        assert torch.equal(weight, state["weights"][name])


@pytest.mark.parametrize("kind", KINDS[1:])
def test_the_width_is_that_of_the_head(kind: str) -> None:
    policy = policy_of(kind)
    assert policy.width == policy.model.get_output_embeddings().weight.shape[1]


@pytest.mark.parametrize(
    ("config", "width"), [({"hidden_size": 64}, 64), ({"n_embd": 48}, 48), ({"text_config": {"hidden_size": 32}}, 32)]
)
def test_the_width_is_read_from_the_configuration(config: dict[str, Any], width: int) -> None:
    policy = random_policy()
    policy.config = config
    assert policy.width == width


def test_a_configuration_without_a_width() -> None:
    policy = random_policy()
    policy.config = {"vocab_size": 9}
    with pytest.raises(UserError, match="names no width"):
        policy.width  # noqa: B018
