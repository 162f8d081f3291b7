"""The language is read strictly: what is not of its form is refused, with what is wrong and where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.tasks.worlds.grid_games.small import data, rule

from evolvent.search.games.build import data_of
from evolvent.tasks.worlds.grid_games.language import GameError, game_of, read, text_of

LEVEL = ["@.x"]


def test_a_text_is_read_and_written() -> None:
    made = data(LEVEL, rule("enter", "me", "ice", ["slide"], when=[["count", "n", "<", 3]]), title="T", story="S")
    text = text_of(made)
    game = read(text)
    assert game == game_of(json.loads(text))
    assert (game.title, game.levels, game.counters) == ("T", (("@.x",),), {"n": 0})
    assert game.rules[0].conditions == (("count", "n", "<", 3),)
    assert game.objects["me"].player
    assert not game.objects["me"].solid
    assert text_of(data_of(text)) == text_of({**data_of(text)})
    assert read(text_of(data_of(text))) == game
    assert all(f'\n  "{name}": {{"symbol"' in text for name in made["objects"])  # a line for each


def changed(path: str, value: Any) -> dict[str, Any]:
    made = data(LEVEL, rule("enter", "me", "ice", ["remove", "what"]))
    *way, last = path.split("/")
    at: Any = made
    for step in way:
        at = at[int(step) if step.isdigit() else step]
    at[int(last) if last.isdigit() else last] = value
    return made


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("rule", 1, "game: there is no field `rule`"),
        ("levels", "x", "game.levels: this must be a list"),
        ("objects/me/symbol", "ab", "objects.me.symbol: this must be one character"),
        ("objects/me/symbol", "#", "objects: two objects have the same symbol"),
        ("objects/me/is", ["big"], "objects.me.is: there is no property 'big'"),
        ("counters/n", True, "counters.n: this must be a whole number"),
        ("counters/n", 1.5, "counters.n: this must be a whole number"),
        ("counters/n", 10**6, "counters.n: this must be a whole number"),
        ("rules/0/on", "hit", r"rules\[0\].on: there is no event `hit`"),
        ("rules/0/what", "", r"rules\[0\].what: a rule on `enter` needs one"),
        ("rules/0/do", [], r"rules\[0\].do: a rule has 1 to 6 effects"),
        ("rules/0/do/0", ["push"], r"rules\[0\].do\[0\]: `push` is for rules on bump"),
        ("rules/0/do/0", ["explode"], "begins with one of"),
        ("rules/0/do/0", [["remove"]], "begins with one of"),
        ("rules/0/do/0", ["remove"], "`remove` is followed by 1 entries: side"),
        ("rules/0/do/0", ["remove", "where"], "there is no side `where`"),
        ("rules/0/do/0", ["drop", 3], "the object must be a text"),
        ("win/0", ["count", "n", "=>", 1], "there is no operation `=>`"),
        ("levels/0", ["@.", "x"], r"levels\[0\]: its rows differ in length"),
        ("levels/0", ["." * 13], "it is larger than 12 by 12"),
        ("levels/0", [], "must be a list of rows"),
    ],
)
def test_what_is_of_another_form_is_refused(path: str, value: Any, said: str) -> None:
    with pytest.raises(GameError, match=said):
        game_of(changed(path, value))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON"),
        ("import os", "no JSON"),
        ("[]", "must be an object"),
        ("{}", "`objects` is missing"),
        ('{"objects": {}, "objects": {}}', "twice"),
        ('{"objects": NaN}', "NaN is no number"),
        ("[" * 100_000, "at most 20000 characters"),
        ("[" * 19_000, "no JSON: it is nested too deeply"),
        ('{"objects": ' + "9" * 5_000 + "}", "no JSON|must be a dict"),
    ],
)
def test_what_is_no_game_is_refused(text: str, said: str) -> None:
    with pytest.raises(GameError, match=said):
        read(text)


def test_there_are_only_so_many_rules() -> None:
    with pytest.raises(GameError, match="there are 49, and at most 48"):
        game_of(data(LEVEL, *[rule("turn", "me", "", ["win"])] * 49))
