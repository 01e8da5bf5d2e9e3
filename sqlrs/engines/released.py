"""A DuckDB of its own for released rows: what stands above the cuts runs here, far from the data.

It lives in memory, holds released relations and rows of public tables, and nothing else. It reads
no file and no network, and its settings cannot be changed, whatever an analyst's text calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
from sqlglot import exp

from sqlrs.engines.base import Row
from sqlrs.engines.watch import Outcome, Stop, watched
from sqlrs.errors import Interrupted, SqlrsError
from sqlrs.refusals import refusal
from sqlrs.trees.identifiers import identifier

SECONDS = 10.0
"""How long one statement may take; released relations are small."""

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "disabled_optimizers": "common_subplan",
    "enable_external_access": "false",
    "max_temp_directory_size": "0B",
    "memory_limit": "512MB",
    "python_enable_replacements": "false",
    "threads": "1",
}


@dataclass(frozen=True)
class ReleasedRelation:
    """Released rows under a name; each column has DuckDB's name of its type."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Result:
    """Rows, and the names and types of their columns."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]


def described(statement: exp.Query, relations: Sequence[ReleasedRelation]) -> Result:
    """The columns that a statement would have; a refusal where DuckDB cannot run it."""
    empty = [ReleasedRelation(one.name, one.columns) for one in relations]
    return Result(afterwards(statement, empty).columns, ())


def afterwards(statement: exp.Query, relations: Sequence[ReleasedRelation]) -> Result:
    """Run a statement over released relations alone."""
    with _database(relations) as connection:
        text = statement.sql(dialect="duckdb")
        outcome = watched(
            lambda: connection.execute(text).fetchall(), connection.interrupt, timeout=SECONDS
        )
        if outcome.result is None:
            raise _failure(outcome)
        columns = tuple((str(d[0]), str(d[1])) for d in connection.description or ())
        return Result(columns, tuple(outcome.result))


@contextmanager
def _database(relations: Sequence[ReleasedRelation]) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(config=_SETTINGS)
    try:
        for relation in relations:
            kinds = [
                exp.ColumnDef(this=identifier(name), kind=exp.DataType.build(kind, "duckdb"))
                for name, kind in relation.columns
            ]
            table = exp.to_table(relation.name)
            schema = exp.Schema(this=table, expressions=kinds)
            connection.execute(exp.Create(this=schema, kind="TABLE").sql(dialect="duckdb"))
            if relation.rows:
                marks = exp.Tuple(expressions=[exp.Placeholder() for _ in relation.columns])
                insert = exp.insert(exp.Values(expressions=[marks]), table)
                connection.executemany(insert.sql(dialect="duckdb"), relation.rows)
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


def _failure(outcome: Outcome[list[Row]]) -> SqlrsError:
    """What an analyst is told: nothing private is here, so DuckDB may speak for itself."""
    if outcome.stopped is Stop.INTERRUPT:
        return Interrupted("the work was stopped")
    if outcome.stopped is Stop.TIMEOUT:
        reason = f"it takes longer than {SECONDS:g} s"
    else:
        reason = str(outcome.error).partition("\n")[0]
    return refusal("unsupported", f"what follows the aggregates cannot be computed: {reason}")
