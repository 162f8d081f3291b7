"""Several models that write: which of them is asked next, by fixed shares or by what it has brought and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.ranges import Nonnegative
from evolvent.core.records import Trajectory
from evolvent.core.role import Role
from evolvent.engine.choose import open_model
from evolvent.search.archive import Archive
from evolvent.search.choice import Choice, outcomes


@dataclass
class Ensemble:
    """The run's own model and others beside it: a fast one and now and then a strong one (AlphaEvolve, arXiv
    2506.13131), or whichever a bandit chooses (ShinkaEvolve, arXiv 2509.19349).

    models  more models, as `--model` takes them
    shares  of all models, the run's own first; without, all alike
    prices  US dollars for a million prompt and completion tokens of each of `models`, in turn
    choice  learns from the candidates of each model which to ask (`search.choice`), in the place of the shares

    Candidates have the model's name in their notes, and what the answer has cost.
    """

    models: tuple[str, ...] = ()
    shares: tuple[Nonnegative, ...] = ()
    prices: tuple[Nonnegative, ...] = ()
    choice: Choice | None = None
    roles: dict[str, Role] = field(default_factory=dict, init=False)
    told: int = field(default=0, init=False)  # of the history: what the choice has learned from

    def setup(self, role: Role) -> None:
        """Open the other models. `UserError` for one that is not there, or that the run has already."""
        self.roles = {}
        own = getattr(role.policy, "name", "")
        for i, model in enumerate(self.models):
            replay = getattr(getattr(role.engine, "transport", None), "replay", None)
            service = {"prices": self.prices[2 * i : 2 * i + 2]} if self.prices else {}
            policy, engine, _ = open_model(
                model, role.task.name, role.ledger, role.seed, replay=replay, service=service
            )
            name = getattr(policy, "name", model)
            if name in (own, *self.roles):
                raise UserError(f"rollout.write.ensemble.models: {model} is there already; name each model once")
            self.roles[name] = replace(role, policy=policy, engine=engine)
        self.roles = {own: role, **self.roles}
        if self.choice is not None:
            self.choice.begin(list(self.roles))

    def pick(self, rng: np.random.Generator) -> str:
        """The name of the model to ask. A single one needs no draw."""
        names = list(self.roles)
        if self.choice is not None:
            return self.choice.choose(rng)
        shares = np.array(self.shares or [1.0] * len(names))
        return names[0] if len(names) == 1 else names[int(rng.choice(len(names), p=shares / shares.sum()))]

    def learn(self, archive: Archive) -> None:
        """Tell the choice what has become of the candidates since the last time."""
        for c, reward in outcomes(archive.history, self.told):
            if self.choice is not None and c.notes.get("model") in self.roles:
                self.choice.update(c.notes["model"], reward, c.notes.get("usd"))
        self.told = len(archive.history)

    def notes(self, name: str, t: Trajectory) -> dict[str, Any]:
        """What is to be known of an answer: which model gave it, and its price where one is known."""
        if len(self.roles) == 1:
            return {}
        prices = getattr(self.roles[name].engine, "prices", None)
        if not prices:
            return {"model": name}
        tokens = t.info.get("prompt_tokens", 0), t.info.get("completion_tokens", 0)
        return {"model": name, "usd": float(np.dot(tokens, prices)) / 1e6}

    def check(self, system: object) -> None:
        """As many shares as models, and two prices for each of the others."""
        if self.shares and (len(self.shares) != len(self.models) + 1 or not sum(self.shares)):
            raise UserError(
                f"rollout.write.ensemble.shares: {len(self.models) + 1} models need as many shares, not all 0, the "
                f"run's own first; got {', '.join(map(str, self.shares))}"
            )
        if self.prices and len(self.prices) != 2 * len(self.models):
            raise UserError(
                "rollout.write.ensemble.prices: give two for each of the models, for a million prompt and completion "
                f"tokens; got {len(self.prices)} for {len(self.models)}"
            )

    def state_dict(self) -> dict[str, Any]:
        """How far the choice has learned; what it has learned is a state of its own."""
        return {"told": self.told}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.told = state["told"]
