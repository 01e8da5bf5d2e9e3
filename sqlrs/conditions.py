"""Conditions as trees: a normal form exact in SQL's three truth values, columns by reference."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

Reference = tuple[str, str]
"""A column of the flat query: the occurrence's alias and the column's name."""

_NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
}
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
}
_SINGLE = (exp.Column, exp.Literal, exp.Placeholder, exp.Paren, exp.Null, exp.Boolean)
_BY_VALUE = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between, exp.Is),
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.And, exp.Or, exp.Not, exp.Paren),
    *(exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs),
    *(exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean),
)
_OPERATORS: dict[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.GT: operator.gt,
    exp.LTE: operator.le,
    exp.GTE: operator.ge,
}
RELATIONS = tuple(_OPERATORS)
"""The six comparison operators."""


def normal_form(condition: exp.Expr) -> Iterator[exp.Expr]:
    """Conjuncts that hold together exactly when the condition is true (not false, not unknown).

    A comparison has its column on the left where the other side has none; nothing is mutated.
    """
    pending = [condition]
    while pending:
        part = pending.pop().unnest()
        rewritten = _rewritten(part)
        if rewritten is None:
            yield mirrored(part)
        else:
            pending += reversed(rewritten)


def references(condition: exp.Expr) -> tuple[Reference, ...]:
    """The columns of a condition in the order of the text, each once."""
    found = (reference(column) for column in condition.find_all(exp.Column, bfs=False))
    return tuple(dict.fromkeys(found))


def reference(column: exp.Column) -> Reference:
    """The column's place in the flat query."""
    return column.table, column.name


def as_column(node: exp.Expr) -> exp.Column | None:
    """The column that the node is, parentheses aside, or None."""
    node = node.unnest()
    return node if isinstance(node, exp.Column) else None


def holds(kind: type[exp.Expr], left: object, right: object) -> bool:
    """Whether the comparison operator holds between two values."""
    return _OPERATORS[kind](left, right)


def substituted(
    condition: exp.Expr, replacement: Callable[[Reference], exp.Expr | None]
) -> exp.Expr:
    """A copy of the condition with its columns replaced; None keeps a column."""
    tree = exp.Paren(this=condition.copy())
    for column in list(tree.find_all(exp.Column)):
        new = replacement(reference(column))
        if new is not None:
            new.meta.update(column.meta)
            column.replace(new)
    result: exp.Expr = tree.this
    result.pop()
    return mirrored(result)


def reads_values_only(condition: exp.Expr) -> bool:
    """Whether equal values make the condition equal, whatever their form (1.5, 1.50; 0.0, -0.0)."""
    return all(isinstance(node, _BY_VALUE) for node in condition.walk())


def column_at(place: Reference) -> exp.Column:
    """The node of a column of the flat query."""
    return exp.column(place[1], table=place[0], quoted=True)


def canonical(condition: exp.Expr) -> exp.Expr:
    """A copy without what the text adds: positions, comments, parentheses around single values."""
    tree = condition.unnest().copy()
    for paren in list(tree.find_all(exp.Paren)):
        if isinstance(paren.this, _SINGLE):
            paren.replace(paren.this)
    for node in tree.walk():
        node.comments = None
        node._meta = None
    return tree


def over_bare_columns(condition: exp.Expr) -> exp.Expr:
    """The condition on one atom, written over bare quoted column names."""
    bare = substituted(condition, lambda place: exp.column(place[1], quoted=True))
    return canonical(bare)


def _rewritten(part: exp.Expr) -> list[exp.Expr] | None:
    match part:
        case exp.And():
            return [part.this, part.expression]
        case exp.Between():
            value, low, high = part.this, part.args["low"], part.args["high"]
            return [_binary(exp.GTE, value, low, part), _binary(exp.LTE, value, high, part)]
        case exp.EQ() if (pairs := _row_pairs(part)) is not None:
            return [_binary(exp.EQ, left, right, part) for left, right in pairs]
        case exp.Is() if part.args.get("negate"):
            return [exp.Not(this=exp.Is(this=part.this.copy(), expression=part.expression.copy()))]
        case exp.Not():
            return _negation(part.this.unnest(), part)
        case _:
            return None


def _row_pairs(part: exp.EQ) -> list[tuple[exp.Expr, exp.Expr]] | None:
    left, right = part.this.unnest(), part.expression.unnest()
    if not (isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)):
        return None
    if len(left.expressions) != len(right.expressions):
        return None
    return list(zip(left.expressions, right.expressions, strict=True))


def _negation(inner: exp.Expr, whole: exp.Not) -> list[exp.Expr] | None:
    match inner:
        case exp.Not():
            return [inner.this]
        case exp.Or():
            return [exp.Not(this=inner.this.copy()), exp.Not(this=inner.expression.copy())]
        case exp.Is() if inner.args.get("negate"):
            return [exp.Is(this=inner.this.copy(), expression=inner.expression.copy())]
        case exp.Boolean():
            return [exp.Boolean(this=not inner.this)]
    kind = _NEGATED.get(type(inner))
    # Of two rows neither = nor <> may be true, but NOT is not the opposite of an order of rows.
    if kind is None or isinstance(inner.this.unnest(), exp.Tuple):
        return None
    return [_binary(kind, inner.this, inner.expression, whole)]


def _binary(kind: type[exp.Expr], left: exp.Expr, right: exp.Expr, at: exp.Expr) -> exp.Expr:
    node = kind(this=left.copy(), expression=right.copy())
    node.meta.update(at.meta)
    return node


def mirrored(part: exp.Expr) -> exp.Expr:
    """The comparison with its columns on the left, if only its right side has any."""
    kind = _MIRRORED.get(type(part))
    if kind is None or part.this.find(exp.Column) or not part.expression.find(exp.Column):
        return part
    return _binary(kind, part.expression, part.this, part)
