"""The schema as it is in a snapshot against the one that a query was compiled for.

Keys, types, nullability, the texts of views and what the owner declared decide the sensitivity. A
declaration is about one table or function of the database, not about whatever has its name later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from sqlrs.catalog import Catalog, Routine, Table
from sqlrs.engines.base import Engine, Snapshot
from sqlrs.errors import EngineFailed, Interrupted, UsageError
from sqlrs.records import dataclass


@contextmanager
def unchanged(
    tables: Collection[Table], engine: Engine, catalog: Catalog, same: Callable[[Catalog], bool]
) -> Iterator[Snapshot]:
    """A snapshot in which the schema is what a query was compiled for; no row is read for it.

    ``tables`` are those that it reads. ``same`` tells whether by another catalog the text would be
    the same query.
    """
    with ExitStack() as stack:
        snapshot, now = _begin(engine, catalog, stack)
        current = current_catalog(catalog, now)
        if current is not catalog and not same(current):
            raise schema_changed(tables, current)
        yield snapshot
        stack.close()
        if engine.keeps_schema:
            return
        with engine.snapshot() as afterwards:
            if moved(tables, now, Schema.of(afterwards, catalog)):
                raise EngineFailed("tables or functions changed during the work")


def _begin(engine: Engine, catalog: Catalog, stack: ExitStack) -> tuple[Snapshot, Schema]:
    """A snapshot and the schema in it. A database that does not answer is told without details."""
    try:
        snapshot = stack.enter_context(engine.snapshot())
        return snapshot, Schema.of(snapshot, catalog)
    except (UsageError, Interrupted):
        raise
    except Exception:
        # The driver would name the server and its user, which is nothing for an analyst.
        pass
    raise EngineFailed(
        "the database does not answer; nothing was read or charged",
        code="backend_failed",
        hint="ask again when it is back",
    )


@dataclass(frozen=True)
class Schema:
    """What a snapshot says: its catalog, and the functions that the owner declared."""

    catalog: Catalog
    routines: tuple[Routine, ...]

    @classmethod
    def of(cls, snapshot: Snapshot, declared: Catalog) -> Schema:
        """The schema as it is in the snapshot; no row is read for it."""
        names = frozenset(function.name for function in declared.functions)
        return cls(snapshot.catalog(), snapshot.routines(names) if names else ())


def current_catalog(declared: Catalog, schema: Schema) -> Catalog:
    """The catalog of the schema with the declarations of what is still what it was.

    ``declared`` itself where nothing at all has changed. A changed table or function counts as a
    new one, about which nobody declared anything.
    """
    now = schema.catalog
    functions = tuple(one for one in declared.functions if one.routine in schema.routines)
    found = {table.identity: table for table in (declared.as_found or declared).tables}
    known = {table.identity: table for table in declared.tables}
    still = {
        table.identity
        for table in now.tables
        if table.identity in known and _is_still(table, found[table.identity], known)
    }
    # Whose a row is depends on all tables between it and its owner.
    owned = {name for name in still if {link.table for link in known[name].links} <= still}
    tables = tuple(
        known[table.identity] if table.identity in owned else table for table in now.tables
    )
    views_then = (declared.as_found or declared).views
    if (tables, now.views, functions, now.hidden) == (
        declared.tables,
        views_then,
        declared.functions,
        declared.hidden,
    ):
        return declared
    return replace(
        declared,
        tables=tables,
        views=now.views,
        functions=functions,
        hidden=now.hidden,
        as_found=now,
    )


def schema_changed(tables: Iterable[Table], current: Catalog) -> UsageError:
    """The refusal; it names the tables, which are public."""
    changed = sorted({table.label for table in tables if _stored(table) not in current.tables})
    what = f"table {', '.join(changed)}" if changed else "a view or function of the query"
    return UsageError(
        f"{what} has changed since the database was opened",
        code="schema_changed",
        sqlstate="55000",
        hint="connect again, or restart the proxy: keys, types and declarations are read then",
    )


def moved(tables: Iterable[Table], before: Schema, after: Schema) -> bool:
    """Whether a declared function changed, or what one of these tables, or its columns, stand for.

    The engine may have read other rows or columns by the same names. Further columns are none.
    """
    used = {table.identity for table in tables}
    now = {t.identity: t for t in after.catalog.tables}
    return before.routines != after.routines or any(
        found.identity not in now or not _stands_for(now[found.identity], found)
        for found in before.catalog.tables
        if found.identity in used
    )


def _stands_for(now: Table, then: Table) -> bool:
    """Whether the names of a table and its columns mean what they meant."""
    return (now.oid, now.parts) == (then.oid, then.parts) and _columns(then) <= _columns(now)


def _columns(table: Table) -> set[tuple[object, ...]]:
    places = table.places or [None] * len(table.columns)
    return {(c.name, c.type, place) for c, place in zip(table.columns, places, strict=True)}


def _stored(table: Table) -> Table:
    """The table as the database has it: without what a query computes from its rows."""
    return replace(table, columns=tuple(one for one in table.columns if one.computed is None))


def _is_still(now: Table, then: Table, declared: dict[tuple[str | None, str], Table]) -> bool:
    if now != then or (now.oid, now.places) != (then.oid, then.places):
        return False
    if declared[now.identity].owners and now.references != then.references:
        # Its owners may have been found by them, and could be others now.
        return False
    # Rows that come with a new part are new rows: of a private table they are protected like all
    # others, but nobody declared them public.
    return declared[now.identity].private or now.parts == then.parts
