"""A ledger's store, opened: its version checked and brought up, one transaction at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import URL, Connection, Engine, Row, Select, create_engine, func, make_url, select
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from sqlrs.errors import EngineFailed, UsageError
from sqlrs.ledger.file_rights import claim_file, no_ledger
from sqlrs.ledger.ledger_tables import SCHEMA
from sqlrs.ledger.migrations import advance, check_version, newest, refuse_newer, version_of
from sqlrs.templates import template

FAILED = "the budget ledger failed; no answer is given without it"
_BUSY_SECONDS = 60
_NO_RIGHT = "42501"
_UNWRITABLE = ("25006", "SQLITE_READONLY", "SQLITE_CANTOPEN")
_LOCKED = "55P03"
_URLS = "such as sqlite:///budget.db or postgresql://user@host:5432/database"
_WRITE = {
    "sqlite": ("ledger/sqlite_durable.sql", "ledger/sqlite_begin.sql"),
    "postgresql": ("ledger/postgresql_durable.sql",),
}
READ = {"sqlite": ("ledger/sqlite_read.sql",), "postgresql": ()}
# Before and after a step to a newer version; SQLite's write lock is enough.
_AROUND_A_STEP: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sqlite": ((), ()),
    "postgresql": (
        ("ledger/postgresql_schema.sql", "ledger/postgresql_lock.sql"),
        ("ledger/postgresql_one_owner.sql",),
    ),
}
_STRANGE = {
    "sqlite": "ledger/sqlite_strange.sql",
    "postgresql": "ledger/postgresql_strange.sql",
}


def clock(connection: Connection) -> datetime:
    """The one clock of a ledger: of PostgreSQL the server's, whichever machine asks."""
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    now: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return now.astimezone(UTC)


class OpenedStore:
    """A store of today's version that is its owner's alone; else opening it is refused."""

    def __init__(self, url: str, create: bool) -> None:
        self._engine = _engine(url, create)
        with _refusals_told():
            if not create and self._found_version() == 0:
                raise no_ledger(self._engine.url.render_as_string(hide_password=True))
            while self._found_version() < newest():
                self._advance()

    def close(self) -> None:
        """Give the connections back; the ledger opens new ones if it is used again."""
        self._engine.dispose()

    def _found_version(self) -> int:
        """The version of what is there, which must be the owner's alone and not too new."""
        with self._transaction(READ) as connection:
            _refuse_strangers(connection)
            version = version_of(connection)
        refuse_newer(version)
        return version

    def _advance(self) -> None:
        """One step to the newest version. Who comes second waits, and finds it made."""
        before, after = _AROUND_A_STEP[self._engine.dialect.name]
        with self._transaction(_WRITE) as connection:
            for name in before:
                connection.exec_driver_sql(template(name))
            _refuse_strangers(connection)
            advance(connection)
            for name in after:
                connection.exec_driver_sql(template(name))
            _refuse_strangers(connection)

    def _read(self, query: Select[Any]) -> Sequence[Row[Any]]:
        with self._transaction(READ) as connection:
            check_version(connection)
            return connection.execute(query).all()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._transaction(_WRITE) as connection:
            # A newer sqlrs may have changed the ledger since it was opened here. Until this
            # transaction ends it cannot.
            check_version(connection)
            yield connection

    @contextmanager
    def _transaction(self, start: Mapping[str, Sequence[str]]) -> Iterator[Connection]:
        with _failures(), self._engine.begin() as connection:
            for name in start[self._engine.dialect.name]:
                connection.exec_driver_sql(template(name))
            yield connection


def _engine(url: str, create: bool) -> Engine:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise UsageError("the ledger's URL cannot be read", hint=_URLS) from None
    if parsed.get_backend_name() == "postgresql":
        return _postgres_engine(parsed)
    if parsed.drivername != "sqlite":
        raise UsageError("the ledger lives in SQLite or PostgreSQL", hint=_URLS)
    # SQLite's own form of addresses (file:…?mode=memory) means another file than the one checked.
    plain = parsed.database and not parsed.database.startswith((":memory:", "file:"))
    if not plain or parsed.query:
        raise UsageError("a ledger in SQLite needs a plain file", hint=_URLS)
    claim_file(parsed.database or "", create)
    # Without a pool no connection is carried into a forked process or another thread. Python's
    # own transaction control is off because it would start too late, at the first write.
    options = {"isolation_level": None, "timeout": _BUSY_SECONDS}
    return create_engine(parsed, poolclass=NullPool, connect_args=options, hide_parameters=True)


def _postgres_engine(url: URL) -> Engine:
    try:
        return create_engine(
            url.set(drivername="postgresql+psycopg"),
            # At this level a row that was waited for is read as it is after the wait.
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,
            hide_parameters=True,
            execution_options={"schema_translate_map": {None: SCHEMA}},
        )
    except ModuleNotFoundError:
        hint = "pip install 'sqlrs[postgres]'"
        raise UsageError("a ledger in PostgreSQL needs psycopg", hint=hint) from None


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        raise EngineFailed(FAILED) from error


@contextmanager
def _refusals_told() -> Iterator[None]:
    """Tell why the database refuses while a ledger is opened; nothing private is read then."""
    try:
        yield
    except EngineFailed as error:
        refusal = getattr(error.__cause__, "orig", None)
        code = str(getattr(refusal, "sqlstate", getattr(refusal, "sqlite_errorname", "")))
        text = str(refusal).partition("\n")[0]
        if code == _NO_RIGHT:
            raise UsageError(
                f"PostgreSQL refuses the ledger's role: {text}",
                hint=f"as a superuser: CREATE SCHEMA {SCHEMA} AUTHORIZATION its_role; an older "
                "ledger of another role must be given to it first (ALTER TABLE … OWNER TO …)",
            ) from None
        if code.startswith(_UNWRITABLE):
            raise UsageError(
                f"the ledger cannot be written: {text}",
                hint="it must be writable, and the folder of a file too; nothing was changed",
            ) from None
        if code == _LOCKED:
            raise UsageError(
                f"the ledger could not be upgraded: {text}",
                hint="end the transactions that read its tables, then open it again; nothing was "
                "changed",
            ) from None
        raise


def _refuse_strangers(connection: Connection) -> None:
    strange = connection.exec_driver_sql(template(_STRANGE[connection.dialect.name])).scalar()
    if strange is not None:
        raise UsageError(
            f"the ledger is not its owner's alone: {strange}",
            hint="whoever else may change it may refill budgets: take that away, or use another",
        )
