"""Where a run's numbers go beside the store: metrics.jsonl and TensorBoard by default, others as plug-ins."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from evolvent.core.errors import UserError, unknown

EXPERIMENT, TAG = "evolvent", "evolvent.run"  # of MLflow


class Log(Protocol):
    """A place for the metrics of steps."""

    def step(self, t: int, metrics: Mapping[str, float]) -> None: ...
    def close(self) -> None: ...


class JsonLines:
    """One line a step; written anew from the store when a run is resumed."""

    def __init__(self, folder: Path, name: str, before: Mapping[int, Mapping[str, float]]) -> None:
        self.file = (folder / "metrics.jsonl").open("w", buffering=1)
        for t, metrics in sorted(before.items()):
            self.step(t, metrics)

    def step(self, t: int, metrics: Mapping[str, float]) -> None:
        """Append a line."""
        self.file.write(json.dumps({"step": t, **metrics}) + "\n")

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class TensorBoard:
    """Event files for TensorBoard; steps that are done again replace those of before."""

    def __init__(self, folder: Path, name: str, before: Mapping[int, Mapping[str, float]]) -> None:
        self.folder, self.done = folder, max(before, default=None)

    @cached_property
    def writer(self) -> Any:
        """Opened with the first step, so that it does not hold up the start."""
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        made = EventFileWriter(str(self.folder / "tensorboard"))
        if self.done is not None:
            made.add_event(Event(step=self.done + 1, session_log=SessionLog(status=SessionLog.START)))
        return made

    def step(self, t: int, metrics: Mapping[str, float]) -> None:
        """Add the scalars of a step."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        self.writer.add_event(Event(step=t, summary=Summary(value=values)))

    def close(self) -> None:
        """Flush and close."""
        if "writer" in vars(self):
            self.writer.close()


class WeightsAndBiases:
    """W&B, if the extra `wandb` is installed and logged in."""

    def __init__(self, folder: Path, name: str, before: Mapping[int, Mapping[str, float]]) -> None:
        wandb = _import("wandb")
        self.run = wandb.init(project="evolvent", name=name, id=name, dir=str(folder), resume="allow")

    def step(self, t: int, metrics: Mapping[str, float]) -> None:
        """Log a step."""
        self.run.log(dict(metrics), step=t)

    def close(self) -> None:
        """Finish."""
        self.run.finish()


class MLflow:
    """MLflow, if the extra `mlflow` is installed; its own environment variables say where to.

    A run that is resumed goes on in the MLflow run that it began, which it knows by a tag.
    """

    def __init__(self, folder: Path, name: str, before: Mapping[int, Mapping[str, float]]) -> None:
        self.mlflow = _import("mlflow")
        self.mlflow.set_experiment(EXPERIMENT)
        place = hashlib.blake2b(str(folder.resolve()).encode(), digest_size=6).hexdigest()  # other stores use names too
        tag = f"{name} {place}"
        found = []
        if before:
            found = self.mlflow.search_runs(
                experiment_names=[EXPERIMENT],
                filter_string=f"tags.`{TAG}` = '{tag}'",
                order_by=["start_time DESC"],
                max_results=1,
                output_format="list",
            )
        if found:
            self.mlflow.start_run(run_id=found[0].info.run_id)
        else:
            self.mlflow.start_run(run_name=name, tags={TAG: tag})

    def step(self, t: int, metrics: Mapping[str, float]) -> None:
        """Log a step."""
        self.mlflow.log_metrics(dict(metrics), step=t)

    def close(self) -> None:
        """End the run."""
        self.mlflow.end_run()


LOGS: dict[str, Any] = {"jsonl": JsonLines, "tensorboard": TensorBoard, "wandb": WeightsAndBiases, "mlflow": MLflow}
DEFAULT = ("jsonl", "tensorboard")
EXTRAS = ("wandb", "mlflow")  # packages of their own


def _import(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        raise UserError(f"--log {name} needs the extra: pip install 'evolvent[{name}]'") from None


def check_logs(names: tuple[str, ...]) -> None:
    """`UserError` for logs that there are not, or whose package is not installed."""
    for name in names:
        if name not in LOGS:
            raise unknown("log", name, LOGS, "logs: " + ", ".join(LOGS))
        if name in EXTRAS:
            _import(name)


def open_logs(names: tuple[str, ...], folder: Path, run: str, before: Mapping[int, Mapping[str, float]]) -> list[Log]:
    """Open the logs of a run; `before` are the metrics of steps already done."""
    check_logs(names)
    return [LOGS[name](folder, run, before) for name in names]
