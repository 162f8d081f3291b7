"""No model at all."""

from __future__ import annotations

import pytest

from evolvent.core.errors import UserError
from evolvent.core.ledger import Budget
from evolvent.run.assemble import assemble
from evolvent.run.spec import RunSpec


def test_a_recipe_that_samples_is_refused() -> None:
    made = assemble(RunSpec("best-of-n", "countdown", "none", "1 steps"))
    with pytest.raises(UserError, match="has a model write, and the model is `none`; give one with --model"):
        list(made.system.run(Budget.parse("1 steps")))


def test_a_recipe_that_trains_is_refused() -> None:
    with pytest.raises(UserError, match="the model is `none`"):
        assemble(RunSpec("grpo", "countdown", "none", "1 steps"))
