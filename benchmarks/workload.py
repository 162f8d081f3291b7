"""What the speed comparison runs: the same prompts, lengths, rewards and update for both sides.

Only the standard library, so that the peer's environment can import it too. A row's length is a function of the step
and of its place in the step, and a reward one of the text, so that both sides sample and train exactly the same
numbers of tokens, whatever they draw.
"""

from __future__ import annotations

import random
from zlib import crc32

SHAPE = "small"  # of the model: the larger seed model's, with random weights
TASK = "countdown:4x20"  # where the prompts come from
PROMPTS, SAMPLES = 32, 8  # a step
SHORTEST, LONGEST = 8, 40  # tokens of a completion, <eos> included: a spread of 5x
FLAT = 40  # per cent of the prompts whose samples all get the same reward
RATE = 1e-6  # small, so that the model stays what it is
CLIP = 0.2


def lengths(step: int, full: bool = False) -> list[int]:
    """Tokens of every completion of a step, <eos> included, prompt by prompt.

    Log-uniform between the shortest and the longest. `full`: all of them are the longest.
    """
    rng = random.Random(f"lengths {step}")
    spread = LONGEST / SHORTEST
    drawn = [round(SHORTEST * spread ** rng.random()) for _ in range(PROMPTS * SAMPLES)]
    return [LONGEST] * len(drawn) if full else drawn


def reward(prompt: str, completion: str, full: bool = False) -> float:
    """A fair coin tossed by the text; always 0 where the prompt is one without signal. `full`: there are none."""
    flat = not full and crc32(prompt.encode()) % 100 < FLAT
    return 0.0 if flat else float(crc32(completion.encode()) & 1)
