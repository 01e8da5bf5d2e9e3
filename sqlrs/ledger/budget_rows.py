"""Budgets and lines of the journal, between the rows of a store and their dataclasses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from functools import reduce
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, select

from sqlrs.errors import EngineFailed, UsageError
from sqlrs.ledger.base import Charge, JournalLine, Kind, PrivacyBudget, add, check_name
from sqlrs.ledger.ledger_tables import BUDGETS, RELEASES
from sqlrs.units import ROW


@contextmanager
def readable() -> Iterator[None]:
    """What stands in a store and is no budget ends in an error; it is never taken for one."""
    try:
        yield
    except (ValueError, TypeError, OverflowError):
        raise EngineFailed("the budget ledger holds something that is not a budget") from None


def budget_of(row: Row[Any], now: datetime) -> PrivacyBudget:
    """The budget of a row, at a moment of the ledger's clock."""
    with readable():
        return PrivacyBudget(
            Kind(row.kind),
            row.name,
            row.cap,
            row.spent,
            row.unit,
            row.note,
            row.expires,
            row.renew,
            row.window_start,
            row.window_spent,
        ).at(now)


def nothing(kind: Kind, name: str) -> PrivacyBudget:
    """The budget of whoever has none granted."""
    return PrivacyBudget(kind, name, Decimal(0), Decimal(0))


def whose(analyst: str | None, dataset: str | None) -> tuple[Kind, str]:
    """The one budget that is named, or a UsageError."""
    if analyst is not None and dataset is None:
        kind, name = Kind.ANALYST, analyst
    elif dataset is not None and analyst is None:
        kind, name = Kind.DATASET, dataset
    else:
        raise UsageError("name one analyst or one dataset")
    check_name(kind, name)
    return kind, name


def is_budget(kind: Kind, name: str) -> ColumnElement[bool]:
    """The row of one budget."""
    return and_(BUDGETS.c.kind == kind, BUDGETS.c.name == name)


def journaled(
    connection: Connection, kind: Kind, name: str, since: datetime | None = None
) -> Decimal:
    """What the journal has charged to a budget: where a deleted one, or a window, starts again."""
    column = RELEASES.c.analyst if kind is Kind.ANALYST else RELEASES.c.dataset
    lines = select(RELEASES.c.epsilon).where(column == name)
    if since is not None:
        lines = lines.where(RELEASES.c.at >= since)
    return reduce(add, connection.execute(lines).scalars(), Decimal(0))


def journaled_unit(connection: Connection, dataset: str) -> str | None:
    """Who the journal says that a dataset's charges protect: its budget may have been deleted."""
    lines = select(RELEASES.c.unit).where(RELEASES.c.dataset == dataset)
    return connection.execute(lines.order_by(RELEASES.c.ticket).limit(1)).scalar()


def line_of(row: Row[Any]) -> JournalLine:
    """The line of the journal that a row holds."""
    charge = Charge(row.analyst, row.dataset, row.query, row.mechanism, row.epsilon, row.unit)
    return JournalLine(row.ticket, row.at, charge, row.outcome, row.answer)


def fingerprint(charge: Charge) -> str:
    """A digest by which an equal charge is found again."""
    parts = [charge.analyst, charge.dataset, charge.query, charge.mechanism, f"{charge.epsilon:f}"]
    if charge.unit != ROW:
        # Those of rows stay as they were before there were units.
        parts.append(charge.unit)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
