"""The demo from Python, and a picture of it: the picture of the README.

    python examples/picture.py "300 steps" demo.svg

What is drawn: answers in training, the gate's problems on the way, the test split before and after.
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.ticker import PercentFormatter

import evolvent as ev

COLOURS = {"sampled": "#2a6fbb", "greedy": "#d1495b"}


def main(budget: str = "300 steps", picture: str = "demo.svg") -> None:
    """Run GRPO on countdown and draw the run."""
    draw(ev.run(recipe="grpo", task="countdown", model="tiny", budget=budget), picture)
    print(picture)


def draw(run: Any, picture: str) -> None:
    """Draw a result, or a run that was read from a store: both have curves and evaluations."""
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    steps, right = zip(*run.curve("outcome"), strict=True)
    axes.plot(steps, right, color=COLOURS["sampled"], alpha=0.4, linewidth=1, label="training problems, sampled")
    if gate := run.curve("gate/accuracy"):
        axes.plot(*zip(*gate, strict=True), color=COLOURS["greedy"], linewidth=2, label="gate problems, greedy")
    for name, at in (("start", steps[0]), ("evolved", steps[-1] + 1)):
        found = run.evaluations[name]["evaluation"]
        for kind, colour in COLOURS.items():
            one = found[kind]
            error = [[one["mean"] - one["low"]], [one["high"] - one["mean"]]]
            label = f"test problems, {kind}, 97.5 % interval" if name == "start" else None
            axes.errorbar(at, one["mean"], error, fmt="o", color=colour, capsize=4, label=label)
    axes.set(xlabel="step", ylabel="right answers", ylim=(0, None), title="grpo on countdown, model tiny")
    axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
