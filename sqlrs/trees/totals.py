"""How many results rows stand for: counts and weights, multiplied and summed without a float."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family, Table
from sqlrs.trees.build import number
from sqlrs.trees.identifiers import again, column

# 38 digits in every database. A sum of them is one of them in DuckDB, and unlimited in PostgreSQL;
# past the last digit both raise, and neither rounds.
_DECIMAL = exp.DataType.build("DECIMAL(38, 0)")
# Their sums are wider than they are in every database that counts here, and several times as quick
# as those of decimals.
_BIGINT = exp.DataType.build("BIGINT")
# DuckDB's, which alone has weights of decimal types.
_INT128 = exp.DataType(this=exp.DType.INT128)

WEIGHT = ColumnType(Family.INTEGER, "computed")
"""The type of a computed weight."""
SMALL_WEIGHT = ColumnType(Family.INTEGER, "computed, small")
"""The type of a computed weight that never exceeds ``MOST_SMALL``."""
DECIMAL_WEIGHT = ColumnType(Family.INTEGER, "computed, decimal")
"""The same of a decimal type with digits behind the point, all of them 0."""
_DECIMAL_ALONE = "sqlrs_decimal"
MOST_SMALL = 2**47
"""With room in 64 bits for the small numbers that a row may be multiplied by."""


def row_weights(columns: Iterable[str], table: Table, alias: str) -> list[exp.Expression]:
    """What a row of the table called ``alias`` counts: the product of these columns.

    Small ones in 64 bits, all others as decimals whatever the columns' own type: sums of small
    integers may be small integers.
    """
    return [_weight(table.column(name).type, column(name, alias)) for name in columns]


def product(counts: Sequence[exp.Expression]) -> exp.Expression:
    """The product of counts; two or more are multiplied as decimals, which hold 38 digits."""
    if not counts:
        return number(1)
    if len(counts) == 1:
        return again(counts[0])
    tree = decimal(again(counts[0]))
    for count in counts[1:]:
        tree = exp.Mul(this=tree, expression=again(count))
    return tree


def summed(counts: Sequence[exp.Expression], *, few: bool = False) -> exp.Expression:
    """The number of results of the rows in a group; ``few``: there are not many groups."""
    if not counts:
        return exp.Count(this=exp.Star())
    if few:
        return whole(counts, exp.Sum(this=summand(counts)))
    return exp.Sum(this=product(counts))


def summand(counts: Sequence[exp.Expression]) -> exp.Expression:
    """The product of counts, a decimal that stands alone as it is; what is summed is ``whole``."""
    return again(counts[0].this) if _is_decimal(counts) else product(counts)


def whole(counts: Sequence[exp.Expression], total: exp.Expression) -> exp.Expression:
    """A sum of ``summand``, or the largest of some, as a whole number.

    To cast a sum takes longer than to cast some numbers that it is made of.
    """
    return exp.Cast(this=total, to=_INT128.copy()) if _is_decimal(counts) else total


def _is_decimal(counts: Sequence[exp.Expression]) -> bool:
    return len(counts) == 1 and bool(counts[0].meta.get(_DECIMAL_ALONE))


def _weight(kind: ColumnType, value: exp.Expression) -> exp.Expression:
    if kind not in (SMALL_WEIGHT, DECIMAL_WEIGHT):
        return decimal(value)
    tree = exp.Cast(this=value, to=_BIGINT.copy())
    if kind == DECIMAL_WEIGHT:
        tree.meta[_DECIMAL_ALONE] = True
    return tree


def decimal(value: exp.Expression) -> exp.Expression:
    """The whole number as a decimal of 38 digits."""
    if isinstance(value, exp.Cast) and value.to == _DECIMAL:
        return value
    return exp.Cast(this=value, to=_DECIMAL.copy())
