"""The engine protocol and its implementations. Here: models by name that have no weights to load, and endpoints."""

from __future__ import annotations


class Special(dict[str, str]):
    """name -> place of `opened(task, ledger)`, which gives policy and engine.

    `simulated:skill=0.5` is `simulated` with settings; they stand after the place, for a module that takes them.
    """

    with_settings = frozenset({"simulated"})

    def __contains__(self, model: object) -> bool:
        name, colon, _ = str(model).partition(":")
        return super().__contains__(name) and (not colon or name in self.with_settings)

    def __getitem__(self, model: str) -> str:
        name, colon, settings = model.partition(":")
        return super().__getitem__(name) + colon + settings


def is_endpoint(spec: str) -> bool:
    """Whether a model's specification names an endpoint."""
    return spec.startswith(("http://", "https://", "openai:"))


SPECIAL = Special(
    {
        "simulated": "evolvent.engine.simulated:opened",
        "none": "evolvent.engine.absent:opened",
    }
)
