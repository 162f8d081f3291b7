"""Conversations as Unicode text, for models whose tokenizer and weights are elsewhere.

Behind an endpoint the model's own tokens are unknown. Here a token is one Unicode code point, and numbers beyond
Unicode mark where a message of a role begins, so that a token list can be read back as the messages that it came from.
Lengths are therefore counted in characters; what a service counts (its own tokens) goes to the ledger.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.records import Message

if TYPE_CHECKING:
    from evolvent.models.decoder import LowRank

BEYOND = 0x110000  # the first number that is no code point
ROLES = ("system", "user", "assistant", "tool")
MARKS = {role: BEYOND + i for i, role in enumerate(ROLES)}
OPEN = MARKS["assistant"]
FILLER = BEYOND + len(ROLES)  # a token without text


class TextFormat:
    """One token a code point; a message is the mark of its role and its text. No token ends a turn."""

    pad = FILLER
    ends: frozenset[int] = frozenset()

    def __init__(self, wording: str = "plain") -> None:
        self.wording = wording

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """The conversation, up to where the assistant goes on. Unknown roles raise `UserError`."""
        tokens: list[int] = []
        for message in messages:
            if message.role not in MARKS:
                raise UserError(f"no role `{message.role}` in a conversation; there are {', '.join(ROLES)}")
            tokens += [MARKS[message.role], *self.encode(message.content)]
        return [*tokens, OPEN]

    def reply(self, text: str) -> list[int]:
        """A tool's reply as a message, and the assistant's next turn."""
        return [MARKS["tool"], *self.encode(text), OPEN]

    def encode(self, text: str) -> list[int]:
        """Code points."""
        return [ord(c) for c in text]

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        """The text, without marks."""
        points = tokens.tolist() if isinstance(tokens, np.ndarray) else tokens
        return "".join([chr(t) for t in points if t < BEYOND])

    def messages(self, tokens: Sequence[int] | np.ndarray) -> list[Message]:
        """The messages that a token list was made from; the last one is the turn that the assistant has open."""
        points = np.asarray(tokens, np.int64)
        starts = np.flatnonzero((points >= BEYOND) & (points < FILLER)).tolist()
        if not starts or starts[0] != 0:
            raise ValueError("a conversation must begin with the mark of a role")
        return [
            Message(ROLES[int(points[a]) - BEYOND], self.decode(points[a + 1 : b]))
            for a, b in zip(starts, [*starts[1:], len(points)], strict=True)
        ]

    def save(self, folder: Path) -> None:
        """There is no tokenizer to save; a note says so."""
        (folder / "tokenizer_config.json").write_text(json.dumps({"evolvent_format": "text"}) + "\n")


class FixedPolicy:
    """What a run knows of a model that it cannot change: its name, its text format and, perhaps, its context.

    It stands where a `Policy` stands. Whatever would train it, copy it or read its weights is refused with `UserError`.
    """

    version = 0
    size = 0  # number of parameters that are here, to be trained and saved
    adapters: tuple[str, ...] = ()
    active: str | None = None

    def __init__(self, name: str, format: TextFormat, context: int | None = None, where: str = "an endpoint") -> None:
        self.name, self.format, self.context, self.where = name, format, context, where
        self.config: dict[str, Any] = {}

    def _refuse(self) -> NoReturn:
        raise UserError(
            f"the weights of `{self.name}` are behind {self.where} and cannot be trained or read; choose a recipe that "
            "does not train (no-change, best-of-n), or give the folder of a model"
        )

    @property
    def model(self) -> NoReturn:
        """There is none here: `UserError`."""
        self._refuse()

    @property
    def device(self) -> NoReturn:
        """Elsewhere: `UserError`."""
        self._refuse()

    def trainable(self, adapter: str | None = None) -> NoReturn:
        """Nothing: `UserError`."""
        self._refuse()

    def save(self, folder: Path) -> NoReturn:
        """Nothing to save: `UserError`."""
        self._refuse()

    def bump(self) -> NoReturn:
        """A new version would need new weights: `UserError`."""
        self._refuse()

    def low(self, adapter: str | None) -> LowRank | None:
        """No adapters."""
        return None if adapter is None else self._refuse()

    def weights(self) -> dict[str, Any]:
        """None."""
        return {}

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """There is nothing that could have changed."""
        if weights:
            self._refuse()

    def state_dict(self) -> dict[str, Any]:
        """The version, which stays 0."""
        return {"version": 0, "weights": {}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Only a state of the same kind fits."""
        self.set_weights(state["weights"])
