"""Snapshots straight on a driver, so that plans are tested apart from the engines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb
import psycopg
from sqlglot import exp

from sqlrs.catalog import Table
from sqlrs.engines.duckdb_optimizers import MISCOUNTING, SETTING
from tests.support.special import definition


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
        [[value]] = self.rows(statement)
        assert value is not None
        assert value == int(value)
        return int(value)

    def rows(self, statement: exp.Expression) -> list[tuple[object, ...]]:
        return self.run(statement.sql(dialect=self.dialect))

    def run(self, sql: str) -> list[tuple[object, ...]]:
        return self.connection.execute(sql).fetchall()

    def fill(self, table: Table, rows: Iterable[Sequence[object]]) -> None:
        """Create the table anew with the given rows."""
        columns = ", ".join(map(definition, table.columns))
        self.connection.execute(f"DROP TABLE IF EXISTS {table.name}")
        self.connection.execute(f"CREATE TABLE {table.name} ({columns})")
        mark = "?" if self.dialect == "duckdb" else "%s"
        marks = ", ".join([mark] * len(table.columns))
        cursor = self.connection.cursor() if self.dialect == "postgres" else self.connection
        if rows := list(rows):
            cursor.executemany(f"INSERT INTO {table.name} VALUES ({marks})", rows)
