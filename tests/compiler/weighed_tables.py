"""Two tables of every kind of number, and what an expression over them weighs."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from sqlglot import exp

from sqlrs.catalog import Bounds, Catalog, Column, ColumnType, Family, Listed, Range, Table
from sqlrs.compiler.flat import FlatQuery
from sqlrs.compiler.inline import inline
from sqlrs.compiler.understand import read_select
from sqlrs.compiler.weighing import Factor, Weighing, weigh

INTEGER = ColumnType(Family.INTEGER, "INTEGER")
BIGINT = ColumnType(Family.INTEGER, "BIGINT")
MONEY = ColumnType(Family.DECIMAL, "DECIMAL(10,2)")
WIDE = ColumnType(Family.DECIMAL, "DECIMAL(38,2)")
DOUBLE = ColumnType(Family.FLOAT, "DOUBLE")
BOOLEAN = ColumnType(Family.BOOLEAN, "BOOLEAN")
TEXT = ColumnType(Family.TEXT, "VARCHAR")


def bounds(low: str, high: str, grid: str | None = None) -> Bounds:
    return Bounds(Decimal(low), Decimal(high), "a test", None if grid is None else Decimal(grid))


VISIT = Table(
    "visit",
    (
        Column("id", INTEGER, nullable=False),
        Column("days", INTEGER, bounds=bounds("-5", "10")),
        Column("cost", MONEY, bounds=bounds("0", "50.5")),
        Column("debt", WIDE, bounds=bounds("-7.25", "3")),
        Column("score", DOUBLE, bounds=bounds("-3", "7", "0.25")),
        Column("grade", BIGINT, domain=Range(1, 6, "a test"), nullable=False),
        Column("level", INTEGER, domain=Listed((1, 3, 2), "a test")),
        Column("free", BIGINT),
        Column("loose", DOUBLE),
        Column("huge", WIDE),
        Column("urgent", BOOLEAN),
        Column("ward", TEXT),
    ),
)
DRUG = Table(
    "drug",
    (
        Column("id", INTEGER, nullable=False),
        Column("price", MONEY, bounds=bounds("0", "20")),
        Column("dose", INTEGER, bounds=bounds("-2", "4")),
        Column("rate", MONEY, nullable=False, bounds=bounds("0", "1")),
        Column("odd", BOOLEAN),
    ),
)
CATALOGS = {
    "duckdb": Catalog("duckdb", (VISIT, DRUG)),
    "postgres": Catalog("postgres", (VISIT, DRUG), search_path=("public",)),
}
DIALECTS = sorted(CATALOGS)


def flattened(
    expression: str, dialect: str, tables: str = "visit v, drug d", empty: str = ""
) -> FlatQuery:
    """The query that sums an expression; an outer join left the table ``empty`` without a row."""
    sql = f"SELECT count(*) FROM {tables} WHERE ({expression}) IS NOT NULL"
    flat = inline(read_select(sql, CATALOGS[dialect]), CATALOGS[dialect])
    *others, condition = flat.conditions
    found = condition.find(exp.Is)
    assert found is not None
    weight = exp.Paren(this=found.this.unnest().copy())
    for node in list(weight.find_all(exp.Column)):
        if node.table == empty:
            node.replace(exp.Null())
    return replace(flat, conditions=tuple(others), weight=weight.this)


def weighing(
    expression: str, dialect: str, tables: str = "visit v, drug d", empty: str = ""
) -> Weighing:
    return weigh(flattened(expression, dialect, tables, empty), CATALOGS[dialect])


def expression_of(factor: Factor) -> exp.Expression:
    tree = factor.expression.copy()
    assert isinstance(tree, exp.Expression)
    return tree
