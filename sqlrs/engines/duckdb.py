"""The DuckDB engine: a database file, other files as tables, or a connection of the user's."""

from __future__ import annotations

import threading
import weakref
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sqlrs.catalog import Catalog, Routine
from sqlrs.engines import versions
from sqlrs.engines.base import Fetch, LastCatalog, Row, one_integer, verify_keys
from sqlrs.engines.duckdb_catalog import read_catalog
from sqlrs.engines.duckdb_core import VERSION, duckdb
from sqlrs.engines.duckdb_optimizers import MISCOUNTING, SETTING, SwitchedOff
from sqlrs.engines.file_schema import Declared
from sqlrs.engines.given_session import (
    carried_settings,
    duckdb_settings,
    refuse_temporary,
    set_statement,
    try_settings,
)
from sqlrs.engines.loaded_files import Files, states_of
from sqlrs.engines.snapshots import OfSnapshots
from sqlrs.engines.spill import Spill
from sqlrs.engines.table_files import FilePath, open_tables
from sqlrs.engines.watch import Outcome, Result, Stop, watched
from sqlrs.errors import EngineFailed, Interrupted, SqlrsError, StatementFailed, UsageError
from sqlrs.templates import template
from sqlrs.trees.kept import text_of

if TYPE_CHECKING:
    from sqlrs.engines.given_views import GivenViews

_MEMORY = "memory"
# Errors that say that a statement cannot be read or evaluated, not that the database is ill.
_OF_THE_STATEMENT = (duckdb.DataError, duckdb.ProgrammingError, duckdb.NotSupportedError)
# DuckDB's own databases, and the schema that every database has.
_TAKEN_NAMES = frozenset({_MEMORY, "temp", "system", "main"})
_DATABASE_CHANGED = "the file of the database has changed since it was opened"
_OPEN_AGAIN = "open the data again"


