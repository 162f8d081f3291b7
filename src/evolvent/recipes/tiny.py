"""The profile `tiny`, for models below 2M parameters: what small scale forces, tuned on the baselines only."""

from __future__ import annotations

from evolvent.judge.tools import ToolBonus
from evolvent.keep.replay import Replay
from evolvent.learn.evolution import LowRankES
from evolvent.learn.policy_gradient import PolicyGradient
from evolvent.learn.preference import Preference
from evolvent.learn.supervised import Supervised
from evolvent.propose.problems import Problems
from evolvent.recipes.profiles import Profile

TINY: Profile = {
    Problems: {"problems": 64, "n": 8},
    PolicyGradient: {"lr": 3e-4, "kl": 0.0, "minibatches": 2, "warmup": 20},
    Supervised: {"lr": 3e-4, "epochs": 1, "warmup": 0},
    Preference: {"lr": 3e-4, "warmup": 0},
    LowRankES: {"population": 512, "sigma": 1e-2},  # one answer a member; less noise leaves greedy answers as they are
    ToolBonus: {"decay": 60},
    Replay: {"capacity": 256, "history": 2560, "warmup": 60},  # one step's trajectories, as in the paper; 80 steps
}
