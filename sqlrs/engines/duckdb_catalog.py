"""DuckDB's system tables -> catalog: tables, views, types and keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import cast

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from sqlrs.catalog import Catalog, Column, Family, Table, View
from sqlrs.engines.base import Row
from sqlrs.engines.files import Keys
from sqlrs.engines.types import duckdb_type
from sqlrs.errors import UsageError
from sqlrs.identifiers import identifier
from sqlrs.templates import template

Fetch = Callable[[str], list[Row]]
Relation = tuple[str, str]

_UNKNOWN_COLLATION = "unknown"


def read_catalog(
    fetch: Fetch, *, databases: tuple[str, ...], search_path: tuple[str, ...], loaded_keys: Keys
) -> Catalog:
    """The catalog of ``databases``. ``fetch`` runs a template within one snapshot."""

    def rows(name: str) -> list[Row]:
        return [row for row in fetch(template(name)) if row[0] in databases]

    default_collation = str(fetch(template("duckdb/session.sql"))[0][3] or "") or None
    columns: dict[Relation, list[Column]] = defaultdict(list)
    homes: dict[Relation, str] = {}
    collations: dict[Relation, dict[str, str | None]] = {}
    for database, schema, table, sql, name, type_text, nullable in rows("duckdb/columns.sql"):
        relation = (str(schema), str(table))
        if homes.setdefault(_folded(relation), str(database)) != database:
            raise UsageError(f"table {table} is both in the database and in a file")
        if relation not in collations:
            collations[relation] = _collations(str(sql), default_collation)
        collation = collations[relation].get(str(name), default_collation)
        column_type = duckdb_type(str(type_text), collation)
        columns[relation].append(Column(str(name), column_type, nullable=bool(nullable)))

    unique = _unique_sets(rows)
    for name, keys in loaded_keys.items():
        unique["main", name] |= keys
    tables = tuple(
        Table(name, tuple(found), _keys(found, unique[schema, name]), schema=schema)
        for (schema, name), found in columns.items()
    )
    view_rows = [(str(s), str(v), str(sql)) for _, s, v, sql in rows("duckdb/views.sql")]
    _refuse_ambiguous_schemas(fetch, {schema for schema, _ in columns} | {v[0] for v in view_rows})
    known = [*columns, *((schema, view) for schema, view, _ in view_rows)]
    views = tuple(
        View(view, _view_query(sql, _resolver(known, (schema, *search_path, "main"))), schema)
        for schema, view, sql in view_rows
    )
    return Catalog("duckdb", tables, views, search_path)


def _folded(relation: Relation) -> Relation:
    """DuckDB's names are the same in upper and lower case."""
    return (relation[0].lower(), relation[1].lower())


def _collations(create_table: str, default: str | None) -> dict[str, str | None]:
    """Each column's declared collation. A statement that cannot be read marks all as unknown."""
    if "collate" not in create_table.lower():
        return {}
    try:
        tree = parse_one(create_table, dialect="duckdb")
    except SqlglotError:
        return defaultdict(lambda: _UNKNOWN_COLLATION)
    if not isinstance(tree, exp.Create):
        return defaultdict(lambda: _UNKNOWN_COLLATION)
    found: dict[str, str | None] = {}
    for definition in tree.this.expressions:
        if not isinstance(definition, exp.ColumnDef):
            continue
        constraint = definition.find(exp.CollateColumnConstraint)
        collation = constraint.this.name if constraint is not None else default
        found[definition.name] = None if collation in (None, "", "binary") else collation
    return found


def _unique_sets(rows: Callable[[str], list[Row]]) -> dict[Relation, set[frozenset[str]]]:
    unique: dict[Relation, set[frozenset[str]]] = defaultdict(set)
    for _, schema, table, names in rows("duckdb/unique_constraints.sql"):
        unique[str(schema), str(table)].add(frozenset(cast(Iterable[str], names)))
    for _, schema, table, sql in rows("duckdb/unique_indexes.sql"):
        names = _indexed_columns(str(sql))
        if names:
            unique[str(schema), str(table)].add(names)
    return unique


def _indexed_columns(create_index: str) -> frozenset[str]:
    """The columns of an index, none if it is over an expression."""
    try:
        tree = parse_one(create_index, dialect="duckdb")
    except SqlglotError:
        return frozenset()
    parameters = tree.find(exp.IndexParameters)
    ordered = parameters.args.get("columns") or [] if parameters is not None else []
    if not all(isinstance(item.this, exp.Column) for item in ordered):
        return frozenset()
    return frozenset(item.this.name for item in ordered)


def _keys(columns: list[Column], unique: set[frozenset[str]]) -> frozenset[frozenset[str]]:
    """Unique sets that are keys: never null, and unique by the same equality that joins use.

    DuckDB's indexes compare text byte by byte, whatever its collation says.
    """
    sound = {
        c.name
        for c in columns
        if not c.nullable and not (c.type.family is Family.TEXT and c.type.collation is not None)
    }
    return frozenset(key for key in unique if key <= sound)


def _refuse_ambiguous_schemas(fetch: Fetch, schemas: set[str]) -> None:
    attached = {str(row[0]).lower() for row in fetch(template("duckdb/databases.sql"))}
    for schema in sorted(schemas):
        if schema.lower() in attached:
            raise UsageError(
                f"schema {schema} has the same name as the database, so its tables are ambiguous",
                hint="rename the database file",
            )


def _resolver(known: list[Relation], path: tuple[str, ...]) -> Callable[[str], Relation | None]:
    """How an unqualified name in a view's text is looked up: in the view's own schema first."""

    def resolve(name: str) -> Relation | None:
        for schema in path:
            for relation in known:
                if _folded(relation) == _folded((schema, name)):
                    return relation
        return None

    return resolve


def _view_query(create_view: str, resolve: Callable[[str], Relation | None]) -> str:
    """The query of a view with its tables' schemas written out.

    A text that cannot be read stays as it is: using the view is then refused.
    """
    try:
        tree = parse_one(create_view, dialect="duckdb")
        query = tree.args.get("expression")
        if not isinstance(tree, exp.Create) or not isinstance(query, exp.Query):
            return create_view
        for scope in traverse_scope(query):
            for source in scope.sources.values():
                if isinstance(source, exp.Table) and not source.db:
                    relation = resolve(source.name)
                    if relation is not None:
                        _qualify(source, relation)
    except SqlglotError:
        return create_view
    if isinstance(tree.this, exp.Schema):
        names = [identifier(column.name) for column in tree.this.expressions]
        alias = exp.TableAlias(this=identifier(tree.this.this.name), columns=names)
        query = exp.select("*").from_(exp.Subquery(this=query, alias=alias))
    return query.sql(dialect="duckdb")


def _qualify(source: exp.Table, relation: Relation) -> None:
    if not source.alias:
        source.set("alias", exp.TableAlias(this=source.this.copy()))
    source.set("this", identifier(relation[1]))
    source.set("db", identifier(relation[0]))
