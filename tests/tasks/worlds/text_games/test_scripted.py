"""The scripted player and the scripted adviser: what they make of guidance and of logs, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tasks.worlds.text_games.test_game import SMALL

from evolvent.tasks.worlds.text_games.adviser import DIRECTIVES, advise, examined
from evolvent.tasks.worlds.text_games.game import Game
from evolvent.tasks.worlds.text_games.notes import LINES, read
from evolvent.tasks.worlds.text_games.player import Player
from evolvent.tasks.worlds.text_games.world import entry


def log_of(*commands: str, limit: int = 50) -> str:
    game, log = Game(SMALL, limit), ""
    for command in commands:
        seen = game.see()
        log += entry(seen, command, *game.step(command), game.score)
    return log


def wanted(*names: str) -> list[str]:
    return [DIRECTIVES[name] for name in names]


LOG = log_of("take statue", "open chest", "take lamp", "go east", "take coin", "go west", "go west", "go north")


def test_what_a_log_shows() -> None:
    notes = examined(LOG).notes
    assert notes.ways == {("hall", "east"): "cave", ("cave", "west"): "hall", ("hall", "west"): "shed"}
    assert notes.points == {("cave", "take coin"): 3}
    assert notes.vain == {("hall", "take statue"): None}
    assert notes.lies == {"lamp": "hall"}
    assert notes.deadly == {("shed", "go north"): None}
    assert notes.needs == {("hall", "go north"): "red key", ("shed", "go north"): "sword"}
    assert notes.route == ["take statue", "open chest", "take lamp", "go east", "take coin"]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("ways", ["From hall: east to cave, west to shed.", "From cave: west to hall."]),
        ("points", ["Worth 3: take coin in cave."]),
        ("deadly", ["Never go north in shed: it kills."]),
        (
            "needs",
            [
                "Only with the red key: go north in hall.",
                "Only with the sword: go north in shed.",
                "The lamp lies in hall.",
            ],
        ),
        ("vain", ["It is no use in hall to take statue."]),
        ("untried", ["Not tried in shed: east, west."]),
        ("route", ["Repeat from the start: take statue; open chest; take lamp; go east; take coin."]),
        ("points first", ["Collect what is known to be worth points first, then explore."]),
        ("look", ["In every room first: look."]),
        ("caution", ["Never go east in shed: it kills.", "Never go west in shed: it kills."]),
        ("empty", []),
        ("keep", []),
    ],
)
def test_each_directive_has_its_lines(name: str, lines: list[str]) -> None:
    assert advise(wanted(name), LOG, "").splitlines() == lines


def test_directives_are_followed_in_their_order_and_others_are_not_understood() -> None:
    both = advise([*wanted("points", "deadly"), "Sing a song."], LOG, "")
    assert both.splitlines() == ["Worth 3: take coin in cave.", "Never go north in shed: it kills."]
    assert advise(wanted("deadly", "points"), LOG, "").splitlines() == both.splitlines()[::-1]
    assert advise([], LOG, "Worth 3: take coin in cave.") == ""
    assert len(advise(wanted("retell", "brief"), LOG, "").splitlines()) == 5


def test_what_was_known_is_kept_and_corrected() -> None:
    before = "Worth 5: take ring in vault.\nNot tried in hall: east, north.\nFrom vault: south to hall."
    kept = advise(wanted("keep", "points", "untried", "ways"), LOG, before).splitlines()
    assert kept[:2] == ["Worth 5: take ring in vault.", "Worth 3: take coin in cave."]
    assert "Not tried in shed: east, west." in kept
    assert not any("Not tried in hall" in line for line in kept)  # north is locked, and east was tried
    assert "From vault: south to hall." in kept
    assert "vault" not in advise(wanted("points", "untried", "ways"), LOG, before)


def test_a_player_reads_so_many_lines() -> None:
    text = "\n".join([*["Take a deep breath."] * (LINES - 1), "Worth 3: take coin in cave.", "Stay away from den."])
    notes = read(text)
    assert notes.points == {("cave", "take coin"): 3}
    assert notes.empty == {}


def walked(guidance: str, seed: int = 0, limit: int = 40) -> list[str]:
    game, player, commands = Game(SMALL, limit), Player(guidance, np.random.default_rng(seed)), []
    while not game.over:
        commands.append(player.command(game.see()))
        game.step(commands[-1])
    return commands


def test_a_player_without_guidance_takes_what_lies_about() -> None:
    assert walked("", limit=4) == ["take statue", "open chest", "take lamp", "take sword"]


def test_a_player_does_as_guidance_says() -> None:
    known = (
        "It is no use in hall to take statue.\nNever take viper in shed: it kills.\nNever go north in shed: it kills.\n"
        "From hall: east to cave, west to shed, north to vault.\nFrom cave: west to hall.\nFrom shed: east to hall.\n"
        "Only with the red key: go north in hall.\nThe red key lies in shed.\n"
        "Worth 5: take ring in vault.\nWorth 3: take coin in cave."
    )
    for seed in range(5):
        assert walked(known, seed) == [
            "open chest", "take lamp", "take sword", "go east", "take coin", "go west", "go west", "attack troll",
            "take red key", "go east", "unlock north", "go north", "take ring",
        ]  # fmt: skip


def test_a_player_goes_where_nobody_was() -> None:
    known = (
        "From hall: west to shed.\nNever take viper in shed: it kills.\nIt is no use in hall to take statue.\n"
        "Not tried in shed: west.\nExplore first, then collect."
    )
    assert walked(known, limit=7) == [
        "open chest", "take lamp", "take sword", "go west", "attack troll", "take red key", "go west"
    ]  # fmt: skip


def test_routes_and_habits() -> None:
    assert walked("Repeat from the start: go west; go east.", limit=3) == ["go west", "go east", "take statue"]
    assert walked("In every room first: look.", limit=2) == ["look", "take statue"]


def test_what_is_warned_of_is_left_alone() -> None:
    warned = "Never go east in hall: it kills.\nNever take viper in shed: it kills."
    for seed in range(10):
        game, player = Game(SMALL, 30), Player(warned, np.random.default_rng(seed))
        rooms = set()
        while not game.over:
            game.step(player.command(game.see()))
            rooms.add(game.room)
        assert "cave" not in rooms
        assert "viper" in game.things["shed"]
