"""RAFT: sample, keep the best, imitate it.

arXiv 2304.06767, section 3.

    y* = argmax_k r(y_k),  y_1 .. y_K ~ pi
    loss = -sum_t log pi(y*_t) / tokens

Each stage samples K answers to each problem (8 to 32), keeps the best one, and fine-tunes the present model on what
was kept. K sets the strength: more reward a stage, less diversity. Where even the best answer is wrong, nothing is
kept. `--set credit.choose=correct` keeps all right answers, as rejection-sampling fine-tuning does.
"""

from evolvent.core.recipe import put, recipe
from evolvent.learn.supervised import best
from evolvent.recipes.supervised.sft import sft
from evolvent.rollout.sample import Sample

raft = recipe(
    "raft",
    sft,
    put("propose.problems", 2048),
    put("propose.n", 32),
    put("rollout", Sample),
    put("credit.choose", best),
    put("learn.lr", 2e-5),
    put("learn.epochs", 2),
    title="RAFT: Reward rAnked FineTuning for Generative Foundation Model Alignment",
    paper="arXiv 2304.06767",
)
