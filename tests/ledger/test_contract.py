"""What the release path relies on, the same for every ledger."""

from __future__ import annotations

import threading
from collections.abc import Callable
from decimal import Decimal

import pytest

from sqlrs.errors import BudgetExhausted
from sqlrs.ledger import Ledger, MemoryLedger
from sqlrs.ledger.store import StoreLedger
from tests.ledger.build import charge

Open = Callable[..., Ledger]


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def open_ledger(request: pytest.FixtureRequest) -> Open:
    """Opens a ledger with a budget of 1."""
    if request.param == "memory":
        return lambda **options: MemoryLedger(Decimal(1), **options)
    url = request.getfixturevalue(
        {"sqlite": "sqlite_url", "postgres": "postgres_db"}[request.param]
    )

    def open_store(**options: bool) -> StoreLedger:
        ledger = StoreLedger(url, **options)
        ledger.grant(analyst="ada", epsilon=1)
        ledger.grant(dataset="graph", epsilon=1)
        request.addfinalizer(ledger.close)
        return ledger

    return open_store


def test_ten_tenths_fit_and_no_more(open_ledger: Open) -> None:
    ledger = open_ledger()
    for _ in range(10):
        ledger.reserve(charge("0.1"))
    assert ledger.remaining("ada", "graph") == 0
    with pytest.raises(BudgetExhausted):
        ledger.reserve(charge("0.000001"))


def test_a_refusal_spends_nothing(open_ledger: Open) -> None:
    ledger = open_ledger()
    with pytest.raises(BudgetExhausted):
        ledger.reserve(charge("1.000001"))
    assert ledger.remaining("ada", "graph") == 1
    ledger.reserve(charge("1"))


def test_tickets_differ(open_ledger: Open) -> None:
    ledger = open_ledger()
    assert len({ledger.reserve(charge("0.01")) for _ in range(5)}) == 5


def test_only_a_settled_charge_is_repeated(open_ledger: Open) -> None:
    ledger = open_ledger()
    assert ledger.repeat(charge("0.1")) is None
    ticket = ledger.reserve(charge("0.1"))
    assert ledger.repeat(charge("0.1")) is None
    ledger.settle(ticket, '{"answer": 42}')
    assert ledger.repeat(charge("0.1")) == '{"answer": 42}'
    assert ledger.repeat(charge("0.100")) == '{"answer": 42}'
    assert ledger.remaining("ada", "graph") == Decimal("0.9")


def test_any_difference_is_another_release(open_ledger: Open) -> None:
    ledger = open_ledger()
    ledger.settle(ledger.reserve(charge("0.1")), "1")
    for other in (
        charge("0.2"),
        charge("0.1", analyst="bob"),
        charge("0.1", dataset="trips"),
        charge("0.1", query="SELECT COUNT(*) FROM node"),
        charge("0.1", mechanism="polylaplace, shape 10"),
    ):
        assert ledger.repeat(other) is None


def test_the_first_answer_is_the_one_repeated(open_ledger: Open) -> None:
    ledger = open_ledger()
    first, second = ledger.reserve(charge("0.1")), ledger.reserve(charge("0.1"))
    ledger.settle(first, "1")
    ledger.settle(second, "2")
    assert ledger.repeat(charge("0.1")) == "1"


def test_repeats_can_be_switched_off(open_ledger: Open) -> None:
    ledger = open_ledger(repeats=False)
    ledger.settle(ledger.reserve(charge("0.1")), "1")
    assert ledger.repeat(charge("0.1")) is None


def test_a_failure_stays_spent_and_is_never_repeated(open_ledger: Open) -> None:
    ledger = open_ledger()
    ledger.fail(ledger.reserve(charge("0.4")), "database_failed")
    assert ledger.remaining("ada", "graph") == Decimal("0.6")
    assert ledger.repeat(charge("0.4")) is None


def test_a_ticket_is_closed_once(open_ledger: Open) -> None:
    ledger = open_ledger()
    settled, failed = ledger.reserve(charge("0.1")), ledger.reserve(charge("0.2"))
    ledger.settle(settled, "1")
    ledger.fail(failed, "interrupted")
    for ticket in (settled, failed, 0, -1, 999):
        with pytest.raises(ValueError, match="not open"):
            ledger.settle(ticket, "2")
        with pytest.raises(ValueError, match="not open"):
            ledger.fail(ticket, "interrupted")
    assert ledger.repeat(charge("0.1")) == "1"
    assert ledger.repeat(charge("0.2")) is None


def test_what_may_not_be_recorded_leaves_the_ticket_open(open_ledger: Open) -> None:
    ledger = open_ledger()
    ticket = ledger.reserve(charge("0.1"))
    with pytest.raises(ValueError, match="JSON"):
        ledger.settle(ticket, "forty-two")
    with pytest.raises(ValueError, match="letters"):
        ledger.fail(ticket, "count was 42")
    ledger.settle(ticket, "42")


def test_threads_share_one_budget(open_ledger: Open) -> None:
    ledger = open_ledger()
    start = threading.Barrier(8)
    granted: list[int] = []

    def spend() -> None:
        start.wait()
        for _ in range(5):
            try:
                granted.append(ledger.reserve(charge("0.05")))
            except BudgetExhausted:
                return

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == len(set(granted)) == 20
    assert ledger.remaining("ada", "graph") == 0


def test_memory_without_a_total_only_records() -> None:
    ledger = MemoryLedger()
    for _ in range(3):
        ledger.reserve(charge("1000"))
    assert ledger.remaining("ada", "graph") is None
    assert ledger.spent() == 3000
    assert [line.charge.epsilon for line in ledger.history()] == [1000] * 3


def test_the_newest_lines_of_one_analyst_are_read_and_no_others(open_ledger: Open) -> None:
    ledger = open_ledger()
    assert isinstance(ledger, MemoryLedger | StoreLedger)
    for number in range(6):
        ledger.reserve(charge("0.01", query=f"{number}" + "x" * 100))
    found = ledger.newest_of("ada", 3, 10)
    assert [line.charge.query for line in found] == [f"{n}" + "x" * 9 for n in (5, 4, 3)]
    assert ledger.newest_of("bob", 3, 10) == ()
