"""What a model thinks of programs, over a real endpoint on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Scripted, asking

from evolvent.core.errors import UserError
from evolvent.run.result import Result
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec

LINE = "    x = 1.0"
SIMPLER = "    x = 2.0  # simpler"
ONLY = {"rollout.write.kinds.diff": "1", "rollout.write.kinds.rewrite": "0"}


def run(folder: Path, task: str, opinion: str, steps: int = 2, **settings: str) -> tuple[Result, list[str]]:
    """A search by alphaevolve in which every child is the same diff of the seed program; what was asked for."""
    diff = f"<<<<<<< SEARCH\n{LINE}\n=======\n{SIMPLER}\n>>>>>>> REPLACE"
    act, asked = asking("How simple is this program", opinion, lambda: diff)
    with Scripted(act) as server:
        spec = RunSpec("alphaevolve", task, f"{server.url}#m", f"{steps} steps", settings={**ONLY, **settings})
        return begin(spec, folder, logs=("jsonl",)), asked


def metrics(result: Result, uid: int) -> dict[str, Any]:
    return dict(result.view.candidates[uid]["evaluation"]["metrics"])


@pytest.mark.parametrize(("opinion", "mark"), [("7: plain enough.", 0.7), ("**2.5**, too many.", 0.25), ("10", 1.0)])
def test_an_opinion_becomes_a_metric(tmp_path: Path, task: str, opinion: str, mark: float) -> None:
    result, asked = run(tmp_path / "runs", task, opinion)
    assert [SIMPLER in prompt for prompt in asked] == [False, True]  # the seed program, then its child
    assert metrics(result, 0)["simplicity"] == metrics(result, 1)["simplicity"] == pytest.approx(mark)
    assert result.view.candidates[1]["evaluation"]["value"] == pytest.approx(-1.0 - 4.0)
    assert result.view.curve("opinions")[-1][1] == 1


@pytest.mark.parametrize("opinion", ["It is simple.", "11", "error"])
def test_without_a_mark_there_is_no_such_metric(tmp_path: Path, task: str, opinion: str) -> None:
    result, asked = run(tmp_path / "runs", task, opinion)
    assert len(asked) == 2
    assert "simplicity" not in metrics(result, 1)
    assert result.view.candidates[1]["evaluation"]["value"] == pytest.approx(-5.0)
    assert result.view.curve("opinions")[-1][1] == 0


def test_without_a_model_nobody_is_asked(tmp_path: Path, task: str) -> None:
    result = begin(RunSpec("alphaevolve", task, "none", "3 steps"), tmp_path / "runs", logs=("jsonl",))
    assert all("simplicity" not in metrics(result, uid) for uid in result.view.candidates)


def test_another_quality_by_a_prompt_of_ones_own(tmp_path: Path, task: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "opinion.md").write_text("How simple is this program? I mean how safe.\n{{ program }}")
    own = {"judge.opinion.metric": "safety", "judge.opinion.prompts": str(tmp_path / "mine")}
    result, asked = run(tmp_path / "runs", task, "4", **own)
    assert "I mean how safe" in asked[0]
    assert metrics(result, 1)["safety"] == pytest.approx(0.4)
    with pytest.raises(UserError, match="must have a name"):
        run(tmp_path / "other", task, "4", **{"judge.opinion.metric": ""})
