"""The backend over the library: the one release path, with a stop for each count of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from functools import lru_cache
from typing import Protocol, runtime_checkable

from sqlglot import parse_one
from sqlglot.errors import SqlglotError

from sqlrs.answer import Answer
from sqlrs.catalog import Catalog
from sqlrs.database import Database
from sqlrs.engines.base import Engine, Snapshot
from sqlrs.errors import Interrupted, QueryRefused, SqlrsError
from sqlrs.ledger import Charge, Ledger, MemoryLedger, Release
from sqlrs.proxy.backend import Cancellation, ExposedSchema, HistoryRow, Outcome
from sqlrs.proxy.exposed import exposed_schema
from sqlrs.release import Compiled, Request, release

_LOOK_SECONDS = 0.05
_CHECKED_TEXTS = 512
_NOBODY = "nobody"


@runtime_checkable
class _Stoppable(Protocol):
    def interrupt(self) -> None: ...


@runtime_checkable
class _Journal(Protocol):
    def history_of(self, analyst: str) -> tuple[Release, ...]: ...


class LibraryBackend:
    """Answers from an open database and its ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # A text that passed once passes again: the schema is read once, at the start.
        self._compile = lru_cache(_CHECKED_TEXTS)(self._compiles)

    def schema(self) -> ExposedSchema:
        """The tables and views of the database."""
        return exposed_schema(self._database.catalog)

    def check(self, sql: str) -> None:
        """Compile only."""
        self._compile(sql)

    def count(
        self,
        analyst: str,
        sql: str,
        *,
        epsilon: Decimal,
        error_bars: Decimal | None,
        cancel: Cancellation,
    ) -> Outcome:
        """Charge and answer; ``cancel`` stops this count and no other."""
        database = self._database
        self._compile(sql)
        if cancel.is_set():
            raise Interrupted("the work was stopped")
        ledger = _WatchedLedger(database.ledger)
        answer = release(
            Request(
                sql=sql,
                epsilon=epsilon,
                error_bars=error_bars,
                analyst=analyst,
                dataset=database.dataset,
            ),
            engine=_StoppableEngine(database.engine, cancel),
            catalog=database.catalog,
            ledger=ledger,
            settings=database.settings,
        )
        bars = answer.error_bars
        return Outcome(
            answer.value,
            answer.epsilon,
            None if bars is None else (bars.low, bars.high),
            ledger.repeated,
        )

    def trouble(self) -> str | None:
        """Whether the data and the ledger answer; no table is read."""
        try:
            self._database.ledger.remaining(_NOBODY, self._database.dataset)
        except SqlrsError:
            return "the ledger does not answer"
        try:
            with self._database.engine.snapshot():
                return None
        except SqlrsError:
            return "the database that holds the data does not answer"

    def remaining(self, analyst: str) -> Decimal | None:
        """What the ledger says."""
        return self._database.ledger.remaining(analyst, self._database.dataset)

    def history(self, analyst: str, limit: int) -> Sequence[HistoryRow]:
        """The analyst's own lines of the journal, newest first."""
        ledger = self._database.ledger
        lines: Sequence[Release] = ()
        if isinstance(ledger, _Journal):
            lines = ledger.history_of(analyst)
        elif isinstance(ledger, MemoryLedger):
            lines = [line for line in ledger.history() if line.charge.analyst == analyst]
        return [_history_row(line) for line in reversed(lines[-limit:])]

    def _compiles(self, sql: str) -> None:
        catalog = self._database.catalog
        Compiled.of(sql, catalog, self._database.settings)
        check_dialect(sql, catalog.dialect)


def check_dialect(sql: str, dialect: str) -> None:
    """Refuse a text that PostgreSQL and the data's own database read in two ways."""
    if dialect == "postgres":
        return
    try:
        same = parse_one(sql, read="postgres") == parse_one(sql, read=dialect)
    except SqlglotError:
        same = False
    if not same:
        raise QueryRefused(
            f"PostgreSQL and {dialect}, which holds the data, read this query differently",
            code="dialect",
            hint="avoid / and functions whose meaning differs between the two",
        )


class _WatchedLedger:
    """The ledger, remembering whether the answer came from the record."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.repeated = False

    def repeat(self, charge: Charge) -> str | None:
        recorded = self._ledger.repeat(charge)
        self.repeated = recorded is not None
        return recorded

    def reserve(self, charge: Charge) -> int:
        return self._ledger.reserve(charge)

    def settle(self, ticket: int, answer: str) -> None:
        self._ledger.settle(ticket, answer)

    def fail(self, ticket: int, outcome: str) -> None:
        self._ledger.fail(ticket, outcome)

    def remaining(self, analyst: str, dataset: str) -> Decimal | None:
        return self._ledger.remaining(analyst, dataset)


class _StoppableEngine:
    """The engine, each snapshot of which ends when this one count is cancelled."""

    def __init__(self, engine: Engine, cancel: Cancellation) -> None:
        self._engine = engine
        self._cancel = cancel
        self.dialect = engine.dialect

    def catalog(self) -> Catalog:
        return self._engine.catalog()

    def check_keys(self, catalog: Catalog, keys: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self._engine.check_keys(catalog, keys)

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        return self._watched()

    def interrupt(self) -> None:
        raise NotImplementedError("the engine is shared: only this count's snapshots are stopped")

    def close(self) -> None:
        raise NotImplementedError("the engine is shared and closed by its owner")

    @contextmanager
    def _watched(self) -> Iterator[Snapshot]:
        with self._engine.snapshot() as snapshot:
            done, ending = threading.Event(), threading.Lock()
            arguments = (snapshot, done, ending)
            threading.Thread(target=self._watch, args=arguments, daemon=True).start()
            try:
                yield snapshot
            finally:
                # Not joined: a count would wait for the next look. The lock keeps a late stop
                # away from a connection that serves somebody else by then.
                with ending:
                    done.set()

    def _watch(self, snapshot: Snapshot, done: threading.Event, ending: threading.Lock) -> None:
        while not done.is_set():
            if not self._cancel.wait(_LOOK_SECONDS):
                continue
            with ending:
                if isinstance(snapshot, _Stoppable) and not done.is_set():
                    snapshot.interrupt()
            # A stop that comes before its statement began is lost, so it is repeated.
            done.wait(_LOOK_SECONDS)


def _history_row(line: Release) -> HistoryRow:
    answer = None if line.answer is None else Answer.from_json(line.answer).value
    return HistoryRow(line.at, line.charge.query, line.charge.epsilon, line.outcome, answer)
