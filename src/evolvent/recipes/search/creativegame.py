"""CreativeGame: games evolve by their mechanics, which are planned before a version is written and compared afterwards.

    plan      mechanics from the archive to add, change and keep, by what this lineage has learned
    write     skeleton, feature, visual; in later iterations a refinement of the best so far; up to 3 in a call
    validate  a checker and a bot; what does not run is repaired, up to 2 times
    reward    0.25 change + 0.2 realised + 0.2 novel + 0.15 creative + 0.1 playable - 0.15 cosmetic - 0.1 regression,
              times 0.25 if sanity < 0.6, times 0.5 if the runtime test fails
    reflect   lessons of the lineage (value' = 0.7 value + 0.3 reward), then go on or stop; success goes to the archive

arXiv 2604.19926 evolves pages of HTML5 and plays them in a browser; here these are grid games in a small language, and
a bot plays. What signals measure is ours where the report leaves it open (`search/games/reward.py`). Of a call's
iterations the one with the highest reward is saved, where the report saves the last (`propose.saved=last`); novelty is
relative to the lineage (`judge.against=archive` adds the archive). Where no model writes, rules carry out plans, a
surface score of the text stands for the judge's, and mechanics come from a library of which some are useless or broken.
"""

from evolvent.core.claim import claim, up
from evolvent.core.recipe import put, recipe
from evolvent.recipes.search.random_search import random_search
from evolvent.search.final import latest
from evolvent.search.games.calls import Calls
from evolvent.search.games.judge import Proxy
from evolvent.search.games.stages import ByRules
from evolvent.search.games.versions import Versions
from evolvent.search.games.write import ByModel

GAMES = {"task": "program:grid-games:32", "budget": "128 steps", "model": "none"}  # 4 generations of 32 lineages
COMMON = {"propose.enough": 2.0}  # nobody stops early: rewards of the arms are not on one scale
OTHERS = ("structural", "realised", "novel", "playable", "cosmetic", "regression", "sane")
SCORE_ONLY = {
    "recipe": "creativegame",
    **{f"judge.weights.{name}": 0.0 for name in OTHERS},
    "judge.weights.creative": 1.0,
    "judge.weights.failed": 1.0,
}
ARMS = {"score-only": SCORE_ONLY, "without-memory": {"recipe": "creativegame", "propose.memory.lineage": False}}

creativegame = recipe(
    "creativegame",
    random_search,
    put("propose", Calls),
    put("rollout.write", ByModel),
    put("rollout.mutate", ByRules),
    put("judge", Proxy),
    put("keep", Versions),
    put("keep.final", latest),
    title="CreativeGame: Toward Mechanic-Aware Creative Game Generation",
    paper="arXiv 2604.19926",
    mechanism=claim(
        "Rewarded by mechanics, the versions that are saved have more of what was planned than by a score of the text.",
        up("train.realised", 0.08, "score-only"),
        common=COMMON,
        arms={"score-only": SCORE_ONLY},
        **GAMES,
    ),
    outcome=claim(
        "Over 4 generations lineages have more new working mechanics than with selection by a score of the text alone, "
        "and than without their lessons, and the share of versions that run does not fall.",
        up("final.rescored", 1.0, "score-only", "without-memory"),
        up("train.runs", 0.05, "score-only", kind="non-inferiority"),
        common=COMMON,
        arms=ARMS,
        **GAMES,
    ),
)
