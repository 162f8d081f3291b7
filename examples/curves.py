"""Two recipes on one task from Python, and their learning curves in one picture.

    python examples/curves.py "200 steps"

One seed shows how to do it, not which is better: for that there is `evolvent compare`.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt

import evolvent as ev


def main(budget: str = "100 steps", picture: str = "curves.png") -> None:
    """Run both, draw the mean outcome of each step's samples."""
    _, axes = plt.subplots()
    for recipe in ("grpo", "dr-grpo"):
        result = ev.run(recipe=recipe, task="countdown", model="tiny", budget=budget, final=False)
        steps, outcomes = zip(*result.curve("outcome"), strict=True)
        axes.plot(steps, outcomes, label=recipe)
        print(f"{result.name}: {outcomes[0]:.3f} -> {outcomes[-1]:.3f}, {result.ledger.of('sampled'):,.0f} tokens")
    axes.set(xlabel="step", ylabel="right answers, sampled at temperature 1")
    axes.legend()
    plt.savefig(picture)
    print(picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