class DuckDBSnapshot:
    """One read-only transaction on a connection of its own."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        timeout: float | None,
        read: Callable[[Fetch], Catalog],
        files: Files,
        learned: dict[str, object] | None = None,
    ) -> None:
        self._connection = connection
        self._timeout = timeout
        self._read = read
        self._files = files
        self.learned = learned
        self._seen = frozenset[str]()
        self._interrupted = threading.Event()

    def scalar(self, statement: exp.Expression) -> int:
        """Run a statement that yields one integer."""
        return one_integer(self.rows(statement))

    def rows(self, statement: exp.Expression) -> list[Row]:
        """Run a statement and fetch all its rows, those of files as they were when opened."""
        return self._on_files(statement, self.run)

    def integer_columns(self, statement: exp.Expression) -> list[array[int]]:
        """Run a statement that yields nothing but integers of 64 bits."""
        return self._on_files(statement, self._run_for_columns)

    def _on_files(self, statement: exp.Expression, run: Callable[[str], Result]) -> Result:
        files = self._files.read_by(statement)
        loaded = self._files.loaded_first(files)
        if not loaded <= self._seen:
            self._load(loaded)
        self._require_unchanged(files)
        found = run(text_of(statement, "duckdb"))
        self._require_unchanged(files)
        return found

    def _require_unchanged(self, files: frozenset[str]) -> None:
        if self._files.database_changed:
            raise EngineFailed(_DATABASE_CHANGED, code="file_changed", hint=_OPEN_AGAIN)
        self._files.require_unchanged(files)

    def scans_files(self, statement: exp.Expression) -> bool:
        """Whether a statement reads files."""
        return bool(self._files.read_by(statement))

    def begin(self, settings: str = "") -> None:
        """Begin the read-only transaction, with settings that are made before."""
        self._seen = self._files.loaded
        self.run(f"{settings};\n{template('duckdb/begin.sql')}")

    def _load(self, files: frozenset[str]) -> None:
        """Load the files, and begin anew to see them. Nothing else changes in between.

        Beside files there are only databases that nobody can write to.
        """
        self.run(exp.Rollback().sql(dialect="duckdb"))
        self._files.load(files, self.run)
        self.begin()

    def run(self, sql: str, parameters: Mapping[str, str] | None = None) -> list[Row]:
        """Run a text and fetch all its rows."""
        return self._watched(lambda: self._connection.execute(sql, parameters).fetchall())

    def _run_for_columns(self, sql: str) -> list[array[int]]:
        """Run a text and fetch all its columns."""
        found = self._watched(lambda: self._connection.execute(sql).fetchnumpy())
        columns = []
        for values in found.values():
            # A column with a NULL has a mask, other types than BIGINT another letter.
            if hasattr(values, "mask") or values.dtype.str != "<i8":
                raise EngineFailed("DuckDB answered a statement with other columns than it should")
            columns.append(array("q", values.tobytes()))
        return columns

    def _watched(self, call: Callable[[], Result]) -> Result:
        """What a call of the driver gives, unless it is stopped or fails."""
        if self._interrupted.is_set():
            raise Interrupted("the work was stopped")
        outcome = watched(call, self._connection.interrupt, timeout=self._timeout)
        if outcome.result is None:
            raise self._failure(outcome)
        return outcome.result

    def catalog(self) -> Catalog:
        """The catalog as it is in this snapshot."""
        return self._read(self.run)

    def routines(self, names: Collection[str]) -> tuple[Routine, ...]:
        """What DuckDB says of the functions with these names."""
        from sqlrs.engines.duckdb_functions import read_routines

        return read_routines(names, self.rows, self.run)

    def interrupt(self) -> None:
        """Stop the running statement and every later one."""
        self._interrupted.set()
        # It may have ended meanwhile.
        with suppress(duckdb.Error):
            self._connection.interrupt()

    def end(self) -> None:
        """Roll back and close the connection."""
        with suppress(duckdb.Error):
            self._connection.rollback()
        self._connection.close()

    def _failure(self, outcome: Outcome[Result]) -> SqlrsError:
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
        kind = StatementFailed if isinstance(outcome.error, _OF_THE_STATEMENT) else EngineFailed
        return kind(f"DuckDB could not run a statement ({type(outcome.error).__name__})")


class DuckDBEngine(OfSnapshots[DuckDBSnapshot]):
    """A DuckDB database. Snapshots run on duplicates of the connection, several at a time."""

    dialect = "duckdb"
    keeps_schema = True

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        *,
        timeout: float | None = None,
        owned: bool = False,
        locked: bool = False,
        files: Files | None = None,
        only_files: bool = False,
        further_databases: tuple[str, ...] = (),
        spill: Spill | None = None,
    ) -> None:
        super().__init__()
        versions.DUCKDB.require(VERSION)
        # A duplicate forgets what USE and SET search_path said on the original.
        database, schema, schemas = _session(connection)
        given = None if owned else _copied_views(connection)
        self._connection = connection if owned else connection.cursor()
        # What was opened here has no session of anybody's: its settings are the instance's.
        settings, self._temporary = ([], []) if owned else _session_of(connection)
        # What was opened here began with the right ones, and is locked: nobody can change them.
        self._optimizers = None if locked else SwitchedOff(self._connection)
        if self._optimizers is not None:
            self._give_back = weakref.finalize(self, self._optimizers.release)
        self._owned = owned
        self._timeout = timeout
        self._files = files or Files()
        self._only_files = only_files
        self._forget = None
        if given is not None:
            self._files.copied = given.names
            self._temporary = [t for t in self._temporary if t.lower() not in given.names]
            self._forget = weakref.finalize(self, given.detach)
        # What this engine opened itself nobody can write to, and a file that changes is an error.
        self._learned: dict[str, object] | None = {} if owned else None
        self._catalog = LastCatalog(template("duckdb/fingerprint.sql"))
        self._clean_up = weakref.finalize(self, spill.remove) if spill else None
        # The copies come first: a view of the same name reads a file anew.
        first = () if given is None else (given.database,)
        self._databases = (*first, database, *further_databases)
        self._search_path = tuple(dict.fromkeys((*schemas, "main")))
        homes = [
            *((d, "main") for d in first),
            (database, schema),
            *((d, "main") for d in further_databases),
        ]
        settings.append(_set_search_path(homes))
        self._settings = "; ".join(one.sql(dialect="duckdb") for one in settings)

    def check_keys(self, catalog: Catalog, keys: Mapping[str, Sequence[Sequence[str]]]) -> None:
        """Verify declared keys on the data; a violation is a UsageError.

        A file whose rows do not fit its schema has no rows that could be released: every release
        from it fails, after its charge.
        """
        # A snapshot in which a file could not be loaded is at its end, others serve several tables.
        scanned = {table: sets for table, sets in keys.items() if table in self._files.scanned}
        others = [{table: sets} for table, sets in keys.items() if table not in scanned]
        for together in filter(None, (scanned, *others)):
            try:
                with self.snapshot() as snapshot:
                    verify_keys(snapshot, catalog, together, try_order=True)
            except EngineFailed as error:
                if error.code != "file_unfit":
                    raise

    @contextmanager
    def snapshot(self) -> Iterator[DuckDBSnapshot]:
        """Begin a snapshot; it ends with the context."""
        if self._files.database_changed:
            # Seen here, it costs nobody anything.
            raise UsageError(_DATABASE_CHANGED, code="file_changed", hint=_OPEN_AGAIN)
        with self._lock:
            duplicate = self._duplicate()
        snapshot = DuckDBSnapshot(duplicate, self._timeout, self._read, self._files, self._learned)
        try:
            with self._kept(snapshot):
                snapshot.begin(self._settings)
                yield snapshot
        finally:
            snapshot.end()

    def close(self) -> None:
        """Close what this engine opened; a connection of the user's stays open."""
        self._closed = True
        if self._optimizers is not None:
            self._give_back()
        self._connection.close()
        if self._forget is not None:
            self._forget()
        if self._clean_up is not None:
            self._clean_up()

    def take(self, name: str, rows: object) -> None:
        """Copy a table of Arrow's. Snapshots that begin later see it."""
        from sqlrs.engines.frames import copied_arrow

        writer = DuckDBSnapshot(self._connection, self._timeout, self._read, self._files)
        with self._kept(writer):
            copied_arrow(self._connection, name, rows, writer.run)

    def _duplicate(self) -> duckdb.DuckDBPyConnection:
        if not self._closed:
            with suppress(duckdb.Error):
                duplicate = self._connection.cursor()
                if self._optimizers is not None:
                    self._optimizers.require(duplicate)
                return duplicate
        raise UsageError("the database is closed", hint="connect again")

    def _read(self, fetch: Fetch) -> Catalog:
        read = partial(
            read_catalog,
            databases=self._databases,
            search_path=self._search_path,
            files=self._files,
            only_files=self._only_files,
        )
        # What this engine opened itself is read-only, and locked against everybody else.
        catalog = self._catalog.get(fetch, read, fixed=self._owned)
        refuse_temporary(catalog, self._temporary)
        return catalog


