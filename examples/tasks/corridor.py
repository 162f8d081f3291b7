"""A plain Gymnasium environment with text in and out: walk to the door at the end of a corridor.

    evolvent audit gym:examples/tasks/corridor.py:Corridor

The policy reads `313/317` (it stands on cell 313, the door is on cell 317) and writes `+` or `-`.
"""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.spaces import Text


class Corridor(gymnasium.Env[str, str]):
    """One cell a step; the episode ends at the door, or after twelve steps."""

    action_space = Text(1, charset="+-")
    observation_space = Text(6, charset="0123456789/ ")
    max_turns = 12
    max_tokens = 24
    turn_end = ";"  # a character model ends its turn with it; others end their turns themselves

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Two cells from the seed, 1 to 11 steps apart."""
        super().reset(seed=seed)
        self.here = int(self.np_random.integers(100, 900))
        self.door = self.here + int(self.np_random.choice([-1, 1])) * int(self.np_random.integers(1, 12))
        self.steps = 0
        return self._look(), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Move; 1 at the door, 0 before."""
        if action not in ("+", "-"):
            raise ValueError("not a direction")
        self.here += 1 if action == "+" else -1
        self.steps += 1
        found = self.here == self.door
        return self._look(), float(found), found, not found and self.steps >= self.max_turns, {}

    def _look(self) -> str:
        return f"{self.here}/{self.door} "

    def gold(self) -> list[str]:
        """The way from here."""
        return ["+;" if self.door > self.here else "-;"] * abs(self.door - self.here)


def text_to_action(text: str) -> str:
    """`+` or `-`; anything else is no action."""
    if text not in ("+", "-"):
        raise ValueError(text)
    return text
