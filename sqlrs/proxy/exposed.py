"""The public catalog as PostgreSQL clients see it: names, types, keys, views."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from sqlrs.catalog import Catalog, ColumnType, Family, Table, View
from sqlrs.dialects import dialect_named
from sqlrs.proxy.backend import (
    ExposedColumn,
    ExposedFunction,
    ExposedReference,
    ExposedSchema,
    ExposedTable,
    ExposedView,
)

_BY_NAME = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "utinyint": "smallint",
    "usmallint": "integer",
    "int": "integer",
    "integer": "integer",
    "uinteger": "bigint",
    "bigint": "bigint",
    "ubigint": "numeric",
    "hugeint": "numeric",
    "uhugeint": "numeric",
    "float": "real",
    "real": "real",
    "double": "double precision",
    "double precision": "double precision",
    "uuid": "uuid",
    "time": "time",
    "time without time zone": "time",
    "blob": "bytea",
    "bytea": "bytea",
}
_BY_FAMILY = {
    Family.INTEGER: "bigint",
    Family.DECIMAL: "numeric",
    Family.FLOAT: "double precision",
    Family.TEXT: "text",
    Family.DATE: "date",
    Family.TIMESTAMP: "timestamp",
    Family.TIMESTAMP_TZ: "timestamptz",
    Family.BOOLEAN: "boolean",
    # What PostgreSQL has no type for is shown as text; the data's own database decides anyway.
    Family.OTHER: "text",
    Family.OPAQUE: "text",
}
_DECIMAL = re.compile(r"(?:decimal|numeric)\((\d+), ?(\d+)\)")
# The proxy has a schema of that name itself; in the data's database it holds installed functions.
_OWN_SCHEMA = "sqlrs"


def exposed_schema(catalog: Catalog) -> ExposedSchema:
    """The schema of a catalog, in its own schemas and search path, without sqlrs's own tables."""
    home = catalog.search_path[0] if catalog.search_path else "public"
    fold = not dialect_named(catalog.dialect).keeps_case
    tables = [_table(table, home, fold) for table in catalog.tables]
    tables = _with_shown_references([table for table in tables if table.schema != _OWN_SCHEMA])
    missing = views_without_tables(catalog)
    usable = (view for view in catalog.views if view not in missing)
    views = (_view(view, home, fold, catalog.dialect) for view in usable)
    return ExposedSchema(
        tuple(tables),
        tuple(view for view in views if view is not None and view.schema != _OWN_SCHEMA),
        tuple(_name(name, fold) for name in catalog.search_path) or (home,),
        tuple(
            ExposedFunction(
                one.name,
                tuple(map(postgres_type, one.takes)),
                postgres_type(one.returns),
                _name(home, fold),
            )
            for one in catalog.functions
        ),
        None if catalog.unit is None else catalog.unit.name,
    )


def views_without_tables(catalog: Catalog) -> tuple[View, ...]:
    """The views that name a relation which the catalog does not have, directly or through others.

    A count over a view reads the tables behind it. PostgreSQL lets a role read a view whose tables
    it may not read; such a view cannot be counted. In its views' texts every name has its schema.
    """
    if not dialect_named(catalog.dialect).views_have_rights:
        return ()
    known = {(table.schema, table.name) for table in catalog.tables}
    left = {view: _relations(view) for view in catalog.views}
    while found := [view for view, needed in left.items() if needed <= known]:
        for view in found:
            known.add((view.schema, view.name))
            del left[view]
    return tuple(left)


def _relations(view: View) -> set[tuple[str | None, str]]:
    try:
        tree = parse_one(view.sql, read="postgres")
    except SqlglotError:
        # Whether it can be used is found out when it is.
        return set()
    local = {cte.alias for cte in tree.find_all(exp.CTE)}
    named = ((table.db or None, table.name) for table in tree.find_all(exp.Table))
    return {(schema, name) for schema, name in named if schema is not None or name not in local}


def postgres_type(column: ColumnType) -> str:
    """The PostgreSQL type that shows a column's type."""
    name = column.name.lower()
    if match := _DECIMAL.fullmatch(name):
        return f"numeric({match[1]},{match[2]})"
    if name.startswith(("character", "varchar(")):
        return "text"
    return _BY_NAME.get(name, _BY_FAMILY[column.family])


def _table(table: Table, home: str, fold: bool) -> ExposedTable:
    columns = tuple(
        ExposedColumn(_name(column.name, fold), postgres_type(column.type), column.nullable)
        for column in table.columns
    )
    order = [column.name for column in table.columns]
    keys = sorted(tuple(sorted(key, key=order.index)) for key in table.keys)
    return ExposedTable(
        _name(table.name, fold),
        columns,
        tuple(tuple(_name(column, fold) for column in key) for key in keys),
        _name(table.schema or home, fold),
        public=not table.private,
        references=tuple(
            ExposedReference(
                tuple(_name(column, fold) for column in link.columns),
                (_name(link.table[0] or home, fold), _name(link.table[1], fold)),
                tuple(_name(column, fold) for column in link.key),
            )
            for link in table.references
        ),
    )


def _with_shown_references(tables: list[ExposedTable]) -> list[ExposedTable]:
    """Without the foreign keys that the shadow could not have: tools draw joins from the rest."""
    by_name = {(table.schema, table.name): table for table in tables}

    def shown(table: ExposedTable, link: ExposedReference) -> bool:
        target = by_name.get(link.table)
        return (
            target is not None
            and set(link.key) in map(set, target.keys)
            and _types(table, link.columns) == _types(target, link.key)
        )

    return [
        replace(table, references=tuple(one for one in table.references if shown(table, one)))
        for table in tables
    ]


def _types(table: ExposedTable, names: tuple[str, ...]) -> list[str]:
    by_name = {column.name: column.type for column in table.columns}
    return [by_name[name] for name in names]


def _view(view: View, home: str, fold: bool, dialect: str) -> ExposedView | None:
    try:
        tree = parse_one(view.sql, read=dialect)
    except SqlglotError:
        return None
    if fold:
        for identifier in tree.find_all(exp.Identifier):
            identifier.set("this", identifier.name.lower())
    sql = tree.sql(dialect="postgres")
    return ExposedView(_name(view.name, fold), sql, _name(view.schema or home, fold))


def _name(name: str, fold: bool) -> str:
    """DuckDB and Spark do not tell upper from lower case; PostgreSQL folds to lower case."""
    return name.lower() if fold else name
