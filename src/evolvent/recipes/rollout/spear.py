"""SPEAR: learn to use tools first, then trust one's own successes.

arXiv 2509.22601.

    r' = r + min(1, 0.1 calls) mu(t),             mu(t) = (1 + cos(pi t / 200)) / 2, then 0
    loss = fresh loss + gamma(t) replayed loss,   gamma(t) = (1 - cos(pi t / 200)) / 2, then 1

Early on a bonus for tool calls makes the policy meet what tools reply; it fades. Own trajectories with A > 0 and a
tool call are stored (2048 of them, for at most 10 steps) and replayed when the store is full, with A = R - the median
of 10240 group means, where that is above 0: what is no longer better than usual is not imitated. Clip-cov (2 % of the
tokens with a covariance of log-prob and A in [1, 40]) keeps both losses from ending exploration. The base is Dr.BoT.
"""

from evolvent.core.claim import claim, down, up
from evolvent.core.recipe import put, recipe, wrap
from evolvent.judge.tools import ToolBonus
from evolvent.keep.replay import Replay
from evolvent.learn.covariance import ClipCov
from evolvent.recipes.rollout.dr_bot import dr_bot

spear = recipe(
    "spear",
    dr_bot,
    wrap("judge", ToolBonus, each=0.1, cap=1.0, decay=200),
    put("keep", Replay, capacity=2048, max_age=10, history=10240, warmup=200),
    wrap("learn", ClipCov, ratio=0.02, low=1.0, high=40.0),
    title="Learn the Ropes, Then Trust the Wins: Self-imitation with Progressive Exploration for Agentic RL",
    paper="arXiv 2509.22601",
    mechanism=claim(
        "Where the reward is too sparse to teach it, tools are called more often in training than without the bonus.",
        up("spent.environment_steps", 0.3, "dr-bot", scale="log"),
        task="calc:2x4",
        budget="30 steps",
        common={"propose.problems": 32},
    ),
    outcome=claim(
        "A success rate of 60 % takes fewer steps, and entropy ends higher, than with the same tricks alone.",
        down("reach.sampled@0.6", 0.05, "dr-bot", scale="log"),
        up("late.entropy", 0.003, "dr-bot"),
        task="calc:2x3",
        budget="40 steps",
        common={"propose.problems": 32, "learn.lr": 1e-4},
    ),
)
