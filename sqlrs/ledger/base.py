"""What a ledger is: charges with exact epsilons, and the protocol that the release path follows."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from enum import StrEnum
from shlex import quote
from typing import Protocol

from sqlrs.epsilon import parse_epsilon
from sqlrs.errors import BudgetExhausted, UsageError
from sqlrs.ledger.windows import RENEWALS, window_end, window_of
from sqlrs.records import dataclass
from sqlrs.units import ROW

RESERVED = "reserved"
RELEASED = "released"

_MAX_CAP = Decimal(1_000_000)
_MAX_TEXT = 64
_MAX_NAME = 200
_FINEST = Decimal("1e-30")
# Budgets are never rounded: an operation that would have to round raises.
_EXACT = Context(prec=60, traps=[Inexact, InvalidOperation])
# Letters only: no number, and so nothing about the data, can enter the journal this way.
_OUTCOME = re.compile(r"[a-z_]{1,40}")


class Kind(StrEnum):
    """Whose budget: one analyst's over all datasets, or one dataset's over all analysts."""

    ANALYST = "analyst"
    DATASET = "dataset"


@dataclass(frozen=True)
class Charge:
    """What one release costs and to whom; two equal charges ask for the same answer.

    ``query`` is the canonical text of the query, ``mechanism`` the full public description of the
    noise including its shape. ``unit``: who is protected, a row or a unit with all its rows.
    """

    analyst: str
    dataset: str
    query: str
    mechanism: str
    epsilon: Decimal
    unit: str = ROW

    def __post_init__(self) -> None:
        check_name(Kind.ANALYST, self.analyst)
        check_name(Kind.DATASET, self.dataset)
        _check_text("query", self.query)
        _check_text("mechanism", self.mechanism)
        _check_text("unit", self.unit)
        # One value has one form: equal charges are equal in every store.
        object.__setattr__(self, "epsilon", parse_epsilon(self.epsilon))


@dataclass(frozen=True)
class PrivacyBudget:
    """A cap on the sum of the epsilons of one analyst or one dataset, and the sum so far.

    ``spent`` is the sum over all time. Where the budget is renewed (``renew``: monthly, say), the
    cap is that of each window, and ``window_spent`` the sum in ``window``, the present one.
    ``unit``: who the charges of a dataset protect, None before the first. They add up to one
    promise only if that is the same for all. ``expired``: whether the grant is over by now.
    """

    kind: Kind
    name: str
    cap: Decimal
    spent: Decimal
    unit: str | None = None
    note: str = ""
    expires: datetime | None = None
    renew: str = ""
    window: str = ""
    window_spent: Decimal = Decimal(0)
    expired: bool = False

    def __post_init__(self) -> None:
        numbers = (self.cap, self.spent, self.window_spent)
        if not all(value.is_finite() and value >= 0 for value in numbers):
            raise ValueError("a budget is made of finite numbers from 0")
        if self.renew and (self.renew not in RENEWALS or not self.window):
            raise ValueError("a budget that is renewed is so in a known way, and has a window")
        if self.expires is not None and self.expires.tzinfo is None:
            raise ValueError("the moment of an expiry has a time zone")

    @property
    def counted(self) -> Decimal:
        """What is held against the cap: all that is spent, or what is in the present window."""
        return self.window_spent if self.renew else self.spent

    @property
    def remaining(self) -> Decimal:
        """What may still be spent; 0 where the cap was lowered below it, or the grant is over."""
        if self.expired:
            return Decimal(0)
        return max(Decimal(0), subtract(self.cap, self.counted))

    @property
    def renews_at(self) -> datetime | None:
        """When the next window begins."""
        return window_end(self.renew, self.window) if self.renew else None

    def at(self, now: datetime) -> PrivacyBudget:
        """The budget at a moment: in its window, and over or not.

        A clock that goes back leads into no window that is over: what was spent stays counted.
        """
        expired = self.expires is not None and not now < self.expires
        present = window_of(self.renew, now) if self.renew else ""
        if present <= self.window:
            return replace(self, expired=expired)
        return replace(self, window=present, window_spent=Decimal(0), expired=expired)

    def after(self, charge: Charge) -> PrivacyBudget:
        """The budget once the charge is spent, or BudgetExhausted; of another unit: UsageError.

        It is the budget ``at`` the moment of the charge.
        """
        unit = self.unit
        if self.kind is Kind.DATASET:
            unit = unit_after(self.unit, charge)
        spent = add(self.spent, charge.epsilon)
        counted = add(self.counted, charge.epsilon)
        whose = f"{self.kind} {self.name!r}"
        if self.expired:
            raise expired(whose, self.expires)
        if not (self.spent < spent and self.counted < counted <= self.cap):
            command = f"sqlrs budget grant E --{self.kind} {quote(self.name)}"
            total = f"each {self.renew} window" if self.renew else "all time"
            more = f"let the data owner raise the cap (E is the total over {total}): {command}"
            if self.renews_at is not None:
                more = f"wait until {self.renews_at:%Y-%m-%d}, when it is renewed, or {more}"
            raise exhausted(whose, charge.epsilon, self.remaining, more)
        window_spent = counted if self.renew else self.window_spent
        return replace(self, spent=spent, unit=unit, window_spent=window_spent)


@dataclass(frozen=True)
class JournalLine:
    """One line of the journal. It has no end time: how long a release took depends on the data."""

    ticket: int
    at: datetime
    charge: Charge
    outcome: str
    answer: str | None


class Ledger(Protocol):
    """What the release path calls, in this order: repeat, reserve, then settle or fail."""

    def repeat(self, charge: Charge) -> str | None:
        """The recorded public answer of an identical released charge, or None."""
        ...

    def reserve(self, charge: Charge) -> int:
        """Spend the charge before any data is read, or raise BudgetExhausted and spend nothing.

        The ticket is settled or failed later. If neither happens, the charge stays spent.
        """
        ...

    def settle(self, ticket: int, answer: str) -> None:
        """Record the public answer, as JSON text; only then may it be shown."""
        ...

    def fail(self, ticket: int, outcome: str) -> None:
        """Record that no answer came, by an error code of letters; the charge stays spent."""
        ...

    def remaining(self, analyst: str, dataset: str) -> Decimal | None:
        """What this analyst may still spend on this dataset; None means without limit."""
        ...


def unit_after(unit: str | None, charge: Charge) -> str:
    """The unit of a dataset once a charge is spent; None: it has none yet."""
    if unit not in (None, charge.unit):
        raise UsageError(
            f"the budget of dataset {charge.dataset!r} protects {_whom(unit)}, and this release "
            f"would protect {_whom(charge.unit)}: epsilons of different promises do not add up",
            hint="give the data with this unit a dataset name and a budget of its own: dataset = "
            '"…" in the configuration, sqlrs budget grant E --dataset NAME',
            code="other_unit",
        )
    return charge.unit


def _whom(unit: str | None) -> str:
    return "single rows" if unit in (None, ROW) else f"units of {unit}"


def parse_cap(value: Decimal | int | str) -> Decimal:
    """A budget, exactly as its decimal text says; 0 is allowed and closes it."""
    try:
        # A float is never exact; a text of megabytes would be worked through digit by digit.
        if isinstance(value, Decimal | int | str) and len(str(value)) <= _MAX_TEXT:
            cap = Decimal(value)
            if cap.is_finite() and 0 <= cap <= _MAX_CAP:
                return _plain(_EXACT.quantize(cap, _FINEST))
    except (Inexact, InvalidOperation, ValueError):
        pass
    raise UsageError(
        f"a budget must be a decimal number from 0 to {_MAX_CAP}", hint="such as 10 or 0.5"
    )


def check_name(kind: Kind, name: str) -> None:
    """Refuse a name that is empty, endless, or not printable as it stands."""
    _check_text(f"the {kind}'s name", name)
    if not name.isprintable() or name != name.strip() or len(name) > _MAX_NAME:
        raise UsageError(
            f"the {kind}'s name must be 1 to {_MAX_NAME} printable characters",
            hint="no line breaks, no control characters, no space at either end",
        )


def check_answer(answer: str) -> None:
    """Refuse an answer that is not JSON; the error holds nothing of it."""
    try:
        json.loads(answer)
    except ValueError:
        raise ValueError("the answer to record is not JSON text") from None


def check_outcome(outcome: str) -> None:
    """Refuse an outcome that is not a code of lower-case letters and underscores."""
    if not _OUTCOME.fullmatch(outcome) or outcome in (RESERVED, RELEASED):
        raise ValueError("an outcome is an error code of letters and underscores")


def not_open(ticket: int) -> ValueError:
    """The error for a ticket that was never issued, or is settled or failed already."""
    return ValueError(f"ticket {ticket} is not open")


def add(left: Decimal, right: Decimal) -> Decimal:
    """The exact sum, without trailing zeros."""
    return _plain(_EXACT.add(left, right))


def subtract(left: Decimal, right: Decimal) -> Decimal:
    """The exact difference, without trailing zeros. Python's own minus rounds to 28 digits."""
    return _plain(_EXACT.subtract(left, right))


