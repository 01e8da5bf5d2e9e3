"""The seam to a database: what the rest of sqlrs asks of an engine; nothing of any driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import Protocol, runtime_checkable

from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.identifiers import column, identifier

Row = tuple[object, ...]


class Snapshot(Protocol):
    """A read-only transaction: every statement sees the same state of the data."""

    def scalar(self, statement: exp.Expression) -> int:
        """Run a statement that yields one integer."""
        ...

    def rows(self, statement: exp.Expression) -> list[Row]:
        """Run a statement and fetch all its rows."""
        ...

    def materialise(self, name: str, statement: exp.Expression) -> None:
        """Keep a statement's result as a temporary table until the snapshot ends.

        Only in a snapshot begun with ``materialising=True``. Later statements name the table
        without a schema. A name that is taken is a ValueError: its table would be hidden.
        """
        ...

    def interrupt(self) -> None:
        """Stop the running statement and every later one, from any thread."""
        ...


@runtime_checkable
class Engine(Protocol):
    """A database with the tables. It fails with ``EngineFailed``, stops with ``Interrupted``."""

    dialect: str

    def catalog(self) -> Catalog:
        """Tables, views, types and keys, all tables private until declared otherwise."""
        ...

    def check_keys(self, catalog: Catalog, keys: Mapping[str, Sequence[Sequence[str]]]) -> None:
        """Verify declared keys on the data (unique and never null); a violation is a UsageError."""
        ...

    def snapshot(self, *, materialising: bool = False) -> AbstractContextManager[Snapshot]:
        """Begin a snapshot; it ends, and its temporary tables go, with the context."""
        ...

    def interrupt(self) -> None:
        """Stop every open snapshot, from any thread: its statements end with ``Interrupted``."""
        ...

    def close(self) -> None:
        """Give the connection back or close it."""
        ...


def one_integer(rows: list[Row]) -> int:
    """The single integer of a result. Anything else is a failure, never a zero."""
    if len(rows) == 1 and len(rows[0]) == 1:
        value = rows[0][0]
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, Decimal) and value.is_finite() and value == int(value):
            return int(value)
    raise EngineFailed("the database did not answer a statement with one integer")


def verify_keys(
    snapshot: Snapshot, catalog: Catalog, keys: Mapping[str, Sequence[Sequence[str]]]
) -> None:
    """Check declared keys with one statement each; the error names the key and no value."""
    for name, column_sets in keys.items():
        tables = [table for table in catalog.tables if name in (table.name, table.label)]
        if not tables:
            raise UsageError(f"there is no table {name}")
        for table in tables:
            table.with_keys(column_sets)
            for columns in column_sets:
                source = exp.Table(
                    this=identifier(table.name),
                    db=identifier(table.schema) if table.schema else None,
                )
                if snapshot.rows(_key_is_violated(source, columns)) != [(False,)]:
                    raise UsageError(
                        f"({', '.join(columns)}) is not a key of table {table.label}: "
                        "its values repeat or are null",
                        code="key_violated",
                    )


def _key_is_violated(table: exp.Table, columns: Sequence[str]) -> exp.Select:
    null = exp.or_(*(exp.Is(this=column(c), expression=exp.Null()) for c in columns))
    repeated = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
    base = exp.select("1").from_(table)
    with_null = base.where(null)
    with_repeat = base.group_by(*(column(c) for c in columns)).having(repeated)
    return exp.select(exp.or_(exp.Exists(this=with_null), exp.Exists(this=with_repeat)))
