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

WEIGHT = ColumnType(Family.INTEGER, "computed")
"""The type of a computed weight."""
SMALL_WEIGHT = ColumnType(Family.INTEGER, "computed, small")
"""The type of a computed weight that never exceeds ``MOST_SMALL``."""
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


def summed(counts: Sequence[exp.Expression]) -> exp.Expression:
    """The number of results of the rows in a group."""
    return exp.Sum(this=product(counts)) if counts else exp.Count(this=exp.Star())


def _weight(kind: ColumnType, value: exp.Expression) -> exp.Expression:
    if kind == SMALL_WEIGHT:
        return exp.Cast(this=value, to=_BIGINT.copy())
    return decimal(value)


def decimal(value: exp.Expression) -> exp.Expression:
    """The whole number as a decimal of 38 digits."""
    if isinstance(value, exp.Cast) and value.to == _DECIMAL:
        return value
    return exp.Cast(this=value, to=_DECIMAL.copy())
