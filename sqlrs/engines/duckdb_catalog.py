"""DuckDB's system tables -> catalog: tables, views, types and keys."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import cast

from sqlglot import exp, parse_one, tokenize
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.tokenizer_core import TokenType

from sqlrs.catalog import (
    Catalog,
    Column,
    ColumnType,
    Family,
    Listed,
    Referred,
    Table,
    View,
)
from sqlrs.engines.base import Fetch, Row
from sqlrs.engines.checks import CheckText, described
from sqlrs.engines.foreign_keys import references
from sqlrs.engines.loaded_files import Files
from sqlrs.errors import UsageError
from sqlrs.records import dataclass
from sqlrs.templates import template
from sqlrs.trees.build import table_named
from sqlrs.trees.identifiers import identifier
from sqlrs.units import Link

Relation = tuple[str, str]

# Equality between UHUGEINT and a signed type goes through DOUBLE, and TIMESTAMP_NS refuses to meet
# a timestamp outside its range, so both stay on their own as OTHER.
_FAMILIES = {
    "TINYINT": Family.INTEGER,
    "SMALLINT": Family.INTEGER,
    "INTEGER": Family.INTEGER,
    "BIGINT": Family.INTEGER,
    "HUGEINT": Family.INTEGER,
    "UTINYINT": Family.INTEGER,
    "USMALLINT": Family.INTEGER,
    "UINTEGER": Family.INTEGER,
    "UBIGINT": Family.INTEGER,
    "FLOAT": Family.FLOAT,
    "DOUBLE": Family.FLOAT,
    "VARCHAR": Family.TEXT,
    "DATE": Family.DATE,
    "TIMESTAMP": Family.TIMESTAMP,
    "TIMESTAMP_S": Family.TIMESTAMP,
    "TIMESTAMP_MS": Family.TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": Family.TIMESTAMP_TZ,
    "BOOLEAN": Family.BOOLEAN,
}
_UNKNOWN_COLLATION = "unknown"
# Functions that the statements and the reading of the catalog call; operators are functions too.
_CALLED = frozenset(
    """
    count sum max min coalesce greatest least dense_rank row_number rank lag isfinite hash list
    length strlen octet_length regexp_matches regexp_extract current_setting current_schema
    current_schemas current_database read_csv read_parquet sniff_csv duckdb_columns
    duckdb_constraints duckdb_databases duckdb_functions duckdb_indexes duckdb_settings
    duckdb_tables duckdb_views add subtract multiply divide date_diff regexp_full_match strptime
    typeof error json_serialize_sql
    """.split()  # noqa: SIM905
)
_WORD = re.compile(r"[a-z_][a-z0-9_]*")


def read_catalog(
    fetch: Fetch,
    *,
    databases: tuple[str, ...],
    search_path: tuple[str, ...],
    files: Files,
    only_files: bool = False,
) -> Catalog:
    """The catalog of ``databases``. ``fetch`` runs a template within one snapshot.

    ``only_files``: there is nothing in them but what was made of ``files``, so that the system
    tables, which cost more than a small count, need not be asked for what nobody can have made.
    """
    nothing_else = only_files and files.only_scanned

    def rows(name: str) -> list[Row]:
        return [] if nothing_else else [row for row in fetch(template(name)) if row[0] in databases]

    found = _described(rows, files, _default_collation(fetch))
    facts = rows("duckdb/value_facts.sql")
    _tell_values(found, facts)
    view_texts = {
        (str(schema), str(view)): str(sql)
        for _, schema, view, sql in rows("duckdb/views.sql")
        if schema != "main"
        or (str(view) not in files.scanned and str(view).lower() not in files.copied)
    }
    _refuse_ambiguous_schemas(fetch, {schema for schema, _ in (*found, *view_texts)})
    return Catalog(
        "duckdb",
        _tables(found, _unique_sets(rows, files), _references(found, facts), files),
        _views(view_texts, [*found, *view_texts], search_path),
        search_path,
        hidden=frozenset() if only_files and not files.extended else _hidden(fetch),
    )


def duckdb_type(text: str, collation: str | None = None) -> ColumnType:
    """The column type for the text that DuckDB's catalog shows."""
    if text.startswith("DECIMAL("):
        return ColumnType(Family.DECIMAL, text)
    family = _FAMILIES.get(text, Family.OTHER)
    return ColumnType(family, text, collation if family is Family.TEXT else None)


