"""A second look at programs that are like others, by a model behind a real endpoint on loopback."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.loopback import Scripted, asking

from evolvent.core.errors import UserError
from evolvent.run.result import Result
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec

NEARLY = "<<<<<<< SEARCH\n    x = 1.0\n=======\n    x = 1.0 * 1.5\n>>>>>>> REPLACE"
OTHER = "<<<<<<< SEARCH\n    x = 1.0\n    y = 1.0\n=======\n    x, y = 3.0, min(-1.0, 0.0)\n>>>>>>> REPLACE"
ONLY = {"rollout.write.kinds.diff": "1", "rollout.write.kinds.rewrite": "0", "rollout.write.kinds.cross": "0"}


def run(folder: Path, task: str, written: list[str], verdict: str, **settings: str) -> tuple[Result, list[str]]:
    """The seed program and one child of shinka-evolve, whose threshold is low; what the judge was asked."""
    answers = iter(written)
    act, questions = asking("NEW or the word SAME", verdict, lambda: next(answers))
    with Scripted(act) as server:
        fixed = {"rollout.write.novel.threshold": "0.9", "engine.concurrency": "1", **ONLY}
        spec = RunSpec("shinka-evolve", task, f"{server.url}#m", "2 steps", settings={**fixed, **settings})
        return begin(spec, folder, logs=("jsonl",)), questions


@pytest.mark.parametrize("verdict", ["SAME: only a number differs.", "Not new, it is the same.", "I cannot say."])
def test_what_is_the_same_is_written_anew(tmp_path: Path, task: str, verdict: str) -> None:
    result, questions = run(tmp_path / "runs", task, [NEARLY, OTHER], verdict, **{"rollout.write.attempts": "2"})
    assert result.view.candidates[1]["evaluation"]["value"] == pytest.approx(0.0)
    assert "x = 1.0\n" in questions[0]
    assert "x = 1.0 * 1.5" in questions[0]
    asked = result.view.curve("asked")[-1][1]
    rejected = len(questions)
    assert (asked, rejected) == (2, 1)
    assert result.view.curve("rejected")[-1][1] == pytest.approx(1 / 2)
    assert result.view.curve("passed")[-1][1] == 0


@pytest.mark.parametrize("verdict", ["NEW: it multiplies.", "**New**, it multiplies.", "error"])
def test_what_is_new_after_all_is_evaluated(tmp_path: Path, task: str, verdict: str) -> None:
    result, questions = run(tmp_path / "runs", task, [NEARLY], verdict)
    assert result.view.candidates[1]["evaluation"]["value"] == pytest.approx(-6.25)
    assert len(questions) == 1
    assert result.view.curve("rejected")[-1][1] == 0
    assert result.view.curve("passed")[-1][1] == 1


def test_switched_off_nobody_is_asked(tmp_path: Path, task: str) -> None:
    off = {"rollout.write.judge": "evolvent.search.novelty_judge:nobody"}
    result, questions = run(tmp_path / "runs", task, [NEARLY, OTHER], "NEW", **off)
    assert not questions
    assert result.view.candidates[1]["evaluation"]["value"] == pytest.approx(0.0)
    assert result.view.curve("rejected")[-1][1] == pytest.approx(1 / 2)


def test_a_prompt_that_cannot_be_read_is_refused(tmp_path: Path, task: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "novelty.md").write_text("{% if %}")
    settings = {"rollout.write.judge.prompts": str(tmp_path / "mine")}
    with pytest.raises(UserError, match=r"novelty\.md in .* cannot be used"):
        run(tmp_path / "runs", task, [NEARLY], "NEW", **settings)
