"""The PostgreSQL engine: a server by its URL, a connection of the user's, or a SQLAlchemy pool."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, cast

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from sqlglot import exp

from sqlrs.catalog import Catalog, Routine
from sqlrs.engines import versions
from sqlrs.engines.base import LastCatalog, Row, one_integer
from sqlrs.engines.given_session import refuse_postgres_language, refuse_temporary
from sqlrs.engines.postgres_catalog import read_catalog, read_routines
from sqlrs.engines.postgres_rows import Seen, SeenRows, TableName
from sqlrs.engines.snapshots import OfSnapshots
from sqlrs.errors import EngineFailed, Interrupted, SqlrsError, StatementFailed, UsageError
from sqlrs.templates import template
from sqlrs.trees.kept import text_of

Connection = psycopg.Connection[Any]
Lease = Callable[[], AbstractContextManager[Connection]]
Run = Callable[..., list[Row]]

# Data exceptions, and what cannot be parsed or typed.
_OF_THE_STATEMENT = ("22", "42", "0A")
_CANCEL_SECONDS = 5.0


class PostgresSnapshot:
    """One REPEATABLE READ, READ ONLY transaction.

    ``learned`` is what earlier ones know of the rows, where the last one saw the same rows.
    """

    def __init__(
        self, connection: Connection, timeout: float | None, read: Callable[[Run], Catalog]
    ) -> None:
        self._connection = connection
        self._timeout = timeout
        self._read = read
        self.temporary: list[object] = []
        self.learned: dict[str, object] | None = None
        self.tables: set[TableName] = set()
        self._interrupted = threading.Event()

    def scalar(self, statement: exp.Expression) -> int:
        """Run a statement that yields one integer."""
        return one_integer(self.rows(statement))

    def rows(self, statement: exp.Expression) -> list[Row]:
        """Run a statement and fetch all its rows."""
        self.tables.update((one.db, one.name) for one in statement.find_all(exp.Table) if one.db)
        return self.run(text_of(statement, "postgres"))

    def scans_files(self, statement: exp.Expression) -> bool:
        """No statement reads anything but tables."""
        return False

    def run(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[Row]:
        """Run a text and fetch all its rows."""
        if self._interrupted.is_set():
            raise Interrupted("the work was stopped")
        failure: SqlrsError
        try:
            with psycopg.Cursor(self._connection, row_factory=tuple_row) as cursor:
                cursor.execute(sql, parameters, prepare=False)
                return cursor.fetchall() if cursor.description else []
        except KeyboardInterrupt:
            # The driver has cancelled the statement on the server before it raises this.
            self._interrupted.set()
            failure = Interrupted("the work was stopped")
        except psycopg.Error as error:
            failure = self._failure(error)
        raise failure

    def catalog(self) -> Catalog:
        """The catalog as it is in this snapshot."""
        catalog = self._read(self.run)
        refuse_temporary(catalog, self.temporary)
        return catalog

    def routines(self, names: Collection[str]) -> tuple[Routine, ...]:
        """What PostgreSQL says of the functions with these names."""
        return read_routines(names, self.run)

    def interrupt(self) -> None:
        """Stop the running statement and every later one."""
        self._interrupted.set()
        with suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=_CANCEL_SECONDS)

    def _failure(self, error: psycopg.Error) -> SqlrsError:
        """The error to raise. The driver's text may hold values of the data, so it stays out."""
        if self._interrupted.is_set():
            return Interrupted("the work was stopped")
        state = error.sqlstate
        if state == "57014" and self._timeout is not None:
            return EngineFailed("a statement ran longer than the time limit", code="timeout")
        if state is not None and state.startswith("53"):
            return EngineFailed(
                "the server ran out of memory, disk space or connections", code="out_of_memory"
            )
        if state == "42501":
            return EngineFailed(
                "the role may not read a table of the query, or a row-level policy hides rows",
                hint="sqlrs needs a role with SELECT, and with BYPASSRLS where policies act",
            )
        if state is None and isinstance(error, psycopg.DataError):
            # The server answered; Python has no such day: an infinite one, or one of the years BC.
            return StatementFailed("PostgreSQL gave a value that Python has no form for")
        if state is None:
            return EngineFailed("the connection to PostgreSQL was lost")
        kind = StatementFailed if state.startswith(_OF_THE_STATEMENT) else EngineFailed
        return kind(f"PostgreSQL could not run a statement (SQLSTATE {state})")


