"""The world `text-games`: candidates, inner runs and what they are worth."""

from __future__ import annotations

import pytest

from evolvent.core.errors import UserError
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds.text_games.adviser import DIRECTIVES, REFLEXION
from evolvent.tasks.worlds.text_games.families import layout
from evolvent.tasks.worlds.text_games.world import (
    HEADER,
    Run,
    Settings,
    TextGames,
    inner_run,
    meta_prompt,
    strategy_of,
    text_of,
)

GOOD = tuple(DIRECTIVES[n] for n in ("keep", "points first", "points", "deadly", "needs", "untried", "ways", "vain"))


@pytest.fixture(scope="module")
def task() -> TextGames:
    found = load_task("program:text-games:games=6")
    assert isinstance(found, TextGames)
    return found


def test_a_candidate_is_read_as_it_was_written() -> None:
    for lines in ((), ("One.",), ('Say "no".', "It's \\n ''' fine.")):
        assert strategy_of(text_of(lines)) == lines
        assert "\n".join(lines) in meta_prompt(lines)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (text_of(()).replace(HEADER[:20], "Pay me a lot"), "must stay as they are"),
        (text_of(()) + "MORE = 1\n", "nothing else"),
        (text_of(()) + "print(1)\n", "must be an assignment"),
        (text_of(()).replace("[\n]", "[1]"), "list of texts"),
        (text_of(()).replace("STRATEGY = [\n]", "STRATEGY = open('x')"), "malformed"),
        ("def (", "SyntaxError"),
    ],
)
def test_what_is_no_candidate(task: TextGames, text: str, said: str) -> None:
    [verdict] = task.evaluate([text])
    assert verdict.value is None
    assert said in verdict.feedback


def test_later_episodes_count_more() -> None:
    run = Run((0.5, 0.0, 1.0), ("", "", ""), ("", "", ""))
    assert run.fitness == pytest.approx((1 * 0.5 + 2 * 0.0 + 3 * 1.0) / 6)
    assert run.gain == 0.5


def test_values_are_those_of_inner_runs(task: TextGames) -> None:
    runs = {name: inner_run(GOOD, name, task.settings) for name in ("manor-0", "forest-7")}
    [found] = task.evaluate([text_of(GOOD)], [("manor-0", "gain/forest-7")])
    shares = runs["manor-0"].scores
    assert found.metrics["instance/manor-0"] == pytest.approx(sum(k * x for k, x in enumerate(shares, 1)) / 10)
    assert found.metrics["instance/gain/forest-7"] == runs["forest-7"].scores[-1] - runs["forest-7"].scores[0]
    assert found.metrics["last/manor-0"] == shares[-1]
    for run in runs.values():  # the logs say the same
        for score, log in zip(run.scores, run.logs, strict=True):
            last = int(log.rsplit("[CUM_REWARD] ", 1)[1])
            name = next(n for n, r in runs.items() if r is run)
            assert score == last / layout(name).most
            assert log.count("[ACTION]") <= 40


def test_first_episodes_are_all_alike_and_guidance_helps_later() -> None:
    settings, names = Settings(), [f"{kind}-{i}" for kind in ("manor", "forest") for i in range(6)]
    policies = {"none": (), "reflexion": tuple(DIRECTIVES[n] for n in REFLEXION), "good": GOOD}
    runs = {k: [inner_run(p, name, settings) for name in names] for k, p in policies.items()}
    assert len({tuple(r.logs[0] for r in found) for found in runs.values()}) == 1
    gain = {k: sum(r.gain for r in found) / len(found) for k, found in runs.items()}
    assert abs(gain["none"]) < 0.1
    assert gain["good"] > gain["none"] + 0.2
    assert gain["reflexion"] > gain["none"] + 0.1


def test_splits_share_no_game_and_the_test_split_no_family(task: TextGames) -> None:
    names = {split: [n.removeprefix("gain/") for n in task.instances(split)] for split in ("train", "gate", "test")}  # type: ignore[arg-type]
    assert [len(x) for x in names.values()] == [6, 6, 60]
    games = [str(layout(n)) for found in names.values() for n in found]
    assert len(set(games)) == len(games)
    kinds = {split: {n.partition("-")[0] for n in found} for split, found in names.items()}
    assert kinds["train"] == kinds["gate"] == {"manor", "caves", "village"}
    assert not kinds["train"] & kinds["test"]


@pytest.mark.parametrize("settings", ["games=0", "episodes=1", "limit=0", "games=many", "depth=3"])
def test_settings_that_cannot_be(settings: str) -> None:
    with pytest.raises(UserError, match="text-games"):
        load_task(f"program:text-games:{settings}")
