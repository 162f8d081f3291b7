"""Who is the best of a search in the end, of candidates that have not all been evaluated equally often.

rule(history) -> Candidate, or None if nobody is valid
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import Field

from evolvent.search.candidate import Candidate
from evolvent.search.parents import own_trials

Final = Callable[[Sequence[Candidate]], Candidate | None]


def highest(history: Sequence[Candidate]) -> Candidate | None:
    """The highest value of those that were evaluated wholly, the first of equals."""
    whole = (c for c in history if c.valid and c.evaluation.complete)
    return max(whole, key=lambda c: c.merit, default=None)


def latest(history: Sequence[Candidate]) -> Candidate | None:
    """Whoever came last: of searches that go on from what they have, whatever it is worth."""
    return history[-1] if history else None


def surest(history: Sequence[Candidate], *, epsilon: Annotated[float, Field(gt=0, lt=1)] = 0.05) -> Candidate | None:
    """argmax of the epsilon-quantile of Beta(1 + S, 1 + F), with the successes and failures of the candidate itself
    (HGM, arXiv 2510.21614), the first of equals.

    The paper's epsilon is not known to us, and its released code ends without choosing.
    """
    from scipy.stats import beta

    valid = [c for c in history if c.valid]
    if not valid:
        return None
    trials = [own_trials(c, None) for c in valid]
    worth = beta.ppf(epsilon, [1 + s for s, _ in trials], [1 + f for _, f in trials])
    return valid[int(worth.argmax())]
