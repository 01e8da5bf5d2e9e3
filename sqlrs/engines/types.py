"""Type texts of an engine -> column types: what compares by value, and what only with itself."""

from __future__ import annotations

from sqlrs.catalog import ColumnType, Family

_DUCKDB = {
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

# Equality between UHUGEINT and a signed type goes through DOUBLE, and TIMESTAMP_NS refuses to meet
# a timestamp outside its range, so both stay on their own as OTHER.


def duckdb_type(text: str, collation: str | None = None) -> ColumnType:
    """The column type for the text that DuckDB's catalog shows."""
    if text.startswith("DECIMAL("):
        return ColumnType(Family.DECIMAL, text)
    family = _DUCKDB.get(text, Family.OTHER)
    return ColumnType(family, text, collation if family is Family.TEXT else None)


_POSTGRES = {
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


def postgres_type(
    text: str, *, collation: str | None = None, deterministic: bool = True
) -> ColumnType:
    """The column type for a base type's name without modifiers, as ``format_type`` writes it.

    Types that are not built in come with their schema, so they are never taken for built-in ones.
    ``character`` ignores trailing blanks, and a collation that is not deterministic makes different
    texts equal: both compare by value with themselves only.
    """
    family = _POSTGRES.get(text, Family.OTHER)
    if family is Family.TEXT and not deterministic:
        family = Family.OTHER
    return ColumnType(family, text, collation)


def type_named(dialect: str, text: str) -> ColumnType:
    """The column type for the text by which an engine calls a value's type."""
    return postgres_type(text) if dialect == "postgres" else duckdb_type(text)
