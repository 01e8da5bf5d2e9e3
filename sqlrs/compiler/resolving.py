"""An expression of a SELECT -> the same over columns of the flat query, every name resolved."""

from __future__ import annotations

from sqlglot import exp

from sqlrs.compiler.complexity import spend_on, swap
from sqlrs.compiler.flat import operand, stand_at
from sqlrs.compiler.hints import instead_of_negation
from sqlrs.compiler.literals import is_literal
from sqlrs.compiler.missing_values import decided, is_missing
from sqlrs.compiler.names import Scope
from sqlrs.compiler.source import Source
from sqlrs.dialects import dialect_named
from sqlrs.effort import spend
from sqlrs.trees.copies import copied


def resolved(expression: exp.Expr, scope: Scope, source: Source) -> exp.Expr:
    """A copy of the expression in which every column names an occurrence."""
    for node in expression.walk(bfs=False):
        spend()
        _check_scalar(node, source)
    tree = copied(expression)
    missing = False
    for column in list(tree.find_all(exp.Column)):
        known = scope.column(column, source)
        missing = missing or is_missing(known)
        # Before the copy: the columns of a chain of derived tables double from one to the next.
        spend_on(known)
        _check_listed(column, known, source)
        meaning = operand(known)
        span = source.span(column)
        stand_at(meaning, span.start, span.end - 1, alone=False)
        if column is tree:
            return meaning
        swap(column, meaning)
    return decided(tree) if missing else tree


def with_type(value: exp.Expr, source: Source) -> exp.Expr:
    """A column of a subquery is a text for good, whatever it is set against outside."""
    plain = isinstance(value.unnest(), exp.Literal) and value.unnest().is_string
    if not plain or not dialect_named(source.dialect).texts_take_on_types:
        return value
    typed = exp.cast(value.unnest(), "text")
    span = source.span(value)
    stand_at(typed, span.start, span.end - 1)
    return typed


def _check_listed(column: exp.Column, known: exp.Expr, source: Source) -> None:
    """Refuse a literal of a subquery in a list: there it would take on the list's type."""
    listed = isinstance(column.parent, exp.In) and column.arg_key == "expressions"
    if listed and is_literal(known) and dialect_named(source.dialect).texts_take_on_types:
        hint = "write the value itself, or compare with = and OR"
        raise source.refusal("unsupported", column, hint=hint)


def _check_scalar(node: exp.Expr, source: Source) -> None:
    if isinstance(node, exp.Exists | exp.Select | exp.Subquery):
        negated = node.find_ancestor(exp.Not)
        raise source.refusal(
            "negated_subquery" if negated else "subquery",
            negated or node,
            hint=instead_of_negation(negated) if negated else None,
        )
    if isinstance(node, exp.Count):
        raise source.refusal("aggregate", node)
    if isinstance(node, exp.Star) and isinstance(node.parent, exp.Distinct):
        hint = "write count(*) FROM (SELECT DISTINCT * FROM …) AS d"
        raise source.refusal("distinct_expression", node, hint=hint)
    if isinstance(node, exp.Star | exp.Distinct | exp.Alias):
        raise source.refusal("unsupported", node)