class PostgresEngine(OfSnapshots[PostgresSnapshot]):
    """A PostgreSQL database. Each snapshot leases a connection and leaves it as it was.

    A snapshot does not keep its schema: a child table that is attached meanwhile shows its rows.
    """

    dialect = "postgres"
    keeps_schema = False

    def __init__(
        self,
        lease: Lease,
        close: Callable[[], None],
        timeout: float | None,
        seen: SeenRows | None = None,
    ) -> None:
        super().__init__()
        self._seen = seen or SeenRows()
        self._lease = lease
        self._close = close
        self._timeout = timeout
        self._catalog = LastCatalog(template("postgres/fingerprint.sql"))
        self._paths: tuple[tuple[str, ...], str] | None = None

    @classmethod
    def of_url(cls, url: str, timeout: float | None = None) -> PostgresEngine:
        """An engine with connections of its own, as many as there are snapshots at a time."""
        seen = SeenRows()
        pool = _Pool(url, seen)
        return cls(pool.lease, pool.close, timeout, seen)

    @classmethod
    def of_connection(cls, connection: object, timeout: float | None = None) -> PostgresEngine:
        """An engine on a connection of the user's, which one snapshot uses at a time."""
        if not isinstance(connection, psycopg.Connection):
            raise UsageError(
                f"a psycopg {type(connection).__name__} is not usable",
                hint="give a psycopg.Connection, not an asynchronous one or a cursor",
            )
        lock = threading.Lock()

        @contextmanager
        def lease() -> Iterator[Connection]:
            with lock:
                yield connection

        return cls(lease, lambda: None, timeout)

    @classmethod
    def of_pool(cls, pool: Any, timeout: float | None = None) -> PostgresEngine:
        """An engine on the pool of a SQLAlchemy engine, which stays the user's."""

        @contextmanager
        def lease() -> Iterator[Connection]:
            borrowed = None
            with suppress(Exception):
                borrowed = pool.raw_connection()
            if borrowed is None:
                raise EngineFailed("the pool has no connection", code="connection_failed")
            try:
                yield borrowed.driver_connection
            finally:
                borrowed.close()

        return cls(lease, lambda: None, timeout)

    @contextmanager
    def snapshot(self) -> Iterator[PostgresSnapshot]:
        """Begin a snapshot; it ends with the context."""
        self._require_open()
        with self._lease() as connection, _own_transaction(connection):
            versions.POSTGRES.require(_version(connection.info.server_version))
            snapshot = PostgresSnapshot(connection, self._timeout, self._read)
            with self._kept(snapshot):
                snapshot.run(template("postgres/begin.sql"))
                session = snapshot.run(template("postgres/session.sql"))
                refuse_postgres_language(n for kind, n in session if kind == "setting")
                snapshot.temporary = [n for kind, n in session if kind == "temporary"]
                self._configure(snapshot.run)
                seen, again = self._seen.seen(connection, snapshot.run)
                # The first one keeps nothing: where rows change between answers, none pays for
                # later ones.
                snapshot.learned = seen.learned if seen is not None and again else None
                with self._seen_by(connection, snapshot, seen):
                    yield snapshot

    @contextmanager
    def _seen_by(
        self, connection: Connection, snapshot: PostgresSnapshot, seen: Seen | None
    ) -> Iterator[None]:
        """Keep what a snapshot saw; nothing where it fails, and nobody can look at its tables."""
        kept = False
        try:
            yield
            if connection.info.transaction_status is TransactionStatus.INTRANS:
                if seen is not None and snapshot.tables:
                    self._seen.keep(connection, seen, snapshot.tables, snapshot.run)
                kept = True
        finally:
            if not kept:
                self._seen.forget(connection)

    def close(self) -> None:
        """Close the connections that this engine opened."""
        self._closed = True
        self._close()

    def _configure(self, run: Run) -> None:
        milliseconds = None if self._timeout is None else str(max(1, round(self._timeout * 1000)))
        settings = {"search_path": self._find_paths(run)[1], "timeout": milliseconds}
        run(template("postgres/settings.sql"), settings)

    def _read(self, run: Run) -> Catalog:
        return self._catalog.get(run, lambda fetch: self._read_anew(run))

    def _read_anew(self, run: Run) -> Catalog:
        found = read_catalog(run, search_path=self._find_paths(run)[0])
        # Reading it has hidden all schemas from the search path.
        self._configure(run)
        return found

    def _find_paths(self, run: Run) -> tuple[tuple[str, ...], str]:
        """The session's own search path, and the pinned one that snapshots use."""
        if self._paths is None:
            (schemas, pinned) = run(template("postgres/search_path.sql"))[0]
            self._paths = (tuple(cast(Sequence[str], schemas)), str(pinned))
        return self._paths


class _Pool:
    """Connections to one URL: opened when all others are in use, kept until the engine closes."""

    def __init__(self, url: str, seen: SeenRows) -> None:
        self._url = url
        self._seen = seen
        self._idle = [self._connect()]
        self._lock = threading.Lock()

    @contextmanager
    def lease(self) -> Iterator[Connection]:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None or not _answers(connection):
            connection = self._connect()
        try:
            yield connection
        finally:
            if not connection.closed:
                with self._lock:
                    self._idle.append(connection)

    def close(self) -> None:
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    def _connect(self) -> Connection:
        connection = _connect(self._url)
        with suppress(psycopg.Error):
            self._seen.begin_session(connection, connection.execute)
        return connection


def _answers(connection: Connection) -> bool:
    """Whether an idle connection still works: a server may have gone since its last use."""
    with suppress(psycopg.Error):
        connection.execute("")
        return True
    connection.close()
    return False


def _connect(url: str) -> Connection:
    failure: SqlrsError
    try:
        return psycopg.connect(url, autocommit=True, client_encoding="utf8")
    except psycopg.OperationalError as error:
        # It names server, database and user; no data is read before there is a connection.
        text = str(error).strip().partition("\n")[0]
        failure = EngineFailed(f"cannot connect to PostgreSQL: {text}", code="connection_failed")
    except psycopg.Error:
        failure = UsageError(
            "the PostgreSQL URL is malformed", hint="postgresql://user:password@host:port/database"
        )
    raise failure


def _version(number: int) -> str:
    return f"{number // 10_000}.{number % 10_000}"


@contextmanager
def _own_transaction(connection: Connection) -> Iterator[None]:
    """Room for a transaction of our own on a connection, which is left as it was found."""
    if connection.closed:
        raise UsageError("the psycopg connection is closed")
    if connection.info.transaction_status is not TransactionStatus.IDLE:
        raise UsageError(
            "the psycopg connection is inside a transaction",
            hint="commit or roll back first, or give a connection of its own",
        )
    autocommit = connection.autocommit
    connection.autocommit = True
    try:
        yield
    finally:
        with suppress(psycopg.Error):
            connection.rollback()
            connection.autocommit = autocommit
