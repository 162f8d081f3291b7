"""PIPO: check whether the last update helped, then take it again or take it back.

arXiv 2604.00860.

    xi_t = clip(mu_t - mean(window), -5, 5) / std(window),    window: mean rewards of the K = 8 steps before
    a_i  = n A_i / (sum of |A_j| over its group + 1e-6)
    C_i  = clip(a_i xi_t, -10, 10)

mu_t is the mean reward of a batch sampled after the update that it judges. When it is there, the batch before it is
learned from a second time, with C_i for advantages in the clipped surrogate of the base method: xi > 0 repeats the
update, xi < 0 reverses it, scaled by `loss_scale_neg` (0: no reversal, the released code's default; its experiments
use 0.1). Then the fresh batch is learned from. No rollout is added. Goes around any learner that takes advantages:
GRPO, RLOO, GSPO. The paper takes 128 problems with 8 answers and KL 0.001. (The released code has mu_t in its own
window, twice; here, as in the paper, the window ends before it. The form for PPO with a critic is left out.)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evolvent.core.claim import claim, down, up
from evolvent.core.errors import UserError
from evolvent.core.recipe import recipe, wrap
from evolvent.core.records import Batch, Change
from evolvent.core.step import Learn, Step
from evolvent.engine.base import Actor
from evolvent.recipes.policy_gradient.grpo import grpo


def progress(mean: float, window: Sequence[float]) -> float:
    """xi: how far a mean reward lies above those of the window, in their standard deviations."""
    spread = float(np.std(window)) if len(window) > 1 else 1.0
    return float(np.clip(mean - np.mean(window), -5, 5)) / (spread if spread >= 1e-8 else 1.0)


def verified(batch: Batch, xi: float) -> np.ndarray:
    """C for every row, float32 [rows]; needs the column `group`."""
    advantage = np.array(
        [np.mean(np.asarray(w)[t.mask]) if np.ndim(w) else w for t, w in zip(batch.rows, batch.weight, strict=True)]
    )
    _, group, size = np.unique(batch.columns["group"], return_inverse=True, return_counts=True)
    total = np.bincount(group, np.abs(advantage)) + 1e-6
    return np.clip(advantage * size[group] / total[group] * xi, -10, 10).astype(np.float32)


@dataclass
class PolicyImprovement:
    """Around a learner: the second look at the batch before. Metrics `pipo/progress` (mu less the window's mean),
    `pipo/xi`, and `pipo/verified`: 1 where the old batch was used again."""

    inner: Learn
    window: int = 8
    loss_scale_pos: float = 1.0
    loss_scale_neg: float = 0.0
    means: list[float] = field(default_factory=list, init=False)
    old: Batch | None = field(default=None, init=False)

    def check(self, system: object) -> None:
        """Sizes in range."""
        if self.window < 1 or self.loss_scale_pos < 0 or self.loss_scale_neg < 0:
            raise UserError(
                "learn.policy_improvement.window must be at least 1 and its scales at least 0, "
                f"got {self.window}, {self.loss_scale_pos} and {self.loss_scale_neg}"
            )

    def ask(self, s: Step) -> list[Actor]:
        """The actors of the inner learner."""
        return self.inner.ask(s)

    def tell(self, batches: Sequence[Batch], s: Step) -> list[Change]:
        """Judge the last update by this step's rewards, then learn."""
        scores = [t.score for g in s.groups for t in g.valid]
        changes: list[Change] = []
        if scores:
            mean = float(np.mean(scores))
            if len(self.means) == self.window:
                s.log("pipo/progress", mean - float(np.mean(self.means)))
                changes = self.verify(progress(mean, self.means), s)
            self.means = [*self.means, mean][-self.window :]
        changes += self.inner.tell(batches, s)
        self.old = next((b for b in batches if b.name == "fresh" and b.rows), None)
        return changes

    def verify(self, xi: float, s: Step) -> list[Change]:
        """Learn from the old batch again; what the learner logs on the way is not the step's."""
        s.log("pipo/xi", xi)
        scale = (self.loss_scale_neg, self.loss_scale_pos)[xi > 0]
        use = self.old is not None and xi != 0 and scale > 0
        s.log("pipo/verified", use)
        if self.old is None or not use:
            return []
        if "group" not in self.old.columns:
            raise UserError("pipo needs to know the group of every row; use it with a credit that compares groups")
        old = Batch(self.old.rows, verified(self.old, xi), "verified", scale * self.old.coefficient, self.old.columns)
        return self.inner.tell([old], s.child(s.role, s.actors, "verification"))

    def state_dict(self) -> dict[str, Any]:
        """Window and old batch."""
        return {"means": list(self.means), "old": self.old}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        self.means, self.old = list(state["means"]), state["old"]


SMALL = {"propose.n": 4, "propose.problems": 64}
NOISY = {"ours": {"recipe": "pipo+label-noise"}, "grpo": {"recipe": "grpo+label-noise"}}
BLIND = {"recipe": "pipo+label-noise", "learn.policy_improvement.loss_scale_pos": 0.0}
TASK = "countdown"

pipo = recipe(
    "pipo",
    grpo,
    wrap("learn", PolicyImprovement, window=8, loss_scale_neg=0.0),
    title="Policy Improvement Reinforcement Learning",
    paper="arXiv 2604.00860",
    mechanism=claim(
        "With 15 % of the labels flipped, the mean reward rises more over the window than where nothing is verified.",
        up("train.pipo/progress", 0.002, "blind"),
        task=TASK,
        budget="100 steps",
        common=SMALL,
        arms={**NOISY, "blind": BLIND},
    ),
    outcome=claim(
        "With 15 % of the labels flipped, accuracy ends higher than GRPO's, and falls less from its peak.",
        up("test.sampled", 0.01, "grpo"),
        down("drop.sampled", 0.005, "grpo"),
        task=TASK,
        budget="100 steps",
        common=SMALL,
        arms=NOISY,
    ),
)
