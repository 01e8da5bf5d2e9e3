"""The ledger that lasts: budgets and the journal of releases in SQLite or PostgreSQL."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce
from typing import Any, Literal

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    Row,
    Select,
    Table,
    and_,
    create_engine,
    func,
    make_url,
    or_,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from sqlrs.errors import EngineFailed, UsageError
from sqlrs.ledger.base import (
    RELEASED,
    RESERVED,
    Charge,
    JournalLine,
    Kind,
    PrivacyBudget,
    add,
    check_answer,
    check_name,
    check_outcome,
    not_open,
    parse_cap,
)
from sqlrs.ledger.export import csv_text, json_lines
from sqlrs.ledger.file_rights import claim_file, no_ledger
from sqlrs.ledger.ledger_tables import BUDGETS, RELEASES, SCHEMA
from sqlrs.ledger.migrations import advance, check_version, newest, refuse_newer, version_of
from sqlrs.templates import template
from sqlrs.units import ROW

_BUSY_SECONDS = 60
_NO_RIGHT = "42501"
_UNWRITABLE = ("25006", "SQLITE_READONLY", "SQLITE_CANTOPEN")
_LOCKED = "55P03"
_FAILED = "the budget ledger failed; no answer is given without it"
_URLS = "such as sqlite:///budget.db or postgresql://user@host:5432/database"
_UPSERT: dict[str, Callable[[Table], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}
_WRITE = {
    "sqlite": ("ledger/sqlite_durable.sql", "ledger/sqlite_begin.sql"),
    "postgresql": ("ledger/postgresql_durable.sql",),
}
_READ = {"sqlite": ("ledger/sqlite_read.sql",), "postgresql": ()}
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


class StoreLedger:
    """Budgets that every process and every run shares. Who has none granted has 0.

    ``url`` is ``sqlite:///file`` or ``postgresql://user@host:port/database``. ``repeats`` says
    whether an identical query gets its recorded answer for free. A missing ledger is made, unless
    ``create`` is False: whoever only reads has the wrong name.
    """

    def __init__(self, url: str, *, repeats: bool = True, create: bool = True) -> None:
        self._engine = _engine(url, create)
        self._repeats = repeats
        with _refusals_told():
            if not create and self._found_version() == 0:
                raise no_ledger(self._engine.url.render_as_string(hide_password=True))
            while self._found_version() < newest():
                self._advance()

    def repeat(self, charge: Charge) -> str | None:
        """The first recorded public answer of an identical released charge, or None."""
        if not self._repeats:
            return None
        found = self._read(
            select(RELEASES.c.answer)
            .where(
                RELEASES.c.fingerprint == _fingerprint(charge),
                RELEASES.c.outcome == RELEASED,
                RELEASES.c.answer.is_not(None),
            )
            .order_by(RELEASES.c.ticket)
            .limit(1)
        )
        return None if not found else str(found[0].answer)

    def reserve(self, charge: Charge) -> int:
        """Spend the charge of both budgets, or raise BudgetExhausted and spend nothing."""
        with self._writing() as connection:
            # Always the analyst's row before the dataset's: two reservations cannot deadlock.
            rows = connection.execute(
                select(BUDGETS)
                .where(
                    or_(
                        _is(Kind.ANALYST, charge.analyst),
                        _is(Kind.DATASET, charge.dataset),
                    )
                )
                .order_by(BUDGETS.c.kind)
                .with_for_update()
            )
            granted = {budget.kind: budget for budget in map(_budget, rows)}
            for kind, name in ((Kind.ANALYST, charge.analyst), (Kind.DATASET, charge.dataset)):
                before = granted.get(kind, _nothing(kind, name))
                if before.unit is None and kind is Kind.DATASET:
                    before = replace(before, unit=_journaled_unit(connection, name))
                after = before.after(charge)
                kept = connection.execute(
                    BUDGETS.update()
                    .where(_is(kind, name))
                    .values(spent=after.spent, unit=after.unit)
                    .returning(BUDGETS.c.spent, BUDGETS.c.unit)
                )
                if [tuple(row) for row in kept] != [(after.spent, after.unit)]:
                    raise EngineFailed("the budget ledger did not keep a charge")
            inserted = connection.execute(
                RELEASES.insert()
                .values(
                    at=datetime.now(UTC),
                    analyst=charge.analyst,
                    dataset=charge.dataset,
                    query=charge.query,
                    mechanism=charge.mechanism,
                    epsilon=charge.epsilon,
                    outcome=RESERVED,
                    fingerprint=_fingerprint(charge),
                    unit=charge.unit,
                )
                .returning(RELEASES.c.ticket)
            )
            return int(inserted.scalar_one())

    def settle(self, ticket: int, answer: str) -> None:
        """Record the public answer, as JSON text; only then may it be shown."""
        check_answer(answer)
        self._close(ticket, RELEASED, answer)

    def fail(self, ticket: int, outcome: str) -> None:
        """Record that no answer came; the charge stays spent."""
        check_outcome(outcome)
        self._close(ticket, outcome, None)

    def remaining(self, analyst: str, dataset: str) -> Decimal:
        """What this analyst may still spend on this dataset: the smaller of the two budgets."""
        budgets = (self.budget(analyst=analyst), self.budget(dataset=dataset))
        return min(budget.remaining for budget in budgets)

    def grant(
        self,
        *,
        epsilon: Decimal | int | str,
        analyst: str | None = None,
        dataset: str | None = None,
    ) -> PrivacyBudget:
        """Set the cap of one analyst or one dataset: the total over all time, spent or not."""
        kind, name = _whose(analyst, dataset)
        cap = parse_cap(epsilon)
        with self._writing() as connection:
            insert = _UPSERT[self._engine.dialect.name](BUDGETS)
            connection.execute(
                insert.values(
                    kind=kind, name=name, cap=cap, spent=_journaled(connection, kind, name)
                ).on_conflict_do_update(
                    index_elements=[BUDGETS.c.kind, BUDGETS.c.name], set_={"cap": cap}
                )
            )
            return _budget(connection.execute(select(BUDGETS).where(_is(kind, name))).one())

    def budget(self, *, analyst: str | None = None, dataset: str | None = None) -> PrivacyBudget:
        """The budget of one analyst or one dataset; a cap of 0 where none was granted."""
        kind, name = _whose(analyst, dataset)
        found = self._read(select(BUDGETS).where(_is(kind, name)))
        return _budget(found[0]) if found else _nothing(kind, name)

    def show(self) -> tuple[PrivacyBudget, ...]:
        """Every granted budget, analysts first, by name."""
        rows = self._read(select(BUDGETS).order_by(BUDGETS.c.kind, BUDGETS.c.name))
        return tuple(map(_budget, rows))

    def history(self, analyst: str | None = None) -> tuple[JournalLine, ...]:
        """The journal, oldest first, of everybody or of one analyst: for the data owner."""
        query = select(RELEASES).order_by(RELEASES.c.ticket)
        if analyst is not None:
            query = query.where(RELEASES.c.analyst == analyst)
        return tuple(map(_release, self._read(query)))

    def newest_of(self, analyst: str, lines: int, characters: int) -> tuple[JournalLine, ...]:
        """The newest lines of one analyst, newest first, with so many characters of each text.

        Neither a long journal nor long queries or tables fill the memory of whoever shows it; the
        answer of a count is never as long.
        """
        check_name(Kind.ANALYST, analyst)
        long = ("query", "answer")
        shortened = [func.substr(RELEASES.c[name], 1, characters).label(name) for name in long]
        others = [column for column in RELEASES.c if column.name not in long]
        query = (
            select(*others, *shortened)
            .where(RELEASES.c.analyst == analyst)
            .order_by(RELEASES.c.ticket.desc())
            .limit(lines)
        )
        return tuple(map(_release, self._read(query)))

    def export(self, form: Literal["jsonl", "csv"] = "jsonl") -> str:
        """The whole journal as JSON lines or as CSV: for the data owner."""
        return (json_lines if form == "jsonl" else csv_text)(self.history())

    def close(self) -> None:
        """Give the connections back; the ledger opens new ones if it is used again."""
        self._engine.dispose()

    def _close(self, ticket: int, outcome: str, answer: str | None) -> None:
        try:
            with self._writing() as connection:
                closed = connection.execute(
                    RELEASES.update()
                    .where(RELEASES.c.ticket == ticket, RELEASES.c.outcome == RESERVED)
                    .values(outcome=outcome, answer=answer)
                )
                if closed.rowcount != 1:
                    raise not_open(ticket)
        except UsageError as error:
            # The charge is spent and the data was read: that is no refusal any more.
            raise EngineFailed(_FAILED) from error

    def _found_version(self) -> int:
        """The version of what is there, which must be the owner's alone and not too new."""
        with self._transaction(_READ) as connection:
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
        with self._transaction(_READ) as connection:
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
        raise EngineFailed(_FAILED) from error


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


