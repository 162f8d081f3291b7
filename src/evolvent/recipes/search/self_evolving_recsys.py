"""Self-evolving recommendation system: a fast inner loop on a proxy, a slow outer loop on what counts.

    inner   8 children a step, think, code, verify; a cheap proxy is measured of each
    filter  the highest by the proxy that beat the launched model there go on, two tests at a time
    outer   test by stages, each result 2 steps late; stopped if worse than the launched model by more than a guard-rail
    launch  launched' = candidate  iff  it went through all stages and value > value(launched)
    gauge   Spearman(proxy, value) over the last tests < 0.2:  the next proxy, or none

arXiv 2602.10226; all numbers are ours, and so is the gauge. Its candidates are changes of a recommender at YouTube and
its tests are on live traffic; here that is the world `program:digits-live`, where a proxy can be raised by learning the
lesson by heart. With a model each candidate is asked for in a persona (optimiser, architecture, reward) that reads a
journal of everything. Proxy-only search: propose.slots=0 with keep.final=evolvent.search.launches:highest_proxy.
"""

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.recipes.search.random_search import random_search
from evolvent.search.launches import OnProxy, TwoLoops
from evolvent.search.tested import Tested

LIVE = {"task": "program:digits-live", "budget": "400 evaluations", "model": "none"}
PROXY_ONLY = {
    "recipe": "self-evolving-recsys",
    "propose.slots": 0,
    "keep.final": "evolvent.search.launches:highest_proxy",
}
BY_CHANCE = {  # from the third test on, which no rank correlation can satisfy
    "recipe": "self-evolving-recsys",
    "propose.aligned": 1.0,
    "propose.enough": 3,
    "propose.window": 3,
    "propose.drop": "stop",
}

self_evolving_recsys = recipe(
    "self-evolving-recsys",
    random_search,
    put("propose", TwoLoops),
    wrap("rollout", OnProxy),
    wrap("rollout", Tested, rounds=2),
    title="Self-Evolving Recommendation System: End-To-End Autonomous Model Optimization With LLM Agents",
    paper="arXiv 2602.10226",
    mechanism=claim(
        "Fewer tests are stopped by the guard-rail where the proxy has let candidates through than where chance has.",
        down("train.guarded", 0.3, "by-chance"),
        arms={"by-chance": BY_CHANCE},
        **LIVE,
    ),
    outcome=claim(
        "At the same number of evaluations the winner does better on what counts than that of a search by the proxy "
        "alone, and than that of random search.",
        up("final.rescored", 0.01, "proxy-only", "random-search"),
        arms={"proxy-only": PROXY_ONLY},
        **LIVE,
    ),
)
