"""The tree of descent: everybody, or the best with all who came before them; the way to each is there."""

from __future__ import annotations

import hashlib
import html
import random
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_runs import call
from tests.lineage.test_descent import SEARCH, made, partly, view
from tests.lineage.test_report import NASTY, Page
from tests.loopback import Scripted, chat_reply

from evolvent.core.secrets import redact
from evolvent.lineage import report
from evolvent.lineage.report import render
from evolvent.lineage.runs import RunView
from evolvent.lineage.tree import MOST, REASON_LINES, REASON_SIZE, SIZE, Tree, room_for, shortened, tree_of

USELESS = """Better, as a diff and as a whole.

<<<<<<< SEARCH
y = 2.0
=======
y = 3.0
>>>>>>> REPLACE

```python
def point():
    x = nothing
    return x
```
"""
EVALUATOR = """
def evaluate(program_path):
    space = {}
    exec(open(program_path).read(), space)
    return float(space["point"]())
"""


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


def failing(uid: int, status: str, feedback: str, text: str = "") -> dict[str, Any]:
    """A child of the first one without a value."""
    found = made(uid, None, [0], "model", text)
    found["evaluation"] |= {"status": status, "feedback": feedback}
    return found


def boxes(page: str) -> dict[int, str]:
    """What the page has of each candidate, by number."""
    found = re.finditer(r'<details class="node[^"]*" id="c(\d+)".*?</details>', page, re.DOTALL)
    return {int(box[1]): box[0] for box in found}


def test_an_answer_without_a_program_has_its_reason_and_no_diff() -> None:
    why = "diff 1 of 1: the search text <b> matches nowhere"
    tree = tree_of(view(made(0, 1.0, [], "seed", "x = 1\ny = 1"), failing(1, "unusable", why)))
    assert [(n.lines, n.reason) for n in tree.nodes[1:]] == [([], why)]
    nobody = failing(1, "unusable", why)
    box = boxes(render(view(made(0, 1.0, [], "seed", "x = 1\ny = 1"), {**nobody, "payload": {}})))[1]
    assert '<pre class="why">diff 1 of 1: the search text &lt;b&gt; matches nowhere</pre>' in box
    assert box.count("<pre") == 1
    assert "<del>" not in box


def test_who_has_no_value_has_its_reason_beside_the_diff() -> None:
    seed = made(0, 1.0, [], "seed", "x = 1\ny = 1")
    seed["evaluation"]["feedback"] = "all is well"  # which is no reason
    page = render(view(seed, failing(1, "raised", "line 2: NameError", "x = 1\ny = z"), failing(2, "timeout", "")))
    assert '<pre class="why">line 2: NameError</pre>' in boxes(page)[1]
    assert "<ins>+y = z</ins>" in boxes(page)[1]
    assert "<del>-x = 1</del>" in boxes(page)[2]  # an empty program that ran is one
    assert "all is well" not in page
    assert page.count('class="why"') == 1


def test_reasons_are_shortened() -> None:
    told = [f"line {i}" for i in range(100)]
    seed = made(0, 1.0, [], "seed", "x")
    many, wide = failing(1, "raised", "\n".join(told)), failing(2, "raised", "x" * 100_000)
    reasons = {n.uid: n.reason for n in tree_of(view(seed, many, wide, failing(3, "raised", " short\n"))).nodes}
    assert reasons == {0: "", 1: "\n".join(told[:REASON_LINES]) + " ...", 2: "x" * REASON_SIZE + " ...", 3: "short"}


def test_the_report_of_a_search_says_why_answers_were_of_no_use(
    tmp_path: Path, sandboxed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model whose diffs match nowhere, and whose programs raise, in a search as a user begins it."""
    (tmp_path / "evaluator.py").write_text(EVALUATOR)
    (tmp_path / "program.py").write_text("def point():\n    x = 1.0\n    return x\n")
    with Scripted(lambda a: a.say(chat_reply(USELESS))) as server:
        task = "--task", tmp_path / "evaluator.py", "--seed-program", tmp_path / "program.py"
        how = "--model", f"{server.url}#m", "--budget", "3 steps", "--set", "propose.children=2", "--no-final"
        call(capsys, "run", "random-search", *task, *how, "--name", "one", "--store", tmp_path / "runs")
    page = (tmp_path / "runs/one/report.html").read_text()
    assert Page(page).loads == []
    found = [html.unescape(box) for box in boxes(page).values()]
    useless = [box for box in found if ">unusable<" in box]
    raised = [box for box in found if ">raised<" in box]
    assert useless
    assert raised
    assert all("the search text matches nowhere" in box and "<del>" not in box for box in useless)
    assert all("NameError" in box and "<ins>+    x = nothing</ins>" in box for box in raised)


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
    worse["evaluation"] |= {"status": NASTY, "feedback": NASTY}
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
