"""CISPO: clip the importance weight, not the token.

arXiv 2506.13585 (MiniMax-M1), section 3.1.

    loss = -1/(sum |y_i|) sum_i sum_t sg(clip(rho, 0, 1 + eps)) A_i log pi(y_it)

PPO's clipping drops the gradient of the rare tokens that matter most once their ratio has left the band; here they
keep it, with a bounded weight. There is no lower bound, no KL term, and DAPO's sampling and length penalty are kept.
The paper tunes eps and does not name it; the weight is cut at 5 here, as ScaleRL found good (arXiv 2510.13786).
"""

from evolvent.core.recipe import put, recipe
from evolvent.learn.objective import detached
from evolvent.recipes.policy_gradient.dapo import dapo

cispo = recipe(
    "cispo",
    dapo,
    put("learn.surrogate", detached),
    put("learn.clip_low", 1.0),
    put("learn.clip_high", 4.0),
    title="MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention",
    paper="arXiv 2506.13585",
)
