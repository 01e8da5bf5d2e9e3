"""What clients were told, held against the ledger: nothing unpaid, nobody above the cap."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from sqlrs.answer import Answer
from sqlrs.ledger.base import RELEASED, JournalLine, PrivacyBudget
from sqlrs.ledger.store import StoreLedger

_CHARGED = re.compile(r"sqlrs: epsilon (\S+) charged, ")
_FROM_RECORD = "sqlrs: answered from the record, nothing charged, "


class Received(NamedTuple):
    """One answer that reached a client; the price that it was told is 0 for a repeat."""

    analyst: str
    value: int
    epsilon: Decimal

    @classmethod
    def of(cls, analyst: str, value: int, notice: str) -> Received:
        """From the answer and the notice that came with it."""
        charged = _CHARGED.match(notice)
        assert charged is not None or notice.startswith(_FROM_RECORD), notice
        return cls(analyst, value, Decimal(charged[1]) if charged else Decimal(0))


def check_books(ledger: StoreLedger, received: Sequence[Received]) -> None:
    """Every answer is recorded at its price, and answered <= spent <= cap for every budget."""
    lines = ledger.history()
    released = Counter(_recorded(line) for line in lines if line.outcome == RELEASED)
    fresh = Counter(answer for answer in received if answer.epsilon)
    assert fresh <= released, fresh - released
    known = {(line.analyst, line.value) for line in released}
    unknown = [answer for answer in received if (answer.analyst, answer.value) not in known]
    assert not unknown, unknown
    for budget in ledger.show():
        answered = sum(a.epsilon for a in received if _pays(budget, a.analyst))
        charged = sum(x.charge.epsilon for x in lines if _pays(budget, x.charge.analyst))
        assert answered <= charged == budget.spent <= budget.cap, budget


def _recorded(line: JournalLine) -> Received:
    assert line.answer is not None
    value = Answer.from_json(line.answer).value
    return Received(line.charge.analyst, value, line.charge.epsilon)


def _pays(budget: PrivacyBudget, analyst: str) -> bool:
    # There is one dataset, and it pays for everybody.
    return budget.kind == "dataset" or budget.name == analyst
