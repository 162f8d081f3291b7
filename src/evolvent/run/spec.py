"""What a run is: everything that its result depends on, as one small record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class RunSpec:
    """Recipe, task, model, budget, seed, and what the user set. Saved with the run; two equal ones repeat exactly."""

    recipe: str
    task: str
    model: str = "tiny"
    budget: str = "300 steps"
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    take: Mapping[str, str] = field(default_factory=dict)
    profile: str = "auto"
    device: str = "cpu"
    dtype: str = "float32"
    engine: str = "auto"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for files; a part among the settings is named as `module:name`."""
        settings = {k: f"{v.__module__}:{v.__qualname__}" if callable(v) else v for k, v in self.settings.items()}
        return {**asdict(self), "settings": settings}
