"""Results outside of bounds are not believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolvent.core.errors import UserError
from evolvent.run.assemble import assemble
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.gates import Gates
from evolvent.tasks.evaluation import Evaluation


def spec(**settings: str) -> RunSpec:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return RunSpec("execution-grounded-research", "program:landscape", "none", "4 steps", seed=2, settings=named)


def test_what_breaks_a_bound() -> None:
    gates = Gates(None, least={"value": 0.1}, most={"value": 0.9, "parameters": 100.0})
    assert not gates.breach(Evaluation(0.5, {"parameters": 100.0}))
    assert not gates.breach(Evaluation(0.9))
    assert "value is 0.95, which is more than 0.9" in gates.breach(Evaluation(0.95))
    assert "value is 0, which is less than 0.1" in gates.breach(Evaluation(0.0))
    assert "parameters is 101" in gates.breach(Evaluation(0.5, {"parameters": 101.0}))
    assert not Gates(None).breach(Evaluation(1e9))


def test_what_is_implausible_is_no_parent_and_no_reward(tmp_path: Path) -> None:
    free = begin(spec(), tmp_path / "free", logs=("jsonl",)).view.candidates
    values = [c["evaluation"]["value"] for c in free.values()]
    assert all(c["evaluation"]["status"] != "gate" for c in free.values())
    bound = values[0]  # whoever is worse than the seed program
    assert min(v for v in values if v is not None) < bound
    result = begin(spec(judge__gates__least__value=repr(bound)), tmp_path / "gated", logs=("jsonl",))
    found = result.view.candidates
    stopped = {uid for uid, c in found.items() if c["evaluation"]["status"] == "gate"}
    assert stopped
    for uid, c in found.items():
        evaluation = c["evaluation"]
        if uid in stopped:
            assert evaluation["value"] is None
            assert evaluation["metrics"]["value"] < bound
            assert "which is less than" in evaluation["feedback"]
        else:
            assert evaluation["value"] is None or evaluation["value"] >= bound
    assert not stopped & {uid for c in found.values() for uid in c["parents"]}
    assert sum(x for _, x in result.view.curve("gated")) == len(stopped)
    assert result.view.errors == {}


def test_bounds_that_nothing_keeps() -> None:
    with pytest.raises(UserError, match="nothing is"):
        assemble(spec(judge__gates__most__value="0.1", judge__gates__least__value="0.2"))
