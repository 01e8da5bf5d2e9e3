"""The Spark engine: an application of our own, a server of Spark Connect, or a session given."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sqlrs.catalog import Catalog, Table, View
from sqlrs.dialects.spark_text import spark_text
from sqlrs.engines import spark_pins
from sqlrs.engines.base import Row
from sqlrs.engines.file_schema import Declared
from sqlrs.engines.snapshots import OfSnapshots
from sqlrs.engines.spark_catalog import (
    SparkRelation,
    catalog_of,
    columns_of,
    databases,
    details,
    listed_in,
    named,
    settings_of_view,
    view_of,
)
from sqlrs.engines.spark_files import FilePath, FileTable, file_tables
from sqlrs.engines.spark_pins import SparkSource
from sqlrs.engines.spark_session import OwnSession, of_session, reads_alike
from sqlrs.engines.spark_snapshot import Identity, SparkSnapshot
from sqlrs.engines.spark_start import of_url
from sqlrs.errors import EngineFailed, UsageError

if TYPE_CHECKING:
    from sqlrs.engines.duckdb import DuckDBEngine

_LOG = logging.getLogger("sqlrs.spark")

Sized = tuple[spark_pins.States, tuple[int, int]]
"""The files of a table as they were when its rows, and the bytes of some columns, were counted."""

# The current database, the tables and views with what is said of each, the functions.
_State = tuple[str, Mapping[SparkRelation, str], frozenset[str]]


class SparkEngine(OfSnapshots[SparkSnapshot]):
    """Spark and the tables it reads. Snapshots share one session, each with views of its own.

    A view is of the columns that the catalog had when the snapshot began, or it is not made.
    """

    dialect = "spark"
    keeps_schema = True

    def __init__(
        self,
        own: OwnSession,
        files: Sequence[FileTable] = (),
        timeout: float | None = None,
        temp_directory: FilePath | None = None,
    ) -> None:
        super().__init__()
        self.own = own
        self._files: dict[Identity, FileTable] = {(None, one.name): one for one in files}
        self._timeout = timeout
        self._temp_directory = temp_directory
        self.sizes: dict[tuple[Identity, tuple[str, ...]], Sized] = {}
        self._catalog: tuple[_State, Catalog] | None = None
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
        return cls._opened(own, tables, types, graphs, timeout, temp_directory)

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
        temp_directory: FilePath | None = None,
    ) -> SparkEngine:
        try:
            files = file_tables(own.session, tables or {}, types or {}, graphs or {})
        except BaseException:
            own.leave()
            raise
        return cls(own, files, timeout, temp_directory)

    @contextmanager
    def snapshot(self) -> Iterator[SparkSnapshot]:
        """Begin a snapshot; it ends with the context, after a last look at its files."""
        self._require_open()
        snapshot = SparkSnapshot(self, self._timeout)
        try:
            with self._kept(snapshot):
                snapshot.verify()
                yield snapshot
                snapshot.verify()
        finally:
            snapshot.end()

    def share_done(self) -> float | None:
        """The share of the tasks that have ended, of all running statements, from Spark's books."""
        with self._lock:
            snapshots = tuple(self._open)
        counts = [snapshot.tasks() for snapshot in snapshots]
        ended, known = sum(one for one, _ in counts), sum(all_ for _, all_ in counts)
        return ended / known if known else None

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

    def database_here(self, memory: int) -> DuckDBEngine:
        """An empty database of this process, for the rows of one release: there may be several."""
        from sqlrs.engines.duckdb import open_duckdb

        return open_duckdb(
            memory_limit=f"{memory}B", temp_directory=self._temp_directory, timeout=self._timeout
        )

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
                if known is not None:
                    # A snapshot that still reads them parses the files anew, or fails at its end.
                    known[1].unpersist()
                known = (states, spark_pins.told_apart(source.rows(stored)).persist())
                self._loaded[source.name] = known
            return known[1]

    def require_fixed(self, frame: Any, table: Table) -> None:
        """Refuse a table that other statements could see with other rows."""
        if not self.own.remote:
            spark_pins.require_fixed(frame, table.label, self.own.session)
            return
        relation = SparkRelation(table.schema, table.name)
        provider = details(relation, self._ask).get("Provider", "") if table.schema else ""
        cached = self.own.session.catalog.isCached(self.source(table.identity))
        if cached or not spark_pins.is_of_files(provider):
            raise UsageError(
                f"the rows of table {table.label} cannot be held still: it is "
                + ("cached in Spark" if cached else "not made of files"),
                code="not_pinned",
                hint="write it to files (Parquet), or give it as files, and do not cache it",
            )

    def read_catalog(self) -> Catalog:
        """The catalog of the session; read anew where anything in it changed, or views are."""
        current = str(self.own.session.catalog.currentDatabase())
        found: dict[SparkRelation, None] = {}
        for database in databases(self._ask):
            found.update(dict.fromkeys(listed_in(database, self._ask)))
        relations = [one for one in found if not one.name.startswith("sqlrs_view_")]
        functions = self._own_functions()
        state = (current, {one: one.said for one in relations}, functions)
        last = self._catalog
        if last is not None and last[0] == state and not last[1].views:
            return last[1]
        if last is not None:
            self._forget(relations, last[0])
        tables: list[Table] = [one.table for one in self._files.values()]
        views: list[View] = []
        for relation in relations:
            self._read(relation, tables, views)
        catalog = catalog_of(self._apart(tables), views, current, functions)
        self._catalog = (state, catalog)
        return catalog

    def _forget(self, relations: Sequence[SparkRelation], last: _State) -> None:
        """Let Spark read anew what it knows of tables that changed: others may have made them."""
        for one in relations:
            if one.database is not None and last[1].get(one, one.said) != one.said:
                with suppress(Exception):
                    self.own.session.catalog.refreshTable(spark_text(named(one.database, one.name)))

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
            if view is None:
                self._leave_out(
                    (relation.database, relation.name),
                    f"view {relation.label} was made in another database than its own and names "
                    f"tables without theirs; make it again after USE {relation.database}",
                )
            elif self._means_the_same(relation):
                views.append(view)
        elif len({one.name.lower() for one in columns}) == len(columns):
            table = Table(relation.name, columns, schema=relation.database, oid=relation.made)
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
                    one.identity,
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
            self._leave_out(table.identity, f"{problem.message}; {problem.hint}")
            return False

    def _means_the_same(self, view: SparkRelation) -> bool:
        """Whether the text of a view, read under our settings, is the view that its owner made."""
        if reads_alike(settings_of_view(view, self._ask)):
            return True
        self._leave_out(
            (view.database, view.name),
            f"view {view.label} was made under other settings; make it again in ANSI mode, in UTC",
        )
        return False

    def _leave_out(self, identity: Identity, why: str) -> None:
        """Tell the owner once."""
        if identity not in self._left_out:
            self._left_out.add(identity)
            _LOG.warning("sqlrs: %s", why)

    def _own_functions(self) -> frozenset[str]:
        """The functions of the session's own, which hide built-in ones of their names."""
        rows = self._ask(exp.Command(this="SHOW", expression="USER FUNCTIONS"))
        return frozenset(str(row[0]).rpartition(".")[2].lower() for row in rows)

    def _ask(self, statement: exp.Expr) -> list[Row]:
        return [tuple(row) for row in self.own.session.sql(spark_text(statement)).collect()]
