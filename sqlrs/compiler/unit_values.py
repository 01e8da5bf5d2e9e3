"""What is known of the values of an expression inside one unit: NULL, sign, where they are from.

What is not known is None or the worse case, so a rule that asks for it refuses.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sqlrs.catalog import Bounds, Column, Listed, Range
from sqlrs.compiler.conditions import Reference, reference
from sqlrs.compiler.unit_kinds import Columns, Known, argument_of, chosen_from, kind_in
from sqlrs.effort import spend
from sqlrs.values import values_of

_MOST_NODES = 200
_NODES_PER_STEP = 10


def of_column(column: Column, alias: str) -> Known:
    """What the catalog says of a stored column."""
    place = exp.column(
        exp.to_identifier(column.name, quoted=True), table=exp.to_identifier(alias, quoted=True)
    )
    return Known(column.type, column.nullable, _from_0(column), place)


def known_of(tree: exp.Expr, columns: Columns) -> Known:
    """What is known of an expression over these columns."""
    tree = tree.unnest()
    if isinstance(tree, exp.Column):
        return columns.get(reference(tree), Known(None))
    return Known(
        kind_in(tree, columns),
        not _never_null(tree, columns),
        _positive(tree, columns),
        _origin(tree, columns),
    )


def constants_of(tree: exp.Expr) -> Listed | None:
    """The values that CASE, or the like of it, chooses from, if all of them are constants."""
    tree = tree.unnest()
    if not isinstance(tree, exp.Case | exp.If):
        return None
    chosen = chosen_from(tree)
    plain = [
        one for one in chosen if isinstance(one, exp.Literal) and (one.is_string or one.is_int)
    ]
    if len(plain) < len(chosen) or not chosen:
        return None
    values = [one.this if one.is_string else int(one.this) for one in plain]
    return Listed(tuple(dict.fromkeys(values)), "CASE of the query")


def _from_0(column: Column) -> bool:
    first = values_of(column.type).first
    if first is not None and first >= 0:
        return True
    limits = [one for one in (column.bounds, column.domain) if isinstance(one, Bounds | Range)]
    numbers = [one.low for one in limits]
    return any(not isinstance(low, str | bool) and _is_from_0(low) for low in numbers)


def _is_from_0(low: object) -> bool:
    try:
        return low >= 0  # type: ignore[operator]
    except TypeError:
        return False


def _never_null(tree: exp.Expr, columns: Columns) -> bool:
    match tree.unnest():
        case exp.Literal() | exp.Boolean() | exp.Count() | exp.CountIf() | exp.Exists():
            return True
        case exp.Column() as column:
            known = columns.get(reference(column))
            return known is not None and not known.nullable
        case exp.Coalesce() as found:
            return any(_never_null(one, columns) for one in [found.this, *found.expressions])
        case exp.Window() as window:
            counts = exp.Count | exp.CountIf | exp.Rank | exp.DenseRank | exp.RowNumber
            return isinstance(window.this, counts)
    return False


def _positive(tree: exp.Expr, columns: Columns) -> bool:
    tree = tree.unnest()

    def inside(part: exp.Expr) -> bool:
        return _positive(part, columns)

    match tree:
        case exp.Column():
            known = columns.get(reference(tree))
            return known is not None and known.positive
        case exp.Literal():
            return not tree.is_string
        case exp.Count() | exp.CountIf() | exp.Length() | exp.Abs():
            return True
        case exp.Rank() | exp.DenseRank() | exp.RowNumber():
            return True
        case exp.Window() | exp.Filter() | exp.Subquery():
            return inside(tree.this)
        case exp.Sum() | exp.Avg() | exp.Min() | exp.Max():
            return inside(argument_of(tree))
        case exp.Add() | exp.Mul():
            return inside(tree.this) and inside(tree.expression)
        case exp.Case() | exp.If() | exp.Coalesce() | exp.Nullif() | exp.Greatest() | exp.Least():
            chosen = chosen_from(tree)
            some = any if isinstance(tree, exp.Greatest) else all
            return bool(chosen) and some(inside(one) for one in chosen)
        case exp.Select() if len(tree.expressions) == 1:
            return inside(tree.expressions[0].unalias())
    return False


def _origin(tree: exp.Expr, columns: Columns) -> exp.Expr | None:
    """The expression over stored columns, None where one of its columns is computed elsewhere."""
    return placed_at_origins(tree, lambda place: columns.get(place))


def placed_at_origins(
    tree: exp.Expr, known: Callable[[Reference], Known | None]
) -> exp.Expr | None:
    """A copy over stored columns, None if it aggregates, a column has no origin, or it is long.

    Each query around another one may name a column twice: origins would double every time.
    """
    kinds = (exp.Query, exp.Subquery, exp.AggFunc, exp.Window, exp.Exists)
    if any(isinstance(node, kinds) for node in tree.walk()):
        return None
    whole = exp.Paren(this=tree.copy())
    nodes = 0
    for column in list(whole.find_all(exp.Column)):
        found = known(reference(column))
        if found is None or found.origin is None:
            return None
        nodes += sum(1 for _ in found.origin.walk())
        spend(nodes // _NODES_PER_STEP)
        if nodes > _MOST_NODES:
            return None
        inside = found.origin.copy()
        if not isinstance(inside, exp.Column):
            inside = exp.Paren(this=inside)
        inside.meta.update(column.meta)
        column.replace(inside)
    result: exp.Expr = whole.this
    result.pop()
    return result
