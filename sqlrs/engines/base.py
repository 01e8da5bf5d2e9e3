"""The seam to a database: what the rest of sqlrs asks of an engine, and nothing about any driver."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from sqlglot import exp

from sqlrs.catalog import Catalog


class Snapshot(Protocol):
    """A read-only transaction: every statement sees the same state of the data."""

    def scalar(self, statement: exp.Expression) -> int:
        """Run a statement that yields one integer."""
        ...

    def rows(self, statement: exp.Expression) -> list[tuple[object, ...]]:
        """Run a statement and fetch all its rows."""
        ...

    def materialise(self, name: str, statement: exp.Expression) -> None:
        """Keep a statement's result as a temporary table until the snapshot ends."""
        ...


class Engine(Protocol):
    """A database that holds the tables. Failures are ``EngineFailed``, a stop is ``Interrupted``."""

    dialect: str

    def catalog(self) -> Catalog:
        """Tables, views, types and keys, all tables private until declared otherwise."""
        ...

    def check_keys(self, catalog: Catalog, keys: dict[str, Sequence[Sequence[str]]]) -> None:
        """Verify declared keys on the data (unique and never null); a violation is a UsageError."""
        ...

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Begin a snapshot; it ends, and its temporary tables go, with the context."""
        ...

    def interrupt(self) -> None:
        """Stop the running statement, from any thread; it ends with ``Interrupted``."""
        ...

    def close(self) -> None:
        """Give the connection back or close it."""
        ...
