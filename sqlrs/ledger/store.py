"""The ledger that lasts: budgets and the journal of releases in SQLite or PostgreSQL."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce
from typing import Any, Literal

from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Dialect,
    Engine,
    Index,
    Integer,
    MetaData,
    Numeric,
    Row,
    Select,
    Table,
    Text,
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
from sqlalchemy.types import TypeDecorator, TypeEngine

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
from sqlrs.ledger.file_rights import claim_file
from sqlrs.templates import template

_BUSY_SECONDS = 60
_SCHEMA = "sqlrs_ledger"
_NO_RIGHT = "42501"
_URLS = "such as sqlite:///budget.db or postgresql://user@host:5432/database"
_UPSERT: dict[str, Callable[[Table], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}
_BEGIN = {
    "sqlite": ("ledger/sqlite_durable.sql", "ledger/sqlite_begin.sql"),
    "postgresql": ("ledger/postgresql_durable.sql",),
}
_STRANGE = {
    "sqlite": "ledger/sqlite_strange.sql",
    "postgresql": "ledger/postgresql_strange.sql",
}


class _Epsilon(TypeDecorator[Decimal]):
    """An exact decimal: NUMERIC where the database has it, else its text. SQLite's is a float."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        exact: TypeEngine[Any] = Text() if dialect.name == "sqlite" else Numeric()
        return dialect.type_descriptor(exact)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return f"{value:f}" if dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal:
        try:
            return parse_cap(value)
        except UsageError:
            raise EngineFailed("the budget ledger holds something that is not a budget") from None


