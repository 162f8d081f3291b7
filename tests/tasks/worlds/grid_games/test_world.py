"""The world of lineages: what is new, works, and runs, on each split."""

from __future__ import annotations

import json

import pytest

from evolvent.core.errors import UserError
from evolvent.search.games.plan import entry_of
from evolvent.tasks.program import load
from evolvent.tasks.worlds.grid_games import world
from evolvent.tasks.worlds.grid_games.bot import Effort, play
from evolvent.tasks.worlds.grid_games.language import text_of
from evolvent.tasks.worlds.grid_games.world import collection, library, new_and_working, read_collection, seeds, task

EFFORT = Effort()


def coins(*rules: object, **more: object) -> str:
    """A version of the seed game `coins`."""
    made = json.loads(seeds()["coins"])
    made["rules"] += rules
    made["objects"]["wasp"] = {"symbol": "w", "is": ["solid"]}
    made["levels"] = [["########", "#@..#.c#", "#...#..#", "#.c...w#", "#......#", "########"]]
    return text_of({**made, **more})


WASP = {"on": "turn", "who": "wasp", "do": [["step", "left"]]}
STING = {"on": "near", "who": "wasp", "what": "player", "do": [["lose"]]}
USELESS = {"on": "turn", "who": "player", "do": [["count", "n", 1]]}


def test_the_value_counts_new_working_mechanics() -> None:
    first = seeds()["coins"]
    second = coins(WASP, STING, USELESS, counters={"n": 0})
    for split in ("train", "gate", "test"):
        found = [str(m) for m in new_and_working([first, second], split, EFFORT)]  # type: ignore[arg-type]
        assert found == ["turn A: step left", "near A player: lose"]
        again = new_and_working([first, second, second], split, EFFORT)  # type: ignore[arg-type]
        assert [str(m) for m in again] == found  # once
    assert new_and_working([first, first], "train", EFFORT) == []
    assert new_and_working([first], "train", EFFORT) == []
    broken = coins(WASP, STING, win=[["none", "wasp"]])  # nobody can win
    assert new_and_working([first, broken], "test", EFFORT) == []
    assert len(new_and_working([first, broken, second], "test", EFFORT)) == 2  # they work later
    assert len(new_and_working([first, "no game", second], "test", EFFORT)) == 2


def test_verdicts_on_collections() -> None:
    games = task("3")
    assert games.names == ("crates", "keys", "coins")
    versions = read_collection(games.seed_program)
    [seed] = games.evaluate([games.seed_program])
    assert (seed.value, seed.complete) == (0.0, True)
    versions["coins"].append(coins(WASP, STING))
    versions["keys"].append("no game")
    [made] = games.evaluate([collection(versions)], [games.instances("test")])
    assert made.metrics == {
        "instance/test/crates": 0.0, "instance/test/keys": 0.0, "instance/test/coins": 2.0, "runs": 0.5
    }  # fmt: skip
    assert made.value == pytest.approx(2 / 3)
    versions["keys"][0] = versions["coins"][0]
    [other] = games.evaluate([collection(versions)])
    assert (other.value, other.feedback) == (None, "keys does not begin with its seed game")
    assert [e.status for e in games.evaluate(["import os", "[]", '{"keys": [1]}'])] == ["unreadable"] * 3


def test_splits_have_other_levels() -> None:
    text = seeds()["coins"]
    levels = {split: world.levels_of(text, split) for split in world.SPLITS}
    assert levels["train"] == list(world.game(text).levels)
    assert len(levels["gate"]) == len(levels["test"]) == world.UNSEEN
    every = [level for some in levels.values() for level in some]
    assert len({*every}) == len(every)
    names = [games for split in world.SPLITS for games in task("8").instances(split)]
    assert len({*names}) == 24


@pytest.mark.parametrize("name", sorted(seeds()))
def test_seed_games_run_and_can_be_improved(name: str) -> None:
    one = world.game(seeds()[name])
    report = world.played(seeds()[name], "train", EFFORT)
    assert report.runs
    assert report.won == 1.0
    assert report.luck < 1
    assert report.fired == set(range(len(one.rules)))
    assert report == play(one, list(one.levels), world.stream(0, "grid-games", "train", "bot", seeds()[name]), EFFORT)


def test_the_library_is_of_the_language_and_not_all_of_it_is_good() -> None:
    entries = [entry_of(e) for e in library()]
    assert len({e.name for e in entries}) == len(entries) == 50
    assert [e.name for e in entries if not e.forms] == ["statues"]
    assert all(e.about and e.tags for e in entries)


def test_more_lineages_than_seed_games_and_wrong_sizes() -> None:
    names = task("18").names
    assert len({*names}) == 18
    assert [world.begun(n) for n in names[:8]] == [world.begun(n) for n in names[8:16]] == list(seeds())
    assert load("grid-games:2").name == "program:grid-games:2"
    for size in ("0", "65", "many"):
        with pytest.raises(UserError, match="the number of lineages goes from 1 to 64"):
            task(size)
