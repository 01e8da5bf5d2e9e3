"""Constants as trees: the one place where a value is written as a literal."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.query import Constant
from sqlrs.trees.build import number

# Names that the parser reads as types only inside a statement.
_BY_NAME = {
    "UTINYINT": exp.DataType.Type.UTINYINT,
    "USMALLINT": exp.DataType.Type.USMALLINT,
    "UINTEGER": exp.DataType.Type.UINT,
    "UBIGINT": exp.DataType.Type.UBIGINT,
}


def literal(constant: Constant) -> exp.Expression:
    """The constant as a literal that every engine reads as this very value."""
    value = constant.value
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int):
        return number(value)
    if isinstance(value, Decimal):
        return _decimal(value, constant.type.family)
    if isinstance(value, datetime):
        # Not the column's own type: the constant must not be rounded to its precision.
        kind = "timestamp" if value.tzinfo is None else "timestamptz"
        return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), kind)
    if isinstance(value, date):
        return exp.cast(exp.Literal.string(value.isoformat()), "date")
    return exp.Literal.string(value)


def typed_literal(constant: Constant) -> exp.Expression:
    """The literal in the very type of its column, so that it behaves as the column would.

    A plain 5 is narrower than a bigint's, and a plain text takes on the type it is set against.
    """
    tree = literal(constant)
    if isinstance(tree, exp.Boolean | exp.Cast):
        return tree
    if isinstance(tree, exp.Neg):
        tree = exp.Paren(this=tree)
    return exp.cast(tree, data_type(constant.type))


def data_type(column: ColumnType) -> exp.DataType:
    """The type of a column as a cast names it, as the catalog has it where no parser knows it."""
    known = _BY_NAME.get(column.name)
    return exp.DataType(this=known) if known else exp.DataType.build(column.name, udt=True)


def _decimal(value: Decimal, family: Family) -> exp.Expression:
    # Not abs(): it rounds to the 28 digits of the context.
    size = value.copy_abs()
    # With an exponent DuckDB reads a double: for a double that is the exact reading, where all
    # digits would be a whole number, rounded once more. A decimal must not become a double.
    text = str(size) if family is Family.FLOAT else format(size, "f")
    tree = exp.Literal.number(text)
    return exp.Neg(this=tree) if value < 0 else tree