def _journaled(connection: Connection, kind: Kind, name: str) -> Decimal:
    """What the journal has charged to a budget: where a deleted one starts again."""
    column = RELEASES.c.analyst if kind is Kind.ANALYST else RELEASES.c.dataset
    charged = connection.execute(select(RELEASES.c.epsilon).where(column == name)).scalars()
    return reduce(add, charged, Decimal(0))


def _journaled_unit(connection: Connection, dataset: str) -> str | None:
    """Who the journal says that a dataset's charges protect: its budget may have been deleted."""
    lines = select(RELEASES.c.unit).where(RELEASES.c.dataset == dataset)
    return connection.execute(lines.order_by(RELEASES.c.ticket).limit(1)).scalar()


def _whose(analyst: str | None, dataset: str | None) -> tuple[Kind, str]:
    if analyst is not None and dataset is None:
        kind, name = Kind.ANALYST, analyst
    elif dataset is not None and analyst is None:
        kind, name = Kind.DATASET, dataset
    else:
        raise UsageError("name one analyst or one dataset")
    check_name(kind, name)
    return kind, name


def _is(kind: Kind, name: str) -> ColumnElement[bool]:
    return and_(BUDGETS.c.kind == kind, BUDGETS.c.name == name)


def _nothing(kind: Kind, name: str) -> PrivacyBudget:
    return PrivacyBudget(kind, name, Decimal(0), Decimal(0))


def _budget(row: Row[Any]) -> PrivacyBudget:
    return PrivacyBudget(Kind(row.kind), row.name, row.cap, row.spent, row.unit)


def _release(row: Row[Any]) -> JournalLine:
    charge = Charge(row.analyst, row.dataset, row.query, row.mechanism, row.epsilon, row.unit)
    return JournalLine(row.ticket, row.at, charge, row.outcome, row.answer)


def _fingerprint(charge: Charge) -> str:
    parts = [charge.analyst, charge.dataset, charge.query, charge.mechanism, f"{charge.epsilon:f}"]
    if charge.unit != ROW:
        # Those of rows stay as they were before there were units.
        parts.append(charge.unit)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
