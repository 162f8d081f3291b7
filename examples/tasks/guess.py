"""Several turns: find a number from 0 to 99 in at most seven guesses, told after each whether it is higher or lower.

    evolvent audit examples/tasks/guess.py

The policy writes a number and a full stop, and reads `<` (the number is lower), `>` (it is higher) or the end.
"""

from __future__ import annotations

MAX_TURNS = 7
MAX_TOKENS = 21
TURN_END = "."  # the policy's turn ends here as well as at its end-of-text token


def problems():
    """One problem for each number. The prompt is the same for all of them: what differs is hidden."""
    return [{"prompt": "guess 0-99: ", "secret": n} for n in range(100)]


class Guess:
    """`respond` gets what the policy wrote, and gives the text that follows it, or None at the end."""

    def __init__(self, secret: int) -> None:
        self.secret = secret
        self.state = {"found": False, "guesses": 0}  # plain data; `reward` may ask for it

    def respond(self, turn: str) -> str | None:
        """Compare the guess. Anything that is no number ends the game."""
        text = turn.strip().removesuffix(".")
        self.state["guesses"] += 1
        if not text.isdecimal() or int(text) == self.secret:
            self.state["found"] = text.isdecimal()
            return None
        return "< " if int(text) > self.secret else "> "


def environment(secret):
    """Called for each episode with the columns that it names."""
    return Guess(secret)


def reward(state):
    """1 if the number was found; finding it early is shaping, which counts only where a recipe asks for it."""
    found = bool(state and state["found"])
    return {"outcome": found, "early": found / state["guesses"] if found else 0.0}


def gold(secret):
    """The turns of a player who halves the range."""
    low, high, turns = 0, 99, []
    while True:
        guess = (low + high) // 2
        turns.append(f"{guess}.")
        if guess == secret:
            return turns
        low, high = (guess + 1, high) if guess < secret else (low, guess - 1)
