"""Whatever names a database -> its engine: a URL, a path, an open connection, a pool of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlglot

from sqlrs.catalog import ColumnType
from sqlrs.engines import versions
from sqlrs.engines.base import Engine
from sqlrs.engines.data_paths import DUCKDB, is_sqlite, table_name, tables_in
from sqlrs.engines.duckdb_catalog import duckdb_type
from sqlrs.engines.file_schema import Declared
from sqlrs.engines.frames import is_frame
from sqlrs.engines.table_files import FilePath
from sqlrs.errors import UsageError
from sqlrs.inputs.arguments import optional, path, seconds, size
from sqlrs.inputs.arguments import threads as most_threads

if TYPE_CHECKING:
    from sqlrs.engines.postgres import PostgresEngine
    from sqlrs.engines.spark import SparkEngine

# PostgreSQL counts milliseconds in 31 bits.
_LONGEST_TIMEOUT = 2_147_483

_TARGETS = (
    "give duckdb:///file.db, postgresql://user@host:port/database, spark://local[2], "
    "spark://host:7077 or sc://host:15002, the path of a file or folder, an open duckdb or psycopg "
    "connection, a Spark session, or a SQLAlchemy engine for one of the first two"
)


def _postgres_type(text: str) -> ColumnType:
    from sqlrs.engines.postgres_catalog import postgres_type

    return postgres_type(text)


def _spark_type(text: str) -> ColumnType:
    from sqlrs.engines.spark_catalog import spark_type

    return spark_type(text)


TYPES: dict[str, Callable[[str], ColumnType]] = {
    "duckdb": duckdb_type,
    "postgres": _postgres_type,
    "spark": _spark_type,
}
"""By dialect, the column type for the text by which the database calls a value's type."""


def open_engine(
    target: str | Engine | Any = "duckdb://",
    *,
    tables: Mapping[str, Any] | None = None,
    types: Mapping[str, Declared] | None = None,
    graphs: Mapping[str, str] | None = None,
    memory_limit: str | None = None,
    temp_directory: FilePath | None = None,
    max_temp_directory_size: str | None = None,
    timeout: float | None = None,
    threads: int | None = None,
) -> Engine:
    """The engine for a URL, a path, an open duckdb or psycopg connection, a SQLAlchemy engine.

    A path is a DuckDB or SQLite file, a folder whose files are tables, or one such file. ``tables``
    are files, folders and frames that DuckDB reads, ``types`` the columns of those without, and
    ``graphs`` says of edge lists whether they are directed. ``timeout`` limits each statement, in
    seconds. The limits on memory, threads and spill space are for a database inside this process.
    """
    versions.SQLGLOT.require(sqlglot.__version__)  # type: ignore[attr-defined]
    versions.require_source(sqlglot.parser.__file__)
    for name, given in {"tables": tables, "types": types, "graphs": graphs}.items():
        _require_texts(name, given)
    memory_limit = optional(size, "memory_limit", memory_limit)
    temp_directory = optional(path, "temp_directory", temp_directory)
    max_temp_directory_size = optional(size, "max_temp_directory_size", max_temp_directory_size)
    limit = optional(most_threads, "threads", threads)
    timeout = optional(seconds, "timeout", timeout)
    if timeout is not None and not 0 < timeout <= _LONGEST_TIMEOUT:
        raise UsageError(f"the time limit must be above 0 and at most {_LONGEST_TIMEOUT} seconds")
    if isinstance(target, PathLike) or (isinstance(target, str) and _is_path(target)):
        target, tables = _at_path(Path(target), tables)
    scheme = target.partition(":")[0] if isinstance(target, str) else None
    if isinstance(target, str) and scheme == "duckdb":
        from sqlrs.engines.duckdb import open_duckdb

        return open_duckdb(
            _duckdb_file(target),
            tables,
            types=types,
            graphs=graphs,
            memory_limit=memory_limit,
            temp_directory=temp_directory,
            max_temp_directory_size=max_temp_directory_size,
            threads=limit,
            timeout=timeout,
        )
    if scheme in ("spark", "sc") or _packages(target) & {"pyspark"}:
        _refuse_options(
            "the Spark URL or session says",
            {
                "a limit on the temp directory": max_temp_directory_size,
                "a number of threads": limit,
            },
        )
        _refuse_frames(tables)
        if isinstance(target, str):
            return _spark().of_url(
                target,
                tables,
                types=types,
                graphs=graphs,
                memory_limit=memory_limit,
                temp_directory=temp_directory,
                timeout=timeout,
            )
        _refuse_options(
            "the Spark session says",
            {"a memory limit": memory_limit, "a temp directory": temp_directory},
        )
        return _spark().of_session(target, tables, types=types, graphs=graphs, timeout=timeout)
    _refuse_duckdb_options(
        {
            "tables from files": tables,
            "types of files": types,
            "forms of graphs": graphs,
            "a memory limit": memory_limit,
            "a temp directory": temp_directory,
            "a limit on the temp directory": max_temp_directory_size,
            "a number of threads": limit,
        }
    )
    if isinstance(target, str) and scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        return _postgres().of_url(f"postgresql:{target.partition(':')[2]}", timeout)
    if isinstance(target, str):
        raise UsageError("the database URL is not of a known kind", hint=_TARGETS)
    return target if isinstance(target, Engine) else _wrapped(target, timeout)


