"""Dr.BoT: GRPO with the tricks that agents are trained with.

arXiv 2509.22601 (the baseline of SPEAR).

    no KL term; clip 0.2 / 0.28; A_i = r_i - mean r; loss summed over tokens, divided by the length limit (Dr. GRPO)
    no loss on answers that are cut off, that repeat themselves, or that have neither a tool call nor an answer
    only the 75 % of the groups whose rewards spread most

Masked answers keep their place in their group's mean. The paper takes 128 problems with 16 answers a step in two
minibatches.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field, PositiveInt

from evolvent.core.recipe import put, recipe, wrap
from evolvent.core.records import Batch, Group, Trajectory
from evolvent.core.step import Credit, Step
from evolvent.recipes.policy_gradient.dr_grpo import dr_grpo


def widest(groups: Sequence[Group], *, share: Annotated[float, Field(gt=0, le=1)] = 0.75) -> list[Group]:
    """The share of the groups (rounded down, at least one) whose scores have the highest standard deviation."""
    judged = [g for g in groups if g.valid]
    spread = np.array([np.std([t.score for t in g.valid]) for g in judged])
    keep = np.sort(np.argsort(-spread, kind="stable")[: max(1, int(share * len(judged)))])
    return [judged[i] for i in keep]


def overlong(t: Trajectory) -> bool:
    """Cut off by the limit of tokens or of turns."""
    return t.truncated


def void(t: Trajectory) -> bool:
    """Neither called a tool nor gave an answer."""
    return not t.info.get("calls") and t.info.get("answer", "") is None


def repetitive(t: Trajectory, *, length: PositiveInt = 20, times: PositiveInt = 10) -> bool:
    """Wrote one run of `length` tokens at least `times` times."""
    tokens = t.tokens[t.mask].tolist()
    runs = Counter(tuple(tokens[i : i + length]) for i in range(len(tokens) - length + 1))
    return max(runs.values(), default=0) >= times


@dataclass
class Masked:
    """Around a credit: rows that a filter names get weight 0. Metric `masked`: their share."""

    inner: Credit
    overlong: Callable[[Trajectory], bool] = overlong
    void: Callable[[Trajectory], bool] = void
    repetitive: Callable[[Trajectory], bool] = repetitive

    def __call__(self, s: Step) -> list[Batch]:
        """Credit, then mask."""
        batches = self.inner(s)
        rows = hit = 0
        for batch in batches:
            for i, t in enumerate(batch.rows):
                if self.overlong(t) or self.void(t) or self.repetitive(t):
                    batch.weight[i] = 0.0 * batch.weight[i]
                    hit += 1
            rows += len(batch.rows)
        s.log("masked", hit / max(1, rows))
        return batches


dr_bot = recipe(
    "dr-bot",
    dr_grpo,
    put("propose.problems", 128),
    put("propose.n", 16),
    put("credit.groups", widest, share=0.75),
    wrap("credit", Masked),
    put("learn.clip_high", 0.28),
    put("learn.minibatches", 2),
    title="Dr.BoT: the baseline of SPEAR",
    paper="arXiv 2509.22601",
)
