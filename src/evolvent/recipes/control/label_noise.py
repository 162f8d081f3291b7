"""Label noise: a share of the verdicts is flipped before anything learns from them.

No method, a condition: `grpo+label-noise` is GRPO with an unreliable verifier. Metrics and tests keep the true verdict.
"""

from evolvent.core.recipe import recipe, wrap
from evolvent.judge.noise import FlipLabels
from evolvent.recipes.control.no_change import no_change

label_noise = recipe(
    "label-noise",
    no_change,
    wrap("judge", FlipLabels, share=0.15),
    title="Label noise (condition)",
)
