"""What owners do to budgets and what analysts ask of them, each with who, when and why.

All functions work inside a writing transaction of a store: the act and its record stand together.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from sqlalchemy import Connection, Row, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite

from sqlrs.epsilon import parse_epsilon
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.ledger.base import Kind, PrivacyBudget, add, check_name, parse_cap
from sqlrs.ledger.budget_rows import budget_of, is_budget, journaled, nothing, readable
from sqlrs.ledger.ledger_tables import ACTS, BUDGETS, REQUESTS
from sqlrs.ledger.windows import NEVER, parse_expiry, parse_renewal, window_of, window_start
from sqlrs.records import dataclass
from sqlrs.templates import template

OPEN, GRANTED, DECLINED = STATES = ("open", "granted", "declined")
MOST_OPEN = 5
"""Requests of one analyst that wait for the owner; more are refused."""
_MOST_WORDS = 500
_INSERT: dict[str, Callable[[Table], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}

ActName = Literal["grant", "revoke", "approve", "decline"]


@dataclass(frozen=True)
class Act:
    """One act of an owner: what a budget was set to, by whom and why."""

    number: int
    at: datetime
    who: str
    act: str
    kind: str
    name: str
    cap: Decimal
    renew: str
    expires: datetime | None
    why: str
    request: int | None


@dataclass(frozen=True)
class BudgetRequest:
    """What an analyst asks for, and how it was decided."""

    number: int
    at: datetime
    analyst: str
    dataset: str
    epsilon: Decimal
    why: str
    state: str
    decision: Act | None = None


@dataclass(frozen=True)
class GrantTerms:
    """What a grant changes besides the cap; None leaves it as it is, ``never`` ends it."""

    note: str | None = None
    expires: datetime | str | None = None
    renew: str | None = None


def words(what: str, text: str, *, needed: bool = False) -> str:
    """A note or a reason: one paragraph of printable text."""
    found = " ".join(text.split()) if isinstance(text, str) else ""
    if len(found) > _MOST_WORDS or not found.isprintable() or (needed and not found):
        least = 1 if needed else 0
        raise UsageError(f"{what} has {least} to {_MOST_WORDS} printable characters")
    return found


def set_budget(
    connection: Connection, now: datetime, kind: Kind, name: str, cap: Decimal, terms: GrantTerms
) -> PrivacyBudget:
    """Give a budget its cap and its terms; what is spent stays spent."""
    hold(connection, kind, name)
    before = _standing(connection, now, kind, name)
    renew = before.renew if terms.renew is None else parse_renewal(terms.renew)
    expires = before.expires if terms.expires is None else parse_expiry(terms.expires, now)
    window, window_spent = before.window, before.window_spent
    if renew != before.renew:
        window = window_of(renew, now) if renew else ""
        since = window_start(window) if renew else None
        window_spent = journaled(connection, kind, name, since) if renew else Decimal(0)
    values = {
        "cap": cap,
        "note": before.note if terms.note is None else words("a note", terms.note),
        "expires": expires,
        "renew": renew,
        "window_start": window,
        "window_spent": window_spent,
    }
    connection.execute(BUDGETS.update().where(is_budget(kind, name)).values(**values))
    return _standing(connection, now, kind, name)


def hold(connection: Connection, kind: Kind, name: str) -> None:
    """Keep a budget from everybody else until the transaction ends.

    One that is missing is made first, closed: no lock is on a row that is not there, and what is
    written by a look at nothing would undo a grant and charges that came in between.
    """
    held = select(BUDGETS).where(is_budget(kind, name)).with_for_update()
    if connection.execute(held).all():
        return
    insert = _INSERT[connection.dialect.name](BUDGETS)
    closed = {"cap": Decimal(0), "spent": journaled(connection, kind, name)}
    empty = {"note": "", "renew": "", "window_start": "", "window_spent": Decimal(0)}
    connection.execute(
        insert.values(kind=kind, name=name, **closed, **empty).on_conflict_do_nothing()
    )
    connection.execute(held)


def _standing(connection: Connection, now: datetime, kind: Kind, name: str) -> PrivacyBudget:
    return budget_of(connection.execute(select(BUDGETS).where(is_budget(kind, name))).one(), now)


def record(
    connection: Connection,
    now: datetime,
    act: ActName,
    budget: PrivacyBudget,
    who: str,
    why: str,
    request: int | None = None,
) -> None:
    """Write down what was done."""
    check_name(Kind.ANALYST, who)
    values = {
        "at": now,
        "who": who,
        "act": act,
        "kind": budget.kind,
        "name": budget.name,
        "cap": budget.cap,
        "renew": budget.renew,
        "expires": budget.expires,
        "why": words("a reason", why),
        "request": request,
    }
    connection.execute(ACTS.insert().values(**values))


def revoke(
    connection: Connection, now: datetime, kind: Kind, name: str, who: str, why: str
) -> PrivacyBudget:
    """Close a budget: a cap of 0, for all time."""
    terms = GrantTerms(note=why, expires=NEVER, renew=NEVER)
    budget = set_budget(connection, now, kind, name, Decimal(0), terms)
    record(connection, now, "revoke", budget, who, words("a reason", why, needed=True))
    return budget


def ask(
    connection: Connection,
    now: datetime,
    analyst: str,
    dataset: str,
    epsilon: Decimal | int | str,
    why: str,
) -> int:
    """Record what an analyst asks for; a few such requests may be open."""
    check_name(Kind.ANALYST, analyst)
    check_name(Kind.DATASET, dataset)
    values = {
        "at": now,
        "analyst": analyst,
        "dataset": dataset,
        "epsilon": parse_epsilon(epsilon),
        "why": words("a reason", why, needed=True),
        "state": OPEN,
    }
    if connection.dialect.name == "postgresql":
        # SQLite's write lock is enough.
        connection.exec_driver_sql(template("ledger/postgresql_one_asker.sql"))
    own = (REQUESTS.c.analyst == analyst) & (REQUESTS.c.state == OPEN)
    waiting = connection.execute(select(func.count()).select_from(REQUESTS).where(own)).scalar_one()
    if waiting >= MOST_OPEN:
        raise UsageError(
            f"{MOST_OPEN} requests of yours wait for the data's owner already",
            hint="wait until one of them is decided",
            code="too_many",
        )
    made = connection.execute(REQUESTS.insert().values(**values).returning(REQUESTS.c.number))
    return int(made.scalar_one())


def decide(
    connection: Connection,
    now: datetime,
    number: int,
    who: str,
    why: str,
    *,
    granted: bool,
    epsilon: Decimal | int | str | None = None,
    expires: datetime | str | None = None,
) -> PrivacyBudget:
    """Grant what was asked for, or less or more, on top of the analyst's cap; or decline it."""
    found = select(REQUESTS).where(REQUESTS.c.number == number).with_for_update()
    row = connection.execute(found).one_or_none()
    if row is None or row.state != OPEN:
        raise UsageError(
            f"request {number} is not open",
            hint="somebody may have decided it in the meantime: sqlrs budget requests",
        )
    more = row.epsilon if epsilon is None else parse_epsilon(epsilon)
    kind, name = Kind.ANALYST, row.analyst
    if granted:
        hold(connection, kind, name)
        cap = parse_cap(add(_standing(connection, now, kind, name).cap, more))
        budget = set_budget(connection, now, kind, name, cap, GrantTerms(expires=expires))
        if budget.expired:
            raise UsageError(
                f"the budget of analyst {name!r} has expired: more of it would be of no use",
                hint="say until when it lasts now (--expires)",
            )
    else:
        rows = connection.execute(select(BUDGETS).where(is_budget(kind, name))).all()
        budget = budget_of(rows[0], now) if rows else nothing(kind, name)
    state = GRANTED if granted else DECLINED
    changed = connection.execute(
        REQUESTS.update()
        .where(REQUESTS.c.number == number, REQUESTS.c.state == OPEN)
        .values(state=state)
    )
    if changed.rowcount != 1:
        raise EngineFailed("the budget ledger did not keep a decision")
    record(connection, now, "approve" if granted else "decline", budget, who, why, number)
    return budget


def act_of(row: Row[Any]) -> Act:
    """The act that a row holds."""
    with readable():
        return Act(**{column.name: getattr(row, column.name) for column in ACTS.c})


def request_of(row: Row[Any], decision: Act | None) -> BudgetRequest:
    """The request that a row holds, with its decision."""
    with readable():
        held = {column.name: getattr(row, column.name) for column in REQUESTS.c}
        return BudgetRequest(**held, decision=decision)
