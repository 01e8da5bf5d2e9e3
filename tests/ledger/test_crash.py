"""A process that is killed between the reservation and the answer leaves the budget spent."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pytest

from sqlrs.ledger.store import StoreLedger
from tests.ledger.build import charge

ROOT = Path(__file__).parents[2]
RESERVE_AND_DIE = """
import os, signal, sys
from sqlrs.ledger.store import StoreLedger
from tests.ledger.build import charge
StoreLedger(sys.argv[1]).reserve(charge("0.4"))
os.kill(os.getpid(), signal.SIGKILL)
"""
SPEND_FOR_EVER = """
import sys
from sqlrs.ledger.store import StoreLedger
from tests.ledger.build import charge
ledger = StoreLedger(sys.argv[1])
for number in range(10**9):
    ledger.settle(ledger.reserve(charge("0.001", query=f"query {number}")), str(number))
    print(number, flush=True)
"""


@pytest.fixture
def owner(store: StoreLedger) -> StoreLedger:
    store.grant(analyst="ada", epsilon=1000)
    store.grant(dataset="graph", epsilon=1000)
    return store


def test_killed_before_the_answer(owner: StoreLedger, store_url: str) -> None:
    command = [sys.executable, "-c", RESERVE_AND_DIE, store_url]
    run = subprocess.run(command, cwd=ROOT, check=False)
    assert run.returncode == -signal.SIGKILL
    assert owner.remaining("ada", "graph") == Decimal("999.6")
    assert [line.outcome for line in owner.history()] == ["reserved"]
    assert owner.repeat(charge("0.4")) is None


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_killed_at_any_moment(owner: StoreLedger, store_url: str, seed: int) -> None:
    command = [sys.executable, "-c", SPEND_FOR_EVER, store_url]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        shown = len([child.stdout.readline() for _ in range(3)])
        time.sleep(random.Random(seed).uniform(0, 0.1))
        child.send_signal(signal.SIGKILL)
        shown += len(child.stdout.read().splitlines())
    journal = owner.history()
    settled = [line for line in journal if line.outcome == "released"]
    # Every shown answer is in the books, and at most one charge has no answer.
    assert shown <= len(settled) <= len(journal) <= len(settled) + 1
    spent = sum((line.charge.epsilon for line in journal), Decimal(0))
    assert [budget.spent for budget in owner.show()] == [spent, spent]
