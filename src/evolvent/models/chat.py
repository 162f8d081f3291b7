"""Text to tokens and back for models of the hub, with the chat template and the tool format of the model.

What the policy wrote is never decoded and tokenised again. A prompt is rendered once; a tool's result is what the
template writes after an assistant's turn, found by rendering a short conversation that ends in the same messages.
Models without a template read plain text.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.records import Message
from evolvent.models.calls import Call, parse_calls
from evolvent.models.huggingface import quiet

FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tekken.json")
GENERATION = "generation_config.json"
MARK, OTHER = "qzqAqzq", "qzqBqzq"  # stand for a turn of the assistant, and for the text that follows it
ANY_TOOL = {
    "type": "function",
    "function": {"name": MARK, "description": MARK, "parameters": {"type": "object", "properties": {}, "required": []}},
}


class ChatFormat:
    """The conversation format of a tokenizer of `transformers`.

    ends          tokens that end a turn: those that the model's files name, and the one that the template closes with
    eos           the one that closes a turn in the template
    close         what the template writes after a turn that the policy has not ended by itself: `eos`, or nothing
    native_tools  the template tells the model about tools; calls are then in the model's own form (see `calls`)
    """

    wording = "plain"

    def __init__(self, tokenizer: Any, ends: Iterable[int] = (), generation: Mapping[str, Any] | None = None) -> None:
        self.tokenizer, self.generation = tokenizer, dict(generation or {})
        known = {int(i) for i in (tokenizer.eos_token_id, *ends) if i is not None and i >= 0}
        self.templated = tokenizer.chat_template is not None
        self._safe = "sanitize_control_tokens" in inspect.signature(tokenizer.apply_chat_template).parameters
        closing = self._closing_token(known)
        self.ends = frozenset(known | ({closing} if closing is not None else set()))
        if not self.ends:
            raise UserError("the tokenizer has no token that ends a turn; set eos_token in its tokenizer_config.json")
        self.eos = next(i for i in (closing, tokenizer.eos_token_id, min(self.ends)) if i is not None)
        self.close = [] if closing is None else [closing]
        self.pad = next(i for i in (tokenizer.pad_token_id, tokenizer.eos_token_id, min(self.ends)) if i is not None)
        self._hidden = self.ends | {self.pad, tokenizer.bos_token_id}
        self.native_tools = self._tells_of_tools()
        self._tool_style = self._find_tool_style()

    @classmethod
    def read(cls, folder: Path, config: Mapping[str, Any]) -> ChatFormat:
        """The format of a model folder; `UserError` if it has no tokenizer, or one that does not fit the model."""
        from transformers import AutoTokenizer

        if not any((folder / name).is_file() for name in FILES) and not list(folder.glob("*.tiktoken")):
            raise UserError(
                f"{folder} has no tokenizer (no {FILES[0]}); copy the tokenizer's files from the model's home"
            )
        try:
            with quiet():
                tokenizer = AutoTokenizer.from_pretrained(str(folder), clean_up_tokenization_spaces=False)
        except Exception as reason:
            first = (str(reason).strip().splitlines() or [type(reason).__name__])[0]
            raise UserError(f"{folder}: the tokenizer cannot be read ({first}); copy or save it again") from None
        size = config.get("vocab_size") or (config.get("text_config") or {}).get("vocab_size")
        if size and len(tokenizer) > size and max(tokenizer.get_vocab().values()) >= size:
            raise UserError(
                f"{folder}: the tokenizer has {len(tokenizer)} tokens and the model {size}; they do not belong "
                "together, so copy the tokenizer's files from the model's home"
            )
        path = folder / GENERATION
        generation = json.loads(path.read_text()) if path.is_file() else {}
        said = [s.get("eos_token_id") for s in (config, config.get("text_config") or {}, generation)]
        ends = [i for s in said for i in (s if isinstance(s, list) else [s]) if isinstance(i, int)]
        return cls(tokenizer, ends, generation)

    # --- the protocol ---

    def encode(self, text: str) -> list[int]:
        """Tokens of a text, without anything around it."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        """The text as it is, without the tokens that end a turn, begin a text or pad; other special tokens stay."""
        kept = [int(t) for t in tokens if int(t) not in self._hidden]
        return self.tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def prompt(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()) -> list[int]:
        """The opening of a conversation, up to where the assistant goes on. `tools` are JSON schemas of functions.

        A system message goes before the first user's where the template has no such role, and messages of one role in
        a row become one where it wants the roles to take turns.
        """
        if not self.templated:
            return self.raw("\n\n".join(m.content for m in messages) + "\n")
        plain = [{"role": m.role, "content": m.content} for m in messages]
        reason: Exception | None = None
        for variant in (plain, without_system(plain), taking_turns(without_system(plain))):
            try:
                text = self._render(variant, tools=tools)
            except Exception as error:  # templates raise what they like
                reason = reason or error
                continue
            if all(m["content"].strip() in text for m in variant if m["role"] == "system"):
                return self._tokens(variant, text, tools)
        raise UserError(f"the chat template refuses the messages of the problem ({reason}); change the task's prompt")

    def reply(self, text: str) -> list[int]:
        """An environment's answer to the policy's turn, as a message of the user, and the assistant's next turn."""
        if not self.templated:
            return self.encode(f"\n{text}\n")
        return self._following([{"role": "user", "content": text}], assistant())

    def results(self, calls: Sequence[Call], texts: Sequence[str]) -> list[int]:
        """The results of tool calls that the policy made in its turn, and the assistant's next turn."""
        ids = [f"call{i:05d}" for i in range(len(calls))]
        messages = [
            {"role": "tool", "name": c.name, "content": text, "tool_call_id": i}
            for c, text, i in zip(calls, texts, ids, strict=True)
        ]
        if self._tool_style == "plain":
            return self._following(messages, assistant())
        if self._tool_style == "calls":
            return self._following(messages, assistant(ids))
        return self.reply("\n".join(texts))

    def calls(self, turn: str) -> list[Call]:
        """Tool calls in a turn."""
        return parse_calls(turn)

    def save(self, folder: Path) -> None:
        """Write the tokenizer's files, and what the model's files said about generation."""
        self.tokenizer.save_pretrained(str(folder))
        if self.generation:
            (folder / GENERATION).write_text(json.dumps(self.generation, indent=2) + "\n")

    # --- the template ---

    def _render(self, messages: Sequence[Mapping[str, Any]], go_on: bool = True, tools: Sequence[Any] = ()) -> str:
        return self.tokenizer.apply_chat_template(
            list(messages), tools=list(tools) or None, tokenize=False, add_generation_prompt=go_on
        )

    def _tokens(self, messages: Sequence[Mapping[str, Any]], text: str, tools: Sequence[Any]) -> list[int]:
        """Tokens of a rendered conversation; special tokens inside a message's text are read as text where possible."""
        if not self._safe:
            return self.encode(text)
        made = self.tokenizer.apply_chat_template(
            list(messages), tools=list(tools) or None, add_generation_prompt=True, tokenize=True, return_dict=False,
            sanitize_control_tokens=True,
        )  # fmt: skip
        return list(made)

    def raw(self, text: str) -> list[int]:
        """Tokens with what the tokenizer puts before every text, and nothing after it."""
        bare, whole = self.encode(text), list(self.tokenizer.encode(text))
        for start in range(len(whole) - len(bare) + 1):
            if whole[start : start + len(bare)] == bare:
                return whole[: start + len(bare)]
        return bare

    def _following(self, messages: Sequence[Mapping[str, Any]], turn: Mapping[str, Any]) -> list[int]:
        """Tokens that the template writes for messages after an assistant's turn that has ended with its end token."""
        text = self._render([{"role": "user", "content": "."}, turn, *messages]).partition(MARK)[2]
        if not self.close:
            return self.encode(text)
        end = self.tokenizer.convert_ids_to_tokens(self.eos)
        tokens = self._contained(end + text.partition(end)[2], [m["content"] for m in messages])
        return tokens[tokens.index(self.eos) + 1 :]

    def _contained(self, text: str, contents: Sequence[str]) -> list[int]:
        """Tokens of a text in which special tokens count as such outside the contents only."""
        special = [t for t in self.tokenizer.get_added_vocab() if t.strip()]
        if not any(t in content for t in special for content in contents) or not all(c in text for c in contents):
            return self.encode(text)
        tokens: list[int] = []
        for content in contents:
            before, _, text = text.partition(content)
            inner = self.tokenizer.encode(content, add_special_tokens=False, split_special_tokens=True)
            tokens += [*self.encode(before), *inner]
        return [*tokens, *self.encode(text)]

    def _closing_token(self, known: set[int]) -> int | None:
        """The special token that the template closes an assistant's turn with; None if it writes none."""
        if not self.templated:
            return None
        opening = [{"role": "user", "content": "."}, assistant()]
        try:
            last = self._render(opening, go_on=False).partition(MARK)[2]
            inside = self._render([*opening, {"role": "user", "content": OTHER}]).partition(MARK)[2].partition(OTHER)[0]
        except Exception as reason:
            raise UserError(
                f"the model's chat template cannot be rendered ({reason}); repair chat_template.jinja"
            ) from None
        special = set(self.tokenizer.all_special_ids) | set(self.tokenizer.get_added_vocab().values()) | known
        found = [t for t in self.encode(last) if t in special and self.tokenizer.decode([t]).strip()]
        return next(iter([*found, *(t for t in self.encode(inside) if t in known)]), None)

    def _tells_of_tools(self) -> bool:
        if not self.templated:
            return False
        try:
            return MARK in self._render([{"role": "user", "content": "."}], tools=[ANY_TOOL])
        except Exception:
            return False

    def _find_tool_style(self) -> str:
        """How a tool's result is written: after a `plain` turn, after one with `calls`, or as the `user`."""
        message = {"role": "tool", "name": "tool", "content": OTHER, "tool_call_id": "call00000"}
        for style, turn in (("plain", assistant()), ("calls", assistant(["call00000"]))):
            try:
                text = self._render([{"role": "user", "content": "."}, turn, message]) if self.templated else ""
            except Exception:
                continue
            between = text.partition(MARK)[2].partition(OTHER)
            closed = not self.close or self.tokenizer.convert_ids_to_tokens(self.eos) in between[0]
            if between[1] and closed:
                return style
        return "user"


def assistant(ids: Sequence[str] = ()) -> dict[str, Any]:
    """A turn of the assistant that ends in the mark, as text or in the last of some calls."""
    if not ids:
        return {"role": "assistant", "content": MARK}
    names = [OTHER] * (len(ids) - 1) + [MARK]
    calls = [
        {"type": "function", "id": i, "function": {"name": n, "arguments": {}}} for i, n in zip(ids, names, strict=True)
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def without_system(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """System messages put before the text of the first message of the user."""
    system = [m["content"] for m in messages if m["role"] == "system"]
    rest = [dict(m) for m in messages if m["role"] != "system"]
    first = next((m for m in rest if m["role"] == "user"), None)
    if system and first is None:
        rest.insert(0, {"role": "user", "content": "\n\n".join(system)})
    elif system and first is not None:
        first["content"] = "\n\n".join([*system, first["content"]])
    return rest


def taking_turns(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Neighbours of one role as one message."""
    made: list[dict[str, Any]] = []
    for message in messages:
        if made and made[-1]["role"] == message["role"]:
            made[-1]["content"] += "\n\n" + message["content"]
        else:
            made.append(dict(message))
    return made
