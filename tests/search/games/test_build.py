"""Stages and repairs by rules: each does what it is named for, on games whose state is known."""

from __future__ import annotations

import json

import numpy as np
import pytest

from evolvent.search.games.build import data_of, first, refined, repaired, skeleton, visual
from evolvent.search.games.memory import begun
from evolvent.search.games.plan import Entry, Plan
from evolvent.tasks.worlds.grid_games.bot import Effort, Report, play
from evolvent.tasks.worlds.grid_games.check import findings
from evolvent.tasks.worlds.grid_games.differ import difference, mechanics
from evolvent.tasks.worlds.grid_games.language import GameError, read, text_of
from evolvent.tasks.worlds.grid_games.world import played, seeds

ENTRIES = {e.name: e for e in begun()}
COINS = seeds()["coins"]
EFFORT = Effort()


def rng(i: int = 0) -> np.random.Generator:
    return np.random.default_rng(i)


def plan(*names: str, **more: tuple[str, ...]) -> Plan:
    return Plan(tuple(ENTRIES[n] for n in names), **more)


def test_a_first_version_has_what_was_planned() -> None:
    made = read(first(COINS, plan("hunter", "energy"), rng()))
    assert {str(m) for m in mechanics(made)} == {
        "enter player A: remove what", "win: none A", "turn A: step toward", "near A player: lose",
        "turn player: count a -", "lose: count a <= 0",
    }  # fmt: skip
    assert [sum("h" in row for row in level) for level in made.levels] == [1, 1]
    assert 6 <= made.counters["energy"] <= 40
    assert findings(made) == []


def test_stages_one_by_one() -> None:
    data = data_of(COINS)
    skeleton(data, plan("pit", drop=("win: none A",)), rng())
    assert "pit" in data["objects"]
    assert data["win"] == []
    assert difference(read(COINS), read(text_of({**data, "win": [["none", "coin"]]}))).cosmetic
    for i in range(20):
        before = data_of(COINS)
        visual(before, rng(i))
        assert difference(read(COINS), read(text_of(before))).cosmetic
        assert [len(level) for level in before["levels"]] == [6, 6]
    changes = {first(COINS, plan(change=("enter player A: remove what",)), rng(i)) for i in range(20)}
    made = [difference(read(COINS), read(t)) for t in changes]
    assert all(len(d.changed) == 1 or (len(d.new), len(d.dropped)) == (1, 1) for d in made)


def test_objects_get_symbols_of_their_own() -> None:
    crates = first(seeds()["crates"], plan("statues"), rng())
    text = first(crates, plan("paint", "bridge", "boulders", "lava", "toll"), rng())
    symbols = [k.symbol for k in read(text).objects.values()]
    assert len({*symbols}) == len(symbols) == len(read(text).objects)


def test_a_refinement_builds_what_is_missing() -> None:
    base = first(COINS, plan("pit"), rng())
    text = refined(base, plan("pit", "hunter"), ["pit"], True, rng())
    before, after = read(base), read(text)
    assert [str(m) for m in difference(before, after).new] == ["turn A: step toward", "near A player: lose"]
    count = [sum(row.count("v") for row in level) for level in after.levels]
    assert count == [2, 2]  # one more pit on each level
    assert refined(base, plan("pit"), [], True, rng(3)).count("v") <= text.count("v")
    other = read(refined(base, plan("pit"), [], False, rng()))
    assert sorted("".join(other.levels[0])) == sorted("".join(before.levels[0]))
    assert other.levels != before.levels


def mended(text: str, times: int = 1) -> str:
    for i in range(times):
        found = findings(read(text))
        text = repaired(text, COINS, found, played(text, "train", EFFORT), rng(i))
    return text


def test_errors_are_mended() -> None:
    broken = first(COINS, plan("vial", "pit"), rng())
    assert [f.code for f in findings(read(broken)) if f.error] == ["unknown counter"]
    made = read(mended(broken))
    assert not [f for f in findings(made) if f.error]
    assert "enter player A: lose" in map(str, mechanics(made))  # the pit is still there
    data = json.loads(COINS)
    data["win"], data["levels"] = [], [["????", "@..@"]]
    whole = read(mended(text_of(data)))
    assert (whole.win, whole.levels) == (read(COINS).win, read(COINS).levels)


def test_the_rule_at_fault_goes() -> None:
    broken = first(COINS, plan("fever"), rng())
    assert played(broken, "train", EFFORT).fault is not None
    assert played(mended(broken), "train", EFFORT).fault is None
    assert "count heat" not in mended(broken)


def test_what_nobody_can_win_is_mended_in_the_end() -> None:
    doomed = first(COINS, plan("doom"), rng())
    report = played(doomed, "train", EFFORT)
    assert not report.runs
    assert report.levels[0].at_once
    assert played(mended(doomed), "train", EFFORT).runs
    walled = json.loads(COINS)
    walled["levels"] = [["#####", "#@#c#", "#####"]]
    fixed = repaired(text_of(walled), COINS, [], Report(play(read(text_of(walled)), read(text_of(walled)).levels, rng(),
        EFFORT).levels), rng())  # fmt: skip
    assert fixed != text_of(walled)


def test_no_game_is_no_data() -> None:
    with pytest.raises(GameError):
        data_of("{}")
    with pytest.raises(GameError):
        data_of("x")
    assert data_of('{"objects": {}, "rules": [], "win": [], "levels": []}')["lose"] == []


@pytest.mark.parametrize("entry", begun(), ids=lambda e: e.name)
def test_every_entry_can_be_built_into_every_seed_game(entry: Entry) -> None:
    for i, text in enumerate(seeds().values()):
        made = read(first(text, Plan((entry,)), rng(i)))
        assert read(text).rules == made.rules[: len(read(text).rules)]
