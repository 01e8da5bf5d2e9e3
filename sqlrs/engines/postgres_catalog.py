"""PostgreSQL's system catalogs -> catalog: tables, views, types and keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import cast

from sqlrs.catalog import Catalog, Column, Table, View
from sqlrs.engines.base import Row
from sqlrs.engines.types import postgres_type
from sqlrs.templates import template

Fetch = Callable[[str], list[Row]]
Relation = tuple[str, str]


def read_catalog(fetch: Fetch, *, search_path: tuple[str, ...]) -> Catalog:
    """The catalog of the database. ``fetch`` runs a template within one snapshot."""
    fetch(template("postgres/hide_schemas.sql"))
    columns: dict[Relation, list[Column]] = defaultdict(list)
    for row in fetch(template("postgres/columns.sql")):
        schema, table, name, type_text, collation, deterministic, nullable = row
        column_type = postgres_type(
            str(type_text),
            collation=None if collation is None else str(collation),
            deterministic=bool(deterministic),
        )
        columns[str(schema), str(table)].append(
            Column(str(name), column_type, nullable=bool(nullable))
        )
    unique: dict[Relation, set[frozenset[str]]] = defaultdict(set)
    for schema, table, names in fetch(template("postgres/keys.sql")):
        unique[str(schema), str(table)].add(frozenset(cast(Iterable[str], names)))
    tables = tuple(
        Table(name, tuple(found), _keys(found, unique[schema, name]), schema=schema)
        for (schema, name), found in columns.items()
    )
    views = tuple(
        View(str(name), str(query).rstrip().removesuffix(";"), str(schema))
        for schema, name, query in fetch(template("postgres/views.sql"))
    )
    return Catalog("postgres", tables, views, search_path)


def _keys(columns: list[Column], unique: set[frozenset[str]]) -> frozenset[frozenset[str]]:
    """The unique sets that are keys: a unique column that may be null admits many NULLs."""
    never_null = {column.name for column in columns if not column.nullable}
    return frozenset(key for key in unique if key <= never_null)
