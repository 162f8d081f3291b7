"""The figures at the start and the end of a run."""

from __future__ import annotations

import pytest
from tests.toys import random_policy

from evolvent.bench.evaluate import Subject
from evolvent.core.ledger import Ledger
from evolvent.engine.local import LocalEngine
from evolvent.run import final
from evolvent.tasks.registry import load_task


@pytest.mark.parametrize(("task", "own"), [
    ("countdown", ["countdown"]),
    ("rg/spell_backward:1", ["rg/spell_backward"]),
    ("judge:3x12", ["judge"]),
    ("arith:2x1+calc:1x2", ["arith", "calc"]),
])  # fmt: skip
def test_the_runs_own_task_is_not_another_one(task: str, own: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(final, "REMEMBERED_PROBLEMS", 1)
    policy, ledger = random_policy(layers=1, width=16, context=256), Ledger()
    subject = Subject(policy, LocalEngine(policy, ledger), load_task(task, policy.format.wording), ledger)
    tried = {row["task"].partition(":")[0] for row in final.remembered(subject)}
    assert tried == {name.partition(":")[0] for name in final.REMEMBERED} - set(own)
