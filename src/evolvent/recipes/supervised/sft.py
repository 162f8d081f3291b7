"""SFT: maximum likelihood on the task's own solutions.

    loss = -sum_t w_t log pi(y_t) / tokens

Nothing is sampled: the rollout writes each problem's gold solution, with the weights of its pieces; tool replies are
masked. The solutions are verified like any other answer, and one that fails is left out. For tasks with solutions.
"""

from evolvent.core.recipe import put, recipe
from evolvent.learn.supervised import Imitate, Supervised
from evolvent.recipes.control.no_change import no_change
from evolvent.rollout.demonstrate import Demonstrations

sft = recipe(
    "sft",
    no_change,
    put("propose.problems", 256),
    put("propose.n", 1),
    put("rollout", Demonstrations),
    put("credit", Imitate),
    put("learn", Supervised, lr=1e-5),
    title="Supervised fine-tuning",
)
