"""How many results rows stand for: counts and weights, multiplied and summed without a float."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from sqlrs.trees.build import number
from sqlrs.trees.identifiers import again, column

# 38 digits in every database. A sum of them is one of them in DuckDB, and unlimited in PostgreSQL;
# past the last digit both raise, and neither rounds.
_DECIMAL = exp.DataType.build("DECIMAL(38, 0)")


def row_weights(columns: Iterable[str], alias: str) -> list[exp.Expression]:
    """What a row of the table called ``alias`` counts: the product of these columns.

    As decimals whatever the columns' own type: sums of small integers are small integers.
    """
    return [_decimal(column(name, alias)) for name in columns]


def product(counts: Sequence[exp.Expression]) -> exp.Expression:
    """The product of counts; two or more are multiplied as decimals, which hold 38 digits."""
    if not counts:
        return number(1)
    if len(counts) == 1:
        return again(counts[0])
    tree = _decimal(again(counts[0]))
    for count in counts[1:]:
        tree = exp.Mul(this=tree, expression=again(count))
    return tree


def summed(counts: Sequence[exp.Expression]) -> exp.Expression:
    """The number of results of the rows in a group."""
    return exp.Sum(this=product(counts)) if counts else exp.Count(this=exp.Star())


def _decimal(value: exp.Expression) -> exp.Expression:
    if isinstance(value, exp.Cast) and value.to == _DECIMAL:
        return value
    return exp.Cast(this=value, to=_DECIMAL.copy())