def open_duckdb(
    file: Path | None = None,
    tables: Mapping[str, Any] | None = None,
    *,
    types: Mapping[str, Declared] | None = None,
    graphs: Mapping[str, str] | None = None,
    memory_limit: str | None = None,
    temp_directory: FilePath | None = None,
    max_temp_directory_size: str | None = None,
    threads: int | None = None,
    timeout: float | None = None,
) -> DuckDBEngine:
    """A database file, read-only, and files as tables; then no access to anything else.

    What does not fit into ``memory_limit`` (80 % of the machine's memory unless said otherwise) is
    spilled to a folder that only this user can read, up to ``max_temp_directory_size`` (half of the
    free disk unless said otherwise). It goes with the engine, and the folders of processes that
    were killed go now.
    """
    versions.DUCKDB.require(VERSION)
    if file is not None and not file.is_file():
        raise UsageError(f"there is no DuckDB file {file}")
    spill = Spill(temp_directory)
    config: dict[str, Any] = {
        "temp_directory": spill.path,
        "memory_limit": memory_limit,
        "max_temp_directory_size": max_temp_directory_size or spill.share(),
        "threads": threads,
        "autoinstall_known_extensions": False,
        SETTING: ",".join(sorted(MISCOUNTING)),
        # Whole numbers of so many bits are grouped in an array: in half the time by most ids.
        "perfect_ht_threshold": 18,
        # A table name must never be read as a variable of the calling program.
        "python_enable_replacements": False,
        # Objects of pandas are read as their texts, never as what the first of them are.
        "pandas_analyze_sample": 0,
    }
    with ExitStack() as undo:
        undo.callback(spill.remove)
        connection = _connect({k: v for k, v in config.items() if v is not None})
        undo.callback(connection.close)
        files = open_tables(
            connection,
            tables or {},
            database=_MEMORY,
            spill=Path(spill.path),
            types=types,
            graphs=graphs,
        )
        if file is not None:
            files.database = states_of((file,))
            _attach(connection, file)
        connection.execute(template("duckdb/lock_down.sql"))
        engine = DuckDBEngine(
            connection,
            timeout=timeout,
            owned=True,
            locked=True,
            files=files,
            only_files=file is None,
            further_databases=(_MEMORY,) if tables and file is not None else (),
            spill=spill,
        )
        undo.pop_all()
    return engine


