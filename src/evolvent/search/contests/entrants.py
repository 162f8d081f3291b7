"""Who takes part in the next contest: the rules of RoboPhD (arXiv 2601.01126, and its published code).

Only those who took part in contests are chosen here; a new agent has a place in the first contest after its birth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evolvent.search.contests.ratings import Contest

Known = Sequence[int]  # uids of valid agents that took part in some contest


def unconfirmed(contests: Sequence[Contest], known: Known, ratings: Mapping[int, float]) -> list[int]:
    """Who won a contest and has been in none since; the latest first, of these the highest rated."""
    last = {uid: i for i, contest in enumerate(contests) for uid in contest}
    winners: dict[int, int] = {}
    for i, contest in enumerate(contests):
        top = max(contest.values())
        winners |= {uid: i for uid, accuracy in contest.items() if accuracy == top}
    found = [uid for uid in known if winners.get(uid) == last.get(uid, -1)]
    return sorted(found, key=lambda uid: (-winners[uid], -ratings[uid], uid))


def incumbents(
    contests: Sequence[Contest], known: Known, ratings: Mapping[int, float], places: int, rng: np.random.Generator
) -> list[int]:
    """Unconfirmed winners; places that are left go to some of the best 2 * places by rating, evenly drawn."""
    chosen = unconfirmed(contests, known, ratings)[:places]
    left = places - len(chosen)
    best = sorted((uid for uid in known if uid not in chosen), key=lambda uid: (-ratings[uid], uid))[: 2 * left]
    return [*chosen, *(best[i] for i in rng.permutation(len(best))[:left].tolist())]


def challengers(
    contests: Sequence[Contest],
    known: Known,
    ratings: Mapping[int, float],
    places: int,
    above: float,
    rng: np.random.Generator,
) -> list[int]:
    """Whose rating is above a bound, those with the fewest contests first, drawn among equals, without unconfirmed
    winners, who only fill up what is left."""
    waiting = unconfirmed(contests, known, ratings)
    counts = {uid: sum(uid in contest for contest in contests) for uid in known}
    able = [uid for uid in known if uid not in waiting and ratings[uid] > above]
    drawn = [able[i] for i in rng.permutation(len(able)).tolist()]
    return [*sorted(drawn, key=lambda uid: counts[uid]), *waiting][:places]
