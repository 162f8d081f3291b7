"""RoboPhD: agents that write SQL evolve by contests, and Elo ratings say who leads.

    agent      an analysis script, run once for each database; instructions for who writes the SQL; a description
    iteration  3 agents, 2 incumbents and a new one, on 5 databases x 30 questions; set(rows) == set(known ones)
    rating     every pair of an iteration plays, R += 32 (points - 1 / (1 + 10^((R_other - R) / 400))), from 1500
    birth      of the leader's failures, and of pieces of the best; tried on the questions before, revised if no better
    schedule   from iteration 12 on 0.7 births, 0.15 challengers (rated > 1500, rarely seen), 0.15 incumbents only
    final      the highest rating

arXiv 2601.01126; who is an incumbent is from its published code: unconfirmed winners first, then some of the best.
There rounds without a birth have 4 agents, pairs play one after the other, and a language model does all the writing.
Without a model, a scripted writer answers in SQL, and new agents are put together from a library, not all of it of use.
"""

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.recipes.search.random_search import random_search
from evolvent.search.contests.answering import WriteAgents
from evolvent.search.contests.evolve import Evolve
from evolvent.search.contests.iterations import Iterations, Judged
from evolvent.search.contests.ratings import elo_leader

TASK = "program:sql:20"
RATINGS = "evolvent.search.contests.ratings"
GREEDY = {
    "recipe": "robophd",
    "propose.rating": f"{RATINGS}:best_contest",
    "propose.above": 0.0,
    "keep.final": f"{RATINGS}:best_single",
}

robophd = recipe(
    "robophd",
    random_search,
    put("propose", Iterations),
    put("rollout.mutate", Evolve),
    put("rollout.write", WriteAgents),
    put("rollout.write.kinds", {"diff": 0.0, "rewrite": 1.0, "cross": 0.0}),
    wrap("judge", Judged),
    put("keep.final", elo_leader),
    title="RoboPhD: Self-Improving Text-to-SQL Through Autonomous Agent Evolution",
    paper="arXiv 2601.01126",
    mechanism=claim(
        "Who leads by Elo had less luck with the questions: it loses less of its best accuracy in further contests "
        "than who leads by the best accuracy in a single one.",
        down("train.luck", 0.02, "greedy"),
        task=TASK,
        budget="1500 evaluations",
        model="none",
        common={"propose.databases": 3, "propose.questions": 10},
        arms={"greedy": GREEDY},
    ),
    outcome=claim(
        "After 10 iterations the leader by Elo is more accurate on unseen databases than the naive agent, and than the "
        "agent of the same search with the best accuracy in a single iteration.",
        up("final.rescored", 0.1, "naive"),
        up("final.rescored", 0.04, "best-single"),
        task=TASK,
        budget="5400 evaluations",
        model="none",
        arms={
            "naive": {"recipe": "robophd", "keep.final": f"{RATINGS}:naive"},
            "best-single": {"recipe": "robophd", "keep.final": f"{RATINGS}:best_single"},
        },
    ),
)
