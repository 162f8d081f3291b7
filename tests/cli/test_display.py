"""What is shown while a run is under way, of learning and of a search."""

from __future__ import annotations

import re

from rich.console import Console

from evolvent.cli.display import Display, duration, sparkline
from evolvent.run.result import Progress


def told(display: Display, t: int, spent: dict[str, float], **metrics: float) -> Progress:
    p = Progress("run", t, t / 10, metrics, {"sampled": 0.0, "verifier_calls": 0.0, **spent}, seconds=2.0 * t)
    display(p)
    return p


def shown(display: Display, p: Progress) -> str:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(display.panel(p))
    return capture.get()


def test_a_search_shows_its_best_value_and_its_archive() -> None:
    display = Display("hill-climbing on program:circle-packing:26", "80 evaluations", quiet=True)
    p = told(display, 1, {"verifier_calls": 1}, best=1.25, score=1.25, members=1, valid=1.0, flat_groups=1.0)
    p = told(display, 2, {"verifier_calls": 9}, best=2.5000001, score=0.3, members=6, valid=0.5, flat_groups=1.0)
    text = shown(display, p)
    assert re.search(r"best value +2\.5  ▁█", text)
    assert re.search(r"evaluations +9   6 members   50% of the last step valid", text)
    assert "score" not in text
    assert "signal" not in text
    assert "tokens" not in text
    line = display.line(p)
    assert "step 2 (20% of 80 evaluations)" in line
    assert "best 2.5 after 9 evaluations" in line
    assert "tokens" not in line


def test_learning_shows_score_gate_and_tokens() -> None:
    display = Display("grpo on arith", "10 steps", quiet=True)
    told(display, 1, {"sampled": 1000.0}, score=0.25, flat_groups=0.5)
    p = told(display, 2, {"sampled": 3000.0}, **{"score": 0.75, "flat_groups": 0.25, "gate/accuracy": 0.4})
    text = shown(display, p)
    assert "0.500  ▁█" in text
    assert "gate accuracy" in text
    assert "25%" in text
    line = display.line(p)
    assert "score 0.500 gate 0.400" in line
    assert "tokens/s" in line


def test_what_is_left_is_counted_from_the_first_step() -> None:
    display = Display("grpo on arith", "10 steps", quiet=True)
    for t in (1, 2, 5):
        p = told(display, t, {})
        assert "left " + duration(2.0 * (10 - t)) in display.line(p)
    again = Display("grpo on arith", "10 steps", quiet=True)  # carried on after step 6, of which nothing is known
    p = Progress("run", 7, 0.7, {}, {"sampled": 0.0, "verifier_calls": 0.0}, seconds=3.0)
    again(p)
    assert "left 0:09" in again.line(p)


def test_small_things() -> None:
    assert duration(65) == "1:05"
    assert duration(7384) == "2:03:04"
    assert sparkline([]) == ""
    assert len(sparkline(list(range(1000)))) <= 40


def test_what_rounds_to_zero_has_no_sign() -> None:
    display = Display("hill-climbing", "10 evaluations", quiet=True)
    p = told(display, 1, {"verifier_calls": 1}, best=-0.0)
    assert "best 0 after" in display.line(p)
    assert "-0" not in shown(display, p)
    display = Display("grpo", "10 steps", quiet=True)
    assert "score 0.000" in display.line(told(display, 1, {}, score=-1e-9))
