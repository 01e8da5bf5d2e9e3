"""The ledger of one process: nothing outlives it, and a total budget is optional."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice

from sqlrs.ledger.base import (
    RELEASED,
    RESERVED,
    Charge,
    JournalLine,
    add,
    check_answer,
    check_outcome,
    exhausted,
    not_open,
    parse_cap,
    subtract,
    unit_after,
)


class MemoryLedger:
    """Adds up what this process spends, over all analysts and datasets together.

    ``total`` caps the sum; without it everything is recorded and nothing refused. ``repeats``
    says whether an identical query gets its recorded answer for free.
    """

    def __init__(self, total: Decimal | None = None, *, repeats: bool = True) -> None:
        self._total = None if total is None else parse_cap(total)
        self._repeats = repeats
        self._spent = Decimal(0)
        self._releases: list[JournalLine] = []
        self._answers: dict[Charge, str] = {}
        self._units: dict[str, str] = {}
        self._lock = threading.Lock()

    def repeat(self, charge: Charge) -> str | None:
        """The recorded public answer of an identical released charge, or None."""
        with self._lock:
            return self._answers.get(charge) if self._repeats else None

    def reserve(self, charge: Charge) -> int:
        """Spend the charge, or raise BudgetExhausted and spend nothing."""
        with self._lock:
            unit = unit_after(self._units.get(charge.dataset), charge)
            spent = add(self._spent, charge.epsilon)
            if self._total is not None and not self._spent < spent <= self._total:
                left = subtract(self._total, self._spent)
                more = "give the MemoryLedger a greater total"
                raise exhausted("this session", charge.epsilon, left, more)
            self._spent, self._units[charge.dataset] = spent, unit
            ticket = len(self._releases) + 1
            self._releases.append(JournalLine(ticket, datetime.now(UTC), charge, RESERVED, None))
            return ticket

    def settle(self, ticket: int, answer: str) -> None:
        """Record the public answer, as JSON text."""
        check_answer(answer)
        self._close(ticket, RELEASED, answer)

    def fail(self, ticket: int, outcome: str) -> None:
        """Record that no answer came; the charge stays spent."""
        check_outcome(outcome)
        self._close(ticket, outcome, None)

    def remaining(self, analyst: str, dataset: str) -> Decimal | None:
        """What is left of the total, whoever asks; None means without limit."""
        with self._lock:
            return None if self._total is None else subtract(self._total, self._spent)

    def spent(self) -> Decimal:
        """The sum of all charges so far."""
        with self._lock:
            return self._spent

    def history(self) -> tuple[JournalLine, ...]:
        """Every charge so far, oldest first."""
        with self._lock:
            return tuple(self._releases)

    def newest_of(self, analyst: str, lines: int, characters: int) -> tuple[JournalLine, ...]:
        """The newest lines of one analyst, newest first, of each query so many characters."""
        with self._lock:
            own = (line for line in reversed(self._releases) if line.charge.analyst == analyst)
            return tuple(_shortened(line, characters) for line in islice(own, lines))

    def _close(self, ticket: int, outcome: str, answer: str | None) -> None:
        with self._lock:
            if not 1 <= ticket <= len(self._releases):
                raise not_open(ticket)
            release = self._releases[ticket - 1]
            if release.outcome != RESERVED:
                raise not_open(ticket)
            self._releases[ticket - 1] = replace(release, outcome=outcome, answer=answer)
            if answer is not None:
                self._answers.setdefault(release.charge, answer)


def _shortened(line: JournalLine, characters: int) -> JournalLine:
    return replace(line, charge=replace(line.charge, query=line.charge.query[:characters]))
