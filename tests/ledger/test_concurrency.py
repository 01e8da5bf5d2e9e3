"""Sixteen processes at one budget: they reach the cap and never pass it."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from multiprocessing.synchronize import Barrier
from typing import Any

import pytest

from sqlrs.errors import BudgetExhausted, UsageError
from sqlrs.ledger import granting
from sqlrs.ledger import store as store_module
from sqlrs.ledger.budget_rows import journaled
from sqlrs.ledger.store import StoreLedger
from tests.ledger.build import charge

PROCESSES = 16
# Forked from a clean process: nothing of pytest, its threads or its connections is copied.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["sqlrs.ledger.store", "tests.ledger.build", "psycopg"])


def spend(url: str, number: int, epsilon: str, tries: int, start: Barrier) -> tuple[int, int]:
    """How many releases one analyst got and was refused."""
    start.wait(60)
    ledger = StoreLedger(url)  # all at once, too: the tables are made only once
    got = refused = 0
    for attempt in range(tries):
        name = f"analyst {number % 4}"
        try:
            ledger.reserve(charge(epsilon, analyst=name, query=f"{number} {attempt}"))
            got += 1
        except BudgetExhausted:
            refused += 1
    ledger.close()
    return got, refused


def hammer(url: str, epsilon: str, tries: int) -> list[tuple[int, int]]:
    with CONTEXT.Manager() as manager, CONTEXT.Pool(PROCESSES) as pool:
        start = manager.Barrier(PROCESSES)
        jobs = [(url, number, epsilon, tries, start) for number in range(PROCESSES)]
        return pool.starmap_async(spend, jobs, chunksize=1).get(120)


def test_the_datasets_budget_is_spent_to_the_last_release(store_url: str) -> None:
    owner = StoreLedger(store_url)
    owner.grant(dataset="graph", epsilon="10.05")
    for number in range(4):
        owner.grant(analyst=f"analyst {number}", epsilon=1000)
    outcomes = hammer(store_url, "0.1", tries=10)
    assert sum(got for got, _ in outcomes) == 100
    assert sum(refused for _, refused in outcomes) == 60
    assert owner.budget(dataset="graph").spent == 10
    _check_the_books(owner)


def test_each_analysts_budget_is_spent_to_the_last_release(store_url: str) -> None:
    owner = StoreLedger(store_url)
    owner.grant(dataset="graph", epsilon=1000)
    for number in range(4):
        owner.grant(analyst=f"analyst {number}", epsilon="0.7")
    outcomes = hammer(store_url, "0.1", tries=5)
    assert sum(got for got, _ in outcomes) == 28
    assert all(budget.remaining == 0 for budget in owner.show() if budget.kind == "analyst")
    _check_the_books(owner)


def test_the_first_ones_make_the_tables(store_url: str) -> None:
    outcomes = hammer(store_url, "0.1", tries=1)
    assert outcomes == [(0, 1)] * PROCESSES


def _check_the_books(owner: StoreLedger) -> None:
    journal = owner.history()
    for budget in owner.show():
        own = [
            line.charge.epsilon
            for line in journal
            if budget.name in (line.charge.analyst, line.charge.dataset)
        ]
        assert budget.spent == sum(own, Decimal(0)) <= budget.cap
    assert len({line.ticket for line in journal}) == len(journal)
    owner.close()


@pytest.mark.postgres
def test_a_grant_that_saw_no_budget_undoes_no_charge(
    postgres_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two owners make the same budget at once, and its first charge comes between them."""
    first, second = StoreLedger(postgres_db), StoreLedger(postgres_db)
    first.grant(dataset="graph", epsilon=100)
    between: list[bool] = []

    def slow(*arguments: Any) -> Decimal:
        found = journaled(*arguments)
        if not between:
            between.append(True)
            first.grant(analyst="ada", epsilon=1, renew="monthly")
            first.reserve(charge("0.9"))
        return found

    monkeypatch.setattr(granting, "journaled", slow)
    budget = second.grant(analyst="ada", epsilon=1, renew="monthly")
    assert between
    assert (budget.spent, budget.window_spent) == (Decimal("0.9"), Decimal("0.9"))
    with pytest.raises(BudgetExhausted):
        second.reserve(charge("0.9", query="another"))


@pytest.mark.postgres
def test_two_requests_of_a_newcomer_are_both_granted(
    postgres_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = StoreLedger(postgres_db), StoreLedger(postgres_db)
    one, other = (
        first.ask(analyst="ada", dataset="graph", epsilon=more, why="to begin") for more in (1, 2)
    )
    between: list[bool] = []

    def slow(*arguments: Any) -> Decimal:
        if not between:
            between.append(True)
            first.approve(one)
        return journaled(*arguments)

    monkeypatch.setattr(granting, "journaled", slow)
    assert second.approve(other).cap == 3


@pytest.mark.postgres
def test_the_window_of_a_grant_begins_once_its_budget_is_held(
    postgres_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Midnight passes while a grant waits for its row, and a charge is made before it goes on."""
    ledger, other = StoreLedger(postgres_db), StoreLedger(postgres_db)
    ledger.grant(dataset="graph", epsilon=100)
    ledger.grant(analyst="ada", epsilon=100)
    midnight = datetime(2026, 12, 1, tzinfo=UTC)
    moments = iter([midnight - timedelta(seconds=1)])
    monkeypatch.setattr(store_module, "clock", lambda _: next(moments, midnight))
    hold = granting.hold
    waited: list[object] = []

    def late(*arguments: Any) -> None:
        if not waited:
            waited.append(next(moments, None))
            other.reserve(charge("0.9"))
        hold(*arguments)

    monkeypatch.setattr(granting, "hold", late)
    ledger.grant(analyst="ada", epsilon=1, renew="daily")
    with pytest.raises(BudgetExhausted):
        ledger.reserve(charge("0.9", query="another"))


def test_requests_at_once_are_as_few(store_url: str) -> None:
    ledgers = [StoreLedger(store_url) for _ in range(12)]
    start = threading.Barrier(len(ledgers))

    def ask(ledger: StoreLedger) -> bool:
        start.wait(60)
        try:
            ledger.ask(analyst="ada", dataset="graph", epsilon=1, why="now")
        except UsageError:
            return False
        return True

    with ThreadPoolExecutor(len(ledgers)) as pool:
        assert sum(pool.map(ask, ledgers)) == granting.MOST_OPEN
