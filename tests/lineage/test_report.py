"""The report: one file that needs nothing else, made from the store alone, in which nobody's text becomes markup."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.cli.finished import copy_of_runs, store_with_runs
from tests.run.lives import live, view_of
from tests.run.test_resume import again

from evolvent.bench.statistics import pass_at
from evolvent.lineage import report
from evolvent.lineage.report import render, write_report
from evolvent.lineage.rollback import go_back
from evolvent.lineage.store import Store

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Page(HTMLParser):
    """Tags in balance, and what could load something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.tags: set[str] = set()
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loads += [
            f"{tag} {k}"
            for k, to in attrs
            if k in ("src", "href", "srcset", "data", "action") or k.startswith("on")
            if not (k == "href" and str(to).startswith("#"))  # that leads to a place in the page
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def page() -> str:
    return render(view_of(store_with_runs(), "other"))


def test_it_is_well_formed_and_loads_nothing(page: str) -> None:
    found = Page(page)
    assert found.loads == []
    assert found.tags.isdisjoint({"script", "iframe", "object", "embed", "link", "img", "form", "base"})
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page


def test_it_says_what_the_store_knows(page: str) -> None:
    view = view_of(store_with_runs(), "other")
    text = re.sub(r"\s+", " ", " ".join(Page(page).text))
    greedy = view.evaluations["evolved"]["evaluation"]["greedy"]
    assert f"{100 * greedy['mean']:.1f} % [{100 * greedy['low']:.1f}, {100 * greedy['high']:.1f}]" in text
    for word in ("refused", "gate.tolerance", "arXiv 2402.03300", "tokens sampled", "evolvent resume other"):
        assert word in text or word in page, word
    assert view.command.split(" --")[0] in text
    for stage in ("rollout", "learn", "gate"):
        assert f"{stage} " in text
    assert page.count("<svg") >= 8
    assert 'class="tool"' in page  # what the calculator replied
    assert "arith:2x2" in text  # what was forgotten


def test_it_is_made_from_the_store_alone(tmp_path: Path, page: str) -> None:
    """No checkpoint, no objects, no log: the events suffice."""
    store = Store(copy_of_runs(tmp_path))
    shutil.rmtree(store.root / "objects")
    shutil.rmtree(store.root / "other")
    path = write_report(store, "other")
    assert path == store.root / "other/report.html"
    assert path.read_text() == page
    assert write_report(store, "other", tmp_path / "elsewhere.html").read_text() == path.read_text()


NASTY = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7*7 }}\x00\x1b[31m\u202e\ud800</bdi>"


def test_texts_of_models_and_users_stay_text(tmp_path: Path) -> None:
    view = view_of(store_with_runs(), "other")
    told = {"turns": [["policy", NASTY], ["tool", NASTY]], "outcome": 0.5, "answer": NASTY}
    told |= {"tokens": 3, "stop": NASTY, "error": NASTY}
    shown = {"key": "k", "category": NASTY, "prompt": [["user", NASTY]], "greedy": told, "sampled": [told]}
    view.samples = {"start": [shown], "evolved": [shown]}
    view.errors, view.notes, view.command = {NASTY: 3}, [NASTY], NASTY
    view.spec = {**view.spec, "model": NASTY, "task": NASTY}
    for step in view.steps.values():
        step["roles"] = {NASTY: {NASTY: float(step["t"]), **step["roles"][""]}}
    page = render(view)
    found = Page(page)
    assert found.loads == []
    assert found.tags.isdisjoint({"script", "img"})
    assert "{{ 7*7 }}" in "".join(found.text)
    assert "\x00" not in page
    assert "\x1b" not in page
    (tmp_path / "page.html").write_text(page, encoding="utf-8", errors="replace")


@pytest.mark.parametrize("missing", ["steps", "evaluations", "start only", "everything"])
def test_unfinished_runs_have_a_report_too(missing: str) -> None:
    view = view_of(store_with_runs(), "run")
    if missing in ("steps", "everything"):
        view.steps = {}
    if missing in ("evaluations", "everything"):
        view.evaluations, view.samples, view.measured = {}, {}, {}
    if missing == "start only":
        del view.evaluations["evolved"], view.samples["evolved"], view.measured["evolved"]
    if missing == "everything":
        view.versions, view.recipe, view.environment, view.head = [], {}, {}, None
    page = render(view)
    Page(page)
    assert ("nothing is claimed here" in page) == (missing != "steps")


def test_the_verdict_claims_only_what_the_interval_allows() -> None:
    view = view_of(store_with_runs(), "run")

    def told(before: list[float], after: list[float]) -> dict[str, str]:
        for name, values in (("start", before), ("evolved", after)):
            problems = {"key": [str(i) for i in range(len(values))], "greedy": values, "mean": values}
            view.evaluations[name] = {**view.evaluations[name], "problems": problems}
        found = report.verdict(view)
        assert found is not None
        return found

    half = [0.0, 1.0] * 50
    assert told(half, half)["kind"] == "open"
    assert told(half, [1.0] * 100)["kind"] == "better"
    assert told([1.0] * 100, half)["kind"] == "worse"
    one_more = [1.0, *half[1:]]
    assert told(half, one_more)["kind"] == "open"
    assert "cannot be told from no change" in told(half, one_more)["text"]


def test_pass_at_k_agrees_with_its_definition() -> None:
    """By counting all ways to choose k of n samples."""
    from itertools import combinations

    for right, tried, k in ((0, 5, 2), (1, 5, 2), (3, 5, 2), (5, 5, 3), (2, 6, 6)):
        samples = [1] * right + [0] * (tried - right)
        ways = [any(c) for c in combinations(samples, k)]
        assert pass_at(k, [right], tried) == pytest.approx(sum(ways) / len(ways))


def test_a_rollback_is_marked(tmp_path: Path) -> None:
    store = Store(copy_of_runs(tmp_path))
    go_back(store, "run", 0)
    assert live([*again(store.root), "--budget", "8 steps"]).code == 0
    page = render(view_of(store.root, "run"))
    assert "back to version 0" in page
    assert "Rolled back from version" in page


def test_what_is_recorded_stays_small() -> None:
    """A page of a run, and the events that it is made of, can be kept for ever."""
    store = Store(store_with_runs())
    size = sum(len(json.dumps(e.data)) for e in store.events("other") if e.kind in ("samples", "evaluation", "created"))
    assert size < 100_000
    assert len(render(view_of(store.root, "other"))) < 300_000
