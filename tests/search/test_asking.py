"""Prompts from files: what of a user's own is refused at the start, and how it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolvent.core.errors import UserError
from evolvent.search.asking import PROMPTS, Prompts
from evolvent.search.candidate import Candidate
from evolvent.tasks.evaluation import Evaluation

SHIPPED = sorted(str(p.relative_to(PROMPTS).with_suffix("")) for p in PROMPTS.rglob("*.md"))


def mine(folder: Path, **files: str) -> Prompts:
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text)
    return Prompts(str(folder))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_copy_of_a_prompt_is_fine(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.md").parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / f"{name}.md").write_text((PROMPTS / f"{name}.md").read_text())
    Prompts(str(tmp_path)).check([name])


@pytest.mark.parametrize(
    "text",
    [
        "{{ parent.text }}{% set mine = 3 %}{{ mine }}{% for i in range(3) %}{{ i }}{{ loop.index }}{% endfor %}",
        "{% for other in others %}{% set one = other %}{% include '_one.md' %}{% endfor %}",
        "no name at all",
    ],
)
def test_names_of_its_own(tmp_path: Path, text: str) -> None:
    mine(tmp_path, rewrite=text, _one="{{ one.text }}").check(["rewrite", "diff"])


@pytest.mark.parametrize("file", ["rewrite", "_program"])
def test_a_name_that_nobody_gives_is_told_at_the_start(tmp_path: Path, file: str) -> None:
    with pytest.raises(UserError, match=f"{file}.md: `parnet`; did you mean parent.*there are .*opening") as told:
        mine(tmp_path, **{file: "Better:\n{{ parnet.text }}"}).check(["rewrite", "diff"])
    assert "\n" not in str(told.value)
    assert str(tmp_path) in str(told.value)


@pytest.mark.parametrize("text", ["{% if %}", "{% include 'nowhere.md' %}", "{{ parent.text"])
def test_a_prompt_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match="the prompt rewrite.md in .* cannot be used .*; mend it, or leave it out"):
        mine(tmp_path, rewrite=text).check(["rewrite"])


def test_a_prompt_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "rewrite.md").write_bytes(b"Gr\xfc\xdfe")
    with pytest.raises(UserError, match="cannot be used .*utf-8"):
        Prompts(str(tmp_path)).check(["rewrite"])


@pytest.mark.parametrize("text", ["{{ parent.txet }}", "{{ parent.evaluation.value // 0 }}", "{{ parent.text + 1 }}"])
def test_what_fails_later_is_told_too(tmp_path: Path, text: str) -> None:
    prompts = mine(tmp_path, rewrite=text)
    prompts.check(["rewrite"])
    parent = Candidate(0, {"program": "x = 1"}, Evaluation(1.0))
    with pytest.raises(UserError, match=r"the prompt rewrite.md in .* cannot be used \(.+\)"):
        prompts.render("rewrite", parent=parent)


def test_openings_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "openings.txt").write_text("{{ nothing }}")
    with pytest.raises(UserError, match="openings.txt in .* cannot be used"):
        Prompts(str(tmp_path)).lines("openings")