def _copied_views(connection: duckdb.DuckDBPyConnection) -> GivenViews | None:
    # Files, which are opened most often, have none.
    from sqlrs.engines.given_views import copy_given_views

    return copy_given_views(connection)


def _session(connection: duckdb.DuckDBPyConnection) -> tuple[str, str, list[str]]:
    """The current database and schema, and the schemas where names are looked up."""
    with suppress(duckdb.Error):
        database, schema, schemas, _ = connection.execute(
            template("duckdb/session.sql")
        ).fetchall()[0]
        return database, schema, schemas
    raise UsageError("the DuckDB connection does not answer", hint="roll back, or connect again")


def _session_of(connection: duckdb.DuckDBPyConnection) -> tuple[list[exp.Set], list[str]]:
    """What duplicates of the connection must be told, and its temporary tables."""
    with connection.cursor() as duplicate:
        settings = carried_settings(duckdb_settings(connection), duckdb_settings(duplicate))
        try_settings(settings, duplicate.execute)
    rows = connection.execute(template("duckdb/temporary.sql")).fetchall()
    return [set_statement(*setting) for setting in settings.items()], [str(n) for (n,) in rows]


def _connect(config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    with suppress(duckdb.Error, TypeError, ValueError):
        return duckdb.connect(":memory:", config=config)
    raise UsageError(
        "DuckDB does not start with this memory limit, number of threads or temp directory",
        hint="it needs some megabytes of memory to begin with",
    )


def _attach(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Make a file the current database. Its own instance keeps its settings apart from others'."""
    name = f"{file.stem}_db" if file.stem.lower() in _TAKEN_NAMES else file.stem
    path = exp.Literal.string(str(file))
    attach = exp.Attach(
        this=exp.alias_(path, exp.to_identifier(name, quoted=True)),
        expressions=[exp.AttachOption(this=exp.var("READ_ONLY"))],
    )
    use = exp.Use(this=exp.Table(this=exp.to_identifier(name, quoted=True)))
    with suppress(duckdb.Error):
        for statement in (attach, use):
            connection.execute(statement.sql(dialect="duckdb"))
        return
    raise UsageError(
        f"{file} is no DuckDB database of a known version, or it is open for writing",
        hint="close the connection that writes to it, or give that connection instead of the file",
    )


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
