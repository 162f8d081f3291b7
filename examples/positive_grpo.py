"""Positive-only GRPO: drop every rollout that is not better than its group.

    A_i > 0, or the row is left out

evolvent show examples/positive_grpo.py:positive-grpo
evolvent run examples/positive_grpo.py:positive-grpo --task countdown --model tiny
"""

import numpy as np

from evolvent.core.recipe import put, recipe
from evolvent.recipes.policy_gradient.grpo import grpo


def better_than_the_group(advantages: np.ndarray) -> np.ndarray:
    """bool [group]: rows with a positive advantage."""
    return advantages > 0


positive_grpo = recipe(
    "positive-grpo", grpo, put("credit.rows", better_than_the_group), title="GRPO on positive advantages alone"
)
