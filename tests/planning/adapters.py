"""Snapshots straight on a driver, so that plans are tested apart from the engines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb
import psycopg
from sqlglot import exp

from sqlrs.catalog import Table


class Direct:
    """A snapshot that runs every statement on one open connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection | psycopg.Connection) -> None:
        self.connection = connection
        self.dialect = "duckdb" if isinstance(connection, duckdb.DuckDBPyConnection) else "postgres"

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
        columns = ", ".join(f"{c.name} {c.type.name}" for c in table.columns)
        self.connection.execute(f"DROP TABLE IF EXISTS {table.name}")
        self.connection.execute(f"CREATE TABLE {table.name} ({columns})")
        mark = "?" if self.dialect == "duckdb" else "%s"
        marks = ", ".join([mark] * len(table.columns))
        cursor = self.connection.cursor() if self.dialect == "postgres" else self.connection
        if rows := list(rows):
            cursor.executemany(f"INSERT INTO {table.name} VALUES ({marks})", rows)
