"""Meta-TTL: what is said to an actor between episodes of a game is a policy, and that policy evolves.

    inner loop   K episodes of one game; guidance_k+1 = policy(log_k, guidance_k); fitness sum_k k s_k / sum_k k
    outer loop   GEPA's: a parent by instances, its inner run on a minibatch of 1, a reflection on that run, a child
    accept       fitness on the minibatch is higher than the parent's; then it is run on all games, and a member
    in the end   the policy is frozen, and measured on games of families that nobody has seen

arXiv 2604.00830. Only the strategy section of the policy's prompt changes. Its games are Jericho's, ours are generated
(`program:text-games`). Minibatches and fronts are of the same games, and each is run once; the paper takes two sets,
and the mean of five runs. Without a model actor and adviser are scripted, the strategy is a list of directives, and
edits of it follow a diagnosis of the run. A fixed policy as in Reflexion: judge.start=reflexion with
rollout.mutate.edits=0; an actor without guidance: the latter alone.
"""

from evolvent.core.claim import claim, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.recipes.search.random_search import random_search
from evolvent.search.adaptation.inner import InnerLoop
from evolvent.search.adaptation.strategy import Directives, Reflect
from evolvent.search.admission import complete
from evolvent.search.merge import Merging
from evolvent.search.minibatch import Accept, Reflective

GAMES = {"task": "program:text-games", "budget": "2000 evaluations", "model": "none"}
ARMS = {
    "reflexion": {"recipe": "meta-ttl", "judge.start": "reflexion", "rollout.mutate.edits": 0},
    "static": {"recipe": "meta-ttl", "rollout.mutate.edits": 0},
}

meta_ttl = recipe(
    "meta-ttl",
    random_search,
    put("propose", Reflective, minibatch=1, merges=0),
    put("rollout.write", Reflect),
    put("rollout.mutate", Directives),
    wrap("rollout", Merging),
    put("judge", InnerLoop),
    wrap("judge", Accept),
    put("keep.admit", complete),
    title="Learning to Learn-at-Test-Time: Language Agents with Learnable Adaptation Policies",
    paper="arXiv 2604.00830",
    mechanism=claim(
        "On the games that it learns from, the best policy's gain from the first to the last episode is larger than "
        "that of a fixed policy as in Reflexion, and of no guidance.",
        up("late.gain", 0.05, "reflexion", "static"),
        arms=ARMS,
        **GAMES,
    ),
    outcome=claim(
        "On games of families that were not seen, the frozen policy gains more from the first to the last episode than "
        "a fixed policy as in Reflexion, and than no guidance, with the same actor and as many episodes.",
        up("final.rescored", 0.05, "reflexion", "static"),
        arms=ARMS,
        **GAMES,
    ),
)
