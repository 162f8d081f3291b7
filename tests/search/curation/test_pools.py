"""Both pools: issues without repeats, strategies by category, and what the judge said of one."""

from __future__ import annotations

from typing import Any

from evolvent.search.candidate import PROGRAM, Candidate
from evolvent.search.curation.pools import Experience, alike, assembled, best, diagnosed, generation, strategies
from evolvent.search.segments import segments
from evolvent.tasks.evaluation import INSTANCE, Evaluation, invalid
from evolvent.tasks.worlds.curation.library import FILTER, SEED
from evolvent.tasks.worlds.curation.texts import CATEGORIES


def candidate(uid: int, category: str, number: int, score: float | None, text: str = SEED) -> Candidate:
    scores = {f"{INSTANCE}train-{c}": 2.0 for c in CATEGORIES}
    if category:
        scores[f"{INSTANCE}train-{category}"] = score or 0.0
    evaluation = invalid("it failed") if score is None else Evaluation(sum(scores.values()) / 4, scores)
    notes: dict[str, Any] = {"category": category, "generation": number} if category else {}
    return Candidate(uid, {PROGRAM: text}, evaluation, (0,) if category else (), "address", notes=notes)


def test_issues_are_kept_without_repeats() -> None:
    pool = Experience()
    assert pool.add("boilerplate", "Page 1 of 12 - Annals of Testing")
    assert not pool.add("boilerplate", "Page 7 of 12 - Annals of Testing")  # the same form
    assert not pool.add("boilerplate", "Page 3 - Annals of Testing, new series")  # 4 of 7 words are common
    assert pool.add("boilerplate", "We use cookies")
    assert pool.add("promotion", "We use cookies")  # another kind
    assert [(i.kind, i.count, len(i.examples)) for i in pool.issues] == [
        ("boilerplate", 3, 3),
        ("boilerplate", 1, 1),
        ("promotion", 1, 1),
    ]
    assert not pool.add("boilerplate", "Page 9 of 12 - Annals of Testing")
    assert len(pool.issues[0].examples) == 3  # of four
    assert Experience.of(pool.data()) == pool


def test_alike_is_the_share_of_common_words() -> None:
    assert alike("a1 b", "a22 b") == 1.0
    assert alike("one two three", "two three four") == 0.5
    assert alike("12", "<>") == 0.0


def test_strategies_of_a_category() -> None:
    history = [
        candidate(0, "", 0, 2.0),
        candidate(1, "prose", 1, 5.0),
        candidate(2, "code", 1, 4.0),
        candidate(3, "prose", 2, None),
        candidate(4, "prose", 3, 5.0),
    ]
    found = strategies(history, "prose")
    assert [(s.candidate.uid, s.generation, s.score) for s in found] == [(0, 0, 2.0), (1, 1, 5.0), (4, 3, 5.0)]
    assert best(found).candidate.uid == 1  # of equals the first
    assert [generation(history, c) for c in CATEGORIES] == [3, 1, 0, 0]  # also one that failed was a generation


def test_a_program_is_assembled_of_strategies() -> None:
    seed, other = candidate(0, "", 0, 2.0), candidate(1, "tables", 1, 5.0, FILTER)
    chosen = {c: best(strategies([seed], c)) for c in CATEGORIES} | {"tables": strategies([seed, other], "tables")[1]}
    made = segments(assembled(chosen))
    assert made == [*segments(SEED)[:2], segments(FILTER)[2], segments(SEED)[3]]


def test_the_diagnosis_is_that_of_the_category() -> None:
    told = (
        "prose: 0% of the noise is gone, 90% of the content is there\nleft of cut: 100%, such as: a...\n"
        "code: 5% of the noise is gone, 50% of the content is there\nleft of markup: 40%, such as: <em>\n"
        "lost of short lines: 25%, such as: else:"
    )
    made = Candidate(1, {PROGRAM: SEED}, Evaluation(1.0, {}, told))
    assert diagnosed(made, "prose") == {"cut": 1.0}
    assert diagnosed(made, "code") == {"markup": 0.4, "lost short lines": 0.25}
    assert diagnosed(made, "tables") == {}