def _wrapped(target: Any, timeout: float | None) -> Engine:
    """The engine around an object of a driver, which is known by the package it comes from."""
    packages = _packages(target)
    if packages & {"duckdb", "_duckdb"}:
        from sqlrs.engines.duckdb import DuckDBEngine

        return DuckDBEngine(target, timeout=timeout)
    if "psycopg" in packages:
        return _postgres().of_connection(target, timeout)
    if "sqlalchemy" in packages and hasattr(target, "raw_connection"):
        if (target.dialect.name, target.dialect.driver) == ("postgresql", "psycopg"):
            return _postgres().of_pool(target, timeout)
        raise UsageError(
            f"a SQLAlchemy engine for {target.dialect.name}+{target.dialect.driver} is not usable",
            hint="create it with postgresql+psycopg://..., or give the duckdb connection itself",
        )
    raise UsageError(f"{type(target).__name__} does not name a database", hint=_TARGETS)


def _packages(target: Any) -> set[str]:
    return {kind.__module__.partition(".")[0] for kind in type(target).__mro__}


_MAPPINGS = {
    "tables": "tables maps names to files, folders, data frames and lists of dictionaries: "
    "tables={'visit': 'visits.csv'}",
    "types": "types maps tables to columns: types={'visit': 'patient BIGINT, day DATE'}",
    "graphs": "graphs maps tables to directed or undirected: graphs={'edge': 'undirected'}",
}


def _require_texts(name: str, given: object) -> None:
    """Refuse what is no mapping from names, and values that no reader knows."""
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise UsageError(f"{name} is a {type(given).__name__}", hint=_MAPPINGS[name])
    for key, value in given.items():
        if not isinstance(key, str):
            raise UsageError(f"{name} names a table by a {type(key).__name__}")
        if not _ACCEPTED[name](value):
            raise UsageError(f"{name}[{key!r}] is a {type(value).__name__}", hint=_MAPPINGS[name])


_ACCEPTED: dict[str, Callable[[object], bool]] = {
    "tables": lambda value: isinstance(value, str | PathLike | list) or is_frame(value),
    "types": lambda value: isinstance(value, str | Mapping),
    "graphs": lambda value: isinstance(value, str),
}


def _refuse_frames(tables: Mapping[str, Any] | None) -> None:
    for name, value in (tables or {}).items():
        if not isinstance(value, str | PathLike):
            raise UsageError(
                f"tables[{name!r}] is a {type(value).__name__}, which Spark does not read",
                hint="write it to a Parquet file, or leave out the Spark URL",
            )


def _is_path(target: str) -> bool:
    """Whether a text names a file or folder: what has a scheme does not."""
    return bool(target) and ":" not in target


def _at_path(path: Path, tables: Mapping[str, Any] | None) -> tuple[str, Mapping[str, Any] | None]:
    """The URL for a path, and the tables that are files there, with those given beside them."""
    try:
        folder, file = path.is_dir(), path.is_file()
    except OSError:
        raise UsageError("that is no path of a file or folder", hint=_TARGETS) from None
    if folder:
        found: Mapping[str, Any] = tables_in(path)
    elif not file:
        raise UsageError(f"there is no file {path}", hint=_TARGETS)
    elif is_sqlite(path):
        from sqlrs.engines.staged import sqlite_tables

        found = dict.fromkeys(sqlite_tables(path), path)
    elif path.suffix.lower() in DUCKDB:
        return f"duckdb:///{path}", tables
    else:
        found = {table_name(path): path}
    taken = {name.lower() for name in found} & {name.lower() for name in tables or {}}
    for name in sorted(taken):
        raise UsageError(f"table {name} is both in {path} and given beside it")
    return "duckdb://", {**found, **(tables or {})}


def _duckdb_file(url: str) -> Path | None:
    """The path in a DuckDB URL: after three slashes relative, after four absolute."""
    rest = url.removeprefix("duckdb:")
    if rest in ("", "//", "///", "///:memory:"):
        return None
    if not rest.startswith("///") or "?" in rest:
        raise UsageError(
            "the DuckDB URL is malformed",
            hint="write duckdb:///relative/file.db or duckdb:////absolute/file.db, no options",
        )
    return Path(rest.removeprefix("///"))


def _refuse_duckdb_options(options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if value:
            raise UsageError(
                f"{name} can only be given with a DuckDB URL",
                hint="files are read with duckdb://, beside duckdb:///file.db, or with spark://…",
            )


def _refuse_options(who: str, options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if value:
            raise UsageError(f"{name} cannot be given here: {who} it")


def _spark() -> type[SparkEngine]:
    try:
        from sqlrs.engines.spark import SparkEngine
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("pyspark", "py4j"):
            raise
    else:
        return SparkEngine
    raise UsageError("Spark needs pyspark", hint="pip install 'sqlrs[spark]'")


def _postgres() -> type[PostgresEngine]:
    try:
        from sqlrs.engines.postgres import PostgresEngine
    except ModuleNotFoundError as error:
        if error.name not in ("psycopg", "psycopg_binary", "psycopg_c"):
            raise
    else:
        return PostgresEngine
    raise UsageError("PostgreSQL needs the psycopg driver", hint="pip install 'sqlrs[postgres]'")
