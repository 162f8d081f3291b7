"""Kuhn and Leduc poker for two or more players, by the rules of OpenSpiel.

Kuhn: players + 1 cards, one each, ante 1; bet (1) or pass, once around; who stayed in with the highest card wins.
Leduc: two suits of players + 1 ranks, one card each and, after the first round, one that all see; ante 1, raises of 2
and then 4, at most two a round; a pair with the common card wins, then the rank; equals share.
"""

from __future__ import annotations

from evolvent.games.tree import Chance, Decision, End, History, Rules

PASS, BET = 0, 1
FOLD, CALL, RAISE = 0, 1, 2


def dealt(cards: int, history: History, drawn: History) -> Chance:
    """The next card, from those that are left."""
    left = [card for card in range(cards) if card not in drawn]
    return Chance([(card, 1 / len(left)) for card in left])


def kuhn(players: int = 2) -> Rules:
    """Kuhn poker (Kuhn, 1950; more players: Szafron et al., 2013)."""

    def rules(history: History) -> Chance | Decision | End:
        if len(history) < players:
            return dealt(players + 1, history, history)
        cards, bets = history[:players], history[players:]
        first = bets.index(BET) if BET in bets else None
        if len(bets) == players + (first or 0):  # after a bet, all others have answered it
            inside = [p for p in range(players) if p == first or BET in bets[p::players]]
            pot = players + len(inside) * (first is not None)
            winner = max(inside if first is not None else range(players), key=lambda p: cards[p])
            paid = [1 + (p in inside and first is not None) for p in range(players)]
            return End([pot * (p == winner) - paid[p] for p in range(players)])
        player = len(bets) % players
        return Decision(player, (cards[player], bets), (PASS, BET))

    return rules


def leduc(players: int = 2) -> Rules:
    """Leduc hold'em (Southey et al., 2005)."""
    cards = 2 * (players + 1)

    def rules(history: History) -> Chance | Decision | End:
        if len(history) < players:
            return dealt(cards, history, history)
        hands, rest = history[:players], history[players:]
        paid, folded = [1] * players, [False] * players
        common = None
        for betting in (0, 1):
            stake, raises, waiting, player = max(paid), 0, players - sum(folded), 0
            moves = 0
            while waiting:
                while folded[player % players]:
                    player += 1
                player %= players
                if moves == len(rest):
                    actions = [FOLD] * (stake > paid[player]) + [CALL] + [RAISE] * (raises < 2)
                    return Decision(player, (hands[player], history[players:]), actions)
                move, moves, waiting = rest[moves], moves + 1, waiting - 1
                if move == FOLD:
                    folded[player] = True
                    if sum(folded) == players - 1:
                        return End(shares(paid, [not out for out in folded]))
                elif move == CALL:
                    paid[player] = stake
                else:
                    stake, raises = stake + 2 * (betting + 1), raises + 1
                    paid[player], waiting = stake, players - sum(folded) - 1
                player += 1
            rest = rest[moves:]
            if betting == 0:
                if not rest:
                    return dealt(cards, history, hands)
                common, rest = rest[0] // 2, rest[1:]
        strength = [
            -1 if out else (hand // 2 == common) * cards + hand // 2 for hand, out in zip(hands, folded, strict=True)
        ]
        return End(shares(paid, [s == max(strength) for s in strength]))

    return rules


def shares(paid: list[int], wins: list[bool]) -> list[float]:
    """What everybody gets: the pot is shared by those who win."""
    return [sum(paid) / sum(wins) * won - own for won, own in zip(wins, paid, strict=True)]
