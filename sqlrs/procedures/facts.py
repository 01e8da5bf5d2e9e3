"""What a compiled query relies on in the catalog, in the form that the installed function checks.

A function compares these facts with sql_templates/procedures/table_facts.sql at each call: the
compiler's result follows from them, so as long as they hold the bound does. What is not relied on
(further columns, further keys, the table's identity) may change.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrs.catalog import Catalog, Table, View

Keys = Mapping[str, Sequence[Sequence[str]]]


def facts_of(sql: str, catalog: Catalog, tables: Iterable[Table], declared: Keys) -> str:
    """The facts as JSON. ``declared`` keys are the owner's promise, which no catalog confirms."""
    facts = {
        "tables": [_table(table, declared) for table in tables],
        "views": [
            {"schema": view.schema, "name": view.name, "sql": view.sql.rstrip("; \n")}
            for view in _views(sql, catalog)
        ],
    }
    return json.dumps(facts, ensure_ascii=False)


def _table(table: Table, declared: Keys) -> dict[str, object]:
    promised = {
        frozenset(key) for name in (table.name, table.label) for key in declared.get(name, ())
    }
    never_null_by_promise = frozenset[str]().union(*promised)
    columns = {
        column.name: {"type": column.type.name, "collation": column.type.collation}
        | ({} if column.nullable or column.name in never_null_by_promise else {"nullable": False})
        for column in table.columns
    }
    keys = sorted(sorted(key) for key in table.keys - promised)
    return {
        "schema": table.schema,
        "name": table.name,
        "columns": columns,
        # The size tells a key from a wider one, of which it would be a part.
        "keys": [{"size": len(key), "columns": dict.fromkeys(key, True)} for key in keys],
    }


def _views(sql: str, catalog: Catalog) -> list[View]:
    """Every view that the query or one of its views may mean: rather one too many."""
    found: list[View] = []
    texts = [sql]
    while texts:
        names = _table_names(texts.pop(), catalog.dialect)
        for view in catalog.views:
            if view.name.lower() in names and view not in found:
                found.append(view)
                texts.append(view.sql)
    return found


def _table_names(sql: str, dialect: str) -> set[str]:
    try:
        tree = sqlglot.parse_one(sql, dialect=dialect)
    except SqlglotError:
        # A view of the same name in another schema: the compiler has read all that the query means.
        return set()
    return {table.name.lower() for table in tree.find_all(exp.Table)}
