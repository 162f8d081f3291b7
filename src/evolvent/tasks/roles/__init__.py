"""The roles that a model can play beside solving: judge, propose, revise, use a hint, use notes."""

from evolvent.tasks.roles.base import Role, missing, shuffled
from evolvent.tasks.roles.hint import Hint
from evolvent.tasks.roles.judge import Judge
from evolvent.tasks.roles.memory import Memory
from evolvent.tasks.roles.propose import Propose
from evolvent.tasks.roles.revise import Revise

ROLES = {role.family: role for role in (Judge, Propose, Revise, Hint, Memory)}

__all__ = ["ROLES", "Hint", "Judge", "Memory", "Propose", "Revise", "Role", "missing", "shuffled"]
