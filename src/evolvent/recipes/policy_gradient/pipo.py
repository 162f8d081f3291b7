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
window, twice; here, as in the paper, the window ends before it.)

The form for PPO takes the advantage of every token as its estimator gave it, needs no groups, and leaves a critic
alone: C_it = A_it clip(xi_t, -2, 2), `learn.policy_improvement.form=evolvent.recipes.policy_gradient.pipo:by_token`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evolvent.core.claim import claim, down, up
from evolvent.core.errors import UserError
from evolvent.core.recipe import put, recipe, wrap
from evolvent.core.records import Batch, Change
from evolvent.core.role import Role
from evolvent.core.step import Learn, Step
from evolvent.engine.base import Actor
from evolvent.learn.forward import rescored
from evolvent.recipes.policy_gradient.grpo import grpo


def progress(mean: float, window: Sequence[float]) -> float:
    """xi: how far a mean reward lies above those of the window, in their standard deviations."""
    spread = float(np.std(window)) if len(window) > 1 else 1.0
    return float(np.clip(mean - np.mean(window), -5, 5)) / (spread if spread >= 1e-8 else 1.0)


def unconditional(mean: float, window: Sequence[float]) -> float:
    """1 whatever came of the update: a second look without verification."""
    return 1.0


def advantages(batch: Batch) -> np.ndarray:
    """A for every row, float [rows]: its mean over the tokens that the policy wrote."""
    return np.array(
        [np.mean(np.asarray(w)[t.mask]) if np.ndim(w) else w for t, w in zip(batch.rows, batch.weight, strict=True)]
    )


def verified(batch: Batch, xi: float) -> np.ndarray:
    """C for every row, float32 [rows]; needs the column `group`."""
    advantage = advantages(batch)
    _, group, size = np.unique(batch.columns["group"], return_inverse=True, return_counts=True)
    total = np.bincount(group, np.abs(advantage)) + 1e-6
    return np.clip(advantage * size[group] / total[group] * xi, -10, 10).astype(np.float32)


def by_group(batch: Batch, xi: float) -> np.ndarray:
    """`verified`, of a batch whose credit compares groups; `UserError` for another one."""
    if "group" not in batch.columns:
        raise UserError(
            "pipo needs to know the group of every row; use it with a credit that compares groups, or set "
            "learn.policy_improvement.form=evolvent.recipes.policy_gradient.pipo:by_token"
        )
    return verified(batch, xi)


def by_token(batch: Batch, xi: float) -> np.ndarray | list[Any]:
    """The form for PPO: C = A clip(xi, -2, 2), with the advantages of tokens (GAE) or rows as they are."""
    phi = np.float32(np.clip(xi, -2, 2))
    if any(np.ndim(w) for w in batch.weight):
        return [np.asarray(w, np.float32) * phi for w in batch.weight]
    return np.asarray(batch.weight, np.float32) * phi


@dataclass
class PolicyImprovement:
    """Around a learner: the second look at the batch before. `signal` is what stands for xi in C, `form` computes C.

    Metrics: `pipo/progress` (mu less the window's mean), `pipo/xi`, `pipo/verified` (1 where the old batch was used
    again) and, over `watch` rows of it, `pipo/along`: how far the second look took the policy on along the advantages
    where xi > 0 and back where xi < 0, in log-prob a token (sum of A times its change, over the sum of |A|).
    """

    inner: Learn
    signal: Callable[[float, Sequence[float]], float] = progress
    form: Callable[[Batch, float], Any] = by_group
    window: int = 8
    loss_scale_pos: float = 1.0
    loss_scale_neg: float = 0.0
    watch: int = 64
    means: list[float] = field(default_factory=list, init=False)
    old: Batch | None = field(default=None, init=False)

    def check(self, system: object) -> None:
        """Sizes in range."""
        if self.window < 1 or min(self.loss_scale_pos, self.loss_scale_neg, self.watch) < 0:
            raise UserError(
                "learn.policy_improvement.window must be at least 1, its scales and watch at least 0, "
                f"got {self.window}, {self.loss_scale_pos}, {self.loss_scale_neg} and {self.watch}"
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
                s.log("pipo/xi", progress(mean, self.means))
                changes = self.verify(self.signal(mean, self.means), s)
            self.means = [*self.means, mean][-self.window :]
        changes += self.inner.tell(batches, s)
        self.old = next((b for b in batches if b.name == "fresh" and b.rows), None)
        return changes

    def verify(self, xi: float, s: Step) -> list[Change]:
        """Learn from the old batch again; what the learner logs on the way is not the step's."""
        scale = (self.loss_scale_neg, self.loss_scale_pos)[xi > 0]
        use = self.old is not None and xi != 0 and scale > 0
        s.log("pipo/verified", use)
        if self.old is None or not use:
            s.log("pipo/along", 0.0)
            return []
        again = self.form(self.old, xi)
        old = Batch(self.old.rows, again, "verified", scale * self.old.coefficient, self.old.columns)
        before = self.gap(s.role)
        changes = self.inner.tell([old], s.child(s.role, s.actors, "verification"))
        s.log("pipo/along", float(np.sign(s.metrics["pipo/xi"])) * (self.gap(s.role) - before))
        return changes

    def gap(self, role: Role) -> float:
        """Mean log-prob of a token, weighted by the advantage of its row, over the watched rows of the old batch."""
        assert self.old is not None
        rows, weight = self.old.rows[: self.watch], advantages(self.old)[: self.watch]
        if not np.any(weight):
            return 0.0
        means = [float(x[t.mask].sum()) / max(1, t.sampled) for t, x in zip(rows, rescored(role, rows), strict=True)]
        return float(weight @ np.array(means) / np.abs(weight).sum())

    def state_dict(self) -> dict[str, Any]:
        """Window and old batch."""
        return {"means": list(self.means), "old": self.old}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        self.means, self.old = list(state["means"]), state["old"]


SMALL = {"propose.n": 4, "propose.problems": 64}
NOISY = {"ours": {"recipe": "pipo+label-noise", "learn.policy_improvement.loss_scale_neg": 0.1}}
CONTROLS = {
    "blind": {"recipe": "pipo+label-noise", "learn.policy_improvement.loss_scale_pos": 0.0},
    "twice": {"recipe": "update-twice+label-noise"},
}
TASK = "countdown"

pipo = recipe(
    "pipo",
    grpo,
    wrap("learn", PolicyImprovement, window=8, loss_scale_neg=0.0),
    title="Policy Improvement Reinforcement Learning",
    paper="arXiv 2604.00860",
    mechanism=claim(
        "With 15 % of the labels flipped, updates that helped are taken further and others back: more than by no "
        "second look, and than by one at every batch.",
        up("train.pipo/along", 0.004, "blind"),
        up("train.pipo/along", 0.001, "twice"),
        task=TASK,
        budget="60 steps",
        common=SMALL,
        arms={**NOISY, **CONTROLS},
    ),
    outcome=claim(
        "With 15 % of the labels flipped, accuracy ends higher than GRPO's, and falls less from its peak.",
        up("test.sampled", 0.015, "grpo"),
        down("drop.sampled", 0.01, "grpo"),
        task=TASK,
        budget="60 steps",
        common=SMALL,
        arms={**NOISY, "grpo": {"recipe": "grpo+label-noise"}},
    ),
)

update_twice = recipe(
    "update-twice",
    pipo,
    put("learn.policy_improvement.signal", unconditional),
    title="Every batch learned from twice, whatever came of it (control of PIPO)",
)
