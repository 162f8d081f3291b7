"""What a user sees while a run is under way: a live panel in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from evolvent.run.session import Progress

BARS = " ▁▂▃▄▅▆▇█"


def duration(seconds: float) -> str:
    """`1:05` or `2:03:04`."""
    whole = int(max(0, seconds))
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def sparkline(values: list[float], width: int = 40) -> str:
    """A curve in one line of text, averaged to `width` places."""
    if not values:
        return ""
    size = max(1, -(-len(values) // width))
    means = [sum(values[i : i + size]) / len(values[i : i + size]) for i in range(0, len(values), size)]
    low, high = min(means), max(means)
    span = high - low or 1.0
    return "".join(BARS[1 + round((m - low) / span * (len(BARS) - 2))] for m in means)


class Display:
    """Step, score or best value, gate accuracy, tokens per second, and how long it will take."""

    def __init__(self, title: str, budget: str, quiet: bool = False) -> None:
        self.title, self.budget, self.quiet = title, budget, quiet  # the budget in the user's own words
        self.console = Console(stderr=True, highlight=False, markup=False)
        self.live: Live | None = None
        self.scores: list[float] = []
        self.gate: list[float] = []
        self.best: list[float] = []  # of a search, which has no score that a user would ask for
        self.recent: deque[tuple[float, float]] = deque(maxlen=20)  # (time, sampled tokens)
        self.first_share: float | None = None
        self.last_line = 0.0

    def __enter__(self) -> Display:
        if not self.quiet and self.console.is_terminal:
            self.live = Live(console=self.console, refresh_per_second=4, transient=False)
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live:
            self.live.stop()

    def say(self, line: str) -> None:
        """A line worth telling."""
        if not self.quiet:
            (self.live.console if self.live else self.console).print(line, soft_wrap=not self.live)

    def __call__(self, p: Progress) -> None:
        """Take in a step."""
        now = time.perf_counter()
        if "score" in p.metrics:
            self.scores.append(p.metrics["score"])
        if "gate/accuracy" in p.metrics:
            self.gate.append(p.metrics["gate/accuracy"])
        if "best" in p.metrics:
            self.best.append(p.metrics["best"])
        self.recent.append((now, p.spent["sampled"]))
        if self.first_share is None:
            self.first_share = p.share - p.share / max(1, p.t)
        if self.quiet:
            return
        if self.live:
            self.live.update(self.panel(p))
        elif now - self.last_line > 5 or p.share >= 1:
            self.last_line = now
            self.console.print(self.line(p), soft_wrap=True)

    def rate(self) -> str:
        """Sampled tokens per second over the last steps, everything else included; nothing before the second step.

        Nothing, too, where nothing is sampled.
        """
        (t0, n0), (t1, n1) = self.recent[0], self.recent[-1]
        return f"{(n1 - n0) / (t1 - t0):,.0f} tokens/s " if t1 > t0 and n1 else ""

    def eta(self, p: Progress) -> float:
        """Seconds left, at the pace of the steps so far; what was measured before them does not count."""
        done = p.share - (self.first_share or 0.0)
        return p.seconds * (1 - p.share) / done if done > 0 else 0.0

    def line(self, p: Progress) -> str:
        """One plain line."""
        gate = f" gate {self.gate[-1]:z.3f}" if self.gate else ""
        score = f" score {mean(self.scores[-10:]):z.3f}" if self.scores else ""
        if "members" in p.metrics:  # a search
            score = " nothing valid in full yet"
        if self.best:
            score = f" best {self.best[-1]:z.6g} after {counted(p.spent['verifier_calls'], 'evaluation')}"
        errors = f" errors {p.metrics['errors']:.0f}" if p.metrics.get("errors") else ""
        return (
            f"step {p.t} ({p.share:.0%} of {self.budget}){score}{gate}{errors} {self.rate()}"
            f"elapsed {duration(p.seconds)} left {duration(self.eta(p))}"
        )

    def panel(self, p: Progress) -> Any:
        """The live panel."""
        table = Table.grid(padding=(0, 2))
        table.add_row(Text(self.title, "bold"), f"step {p.t}, {p.share:.0%} of {self.budget}")
        if self.best:
            table.add_row("best value", f"{self.best[-1]:z.6g}  {sparkline(self.best)}")
            table.add_row("evaluations", f"{p.spent['verifier_calls']:,.0f}{members(p.metrics)}")
        else:
            table.add_row("score", f"{mean(self.scores[-10:]):z.3f}  {sparkline(self.scores)}" if self.scores else "")
        if self.gate:
            table.add_row("gate accuracy", f"{self.gate[-1]:.3f}  {sparkline(self.gate)}")
        flat = p.metrics.get("flat_groups")
        if flat is not None and not self.best:
            table.add_row("groups without signal", f"{flat:.0%}")
        if p.metrics.get("errors"):
            table.add_row(Text("errors this step", "red"), f"{p.metrics['errors']:.0f} (left out of the update)")
        times = f"elapsed {duration(p.seconds)}   left {duration(self.eta(p))}"
        table.add_row("speed", "   ".join(filter(None, (self.rate().strip(), times))))
        return table


def counted(number: float, noun: str) -> str:
    """`1 evaluation`, `1,200 evaluations`."""
    return f"{number:,.0f} {noun}{'s' * (number != 1)}"


def members(metrics: Mapping[str, float]) -> str:
    """What a step of a search says of its archive."""
    parts = [f"{metrics['members']:,.0f} members"] if "members" in metrics else []
    parts += [f"{metrics['valid']:.0%} of the last step valid"] if "valid" in metrics else []
    return "".join(f"   {part}" for part in parts)


def mean(values: list[float]) -> float:
    """Average."""
    return sum(values) / len(values)


def is_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr.isatty()
