"""Numbers rounded to whole ones between two bounds: floor(x / 10) and its like."""

from __future__ import annotations

from decimal import Decimal, localcontext

from sqlglot import exp

from sqlrs.catalog import ColumnType
from sqlrs.compiler.enumerated import (
    MOST_ENUMERATED,
    Enumerated,
    counted_from,
    listed_values,
)
from sqlrs.compiler.grounds import placed
from sqlrs.compiler.said import Ends

STEPS = (exp.Floor, exp.Ceil, exp.Trunc, exp.Round)
"""What makes whole numbers of others and keeps their order."""


def steps_in(tree: exp.Expr) -> exp.Expr | None:
    """The one rounded number through which an expression reads all of its columns."""
    found = {node for node in tree.find_all(*STEPS) if node.find(exp.Column)}
    outermost = {node for node in found if not any(_inside(node, other) for other in found)}
    if len(outermost) != 1:
        return None
    [step] = outermost
    held = sum(node == step for node in tree.find_all(*STEPS))
    columns = len(list(tree.find_all(exp.Column)))
    return step if columns == held * len(list(step.find_all(exp.Column))) else None


def buckets(
    step: exp.Expr, column: exp.Expr, kind: ColumnType, ends: Ends, dialect: str, origin: str
) -> Enumerated | None:
    """All values of a rounded number whose only column lies between two ends.

    The engine rounds at both ends itself and counts from one to the other: what it makes of a
    number never falls as the number grows.
    """
    if ends.low is None or ends.high is None or not _rises(step):
        return None
    values = listed_values([ends.low, ends.high], kind, dialect)
    size = _size(step, ends)
    if values is None or len(values) != 2 or size is None or size > MOST_ENUMERATED:
        return None
    low, high = (placed(step, {column: value}) for value in values)
    if low is None or high is None:
        return None
    return counted_from(low, high, size, origin)


def _inside(node: exp.Expr, other: exp.Expr) -> bool:
    parts = (part for part in other.find_all(*STEPS) if part is not other)
    return node is not other and any(part == node for part in parts)


def _rises(tree: exp.Expr) -> bool:
    """Whether the value never falls as the one column in it grows."""
    tree = tree.unnest()
    match tree:
        case exp.Column():
            return True
        case exp.Round():
            return tree.args.get("decimals") is None and _rises(tree.this)
        case exp.Floor() | exp.Ceil() | exp.Trunc():
            return _rises(tree.this)
        case exp.Add():
            return any(
                _rises(one) and _constant(other) is not None
                for one, other in ((tree.this, tree.expression), (tree.expression, tree.this))
            )
        case exp.Sub():
            return _rises(tree.this) and _constant(tree.expression) is not None
        case exp.Mul() | exp.Div():
            factor = _constant(tree.expression)
            return _rises(tree.this) and factor is not None and factor > 0
    return False


def _constant(tree: exp.Expr) -> Decimal | None:
    tree = tree.unnest()
    plain = isinstance(tree, exp.Literal) and not tree.is_string
    return Decimal(str(tree.this)) if plain else None


def _size(step: exp.Expr, ends: Ends) -> int | None:
    """About how many whole numbers there are, never too few; None where they are too large."""
    with localcontext() as context:
        context.prec = 60
        low, high = (_about(step, Decimal(str(end))) for end in (ends.low, ends.high))
        if max(abs(low), abs(high)) > 2**53:
            # Beyond, floating-point numbers leave out whole ones.
            return None
        return int(high - low) + 3


def _about(tree: exp.Expr, value: Decimal) -> Decimal:
    tree = tree.unnest()
    match tree:
        case exp.Column():
            return value
        case exp.Literal():
            return Decimal(str(tree.this))
        case exp.Add():
            return _about(tree.this, value) + _about(tree.expression, value)
        case exp.Sub():
            return _about(tree.this, value) - _about(tree.expression, value)
        case exp.Mul():
            return _about(tree.this, value) * _about(tree.expression, value)
        case exp.Div():
            return _about(tree.this, value) / _about(tree.expression, value)
    inner: Decimal = _about(tree.this, value)
    return inner
