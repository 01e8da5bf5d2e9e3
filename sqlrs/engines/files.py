"""Files -> DuckDB tables: CSV, TSV, Parquet and SNAP edge lists."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp, parse_one

from sqlrs.errors import UsageError
from sqlrs.identifiers import column, identifier
from sqlrs.templates import template

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_READERS = {
    ".csv": "duckdb/read_separated.sql",
    ".tsv": "duckdb/read_tabbed.sql",
    ".parquet": "duckdb/read_parquet.sql",
    ".txt": "duckdb/read_edges.sql",
}
_COMPRESSED = frozenset({".gz", ".zst"})
_EDGE = ("src", "dst")

FilePath = str | PathLike[str]
Keys = dict[str, frozenset[frozenset[str]]]


def load_files(
    connection: DuckDBPyConnection, tables: Mapping[str, FilePath], *, database: str
) -> Keys:
    """Load each file as a table of schema main in ``database``; the keys that follow from formats.

    Every failure is a UsageError without a word of the file's contents.
    """
    folded = [name.casefold() for name in tables]
    if len(set(folded)) != len(folded):
        raise UsageError("two files are given for one table name")
    keys: Keys = {}
    for name, path in tables.items():
        target = exp.Table(
            this=identifier(name), db=identifier("main"), catalog=identifier(database)
        )
        if _load(connection, target, Path(fspath(path))):
            keys[name] = frozenset({frozenset(_EDGE)})
    return keys


def _load(connection: DuckDBPyConnection, target: exp.Table, path: Path) -> bool:
    """Load one file; whether it is an edge list, whose rows are distinct."""
    if not target.name:
        raise UsageError(f"the table for {path} has no name", hint="write NAME=FILE")
    suffix = _suffix(path)
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    edges = suffix == ".txt"
    rows = parse_one(template(_READERS[suffix]), dialect="duckdb", into=exp.Select)
    statements = _edge_statements(target, rows) if edges else [_create(target, rows)]
    message = _load_failure(connection, statements, path)
    if message is not None:
        hint = "every line must hold two integers" if edges else None
        raise UsageError(message, hint=hint, code="file_unreadable")
    return edges


def _load_failure(
    connection: DuckDBPyConnection, statements: list[exp.Expression], path: Path
) -> str | None:
    import duckdb

    # The reader takes wildcards, and a file may have such characters in its name.
    pattern = "".join(f"[{c}]" if c in "*?[" else c for c in str(path))
    try:
        for statement in statements:
            parameters = {"path": pattern} if statement.find(exp.Placeholder) else None
            connection.execute(statement.sql(dialect="duckdb", comments=False), parameters)
    except duckdb.OutOfMemoryException:
        return f"{path} does not fit into the memory limit"
    except duckdb.Error as error:
        kind = "edge list" if path.name.endswith((".txt", ".txt.gz", ".txt.zst")) else "table"
        return f"{path} could not be read as {kind} ({type(error).__name__})"
    return None


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    if not suffixes or suffixes[-1] not in _READERS:
        raise UsageError(
            f"the kind of {path} is unknown",
            hint="files end in .csv, .tsv, .parquet, or .txt for a SNAP edge list; "
            "text files may be compressed (.gz)",
        )
    return suffixes[-1]


def _create(target: exp.Table, rows: exp.Query) -> exp.Expression:
    return exp.Create(this=target, kind="TABLE", expression=rows)


def _edge_statements(target: exp.Table, rows: exp.Query) -> list[exp.Expression]:
    """An edge list's table, filled without repetitions. NOT NULL rejects lines that are no edge.

    An index for the key would cost more than the load: it is known to hold without one.
    """
    columns = [
        exp.ColumnDef(
            this=identifier(name),
            kind=exp.DataType.build("bigint"),
            constraints=[exp.ColumnConstraint(kind=exp.NotNullColumnConstraint())],
        )
        for name in _EDGE
    ]
    distinct = exp.select(*(column(c) for c in _EDGE)).from_(exp.Subquery(this=rows)).distinct()
    return [
        exp.Create(this=exp.Schema(this=target, expressions=columns), kind="TABLE"),
        exp.Insert(this=target.copy(), expression=distinct),
    ]
