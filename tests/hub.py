"""Models as they come from the hub, made here: small random weights, a trained tokenizer, four kinds of chat template."""

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
CHATML = """{%- if tools %}<|im_start|>system
{%- if messages[0].role == 'system' %}
{{ messages[0].content }}
{%- endif %}
# Tools
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}<|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- for m in messages %}
{%- if m.role == 'tool' %}
{%- if loop.previtem.role != 'tool' %}<|im_start|>user{% endif %}
{{- '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}
{%- if loop.last or loop.nextitem.role != 'tool' %}<|im_end|>
{% endif %}
{%- elif m.role != 'system' or not loop.first %}<|im_start|>{{ m.role }}
{{ m.content }}
{%- for call in m.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""  # as Qwen 2.5 and many others have it
LLAMA = """{{ bos_token }}
{%- if messages[0].role == 'system' %}{% set system = messages[0].content %}{% set messages = messages[1:] %}
{%- else %}{% set system = '' %}{% endif -%}
<|start_header_id|>system<|end_header_id|>

{{ system }}<|eot_id|>
{%- if tools %}
{%- set first = messages[0].content | trim %}{% set messages = messages[1:] -%}
<|start_header_id|>user<|end_header_id|>

Respond with JSON {"name": function name, "parameters": arguments}.

{% for t in tools %}{{ t | tojson(indent=4) }}

{% endfor %}{{ first }}<|eot_id|>
{%- endif %}
{%- for m in messages %}
{%- if m.role == 'tool' -%}
<|start_header_id|>ipython<|end_header_id|>

{{ m.content | tojson }}<|eot_id|>
{%- elif m.tool_calls -%}
<|start_header_id|>assistant<|end_header_id|>

{"name": "{{ m.tool_calls[0].function.name }}", "parameters": {{ m.tool_calls[0].function.arguments | tojson }}}<|eot_id|>
{%- else -%}
<|start_header_id|>{{ m.role }}<|end_header_id|>

{{ m.content | trim }}<|eot_id|>
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %}"""  # as Llama 3.1 has it
MISTRAL = """{{ bos_token }}
{%- set ns = namespace(turn=0) %}
{%- for m in messages %}
{%- if (m.role == 'user') and ns.turn % 2 == 1 or m.role == 'assistant' and ns.turn % 2 == 0 %}
{{- raise_exception('conversation roles must alternate user/assistant') }}
{%- endif %}
{%- if m.role == 'user' or (m.role == 'assistant' and not m.tool_calls) %}{% set ns.turn = ns.turn + 1 %}{% endif %}
{%- if m.role == 'user' %}
{%- if loop.last and tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}[INST]{{ m.content }}[/INST]
{%- elif m.tool_calls %}[TOOL_CALLS][
{%- for call in m.tool_calls %}{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}, "id": "{{ call.id }}"}
{%- if not loop.last %}, {% endif %}{% endfor %}]</s>
{%- elif m.role == 'assistant' %}{{ m.content }}</s>
{%- elif m.role == 'tool' %}
{%- if m.tool_call_id | length != 9 %}{{ raise_exception('tool call ids have nine characters') }}{% endif -%}
[TOOL_RESULTS]{"content": {{ m.content | tojson }}, "call_id": "{{ m.tool_call_id }}"}[/TOOL_RESULTS]
{%- else %}{{ raise_exception('only user, assistant and tool roles are supported') }}
{%- endif %}
{%- endfor %}"""  # as Mistral 7B v0.3 has it
GEMMA = """{{ bos_token }}
{%- if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{%- for m in messages %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif -%}
<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}
{{ m.content | trim }}<end_of_turn>
{% endfor %}
{%- if add_generation_prompt %}<start_of_turn>model
{% endif %}"""  # as Gemma 2 has it
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
TEMPLATES = {"chatml": CHATML, "llama": LLAMA, "mistral": MISTRAL, "gemma": GEMMA, "base": None}


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
    made.chat_template = TEMPLATES[kind]
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

    usual: dict[str, Any] = {
        "vocab_size": vocabulary, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 48, "max_position_embeddings": 256, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1,
    }  # fmt: skip
    grouped = {**usual, "num_key_value_heads": 2}
    ends = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    table: dict[str, Any] = {
        "llama": (t.LlamaConfig, grouped),
        "mistral": (t.MistralConfig, {**grouped, "sliding_window": None}),
        "qwen2": (t.Qwen2Config, grouped),
        "qwen3": (t.Qwen3Config, {**grouped, "head_dim": 16}),
        "gpt2": (t.GPT2Config, {"vocab_size": vocabulary, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256, **ends}),
        "gpt_neox": (t.GPTNeoXConfig, usual),
        "gemma2": (t.Gemma2Config, {**grouped, "head_dim": 8, "sliding_window": 12}),
        "phi": (t.PhiConfig, usual),
        "bloom": (t.BloomConfig, {"vocab_size": vocabulary, "hidden_size": 32, "n_layer": 2, "n_head": 4, **ends}),
        "mamba": (t.MambaConfig, {"vocab_size": vocabulary, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, **ends}),
    }  # fmt: skip
    make, values = table[kind]
    config = make(**{**values, **options})
    return randomised(t.AutoModelForCausalLM.from_config(config))


def hub_folder(folder: Path, kind: str = "qwen2", chat: str = "chatml", **options: Any) -> Path:
    """A folder as one downloads it: model, tokenizer and generation settings."""
    tokenizer = hub_tokenizer(chat)
    hub_model(kind, len(tokenizer), **options).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
