"""Texts as vectors that an OpenAI-compatible service makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from evolvent.core.errors import EngineError, UserError
from evolvent.core.role import Role
from evolvent.engine.endpoint import EndpointEngine, find_key, parse_endpoint
from evolvent.engine.reply import guess
from evolvent.engine.transport import Outcome, Transport


@dataclass
class EndpointEmbed:
    """Embeddings by a model behind an endpoint, one request for each text; what was paid is charged and never paid for
    again, also when a run is resumed.

    model  its name at the service where the run's own model is, or an address such as http://127.0.0.1:8000/v1#name
    price  US dollars for a million tokens
    """

    model: str = "text-embedding-3-small"
    price: float = 0.0
    role: Any = field(default=None, init=False, repr=False)
    transport: Any = field(default=None, init=False, repr=False)
    name: str = field(default="", init=False, repr=False)

    def setup(self, role: Role) -> None:
        """Find the service. `UserError` where there is none: the model is in this process, and `model` is a name."""
        self.role, engine = role, role.engine
        if self.price < 0:
            raise UserError(f"the price of embeddings must be at least 0, got {self.price}")
        ours = engine.transport if isinstance(engine, EndpointEngine) else None
        if "://" in self.model or self.model.startswith("openai:"):
            place = parse_endpoint(self.model)
            self.name = place.model
            self.transport = Transport(place.url, find_key(place), replay=ours.replay if ours else None)
        elif ours is not None:
            self.name, self.transport = self.model, ours
        else:
            raise UserError(
                f"embeddings by `{self.model}` come from an endpoint, and this run's model is behind none; name one, "
                "as in ...embed.model=http://127.0.0.1:8000/v1#name"
            )

    def __call__(self, texts: Sequence[str]) -> Float[np.ndarray, "texts dim"]:
        """A vector for each text. `EngineError` where one could not be had, `UserError` where none ever will."""
        bodies = [{"model": self.name, "input": text} for text in texts]
        outcomes, fatal = self.transport.post_all("/embeddings", bodies)
        for text, outcome in zip(texts, outcomes, strict=True):
            if outcome is not None:
                self._charge(text, outcome)
        if fatal is not None:
            raise fatal
        found = [vector_of(outcome) for outcome in outcomes]
        if len({len(v) for v in found}) > 1:
            raise EngineError(f"embeddings of {self.name} differ in length")
        return np.array(found, float).reshape(len(found), -1)

    def _charge(self, text: str, outcome: Outcome) -> None:
        """Tokens that were read, as the service counts them; nothing is written."""
        usage = (outcome.reply or {}).get("usage")
        told = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        read = told if isinstance(told, int) and not isinstance(told, bool) and told >= 0 else guess(text)
        read *= bool(outcome.calls)
        self.role.ledger.charge(model_calls=outcome.calls, prefilled=read, money=read * self.price / 1e6)


def vector_of(outcome: Outcome | None) -> list[float]:
    """The embedding of a reply; `EngineError` where there is none."""
    reply = outcome.reply if outcome else None
    if reply is None:
        raise EngineError(f"no embedding: {outcome.error if outcome else 'the request was cut short'}")
    try:
        vector = [float(x) for x in reply["data"][0]["embedding"]]
    except (KeyError, IndexError, TypeError, ValueError):
        vector = []
    if not vector or not np.isfinite(vector).all():
        raise EngineError("a reply that holds no embedding")
    return vector
