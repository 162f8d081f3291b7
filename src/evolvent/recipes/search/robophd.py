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

from evolvent.core.recipe import put, recipe, wrap
from evolvent.recipes.search.random_search import random_search
from evolvent.search.contests.answering import WriteAgents
from evolvent.search.contests.evolve import Evolve
from evolvent.search.contests.iterations import Iterations, Judged
from evolvent.search.contests.ratings import elo_leader

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
)
