"""EVOL-RL: the majority selects, novelty keeps the variation up.

arXiv 2509.15194.

    novelty_i = 1 - (mean similarity to the same side + highest similarity to anyone) / 2, scaled to [0, 1] on each side
    r_i = 0.5 + 0.5 novelty_i for the majority, -1 + 0.5 novelty_i for the others, -1 without an answer

A majority reward alone makes a model agree with itself until it has one way left to answer anything. Here the answer
is still elected, but among those who gave it the unusual way is worth more, and among the others as well. Clip-higher
(0.28) and an entropy bonus (0.003) let rare tokens live; KL 0.001, temperature 1, 64 votes of which the first 32 are
trained on, 8 problems a step with an update for each, so that ratios leave 1 and the clip acts.

Similarity is the cosine of embeddings of what the policy wrote, cut at 0. The paper takes Qwen3-Embedding-4B; here it
is hashed n-grams, or MiniLM with `judge.novelty.embed=evolvent.judge.embed:MiniLM`. (The released code gives everyone
-1 where only one of the group has an answer; here that one is the majority.)
"""

from evolvent.core.claim import claim, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.judge.novelty import Novelty
from evolvent.recipes.test_time.ttrl import ttrl

SMALL = {
    "propose.n": 32,
    "credit.groups.count": 16,
    "propose.problems": 16,
    "judge.ballot": "evolvent.tasks.countdown:reached",
    "learn.lr": 1e-4,
}
TASK, HARDER = "countdown:3x20", "countdown:3x50"

evol_rl = recipe(
    "evol-rl",
    ttrl,
    put("judge.agree", 0.5),
    put("judge.differ", -1.0),
    wrap("judge", Novelty, scale=0.5),
    put("learn.clip_high", 0.28),
    put("learn.entropy", 0.003),
    title="Evolving Language Models without Labels: Majority Drives Selection, Novelty Promotes Variation",
    paper="arXiv 2509.15194",
    mechanism=claim(
        "In late training the policy's entropy is higher than under a majority reward alone.",
        up("late.entropy", 0.008, "ttrl"),
        task=TASK,
        test=HARDER,
        budget="80 steps",
        common=SMALL,
        evals=4,
    ),
    outcome=claim(
        "On harder problems, pass@1 and pass@16 are higher than under a majority reward alone.",
        up("test.sampled", 0.02, "ttrl"),
        up("test.pass@16", 0.02, "ttrl"),
        task=TASK,
        test=HARDER,
        budget="80 steps",
        common=SMALL,
        evals=4,
    ),
)