@dataclass
class _Described:
    """What the columns say about one table."""

    oid: int
    columns: list[Column] = field(default_factory=list)


def _default_collation(fetch: Fetch) -> str | None:
    return str(fetch(template("duckdb/session.sql"))[0][3] or "") or None


def _described(
    rows: Callable[[str], list[Row]], files: Files, default_collation: str | None
) -> dict[Relation, _Described]:
    """The tables of the databases, and the files that are scanned in place."""
    scanned = [
        ("memory", "main", table, 0, "", name, type_text, True)
        for table, found in files.scanned.items()
        for name, type_text in found
    ]
    tables: dict[Relation, _Described] = {}
    homes: dict[Relation, str] = {}
    collations: dict[Relation, dict[str, str | None]] = {}
    for row in (*rows("duckdb/columns.sql"), *scanned):
        database, schema, table, oid, sql, name, type_text, nullable = row
        relation = (str(schema), str(table))
        if homes.setdefault(_folded(relation), str(database)) != database:
            raise UsageError(f"table {table} is both in the database and in a file")
        if relation not in tables:
            tables[relation] = _Described(int(str(oid)))
            collations[relation] = _collations(str(sql), default_collation)
        collation = collations[relation].get(str(name), default_collation)
        kind = duckdb_type(str(type_text), collation)
        tables[relation].columns.append(
            Column(str(name), kind, nullable=bool(nullable), domain=_labels(str(type_text)))
        )
    return tables


def _labels(type_text: str) -> Listed | None:
    """The values of an enumeration, which its type spells out."""
    if not type_text.startswith("ENUM("):
        return None
    try:
        kind = exp.DataType.build(type_text, dialect="duckdb")
    except (SqlglotError, ValueError):
        return None
    whole = kind.this is exp.DataType.Type.ENUM and kind.sql("duckdb") == type_text
    labels = [one for one in kind.expressions if isinstance(one, exp.Literal) and one.is_string]
    if not whole or not labels or len(labels) != len(kind.expressions):
        return None
    return Listed(tuple(str(one.this) for one in labels), "type ENUM")


def _tell_values(tables: dict[Relation, _Described], facts: list[Row]) -> None:
    """Add to the columns what CHECK constraints and foreign keys say of their values."""
    checks: dict[Relation, list[CheckText]] = defaultdict(list)
    referred: dict[Relation, dict[str, Referred]] = defaultdict(dict)
    by_folded = {_folded(relation): relation for relation in tables}
    for _, schema, table, kind, text, names, parent, parent_names in facts:
        relation = (str(schema), str(table))
        if relation not in tables:
            continue
        if kind == "CHECK":
            checks[relation].append(CheckText(str(text)))
            continue
        # A foreign key stays within its schema.
        target = by_folded.get(_folded((str(schema), str(parent))))
        own, theirs = cast(list[str], names), cast(list[str], parent_names)
        if target is None or len(own) != 1 or len(theirs) != 1:
            continue
        column, other = (
            next((c for c in tables[place].columns if c.name.lower() == one.lower()), None)
            for place, one in ((relation, own[0]), (target, theirs[0]))
        )
        if column is not None and other is not None and column.type.joins_with(other.type):
            origin = f"foreign key to {target[1]}.{other.name}"
            referred[relation].setdefault(column.name, Referred(target, other.name, origin))
    for relation in {*checks, *referred}:
        found = described(
            relation[1],
            tables[relation].columns,
            "duckdb",
            checks=checks[relation],
            referred=referred[relation],
        )
        # What a constraint says of a text under a collation is not known.
        tables[relation].columns = [
            before if before.type.collation is not None else after
            for before, after in zip(tables[relation].columns, found, strict=True)
        ]


