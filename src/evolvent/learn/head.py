"""A small head that reads off hidden states whether an answer will be right, learned while the policy is trained."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from evolvent.core.errors import UserError
from evolvent.core.role import Role, reads_outcome
from evolvent.core.step import Step
from evolvent.learn.calibration import Calibration


@reads_outcome
@dataclass
class Head:
    """Says of live branches how likely each is to end right: two layers on the hidden state, then `Calibration`.

    It learns by cross-entropy the verdicts on the branches that it was asked about and that were finished, in one pass
    after each step; the policy feels nothing of it. `info["state"]` is the hidden state that it saw, `info["head"]` its
    score in [0, 1] before calibration. (From ARRoL, arXiv 2603.24840, which does not give the width and the rate.)

    width  units of the hidden layer
    lr     learning rate of Adam
    batch  rows of an update, about
    bins   of the calibration
    """

    width: PositiveInt = 64
    lr: PositiveFloat = 1e-3
    batch: PositiveInt = 32
    bins: PositiveInt = 128
    needs: ClassVar = ("hidden",)

    def setup(self, role: Role) -> None:
        """An untrained head, and empty bins."""
        with torch.random.fork_rng():
            torch.manual_seed(role.seed)
            first, last = nn.Linear(role.policy.width, self.width), nn.Linear(self.width, 1)
        self.layers = nn.Sequential(first, nn.ReLU(), last)
        self.optimizer = torch.optim.Adam(self.layers.parameters(), self.lr)
        self.calibration = Calibration(self.bins)

    def __call__(self, branches: Sequence[Any], s: Step) -> Float[np.ndarray, " branches"]:
        """P(right) of each of the live `engine.base.Branch`es."""
        states = [np.array(b.hidden, np.float32) for b in branches]  # copies: the engine's are gone after a token
        with torch.no_grad():
            scores = torch.sigmoid(self.logits(np.stack(states))).numpy()
        for branch, state, score in zip(branches, states, scores.tolist(), strict=True):
            branch.info |= {"state": state, "head": score}
        return self.calibration(scores)

    def logits(self, states: Float[np.ndarray, "rows hidden"]) -> Float[Tensor, " rows"]:
        """What the layers make of hidden states."""
        return self.layers(torch.from_numpy(states))[:, 0]

    def observe(self, s: Step) -> None:
        """Learn from what was finished."""
        rows = [t for g in s.groups for t in g.valid if "state" in t.info]
        if any("outcome" not in t.rewards for t in rows):
            raise UserError(
                "a head learns the verifier's outcome, and the judge gives none; drop one of the two recipes, or put a "
                "quality that needs no outcome in the head's place"
            )
        if not rows:
            return
        states = np.stack([t.info["state"] for t in rows])
        right = np.array([t.outcome >= 1.0 for t in rows])
        for part in np.array_split(s.rng("head").permutation(len(rows)), max(1, len(rows) // self.batch)):
            loss = binary_cross_entropy_with_logits(self.logits(states[part]), torch.from_numpy(right[part]).float())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.calibration.add(np.array([t.info["head"] for t in rows]), right)

    def state_dict(self) -> dict[str, Any]:
        """Layers, optimizer and bins."""
        layers, optimizer = self.layers.state_dict(), self.optimizer.state_dict()
        return copy.deepcopy({"layers": layers, "optimizer": optimizer, "counts": self.calibration.counts})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        self.layers.load_state_dict(state["layers"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.calibration.counts = state["counts"].copy()
