"""PostgreSQL's system catalogs -> catalog: tables, views, types and keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import cast

from sqlrs.catalog import (
    Catalog,
    Column,
    ColumnType,
    Family,
    Listed,
    Referred,
    Routine,
    Table,
    View,
    one_routine,
)
from sqlrs.engines.base import Fetch, Row
from sqlrs.engines.checks import CheckText, described
from sqlrs.engines.foreign_keys import references
from sqlrs.errors import UsageError
from sqlrs.templates import template

Relation = tuple[str, str]

_FAMILIES = {
    "smallint": Family.INTEGER,
    "integer": Family.INTEGER,
    "bigint": Family.INTEGER,
    "numeric": Family.DECIMAL,
    "real": Family.FLOAT,
    "double precision": Family.FLOAT,
    "text": Family.TEXT,
    "character varying": Family.TEXT,
    "date": Family.DATE,
    "timestamp without time zone": Family.TIMESTAMP,
    "timestamp with time zone": Family.TIMESTAMP_TZ,
    "boolean": Family.BOOLEAN,
}
# Those that the statements use.
_OPERATORS = frozenset("= <> < > <= >= + - * / % || ~ !~ ~~ !~~ ~~* !~~*".split())  # noqa: SIM905


def read_catalog(fetch: Fetch, *, search_path: tuple[str, ...]) -> Catalog:
    """The catalog of the database. ``fetch`` runs a template within one snapshot."""
    fetch(template("postgres/hide_schemas.sql"))
    return Catalog("postgres", _tables(fetch), _views(fetch), search_path, hidden=_hidden(fetch))


def postgres_type(
    text: str,
    *,
    collation: str | None = None,
    deterministic: bool = True,
    opaque: bool = False,
    places: int | None = None,
) -> ColumnType:
    """The column type for a base type's name without modifiers, as ``format_type`` writes it.

    Types that are not built in come with their schema, so they are never taken for built-in ones.
    ``character`` ignores trailing blanks, and a collation that is not deterministic makes different
    texts equal: both compare by value with themselves only. ``opaque`` types do not even that.
    """
    if opaque:
        return ColumnType(Family.OPAQUE, text, collation)
    family = _FAMILIES.get(text, Family.OTHER)
    if family is Family.TEXT and not deterministic:
        family = Family.OTHER
    return ColumnType(family, text, collation, places)


def _tables(fetch: Fetch) -> tuple[Table, ...]:
    columns: dict[Relation, list[Column]] = defaultdict(list)
    oids: dict[Relation, int] = {}
    places: dict[Relation, list[int]] = defaultdict(list)
    scales = {row[:3]: int(str(row[3])) for row in fetch(template("postgres/decimal_places.sql"))}
    for row in fetch(template("postgres/columns.sql")):
        schema, table, oid, name, type_text, collation, deterministic, opaque, nullable, place = row
        oids[str(schema), str(table)] = int(str(oid))
        places[str(schema), str(table)].append(int(str(place)))
        kind = postgres_type(
            str(type_text),
            collation=None if collation is None else str(collation),
            deterministic=bool(deterministic),
            opaque=bool(opaque),
            places=scales.get((schema, table, name)),
        )
        columns[str(schema), str(table)].append(Column(str(name), kind, nullable=bool(nullable)))
    columns = _with_values(columns, fetch(template("postgres/value_facts.sql")))
    unique, children = _unique_sets(fetch), _children(fetch)
    leads = _index_leads(fetch)
    links = references(
        columns,
        (
            (
                (str(schema), str(table)),
                cast(list[str], own),
                (str(parent_schema), str(parent)),
                cast(list[str], theirs),
            )
            for schema, table, own, parent_schema, parent, theirs in fetch(
                template("postgres/foreign_keys.sql")
            )
        ),
    )
    return tuple(
        Table(
            name,
            tuple(found),
            _keys(found, unique[schema, name]),
            schema=schema,
            oid=oids[schema, name],
            parts=_descendants(oids[schema, name], children),
            places=tuple(places[schema, name]),
            references=links.get((schema, name), ()),
            index_leads=leads[schema, name],
        )
        for (schema, name), found in columns.items()
    )


def _with_values(
    columns: Mapping[Relation, list[Column]], facts: Iterable[Row]
) -> dict[Relation, list[Column]]:
    """The columns of each table with what the schema says of their values."""
    labels: dict[str, Listed] = {}
    checks: dict[Relation, list[CheckText]] = defaultdict(list)
    referred: dict[Relation, dict[str, Referred]] = defaultdict(dict)
    for kind, type_name, short_name, schema, table, column, text, values in facts:
        relation = (str(schema), str(table))
        known = {c.name: c.type for c in columns.get(relation, ())}
        if kind == "enum":
            found = tuple(cast(Iterable[str], values))
            labels[str(type_name)] = Listed(found, f"type {short_name}")
        elif kind == "check":
            checks[relation].append(CheckText(str(text)))
        elif column not in known:
            # Not one that the role may read.
            continue
        elif kind == "type":
            checks[relation].append(CheckText(str(text), str(column), f"type {short_name}"))
        else:
            parent_schema, parent, name = cast(Iterable[str], values)
            other = {c.name: c.type for c in columns.get((parent_schema, parent), ())}.get(name)
            if other is not None and known[str(column)].joins_with(other):
                target = Referred((parent_schema, parent), name, f"foreign key to {parent}.{name}")
                referred[relation].setdefault(str(column), target)
    return {
        relation: [
            *described(
                relation[1],
                [replace(c, domain=labels.get(c.type.name)) for c in found],
                "postgres",
                checks=checks[relation],
                referred=referred[relation],
            )
        ]
        for relation, found in columns.items()
    }


def _unique_sets(fetch: Fetch) -> dict[Relation, set[frozenset[str]]]:
    unique: dict[Relation, set[frozenset[str]]] = defaultdict(set)
    for schema, table, names in fetch(template("postgres/keys.sql")):
        unique[str(schema), str(table)].add(frozenset(cast(Iterable[str], names)))
    return unique


def _index_leads(fetch: Fetch) -> dict[Relation, frozenset[str]]:
    leads: dict[Relation, frozenset[str]] = defaultdict(frozenset)
    for schema, table, name in fetch(template("postgres/index_leads.sql")):
        leads[str(schema), str(table)] |= {str(name)}
    return leads


def _children(fetch: Fetch) -> dict[int, list[int]]:
    """The partitions and inheritance children of each table."""
    children: dict[int, list[int]] = defaultdict(list)
    for parent, child in fetch(template("postgres/parts.sql")):
        children[int(str(parent))].append(int(str(child)))
    return children


def _views(fetch: Fetch) -> tuple[View, ...]:
    return tuple(
        View(str(name), str(query).rstrip().removesuffix(";"), str(schema))
        for schema, name, query in fetch(template("postgres/views.sql"))
    )


def read_routines(
    names: Collection[str], run: Callable[[str, Mapping[str, object]], list[Row]]
) -> tuple[Routine, ...]:
    """The functions with these names, built-in ones too."""
    rows = run(template("postgres/functions.sql"), {"names": sorted(names)})
    found: dict[str, list[Routine]] = defaultdict(list)
    for row in rows:
        name, _, _, _, takes, definition = row
        found[str(name)].append(
            Routine(str(name), int(str(takes)), str(definition), _problem_of(row))
        )
    return tuple(one_routine(name, routines) for name, routines in found.items())


def _problem_of(row: Row) -> str | None:
    """Why nobody can vouch for a function, or None. Whether it tells the truth is the owner's."""
    _, of_values, immutable, has_defaults, _, _ = row
    if not of_values:
        return "is not a function of one row's values"
    if not immutable:
        return "is not IMMUTABLE"
    return "has arguments that can be left out or repeated" if has_defaults else None


def _hidden(fetch: Fetch) -> frozenset[str]:
    """The names of functions that the database has of its own; own operators are refused."""
    rows = fetch(template("postgres/own_functions.sql"))
    operators = sorted(
        str(name) for kind, name in rows if kind == "operator" and name in _OPERATORS
    )
    if operators:
        raise UsageError(
            f"the database has operators {' '.join(operators)} of its own for built-in types",
            hint="drop them, or move them to a schema that the role cannot use",
        )
    return frozenset(str(name) for kind, name in rows if kind == "function")


def _descendants(oid: int, children: Mapping[int, list[int]]) -> frozenset[int]:
    found: set[int] = set()
    pending = [oid]
    while pending:
        new = set(children.get(pending.pop(), ())) - found
        found |= new
        pending += new
    return frozenset(found)


def _keys(columns: list[Column], unique: set[frozenset[str]]) -> frozenset[frozenset[str]]:
    """The unique sets that are keys: a unique column that may be null admits many NULLs."""
    never_null = {column.name for column in columns if not column.nullable}
    return frozenset(key for key in unique if key <= never_null)
