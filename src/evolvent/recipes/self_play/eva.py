"""eva: a creator evolves the prompts whose answers differ most, a solver learns from their best and worst answers.

arXiv 2411.00062, sections 3 and 4; its numbers are those of the authors' scripts (gemma-2-9b-it, DPO).

    info(x)   max_i r(x, y_i) - min_i r(x, y_i) over 6 answers: the regret, as far as answers show it
    parents   a quarter of the step's problems, each once, p(x) ~ info(x)
    children  4 of each parent: complicated (in depth) or altered (in breadth), by the task's grammar
    problems  80 % from the children, 20 % from the seed set

The creator maximises the solver's regret, the solver minimises it: DPO with beta 0.05, two epochs, or RLOO. An iteration
over 10,000 prompts is cut into steps here. The code shifts info by its minimum, the paper does not. Online (eva-rloo)
children wait in a buffer and come back by their info, after a warm-up without and before an end without seeds; how long
these phases are is not published. Nothing but the reward says whether a child makes sense; here the grammar does.
"""

from evolvent.core.claim import claim, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.propose.evolve import Evolve, gap
from evolvent.recipes.policy_gradient.rloo import rloo
from evolvent.recipes.preference.dpo import dpo

ARMS = {
    "ours": {},
    "uniform": {"recipe": "eva", "propose.evolve.worth": "alike"},
    "static": {"recipe": "eva", "propose.evolve.share": 0.0},
}
PLACE = {"task": "countdown:2x20,2x50,3x20", "test": "countdown:2x99,3x50", "budget": "100 steps", "arms": ARMS}
TITLE = "Scalable Reinforcement Post-Training Beyond Static Human Prompts: Evolving Alignment via Asymmetric Self-Play"

eva = recipe(
    "eva",
    dpo,
    put("propose.n", 6),
    wrap("propose", Evolve, worth=gap, seeds=10_000, parents=0.25, children=4, share=0.8),
    put("learn.beta", 0.05),
    put("learn.lr", 5e-7),
    put("learn.epochs", 2),
    title=TITLE,
    paper="arXiv 2411.00062",
    mechanism=claim(
        "The solver's regret is larger at the problems of a step.",
        up("train.evolve/gap", 0.03, "uniform", "static"),
        **PLACE,
    ),
    outcome=claim(
        "Accuracy on harder problems than the seeds is higher after as many answers.",
        up("test.sampled", 0.02, "uniform", "static"),
        **PLACE,
    ),
)
eva_rloo = recipe(
    "eva-rloo", rloo, wrap("propose", Evolve, again=True, warmup=10, alone=200), title=TITLE, paper="arXiv 2411.00062"
)
