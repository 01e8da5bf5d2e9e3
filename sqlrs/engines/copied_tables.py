"""Tables that are copied when they are given: data frames, lists of dictionaries, addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlglot import exp

from sqlrs.engines import staged
from sqlrs.engines.file_schema import Declared, TextSchema, declared_schema, filled, with_own_types
from sqlrs.engines.frames import forget, given_frame
from sqlrs.engines.table_target import TableTarget
from sqlrs.errors import UsageError


def copy_frame(target: TableTarget, frame: Any, types: Declared | None, graph: str | None) -> None:
    """Copy a frame now: it may be another one at the time of a release."""
    what = f"tables[{target.name!r}]"
    try:
        found = given_frame(target.connection, target.name, frame, types, target.ask)
        rows: exp.Query = found.rows
        if graph is not None:
            rows = target.create_graph(what, found.rows, found.columns, graph)
        else:
            target.create(found.columns)
        _copy_now(target, rows, what)
    finally:
        forget(target.connection)


def _copy_now(target: TableTarget, rows: exp.Query, what: str) -> None:
    if target.ask(target.insert(rows)) is None:
        raise UsageError(
            f"a value of {what} does not fit the type of its column",
            code="file_unfit",
            hint="moments are kept to the microsecond, and no number is rounded; "
            "the ends of an edge are never missing",
        )


def copy_records(
    target: TableTarget, records: Any, types: Declared | None, graph: str | None, staging: Path
) -> None:
    """A list of dictionaries; its types must be declared, since only its rows would say them."""
    what = f"tables[{target.name!r}]"
    names = staged.columns_of_records(target.name, records)
    rows = [[record.get(name) for name in names] for record in records]
    if types is None:
        likely = TextSchema(staged.likely_types(names, rows), None, ",")
        raise UsageError(
            f"the types of {what} are not declared, and its rows must not say them",
            hint=f'types={{"{target.name}": "{likely}"}}',
        )
    schema = declared_schema(target.name, types, ",", "cells", ())
    schema = with_own_types(target.name, schema, target.ask)
    known = {name.lower() for name, _ in schema.columns}
    for name in names:
        if name.lower() not in known:
            raise UsageError(f"{what} has a key {name}, for which no type is declared")
    staged.write_rows(staging, names, rows)
    reading = schema.rows(exp.Literal.string(str(staging)))
    try:
        if graph is not None:
            _copy_now(target, target.create_graph(what, reading, schema.columns, graph), what)
        else:
            target.create(schema.columns)
            _copy_now(target, reading, what)
    finally:
        staging.unlink()


def copy_remote(target: TableTarget, url: str, types: Declared | None, graph: str | None) -> None:
    """A Parquet file in a network, by DuckDB's own extension where it is installed; copied now."""
    extension = "azure" if url.lower().startswith(("az", "abfs")) else "httpfs"
    if target.ask(exp.Command(this="LOAD", expression=extension)) is None:
        raise UsageError(
            f"{url} needs DuckDB's extension {extension}, which is not installed",
            hint=f"fetch the file first, or run INSTALL {extension} in DuckDB",
        )
    target.files.extended = True
    if types is not None or not url.lower().endswith(".parquet"):
        raise UsageError(f"of addresses only Parquet files are read, not {url}")
    path = exp.Literal.string(url)
    rows = filled("duckdb/read_parquet.sql", path=path, hive=exp.false())
    columns = target.described(rows, url)
    reading: exp.Query = rows
    if graph is not None:
        reading = target.create_graph(url, rows, columns, graph)
    else:
        target.create(columns)
    target.run(target.insert(reading), url)
