"""A table in DuckDB on its way: how it is created and filled, also as an edge list."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from sqlglot import exp

from sqlrs.engines.base import Row
from sqlrs.engines.loaded_files import Columns, Files
from sqlrs.errors import UsageError
from sqlrs.records import dataclass
from sqlrs.trees.identifiers import column, identifier

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

EDGE = ("src", "dst")
"""The columns of an edge list."""

_LOG = logging.getLogger("sqlrs.files")


@dataclass(frozen=True)
class TableTarget:
    """The table that is made, and the connection that makes it."""

    connection: DuckDBPyConnection
    files: Files
    database: str
    name: str

    @property
    def table(self) -> exp.Table:
        """The table by its full name."""
        return exp.Table(
            this=identifier(self.name), db=identifier("main"), catalog=identifier(self.database)
        )

    def create(self, columns: Columns, *, never_null: bool = False) -> None:
        """Create it without rows."""
        constraints = [exp.ColumnConstraint(kind=exp.NotNullColumnConstraint())]
        definitions = [
            exp.ColumnDef(
                this=identifier(name),
                kind=exp.DataType.build(kind, dialect="duckdb", udt=True),
                constraints=constraints if never_null else [],
            )
            for name, kind in columns
        ]
        table = exp.Schema(this=self.table, expressions=definitions)
        self.run(exp.Create(this=table, kind="TABLE"), "the table")

    def create_graph(self, what: str, rows: exp.Select, columns: Columns, form: str) -> exp.Query:
        """The table of an edge list: (src, dst) without repetitions, undirected ones both ways.

        An index for the key would cost more than the load: it is known to hold without one. NOT
        NULL rejects lines that are no edge. Returns the statement that reads the edges.
        """
        if len(columns) < 2 or columns[0][1] != columns[1][1]:
            raise UsageError(
                f"{what} is no edge list: its first two columns are not of one type",
                hint="the first two columns are the ends of an edge, others are ignored; "
                "sqlrs count reads any file as a table (--table NAME=FILE)",
            )
        if len(columns) > 2:
            ignored = ", ".join(name for name, _ in columns[2:])
            _LOG.warning("sqlrs: %s: an edge list; ignored: %s", what, ignored)
        kind = columns[0][1]
        self.create(tuple((end, kind) for end in EDGE), never_null=True)
        ends = [identifier(end) for end in EDGE]
        pair = rows.select(*rows.selects[:2], append=False) if not rows.is_star else rows.copy()
        if rows.is_star:
            chosen = [column(name) for name, _ in columns[:2]]
            pair = exp.select(*chosen).from_(rows.subquery("everything"))
        edges = exp.CTE(this=pair, alias=exp.TableAlias(this=identifier("edges"), columns=ends))
        forth = exp.select(*(column(end) for end in EDGE)).from_("edges").distinct()
        filling: exp.Query = forth
        if form == "undirected":
            back = exp.select(*(column(end) for end in reversed(EDGE))).from_("edges")
            filling = exp.union(forth, back, distinct=True)
            self.files.rows_per_unit[self.name] = 2
        filling.set("with_", exp.With(expressions=[edges]))
        self.files.keys[self.name] = frozenset({frozenset(EDGE)})
        return filling

    def insert(self, rows: exp.Query) -> exp.Insert:
        """The statement that fills the table."""
        return exp.Insert(this=self.table, expression=rows)

    def run(self, statement: exp.Expression, what: object) -> None:
        """Run a statement that must not fail."""
        if self.ask(statement) is None:
            raise UsageError(f"{what} could not be read as table", code="file_unreadable")

    def ask(self, statement: exp.Expression) -> list[Row] | None:
        """The rows of a statement. Why one fails may quote the file, so it is not told."""
        from sqlrs.engines.duckdb_core import duckdb

        with suppress(duckdb.Error):
            text = statement.sql(dialect="duckdb", comments=False)
            return self.connection.execute(text).fetchall()
        return None

    def described(self, rows: exp.Select, what: object) -> Columns:
        """The columns that a statement would give."""
        found = self.ask(exp.Describe(this=rows.copy()))
        if not found:
            raise UsageError(f"{what} could not be read as table", code="file_unreadable")
        return tuple((str(row[0]), str(row[1])) for row in found)
