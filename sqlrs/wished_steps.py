"""Two charged steps of a wished error: first what makes the width public, then the numbers.

Both are charged before they are drawn, one after the other, so a crash between them leaves the
first charged and recorded, and the second neither charged nor given. docs/proofs/wished_error.md.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from decimal import Decimal
from typing import Generic, TypeVar

from sqlrs.catalog import Catalog
from sqlrs.engines.base import Engine, Opened, Snapshot
from sqlrs.errors import BudgetExhausted, NotShown, SqlrsError
from sqlrs.ledger import Charge, Ledger
from sqlrs.ledger.base import exhausted
from sqlrs.measuring.measurements import Measurements
from sqlrs.measuring.sampling import PublicTables
from sqlrs.measuring.work import Progress
from sqlrs.noise import RandomBits, SystemBits
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.release import guarded
from sqlrs.settings import Settings, Wish

_Outcome = TypeVar("_Outcome")
_Looked = TypeVar("_Looked")
_Chosen = TypeVar("_Chosen")
_Noisy = TypeVar("_Noisy")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class WishDesk:
    """Where a wish is granted: the data, the ledger, and who hears of the work."""

    engine: Engine
    catalog: Catalog
    ledger: Ledger
    settings: Settings
    progress: Progress | None = None

    def measurements(self, snapshot: Snapshot) -> Measurements:
        """What may be measured on an open snapshot."""
        return Measurements(
            Opened(snapshot, self.engine.dialect),
            self.settings.plan,
            self.settings.solver_seconds,
            self.progress,
            fetch_limit=self.settings.fetch_limit,
        )

    def public_measurements(self, snapshot: Snapshot) -> Measurements:
        """The same before anything is charged: not even plans look at private rows."""
        return replace(self.measurements(snapshot), sampled=PublicTables(), fetch_limit=0)


class TwoSteps(ABC, Generic[_Looked, _Chosen, _Noisy, _Answer]):
    """The order of both steps, whatever is told first and drawn afterwards.

    ``told``: in words, what is.
    """

    wish: Wish
    desk: WishDesk
    told: str

    @property
    @abstractmethod
    def look(self) -> Charge:
        """The charge of the first step."""

    @abstractmethod
    def chosen(self, index: int) -> _Chosen | None:
        """The cheapest noise that will do, None if the maximum is not enough."""

    @abstractmethod
    def least_error(self, index: int) -> str:
        """The error for all of the maximum, by what was told."""

    @abstractmethod
    def charge(self, index: int, chosen: _Chosen) -> Charge:
        """The charge of the second step."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Callable[[], _Looked]]:
        """All that comes before a charge and reads no private row; then what measures."""

    @abstractmethod
    def publish(self, looked: _Looked, bits: RandomBits) -> int:
        """The first step."""

    @abstractmethod
    def noisy(self, looked: _Looked, index: int, chosen: _Chosen, bits: RandomBits) -> _Noisy:
        """The second step."""

    @abstractmethod
    def recorded(self, noisy: _Noisy, chosen: _Chosen, charge: Charge, paid: Decimal) -> str:
        """What the ledger records of the second step; ``paid`` was for the first, just now."""

    @abstractmethod
    def shown(
        self, recorded: str, index: int, charge: Charge, paid: Decimal, *, repeated: bool
    ) -> _Answer:
        """The answer of what was recorded."""

    def answer(self) -> _Answer:
        """Both steps, or the second alone where the first was released before."""
        look, ledger = self.look, self.desk.ledger
        if recorded := ledger.repeat(look):
            index = index_of(recorded)
            chosen = self._enough(index, Decimal(0))
            charge = self.charge(index, chosen)
            if answered := ledger.repeat(charge):
                return self.shown(answered, index, charge, Decimal(0), repeated=True)
            ticket, looked = self._measured(charge)
            return self._released(looked, index, chosen, ticket, charge, Decimal(0))
        left = ledger.remaining(look.analyst, look.dataset)
        if left is not None and left < self.wish.maximum:
            # What the second step costs is not known yet; who has less may be left with nothing.
            raise exhausted(
                "the analyst or the dataset",
                self.wish.maximum,
                left,
                "allow less with --max-epsilon",
            )
        ticket, looked = self._measured(look)
        index = self._drawn(lambda: self.publish(looked, SystemBits()), ticket)
        ledger.settle(ticket, json.dumps([{"scale": index}]))
        chosen = self._enough(index, look.epsilon)
        charge = self.charge(index, chosen)
        try:
            ticket = ledger.reserve(charge)
        except BudgetExhausted as problem:
            # Somebody else was quicker; only the second step is refused as if nothing was charged.
            told = f"epsilon {look.epsilon:f} was charged for {self.told}"
            raise BudgetExhausted(
                f"{problem.message}; {told}", hint=problem.hint, code=problem.code
            ) from None
        return self._released(looked, index, chosen, ticket, charge, look.epsilon)

    def _enough(self, index: int, charged: Decimal) -> _Chosen:
        """The cheapest noise that will do; what it follows from is released already."""
        chosen = self.chosen(index)
        if chosen is not None:
            return chosen
        said = (
            f"an error of at most {self.wish.error} needs more than epsilon "
            f"{self.wish.maximum:f}; by {self.told} it would be {self.least_error(index)} then"
        )
        hint = (
            f"wish a larger error: with the same maximum {self.told} is not charged again; "
            "another maximum needs one of its own"
        )
        if charged:
            told = f"{said}; epsilon {charged:f} was charged for it"
            raise NotShown(told, hint=hint, code="wish_not_met")
        raise refusal("wish_not_met", f"{said}; nothing was charged", hint=hint)

    def _measured(self, charge: Charge) -> tuple[int, _Looked]:
        """Charge, then read; the snapshot ends before anything is drawn."""
        with ExitStack() as stack:
            measure = stack.enter_context(self.reading())
            ticket = self.desk.ledger.reserve(charge)
            end = stack.pop_all()

            def work() -> _Looked:
                with end:
                    return measure()

            looked = self._drawn(work, ticket)
        return ticket, looked

    def _released(
        self,
        looked: _Looked,
        index: int,
        chosen: _Chosen,
        ticket: int,
        charge: Charge,
        paid: Decimal,
    ) -> _Answer:
        noisy = self._drawn(lambda: self.noisy(looked, index, chosen, SystemBits()), ticket)
        recorded = self.recorded(noisy, chosen, charge, paid)
        self.desk.ledger.settle(ticket, recorded)
        return self.shown(recorded, index, charge, paid, repeated=False)

    def _drawn(self, work: Callable[[], _Outcome], ticket: int) -> _Outcome:
        """What the work gives; if it fails that is recorded, and the one error is raised."""
        outcome = guarded(work)
        if isinstance(outcome, SqlrsError):
            self.desk.ledger.fail(ticket, outcome.code)
            raise outcome
        return outcome


def index_of(recorded: str) -> int:
    """What was told before the numbers, by the record of an earlier release."""
    ((index),) = (int(one["scale"]) for one in json.loads(recorded))
    return index
