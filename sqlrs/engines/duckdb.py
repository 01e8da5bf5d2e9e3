"""The DuckDB engine: a database file, files loaded into memory, or a connection of the user's."""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.engines.base import Row, one_integer, verify_keys
from sqlrs.engines.duckdb_catalog import read_catalog
from sqlrs.engines.files import FilePath, Keys, load_files
from sqlrs.engines.watch import Outcome, Stop, watched
from sqlrs.errors import EngineFailed, Interrupted, SqlrsError, UsageError
from sqlrs.identifiers import identifier
from sqlrs.templates import template

_FILES_DATABASE = "sqlrs_files"


class DuckDBSnapshot:
    """One read-only transaction on a connection of its own."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        timeout: float | None,
        *,
        materialising: bool,
    ) -> None:
        self._connection = connection
        self._timeout = timeout
        self._materialising = materialising
        self._interrupted = threading.Event()

    def scalar(self, statement: exp.Expression) -> int:
        """Run a statement that yields one integer."""
        return one_integer(self.rows(statement))

    def rows(self, statement: exp.Expression) -> list[Row]:
        """Run a statement and fetch all its rows."""
        return self.run(statement.sql(dialect="duckdb"))

    def materialise(self, name: str, statement: exp.Expression) -> None:
        """Keep a statement's result as a temporary table until the snapshot ends."""
        if not self._materialising:
            raise ValueError("this snapshot was not begun with materialising=True")
        if self.run(template("duckdb/name_taken.sql"), {"name": name}) != [(False,)]:
            raise ValueError(f"there is already a table or view called {name}")
        temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
        self.rows(
            exp.Create(
                this=exp.Table(this=identifier(name)),
                kind="TABLE",
                properties=temporary,
                expression=statement,
            )
        )

    def run(self, sql: str, parameters: Mapping[str, str] | None = None) -> list[Row]:
        """Run a text and fetch all its rows."""
        if self._interrupted.is_set():
            raise Interrupted("the work was stopped")
        outcome = watched(
            lambda: self._connection.execute(sql, parameters).fetchall(),
            self._connection.interrupt,
            timeout=self._timeout,
        )
        if outcome.result is None:
            raise self._failure(outcome)
        return outcome.result

    def interrupt(self) -> None:
        """Stop the running statement and every later one."""
        self._interrupted.set()
        self._connection.interrupt()

    def end(self) -> None:
        """Roll back, which drops the temporary tables, and close the connection."""
        with suppress(duckdb.Error):
            self._connection.rollback()
        self._connection.close()

    def _failure(self, outcome: Outcome[list[Row]]) -> SqlrsError:
        """The error to raise. The driver's text may hold values of the data, so it stays out."""
        if outcome.stopped is Stop.INTERRUPT or self._interrupted.is_set():
            self._interrupted.set()
            return Interrupted("the work was stopped")
        if outcome.stopped is Stop.TIMEOUT:
            return EngineFailed("a statement ran longer than the time limit", code="timeout")
        if isinstance(outcome.error, duckdb.OutOfMemoryException | MemoryError):
            return EngineFailed(
                "a statement needs more memory or spill space than its limit",
                code="out_of_memory",
                hint="raise the memory limit, or give a temp directory with more space",
            )
        return EngineFailed(f"DuckDB could not run a statement ({type(outcome.error).__name__})")


