"""reasoning-gym's data sets through one adapter; `compact` lists the 12 that the seed models read."""

from evolvent.tasks.reasoning_gym.compact import COMPACT
from evolvent.tasks.reasoning_gym.source import NAMES, REFUSED
from evolvent.tasks.reasoning_gym.task import ReasoningGym

__all__ = ["COMPACT", "NAMES", "REFUSED", "ReasoningGym"]
