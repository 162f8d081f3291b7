"""Racing against values computed apart: who is evaluated again, what the mean and the noise are, what it costs."""

from __future__ import annotations

import statistics
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvent.core.errors import UserError
from evolvent.core.ledger import Budget
from evolvent.core.recipe import REGISTRY, recipe, wrap
from evolvent.recipes.search.random_search import random_search
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.archive import archive_of
from evolvent.search.loop import programs_of
from evolvent.search.racing import Racing, joined, noise, repeats
from evolvent.tasks.evaluation import Evaluation, invalid
from evolvent.tasks.worlds.landscape import Landscape


@pytest.fixture(autouse=True)
def racing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe `racing-search`, for one test."""
    made = recipe("racing-search", random_search, wrap("judge", Racing), title="races")
    monkeypatch.setitem(REGISTRY, "racing-search", made)


def spec(**settings: object) -> RunSpec:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return RunSpec("racing-search", "program:landscape", "none", "120 evaluations", seed=3, settings=named)


def searched(of: RunSpec) -> Assembled:
    """A search that has used up its budget."""
    made = assemble(of)
    deque(made.system.run(Budget.parse(of.budget)), maxlen=0)
    return made


def noisy(monkeypatch: pytest.MonkeyPatch, spread: float) -> Counter[str]:
    """The landscape with Gaussian noise on every evaluation; counts how often each program was evaluated."""
    rng, counts = np.random.default_rng(5), Counter[str]()
    exact = Landscape.evaluate

    def evaluate(
        self: Landscape, programs: Sequence[str], instances: Sequence[Sequence[str]] | None = None
    ) -> list[Evaluation]:
        counts.update(programs)
        found = exact(self, programs, instances)
        return [
            e if e.value is None else Evaluation(e.value + spread * rng.standard_normal(), e.metrics) for e in found
        ]

    monkeypatch.setattr(Landscape, "evaluate", evaluate)
    return counts


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=8))
def test_mean_and_noise_of_one_candidate(values: list[float]) -> None:
    made = Evaluation(values[0], {"size": values[0]})
    for value in values[1:]:
        made = joined(made, Evaluation(value, {"size": value}))
    assert made.value == pytest.approx(statistics.fmean(values), abs=1e-9)
    assert made.metrics["size"] == pytest.approx(statistics.fmean(values), abs=1e-9)
    assert repeats(made) == len(values)
    assert noise([made]) == pytest.approx(statistics.stdev(values), abs=1e-6)


def test_noise_is_pooled_over_candidates() -> None:
    one = joined(Evaluation(0.0), Evaluation(2.0))  # squares 2, one degree of freedom
    two = joined(joined(Evaluation(5.0), Evaluation(5.0)), Evaluation(8.0))  # squares 6, two
    assert noise([one, two, Evaluation(100.0)]) == pytest.approx((8 / 3) ** 0.5)
    assert noise([Evaluation(1.0)]) == 0.0


def test_a_repetition_that_fails_is_a_failure() -> None:
    assert joined(Evaluation(1.0), invalid("it crashed", "crashed")).status == "crashed"
    assert joined(Evaluation(1.0), invalid("it crashed", "crashed")).value is None


def test_only_those_who_may_be_best_are_evaluated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = noisy(monkeypatch, spread=0.004)
    made = searched(spec())
    history = archive_of(made.main_role).history
    assert {c.text: repeats(c.evaluation) for c in history if c.valid}.items() <= counts.items()
    assert made.system.ledger.of("verifier_calls") == sum(counts.values())
    assert repeats(history[0].evaluation) == 5
    ranked = sorted((c for c in history if c.valid), key=lambda c: c.value)
    low, high = ranked[: len(ranked) // 3], ranked[-3:]
    assert statistics.fmean(repeats(c.evaluation) for c in low) < 1.5
    assert statistics.fmean(repeats(c.evaluation) for c in high) > 3


@pytest.mark.slow
def test_it_is_less_deceived_by_luck(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    over = {}
    for most in (1, 8):
        optimism = []
        for seed in range(4):
            noisy(monkeypatch, spread=0.1)
            one = searched(replace(spec(judge__racing__most=most), seed=seed, budget="150 evaluations"))
            best = archive_of(one.main_role).best
            assert best is not None
            monkeypatch.undo()
            [true] = programs_of(one.main_role).evaluate([best.text], [()])
            optimism.append(best.value - true.value)
        over[most] = statistics.fmean(optimism)
    assert over[8] < 0.6 * over[1]


def test_without_noise_nothing_but_the_seed_program_is_repeated(tmp_path: Path) -> None:
    result = begin(spec(), tmp_path / "run", logs=("jsonl",))
    found = [c["evaluation"] for c in result.view.candidates.values() if c["evaluation"]["value"] is not None]
    assert found[0]["metrics"]["repeats"] == 5.0
    worse = [e["metrics"].get("repeats", 1) for e in found[1:] if e["value"] < found[0]["value"]]
    assert worse
    assert set(worse) == {1}


def test_settings_that_make_no_race() -> None:
    with pytest.raises(UserError, match="judge.racing.most must be at least 1"):
        assemble(spec(judge__racing__most=0))
    with pytest.raises(UserError, match="judge.racing.width must be at least 0"):
        assemble(spec(judge__racing__width=-1.0))


def test_huge_values_that_race_are_not_valid() -> None:
    made = joined(Evaluation(-1.7e308), Evaluation(1.7e308))
    assert (made.value, made.status) == (None, "invalid")