class _Moment(TypeDecorator[datetime]):
    """A moment in UTC; SQLite forgets the time zone, so it is put back."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime:
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


_METADATA = MetaData()
_BUDGETS = Table(
    "sqlrs_budgets",
    _METADATA,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("cap", _Epsilon, nullable=False),
    # Kept here and not summed from the journal: clearing old lines must not refill a budget.
    Column("spent", _Epsilon, nullable=False),
)
_RELEASES = Table(
    "sqlrs_releases",
    _METADATA,
    Column("ticket", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at", _Moment, nullable=False),
    Column("analyst", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("query", Text, nullable=False),
    Column("mechanism", Text, nullable=False),
    Column("epsilon", _Epsilon, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("answer", Text),
    # A query is too long for an index; a digest of the whole charge is not.
    Column("fingerprint", Text, nullable=False),
    Index("sqlrs_releases_by_fingerprint", "fingerprint"),
    Index("sqlrs_releases_by_analyst", "analyst"),
    sqlite_autoincrement=True,
)


class StoreLedger:
    """Budgets that every process and every run shares. Who has none granted has 0.

    ``url`` is ``sqlite:///file`` or ``postgresql://user@host:port/database``. ``repeats`` says
    whether an identical query gets its recorded answer for free.
    """

    def __init__(self, url: str, *, repeats: bool = True) -> None:
        self._engine = _engine(url)
        self._repeats = repeats
        with _refused_rights(), self._writing() as connection:
            if self._engine.dialect.name == "postgresql":
                connection.exec_driver_sql(template("ledger/postgresql_schema.sql"))
                _refuse_strangers(connection)
                connection.exec_driver_sql(template("ledger/postgresql_adopt.sql"))
            _METADATA.create_all(connection)
            _refuse_strangers(connection)

    def repeat(self, charge: Charge) -> str | None:
        """The first recorded public answer of an identical released charge, or None."""
        if not self._repeats:
            return None
        found = self._read(
            select(_RELEASES.c.answer)
            .where(
                _RELEASES.c.fingerprint == _fingerprint(charge),
                _RELEASES.c.outcome == RELEASED,
                _RELEASES.c.answer.is_not(None),
            )
            .order_by(_RELEASES.c.ticket)
            .limit(1)
        )
        return None if not found else str(found[0].answer)

    def reserve(self, charge: Charge) -> int:
        """Spend the charge of both budgets, or raise BudgetExhausted and spend nothing."""
        with self._writing() as connection:
            # Always the analyst's row before the dataset's: two reservations cannot deadlock.
            rows = connection.execute(
                select(_BUDGETS)
                .where(
                    or_(
                        _is(Kind.ANALYST, charge.analyst),
                        _is(Kind.DATASET, charge.dataset),
                    )
                )
                .order_by(_BUDGETS.c.kind)
                .with_for_update()
            )
            granted = {budget.kind: budget for budget in map(_budget, rows)}
            for kind, name in ((Kind.ANALYST, charge.analyst), (Kind.DATASET, charge.dataset)):
                after = granted.get(kind, _nothing(kind, name)).after(charge)
                kept = connection.execute(
                    _BUDGETS.update()
                    .where(_is(kind, name))
                    .values(spent=after.spent)
                    .returning(_BUDGETS.c.spent)
                )
                if kept.scalars().all() != [after.spent]:
                    raise EngineFailed("the budget ledger did not keep a charge")
            inserted = connection.execute(
                _RELEASES.insert()
                .values(
                    at=datetime.now(UTC),
                    analyst=charge.analyst,
                    dataset=charge.dataset,
                    query=charge.query,
                    mechanism=charge.mechanism,
                    epsilon=charge.epsilon,
                    outcome=RESERVED,
                    fingerprint=_fingerprint(charge),
                )
                .returning(_RELEASES.c.ticket)
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
            insert = _UPSERT[self._engine.dialect.name](_BUDGETS)
            connection.execute(
                insert.values(
                    kind=kind, name=name, cap=cap, spent=_journaled(connection, kind, name)
                ).on_conflict_do_update(
                    index_elements=[_BUDGETS.c.kind, _BUDGETS.c.name], set_={"cap": cap}
                )
            )
            return _budget(connection.execute(select(_BUDGETS).where(_is(kind, name))).one())

    def budget(self, *, analyst: str | None = None, dataset: str | None = None) -> PrivacyBudget:
        """The budget of one analyst or one dataset; a cap of 0 where none was granted."""
        kind, name = _whose(analyst, dataset)
        found = self._read(select(_BUDGETS).where(_is(kind, name)))
        return _budget(found[0]) if found else _nothing(kind, name)

    def show(self) -> tuple[PrivacyBudget, ...]:
        """Every granted budget, analysts first, by name."""
        rows = self._read(select(_BUDGETS).order_by(_BUDGETS.c.kind, _BUDGETS.c.name))
        return tuple(map(_budget, rows))

    def history(self, analyst: str | None = None) -> tuple[JournalLine, ...]:
        """The journal, oldest first, of everybody or of one analyst: for the data owner."""
        query = select(_RELEASES).order_by(_RELEASES.c.ticket)
        if analyst is not None:
            query = query.where(_RELEASES.c.analyst == analyst)
        return tuple(map(_release, self._read(query)))

    def history_of(self, analyst: str) -> tuple[JournalLine, ...]:
        """The journal of one analyst and never more: what this analyst may see."""
        check_name(Kind.ANALYST, analyst)
        return self.history(analyst)

    def newest_of(self, analyst: str, lines: int, characters: int) -> tuple[JournalLine, ...]:
        """The newest lines of one analyst, newest first, with so many characters of each query.

        Neither a long journal nor long queries fill the memory of whoever shows it.
        """
        check_name(Kind.ANALYST, analyst)
        shortened = func.substr(_RELEASES.c.query, 1, characters).label("query")
        others = [column for column in _RELEASES.c if column.name != "query"]
        query = (
            select(*others, shortened)
            .where(_RELEASES.c.analyst == analyst)
            .order_by(_RELEASES.c.ticket.desc())
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
        with self._writing() as connection:
            closed = connection.execute(
                _RELEASES.update()
                .where(_RELEASES.c.ticket == ticket, _RELEASES.c.outcome == RESERVED)
                .values(outcome=outcome, answer=answer)
            )
            if closed.rowcount != 1:
                raise not_open(ticket)

    def _read(self, query: Select[Any]) -> Sequence[Row[Any]]:
        with _failures(), self._engine.connect() as connection:
            return connection.execute(query).all()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with _failures(), self._engine.begin() as connection:
            for name in _BEGIN[self._engine.dialect.name]:
                connection.exec_driver_sql(template(name))
            yield connection


def _engine(url: str) -> Engine:
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
    claim_file(parsed.database or "")
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
            execution_options={"schema_translate_map": {None: _SCHEMA}},
        )
    except ModuleNotFoundError:
        hint = "pip install 'sqlrs[postgres]'"
        raise UsageError("a ledger in PostgreSQL needs psycopg", hint=hint) from None


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        raise EngineFailed("the budget ledger failed; no answer is given without it") from error


@contextmanager
def _refused_rights() -> Iterator[None]:
    """Tell what PostgreSQL refuses while the tables are made; nothing private is read then."""
    try:
        yield
    except EngineFailed as error:
        refusal = getattr(error.__cause__, "orig", None)
        if getattr(refusal, "sqlstate", None) != _NO_RIGHT:
            raise
        text = str(refusal).partition("\n")[0]
        raise UsageError(
            f"PostgreSQL refuses the ledger's role: {text}",
            hint=f"as a superuser: CREATE SCHEMA {_SCHEMA} AUTHORIZATION its_role; an older ledger "
            "of another role must be given to it first (ALTER TABLE … OWNER TO …)",
        ) from None


def _refuse_strangers(connection: Connection) -> None:
    strange = connection.exec_driver_sql(template(_STRANGE[connection.dialect.name])).scalar()
    if strange is not None:
        raise UsageError(
            f"the ledger is not its owner's alone: {strange}",
            hint="whoever else may change it may refill budgets: take that away, or use another",
        )


def _journaled(connection: Connection, kind: Kind, name: str) -> Decimal:
    """What the journal has charged to a budget: where a deleted one starts again."""
    column = _RELEASES.c.analyst if kind is Kind.ANALYST else _RELEASES.c.dataset
    charged = connection.execute(select(_RELEASES.c.epsilon).where(column == name)).scalars()
    return reduce(add, charged, Decimal(0))


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
    return and_(_BUDGETS.c.kind == kind, _BUDGETS.c.name == name)


def _nothing(kind: Kind, name: str) -> PrivacyBudget:
    return PrivacyBudget(kind, name, Decimal(0), Decimal(0))


def _budget(row: Row[Any]) -> PrivacyBudget:
    return PrivacyBudget(Kind(row.kind), row.name, row.cap, row.spent)


def _release(row: Row[Any]) -> JournalLine:
    charge = Charge(row.analyst, row.dataset, row.query, row.mechanism, row.epsilon)
    return JournalLine(row.ticket, row.at, charge, row.outcome, row.answer)


def _fingerprint(charge: Charge) -> str:
    parts = (charge.analyst, charge.dataset, charge.query, charge.mechanism, f"{charge.epsilon:f}")
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