class DuckDBEngine:
    """A DuckDB database. Snapshots run on duplicates of the connection, several at a time."""

    dialect = "duckdb"

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        *,
        timeout: float | None = None,
        owned: bool = False,
        loaded_keys: Keys | None = None,
        files_database: str | None = None,
    ) -> None:
        self._connection = connection if owned else connection.cursor()
        self._timeout = timeout
        self._loaded_keys = loaded_keys or {}
        self._open: set[DuckDBSnapshot] = set()
        self._lock = threading.Lock()
        # A duplicate forgets what USE and SET search_path said on the original.
        outcome = watched(
            lambda: connection.execute(template("duckdb/session.sql")).fetchall(),
            connection.interrupt,
            timeout=timeout,
        )
        if outcome.result is None:
            raise UsageError("the DuckDB connection does not answer", hint="roll back or reconnect")
        database, schema, schemas, _ = outcome.result[0]
        self._databases = (database, files_database) if files_database else (database,)
        self._search_path = tuple(dict.fromkeys((*schemas, "main")))
        self._homes = [(database, schema), *((d, "main") for d in self._databases[1:])]

    def catalog(self) -> Catalog:
        """Tables, views, types and keys, all tables private until declared otherwise."""
        with self.snapshot() as snapshot:
            return read_catalog(
                snapshot.run,
                databases=self._databases,
                search_path=self._search_path,
                loaded_keys=self._loaded_keys,
            )

    def check_keys(self, catalog: Catalog, keys: Mapping[str, Sequence[Sequence[str]]]) -> None:
        """Verify declared keys on the data; a violation is a UsageError."""
        with self.snapshot() as snapshot:
            verify_keys(snapshot, catalog, keys)

    @contextmanager
    def snapshot(self, *, materialising: bool = False) -> Iterator[DuckDBSnapshot]:
        """Begin a snapshot; it ends, and its temporary tables go, with the context."""
        with self._lock:
            duplicate = self._connection.cursor()
            snapshot = DuckDBSnapshot(duplicate, self._timeout, materialising=materialising)
            self._open.add(snapshot)
        try:
            snapshot.rows(_set_search_path(self._homes))
            snapshot.run(template("duckdb/begin.sql"))
            yield snapshot
        finally:
            with self._lock:
                self._open.discard(snapshot)
            snapshot.end()

    def interrupt(self) -> None:
        """Stop every open snapshot, from any thread."""
        with self._lock:
            for snapshot in self._open:
                snapshot.interrupt()

    def close(self) -> None:
        """Close what this engine opened; a connection of the user's stays open."""
        self._connection.close()


def open_duckdb(
    file: Path | None = None,
    tables: Mapping[str, FilePath] | None = None,
    *,
    memory_limit: str | None = None,
    temp_directory: FilePath | None = None,
    max_temp_directory_size: str | None = None,
    threads: int | None = None,
    timeout: float | None = None,
) -> DuckDBEngine:
    """A database file, read-only, and files loaded into memory; then no access to anything else.

    What does not fit into ``memory_limit`` (80 % of the machine's memory unless said otherwise) is
    spilled to a directory that only this user can read and that goes with the engine.
    """
    if file is not None and not file.is_file():
        raise UsageError(f"there is no DuckDB file {file}")
    spill = _spill_directory(temp_directory)
    config: dict[str, Any] = {
        "temp_directory": spill,
        "memory_limit": memory_limit,
        "max_temp_directory_size": max_temp_directory_size,
        "threads": threads,
        "autoinstall_known_extensions": False,
        # A table name must never be read as a variable of the calling program.
        "python_enable_replacements": False,
    }
    connection = _connect(file, {k: v for k, v in config.items() if v is not None})
    try:
        loaded_keys: Keys = {}
        if tables:
            database = "memory"
            if file is not None:
                database = _FILES_DATABASE
                connection.execute(template("duckdb/attach_files_database.sql"))
            loaded_keys = load_files(connection, tables, database=database)
        connection.execute(template("duckdb/lock_down.sql"))
        engine = DuckDBEngine(
            connection,
            timeout=timeout,
            owned=True,
            loaded_keys=loaded_keys,
            files_database=_FILES_DATABASE if tables and file is not None else None,
        )
    except BaseException:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)
        raise
    weakref.finalize(engine, shutil.rmtree, spill, ignore_errors=True)
    return engine


def _connect(file: Path | None, config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    name = ":memory:" if file is None else str(file)
    try:
        return duckdb.connect(name, read_only=file is not None, config=config)
    except duckdb.IOException:
        message = f"{file} is no DuckDB database, or another process is writing to it"
    except (duckdb.Error, TypeError, ValueError):
        message = "DuckDB does not accept the memory limit, threads or temp directory given"
    shutil.rmtree(config["temp_directory"], ignore_errors=True)
    raise UsageError(message)


def _spill_directory(parent: FilePath | None) -> str:
    try:
        return tempfile.mkdtemp(prefix="sqlrs-spill-", dir=parent)
    except OSError:
        pass
    raise UsageError(f"the temp directory {parent} cannot be written to")


def _set_search_path(homes: list[tuple[str, str]]) -> exp.Set:
    """Unqualified and schema-qualified names are looked up in these databases."""
    path = ",".join(
        exp.Table(
            this=exp.to_identifier(schema, quoted=True), db=exp.to_identifier(database, quoted=True)
        ).sql(dialect="duckdb")
        for database, schema in homes
    )
    setting = exp.EQ(this=exp.column("search_path"), expression=exp.Literal.string(path))
    return exp.Set(expressions=[exp.SetItem(this=setting)])
