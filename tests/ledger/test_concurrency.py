"""Sixteen processes at one budget: they reach the cap and never pass it."""

from __future__ import annotations

import multiprocessing
from decimal import Decimal
from multiprocessing.synchronize import Barrier

from sqlrs.errors import BudgetExhausted
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
