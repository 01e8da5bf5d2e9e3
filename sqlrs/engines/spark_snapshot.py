"""One snapshot of Spark's tables: each pinned when first read, statements can be stopped."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sqlrs.catalog import Catalog, Routine, Table
from sqlrs.dialects.spark_text import spark_text, spark_tree
from sqlrs.engines import spark_pins
from sqlrs.engines.base import Measurable, Row, integers, one_integer
from sqlrs.engines.spark_files import FileTable
from sqlrs.engines.spark_jobs import JobGroup, fetched, told
from sqlrs.engines.spark_pins import Pin
from sqlrs.engines.spark_session import require_settings
from sqlrs.engines.watch import Outcome, Result, Stop, watched
from sqlrs.errors import EngineFailed, Interrupted, SqlrsError
from sqlrs.trees.build import select_from, table_of
from sqlrs.trees.identifiers import column

if TYPE_CHECKING:
    from sqlrs.engines.duckdb import DuckDBEngine
    from sqlrs.engines.spark import SparkEngine

_NUMBERS = itertools.count(1)
# A cancelled job ends within a second. What does not is left to itself: nobody waits for it.
_PATIENCE = 10.0

Identity = tuple[str | None, str]


class SparkSnapshot:
    """Tables held still from their first use on. It must be ended with ``end``, which looks again.

    Statements of one snapshot run one after another.
    """

    def __init__(self, engine: SparkEngine, timeout: float | None) -> None:
        self._engine = engine
        self._session = engine.own.session
        self._timeout = timeout
        self._pins: dict[Identity, Pin] = {}
        self._group: JobGroup | None = None
        self._here: DuckDBEngine | None = None
        self._kept: set[str] = set()
        self._interrupted = threading.Event()

    def scalar(self, statement: exp.Expression) -> int:
        """Run a statement that yields one integer."""
        return one_integer(self.rows(statement))

    def rows(self, statement: exp.Expression) -> list[Row]:
        """Run a statement and fetch all its rows."""
        return self.run(self._of_pinned(statement))

    @property
    def keeps_rows_unseen(self) -> bool:
        """Whether rows pass no network in the open on their way here."""
        return self._engine.own.keeps_rows_unseen

    def size(self, table: Table, texts: Iterable[str]) -> tuple[int, int]:
        """The rows of a table, and the bytes of these columns of texts; it decides plans alone."""
        pin, names = self._pin(table.schema, table.name), tuple(sorted(texts))
        known = self._engine.sizes.get((table.identity, names))
        if known is not None and known[0] == pin.states and pin.states:
            return known[1]
        lengths = (
            exp.Sum(this=exp.Anonymous(this="octet_length", expressions=[column(name)]))
            for name in names
        )
        totals = (exp.Coalesce(this=one, expressions=[exp.Literal.number(0)]) for one in lengths)
        select = select_from(table_of(table), exp.Count(this=exp.Star()), *totals)
        rows, *sums = integers(self.rows(select))
        self._engine.sizes[table.identity, names] = pin.states, (rows, sum(sums))
        return rows, sum(sums)

    def fetched(self, statements: Mapping[str, exp.Select], memory: int) -> Measurable:
        """Run the statements, and keep their rows as tables of these names until the end."""
        if self._here is None:
            self._here = self._engine.database_here(memory)
        for name, statement in statements.items():
            if name not in self._kept:
                self._here.take(name, self.in_columns(self._of_pinned(statement)))
                self._kept.add(name)
        return self._here

    def forget_fetched(self) -> None:
        """Give the memory of all fetched rows back."""
        if self._here is not None:
            self._here.close()
        self._here, self._kept = None, set()

    def in_columns(self, tree: exp.Expr) -> Any:
        """Run a tree that is Spark's already, and fetch all its rows as a table of Arrow's."""
        text = spark_text(tree)
        return self._watched(lambda: self._session.sql(text).toArrow())

    def _of_pinned(self, statement: exp.Expression) -> exp.Query:
        """A statement as Spark reads it, over the views of a snapshot."""
        tree = spark_tree(statement)
        if not isinstance(tree, exp.Query):
            raise EngineFailed("only queries are run")
        common = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        for table in list(tree.find_all(exp.Table)):
            if table.args.get("db") or table.name.lower() not in common:
                self._read_pinned(table)
        return tree

    def hold(self, tables: Iterable[Table]) -> None:
        """Fix the files of these tables now; those of others when they are first read."""
        for one in tables:
            self._pin(one.schema, one.name)

    def run(self, tree: exp.Expr) -> list[Row]:
        """Run a tree that is Spark's already, and fetch all its rows."""
        text = spark_text(tree)
        return self._watched(lambda: fetched(self._session.sql(text)))

    def catalog(self) -> Catalog:
        """The catalog as it is now."""
        return self._watched(self._engine.read_catalog)

    def routines(self, names: Collection[str]) -> tuple[Routine, ...]:
        """Spark says nothing of what a function depends on, so there are none to vouch for."""
        return ()

    def interrupt(self) -> None:
        """Stop the running statement and every later one."""
        self._interrupted.set()
        if self._group is not None:
            self._group.cancel()
        if self._here is not None:
            self._here.interrupt()

    def tasks(self) -> tuple[int, int]:
        """How many tasks of the running statement have ended, and how many are known."""
        return (0, 0) if self._group is None else self._group.tasks()

    def verify(self) -> None:
        """Fail unless the settings and all files are what they were when they were first read."""
        self._watched(self._verify)

    def end(self) -> None:
        """Forget views and fetched rows; nobody waits long for a server that does not answer."""
        self.forget_fetched()
        pins = tuple(self._pins.values())
        if pins:
            watched(
                lambda: spark_pins.drop(self._session, iter(pins)),
                lambda: None,
                timeout=_PATIENCE,
                patience=0.0,
            )

    def _verify(self) -> bool:
        require_settings(self._session)
        for pin in self._pins.values():
            spark_pins.require_unchanged(pin, self._session, remote=self._engine.own.remote)
        return True

    def _read_pinned(self, table: exp.Table) -> None:
        """Let the statement read the view of a table in the table's place."""
        schema = table.args.get("db")
        pin = self._pin(schema.name if schema is not None else None, table.name)
        alias = table.args.get("alias") or exp.TableAlias(this=table.this.copy())
        table.set("this", exp.to_identifier(pin.view))
        table.set("db", None)
        table.set("alias", alias)

    def _pin(self, schema: str | None, name: str) -> Pin:
        known = self._engine.table(schema, name)
        pin = self._pins.get(known.identity)
        if pin is None:
            pin = self._pins[known.identity] = self._watched(lambda: self._pinned(known))
        return pin

    def _pinned(self, table: Table) -> Pin:
        remote, source = self._engine.own.remote, self._engine.source(table.identity)
        view = f"sqlrs_view_{next(_NUMBERS)}"
        if isinstance(source, FileTable):
            stored = source.stored(self._session)
            states = spark_pins.states_of(stored, self._session, remote=remote)
            spark_pins.require_files(states)
            frame = self._engine.loaded(source, stored, states)
        else:
            if table.schema is not None:
                self._session.catalog.refreshTable(source)
            stored = frame = self._session.table(source)
            self._engine.require_fixed(frame, table)
            states = spark_pins.states_of(stored, self._session, remote=remote)
        spark_pins.require_columns(frame, table.columns)
        spark_pins.told_apart(frame).createOrReplaceTempView(view)
        return Pin(view, stored, states)

    def _watched(self, call: Callable[[], Result]) -> Result:
        if self._interrupted.is_set():
            raise Interrupted("the work was stopped")
        group = self._group = JobGroup(self._engine.own)

        def marked() -> Result:
            group.enter()
            return call()

        outcome = watched(marked, group.cancel, timeout=self._timeout, patience=_PATIENCE)
        if outcome.result is None:
            raise self._failure(outcome)
        return outcome.result

    def _failure(self, outcome: Outcome[Any]) -> SqlrsError:
        """The error to raise. Spark's text may hold values of the data, so it stays out."""
        if outcome.stopped is Stop.INTERRUPT or self._interrupted.is_set():
            self._interrupted.set()
            return Interrupted("the work was stopped")
        if outcome.stopped is Stop.TIMEOUT:
            return EngineFailed("a statement ran longer than the time limit", code="timeout")
        error = outcome.error
        if isinstance(error, SqlrsError):
            return error
        return told(error)
