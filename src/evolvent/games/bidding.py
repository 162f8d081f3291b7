"""Liar's dice and Goofspiel for two players, by the rules of OpenSpiel.

Liar's dice, one die each: bids of a quantity and a face that rise in this order, the highest face being wild, until
somebody calls the last bid a lie; utilities 1 and -1.
Goofspiel, one suit each and prizes in falling order: both bid a card, unseen; the higher one gets the prize, equals
nobody. Only who won is told, not what was bid. The last cards play themselves. Who has more in the end wins: 1, -1, or
0 for a tie.
"""

from __future__ import annotations

from evolvent.games.tree import Chance, Decision, End, History, Rules


def liars_dice(sides: int) -> Rules:
    """Liar's dice with one die of so many sides for each of two players. Bid b: b // sides + 1 dice of face
    b % sides + 1; the last action is the call."""
    call = 2 * sides

    def rules(history: History) -> Chance | Decision | End:
        if len(history) < 2:
            return Chance([(face, 1 / sides) for face in range(sides)])
        dice, bids = history[:2], history[2:]
        if bids and bids[-1] == call:
            quantity, face = bids[-2] // sides + 1, bids[-2] % sides
            true = sum(die in (face, sides - 1) for die in dice) >= quantity
            bidder = len(bids) % 2
            return End([1.0 if (p == bidder) == true else -1.0 for p in (0, 1)])
        player = len(bids) % 2
        actions = [*range(bids[-1] + 1 if bids else 0, call), *([call] if bids else [])]
        return Decision(player, (dice[player], bids), actions)

    return rules


def goofspiel(cards: int) -> Rules:
    """Goofspiel with so many cards, prizes in falling order and hidden bids."""

    def rules(history: History) -> Chance | Decision | End:
        hands = [[card for card in range(cards) if card not in history[p::2]] for p in (0, 1)]
        bids = history if len(history) < 2 * (cards - 1) else (*history, hands[0][0], hands[1][0])
        results = tuple((a > b) - (a < b) for a, b in zip(bids[::2], bids[1::2], strict=False))
        if len(results) == cards:
            sign = sum((cards - i) * won for i, won in enumerate(results))
            return End([float((sign > 0) - (sign < 0)), float((sign < 0) - (sign > 0))])
        player = len(history) % 2
        return Decision(player, (history[player::2], results), hands[player])

    return rules
