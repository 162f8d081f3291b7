"""What the recipes of searches are made of, at the paths that their papers name, with the papers' numbers.

A function or a part stands here by its name. Numbers are those of the papers and of their published code; where these
leave them open, and they are ours, a remark says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from evolvent.core.recipe import compile_plan, show_path
from evolvent.recipes import all_recipes
from evolvent.recipes.catalogue import settings_of

DIFFS = {"diff": 1.0, "rewrite": 0.0, "cross": 0.0}
REWRITES = {"diff": 0.0, "rewrite": 1.0, "cross": 0.0}
OWN_FAILURES = {f"diagnose.{name}": 0.25 for name in ("empty", "stochastic", "exhausted")}


def below(path: str, rows: Mapping[str, Any]) -> dict[str, Any]:
    """Rows of a part."""
    return {f"{path}.{name}": value for name, value in rows.items()}


UCB = {"choice": "AsymmetricUCB", "choice.epsilon": 0.2, "choice.decay": 0.95, "choice.c": 1.0}
SELF = {"diagnose": "weaknesses", "editor": "itself", **OWN_FAILURES}
BANDS = ("complexity", "diversity")

WIRING: dict[str, dict[str, Any]] = {
    "alphaevolve": {  # the paper leaves numbers open; those of islands, grid and parents are OpenEvolve's
        "propose": "Parents",
        "propose.children": 1,
        "propose.parent": "several",
        "propose.parent.metrics": ("value", "simplicity"),
        **below("propose.parent.rule", {"explore": 0.2, "exploit": 0.7}),
        "propose.context": "best_and_random",
        "propose.context.best": 3,
        "propose.context.others": 2,
        "propose.instructions.every": 10,  # ours, as the next one
        "propose.instructions.size": 10,
        "rollout.write.kinds": {"diff": 0.8, "rewrite": 0.2, "cross": 0.0},  # ours
        "rollout.write.openings": 4,  # ours
        "judge.promote": "above",
        "judge.promote.thresholds": (0.5, 0.75, 0.9),
        "judge.opinion.metric": "simplicity",
        "keep.admit": "several",
        "keep.admit.metrics": ("value", "simplicity"),
        **below("keep.admit", {"rule": "map_elites", "rule.dimensions": BANDS, "rule.bins": 10}),
        **below("keep.islands", {"count": 5, "every": 50, "migration": "ring", "migration.share": 0.1}),
    },
    "shinka-evolve": {
        "propose.children": 1,
        "propose.parent": "weighted",
        "propose.parent.sharpness": 10.0,
        "propose.context": "inspirations",
        "propose.context.archive": 4,
        "propose.context.top": 2,
        "propose.scratchpad.every": 10,
        "propose.scratchpad.most": 5,
        "rollout.write.kinds": {"diff": 0.6, "rewrite": 0.3, "cross": 0.1},
        "rollout.write.attempts": 3,
        "rollout.write.novel": "dissimilar",
        "rollout.write.novel.threshold": 0.99,
        "rollout.write.judge": "NoveltyJudge",
        **below("rollout.write.ensemble", UCB),
        "rollout.mutate.novel": "dissimilar",
        "rollout.mutate.novel.threshold": 0.99,
        "rollout.mutate.tries": 3,
        **below("rollout.mutate", UCB),
        "keep.admit": "keep_all",
        # every 10 candidates, so every 5 of each island; 40 members of both
        **below("keep.islands", {"count": 2, "every": 5, "migration": "scatter", "most": 40}),
    },
    "thetaevolve": {
        "propose": "Families",
        "propose.children": 32,
        "propose.n": 16,
        "propose.parent": "mixed",
        **below("propose.parent", {"explore": 0.2, "exploit": 0.6}),
        "propose.context": "alone",
        "rollout": "VaryOrEdit",
        "rollout.write.kinds": DIFFS,
        "rollout.write.attempts": 1,
        "rollout.write.inner.temperature": 1.0,
        "rollout.partial.over": 1.0,
        "judge.promote": "everybody",
        **below("judge.ladder", {"level": 2, "unusable": -0.4, "lazy": -0.3, "failed": -0.2, "invalid": -0.1}),
        "judge.ladder.shape": "raw",
        **below("credit", {"baseline": "mean", "scale": "std", "groups": "sampled"}),
        **below("keep.admit", {"dimensions": BANDS, "bins": 10}),
        "keep.admit": "map_elites",
        **below("keep.islands", {"count": 10, "every": 50, "migration": "ring"}),
        "learn": "Reinforce",
        **below("learn", {"lr": 1e-6, "clip_low": 0.2, "clip_high": 0.28, "kl": 0.0, "correction": "truncated"}),
        **below("learn", {"ratio": "token_ratio", "surrogate": "pessimistic", "aggregate": "sequence_mean"}),
    },
    "loongflow": {
        "propose.children": 1,
        "propose.parent": "adaptive_boltzmann",
        **below("propose.parent", {"elites": 3, "others": 2, "explore": 0.2, "adapts": True}),
        **below("propose.parent", {"population": 100, "archive": 50}),
        "propose.context": "best_and_random",
        "propose.plans.ancestors": 3,
        "propose.plans.lessons": True,
        "rollout.tested.rounds": 3,
        "keep.admit": "map_elites",
        "keep.admit.dimensions": ("complexity", "diversity", "value"),
        "keep.admit.bins": 4,  # the third root of the archive of 50, rounded up
        **below("keep.islands", {"count": 3, "every": 10, "migration": "ring", "migration.share": 0.2}),
    },
    "guided-evolution": {
        "propose": "Generations",
        **below("propose", {"start": 32, "children": 8, "crossover": 0.35, "metrics": ("value", "-size")}),
        "rollout.write": "GuidedWrite",
        **below("rollout.write", {"mutation": 0.8, "thought": 0.25, "elites": 10, "separate": True}),
        **below("rollout.write", {"temperatures": (0.05, 0.4), "top_p": 0.1}),
        "rollout.mutate": "GuidedRules",
        **below("rollout.mutate", {"mutation": 0.8, "thought": 0.25, "elites": 10}),
        **below("keep.admit", {"size": 44, "metrics": ("value", "-size")}),
        "keep.admit": "spea2",
    },
    "dgm": {
        "propose.children": 2,
        "propose.parent": "novel_sigmoid",
        "propose.parent.sharpness": 10.0,
        "propose.parent.middle": 0.5,
        "rollout.write": "Diagnose",
        "rollout.mutate": "SelfModify",
        **below("rollout.write", SELF),
        **below("rollout.mutate", SELF),
        "judge.promote": "second_best",
        "judge.promote.least": 0.4,
        "keep.admit": "keep_all",
    },
    "hgm": {
        "propose": "ExpandOrEvaluate",
        **below("propose", {"alpha": 0.6, "budget": 800, "cool_down": 0.0}),
        "propose.parent": "thompson_clade",
        "propose.parent.productive": True,
        "propose.parent.cool_down": 0.0,
        "rollout.write": "Diagnose",
        "rollout.mutate": "SelfModify",
        **below("rollout.write", SELF),
        **below("rollout.mutate", SELF),
        "judge.at_once": 0,
        "keep.admit": "keep_all",
        "keep.final": "surest",
        "keep.final.epsilon": 0.05,  # ours: the paper's is not known
    },
    "vad-cfr": {
        "propose.parent": "one_objective",
        "propose.parent.alpha": 1.0,  # ours: the paper's rule is not known
        "keep.admit": "keep_all",
        "keep.final": "highest",
    },
    "auto-research-specialists": {
        "rollout": "Specialists",
        **below("rollout", {"team": "specialists", "agents": 0, "lineage": True, "followed": True}),
        "rollout.write.kinds": DIFFS,
        "judge.gates.least": {},
        "judge.gates.most": {},
        "keep.admit": "improved",
    },
    "execution-grounded-research": {
        "propose": "Epochs",
        "propose.children": 8,  # ours: 80 or 200 in the paper
        **below("propose", {"exploit": 0.5, "rise": 0.1, "every": 2, "most": 0.8, "sampled": 10, "shown": 100}),
        "rollout.write.kinds": DIFFS,
        "rollout.write.attempts": 10,
        "rollout.mutate": "IdeaRules",
        "rollout.mutate.shown": 100,
        "rollout.mutate.tries": 10,
        "judge.gates.least": {},
        "judge.gates.most": {},
        "keep.admit": "keep_all",
    },
    "execution-grounded-rl": {
        "propose": "Families",
        "propose.children": 1,
        "propose.n": 64,
        "propose.parent": "seed",
        "propose.context": "alone",
        "rollout": "VaryOrEdit",
        "rollout.write.kinds": DIFFS,
        "judge.gates.least": {},
        "judge.gates.most": {},
        **below("judge.ladder", {"level": 0, "unusable": 0.0, "lazy": 0.0, "failed": 0.0, "invalid": 0.0}),
        "judge.ladder.shape": "raw",
        **below("credit", {"baseline": "mean", "scale": "std", "groups": "sampled"}),
        "learn": "Reinforce",
        **below("learn", {"lr": 1e-5, "clip_low": 0.2, "clip_high": 0.2, "kl": 0.0}),
        **below("learn", {"ratio": "token_ratio", "surrogate": "pessimistic", "aggregate": "sequence_mean"}),
    },
    "self-evolving-recsys": {  # all numbers are ours
        "propose": "TwoLoops",
        **below("propose", {"children": 8, "slots": 2, "delay": 2, "guard": 0.02, "aligned": 0.2, "drop": "switch"}),
        "rollout.on_proxy.personas": ("optimiser", "architecture", "reward"),
        "rollout.on_proxy.recent": 20,
        "rollout.tested.rounds": 2,
        "keep.admit": "keep_all",
    },
    "data-evolve": {
        "propose": "Strategies",
        "propose.generations": 30,
        "propose.learn": True,
        "propose.samples": True,
        "propose.observed": 8,  # ours, as the next two
        "propose.others": 2,
        "propose.parent.size": 3,
        "propose.parent": "among_best",
        "rollout.write": "DesignByModel",
        "rollout.mutate": "DesignByRules",
        "rollout.mutate.fixed": False,
    },
    "creativegame": {
        "propose": "Calls",
        "propose.iterations": 3,
        "propose.plan": True,
        **below("propose.memory", {"lineage": True, "archive": True, "current": True}),
        "rollout.write": "ByModel",
        "rollout.mutate": "ByRules",
        "judge": "Proxy",
        "judge.against": "lineage",
        **below("judge.weights", {"structural": 0.25, "realised": 0.2, "novel": 0.2, "creative": 0.15}),
        **below("judge.weights", {"playable": 0.1, "cosmetic": 0.15, "regression": 0.1}),
        **below("judge.weights", {"sane": 0.6, "insane": 0.25, "failed": 0.5}),
        "keep": "Versions",
        "keep.final": "latest",
    },
    "robophd": {
        "propose": "Iterations",
        **below("propose", {"agents": 3, "databases": 5, "questions": 30, "trials": 1}),
        **below("propose", {"begin": 12, "evolve": 0.7, "challenge": 0.15, "above": 1500.0}),
        **below("propose", {"rating": "elo", "rating.start": 1500.0, "rating.k": 32.0}),
        "rollout.write": "WriteAgents",
        "rollout.write.kinds": REWRITES,
        "rollout.mutate": "Evolve",
        **below("keep", {"final": "elo_leader", "final.start": 1500.0, "final.k": 32.0, "admit": "keep_all"}),
    },
    "evomas": {
        "propose": "Tasks",
        **below("propose", {"seeds": 3, "generations": 5, "children": 8, "crossover": 0.3}),  # ours
        "propose.memory": "Experience",
        "rollout.write": "WriteTeams",
        "rollout.write.traced": True,
        "rollout.mutate": "EditTeams",
        "rollout.mutate.traced": True,
        "judge": "EvaluateTeams",
        "keep.admit": "complete",
    },
    "auto-evolve": {
        "propose": "OncePerTask",
        "propose.source": "generated",
        "propose.refinements": 3,  # ours: the paper's number is not known
        "rollout.write": "Asked",
        "rollout.mutate": "ByRules",
        "judge": "Solved",
        "keep.final": "latest",
    },
    "agent-symbolic-learning": {
        "propose": "Train",
        "propose.optimizers": ("pipeline", "node", "prompt"),
        **below("propose", {"order": "in_turn", "rollback": True, "patience": 3}),
        **below("propose", {"threshold": 0.0, "flat": False}),  # early stopping is off
        "rollout.write": "WriteGradients",
        **below("rollout.write", {"nodes": "all", "truth": True, "scored": True}),
        "rollout.mutate": "Optimize",
        "rollout.mutate.nodes": "all",
        "judge": "EvaluateTeams",
        "keep.final": "accepted",
    },
    "se-agent": {
        "propose": "Iterations",
        "propose.plan": ("base", "revision", "recombination", "refinement"),
        **below("propose", {"completion": 0.8, "quality": 0.1, "efficiency": 0.1}),  # ours
        "propose.remember": "Remember",
        "rollout.write": "Episodes",
        "rollout.mutate": "Scripted",
        "judge": "Shown",
        "keep": "Book",
        "keep.final": "latest",
    },
    "rtv-pdr": {
        "propose": "Waves",
        **below("propose", {"n": 16, "keep": 4, "waves": 2, "distil": True}),
        "propose.tournament": "Tournament",
        "propose.tournament.group": 2,
        "propose.tournament.votes": 8,
        "propose.remember": "Remember",
        "rollout.write": "Episodes",
        "rollout.mutate": "Scripted",
        "judge": "Shown",
        "keep": "Book",
        "keep.final": "latest",
    },
    "meta-ttl": {
        "propose": "Reflective",
        "propose.parent": "instance_pareto",
        "propose.minibatch": 1,
        "propose.merges": 0,
        "rollout.write": "Reflect",
        "rollout.mutate": "Directives",
        "judge": "InnerLoop",
        "keep.admit": "complete",
    },
}

AROUND: dict[str, dict[str, list[str]]] = {  # what is put around a slot, the innermost first
    "alphaevolve": {"propose": ["Instructions"], "judge": ["Opinion"], "keep": ["Islands"]},
    "shinka-evolve": {"propose": ["Scratchpad"], "keep": ["Islands"]},
    "thetaevolve": {"rollout": ["Partial"], "judge": ["Ladder"], "keep": ["Islands"]},
    "loongflow": {"propose": ["Plans"], "rollout": ["Tested"], "keep": ["Islands"]},
    "auto-research-specialists": {"judge": ["Gates"]},
    "execution-grounded-research": {"judge": ["Gates"]},
    "execution-grounded-rl": {"judge": ["Gates", "Ladder"]},
    "self-evolving-recsys": {"rollout": ["OnProxy", "Tested"]},
    "data-evolve": {"judge": ["OneCategory"]},
    "robophd": {"judge": ["Judged"]},
    "meta-ttl": {"rollout": ["Merging"], "judge": ["Accept"]},
}


def named(value: Any) -> Any:
    """A function or a part by its name, anything else as it is."""
    return getattr(value, "__name__", value)


@pytest.mark.parametrize("recipe", WIRING)
def test_a_search_is_made_of_what_its_paper_names(recipe: str) -> None:
    found = {show_path(s.path): named(s.paper) for s in settings_of(recipe, {}, {}, "paper")}
    assert {path: found.get(path, "nothing") for path in WIRING[recipe]} == WIRING[recipe]


@pytest.mark.parametrize("recipe", WIRING)
def test_a_search_has_around_it_what_its_paper_names(recipe: str) -> None:
    wraps = compile_plan(recipe, all_recipes()).wraps
    found = {show_path(path): [named(site.wrapper) for site in sites] for path, sites in wraps.items()}
    assert found == AROUND.get(recipe, {})


def test_every_system_that_searches_is_here() -> None:
    baselines = {"openevolve", "gepa", "memetic"}  # rules of others, which are not among the systems
    searches = {name for name, one in all_recipes().items() if one.family == "search" and one.paper}
    assert set(WIRING) == searches - baselines
