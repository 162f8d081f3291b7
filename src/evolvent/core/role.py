"""A role: one set of slots over an engine, a policy and a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from evolvent.core.errors import UserError
from evolvent.core.ledger import Ledger
from evolvent.core.records import Group, Request
from evolvent.core.step import Step

Part = TypeVar("Part", bound=Callable[..., Any])

if TYPE_CHECKING:
    from evolvent.engine.base import Actor, Engine
    from evolvent.models.policy import Policy
    from evolvent.models.reference import Reference
    from evolvent.tasks.base import Task


@dataclass
class Role:
    """Slots and what their parts need: the task, the policy, the engine that runs it, the ledger and the seed."""

    name: str
    task: Task
    policy: Policy
    engine: Engine
    ledger: Ledger
    seed: int
    adapter: str | None = None
    slots: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)
    others: dict[str, Role] = field(default_factory=dict)  # all roles of the system, by name
    reference: Reference | None = None  # the start model, kept where a part asked for it

    def __getattr__(self, name: str) -> Any:
        slots = self.__dict__.get("slots", {})
        if name in slots:
            return slots[name]
        raise AttributeError(name)

    @property
    def limit(self) -> int:
        """The most tokens that the policy may write in an episode: rollout.max_tokens, or what the task says."""
        return find_field(self.slots.get("rollout"), "max_tokens") or self.task.max_tokens

    def need_reference(self) -> None:
        """Keep a frozen copy of the policy as it is now; called in `setup`, before anything is learned."""
        from evolvent.models.reference import Reference

        self.reference = self.reference or Reference(self.policy, self.adapter)

    def act(self, requests: Sequence[Request], s: Step, label: str = "act") -> list[Group]:
        """Roll out with this role's present actors, for another role: no judge, no learning, charged to the caller."""
        inner = s.child(self, self.actors(s), label)
        return self.slots["rollout"](requests, inner)

    def actors(self, s: Step) -> list[Actor]:
        """The actors that this role would step with."""
        learn = self.slots.get("learn")
        return learn.ask(s.child(self, [], "ask")) if learn else [self.policy_actor()]

    def policy_actor(self) -> Actor:
        """The policy as it is, with this role's adapter."""
        from evolvent.engine.base import Actor

        return Actor(self.adapter or "policy", self.policy.version, self.policy.low(self.adapter))


def reads_outcome(part: Part) -> Part:
    """Mark a part, or a function that parts are given, as one that looks at the verifier's outcome.

    It is refused beside a judge that gives none; such a judge says what it is in `no_outcome`.
    """
    part.reads_outcome = True  # type: ignore[attr-defined]
    return part


def refuse_blind(role: Role) -> None:
    """`UserError` if a part of the role wants the verifier's outcome and the judge gives none."""
    judge = next((part.no_outcome for part in role.parts.values() if hasattr(part, "no_outcome")), None)
    for path, part in role.parts.items() if judge else ():
        for reader in (part, *getattr(part, "__dict__", {}).values()):
            if getattr(reader, "reads_outcome", False):
                name = getattr(reader, "__name__", type(reader).__name__)
                raise UserError(
                    f"`{path}` looks at the verifier's outcome ({name}), and {judge} gives none; drop one of the two "
                    "recipes, or replace that part"
                )


def find_field(part: Any, name: str) -> Any:
    """The value of a part's field, or of the nearest part inside its wraps that has it; None if there is none."""
    while part is not None and not hasattr(part, name):
        part = getattr(part, "inner", None)
    return getattr(part, name, None)
