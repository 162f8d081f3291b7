"""Budgets are read as users write them, and nothing is charged to the wrong account."""

from __future__ import annotations

import pytest

from evolvent.core.errors import UserError
from evolvent.core.ledger import Budget, Ledger


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("300 steps", 300, "steps"),
        ("2M-tokens", 2_000_000, "sampled"),
        ("600k sampled tokens", 600_000, "sampled"),
        ("1.5k steps", 1500, "steps"),
        ("10 minutes", 600, "seconds"),
        ("2h", 7200, "seconds"),
        ("90s", 90, "seconds"),
        ("5k verifier calls", 5000, "verifier_calls"),
        ("5k evaluator-calls", 5000, "verifier_calls"),
        ("0.5 usd", 0.5, "money"),
        ("1 step", 1, "steps"),
        ("  2 M  tokens ", 2_000_000, "sampled"),
        ("1e3 steps", 1000, "steps"),
        (".5h", 1800, "seconds"),
        ("10 min", 600, "seconds"),  # no scale before `in`
        ("10m-steps", 10_000_000, "steps"),
        ("3 environment_steps", 3, "environment_steps"),
        ("7 Model Calls", 7, "model_calls"),
    ],
)
def test_budgets_as_written(text: str, amount: float, unit: str) -> None:
    assert Budget.parse(text) == Budget(amount, unit)


@pytest.mark.parametrize(
    "text", ["300", "300k", "", "steps", "-5 steps", "0 steps", "3 bananas", "nan steps", "1e400 steps", "five steps"]
)
def test_bad_budgets_say_what_a_good_one_is(text: str) -> None:
    with pytest.raises(UserError, match="300 steps"):
        Budget.parse(text)


def test_accounts_are_apart_and_come_back() -> None:
    ledger = Ledger()
    ledger.charge(sampled=5, steps=1)
    with ledger.account("evidence"):
        ledger.charge(sampled=100)
        with pytest.raises(KeyError):
            ledger.charge(bananas=1)
    ledger.charge(sampled=1)
    assert (ledger.of("sampled"), ledger.of("sampled", "evidence")) == (6, 100)
    other = Ledger()
    other.load_state_dict(ledger.state_dict())
    other.charge(sampled=1)
    assert (other.of("sampled"), ledger.of("sampled")) == (7, 6)
    assert other.reached(Budget(7, "sampled"))
    assert not other.reached(Budget(8, "sampled"))


def test_an_account_is_left_also_when_something_breaks_and_may_lie_in_another() -> None:
    ledger = Ledger()

    def breaks() -> None:
        with ledger.account("evidence"):
            ledger.charge(sampled=1)
            with ledger.account("method"):
                ledger.charge(sampled=10)
            ledger.charge(sampled=1)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        breaks()
    ledger.charge(sampled=100)
    assert (ledger.of("sampled"), ledger.of("sampled", "evidence")) == (110, 2)
    assert ledger.of("sampled", "nobody") == 0


def test_a_state_of_an_older_version_lacks_units_and_is_read() -> None:
    ledger = Ledger()
    ledger.load_state_dict({"method": {"steps": 3.0}})
    ledger.charge(sampled=1, steps=1)
    assert (ledger.of("steps"), ledger.of("sampled")) == (4, 1)
    ledger.load_state_dict({})
    ledger.charge(steps=1)
    assert ledger.of("steps") == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2M tokens", "2,000,000 tokens sampled"),
        ("300 steps", "300 steps"),
        ("0.5 usd", "0.5 dollars"),
        ("5 verifier calls", "5 verifier calls"),
    ],
)
def test_budgets_as_shown_can_be_read_again(text: str, shown: str) -> None:
    assert str(Budget.parse(text)) == shown
    assert Budget.parse(shown.replace(",", "")) == Budget.parse(text)
