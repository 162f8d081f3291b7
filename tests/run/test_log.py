"""Logs that live elsewhere: a run that is resumed goes on where it was logged before."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from evolvent.run.log import MLflow


class Tracking(ModuleType):
    """What is used of MLflow, after its documentation; it is not installed here. Searching needs the experiment."""

    def __init__(self) -> None:
        super().__init__("mlflow")
        self.runs: list[dict[str, Any]] = []
        self.experiment: str | None = None
        self.active: dict[str, Any] | None = None

    def set_experiment(self, name: str) -> None:
        """Made if it is not there."""
        self.experiment = name

    def search_runs(
        self,
        experiment_names: list[str],
        filter_string: str,
        order_by: list[str],
        max_results: int,
        output_format: str,
    ) -> list[SimpleNamespace]:
        """The newest first."""
        assert (experiment_names, order_by, output_format) == ([self.experiment], ["start_time DESC"], "list")
        known = [r for r in self.runs if any(filter_string == f"tags.`{k}` = '{v}'" for k, v in r["tags"].items())]
        return [SimpleNamespace(info=SimpleNamespace(run_id=r["id"])) for r in reversed(known)][:max_results]

    def start_run(
        self, run_id: str | None = None, run_name: str | None = None, tags: dict[str, str] | None = None
    ) -> None:
        """A new one, or one that is there."""
        assert self.active is None
        if run_id is None:
            self.runs.append({"id": f"id{len(self.runs)}", "name": run_name, "tags": tags or {}, "steps": []})
        self.active = next(r for r in self.runs if r["id"] == (run_id or f"id{len(self.runs) - 1}"))

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        """To the active run."""
        assert self.active is not None
        self.active["steps"].append(step)

    def end_run(self) -> None:
        """No run is active any more."""
        self.active = None


def test_a_resumed_run_goes_on_in_its_mlflow_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = Tracking()
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)

    def life(store: str, before: int, step: int) -> None:
        log = MLflow(tmp_path / store / "run", "run", {t: {} for t in range(before)})
        log.step(step, {"score": 1.0})
        log.close()

    life("a", 0, 0)
    life("b", 0, 0)  # another run of that name
    life("a", 1, 1)
    life("c", 1, 1)  # was not logged there before
    life("a", 0, 0)  # begun again under the same name
    life("a", 1, 1)
    assert [r["steps"] for r in mlflow.runs] == [[0, 1], [0], [1], [0, 1]]
    assert {r["name"] for r in mlflow.runs} == {"run"}
    assert str(tmp_path) not in str(mlflow.runs)
