"""Where a summed expression is not NULL, as a condition that has an answer for every row."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from sqlrs.catalog import Table
from sqlrs.compiler.bounded_expressions import branches
from sqlrs.compiler.flat import FlatQuery, not_null, operand
from sqlrs.compiler.weighing import weighed

_STRICT = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Abs)


def not_null_condition(flat: FlatQuery) -> exp.Expr | None:
    """The condition over the query's columns that what it sums is not NULL; None: it never is.

    Nothing is computed in it: arithmetic could overflow on a row that the sum itself clamps.
    """
    tables = {occurrence.alias: occurrence.table for occurrence in flat.occurrences}
    found = _present(weighed(flat), tables)
    return None if _always(found) else found


def _present(node: exp.Expr, tables: dict[str, Table]) -> exp.Expr:
    node = node.unnest()
    match node:
        case exp.Null():
            return exp.false()
        case exp.Literal() | exp.Boolean():
            return exp.true()
        case exp.Column():
            nullable = tables[node.table].column(node.name).nullable
            return not_null(node) if nullable else exp.true()
        case exp.Coalesce() | exp.Least() | exp.Greatest():
            return _any(_present(part, tables) for part in [node.this, *node.expressions])
        case exp.Case() | exp.If() | exp.Nullif():
            return _present_case(node, tables)
        case exp.Cast() | exp.Round():
            return _present(node.this, tables)
    if isinstance(node, _STRICT):
        return _all(_present(part, tables) for part in node.iter_expressions())
    return not_null(node)


def _present_case(node: exp.Case | exp.If | exp.Nullif, tables: dict[str, Table]) -> exp.Expr:
    pairs, last = branches(node)
    values = [_present(value, tables) for value in (*(value for _, value in pairs), last)]
    if all(_always(value) for value in values):
        return exp.true()
    ifs = [
        exp.If(this=condition.copy(), true=value)
        for (condition, _), value in zip(pairs, values, strict=False)
    ]
    return exp.Case(ifs=ifs, default=values[-1])


def _always(condition: exp.Expr) -> bool:
    return isinstance(condition, exp.Boolean) and bool(condition.this)


def _never(condition: exp.Expr) -> bool:
    return isinstance(condition, exp.Boolean) and not condition.this


def _all(conditions: Iterable[exp.Expr]) -> exp.Expr:
    found = {c.sql(): c for c in conditions if not _always(c)}
    if any(map(_never, found.values())):
        return exp.false()
    return _joined(exp.And, list(found.values())) if found else exp.true()


def _any(conditions: Iterable[exp.Expr]) -> exp.Expr:
    found = {c.sql(): c for c in conditions if not _never(c)}
    if any(map(_always, found.values())):
        return exp.true()
    return _joined(exp.Or, list(found.values())) if found else exp.false()


def _joined(kind: type[exp.And | exp.Or], conditions: list[exp.Expr]) -> exp.Expr:
    tree = conditions[0]
    for condition in conditions[1:]:
        tree = kind(this=operand(tree), expression=operand(condition))
    return tree
