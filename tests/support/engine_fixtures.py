"""One database on DuckDB and PostgreSQL alike, so that a test runs every statement on both.

The fixture `both_engines` lasts for the whole session; a test, or each example of Hypothesis, fills
it anew:

    def test_it(both_engines: BothEngines) -> None:
        both_engines.load(tables, {"edge": [(1, 2), (2, 3)]})
        assert both_engines.scalar(plain(residual)) == brute.residual_value(residual, rows)

`load` takes the tables' descriptions (types in DuckDB's words, keys as constraints) and the rows by
a table's label or identity. `scalar`, `scalars` and `rows` fail where the two engines differ;
`engines` holds the engines themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain

import duckdb
import psycopg
import pytest
from psycopg import sql
from sqlglot import exp

from sqlrs.catalog import Table
from sqlrs.engines.base import Engine
from sqlrs.engines.open import open_engine
from sqlrs.trees.identifiers import identifier
from tests.support.postgres_server import PostgresServer

Row = tuple[object, ...]
Rows = Mapping[str, Sequence[Row]] | Mapping[tuple[str | None, str], Sequence[Row]]

# One statement for many rows: DuckDB takes long over many statements.
_AT_ONCE = 200


def create_table(table: Table) -> exp.Create:
    """CREATE TABLE with its types, NOT NULL and keys, in no dialect yet."""
    definitions: list[exp.Expression] = []
    for column in table.columns:
        constraint = exp.ColumnConstraint(kind=exp.NotNullColumnConstraint())
        definitions.append(
            exp.ColumnDef(
                this=identifier(column.name),
                kind=exp.DataType.build(column.type.name, dialect="duckdb"),
                constraints=[] if column.nullable else [constraint],
            )
        )
    for key in table.keys:
        columns = [identifier(name) for name in sorted(key)]
        definitions.append(exp.UniqueColumnConstraint(this=exp.Schema(expressions=columns)))
    return exp.Create(this=exp.Schema(this=_name(table), expressions=definitions), kind="TABLE")


def insert_rows(table: Table, number: int) -> exp.Insert:
    """INSERT of so many rows by parameters."""
    marks = [exp.Placeholder() for _ in table.columns]
    rows = [exp.Tuple(expressions=[mark.copy() for mark in marks]) for _ in range(number)]
    return exp.Insert(this=_name(table), expression=exp.Values(expressions=rows))


class BothEngines:
    """A DuckDB and a PostgreSQL database with the same contents."""

    def __init__(self, url: str) -> None:
        self._duckdb = duckdb.connect()
        self._postgres = psycopg.connect(url, autocommit=True)
        self._tables: list[Table] = []
        self.engines: dict[str, Engine] = {
            "duckdb": open_engine(self._duckdb),
            "postgres": open_engine(url),
        }

    def load(self, tables: Iterable[Table], rows: Rows) -> None:
        """Replace the contents of both databases."""
        by_label = {k if isinstance(k, str) else ".".join(filter(None, k)): rows[k] for k in rows}  # type: ignore[index]
        for table in self._tables:
            self._everywhere(exp.Drop(tables=[_name(table)], kind="TABLE", exists=True))
        self._tables = []
        for table in tables:
            if table.schema:
                schema = exp.Table(this=identifier(table.schema))
                self._everywhere(exp.Create(this=schema, kind="SCHEMA", exists=True))
            self._tables.append(table)
            self._everywhere(create_table(table))
            contents = [list(row) for row in by_label.get(table.label, ())]
            if contents:
                for start in range(0, len(contents), _AT_ONCE):
                    some = contents[start : start + _AT_ONCE]
                    insert = insert_rows(table, len(some)).sql(dialect="duckdb")
                    self._duckdb.execute(insert, list(chain.from_iterable(some)))
                target = sql.Identifier(*filter(None, table.identity))
                copy = sql.SQL("COPY {} FROM STDIN").format(target)
                with self._postgres.cursor() as cursor, cursor.copy(copy) as stream:
                    for row in contents:
                        stream.write_row(row)

    def rows(self, statement: exp.Expression) -> list[Row]:
        """The rows on both engines, which must be the same but for their order."""
        found = {}
        for name, engine in self.engines.items():
            with engine.snapshot() as snapshot:
                found[name] = sorted(snapshot.rows(statement), key=repr)
        assert found["duckdb"] == found["postgres"], statement.sql()
        return found["duckdb"]

    def scalar(self, statement: exp.Expression) -> int:
        """The integer on both engines, which must be the same."""
        return self.scalars([statement])[0]

    def scalars(self, statements: Iterable[exp.Expression]) -> list[int]:
        """The integers of several statements, in one snapshot of each engine."""
        found = []
        with ExitStack() as stack:
            one, other = (stack.enter_context(e.snapshot()) for e in self.engines.values())
            for statement in statements:
                values = one.scalar(statement), other.scalar(statement)
                assert values[0] == values[1], statement.sql()
                found.append(values[0])
        return found

    def direct(self, sql: str) -> int:
        """The integer of a text as it is, with nothing of sqlrs between, the same on both."""
        rows = self._duckdb.execute(sql).fetchall(), self._postgres.execute(sql.encode()).fetchall()
        assert rows[0] == rows[1], sql
        [[value]] = rows[0]
        return int(value)

    def close(self) -> None:
        """Close everything."""
        for engine in self.engines.values():
            engine.close()
        self._postgres.close()
        self._duckdb.close()

    def _everywhere(self, statement: exp.Expression) -> None:
        self._duckdb.execute(statement.sql(dialect="duckdb"))
        self._postgres.execute(statement.sql(dialect="postgres"))


def _name(table: Table) -> exp.Table:
    schema = identifier(table.schema) if table.schema else None
    return exp.Table(this=identifier(table.name), db=schema)


@pytest.fixture(scope="session")
def both_engines(postgres_server: PostgresServer) -> Iterator[BothEngines]:
    """DuckDB and PostgreSQL side by side; `load` replaces what they hold."""
    with ExitStack() as stack:
        both = BothEngines(stack.enter_context(postgres_server.database()))
        stack.callback(both.close)
        yield both
