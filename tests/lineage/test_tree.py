"""The tree of descent: everybody, or the best with all who came before them; the way to each is there."""

from __future__ import annotations

import hashlib
import random
import re
from base64 import b64encode

import pytest
from tests.lineage.test_descent import SEARCH, made, partly, view
from tests.lineage.test_report import NASTY, Page

from evolvent.core.secrets import redact
from evolvent.lineage import report
from evolvent.lineage.report import render
from evolvent.lineage.runs import RunView
from evolvent.lineage.tree import MOST, SIZE, Tree, room_for, shortened, tree_of


def rows(tree: Tree) -> list[tuple[int, int | None, int, bool]]:
    return [(n.uid, n.parent, n.indent, n.best) for n in tree.nodes]


def ways(page: str) -> dict[int, list[int]]:
    """From the page alone: the numbers on the way to each candidate, as its script follows them."""
    found = dict(re.findall(r'<details class="node[^"]*" id="c(\d+)"(?: data-parent="c(\d+)")?', page))
    lines = {}
    for uid in found:
        line = [uid]
        while found[line[-1]]:
            line.append(found[line[-1]])
        lines[int(uid)] = [int(u) for u in reversed(line)]
    return lines


def test_everybody_of_a_small_search() -> None:
    tree = tree_of(SEARCH)
    assert tree.best == 4
    assert tree.told == "All 6 candidates."
    assert rows(tree) == [  # what branches off comes before the way to the best goes on
        (0, None, 0, True),
        (1, 0, 1, False),
        (2, 0, 0, True),
        (3, 2, 1, False),
        (4, 2, 0, True),
        (5, 4, 1, False),
    ]
    assert [n.value for n in tree.nodes] == ["1", "ok", "3", "2", "5", "5"]  # `ok` is how the invalid one ended
    assert tree.nodes[2].beside == (1,)
    assert [text for mark, text in tree.nodes[4].lines if mark in "+-"] == ["-y = 1", "+y = <b>7"]
    assert [text for _, text in tree.nodes[0].lines] == ["x = 1", "y = 1"]  # a seed program is there as it is


def test_the_page_has_the_way_to_each_with_its_changes() -> None:
    page = render(SEARCH)
    assert ways(page) == {0: [0], 1: [0, 1], 2: [0, 2], 3: [0, 2, 3], 4: [0, 2, 4], 5: [0, 2, 4, 5]}
    boxes = re.split(r'<details class="node', page)
    own = next(box for box in boxes if 'id="c5"' in box)
    assert "<ins>+y = 7  # later</ins>" in own
    assert "<del>-y = &lt;b&gt;7</del>" in own


def grown(count: int, seed: int = 0, text: str = "") -> RunView:
    """Somebody after somebody, with values that nobody can foresee."""
    rng = random.Random(seed)
    found = [made(0, 0.5, [], "seed", "x = 0")]
    for uid in range(1, count):
        value = rng.random() if rng.random() < 0.7 else None
        found.append(made(uid, value, [rng.randrange(uid)], "tune", f"x = {uid}\n{text}"))
    return view(*found)


@pytest.mark.parametrize("seed", range(3))
def test_of_many_the_best_and_all_of_their_ancestors(seed: int) -> None:
    search = grown(3000, seed)
    tree = tree_of(search)
    shown = {n.uid for n in tree.nodes}
    values = {c["uid"]: c["evaluation"]["value"] for c in search.candidates.values()}
    best = sorted((u for u, v in values.items() if v is not None), key=lambda u: -values[u])[:MOST]
    expected = set(best)
    for uid in best:
        while search.candidates[uid]["parents"]:
            uid = search.candidates[uid]["parents"][0]
            expected.add(uid)
    assert shown == expected
    assert tree.told == f"The best 300 of 3,000, and all of their ancestors: {len(expected):,} candidates."
    seen: set[int] = set()
    for node in tree.nodes:
        assert node.parent is None or node.parent in seen  # parents stand before their children
        seen.add(node.uid)
    assert tree.best == best[0]
    assert all(n.indent == 0 for n in tree.nodes if n.best)
    assert len(render(search)) < 300_000


def test_long_texts_are_bounded() -> None:
    """Four kilobytes of change each: those on the way to the best are whole as long as they fit into a half."""
    search = grown(400)
    for uid, c in search.candidates.items():
        c["payload"]["program"] = "\n".join(f"line {uid} {i} " + "x" * 40 for i in range(40))
    tree = tree_of(search, size=200_000)
    assert len(tree.nodes) > MOST
    assert sum(len(text) for n in tree.nodes for _, text in n.lines) <= 200_000
    assert {n.cut > 0 for n in tree.nodes if n.best} == {False}
    assert {n.cut > 0 for n in tree.nodes if not n.best} == {True}


