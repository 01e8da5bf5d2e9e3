"""What an analyst may ask for must not use up the machine, nor crash it, after the charge."""

from __future__ import annotations

from decimal import Decimal

import pytest

import sqlrs
from sqlrs.errors import UsageError
from sqlrs.ledger import MemoryLedger
from sqlrs.settings import Request


@pytest.mark.parametrize(
    ("least", "mechanism", "shape", "error_bars"),
    [
        ("0.00005", "polylaplace", None, None),
        ("0.00002", "polylaplace", 2, None),
        ("0.00064", "polylaplace", 64, None),
        ("0.00005", "polylaplace", None, "0.1"),
        ("0.0001", "cauchy", None, None),
    ],
)
def test_the_least_epsilon_follows_from_the_noise(
    least: str, mechanism: str, shape: int | None, error_bars: str | None
) -> None:
    def ask(epsilon: Decimal) -> Request:
        return Request("", epsilon, mechanism, shape, error_bars)

    assert ask(Decimal(least)).chosen_mechanism().prices[0] == Decimal(least)
    with pytest.raises(UsageError):
        ask(Decimal(least) * Decimal("0.99")).chosen_mechanism()


def test_an_epsilon_that_is_too_small_is_refused_before_the_charge() -> None:
    ledger = MemoryLedger()
    with sqlrs.connect(ledger=ledger) as database, pytest.raises(UsageError):
        database.count("SELECT count(*) FROM nowhere", epsilon="0.000001")
    assert ledger.history() == ()
