"""The catalog of the compiler's tests and of the examples in docs/sql-reference.md."""

from __future__ import annotations

from sqlrs.catalog import (
    Catalog,
    Column,
    ColumnType,
    DeclaredFunction,
    Family,
    Routine,
    Table,
    View,
)

BIGINT = ColumnType(Family.INTEGER, "BIGINT")
INTEGER = ColumnType(Family.INTEGER, "INTEGER")
TEXT = ColumnType(Family.TEXT, "VARCHAR")
DATE = ColumnType(Family.DATE, "DATE")
TIMESTAMP = ColumnType(Family.TIMESTAMP, "TIMESTAMP")
DECIMAL = ColumnType(Family.DECIMAL, "DECIMAL(10,2)")
DOUBLE = ColumnType(Family.FLOAT, "DOUBLE")
BOOLEAN = ColumnType(Family.BOOLEAN, "BOOLEAN")


def table(label: str, key: str = "", /, **columns: ColumnType) -> Table:
    keys = frozenset({frozenset(key.split())} if key else ())
    return Table(
        label,
        tuple(Column(n, t, nullable=n not in key.split()) for n, t in columns.items()),
        keys,
    )


EDGE = table("edge", "src dst", src=BIGINT, dst=BIGINT)
PERSON = table("person", "id", id=INTEGER, name=TEXT, born=DATE)
VISIT = table(
    "visit", person=INTEGER, day=DATE, at=TIMESTAMP, cost=DECIMAL, score=DOUBLE, urgent=BOOLEAN
)
VIEWS = (
    View("upward", "SELECT src AS low, dst AS high FROM edge WHERE src < dst"),
    View("looped", "SELECT * FROM looped"),
    View("limited", "SELECT src FROM edge LIMIT 5"),
)
CATALOG = Catalog("duckdb", (EDGE, PERSON, VISIT), VIEWS)
POSTGRES = Catalog("postgres", (EDGE, PERSON, VISIT), VIEWS, search_path=("public",))


def declared(name: str, *takes: ColumnType, returns: ColumnType | None = None) -> DeclaredFunction:
    """A function of the owner's, of one text unless said otherwise."""
    types = takes or (TEXT,)
    return DeclaredFunction(name, types, returns or TEXT, Routine(name, len(types), "a body"))
