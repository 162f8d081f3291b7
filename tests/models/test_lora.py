"""Adapters: what PEFT makes of our files, what engines make of an adapter, and what training does with several."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.hub import hub_model
from tests.toys import random_policy, stub
from torch import Tensor

from evolvent.core.errors import UserError
from evolvent.core.ledger import Ledger
from evolvent.engine.base import Actor, Sampling
from evolvent.engine.local import LocalEngine
from evolvent.learn.forward import padded, token_logprobs
from evolvent.models import lora
from evolvent.models.lora import Lora, acting, adapter_of, attach, linear_names, load_adapter, save_adapter
from evolvent.models.policy import Policy
from evolvent.models.reference import Reference
from evolvent.models.tokenizer import SeedFormat, character_tokenizer
from evolvent.rollout.sample import harvest

TOKENS = torch.randint(4, 90, (3, 20), generator=torch.Generator().manual_seed(0))
SELECT = torch.ones_like(TOKENS, dtype=torch.bool)
SELECT[:, 0] = False


def other_policy(kind: str = "gpt2") -> Policy:
    model = hub_model(kind, 99)
    return Policy(model, SeedFormat(character_tokenizer()), model.config.to_dict(), kind)


def moved(policy: Policy, name: str, options: Lora | None = None, seed: int = 1) -> Policy:
    """The policy with an adapter that changes something."""
    attach(policy, name, options or Lora(4), np.random.default_rng(seed))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in policy.trainable(name).values():
            parameter.normal_(0, 0.2, generator=generator)
    return policy


def logits(policy: Policy) -> Tensor:
    with torch.no_grad():
        return policy.logits(TOKENS, SELECT)


@pytest.mark.parametrize("make", [random_policy, other_policy])
def test_a_new_adapter_changes_nothing_and_a_trained_one_only_while_active(make: type[Policy]) -> None:
    bare = logits(make())
    policy = make()
    attach(policy, "policy", Lora(4), np.random.default_rng(0))
    assert policy.active == "policy"
    torch.testing.assert_close(logits(policy), bare, atol=0, rtol=0)
    moved(policy, "second")
    assert (logits(policy) - bare).abs().max() > 0.1
    policy.activate("policy")
    torch.testing.assert_close(logits(policy), bare)
    policy.activate(None)
    torch.testing.assert_close(logits(policy), bare)


def test_the_draw_is_a_function_of_the_generator_alone() -> None:
    made = []
    for seed in (7, 7, 8):
        policy = random_policy()
        before = torch.random.get_rng_state()
        attach(policy, "policy", Lora(4), np.random.default_rng(seed))
        assert torch.equal(torch.random.get_rng_state(), before)
        made.append(policy.trainable("policy"))
    for name, value in made[0].items():
        assert torch.equal(value, made[1][name])
        if ".lora_A." in name:
            assert not torch.equal(value, made[2][name])
            bound = value.shape[1] ** -0.5
            assert 0.9 * bound < value.abs().max() <= bound
        else:
            assert not value.any()


def test_only_the_adapter_trains_and_each_learner_gets_its_own() -> None:
    policy = moved(moved(random_policy(), "solver"), "proposer")
    own = policy.trainable("solver")
    assert len(own) == 2 * 7 * 2  # layers, linear maps, factors
    assert {adapter_of(n) for n in own} == {"solver"}
    assert not set(own) & set(policy.trainable("proposer"))
    policy.activate("solver")
    policy.logits(TOKENS, SELECT).square().mean().backward()
    for name, parameter in policy.model.named_parameters():
        assert (parameter.grad is not None) == (adapter_of(name) == "solver")
    with pytest.raises(UserError, match="say which one to train"):
        policy.trainable()
    with pytest.raises(UserError, match="no adapter `judge`"):
        policy.trainable("judge")
    assert set(policy.weights()) == {*own, *policy.trainable("proposer")}


def test_an_adapter_may_be_called_like_a_module() -> None:
    policy = moved(random_policy(), "mlp")
    assert all(".mlp." in n and ".lora_" in n for n in policy.trainable("mlp"))
    assert len(policy.trainable("mlp")) == 28


@pytest.mark.parametrize("make", [random_policy, other_policy])
def test_acting_is_the_same_as_the_active_adapter(make: type[Policy]) -> None:
    policy = moved(moved(make(), "one", seed=1), "two", Lora(2, 3.0), seed=2)
    for name in ("one", "two"):
        policy.activate(name)
        expected = logits(policy)
        low = policy.low(name)
        policy.activate("two")
        with acting(policy, low):
            torch.testing.assert_close(logits(policy), expected, atol=1e-5, rtol=1e-5)
        assert policy.active == "two"
    torch.testing.assert_close(logits(policy), expected)


def test_adapters_mixed_in_one_batch_sample_what_each_trains_on() -> None:
    policy = moved(moved(random_policy(), "one", Lora(4), seed=1), "two", Lora(2, targets=("q_proj", "down_proj")), 2)
    actors = {name: Actor(name, 0, policy.low(name)) for name in policy.adapters} | {"bare": Actor("bare", 0)}
    names = list(actors)
    stubs = [stub(i, [1, 5 + i % 4, 9], names[i % 3]) for i in range(12)]
    tree = LocalEngine(policy, Ledger()).start(stubs, actors, Sampling(), [20] * 12)
    tree.advance()
    rows = [harvest(b, stubs[0], policy.format, actors, 1.0) for b in tree.branches]
    wrong = []
    for name in names:
        own = [r for r in rows if r.actor == name]
        tokens, mask, sampled, heat = padded(own, 0, policy.device)
        for other in names:
            policy.activate(None if other == "bare" else other)
            with torch.no_grad():
                trained, _ = token_logprobs(policy, tokens, mask, heat)
            difference = float((trained - sampled)[mask].abs().max())
            if other == name:
                assert difference < 1e-4
            else:
                wrong.append(difference)
    assert min(wrong) > 0.05


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_peft_reads_what_we_write(kind: str, tmp_path: Path) -> None:
    from peft import PeftModel

    from evolvent.models.checkpoint import read_decoder

    theirs = hub_model(kind, 99)
    theirs.save_pretrained(tmp_path / "base")
    base = read_decoder(tmp_path / "base") if kind == "llama" else hub_model(kind, 99)
    policy = Policy(base, SeedFormat(character_tokenizer()), theirs.config.to_dict(), "x", str(tmp_path / "base"))
    moved(policy, "role", Lora(3, 5.0))
    expected = logits(policy)
    save_adapter(policy, "role", tmp_path / "adapter")
    loaded = PeftModel.from_pretrained(theirs, str(tmp_path / "adapter")).eval()
    with torch.no_grad():
        got = loaded(TOKENS).logits[:, :-1][SELECT[:, 1:]]
    torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
    assert loaded.peft_config["default"].base_model_name_or_path == str(tmp_path / "base")


def test_we_read_what_peft_writes(tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    from evolvent.models.checkpoint import read_decoder

    theirs = hub_model("qwen3", 99)
    theirs.save_pretrained(tmp_path / "base")
    policy = Policy(read_decoder(tmp_path / "base"), SeedFormat(character_tokenizer()), theirs.config.to_dict())
    config = LoraConfig(
        r=4, lora_alpha=6, target_modules=["q_proj", "up_proj"], use_rslora=True, init_lora_weights=False
    )
    made = get_peft_model(theirs, config).eval()
    with torch.no_grad():
        expected = made(TOKENS).logits[:, :-1][SELECT[:, 1:]]
    made.save_pretrained(tmp_path / "adapter")
    load_adapter(policy, "policy", tmp_path / "adapter")
    torch.testing.assert_close(logits(policy), expected, atol=1e-4, rtol=1e-4)
    assert len(policy.trainable("policy")) == 2 * 2 * 2


@pytest.mark.parametrize("make", [random_policy, other_policy])
def test_saved_merged_and_loaded_again(make: type[Policy], tmp_path: Path) -> None:
    policy = moved(make(), "role", Lora(3, targets=tuple(linear_names(make().model)[:2])))
    expected = logits(policy)
    save_adapter(policy, "role", tmp_path / "adapter")
    again = make()
    load_adapter(again, "other", tmp_path / "adapter")
    torch.testing.assert_close(logits(again), expected)
    policy.save(tmp_path / "whole")
    if make is random_policy:
        from evolvent.models.checkpoint import read_decoder

        whole = Policy(read_decoder(tmp_path / "whole"), policy.format, policy.config)
    else:
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(tmp_path / "whole").eval()
        whole = Policy(model, policy.format, policy.config)
    assert not [n for n, _ in whole.model.named_parameters() if "lora" in n or "base_layer" in n]
    torch.testing.assert_close(logits(whole), expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(logits(policy), expected, atol=0, rtol=0)  # saving leaves the policy as it was


def test_which_adapter_is_merged_must_be_clear(tmp_path: Path) -> None:
    policy = moved(moved(random_policy(), "one"), "two", seed=2)
    policy.activate(None)
    with pytest.raises(UserError, match="activate the one to merge"):
        policy.save(tmp_path / "whole")
    assert not (tmp_path / "whole").exists()


def test_bfloat16_base_float32_adapter() -> None:
    policy = random_policy()
    policy.model.bfloat16()
    moved(policy, "policy")
    assert {p.dtype for p in policy.trainable("policy").values()} == {torch.float32}
    assert {t.dtype for change in (policy.low("policy") or {}).values() for t in change} == {torch.bfloat16}
    assert policy.dtype == torch.bfloat16
    before = logits(policy)
    optimizer = torch.optim.AdamW(policy.trainable("policy").values(), 1e-3)
    policy.logits(TOKENS, SELECT).float().square().mean().backward()
    optimizer.step()
    assert (logits(policy) - before).abs().max() > 0


class TestReference:
    """The reference of a policy with adapters."""

    def logprobs(self, policy: Policy) -> Tensor:
        with torch.no_grad():
            return token_logprobs(policy, TOKENS, SELECT, torch.ones(3))[0]

    @pytest.mark.parametrize("trained", [False, True])
    def test_it_is_the_policy_as_it_was(self, trained: bool) -> None:
        policy = random_policy()
        attach(policy, "policy", Lora(4), np.random.default_rng(0))
        if trained:
            with torch.no_grad():
                for parameter in policy.trainable("policy").values():
                    parameter.normal_(0, 0.2, generator=torch.Generator().manual_seed(0))
        before = self.logprobs(policy)
        reference = Reference(policy, "policy")
        with torch.no_grad():
            for parameter in policy.trainable("policy").values():
                parameter.normal_(0, 0.3, generator=torch.Generator().manual_seed(1))
        assert (self.logprobs(policy) - before).abs().max() > 0.1
        torch.testing.assert_close(reference.logprobs(TOKENS, SELECT, torch.ones(3)), before)
        assert policy.active == "policy"

    @pytest.mark.parametrize("recompute", [False, True])
    def test_asking_it_between_forward_and_backward_leaves_the_gradient_alone(self, recompute: bool) -> None:
        gradients = []
        for asked in (False, True):
            policy = moved(random_policy(), "policy")
            policy.recompute(recompute)
            reference = Reference(policy, "policy")
            logprob, _ = token_logprobs(policy, TOKENS, SELECT, torch.ones(3))
            if asked:
                reference.logprobs(TOKENS, SELECT, torch.ones(3))
            logprob.square().mean().backward()
            gradients.append({n: p.grad for n, p in policy.trainable("policy").items()})
        for name, gradient in gradients[0].items():
            assert gradient is not None
            assert gradient.any()
            torch.testing.assert_close(gradients[1][name], gradient)


class TestOptions:
    """What a user can ask for."""

    def test_forms(self) -> None:
        assert Lora.parse("8") == Lora(8)
        assert Lora.parse("rank=8, alpha=4,targets=q_proj+v_proj") == Lora(8, 4.0, ("q_proj", "v_proj"))
        assert Lora(8).scale == 2
        assert Lora(8, 4).scale == 0.5

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("x", "rank is a whole number"),
            ("rnk=8", "did you mean rank"),
            ("8,9", "does not describe"),
            ("0", "above 0"),
            ("8,alpha=-1", "alpha"),
            ("", "whole number"),
        ],
    )
    def test_mistakes(self, text: str, said: str) -> None:
        with pytest.raises(UserError, match=said):
            Lora.parse(text)

    def test_targets_by_model(self) -> None:
        names = ["down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"]
        assert linear_names(random_policy().model) == names
        assert linear_names(other_policy().model) == ["c_attn", "c_fc", "c_proj"]
        assert linear_names(moved(other_policy("gpt_neox"), "a").model) == [
            "dense", "dense_4h_to_h", "dense_h_to_4h", "query_key_value",
        ]  # fmt: skip
        with pytest.raises(UserError, match=r"unknown LoRA target `q_porj`; did you mean q_proj\?"):
            attach(random_policy(), "policy", Lora(4, targets=("q_porj",)), np.random.default_rng(0))

    def test_names(self) -> None:
        policy = moved(random_policy(), "policy")
        with pytest.raises(UserError, match="already"):
            attach(policy, "policy", Lora(), np.random.default_rng(0))
        with pytest.raises(UserError, match="cannot name an adapter"):
            attach(policy, "a.b", Lora(), np.random.default_rng(0))


def test_bad_adapters_are_refused(tmp_path: Path) -> None:
    policy = moved(random_policy(), "policy", Lora(2, targets=("q_proj",)))
    save_adapter(policy, "policy", tmp_path)
    config = (tmp_path / lora.CONFIG).read_text()
    for wrong, said in (
        (config.replace('"use_dora": false', '"use_dora": true'), "use_dora"),
        (config.replace('"LORA"', '"IA3"'), "IA3"),
        (config.replace('"r": 2', '"r": 4'), r"ranks \[2\] where 4"),
        ("{", "cannot be read"),
    ):
        (tmp_path / lora.CONFIG).write_text(wrong)
        with pytest.raises(UserError, match=said):
            load_adapter(random_policy(), "policy", tmp_path)
    (tmp_path / lora.CONFIG).write_text(config)
    with pytest.raises(UserError, match="the adapter has no .*; take the model that it was trained on"):
        load_adapter(random_policy(layers=3), "policy", tmp_path)
    with pytest.raises(UserError, match="the model has no .*; take the model that it was trained on"):
        load_adapter(random_policy(layers=1), "policy", tmp_path)
    with pytest.raises(
        UserError, match=r"is \[2, 32\], .*; take the model that it was trained on.* in adapter_config.json"
    ):
        load_adapter(random_policy(width=64), "policy", tmp_path)
    (tmp_path / lora.WEIGHTS).write_bytes(b"nothing")
    with pytest.raises(UserError, match="cannot be read"):
        load_adapter(random_policy(), "policy", tmp_path)
