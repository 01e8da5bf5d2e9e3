"""The ledger as one count of the proxy sees it: its outcome is recorded when it may be seen."""

from __future__ import annotations

from decimal import Decimal

from sqlrs.errors import Interrupted
from sqlrs.ledger import Charge, Ledger
from sqlrs.proxy.backend import Hold


class PacedLedger:
    """Charges at once; ``hold`` decides when the outcome is written, and whether it was a stop.

    What is spent does not depend on the data, so it shows from the reservation on. How and when
    the release ended does: a line that changed before the answer was due would tell it.
    """

    def __init__(self, ledger: Ledger, hold: Hold) -> None:
        self._ledger = ledger
        self._hold = hold
        self.repeated = False

    def repeat(self, charge: Charge) -> str | None:
        """The recorded answer; whether there was one is remembered."""
        recorded = self._ledger.repeat(charge)
        self.repeated = recorded is not None
        return recorded

    def reserve(self, charge: Charge) -> int:
        """Spend the charge."""
        return self._ledger.reserve(charge)

    def settle(self, ticket: int, answer: str) -> None:
        """Record the answer once it is due, or that the release was stopped before."""
        self._wait(ticket)
        self._ledger.settle(ticket, answer)

    def fail(self, ticket: int, outcome: str) -> None:
        """Record the failure once it is due, or that the release was stopped before."""
        self._wait(ticket)
        self._ledger.fail(ticket, outcome)

    def remaining(self, analyst: str, dataset: str) -> Decimal | None:
        """What may still be spent."""
        return self._ledger.remaining(analyst, dataset)

    def _wait(self, ticket: int) -> None:
        try:
            self._hold()
        except Interrupted as stopped:
            self._ledger.fail(ticket, stopped.code)
            raise
