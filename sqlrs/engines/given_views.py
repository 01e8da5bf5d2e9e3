"""Frames and files that a given DuckDB connection shows as views -> tables that duplicates see.

A registered frame is a temporary view, which no duplicate of the connection has. A view over a
file would be read anew by every statement. Both are copied into a database in memory beside the
connection's own, once, when it is opened; views over tables are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from sqlrs.engines.base import Row
from sqlrs.errors import UsageError
from sqlrs.records import dataclass
from sqlrs.templates import template
from sqlrs.trees.identifiers import column, identifier

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_READERS = frozenset(
    """
    pandas_scan python_arrow_scan arrow_scan read_parquet parquet_scan read_csv
    read_csv_auto read_json read_json_auto read_ndjson read_ndjson_auto
    """.split()  # noqa: SIM905
)
_ENDINGS = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".gz", ".zst")


@dataclass(frozen=True)
class GivenViews:
    """The copies: the database that holds them, and their names in lower case."""

    database: str
    names: frozenset[str]
    detach: Callable[[], None]


def copy_given_views(connection: DuckDBPyConnection) -> GivenViews | None:
    """Copy the frames and files among the views of a connection; None where there are none."""
    from sqlrs.engines.duckdb_core import duckdb

    found = [
        (str(schema), str(name), bool(temporary))
        for schema, name, temporary, sql in _views(connection)
        if (temporary or schema == "main") and shows_rows_of_one_source(str(sql))
    ]
    if not found:
        return None
    database = f"sqlrs_given_{id(connection):x}"
    attach = exp.Attach(
        this=exp.alias_(exp.Literal.string(":memory:"), identifier(database)), expressions=[]
    )
    try:
        connection.execute(attach.sql(dialect="duckdb"))
        for schema, name, temporary in found:
            source = exp.Table(
                this=identifier(name),
                db=identifier(schema),
                catalog=identifier("temp") if temporary else None,
            )
            target = exp.Table(
                this=identifier(name), db=identifier("main"), catalog=identifier(database)
            )
            rows = _without_labels(connection, source)
            create = exp.Create(this=target, kind="TABLE", expression=rows)
            connection.execute(create.sql(dialect="duckdb"))
    except duckdb.Error:
        _detach(connection, database)
    else:
        names = frozenset(name.lower() for _, name, _ in found)
        return GivenViews(database, names, lambda: _detach(connection, database))
    raise UsageError(
        "a frame or file that the DuckDB connection shows as a view cannot be read",
        hint="end an open transaction, or give the frame itself: tables={'visit': df}",
    )


def shows_rows_of_one_source(create_view: str) -> bool:
    """Whether a view shows each row of one frame or file once, as it stands."""
    try:
        tree = parse_one(create_view, dialect="duckdb")
    except (SqlglotError, RecursionError):
        return False
    query = tree.expression if isinstance(tree, exp.Create) else None
    if not isinstance(query, exp.Select) or not query.is_star or len(query.expressions) != 1:
        return False
    if not isinstance(query.expressions[0], exp.Star) or any(query.expressions[0].args.values()):
        return False
    kept = {"expressions", "from_", "kind", "hint"}
    if any(value for part, value in query.args.items() if part not in kept):
        return False
    source = query.args["from_"].this
    if not isinstance(source, exp.Table) or source.args.get("joins") or source.args.get("sample"):
        return False
    if isinstance(source.this, exp.Identifier):
        return not source.db and source.name.lower().endswith(_ENDINGS)
    if isinstance(source.this, exp.ReadCSV | exp.ReadParquet):
        return True
    return isinstance(source.this, exp.Anonymous) and source.this.name.lower() in _READERS


def _views(connection: DuckDBPyConnection) -> list[Row]:
    return connection.execute(template("duckdb/given_views.sql")).fetchall()


def _without_labels(connection: DuckDBPyConnection, source: exp.Table) -> exp.Select:
    """All columns; the labels of an enumeration come from the rows and would be public."""
    everything = exp.select("*").from_(source)
    described = connection.execute(exp.Describe(this=everything).sql(dialect="duckdb")).fetchall()
    columns = [
        exp.alias_(exp.cast(column(name), "VARCHAR"), identifier(name))
        if str(kind).startswith("ENUM(")
        else column(name)
        for name, kind, *_ in described
    ]
    return exp.select(*columns).from_(source)


def _detach(connection: DuckDBPyConnection, database: str) -> None:
    from sqlrs.engines.duckdb_core import duckdb

    with suppress(duckdb.Error):
        connection.execute(exp.Detach(this=identifier(database), exists=True).sql(dialect="duckdb"))
