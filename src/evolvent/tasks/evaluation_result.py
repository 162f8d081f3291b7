"""Stands in for `openevolve.evaluation_result` in the sandbox, where OpenEvolve itself is not installed.

It imports nothing of the package.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class EvaluationResult:
    """What an evaluator may return in the place of a dictionary: numbers, and texts beside them."""

    metrics: dict[str, float]
    artifacts: dict[str, str | bytes] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, metrics: dict[str, float]) -> EvaluationResult:
        """Numbers alone."""
        return cls(metrics)

    def to_dict(self) -> dict[str, float]:
        """The numbers."""
        return self.metrics

    def has_artifacts(self) -> bool:
        """Whether there are texts."""
        return bool(self.artifacts)

    def get_artifact_keys(self) -> list[str]:
        """Their names."""
        return list(self.artifacts)

    def get_artifact_size(self, key: str) -> int:
        """Bytes of one; 0 where there is none of that name."""
        return size_of(self.artifacts.get(key, ""))

    def get_total_artifact_size(self) -> int:
        """Bytes of all."""
        return sum(map(size_of, self.artifacts.values()))


def size_of(value: str | bytes) -> int:
    """Bytes of a text."""
    return len(value.encode() if isinstance(value, str) else value)
