"""What was spent, in every unit, and budgets in one of them.

The ledger is charged inside the sampler, the verifier and the learner, so that no method can forget it. Accounts keep
apart what a method spends (`method`) from what is spent on watching it (`evidence`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from evolvent.core.errors import UserError

UNITS = {
    "steps": "steps of the loop",
    "prefilled": "tokens read by the model before it sampled",
    "sampled": "tokens sampled",
    "decode_steps": "passes of the sampler, one token for every row of the batch",
    "trained": "tokens in training passes, padding left out",
    "environment_steps": "tool calls and environment steps",
    "verifier_calls": "completions judged",
    "verifier_seconds": "seconds of verifying",
    "model_calls": "requests to a model behind an endpoint",
    "money": "US dollars, where prices are known",
    "seconds": "wall-clock seconds",
}
ALIASES = {
    "step": "steps",
    "token": "sampled",
    "tokens": "sampled",
    "sampled tokens": "sampled",
    "tokens sampled": "sampled",
    "decode steps": "decode_steps",
    "evaluation": "verifier_calls",
    "evaluations": "verifier_calls",
    "evaluator calls": "verifier_calls",
    "verifier calls": "verifier_calls",
    "call": "model_calls",
    "calls": "model_calls",
    "model calls": "model_calls",
    "environment steps": "environment_steps",
    "env steps": "environment_steps",
    "second": "seconds",
    "s": "seconds",
    "usd": "money",
    "dollars": "money",
    "trained tokens": "trained",
}
SHOWN = {"money": "dollars", "sampled": "tokens sampled"}
SCALES = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9}
TIMES = {"min": 60, "minute": 60, "minutes": 60, "h": 3600, "hour": 3600, "hours": 3600}
# a number, perhaps a scale (only before a space or dash: `10 minutes` is not 10M), a unit
BUDGET = re.compile(r"\s*(-?\d*\.?\d+(?:e\d+)?)\s*(?:([kmgb])(?=[\s_-]))?[\s_-]*([a-z][a-z\s_-]*?)\s*", re.IGNORECASE)
EXAMPLES = '"300 steps", "2M tokens", "10 minutes" or "5k verifier calls"'


@dataclass(frozen=True)
class Budget:
    """A cap in one unit of the ledger."""

    amount: float
    unit: str

    @classmethod
    def parse(cls, text: str) -> Budget:
        """`300 steps`, `2M-tokens`, `10 minutes`, `5k verifier calls`."""
        match = BUDGET.fullmatch(text)
        if not match:
            known = "has no unit" if re.fullmatch(r"\s*[0-9.]+[kKmMgGbB]?\s*", text) else "is not a budget"
            raise UserError(f'"{text}" {known}; say for example {EXAMPLES}')
        amount = float(match[1]) * SCALES[(match[2] or "").lower()]
        unit = re.sub(r"[\s_-]+", " ", match[3].lower())
        if unit in TIMES:
            amount, unit = amount * TIMES[unit], "seconds"
        unit = ALIASES.get(unit, unit.replace(" ", "_"))
        if unit not in UNITS:
            raise UserError(f'"{text}": `{match[3]}` is no unit of the ledger; say for example {EXAMPLES}')
        if not 0 < amount < math.inf:
            raise UserError(f'"{text}": a budget must be above zero and finite; say for example {EXAMPLES}')
        return cls(amount, unit)

    def __str__(self) -> str:
        amount = f"{self.amount:,.0f}" if self.amount >= 10 or self.amount == int(self.amount) else f"{self.amount:g}"
        return f"{amount} {SHOWN.get(self.unit, self.unit.replace('_', ' '))}"


class Ledger:
    """Counts by account and unit."""

    def __init__(self) -> None:
        self.spent: dict[str, dict[str, float]] = {"method": dict.fromkeys(UNITS, 0.0)}
        self._account = self.spent["method"]

    def charge(self, **amounts: float) -> None:
        """Add amounts, by unit, to the current account."""
        account = self._account
        for unit, amount in amounts.items():
            account[unit] += amount

    @contextmanager
    def account(self, name: str) -> Iterator[None]:
        """Charge to another account for a while."""
        before = self._account
        self._account = self.spent.setdefault(name, dict.fromkeys(UNITS, 0.0))
        try:
            yield
        finally:
            self._account = before

    def of(self, unit: str, account: str = "method") -> float:
        """What an account has spent in a unit."""
        return self.spent.get(account, {}).get(unit, 0.0)

    def reached(self, budget: Budget) -> bool:
        """Whether the method has used its budget up."""
        return self.of(budget.unit) >= budget.amount

    def state_dict(self) -> dict[str, dict[str, float]]:
        """A copy of all accounts."""
        return {name: dict(units) for name, units in self.spent.items()}

    def load_state_dict(self, state: dict[str, dict[str, float]]) -> None:
        """Go back to a saved state."""
        self.spent = {name: dict.fromkeys(UNITS, 0.0) | units for name, units in state.items()}
        self._account = self.spent.setdefault("method", dict.fromkeys(UNITS, 0.0))
