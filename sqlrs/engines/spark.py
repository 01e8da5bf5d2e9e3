"""The Spark engine: an application of our own, a server of Spark Connect, or a session given."""

from __future__ import annotations

import itertools
import logging
import threading
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.types import TimestampType
from sqlglot import exp

from sqlrs.catalog import Catalog, Routine, Table, View
from sqlrs.dialects.spark_text import spark_text, spark_tree
from sqlrs.engines import spark_pins
from sqlrs.engines.base import Row, one_integer, verify_keys
from sqlrs.engines.file_schema import Declared
from sqlrs.engines.spark_catalog import (
    SparkRelation,
    catalog_of,
    columns_of,
    databases,
    details,
    listed_in,
    named,
    view_of,
)
from sqlrs.engines.spark_files import FilePath, FileTable, file_tables
from sqlrs.engines.spark_pins import Pin, SparkSource
from sqlrs.engines.spark_session import OwnSession, of_session, of_url, require_settings
from sqlrs.engines.watch import Outcome, Stop, ctrl_c_interrupts, watched
from sqlrs.errors import EngineFailed, Interrupted, SqlrsError, StatementFailed, UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = itertools.count(1)
# The class of an error that says that a statement cannot be read or evaluated; no value is in it.
_OF_THE_STATEMENT = ("22", "42", "0A", "21")
_MEMORY = ("OutOfMemory", "UNABLE_TO_ACQUIRE_MEMORY", "MaxResultSize")

_LOG = logging.getLogger("sqlrs.spark")

Identity = tuple[str | None, str]


class SparkSnapshot:
    """Tables held still from their first use on. It must be ended with ``end``, which looks again.

    Statements of one snapshot run one after another.
    """

    def __init__(self, engine: SparkEngine, timeout: float | None) -> None:
        self._engine = engine
        self._session = engine.own.session
        self._timeout = timeout
        self._tag = f"sqlrs-{next(_NUMBERS)}"
        self._pins: dict[Identity, Pin] = {}
        self._interrupted = threading.Event()

    def scalar(self, statement: exp.Expression) -> int:
        """Run a statement that yields one integer."""
        return one_integer(self.rows(statement))

    def rows(self, statement: exp.Expression) -> list[Row]:
        """Run a statement and fetch all its rows."""
        tree = spark_tree(statement)
        if not isinstance(tree, exp.Query):
            raise EngineFailed("only queries are run")
        common = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        for table in list(tree.find_all(exp.Table)):
            if table.args.get("db") or table.name.lower() not in common:
                self._read_pinned(table)
        return self.run(tree)

    def run(self, tree: exp.Expr) -> list[Row]:
        """Run a tree that is Spark's already, and fetch all its rows."""
        text = spark_text(tree)
        found: list[Row] = self._watched(lambda: _fetched(self._session.sql(text)))
        return found

    def catalog(self) -> Catalog:
        """The catalog as it is now."""
        found: Catalog = self._watched(self._engine.read_catalog)
        return found

    def routines(self, names: Collection[str]) -> tuple[Routine, ...]:
        """Spark says nothing of what a function depends on, so there are none to vouch for."""
        return ()

    def interrupt(self) -> None:
        """Stop the running statement and every later one."""
        self._interrupted.set()
        self._cancel()

    def verify(self) -> None:
        """Fail unless the settings and all files are what they were when they were first read."""
        self._watched(self._verify)

    def end(self) -> None:
        """Forget the views."""
        spark_pins.drop(self._session, iter(self._pins.values()))

    def _verify(self) -> bool:
        require_settings(self._session)
        for pin in self._pins.values():
            spark_pins.require_unchanged(pin, self._session, remote=self._engine.own.remote)
        return True

    def _read_pinned(self, table: exp.Table) -> None:
        """Let the statement read the view of a table in the table's place."""
        schema = table.args.get("db")
        known = self._engine.table(schema.name if schema is not None else None, table.name)
        pin = self._pins.get(known.identity)
        if pin is None:
            pin = self._watched(lambda: self._pinned(known))
            self._pins[known.identity] = pin
        alias = table.args.get("alias") or exp.TableAlias(this=table.this.copy())
        table.set("this", exp.to_identifier(pin.view))
        table.set("db", None)
        table.set("alias", alias)

    def _pinned(self, table: Table) -> Pin:
        remote, source = self._engine.own.remote, self._engine.source(table.identity)
        view = f"sqlrs_view_{next(_NUMBERS)}"
        if isinstance(source, FileTable):
            stored = source.stored(self._session)
            states = spark_pins.states_of(stored, self._session, remote=remote)
            frame = self._engine.loaded(source, stored, states)
        else:
            if table.schema is not None:
                self._session.catalog.refreshTable(source)
            stored = frame = self._session.table(source)
            self._engine.require_fixed(frame, table)
            states = spark_pins.states_of(stored, self._session, remote=remote)
        spark_pins.require_columns(frame, table.columns)
        frame.createOrReplaceTempView(view)
        return Pin(view, stored, states)

    def _watched(self, call: Any) -> Any:
        if self._interrupted.is_set():
            raise Interrupted("the work was stopped")

        def marked() -> Any:
            self._mark()
            return call()

        outcome: Outcome[Any] = watched(marked, self._cancel, timeout=self._timeout)
        if outcome.result is None:
            raise self._failure(outcome)
        return outcome.result

    def _mark(self) -> None:
        """Put all jobs of this thread into a group that can be cancelled; it says nothing else."""
        context = self._engine.own.own_context()
        if context is None:
            self._session.clearTags()
            self._session.addTag(self._tag)
        else:
            context.setJobGroup(self._tag, "sqlrs", interruptOnCancel=True)

    def _cancel(self) -> None:
        with suppress(Exception):
            context = self._engine.own.own_context()
            if context is None:
                self._session.interruptTag(self._tag)
            else:
                context.cancelJobGroup(self._tag)

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
        return _told(error)


