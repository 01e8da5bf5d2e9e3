"""Any order of operations: the store agrees with a model of a few lines."""

from __future__ import annotations

import os
import shutil
import tempfile
from fractions import Fraction

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from sqlrs.errors import BudgetExhausted
from sqlrs.ledger import Charge
from sqlrs.ledger.store import StoreLedger
from tests.ledger.build import charge
from tests.support.examples import examples

ANALYSTS = st.sampled_from(["ada", "bob"])
DATASETS = st.sampled_from(["graph", "trips"])
# Coarse, so that budgets are often met exactly.
EPSILONS = st.sampled_from(["0.1", "0.2", "0.3", "0.7"])
CAPS = st.sampled_from(["0", "0.3", "0.6", "1", "1.05"])
CHARGES = st.builds(
    charge, EPSILONS, analyst=ANALYSTS, dataset=DATASETS, query=st.sampled_from(["q", "Q"])
)
Who = tuple[str, str]
# The store waits for the disk at every step; where there is a disk in memory, take it.
QUICK = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class LedgerMachine(RuleBasedStateMachine):
    """The model keeps every charge in a list and adds up fractions each time."""

    tickets = Bundle("tickets")

    @initialize()
    def open(self) -> None:
        self.directory = tempfile.mkdtemp(prefix="sqlrs-ledger-", dir=QUICK)
        self.caps: dict[Who, Fraction] = {}
        self.charged: dict[int, Charge] = {}
        self.ended: dict[int, str | None] = {}
        self.reopen()

    @rule()
    def reopen(self) -> None:
        self.store = StoreLedger(f"sqlite:///{self.directory}/budget.db")

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    def left(self, who: Who) -> Fraction:
        spent = sum(
            Fraction(c.epsilon)
            for c in self.charged.values()
            if who in (("analyst", c.analyst), ("dataset", c.dataset))
        )
        return self.caps.get(who, Fraction(0)) - spent

    @rule(name=ANALYSTS, cap=CAPS)
    def grant_to_analyst(self, name: str, cap: str) -> None:
        self.store.grant(analyst=name, epsilon=cap)
        self.caps["analyst", name] = Fraction(cap)

    @rule(name=DATASETS, cap=CAPS)
    def grant_to_dataset(self, name: str, cap: str) -> None:
        self.store.grant(dataset=name, epsilon=cap)
        self.caps["dataset", name] = Fraction(cap)

    @rule(target=tickets, wanted=CHARGES)
    def reserve(self, wanted: Charge) -> int:
        left = min(self.left(("analyst", wanted.analyst)), self.left(("dataset", wanted.dataset)))
        if Fraction(wanted.epsilon) > left:
            with pytest.raises(BudgetExhausted):
                self.store.reserve(wanted)
            return -1
        ticket = self.store.reserve(wanted)
        assert ticket not in self.charged
        self.charged[ticket] = wanted
        return ticket

    @rule(ticket=tickets, answer=st.integers().map(str))
    def settle(self, ticket: int, answer: str) -> None:
        if ticket in self.charged and ticket not in self.ended:
            self.store.settle(ticket, answer)
            self.ended[ticket] = answer
        else:
            with pytest.raises(ValueError, match="not open"):
                self.store.settle(ticket, answer)

    @rule(ticket=tickets)
    def fail(self, ticket: int) -> None:
        if ticket in self.charged and ticket not in self.ended:
            self.store.fail(ticket, "interrupted")
            self.ended[ticket] = None
        else:
            with pytest.raises(ValueError, match="not open"):
                self.store.fail(ticket, "interrupted")

    @rule(wanted=CHARGES)
    def repeat(self, wanted: Charge) -> None:
        answers = (
            self.ended[t]
            for t in sorted(self.charged)
            if self.charged[t] == wanted and self.ended.get(t) is not None
        )
        assert self.store.repeat(wanted) == next(answers, None)

    @rule(ticket=tickets)
    def repeat_known(self, ticket: int) -> None:
        if ticket in self.charged:
            self.repeat(self.charged[ticket])

    @invariant()
    def the_books_agree(self) -> None:
        shown = {(b.kind.value, b.name): b for b in self.store.show()}
        assert shown.keys() == self.caps.keys()
        for who, budget in shown.items():
            assert Fraction(budget.remaining) == max(Fraction(0), self.left(who))
        assert [(line.ticket, line.charge) for line in self.store.history()] == sorted(
            self.charged.items()
        )
        for line in self.store.history():
            assert line.answer == self.ended.get(line.ticket)


LedgerMachine.TestCase.settings = settings(max_examples=examples(25), stateful_step_count=25)
TestLedger = LedgerMachine.TestCase
