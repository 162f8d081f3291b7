"""From the description of a run to a system that is ready to step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evolvent.core.build import Builder, Built
from evolvent.core.errors import unknown
from evolvent.core.ledger import Ledger
from evolvent.core.loop import System, everyone
from evolvent.core.random import stream
from evolvent.core.recipe import FIXTURES, ROOT, SLOTS, Plan, compile_plan
from evolvent.core.role import Role
from evolvent.engine.choose import open_model
from evolvent.recipes import all_recipes, resolve
from evolvent.recipes.profiles import PROFILES, profile_of
from evolvent.run.spec import RunSpec
from evolvent.tasks.base import Task

if TYPE_CHECKING:
    from evolvent.engine.transport import Replay
    from evolvent.models.policy import Policy

SERVICE = "engine."  # settings that are no part's, but the endpoint's
DEFAULTS: Mapping[str, Any] = dict.fromkeys((*SLOTS, *FIXTURES))


@dataclass
class Assembled:
    """A system and what it was built from."""

    spec: RunSpec
    plan: Plan
    system: System
    built: dict[str, Built]
    profile: str
    task: Task
    policy: Policy
    replies: Replay | None

    @property
    def main_role(self) -> Role:
        """The role that works on the run's own task; measurements are made of it."""
        roles = list(self.system.roles.values())
        return next((r for r in roles if r.task is self.task), roles[0])


def choose_profile(name: str, policy: Policy) -> str:
    """`auto` is `tiny` for models below 2M parameters, else `paper`, as for endpoints, whose size is unknown (0)."""
    if name == "auto":
        return "tiny" if 0 < policy.size < 2_000_000 else "paper"
    if name not in PROFILES:
        raise unknown("profile", name, PROFILES, "profiles: " + ", ".join(PROFILES))
    return name


def assemble(spec: RunSpec, replies: Replay | None = None) -> Assembled:
    """Build everything that a run needs; nothing is written and nothing is sampled.

    `replies` is the log of what an endpoint was paid for, if there is one to keep or to carry on with.
    """
    service = {k.removeprefix(SERVICE): v for k, v in spec.settings.items() if k.startswith(SERVICE)}
    settings = {k: v for k, v in spec.settings.items() if not k.startswith(SERVICE)}
    plan = compile_plan(resolve(spec.recipe), all_recipes(), settings, spec.take)
    ledger = Ledger()
    policy, engine, task = open_model(
        spec.model, spec.task, ledger, spec.seed, spec.device, spec.dtype, spec.engine, replies, service
    )
    profile = choose_profile(spec.profile, policy)
    builder = Builder(plan, profile_of(profile), profile)
    roles: dict[str, Role] = {}
    built: dict[str, Built] = {}
    for name in plan.roles:
        built[name] = builder.role(name, DEFAULTS)
        made = built[name]
        slots = {k: v for k, v in made.slots.items() if k in SLOTS}
        own = made.slots.get("task", lambda task: task)(task)
        adapter, label = made.slots.get("adapter"), name or "policy"
        if adapter is not None:
            from evolvent.models.lora import attach

            attach(policy, label, adapter, stream(spec.seed, "adapter", label))
        roles[name] = Role(
            name,
            own,
            policy,
            engine,
            ledger,
            spec.seed,
            adapter=label if label in policy.adapters else None,
            slots=slots,
            parts=made.parts,
        )
    root = builder.role(ROOT, {"turns": everyone})
    builder.finish()
    system = System(roles, policy, ledger, root.slots["turns"])
    system.setup()
    return Assembled(spec, plan, system, built, profile, task, policy, replies)
