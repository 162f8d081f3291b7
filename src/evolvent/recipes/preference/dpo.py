"""DPO: learn from pairs, without a reward model.

arXiv 2305.18290, eq. 7 and appendix B.

    loss = -log sigmoid( beta log(pi(y_w) / ref(y_w)) - beta log(pi(y_l) / ref(y_l)) ),  beta = 0.1

The pairs are on-policy here: the best and the worst answer of each group, by the verifier. The paper has fixed pairs,
batches of 64, and RMSprop at 1e-6 after 150 warm-up updates; the optimizer is AdamW here.
"""

from evolvent.core.recipe import put, recipe
from evolvent.learn.preference import Pairs, Preference, best_and_worst, sigmoid
from evolvent.recipes.control.no_change import no_change

dpo = recipe(
    "dpo",
    no_change,
    put("propose.problems", 64),
    put("credit", Pairs, choose=best_and_worst),
    put("learn", Preference, form=sigmoid, beta=0.1, lr=1e-6, warmup=150),
    title="Direct Preference Optimization: Your Language Model is Secretly a Reward Model",
    paper="arXiv 2305.18290",
)
