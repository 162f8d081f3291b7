"""Segments of a program: read, replaced, varied and crossed one at a time, with changes carried from one to another."""

from __future__ import annotations

import numpy as np

from evolvent.search.candidate import Candidate
from evolvent.search.segments import ancestry, carried, crossed, differing, mutated, segments, with_segment
from evolvent.search.variation.blocks import same_outside
from evolvent.tasks.evaluation import Evaluation

SOURCE = """import math

# EVOLVE-BLOCK-START
def first(x):
    y = x * 2
    return y
# EVOLVE-BLOCK-END


class Fixed:
    # EVOLVE-BLOCK-START
    def second(self, x):
        rate = 0.5
        x = x + rate
        return x
    # EVOLVE-BLOCK-END


def run():
    return Fixed().second(first(1))
"""
SECOND = "def second(self, x):\n    rate = 0.5\n    x = x + rate\n    return x"


def test_segments_are_the_blocks() -> None:
    assert segments(SOURCE) == ["def first(x):\n    y = x * 2\n    return y", SECOND]
    assert segments("a = 1\n") == ["a = 1"]
    for place, text in enumerate(segments(SOURCE)):
        assert with_segment(SOURCE, place, text) == SOURCE
    other = with_segment(SOURCE, 1, SECOND.replace("0.5", "0.7"))
    assert other == SOURCE.replace("0.5", "0.7")
    assert differing(SOURCE, other) == [1]
    assert differing(SOURCE, "a = 1\n") == []


def test_only_the_chosen_segment_is_varied() -> None:
    for place in (0, 1):
        found = set()
        for seed in range(30):
            made = mutated(SOURCE, place, np.random.default_rng(seed), ("y = x + 1", "rate = 0.1"))
            if made is None:
                continue
            text, operator = made
            assert operator != "none"
            assert same_outside(SOURCE, text)
            assert differing(SOURCE, text) == [place]
            found.add(text)
        assert len(found) > 10


def test_crossing_takes_from_the_like_segment_only() -> None:
    first, second = segments(SOURCE)
    mate = with_segment(SOURCE, 0, first.replace("* 2", "* 77"))
    mate = with_segment(mate, 1, second.replace("0.5", "0.99"))
    for place, own, others in ((0, "77", "0.99"), (1, "0.99", "77")):
        made = {crossed(SOURCE, mate, place, np.random.default_rng(seed)) for seed in range(20)} - {None}
        assert any(own in text for text in made if text)
        assert not any(others in text for text in made if text)
        assert all(differing(SOURCE, text) == [place] for text in made if text)


def test_a_change_is_carried_to_another_version() -> None:
    better = SECOND.replace("rate = 0.5", "rate = 0.1\n    rate = rate / 2")
    assert carried(SOURCE, 1, SECOND, better) == with_segment(SOURCE, 1, better)
    own = with_segment(SOURCE, 1, SECOND.replace("x = x + rate", "x = x - rate"))
    both = better.replace("x = x + rate", "x = x - rate")
    assert carried(own, 1, SECOND, both.replace("x - rate", "x + rate")) == with_segment(SOURCE, 1, both)
    added = SECOND.replace("    return x", "    x = x * x\n    return x")
    assert carried(own, 1, SECOND, added) == with_segment(
        own, 1, segments(own)[1].replace("return x", "x = x * x\n    return x")
    )
    gone = SECOND.replace("    x = x + rate\n", "")
    assert carried(SOURCE, 1, SECOND, gone) == with_segment(SOURCE, 1, gone)


def test_what_has_no_place_is_not_carried() -> None:
    own = with_segment(SOURCE, 1, "def second(self, x):\n    return -x")
    assert carried(own, 1, SECOND, SECOND.replace("0.5", "0.1")) is None  # its line is not there
    better = SECOND.replace("x + rate", "x * rate")
    assert carried(with_segment(SOURCE, 1, better), 1, SECOND, better) is None  # it is so already
    assert carried(SOURCE, 1, SECOND, SECOND.replace("x + rate", "x + unknown")) is None  # it would not be sound


def test_ancestry_by_segment() -> None:
    first, second = segments(SOURCE)
    one = with_segment(SOURCE, 0, first.replace("2", "3"))
    two = with_segment(one, 1, second.replace("0.5", "0.7"))
    three = with_segment(two, 0, first.replace("2", "4"))
    texts = [(SOURCE, ()), (one, (0,)), (SOURCE, (0,)), (two, (1, 2)), (three, (3,))]
    history = [Candidate(i, {"program": text}, Evaluation(0.0), parents) for i, (text, parents) in enumerate(texts)]
    assert [[c.uid for c in line] for line in ancestry(history[4], history)] == [[1, 4], [3]]
    assert ancestry(history[0], history) == [[], []]
