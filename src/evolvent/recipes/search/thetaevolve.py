"""ThetaEvolve: a search whose policy learns from it (arXiv 2511.23473).

    parents   32 of one island of a MAP-Elites grid, 16 children of each in one batch; prompt: parent, value, task
    reward    no edit -0.4;  lazy -0.3, not evaluated;  failed -0.2;  invalid -0.1
              else the value, or judge.ladder.shape=power: 5 ((clip(v, lo, hi) - lo) / (hi - lo))^3
    lazy      level 1: the parent again;  2: anybody of the database;  3: of this batch, too
    partial   rollout.partial.over=2: twice as many families under way as a step takes; what is not finished goes on in
              the next one. The published scripts have partial roll-outs on and 1, which waits for everybody
    learning  GRPO over the children of a parent, clip 0.2 / 0.28, learning rate 1e-6, no KL; truncated importance
              sampling between the sampler's log-probs and the trainer's

The archive keeps what the same batch is learned from: search and training share one loop. What writes is the run's
model: behind an endpoint it writes diffs, and nothing is learned (the paper's inference-only ThetaEvolve); in this
process it learns, in diffs, or if it is one of the package's models of characters in the language of
`search.variation.language`, after a warm-up on random edits. With `--model none` operators take its place.

Differences: all parents of a step are of one island, and every program has a place in its grid or none, where the paper
has a database of 10,000 with an archive of 1,000. The sampler in this process has the trainer's log-probs but for
rounding, so that the importance weights are 1 there; they count with `--engine vllm`.
"""

from __future__ import annotations

from typing import Any

from evolvent.core.claim import claim, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.learn.credit import GroupCredit, mean, std
from evolvent.learn.objective import pessimistic, sequence_mean, token_ratio, truncated
from evolvent.recipes.search.openevolve import DIFFS
from evolvent.recipes.search.random_search import random_search
from evolvent.search.admission import map_elites
from evolvent.search.edit import VaryOrEdit
from evolvent.search.islands import Islands
from evolvent.search.ladder import Ladder, power
from evolvent.search.parents import mixed
from evolvent.search.partial import Partial
from evolvent.search.reinforce import Families, Reinforce, sampled

KISSING: dict[str, Any] = {
    "task": "program:kissing:8",
    "budget": "600 evaluations",
    "common": {
        "keep.islands.count": 2,
        "judge.ladder.shape": power,
        "judge.ladder.shape.low": 0.0,
        "judge.ladder.shape.high": 240.0,
    },
}
FROZEN = {"recipe": "thetaevolve", "learn.train": False}
INDEPENDENT = {**FROZEN, "propose.parent": "evolvent.search.parents:seed"}

thetaevolve = recipe(
    "thetaevolve",
    random_search,
    put("propose", Families, children=32, n=16),
    put("propose.parent", mixed, exploit=0.6),
    put("rollout", VaryOrEdit),
    put("rollout.write.kinds", DIFFS),
    put("rollout.write.attempts", 1),
    wrap("rollout", Partial),
    wrap("judge", Ladder),
    put("credit", GroupCredit, baseline=mean, scale=std, groups=sampled),
    put("keep.admit", map_elites),
    wrap("keep", Islands, count=10, every=50),
    put(
        "learn",
        Reinforce,
        ratio=token_ratio,
        surrogate=pessimistic,
        clip_low=0.2,
        clip_high=0.28,
        correction=truncated,
        aggregate=sequence_mean,
        lr=1e-6,
    ),
    title="ThetaEvolve: Test-time Learning on Open Problems",
    paper="arXiv 2511.23473",
    mechanism=claim(
        "What the policy writes is rewarded more than what the same policy writes when nothing is learned.",
        up("late.score", 0.3, "frozen"),
        arms={"frozen": FROZEN},
        **KISSING,
    ),
    outcome=claim(
        "Over the same number of evaluated programs its best arrangement has more vectors than where nothing is "
        "learned, and than where all programs are varied from the first one.",
        up("area.best", 2.0, "frozen", "independent"),
        arms={"frozen": FROZEN, "independent": INDEPENDENT},
        **KISSING,
    ),
)