def _references(
    tables: dict[Relation, _Described], facts: list[Row]
) -> dict[Relation, tuple[Link, ...]]:
    """The foreign keys of each table, which stay within its schema."""
    return references(
        {relation: found.columns for relation, found in tables.items()},
        (
            (
                (str(schema), str(table)),
                cast(list[str], names),
                (str(schema), str(parent)),
                cast(list[str], parent_names),
            )
            for _, schema, table, kind, _, names, parent, parent_names in facts
            if kind != "CHECK"
        ),
        str.lower,
    )


def _tables(
    described: dict[Relation, _Described],
    unique: dict[Relation, set[frozenset[str]]],
    links: dict[Relation, tuple[Link, ...]],
    files: Files,
) -> tuple[Table, ...]:
    return tuple(
        Table(
            name,
            tuple(found.columns),
            _keys(found.columns, unique[schema, name]),
            schema=schema,
            oid=found.oid,
            references=links.get((schema, name), ()),
            rows_per_unit=files.rows_per_unit.get(name, 1) if schema == "main" else 1,
        )
        for (schema, name), found in described.items()
    )


def _views(
    texts: dict[Relation, str], known: list[Relation], search_path: tuple[str, ...]
) -> tuple[View, ...]:
    return tuple(
        View(view, _view_query(sql, _resolver(known, (schema, *search_path, "main"))), schema)
        for (schema, view), sql in texts.items()
    )


def _hidden(fetch: Fetch) -> frozenset[str]:
    """The names of the database's own functions; those that our statements call are refused."""
    own = frozenset(str(name).lower() for (name,) in fetch(template("duckdb/own_functions.sql")))
    called = sorted(name for name in own if name in _CALLED or not _WORD.fullmatch(name))
    if called:
        raise UsageError(
            f"the database has functions {' '.join(called)} of its own, which hide built-in ones",
            hint="drop or rename them, or give a connection without them",
        )
    return own


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


def _unique_sets(
    rows: Callable[[str], list[Row]], files: Files
) -> dict[Relation, set[frozenset[str]]]:
    unique: dict[Relation, set[frozenset[str]]] = defaultdict(set)
    for _, schema, table, names in rows("duckdb/unique_constraints.sql"):
        unique[str(schema), str(table)].add(frozenset(cast(Iterable[str], names)))
    for _, schema, table, sql in rows("duckdb/unique_indexes.sql"):
        names = _indexed_columns(str(sql))
        if names:
            unique[str(schema), str(table)].add(names)
    for name, keys in files.keys.items():
        unique["main", name] |= keys
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
    """The query of a view with its tables' schemas written out, else word for word.

    It must not pass through a tree: the compiler refuses words that a tree would translate. A text
    that cannot be read stays as it is: using the view is then refused.
    """
    try:
        tokens = tokenize(create_view, read="duckdb")
        start = next(token.end + 1 for token in tokens if token.token_type is TokenType.ALIAS)
        query = create_view[start:].strip().removesuffix(";").rstrip()
        named = parse_one(create_view, dialect="duckdb")
        tree = parse_one(query, dialect="duckdb")
        if not isinstance(named, exp.Create) or not isinstance(tree, exp.Query):
            return create_view
        sources = {
            id(source): source
            for scope in traverse_scope(tree)
            for source in scope.sources.values()
            if isinstance(source, exp.Table) and not source.db
        }
    except (SqlglotError, StopIteration):
        return create_view
    found = [(source, resolve(source.name)) for source in sources.values()]
    places = [(s.this.meta.get("start"), s.this.meta.get("end"), s, r) for s, r in found if r]
    for first, last, source, relation in sorted(
        places, key=lambda p: -1 if p[0] is None else -p[0]
    ):
        if first is None or last is None:
            return create_view
        query = query[:first] + _qualified(source, relation) + query[last + 1 :]
    if isinstance(named.this, exp.Schema):
        names = ", ".join(identifier(c.name).sql("duckdb") for c in named.this.expressions)
        alias = identifier(named.this.this.name).sql("duckdb")
        query = f"SELECT * FROM ({query}) AS {alias}({names})"
    return query


def _qualified(source: exp.Table, relation: Relation) -> str:
    """The table with its schema, under the name by which the view knows it."""
    schema, table = relation
    name = table_named(table, schema).sql("duckdb")
    return name if source.alias else f"{name} AS {source.this.sql('duckdb')}"