def times(price: Decimal, number: int) -> Decimal:
    """So many times the price, exactly, without trailing zeros."""
    return _plain(_EXACT.multiply(price, Decimal(number)))


def exhausted(whose: str, asked: Decimal, left: Decimal, more: str) -> BudgetExhausted:
    """The refusal, from public numbers only; ``more`` says how there could be more."""
    return BudgetExhausted(
        f"the release costs epsilon {asked:f}, but the budget of {whose} has {left:f} left",
        hint=f"ask for a smaller epsilon, repeat an earlier query, or {more}",
    )


def expired(whose: str, moment: datetime | None) -> BudgetExhausted:
    """The refusal of a charge to a budget whose grant is over."""
    when = "" if moment is None else f" on {moment:%Y-%m-%d at %H:%M} UTC"
    return BudgetExhausted(
        f"the budget of {whose} expired{when}",
        hint="repeat an earlier query, or let the data owner grant it anew",
        code="budget_expired",
    )


def _plain(value: Decimal) -> Decimal:
    # Adding 0 turns -0 into 0.
    return Decimal(f"{_EXACT.normalize(_EXACT.add(value, Decimal(0))):f}")


def _check_text(what: str, text: object) -> None:
    if not isinstance(text, str) or not text or "\0" in text or not _encodable(text):
        raise UsageError(f"{what} must be Unicode text, not empty, without the character NUL")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
