"""The backend over the library: the one release path, with a stop for each count of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Protocol, runtime_checkable

from sqlrs.answer import Answer
from sqlrs.catalog import Catalog
from sqlrs.compiled import CompiledStatement, compiled_text
from sqlrs.compiler.simplify import Contradiction
from sqlrs.database import Database
from sqlrs.earlier_errors import earlier_error
from sqlrs.engines.base import Engine, Row, Snapshot, integers
from sqlrs.errors import EngineFailed, Interrupted, SqlrsError
from sqlrs.ledger import JournalLine, PrivacyBudget
from sqlrs.measuring.drift import Schema, current_catalog
from sqlrs.owner.explain import Explanation
from sqlrs.owner.explain_statement import explained
from sqlrs.proxy.backend import (
    SHOWN_CHARACTERS,
    Cancellation,
    CountOutcome,
    ExposedSchema,
    HistoryRow,
    Hold,
    TableOutcome,
    TextRow,
    at_once,
)
from sqlrs.proxy.checking import LibraryChecker, afterwards, check_dialect, in_clients_order
from sqlrs.proxy.exposed import exposed_schema
from sqlrs.proxy.paced_ledger import PacedLedger
from sqlrs.proxy.policy.public_reading import public_reading
from sqlrs.proxy.policy.written_moments import with_literals
from sqlrs.proxy.released_values import check_columns, text_rows
from sqlrs.proxy.warm import warm
from sqlrs.quoting import Quote, quote
from sqlrs.refusals import refusal
from sqlrs.release import release, release_table
from sqlrs.settings import Request, Wish
from sqlrs.table_answer import TableAnswer
from sqlrs.wished_release import release_wished, release_wished_table
from sqlrs.wished_steps import WishDesk

_LOOK_SECONDS = 0.05
_NOBODY = "nobody"


@runtime_checkable
class _Stoppable(Protocol):
    def interrupt(self) -> None: ...


@runtime_checkable
class _Budgets(Protocol):
    def budget(
        self, *, analyst: str | None = None, dataset: str | None = None
    ) -> PrivacyBudget: ...


@runtime_checkable
class _Journal(Protocol):
    def newest_of(self, analyst: str, lines: int, characters: int) -> tuple[JournalLine, ...]: ...


class LibraryBackend:
    """Answers from an open database and its ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database
        warm(database.catalog, database.settings)

    def schema(self) -> ExposedSchema:
        """The tables and views of the database."""
        return exposed_schema(self._database.catalog)

    def checker(self) -> LibraryChecker:
        """The compiler with this schema."""
        return LibraryChecker(self._database.catalog, self._database.settings)

    def count(
        self,
        analyst: str,
        sql: str,
        *,
        epsilon: Decimal,
        error_bars: Decimal | None,
        cancel: Cancellation,
        hold: Hold = at_once,
        error: Decimal | None = None,
    ) -> CountOutcome:
        """Charge and answer; ``cancel`` stops this count and no other."""
        database = self._database
        sql = with_literals(sql)
        check_dialect(sql, database.catalog.dialect)
        after = afterwards(sql, database.catalog)
        if cancel.is_set():
            raise Interrupted("the work was stopped")
        if after.never:
            return CountOutcome(0, Decimal(0), shown=False)
        ledger = PacedLedger(database.ledger, hold)
        request = Request(
            sql=sql,
            epsilon=epsilon,
            error_bars=error_bars,
            analyst=analyst,
            dataset=database.dataset,
            as_rows=True,
        )
        engine = _StoppableEngine(database.engine, cancel)
        catalog, settings = database.catalog, database.settings
        if error is not None:
            desk = WishDesk(engine, catalog, ledger, settings)
            answer = release_wished(request, Wish(error, epsilon), desk)
        else:
            answer = release(
                request, engine=engine, catalog=catalog, ledger=ledger, settings=settings
            )
        bars = answer.error_bars
        return CountOutcome(
            answer.value,
            answer.epsilon,
            None if bars is None else (bars.low, bars.high),
            ledger.repeated,
            shown=after.shows(answer.value),
            notes=answer.notes,
        )

    def table(
        self,
        analyst: str,
        sql: str,
        *,
        types: Sequence[int],
        epsilon: Decimal,
        error_bars: Decimal | None,
        cancel: Cancellation,
        hold: Hold = at_once,
        error: Decimal | None = None,
    ) -> TableOutcome:
        """Charge once and answer; ``cancel`` stops this answer and no other."""
        database = self._database
        sql = with_literals(sql)
        check_dialect(sql, database.catalog.dialect)
        if cancel.is_set():
            raise Interrupted("the work was stopped")
        ledger = PacedLedger(database.ledger, hold)
        request = Request(
            sql=in_clients_order(sql, database.catalog.dialect),
            epsilon=epsilon,
            error_bars=error_bars,
            analyst=analyst,
            dataset=database.dataset,
        )
        engine = _StoppableEngine(database.engine, cancel)
        catalog, settings = database.catalog, database.settings
        if error is not None:
            desk = WishDesk(engine, catalog, ledger, settings)
            answer = release_wished_table(
                request, Wish(error, epsilon), desk, lambda one: check_columns(one, types)
            )
        else:
            answer = release_table(
                request,
                engine=engine,
                catalog=catalog,
                ledger=ledger,
                settings=settings,
                accept=lambda columns: check_columns(columns, types),
            )
        rows = text_rows(answer.rows, types)
        return TableOutcome(rows, answer.epsilon, ledger.repeated, answer.notes)

    def answer(
        self,
        analyst: str,
        sql: str,
        *,
        epsilon: Decimal,
        error_bars: Decimal | None,
        cancel: Cancellation,
        hold: Hold = at_once,
    ) -> Answer | TableAnswer:
        """By the release path of counts or of tables; ``cancel`` stops this answer alone."""
        database = self._database
        if cancel.is_set():
            raise Interrupted("the work was stopped")
        compiled = compiled_text(sql, database.catalog, database.settings)
        path = release_table if isinstance(compiled, CompiledStatement) else release
        return path(
            self._request(analyst, sql, epsilon, error_bars),
            engine=_StoppableEngine(database.engine, cancel),
            catalog=database.catalog,
            ledger=PacedLedger(database.ledger, hold),
            settings=database.settings,
        )

    def quote(
        self,
        analyst: str,
        sql: str,
        *,
        epsilon: Decimal,
        error_bars: Decimal | None,
        cancel: Cancellation,
    ) -> tuple[Quote, bool]:
        """The charge of ``answer``, and whether the ledger has recorded it."""
        database = self._database
        request = self._request(analyst, sql, epsilon, error_bars)
        engine = _StoppableEngine(database.engine, cancel)
        found = quote(request, engine, database.catalog, database.settings)
        if found.charge is None:
            return found, False
        repeat = database.ledger.repeat(found.charge) is not None
        return replace(found, earlier=earlier_error(found.charge, database.ledger)), repeat

    def _request(
        self, analyst: str, sql: str, epsilon: Decimal, error_bars: Decimal | None
    ) -> Request:
        return Request(
            sql=sql,
            epsilon=epsilon,
            error_bars=error_bars,
            analyst=analyst,
            dataset=self._database.dataset,
        )

    def explain(
        self, sql: str, *, epsilon: Decimal, error_bars: Decimal | None, cancel: Cancellation
    ) -> str:
        """The domains, measures and noise of a table, or the residuals of a count."""
        database = self._database
        catalog, settings = database.catalog, database.settings
        sql = with_literals(sql)
        check_dialect(sql, catalog.dialect)
        text = in_clients_order(sql, catalog.dialect)
        request = Request(sql=text, epsilon=epsilon, error_bars=error_bars)
        compiled = compiled_text(text, catalog, settings, as_rows=True)
        if isinstance(compiled, CompiledStatement):
            engine = _StoppableEngine(database.engine, cancel)
            return str(explained(compiled, request, engine, catalog, settings))
        if isinstance(compiled, Contradiction):
            return "0 on every database, free of charge"
        chosen = request.chosen_mechanism()
        return str(
            Explanation(compiled.residuals, chosen, catalog.dialect, settings.plan, settings.sizes)
        )

    def read(
        self, sql: str, *, rows: int, characters: int, cancel: Cancellation
    ) -> Sequence[TextRow]:
        """Read public tables; the proof that they are is made here, from the catalog."""
        database = self._database
        with _StoppableEngine(database.engine, cancel).snapshot() as snapshot:
            # A table that was declared public may have gone, and another one have its name.
            catalog = current_catalog(database.catalog, Schema.of(snapshot, database.catalog))
            reading = public_reading(sql, catalog, rows)
            # First how much it is: what does not fit is never fetched.
            (count, size) = integers(snapshot.rows(reading.size))
            if count > rows or size > characters:
                raise refusal(
                    "too_much",
                    f"more than {rows} rows or {characters} characters of public tables",
                    hint="add LIMIT, or select fewer columns",
                )
            found = [_text_row(row) for row in snapshot.rows(reading.rows)]
        with database.engine.snapshot() as snapshot:
            if current_catalog(database.catalog, Schema.of(snapshot, database.catalog)) != catalog:
                raise EngineFailed("the schema changed during the work")
        return found

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

    def own_budget(self, analyst: str) -> PrivacyBudget | None:
        """What the ledger says of the analyst, over all datasets."""
        ledger = self._database.ledger
        return ledger.budget(analyst=analyst) if isinstance(ledger, _Budgets) else None

    def dataset_budget(self) -> PrivacyBudget | None:
        """What the ledger says of the whole dataset."""
        ledger = self._database.ledger
        return (
            ledger.budget(dataset=self._database.dataset) if isinstance(ledger, _Budgets) else None
        )

    def history(self, analyst: str, limit: int) -> Sequence[HistoryRow]:
        """The analyst's own lines of the journal, newest first."""
        ledger = self._database.ledger
        if not isinstance(ledger, _Journal):
            return ()
        lines = ledger.newest_of(analyst, limit, SHOWN_CHARACTERS)
        return [_history_row(line) for line in lines]


class _StoppableEngine:
    """The engine, each snapshot of which ends when this one count is cancelled."""

    def __init__(self, engine: Engine, cancel: Cancellation) -> None:
        self._engine = engine
        self._cancel = cancel
        self.dialect = engine.dialect
        self.keeps_schema = engine.keeps_schema

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


def _text_row(row: Row) -> TextRow:
    return tuple(None if value is None else str(value) for value in row)


def _history_row(line: JournalLine) -> HistoryRow:
    # A released table is a list there, and too long for a line of the history.
    single = line.answer is not None and line.answer.startswith("{")
    answer = Answer.from_json(line.answer) if single and line.answer else None
    bars = None if answer is None else answer.error_bars
    return HistoryRow(
        line.at,
        line.charge.query,
        line.charge.epsilon,
        line.outcome,
        None if answer is None else answer.value,
        None if bars is None else (bars.low, bars.high),
    )