class SparkEngine:
    """Spark and the tables it reads. Snapshots share one session, each with views of its own.

    A view is of the columns that the catalog had when the snapshot began, or it is not made.
    """

    dialect = "spark"
    keeps_schema = True

    def __init__(
        self, own: OwnSession, files: Sequence[FileTable] = (), timeout: float | None = None
    ) -> None:
        self.own = own
        self._files: dict[Identity, FileTable] = {(None, one.name): one for one in files}
        self._timeout = timeout
        self._closed = False
        self._lock = threading.Lock()
        self._open: set[SparkSnapshot] = set()
        self._catalog: tuple[object, Catalog] | None = None
        self._left_out: set[Identity] = set()
        self._loaded: dict[str, tuple[spark_pins.States, Any]] = {}
        self._leave = weakref.finalize(self, own.leave)

    @classmethod
    def of_url(
        cls,
        url: str,
        tables: Mapping[str, FilePath] | None = None,
        *,
        types: Mapping[str, Declared] | None = None,
        graphs: Mapping[str, str] | None = None,
        memory_limit: str | None = None,
        temp_directory: FilePath | None = None,
        timeout: float | None = None,
    ) -> SparkEngine:
        """An engine on an application of its own, or on a server of Spark Connect."""
        spill = None if temp_directory is None else str(temp_directory)
        own = of_url(url, memory=memory_limit, spill=spill)
        return cls._opened(own, tables, types, graphs, timeout)

    @classmethod
    def of_session(
        cls,
        session: Any,
        tables: Mapping[str, FilePath] | None = None,
        *,
        types: Mapping[str, Declared] | None = None,
        graphs: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> SparkEngine:
        """An engine on a session of the owner's, which stays as it is."""
        return cls._opened(of_session(session), tables, types, graphs, timeout)

    @classmethod
    def _opened(
        cls,
        own: OwnSession,
        tables: Mapping[str, FilePath] | None,
        types: Mapping[str, Declared] | None,
        graphs: Mapping[str, str] | None,
        timeout: float | None,
    ) -> SparkEngine:
        try:
            files = file_tables(own.session, tables or {}, types or {}, graphs or {})
        except BaseException:
            own.leave()
            raise
        return cls(own, files, timeout)

    def catalog(self) -> Catalog:
        """Tables, views, types and keys, all tables private until declared otherwise."""
        with self.snapshot() as snapshot:
            return snapshot.catalog()

    def check_keys(self, catalog: Catalog, keys: Mapping[str, Sequence[Sequence[str]]]) -> None:
        """Verify declared keys on the data by a Spark job each; a violation is a UsageError."""
        with self.snapshot() as snapshot:
            verify_keys(snapshot, catalog, keys)

    @contextmanager
    def snapshot(self) -> Iterator[SparkSnapshot]:
        """Begin a snapshot; it ends with the context, after a last look at its files."""
        if self._closed:
            raise UsageError("the database is closed", hint="connect again")
        snapshot = SparkSnapshot(self, self._timeout)
        with self._lock:
            self._open.add(snapshot)
        try:
            with ctrl_c_interrupts():
                snapshot.verify()
                yield snapshot
                snapshot.verify()
        finally:
            with self._lock:
                self._open.discard(snapshot)
            snapshot.end()

    def interrupt(self) -> None:
        """Stop every open snapshot, from any thread."""
        with self._lock:
            snapshots = tuple(self._open)
        for snapshot in snapshots:
            snapshot.interrupt()

    def close(self) -> None:
        """Leave the session; an application that we started ends."""
        self._closed = True
        for _, frame in self._loaded.values():
            with suppress(Exception):
                frame.unpersist()
        self._loaded.clear()
        with suppress(Exception):
            self._leave()

    def table(self, schema: str | None, name: str) -> Table:
        """The table that a statement means, which is in the catalog read last."""
        catalog = self._catalog[1] if self._catalog is not None else self.read_catalog()
        current = catalog.search_path[0]
        for one in catalog.tables:
            spaces = {one.schema or current} | ({None} if one.schema in (None, current) else set())
            folded = {None if space is None else space.lower() for space in spaces}
            wanted = None if schema is None else schema.lower()
            if one.name.lower() == name.lower() and wanted in folded:
                return one
        raise EngineFailed("a statement names a table that the catalog does not have")

    def source(self, identity: Identity) -> SparkSource:
        """Where the rows of a table are."""
        return self._files.get(identity) or spark_text(named(*identity))

    def loaded(self, source: FileTable, stored: Any, states: spark_pins.States) -> Any:
        """The rows of files as the table has them. Edges are parsed once while the files stay."""
        if source.graph is None:
            return source.rows(stored)
        with self._lock:
            known = self._loaded.get(source.name)
            if known is None or known[0] != states:
                known = (states, source.rows(stored).persist())
                self._loaded[source.name] = known
            return known[1]

    def require_fixed(self, frame: Any, table: Table) -> None:
        """Refuse a table that other statements could see with other rows."""
        if not self.own.remote:
            spark_pins.require_fixed(frame, table.label, self.own.session)
            return
        relation = SparkRelation(table.schema, table.name)
        provider = details(relation, self._ask).get("Provider", "") if table.schema else ""
        if not spark_pins.is_of_files(provider):
            raise UsageError(
                f"the rows of table {table.label} cannot be held still: it is not made of files",
                code="not_pinned",
                hint="write it to files (Parquet), or give it as files",
            )

    def read_catalog(self) -> Catalog:
        """The catalog of the session; read anew where a name came or went, or where views are."""
        current = str(self.own.session.catalog.currentDatabase())
        found: dict[SparkRelation, None] = {}
        for database in databases(self._ask):
            found.update(dict.fromkeys(listed_in(database, self._ask)))
        relations = [one for one in found if not one.name.startswith("sqlrs_view_")]
        functions = self._own_functions()
        state = (current, tuple(relations), functions)
        last = self._catalog
        if last is not None and last[0] == state and not last[1].views:
            return last[1]
        tables: list[Table] = [one.table for one in self._files.values()]
        views: list[View] = []
        for relation in relations:
            self._read(relation, tables, views)
        catalog = catalog_of(self._apart(tables), views, current, functions)
        self._catalog = (state, catalog)
        return catalog

    def _read(self, relation: SparkRelation, tables: list[Table], views: list[View]) -> None:
        columns = None
        # What cannot be read, or has no columns, is nothing to ask for.
        with suppress(Exception):
            frame = self.own.session.table(spark_text(named(relation.database, relation.name)))
            columns = columns_of(frame.schema)
        if not columns:
            return
        said = details(relation, self._ask) if relation.database is not None else {}
        if said.get("Type") == "VIEW":
            view = view_of(relation, said, [one.name for one in columns])
            views += [] if view is None else [view]
        elif len({one.name.lower() for one in columns}) == len(columns):
            table = Table(relation.name, columns, schema=relation.database)
            if self._is_fixed(frame, table):
                tables.append(table)

    def _apart(self, tables: list[Table]) -> list[Table]:
        """Without temporary views that show rows of another table.

        A row would stand in both, and a query that reads both would protect it in one alone.
        """
        own = [one for one in tables if one.schema is None and one.identity not in self._files]
        if not own or self.own.remote:
            return tables
        kept = [one for one in tables if one not in own]
        known = {one.label: self._places(one) for one in kept}
        for one in own:
            places = self._places(one)
            shown = [name for name, other in known.items() if spark_pins.overlap(places, other)]
            if shown:
                self._leave_out(
                    one,
                    f"the temporary view {one.label} shows rows of table {shown[0]}; ask about "
                    "that one, or write the view to files of its own",
                )
            else:
                kept.append(one)
                known[one.label] = places
        return kept

    def _places(self, table: Table) -> tuple[str, ...]:
        source, session = self.source(table.identity), self.own.session
        frame = source.stored(session) if isinstance(source, FileTable) else session.table(source)
        return spark_pins.places_of(frame, session)

    def _is_fixed(self, frame: Any, table: Table) -> bool:
        """Whether a table can be held still."""
        try:
            self.require_fixed(frame, table)
            return True
        except UsageError as problem:
            self._leave_out(table, f"{problem.message}; {problem.hint}")
            return False

    def _leave_out(self, table: Table, why: str) -> None:
        """Tell the owner once."""
        if table.identity not in self._left_out:
            self._left_out.add(table.identity)
            _LOG.warning("sqlrs: %s", why)

    def _own_functions(self) -> frozenset[str]:
        """The functions of the session's own, which hide built-in ones of their names."""
        rows = self._ask(exp.Command(this="SHOW", expression="USER FUNCTIONS"))
        return frozenset(str(row[0]).rpartition(".")[2].lower() for row in rows)

    def _ask(self, statement: exp.Expr) -> list[Row]:
        return [tuple(row) for row in self.own.session.sql(spark_text(statement)).collect()]


def _fetched(frame: Any) -> list[Row]:
    """All rows. Moments come as numbers: the driver would show them in this machine's zone."""
    moments = [
        i for i, f in enumerate(frame.schema.fields) if isinstance(f.dataType, TimestampType)
    ]
    if moments:
        names = [f"c{i}" for i, _ in enumerate(frame.columns)]
        frame = frame.toDF(*names).selectExpr(
            *(f"unix_micros({n})" if i in moments else n for i, n in enumerate(names))
        )
    rows = [tuple(row) for row in frame.collect()]
    if not moments:
        return rows
    return [tuple(_moment(v) if i in moments else v for i, v in enumerate(row)) for row in rows]


def _moment(micros: Any) -> datetime | None:
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)


def _told(error: BaseException | None) -> SqlrsError:
    """The kind of an error of Spark's, by its class and code."""
    kind, condition, state = type(error).__name__, "", ""
    if isinstance(error, PySparkException):
        with suppress(Exception):
            condition, state = str(error.getCondition() or ""), str(error.getSqlState() or "")
    text = f"{kind} {condition} {error}" if error is not None else kind
    if any(word in text for word in _MEMORY):
        return EngineFailed("a statement needs more memory than Spark has", code="out_of_memory")
    if "FILE_NOT_EXIST" in text or "FileNotFound" in text:
        return EngineFailed("a file of a table is gone", code="file_changed")
    shown = f"SQLSTATE {state}" if state else kind
    failed = StatementFailed if state.startswith(_OF_THE_STATEMENT) else EngineFailed
    return failed(f"Spark could not run a statement ({shown})")
