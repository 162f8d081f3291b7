"""Text to tokens and back, with the conversation format of the model.

`Format` is what the rest of the house knows of a tokenizer: how a conversation opens, how a tool's reply continues
it, which tokens end a turn. Two kinds: `SeedFormat` for the character models that ship with the package, where a
conversation is plain text, and `ChatFormat` (in `chat.py`) for models with a chat template.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from evolvent.core.errors import UserError
from evolvent.core.records import Message
from evolvent.models.calls import Call

SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")
CHARACTERS = "\n" + "".join(chr(c) for c in range(32, 127))


class Format(Protocol):
    """Tokens in and out. `wording` names the prompts that the model reads best, `compact` or `plain`."""

    wording: str
    pad: int
    ends: frozenset[int]  # tokens that end a turn

    def prompt(self, messages: Sequence[Message]) -> list[int]: ...
    def reply(self, text: str) -> list[int]: ...
    def encode(self, text: str) -> list[int]: ...
    def decode(self, tokens: Sequence[int] | np.ndarray) -> str: ...
    def save(self, folder: Path) -> None: ...


@runtime_checkable
class ToolFormat(Format, Protocol):
    """A format that may know tools: where `native_tools`, prompts tell of them and the model calls them its own way.

    `close` is what ends a turn that the policy has not ended by itself.
    """

    native_tools: bool
    close: list[int]

    def prompt(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()) -> list[int]: ...
    def calls(self, turn: str) -> list[Call]: ...
    def results(self, calls: Sequence[Call], texts: Sequence[str]) -> list[int]: ...


class SeedFormat:
    """One token a character; a conversation is `<bos>` and the text of its messages, one after the other."""

    wording = "compact"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._ids: dict[str, int] = tokenizer.get_vocab()
        self.pad, self.bos, self.eos, self.unknown = (self._ids[t] for t in SPECIAL)
        self.ends = frozenset([self.eos])
        self._texts = {i: "" if t in SPECIAL else t for t, i in self._ids.items()}

    @property
    def size(self) -> int:
        """Number of tokens."""
        return self.tokenizer.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """One token a character; `UserError` names characters that the model has never seen."""
        try:
            return [self._ids[c] for c in text]
        except KeyError as unknown:
            raise UserError(
                f"the seed models read printable ASCII only, and the text has {unknown.args[0]!r}; "
                "replace it, or use another model"
            ) from None

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        """The text, without special tokens."""
        return "".join([self._texts[int(t)] for t in tokens])

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """The opening of a conversation, up to where the model goes on."""
        return [self.bos, *self.encode("".join(m.content for m in messages))]

    def reply(self, text: str) -> list[int]:
        """A tool's reply, as it follows the policy's turn."""
        return self.encode(text)

    def save(self, folder: Path) -> None:
        """Write the files that `transformers.AutoTokenizer` reads."""
        self.tokenizer.save(str(folder / "tokenizer.json"))
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": "<pad>",
            "bos_token": "<bos>",
            "eos_token": "<eos>",
            "unk_token": "<unk>",
            "padding_side": "left",
            "clean_up_tokenization_spaces": False,
            "evolvent_format": "seed",
            "chat_template": "{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}",
        }
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")


def character_tokenizer() -> Tokenizer:
    """The tokenizer of the seed models: printable ASCII, newline and four special tokens."""
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *CHARACTERS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(list(SPECIAL))
    return tokenizer
