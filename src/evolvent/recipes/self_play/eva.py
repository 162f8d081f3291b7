"""eva: a creator evolves the prompts whose answers differ most, a solver learns from their best and worst answers.

arXiv 2411.00062; its numbers are those of the authors' scripts (gemma-2-9b-it, DPO).

    info(x)   max_i r(x, y_i) - min_i r(x, y_i) over 6 answers: the regret, as far as answers show it
    parents   a quarter of the step's problems, each once, p(x) ~ info(x)
    children  4 of each parent: complicated (in depth) or altered (in breadth), by the task's grammar
    problems  80 % from the children, 20 % from the seed set

The creator maximises the solver's regret, the solver minimises it: DPO with beta 0.05, two epochs, or RLOO. An
iteration over a whole set of prompts is cut into steps here. The code shifts info by its minimum, the paper does not.
Online (eva-rloo) children wait in a buffer and come back by their info, after a warm-up without them, in the end
without seeds; the lengths of these phases are ours. Only the reward judges a child there; here the grammar does, too.
"""

from typing import Any

from evolvent.core.claim import claim, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.propose.evolve import Evolve, gap
from evolvent.recipes.policy_gradient.rloo import rloo
from evolvent.recipes.preference.dpo import dpo
from evolvent.tasks.rewrite import rewrite


def promised(name: str) -> dict[str, Any]:
    """The claims of the recipe of this name: against children of any parents, and against the seeds alone."""
    uniform, static = {"propose.evolve.worth": "alike"}, {"propose.evolve.share": 0.0}
    arms: dict[str, Any] = {"ours": {}, "uniform": {"recipe": name, **uniform}, "static": {"recipe": name, **static}}
    place: dict[str, Any] = {
        "task": "countdown:2x20,2x50,3x20,5x12,5x50",  # the last two are beyond the model
        "test": "countdown:2x99,3x50",
        "budget": "100 steps",
        "common": {"propose.problems": 32},
        "arms": arms,
    }
    regret, harder = up("train.evolve/gap", 0.03, "uniform"), up("test.sampled", 0.02, "uniform", "static")
    return {
        "mechanism": claim("More is to be gained at the problems of a step.", regret, **place),
        "outcome": claim("Accuracy on harder problems is higher after as many answers.", harder, **place),
        "title": "Scalable Reinforcement Post-Training Beyond Static Human Prompts: Evolving Alignment via Asymmetric "
        "Self-Play",
        "paper": "arXiv 2411.00062",
    }


eva = recipe(
    "eva",
    dpo,
    put("propose.n", 6),
    wrap("propose", Evolve, rewrite=rewrite, worth=gap, seeds=10_000, parents=0.25, children=4, share=0.8),
    put("learn.beta", 0.05),
    put("learn.lr", 5e-7),
    put("learn.epochs", 2),
    **promised("eva"),
)
online = wrap("propose", Evolve, rewrite=rewrite, worth=gap, again=True, warmup=10, alone=200)
eva_rloo = recipe("eva-rloo", rloo, online, **promised("eva-rloo"))
