"""Small things that many tests need: a random character model, a task on which anything can be right, a system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from evolvent.core.ledger import Ledger
from evolvent.core.records import Problem, Trajectory
from evolvent.core.role import Role
from evolvent.engine.local import LocalEngine
from evolvent.models.checkpoint import seed_config
from evolvent.models.decoder import Decoder, DecoderConfig, LowRank, initialise
from evolvent.models.policy import Policy
from evolvent.models.tokenizer import SeedFormat, character_tokenizer
from evolvent.tasks.base import Demo, Piece, Score, Split, key_of, one_user, split_of


def random_policy(layers: int = 2, width: int = 32, context: int = 128, seed: int = 0, spread: float = 2.0) -> Policy:
    """An untrained character model; `spread` widens its weights, so that its predictions are far from uniform."""
    format = SeedFormat(character_tokenizer())
    config = seed_config(layers, width, 4, 2 * width, context, format.size)
    model = Decoder(DecoderConfig.read(config))
    initialise(model, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(spread)
    return Policy(model, format, config, "random")


class Digits:
    """Write a completion with many digits: an untrained model is sometimes right, and can learn it in seconds."""

    name, categories, max_tokens = "digits", ("easy", "hard"), 8

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """A random three-letter prompt."""
        while True:
            text = "".join(chr(97 + i) for i in rng.integers(0, 26, 3))
            key = key_of("digits", text)
            if split_of(key) == split:
                return Problem(key, one_user(text), {"text": text}, category or "easy", self.name)

    def score(self, problem: Problem, completion: str) -> Score:
        """Outcome 1 if a third of the characters are digits; shaping `share` is the share itself."""
        share = sum(c.isdigit() for c in completion) / max(1, len(completion))
        return Score(float(share > 1 / 3), completion, {"share": share})

    def gold(self, problem: Problem) -> Demo:
        """Digits only."""
        return [Piece("12345678")]


def role_of(policy: Policy, task: Any | None = None, seed: int = 0, slots: Mapping[str, Any] | None = None) -> Role:
    """A role without parts around a policy."""
    ledger = Ledger()
    return Role("", task or Digits(), policy, LocalEngine(policy, ledger), ledger, seed, slots=dict(slots or {}))


def stub(uid: int, tokens: list[int], actor: str = "policy") -> Trajectory:
    """A trajectory that is only its prompt."""
    size = len(tokens)
    problem = Problem(f"{uid:016x}", one_user("x"), {}, task="digits")
    return Trajectory(
        uid, problem, np.array(tokens, np.int32), np.zeros(size, bool), np.zeros(size, np.float32), actor=actor
    )


def plain(policy: Policy, tokens: np.ndarray, low: LowRank | None = None, temperature: float = 1.0) -> np.ndarray:
    """Log-probs of every token but the first, by one forward pass over the whole text."""
    text = torch.from_numpy(tokens.astype(np.int64))[None]
    with torch.no_grad():
        logprob = torch.log_softmax(policy.model.head(policy.model(text, low)) / temperature, -1)[0, :-1]
    return logprob.gather(1, text[0, 1:, None])[:, 0].numpy()
