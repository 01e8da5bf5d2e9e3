"""Snapshots straight on a driver, so that plans are tested apart from the engines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import psycopg
from sqlglot import exp

from sqlrs.catalog import Catalog, Routine, Table
from sqlrs.engines.base import one_integer
from sqlrs.engines.duckdb_optimizers import MISCOUNTING, SETTING
from tests.support.special import definition

_AT_ONCE = 100


class Direct:
    """A snapshot that runs every statement on one open connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection | psycopg.Connection) -> None:
        self.connection = connection
        if isinstance(connection, psycopg.Connection):
            # A prepared INSERT keeps the types of a table that has since been made anew.
            connection.prepare_threshold = None
        self.dialect = "duckdb" if isinstance(connection, duckdb.DuckDBPyConnection) else "postgres"
        if isinstance(connection, duckdb.DuckDBPyConnection):
            # As the engine runs every statement.
            connection.execute(f"SET {SETTING} = '{','.join(MISCOUNTING)}'")

    def scalar(self, statement: exp.Expression) -> int:
        return one_integer(self.rows(statement))

    def rows(self, statement: exp.Expression) -> list[tuple[Any, ...]]:
        return self.run(statement.sql(dialect=self.dialect))

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        if isinstance(self.connection, duckdb.DuckDBPyConnection):
            return self.connection.execute(sql).fetchall()
        return self.connection.execute(sql.encode()).fetchall()

    def catalog(self) -> Catalog:
        raise NotImplementedError("plans ask for no catalog")

    def routines(self, names: Collection[str]) -> tuple[Routine, ...]:
        raise NotImplementedError("plans ask for no catalog")

    def interrupt(self) -> None:
        raise NotImplementedError("plans stop nothing")

    def fill(self, table: Table, rows: Iterable[Sequence[object]]) -> None:
        """Create the table anew with the given rows."""
        columns = ", ".join(map(definition, table.columns))
        self.connection.execute(f"DROP TABLE IF EXISTS {table.name}")
        self.connection.execute(f"CREATE TABLE {table.name} ({columns})")
        mark = "?" if self.dialect == "duckdb" else "%s"
        marks = ", ".join([mark] * len(table.columns))
        found = list(rows)
        # One statement for many rows: DuckDB takes long over many statements. Other values than
        # whole numbers could change their type beside each other.
        whole = all(value is None or type(value) is int for row in found for value in row)
        cursor = self.connection.cursor()
        if found and not whole:
            cursor.executemany(f"INSERT INTO {table.name} VALUES ({marks})", found)
            return
        for start in range(0, len(found), _AT_ONCE):
            some = found[start : start + _AT_ONCE]
            insert = f"INSERT INTO {table.name} VALUES {', '.join([f'({marks})'] * len(some))}"
            cursor.executemany(insert, [[value for row in some for value in row]])


class Lasting(Direct):
    """A snapshot of rows that nobody can change, and as much of an engine as is needed."""

    def __init__(self, direct: Direct, learned: dict[str, object] | None) -> None:
        super().__init__(direct.connection)
        self.direct = direct
        self.learned = learned
        self.read: list[exp.Expression] = []

    @contextmanager
    def snapshot(self) -> Iterator[Lasting]:
        # Each time another one, with what is known of the rows.
        found = Lasting(self.direct, self.learned)
        found.read = self.read
        yield found

    def scans_files(self, statement: exp.Expression) -> bool:
        return False

    def rows(self, statement: exp.Expression) -> list[tuple[Any, ...]]:
        self.read.append(statement)
        return self.direct.rows(statement)
