"""How budgets are used, and which lines of the journal an owner wants to see."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Select, func, select

from sqlrs.ledger.base import RELEASED, RESERVED, Kind, add, times
from sqlrs.ledger.ledger_tables import RELEASES
from sqlrs.records import dataclass

FAILED = "failed"
"""Stands for every outcome but an answer and a charge that is still open."""


@dataclass(frozen=True)
class Activity:
    """The use of one budget: what is reserved and open, what the last days cost, the last time."""

    reserved: Decimal = Decimal(0)
    lately: Decimal = Decimal(0)
    last: datetime | None = None


@dataclass(frozen=True)
class Wanted:
    """Which lines: of whom, about what, how they ended, with which text, before which ticket.

    ``text`` is a part of the query, ``query`` all of it, to the letter.
    ``characters``: of each query and answer so many. Neither a long journal nor long queries or
    tables fill the memory of whoever shows it; the answer of a count is never as long.
    """

    analyst: str | None = None
    dataset: str | None = None
    outcome: str | None = None
    text: str | None = None
    before: int | None = None
    most: int = 100
    characters: int = 2000
    query: str | None = None


def activities(connection: Connection, kind: Kind, now: datetime, days: int) -> dict[str, Activity]:
    """By the name of each budget that was ever charged."""
    name = (RELEASES.c.analyst if kind is Kind.ANALYST else RELEASES.c.dataset).label("name")
    last = connection.execute(select(name, func.max(RELEASES.c.at)).group_by(name)).all()
    found = {row[0]: Activity(last=row[1]) for row in last}
    recent = RELEASES.c.at >= now - timedelta(days=days)
    is_open = RELEASES.c.outcome == RESERVED
    # Prices are few and lines are many: these are counted where they are. Sums of texts, which
    # prices are in SQLite, would be floating point there.
    kinds = (name, RELEASES.c.epsilon, is_open.label("open"), recent.label("recent"))
    counted = select(*kinds, func.count().label("lines")).where(recent | is_open).group_by(*kinds)
    for row in connection.execute(counted):
        one, spent = found[row.name], times(row.epsilon, row.lines)
        found[row.name] = Activity(
            add(one.reserved, spent) if row.open else one.reserved,
            add(one.lately, spent) if row.recent else one.lately,
            one.last,
        )
    return found


def wanted_lines(wanted: Wanted) -> Select[Any]:
    """The statement that finds them, newest first."""
    long = ("query", "answer")
    shortened = [func.substr(RELEASES.c[n], 1, wanted.characters).label(n) for n in long]
    others = [column for column in RELEASES.c if column.name not in long]
    query = select(*others, *shortened).order_by(RELEASES.c.ticket.desc()).limit(wanted.most)
    if wanted.analyst is not None:
        query = query.where(RELEASES.c.analyst == wanted.analyst)
    if wanted.dataset is not None:
        query = query.where(RELEASES.c.dataset == wanted.dataset)
    if wanted.outcome == FAILED:
        query = query.where(RELEASES.c.outcome.not_in((RELEASED, RESERVED)))
    elif wanted.outcome is not None:
        query = query.where(RELEASES.c.outcome == wanted.outcome)
    if wanted.text:
        query = query.where(RELEASES.c.query.icontains(wanted.text, autoescape=True))
    if wanted.query is not None:
        query = query.where(RELEASES.c.query == wanted.query)
    if wanted.before is not None:
        query = query.where(RELEASES.c.ticket < wanted.before)
    return query
