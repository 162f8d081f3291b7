"""Rules and generator of the text games."""

from __future__ import annotations

import pytest

from evolvent.tasks.worlds.text_games.families import FAMILIES, LEARNED, UNSEEN, layout
from evolvent.tasks.worlds.text_games.game import LAMP, SWORD, Exit, Game, Layout

SMALL = Layout(
    "hall",
    {
        "hall": {"north": Exit("vault", key="red key"), "east": Exit("cave", dark=True), "west": Exit("shed")},
        "vault": {"south": Exit("hall")},
        "cave": {"west": Exit("hall")},
        "shed": {"east": Exit("hall"), "north": Exit("nowhere", deadly=True), "west": Exit("den")},
        "den": {"east": Exit("shed")},
    },
    {"hall": ("statue",), "shed": ("red key", "viper"), "vault": ("ring",), "cave": ("coin",)},
    {"hall": {"chest": (LAMP, SWORD)}},
    {"ring": 5, "coin": 3, "troll": 2},
    frozenset({"viper"}),
    frozenset({"statue"}),
    {"shed": "troll"},
)


def played(*commands: str, limit: int = 50) -> tuple[Game, list[tuple[str, int]]]:
    game = Game(SMALL, limit)
    return game, [game.step(command) for command in commands]


def test_a_whole_game() -> None:
    game, told = played(
        "take statue", "open chest", "take lamp", "take sword", "east", "take coin", "west", "west", "attack troll",
        "take red key", "go east", "unlock north", "go north", "take ring",
    )  # fmt: skip
    assert told[0] == ("You can't move the statue.", 0)
    assert told[1] == ("The chest has lamp, sword in it.", 0)
    assert [reward for _, reward in told if reward] == [3, 2, 5]
    assert game.over
    assert game.score == SMALL.most == 10


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        (("east",), "You stumble in the dark, without the lamp. You are dead."),
        (("west", "west"), "The troll strikes you, who are without the sword. You are dead."),
        (("west", "attack troll"), "The troll strikes you, who are without the sword. You are dead."),
        (("open chest", "take sword", "west", "attack troll", "north"), "The ground gives way. You are dead."),
        (("west", "take viper"), "The viper burns your skin. You are dead."),
    ],
)
def test_what_kills(commands: tuple[str, ...], said: str) -> None:
    game, told = played(*commands)
    assert told[-1] == (said, 0)
    assert game.over
    with pytest.raises(ValueError, match="over"):
        game.step("look")


def test_what_is_no_use_costs_a_step() -> None:
    game, told = played("dance", "north", "unlock north", "up", "open box", "take ring", limit=6)
    assert all(reply.startswith("You can't") for reply, _ in told)
    assert told[1][0] == "You can't go there without the red key."
    assert game.over


def test_one_may_go_back_from_a_guard() -> None:
    game, told = played("west", "east")
    assert told[-1] == ("You walk on.", 0)
    assert game.room == "hall"


def test_what_is_seen() -> None:
    game, _ = played("open chest", "take lamp")
    assert game.see() == (
        "<< hall >>\nExits: north (locked, red key); east (dark); west.\nHere: statue; sword.\nYou carry: lamp."
    )
    game, _ = played("west")
    assert "A troll watches you." in game.see()


def had(game: Layout) -> set[str]:
    """Everything that somebody can carry away who has all the time in the world."""
    rooms, carried = {game.start}, set[str]()
    while True:
        before = len(rooms) + len(carried)
        for room in sorted(rooms):
            lying = {*game.things.get(room, ()), *(x for inside in game.closed.get(room, {}).values() for x in inside)}
            carried |= lying - game.poison - game.fixed
            guarded = room in game.guards and SWORD not in carried
            for exit in game.exits[room].values():
                barred = (exit.key and exit.key not in carried) or (exit.dark and LAMP not in carried)
                if not guarded and not barred and not exit.deadly:
                    rooms.add(exit.to)
        if len(rooms) + len(carried) == before:
            return carried


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_treasure_can_be_had(kind: str) -> None:
    for number in range(25):
        game = layout(f"{kind}-{number}")
        assert set(game.worth) - set(game.guards.values()) <= had(game), number
        assert sum(game.worth.values()) >= 13
        assert not game.guards or SWORD in had(game)


def test_families_have_what_they_say() -> None:
    kinds = {kind: [layout(f"{kind}-{i}") for i in range(20)] for kind in FAMILIES}
    assert all(len(game.exits) == 13 for games in kinds.values() for game in games)
    assert any(exit.key for game in kinds["manor"] for found in game.exits.values() for exit in found.values())
    assert any(exit.dark for game in kinds["caves"] for found in game.exits.values() for exit in found.values())
    assert all(game.guards for game in kinds["village"])
    assert all(len(game.poison) == 3 for game in kinds["forest"])
    assert any("up" in found for game in kinds["tower"] for found in game.exits.values())
    assert not set(LEARNED) & set(UNSEEN)
