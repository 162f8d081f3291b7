"""The documents, what statistics find wrong with them, and how far that is the truth."""

from __future__ import annotations

from collections import Counter

import pytest

from evolvent.core.random import stream
from evolvent.tasks.worlds.curation.corpus import SIZES, documents, sample
from evolvent.tasks.worlds.curation.issues import KINDS, Survey, form, observe, promotes, read, repaired, survey
from evolvent.tasks.worlds.curation.noise import SPAM, mojibake, noisy, offer, spam
from evolvent.tasks.worlds.curation.texts import CATEGORIES, PEOPLE, UNITS, document

MET = {
    "prose": {"spam", "mojibake", "boilerplate", "promotion", "cut"},
    "code": {"spam", "markup", "entities", "boilerplate", "promotion"},
    "tables": {"spam", "mojibake", "boilerplate", "repeats"},
    "dialogue": {"spam", "stamps", "markup", "boilerplate", "promotion", "repeats"},
}


@pytest.mark.parametrize("category", CATEGORIES)
def test_no_document_is_in_two_splits(category: str) -> None:
    clean = [documents(category, split).clean for split in SIZES]
    assert [len(x) for x in clean] == list(SIZES.values())
    assert len({text for texts in clean for text in texts}) == sum(SIZES.values())
    trained, tested = documents(category, "train").raw, documents(category, "test").raw
    wanted = {text for text in trained if not promotes(text.split("\n")[0])}
    assert not wanted & set(tested)


@pytest.mark.parametrize("category", CATEGORIES)
def test_what_statistics_call_content_is_nearly_what_the_documents_were(category: str) -> None:
    d = documents(category, "train")
    found: set[str] = set()
    spams = same = mine = theirs = 0
    for raw, clean in zip(d.raw, d.clean, strict=True):
        reading = read(raw, d.about)
        found |= set(reading.noise)
        if set(reading.noise) == {"spam"}:
            assert all(promotes(line) for line in raw.split("\n"))
            assert reading.content == ""
            spams += 1
            continue
        a, b = Counter(reading.content.split("\n")), Counter(clean.split("\n"))
        same, mine, theirs = same + (a & b).total(), mine + a.total(), theirs + b.total()
    assert found == MET[category]
    assert abs(spams - SPAM * len(d.raw)) < 12
    assert same / mine > 0.97  # of the lines that are left nearly all were there
    assert same / theirs > 0.97


@pytest.mark.parametrize("word", [*PEOPLE, *UNITS, "“Nobody asked,”", "± 0.3"])
def test_mojibake_is_turned_back(word: str) -> None:
    wrong = mojibake(word)
    reading = read(wrong, Survey(frozenset(), frozenset()))
    assert reading.content == word
    assert (wrong == word) == ("mojibake" not in reading.noise)


def test_what_is_no_mojibake_stays() -> None:
    assert repaired("é") == "é"
    assert read("Zoë paid 3 £ in São Tomé", Survey(frozenset(), frozenset())).noise == {}


def test_tags_are_those_that_are_closed_somewhere() -> None:
    text = "x: List<int> = <em>3</em>"
    assert read(text, survey([text])).content == "x: List<int> = 3"
    assert read(text, survey(["nothing"])).content == text


def test_single_rules() -> None:
    about = survey(["We use cookies on page 1 of ours", "We use cookies on page 2 of ours"] * 2)
    assert about.boilerplate == {"We use cookies on page 0 of ours"}
    text = (
        "[00:01:02] A: Yes.\n[00:01:05] A: Well then.\n[00:01:09] A: Well then.\n[00:02:00] it breaks o... Read more »"
    )
    reading = read(text, about)
    assert reading.content == "A: Yes.\nA: Well then."
    assert {k: len(v) for k, v in reading.noise.items()} == {"stamps": 4, "repeats": 1, "cut": 1}
    assert read("at 10:30 he came\nand went", about).noise == {}  # not most lines have one
    assert read("if a &lt; b:", about).content == "if a < b:"


def test_rows_and_code_are_no_boilerplate() -> None:
    rows = survey(["| glass-1 | 2.0 | 3 |", "| glass-2 | 4.0 | 5 |"] * 5)
    assert rows.boilerplate == frozenset()
    assert not any(
        line.startswith(("|", "    ")) for c in CATEGORIES for line in documents(c, "train").about.boilerplate
    )


def test_observing_a_small_sample_finds_a_part() -> None:
    texts = sample("code", "train", 3, 6)
    issues = observe(texts)
    assert {kind for kind, _ in issues} <= MET["code"]
    assert all(any(example in text for text in texts) for kind, example in issues if kind != "boilerplate")
    assert max(Counter(kind for kind, _ in issues).values()) <= 3
    assert len({(kind, form(example)) for kind, example in issues}) == len(issues)
    assert [KINDS.index(kind) for kind, _ in issues] == sorted(KINDS.index(kind) for kind, _ in issues)


def test_samples_are_drawn_without_replacement_and_again_the_same() -> None:
    first, second = sample("prose", "train", 1), sample("prose", "train", 2)
    assert len(first) == len(second) == 48
    assert set(first) != set(second)
    assert set(first) <= set(documents("prose", "train").raw)
    assert sample("prose", "train", 1) == first


def test_noise_is_of_its_category() -> None:
    rng = stream(3, "noise")
    clean = document("code", rng)
    assert "&lt;" in "".join(noisy("code", clean, rng) for _ in range(9))
    assert promotes(offer(rng))
    assert all(promotes(line) for line in spam(rng).split("\n"))