def test_the_page_says_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Lines left out" not in render(SEARCH)
    monkeypatch.setattr(report, "tree_of", lambda view: tree_of(view, size=8))
    assert "Lines left out or shortened: 2." in render(SEARCH)  # of the seed program both, for a single character each


def test_room_is_shared_out_so_that_short_changes_stay_whole() -> None:
    assert room_for([5, 1, 9], 100) == 9
    assert room_for([5, 1, 9], 11) == 5  # 1 + 5 + 5
    assert room_for([5, 1, 9], 9) == 4  # 1 + 4 + 4
    assert room_for([5, 1, 9], 2) == 0
    assert room_for([], 2) == 0


def test_a_very_long_way_to_the_best_is_there_whole() -> None:
    """A chain of thousands: longer than Python recurses, and than a browser nests."""
    chain = [made(0, 0.0, [], "seed", "x")]
    for uid in range(1, 4000):
        chain.append(made(uid, float(uid), [uid - 1], "tune", "x\n" * 200 + str(uid)))
    tree = tree_of(view(*chain))
    assert [n.uid for n in tree.nodes] == list(range(4000))
    assert {n.indent for n in tree.nodes} == {0}
    assert sum(len(text) for n in tree.nodes for _, text in n.lines) <= SIZE


def test_changes_are_shortened_to_what_there_is_room_for() -> None:
    lines = [("+", "+abc"), ("-", "-defgh"), (" ", " i")]
    assert shortened(lines, 12) == (lines, 0)
    assert shortened(lines, 11) == ([("+", "+abc"), ("-", "-defgh"), (" ", " ")], 1)
    assert shortened(lines, 6) == ([("+", "+abc"), ("-", "-d")], 2)
    assert shortened(lines, 4) == ([("+", "+abc")], 2)


def test_nobody_valid_and_evaluated_in_part() -> None:
    nothing = view(made(0, None, [], "seed", "x"), made(1, None, [0], "tune", "y"))
    tree = tree_of(nothing)
    assert tree.best is None
    assert rows(tree) == [(0, None, 0, False), (1, 0, 1, False)]
    page = render(nothing)
    assert "None of 2 candidates is valid" in page
    assert "What the operators gave" in page
    part = view(partly(made(0, 0.3, [], "seed", "a")))
    assert [(n.value, n.note, n.failed) for n in tree_of(part).nodes] == [("0.3", "evaluated in part", False)]
    assert tree_of(RunView("one")).nodes == []


def test_several_seed_programs_are_several_trees() -> None:
    found = tree_of(view(made(0, 1.0, [], "seed", "a"), made(1, 3.0, [], "seed", "b"), made(2, 2.0, [0], "tune", "c")))
    assert rows(found) == [(1, None, 0, True), (0, None, 0, False), (2, 0, 1, False)]


def test_only_the_script_of_the_page_may_run() -> None:
    """Whatever candidates say stays text, and the page's policy names its one script by its hash."""
    nasty = made(1, 2.0, [0], NASTY, f"{NASTY}</pre></details><script>alert(3)</script>")
    nasty["notes"] = {"model": NASTY, "usd": 0.1}
    nasty["evaluation"]["status"] = NASTY
    worse = {**made(2, None, [0], NASTY, NASTY), "notes": {"model": NASTY}}
    worse["evaluation"]["status"] = NASTY
    page = render(view(made(0, 1.0, [], "seed", NASTY), nasty, worse))
    found = Page(page)
    assert found.loads == []
    assert found.tags.isdisjoint({"img", "iframe", "object", "embed", "link", "form", "base"})
    [script] = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert script == report.SCRIPT.read_text() == redact(script)
    policy = f"script-src 'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
    assert f"default-src 'none'; style-src 'unsafe-inline'; {policy}\"" in page
    assert "{{ 7*7 }}" in "".join(found.text)
    assert "\x1b" not in page
    assert "innerHTML" not in script


def test_the_script_knows_the_names_that_the_page_gives() -> None:
    page = render(SEARCH)
    script = report.SCRIPT.read_text()
    for name in re.findall(r'getElementById\("(\w+)"\)', script):
        assert page.count(f'id="{name}"') == 1 or name == "c", name
    assert 'data-best="c4"' in page
    assert page.count('href="#way-4"') >= 2  # its own, and that to the best
    assert 'href="#whole-tree"' in page
