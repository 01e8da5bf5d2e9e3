"""The ledger's tables as the code of today uses them, and the types of their columns.

They are made and changed by migrations.py alone: a column that is added here is added there too.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Integer,
    MetaData,
    Numeric,
    Table,
    Text,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

from sqlrs.errors import EngineFailed, UsageError
from sqlrs.ledger.base import parse_cap

# Of PostgreSQL; in SQLite a ledger is a file of its own.
SCHEMA = "sqlrs_ledger"


class Epsilon(TypeDecorator[Decimal]):
    """An exact decimal: NUMERIC where the database has it, else its text. SQLite's is a float."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The column's type in one database."""
        exact: TypeEngine[Any] = Text() if dialect.name == "sqlite" else Numeric()
        return dialect.type_descriptor(exact)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """A decimal as the database keeps it."""
        return f"{value:f}" if dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal:
        """The decimal that the database kept, or an error where it is none."""
        try:
            return parse_cap(value)
        except UsageError:
            raise EngineFailed("the budget ledger holds something that is not a budget") from None


class Moment(TypeDecorator[datetime]):
    """A moment in UTC; SQLite forgets the time zone, so it is put back."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime:
        """The moment, with its zone."""
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class OptionalMoment(Moment):
    """A moment, or none."""

    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """The moment, with its zone, or None."""
        return None if value is None else super().process_result_value(value, dialect)


TICKET = BigInteger().with_variant(Integer, "sqlite")

_METADATA = MetaData()
BUDGETS = Table(
    "sqlrs_budgets",
    _METADATA,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("cap", Epsilon, nullable=False),
    # Kept here and not summed from the journal: clearing old lines must not refill a budget.
    Column("spent", Epsilon, nullable=False),
    # Of a dataset: who its charges protect.
    Column("unit", Text),
    Column("note", Text, nullable=False),
    Column("expires", OptionalMoment),
    # Empty where the cap is one over all time.
    Column("renew", Text, nullable=False),
    # The last window that was charged, by its first day, and what it was charged.
    Column("window_start", Text, nullable=False),
    Column("window_spent", Epsilon, nullable=False),
)
RELEASES = Table(
    "sqlrs_releases",
    _METADATA,
    Column("ticket", TICKET, primary_key=True),
    Column("at", Moment, nullable=False),
    Column("analyst", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("query", Text, nullable=False),
    Column("mechanism", Text, nullable=False),
    Column("epsilon", Epsilon, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("answer", Text),
    # A query is too long for an index; a digest of the whole charge is not.
    Column("fingerprint", Text, nullable=False),
    Column("unit", Text, nullable=False),
)
# What the owner did to budgets: who, when, why.
ACTS = Table(
    "sqlrs_acts",
    _METADATA,
    Column("number", TICKET, primary_key=True),
    Column("at", Moment, nullable=False),
    Column("who", Text, nullable=False),
    Column("act", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("cap", Epsilon, nullable=False),
    Column("renew", Text, nullable=False),
    Column("expires", OptionalMoment),
    Column("why", Text, nullable=False),
    # The request that it decides.
    Column("request", TICKET),
)
REQUESTS = Table(
    "sqlrs_requests",
    _METADATA,
    Column("number", TICKET, primary_key=True),
    Column("at", Moment, nullable=False),
    Column("analyst", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("epsilon", Epsilon, nullable=False),
    Column("why", Text, nullable=False),
    Column("state", Text, nullable=False),
)
VERSION = Table(
    "sqlrs_version",
    _METADATA,
    Column("version", Integer, nullable=False),
)
TABLES = (BUDGETS, RELEASES, ACTS, REQUESTS, VERSION)
