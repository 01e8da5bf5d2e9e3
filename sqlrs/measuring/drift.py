"""The schema as it is in a snapshot against the one that a query was compiled for.

Keys, types, nullability, the texts of views and what the owner declared decide the sensitivity. A
declaration is about one table of the database, not about whatever has its name later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from sqlrs.catalog import Catalog, Table
from sqlrs.engines.base import Engine, Snapshot
from sqlrs.errors import EngineFailed, Interrupted, UsageError
from sqlrs.query import Query


@contextmanager
def unchanged(
    query: Query, engine: Engine, catalog: Catalog, same: Callable[[Catalog], bool]
) -> Iterator[Snapshot]:
    """A snapshot in which the schema is what the query was compiled for; no row is read for it.

    ``same`` tells whether by another catalog the text would be the same query.
    """
    with ExitStack() as stack:
        snapshot, now = _begin(engine, stack)
        current = current_catalog(catalog, now)
        if current is not catalog and not same(current):
            raise schema_changed(query, current)
        yield snapshot
        stack.close()
        if not engine.keeps_schema and parts_moved(query, now, engine.catalog()):
            raise EngineFailed("tables were attached or detached during the work")


def _begin(engine: Engine, stack: ExitStack) -> tuple[Snapshot, Catalog]:
    """A snapshot and the schema in it. A database that does not answer is told without details."""
    try:
        snapshot = stack.enter_context(engine.snapshot())
        return snapshot, snapshot.catalog()
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


def current_catalog(declared: Catalog, now: Catalog) -> Catalog:
    """The catalog ``now`` with the declarations of the tables that are what they were.

    ``declared`` itself where nothing at all has changed. A changed table counts as a new one, about
    which nobody declared anything.
    """
    found = {table.identity: table for table in (declared.as_found or declared).tables}
    known = {table.identity: table for table in declared.tables}
    tables = tuple(
        known[table.identity]
        if table.identity in known and _is_still(table, found[table.identity], known)
        else table
        for table in now.tables
    )
    views_then = (declared.as_found or declared).views
    if tables == declared.tables and now.views == views_then:
        return declared
    return replace(declared, tables=tables, views=now.views, as_found=now)


def schema_changed(query: Query, current: Catalog) -> UsageError:
    """The refusal; it names the tables, which are public."""
    changed = sorted({a.table.label for a in query.atoms if a.table not in current.tables})
    what = f"table {', '.join(changed)}" if changed else "a view of the query"
    return UsageError(
        f"{what} has changed since the database was opened",
        code="schema_changed",
        sqlstate="55000",
        hint="connect again, or restart the proxy: keys, types and declarations are read then",
    )


def parts_moved(query: Query, before: Catalog, after: Catalog) -> bool:
    """Whether a table of the query gained or lost rows of other tables between the two."""
    used = {atom.table.identity for atom in query.atoms}

    def parts(catalog: Catalog) -> dict[tuple[str | None, str], tuple[object, ...]]:
        return {t.identity: (t.oid, t.parts) for t in catalog.tables if t.identity in used}

    return parts(before) != parts(after)


def _is_still(now: Table, then: Table, declared: dict[tuple[str | None, str], Table]) -> bool:
    if now != then or now.oid != then.oid:
        return False
    # Rows that come with a new part are new rows: of a private table they are protected like all
    # others, but nobody declared them public.
    return declared[now.identity].private or now.parts == then.parts
