"""A task of one's own in one file: write a word backwards.

evolvent audit examples/tasks/reverse.py
evolvent run grpo --task examples/tasks/reverse.py --model tiny
"""

from __future__ import annotations

import random

MAX_TOKENS = 8  # as long as an answer may get


def problems():
    """Rows: a prompt, and whatever the reward wants to know. `category` is optional, easiest first."""
    rng = random.Random(0)
    words = {"".join(rng.choices("abcdefghijklmnop", k=length)) for length in (3, 4, 5) for _ in range(300)}
    rows = [{"prompt": f"rev {w}=", "answer": w[::-1], "category": f"{len(w)} letters"} for w in words]
    return sorted(rows, key=lambda row: (row["category"], row["prompt"]))


def reward(completion, answer):
    """The outcome, from 0 to 1, beside named part credit. Called with the columns that it names."""
    text = completion.strip()
    right = sum(a == b for a, b in zip(text, answer, strict=False))
    return {"outcome": text == answer, "letters": right / len(answer)}
