"""ARRoL: drop rollouts while they are written, so that those that stay are as often right as wrong.

arXiv 2603.24840. After `stride` tokens a two-layer head reads the hidden state; its score falls into one of 128 bins.

    q_i = P(right | bin of i)      by Bayes' rule, from running counts with 1 added to each
    p_i = clip(kappa + delta + lambda (rho - q_i), 0.1, 0.9),    delta such that the group's mean is kappa = 0.5

Rollout i stays with probability p_i. The head learns the outcomes of those that are finished, and drops nobody in the
first 20 steps, nor in look-aheads and probes. In votes at test time the rank of a score, in [0, 1], is the weight. As
printed, groups below rho lose right answers; here lambda has the sign of mean q - rho, and shares move towards rho. All
branches are decoded at once here: no request waits for a slot, dropped rows leave the cache. The paper takes G = 16;
width and learning rate of the head are ours.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.base import Tree
from evolvent.recipes.policy_gradient.grpo import grpo


def posterior(counts: np.ndarray, bins: Sequence[int]) -> np.ndarray:
    """q from counts [2, 128] of wrong and right answers in each bin."""
    total = counts.sum(1, keepdims=True)
    joint = (total + 1) / (total.sum() + 2) * (counts + 1) / (total + counts.shape[1])
    return (joint[1] / joint.sum(0))[bins]


def survival(q: np.ndarray, kappa: float, rho: float, lam: float) -> np.ndarray:
    """p of a group; delta by bisection."""
    tilt, low, high = np.sign(q.mean() - rho) * lam * (rho - q), -2.0, 2.0
    for _ in range(50):
        p = np.clip(kappa + (low + high) / 2 + tilt, 0.1, 0.9)
        low, high = (low, (low + high) / 2) if p.mean() > kappa else ((low + high) / 2, high)
    return p


def elected(answers: Sequence[str | None], scores: Sequence[float]) -> str | None:
    """The answer with the most votes, which weigh the rank of their score, from 0 to 1; None is no vote."""
    rank = np.argsort(np.argsort(scores, kind="stable"), kind="stable") / max(1, len(scores) - 1)
    votes: Counter[str | None] = Counter()
    for answer, weight in zip(answers, rank, strict=True):
        votes[answer] += weight
    return max([a for a in votes if a is not None], key=votes.__getitem__, default=None)


@dataclass
class Prune:
    """Controller: drops branches after `stride` tokens, at random with `lam=0`; `info["quality"]` is the head's score.

    Metric `balance`: mean over groups of r (1 - r), r being the share of right answers among those that stayed.
    """

    stride: PositiveInt = 512
    kappa: Annotated[float, Field(ge=0.1, le=0.9)] = 0.5
    rho: float = 0.5
    lam: float = 0.5
    warmup: int = 20
    hidden, needs, TINY = True, ("tokens", "hidden"), {"stride": 4}

    def setup(self, role: Role) -> None:
        """An untrained head, and empty bins."""
        with torch.random.fork_rng():
            torch.manual_seed(role.seed)
            self.head = nn.Sequential(nn.Linear(role.policy.config["hidden_size"], 64), nn.ReLU(), nn.Linear(64, 1))
        self.optimizer = torch.optim.Adam(self.head.parameters(), 1e-3)
        self.counts = np.zeros((2, 128))

    def between(self, tree: Tree, s: Step) -> None:
        """Score who is new at the detection point; group by group, see who stays."""
        due = [b for b in tree.live if "quality" not in b.info and b.mask.sum() >= self.stride]
        if due:
            scores = torch.sigmoid(self.score([b.hidden for b in due])).tolist()
            for b, score in zip(due, scores, strict=True):
                b.info |= {"quality": score, "state": b.hidden, "bin": min(127, int(128 * score))}
        for key in dict.fromkeys(b.problem.key for b in due if s.t >= self.warmup and not s.label):
            group = [b for b in due if b.problem.key == key]
            q = posterior(self.counts, [b.info["bin"] for b in group])
            for b, p in zip(group, survival(q, self.kappa, self.rho, self.lam), strict=True):
                if s.rng("prune", b.uid).random() >= p:
                    tree.stop(b, "pruned")

    def score(self, states: Sequence[Any]) -> Tensor:
        """The head's logits for hidden states."""
        return self.head(torch.from_numpy(np.array(states)))[:, 0]

    def observe(self, s: Step) -> None:
        """Learn from what was finished: one pass of the head, then the counts."""
        spread = [float(np.var([t.outcome for t in g.valid])) for g in s.groups if g.valid]
        s.log("balance", float(np.mean(spread or [0.0])))
        rows = [t for g in s.groups for t in g.valid if "quality" in t.info]
        for part in np.array_split(s.rng("head").permutation(len(rows)), max(1, len(rows) // 32)) if rows else ():
            right = torch.tensor([rows[i].outcome for i in part])
            self.optimizer.zero_grad()
            binary_cross_entropy_with_logits(self.score([rows[i].info["state"] for i in part]), right).backward()
            self.optimizer.step()
        for t in rows:
            self.counts[int(t.outcome), t.info["bin"]] += 1

    def state_dict(self) -> dict[str, Any]:
        """Head, optimizer and bins."""
        head, optimizer = self.head.state_dict(), self.optimizer.state_dict()
        return {"head": head, "optimizer": optimizer, "counts": self.counts.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        self.head.load_state_dict(state["head"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.counts = state["counts"].copy()


def vote_gain(role: Role, t: int) -> float:
    """Probe: share of gate problems with a right answer elected by 16 weighted votes, less that by plain majority."""
    from evolvent.bench.probes import probe_groups

    gain = []
    for group in probe_groups(role, t, 16, "vote"):
        scores = [t.info.get("quality", 0.5) for t in group.valid]
        answers = [t.info["answer"] for t in group.valid]
        right = {t.info["answer"] for t in group.valid if t.outcome >= 1}
        plain = Counter(a for a in answers if a is not None).most_common(1)
        weighted = elected(answers, scores) if len(set(scores)) > 1 else None
        gain.append((weighted in right) - (bool(plain) and plain[0][0] in right) if weighted else 0)
    return float(np.mean(gain))


GAIN = "probe.evolvent.recipes.rollout.arrol:vote_gain"

arrol = recipe(
    "arrol",
    grpo,
    put("propose.n", 16),
    put("rollout.control", Prune),
    title="Prune as You Generate: Online Rollout Pruning for Faster and Better RLVR",
    paper="arXiv 2603.24840",
    mechanism=claim(
        "Groups are better balanced than after random pruning; weighted votes are right more often than plain ones.",
        up("late.balance", 0.003, "random"),
        up(GAIN, 0.01, "grpo"),
        task="countdown",
        budget="60 steps",
        common={"propose.n": 16},
        arms={"random": {"recipe": "arrol", "rollout.control.lam": 0.0}},
    ),
    outcome=claim(
        "An accuracy of GRPO's takes at most 70 % of the tokens.",
        down("reach.sampled@0.35", 0.36, "grpo", scale="log"),
        task="countdown",
        budget="800000 sampled tokens",
        common={"propose.n": 16},
        evals=20,
    ),
)
