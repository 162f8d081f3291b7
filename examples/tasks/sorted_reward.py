"""A reward function for rows that lie in a file of their own, called once for a whole batch.

evolvent audit examples/tasks/sorted.jsonl                                    the column `answer`, letter for letter
evolvent audit examples/tasks/sorted.jsonl:examples/tasks/sorted_reward.py    this function
"""

from __future__ import annotations


def reward(completions, letters):
    """Plural names ask for lists: one reward for each completion, in their order."""
    return [float(text.strip() == "".join(sorted(word))) for text, word in zip(completions, letters, strict=True)]
