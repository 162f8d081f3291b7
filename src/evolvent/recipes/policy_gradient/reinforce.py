"""REINFORCE with the mean score of the batch as baseline.

Williams, 1992.

    gradient = E[ (r(y) - mean r) grad log pi(y) ]

Whole sequences, no group statistics, no clipping: one update on fresh samples, whose ratio is 1.
"""

from evolvent.core.recipe import put, recipe
from evolvent.learn.credit import GroupCredit, batch_mean, no_scale
from evolvent.learn.objective import sequence_sum, unclipped
from evolvent.learn.policy_gradient import PolicyGradient
from evolvent.recipes.control.no_change import no_change

reinforce = recipe(
    "reinforce",
    no_change,
    put("credit", GroupCredit, baseline=batch_mean, scale=no_scale),
    put("learn", PolicyGradient, surrogate=unclipped, aggregate=sequence_sum),
    title="Simple statistical gradient-following algorithms for connectionist reinforcement learning",
    paper="doi:10.1007/BF00992696",
)
