"""Which general predicates the solver understands: from the predicate and the types alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.query import General, Query, Variable
from sqlrs.values import values_of

# A number with an exponent, or with more digits than a decimal holds, makes the engine compute in
# floating point, where a row can pass that exact arithmetic leaves out.
_EXACT_NUMBER = re.compile(r"(?=.{1,30}$)(\d+\.?\d*|\.\d+)", re.ASCII)

_COMPARISONS = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.EQ, exp.NEQ)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul)
_WHOLE = exp.DataType.INTEGER_TYPES - {exp.DataType.Type.BIT}


def solvable(query: Query) -> frozenset[General]:
    """The general predicates that the solver understands, from the query alone.

    All variables that comparisons connect across atoms must be numbers too: the solver has no
    order of texts or times.
    """
    compared = frozenset[Variable]().union(*(p.variables for p in query.comparisons))
    if not all(_is_number(v.type) for v in compared):
        return frozenset()
    return frozenset(p for p in query.generals if understood(p))


def understood(predicate: General) -> bool:
    """Whether every part of the predicate is arithmetic, comparison or logic on numbers or days."""
    if not all(_is_number(v.type) for v in predicate.arguments):
        return False
    kinds = {f"v{i}": v.type.family for i, v in enumerate(predicate.arguments)}
    return _is_condition(cast(exp.Expression, predicate.condition), kinds)


def _is_number(kind: ColumnType) -> bool:
    """Whether every value is a number or a day: PostgreSQL's numeric may be NaN or infinite."""
    return values_of(kind).numbers


def _is_condition(tree: exp.Expr, kinds: Mapping[str, Family]) -> bool:
    if isinstance(tree, exp.Paren | exp.Not):
        return _is_condition(tree.this, kinds)
    if isinstance(tree, exp.And | exp.Or):
        return _is_condition(tree.this, kinds) and _is_condition(tree.expression, kinds)
    if isinstance(tree, _COMPARISONS):
        return _kind(tree.this, kinds) is not None and _kind(tree.expression, kinds) is not None
    if isinstance(tree, exp.In):
        items = [tree.this, *tree.expressions]
        plain = not tree.args.get("query") and not tree.args.get("unnest")
        return plain and all(_kind(item, kinds) is not None for item in items)
    return isinstance(tree, exp.Boolean)


def _kind(tree: exp.Expr, kinds: Mapping[str, Family]) -> Family | None:
    """The family of a value that the solver can compute, or None."""
    if isinstance(tree, exp.Paren):
        return _kind(tree.this, kinds)
    if isinstance(tree, exp.Placeholder):
        return kinds[tree.name]
    if isinstance(tree, exp.Literal):
        if tree.is_string or not _EXACT_NUMBER.fullmatch(tree.name):
            return None
        return Family.INTEGER if tree.is_int else Family.DECIMAL
    if type(tree) is exp.Cast:
        # A whole number keeps its value in every integer type that it fits.
        whole = tree.to.this in _WHOLE and _kind(tree.this, kinds) is Family.INTEGER
        return Family.INTEGER if whole else None
    if isinstance(tree, exp.Neg | exp.Abs):
        inner = _kind(tree.this, kinds)
        return inner if inner in (Family.INTEGER, Family.DECIMAL) else None
    if isinstance(tree, exp.Mod):
        whole = _kind(tree.this, kinds) is Family.INTEGER
        return Family.INTEGER if whole and positive(tree.expression) else None
    if isinstance(tree, _ARITHMETIC):
        return _sum_kind(tree, kinds)
    return None


def _sum_kind(tree: exp.Expr, kinds: Mapping[str, Family]) -> Family | None:
    left, right = _kind(tree.this, kinds), _kind(tree.expression, kinds)
    if left is None or right is None:
        return None
    if Family.DATE not in (left, right):
        return Family.DECIMAL if Family.DECIMAL in (left, right) else Family.INTEGER
    # A day moved by a number is not understood: 'infinity' + 7 is 'infinity', and no number is.
    return Family.INTEGER if isinstance(tree, exp.Sub) and left is right else None


def positive(tree: exp.Expr) -> int | None:
    """A positive whole literal, else None."""
    if isinstance(tree, exp.Literal) and tree.is_int and int(tree.name) > 0:
        return int(tree.name)
    return None
