"""Targets that stand in prompts."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolvent.cli.main import main
from evolvent.run.assemble import assemble
from evolvent.run.leak import leaks, warnings
from evolvent.run.spec import RunSpec
from evolvent.tasks.worlds import WORLDS

EVALUATOR = """
TARGET_VALUE = 2.635  # AlphaEvolve, n = 26

def evaluate(program_path):
    scope = {}
    exec(open(program_path).read(), scope)
    return {"combined_score": scope["x"], "target_ratio": scope["x"] / TARGET_VALUE}
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("TARGET = 2.635", ["TARGET = 2.635"]),
        ('{"target_ratio": total / 2.635}', ['target_ratio": total / 2.635']),
        ("The state of the art is 1.5053.", ["state of the art is 1.5053"]),
        ("the best known value, 2.9365", ["best known value, 2.9365"]),
        ("pack 26 circles; sums of 2.6 are poor, 2.6358 would do", ["2.6358"]),
        ("within 1e-9, in a square of 1.0; a target of 0.5; best = 0.0; TIMEOUT = 12.25", []),
        ("on target.\nuse 3.14159", []),
    ],
)
def test_what_looks_like_a_target(text: str, found: list[str]) -> None:
    assert leaks(text, [2.6358627564]) == found


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_no_world_of_the_package_gives_its_target_away(name: str) -> None:
    made = assemble(RunSpec("hill-climbing", f"program:{name}", "simulated:skill=0.5", "3 evaluations"))
    assert warnings(made) == []


def test_a_model_is_warned_of_and_rules_are_not(tmp_path: Path) -> None:
    (tmp_path / "evaluator.py").write_text(EVALUATOR)
    (tmp_path / "program.py").write_text("x = 1.0\n")
    task = f"program:{tmp_path}/evaluator.py:{tmp_path}/program.py"
    (prompts := tmp_path / "prompts").mkdir()
    (prompts / "diff.md").write_text("Beat the record of 3.1415.\n{{ parent.text }}\n")
    for settings, count in (({}, 1), ({"rollout.write.prompts": str(prompts)}, 2)):
        made = assemble(RunSpec("alphaevolve", task, "simulated:skill=0.5", "3 evaluations", 0, settings))
        found = warnings(made)
        assert len(found) == count
        assert "TARGET_VALUE = 2.635" in found[0]
    assert "diff.md says `record of 3.1415`" in found[-1]
    assert warnings(assemble(RunSpec("hill-climbing", task, "none", "3 evaluations"))) == []


def test_the_command_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str], sandboxed: str) -> None:
    (tmp_path / "evaluator.py").write_text(EVALUATOR)
    (tmp_path / "program.py").write_text("x = 1.0\n")
    task = [f"--task={tmp_path}/evaluator.py", f"--seed-program={tmp_path}/program.py", f"--store={tmp_path}/runs"]
    with pytest.raises(SystemExit):
        main(["run", "random-search", *task, "--model=simulated:skill=0.5", "--budget=2 evaluations", "--quiet"])
    assert "says `TARGET_VALUE = 2.635`, which looks like the value to reach" in capsys.readouterr().err
