"""Models as they come from the hub, made here: small random weights, a trained tokenizer, chat templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

TEXT = [
    "Work out 12*7+5. You have a calculator for one operation at a time.",
    "The result follows, the number is in <answer>89</answer>, and 84 is the result of 12*7.",
    '<tool_call>\n{"name": "calculator", "arguments": {"expression": "12*7"}}\n</tool_call>',
    "user assistant system tool model ipython You are a helpful assistant.",
]
# special tokens: begin, end of text, and others that are special; last, added ones that are not
TOKENS: dict[str, tuple[str | None, str, list[str], list[str]]] = {
    "chatml": (None, "<|endoftext|>", ["<|im_start|>", "<|im_end|>"], ["<tool_call>", "</tool_call>"]),
    "llama": ("<|begin_of_text|>", "<|end_of_text|>",
              ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>"], []),
    "mistral": ("<s>", "</s>", ["[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
                                "[TOOL_RESULTS]", "[/TOOL_RESULTS]"], []),
    "gemma": ("<bos>", "<eos>", ["<start_of_turn>", "<end_of_turn>"], []),
    "base": (None, "<|endoftext|>", [], []),
}  # fmt: skip
TEMPLATES = Path(__file__).parent / "fixtures" / "templates"  # as Qwen 2.5, Llama 3.1, Mistral v0.3, Gemma 2 have them


def hub_tokenizer(kind: str) -> Any:
    """A byte-level tokenizer with the special tokens and the template of a family."""
    from transformers import PreTrainedTokenizerFast

    bos, eos, special, plain = TOKENS[kind]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    names = [n for n in (bos, eos, *special) if n]
    trainer = trainers.BpeTrainer(
        vocab_size=360, special_tokens=names, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.add_tokens([AddedToken(n, normalized=False) for n in plain])
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=bos, eos_token=eos, pad_token=eos)
    path = TEMPLATES / f"{kind}.jinja"
    made.chat_template = path.read_text() if path.is_file() else None
    return made


def randomised(model: Any, seed: int = 0, scale: float = 0.15) -> Any:
    """The model with weights that are far from uniform, biases and norms included; in evaluation mode."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator) * scale
            parameter.copy_(noise if parameter.dim() > 1 else parameter + noise)
    return model.eval()


def hub_model(kind: str, vocabulary: int = 360, **options: Any) -> Any:
    """A small random model of an architecture of transformers."""
    import transformers as t

    ends = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    small = {"vocab_size": vocabulary, "hidden_size": 32, **ends}
    usual = {**small, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    usual["max_position_embeddings"] = 256
    grouped = {**usual, "num_key_value_heads": 2}
    table: dict[str, Any] = {
        "llama": (t.LlamaConfig, grouped),
        "mistral": (t.MistralConfig, {**grouped, "sliding_window": None}),
        "qwen2": (t.Qwen2Config, grouped),
        "qwen3": (t.Qwen3Config, {**grouped, "head_dim": 16}),
        "gpt2": (t.GPT2Config, {**small, "n_layer": 2, "n_head": 4, "n_positions": 256}),
        "gpt_neox": (t.GPTNeoXConfig, usual),
        "gemma2": (t.Gemma2Config, {**grouped, "head_dim": 8, "sliding_window": 12}),
        "phi": (t.PhiConfig, usual),
        "bloom": (t.BloomConfig, {**small, "n_layer": 2, "n_head": 4}),
        "mamba": (t.MambaConfig, {**small, "num_hidden_layers": 2, "state_size": 4}),
    }
    make, values = table[kind]
    config = make(**{**values, **options})
    return randomised(t.AutoModelForCausalLM.from_config(config))


def hub_folder(folder: Path, kind: str = "qwen2", chat: str = "chatml", **options: Any) -> Path:
    """A folder as one downloads it: model, tokenizer and generation settings."""
    tokenizer = hub_tokenizer(chat)
    hub_model(kind, len(tokenizer), **options).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
