"""Predicates and filters as trees over the columns that stand for variables."""

from __future__ import annotations

from typing import cast

from sqlglot import exp

from sqlrs.query import (
    Comparison,
    Filter,
    General,
    Inequality,
    Predicate,
    Term,
    Variable,
)
from sqlrs.trees.constants import literal
from sqlrs.trees.identifiers import again, column

Places = dict[Variable, exp.Expression]
"""The column, or other expression, that stands for each variable."""


def predicate_condition(predicate: Predicate, places: Places) -> exp.Expression:
    """A predicate over the columns, or other expressions, that stand for its variables."""
    if isinstance(predicate, Inequality):
        return exp.NEQ(
            this=term_of(predicate.left, places), expression=term_of(predicate.right, places)
        )
    if isinstance(predicate, Comparison):
        kind = exp.LT if predicate.strict else exp.LTE
        return kind(
            this=term_of(predicate.left, places), expression=term_of(predicate.right, places)
        )
    return general_condition(predicate, places)


def general_condition(predicate: General, places: Places) -> exp.Expression:
    """A general predicate with its placeholders v0, v1, … replaced."""
    arguments = {f"v{i}": places[v] for i, v in enumerate(predicate.arguments)}

    def placed(node: exp.Expression) -> exp.Expression:
        return again(arguments[node.name]) if isinstance(node, exp.Placeholder) else node

    tree = cast(exp.Expression, predicate.condition).transform(placed)
    return exp.paren(tree) if isinstance(tree, exp.Or) else tree


def predicate_text(predicate: Predicate) -> str:
    """A predicate for people, over the names of its variables."""
    if not isinstance(predicate, General):
        return str(predicate)
    names: Places = {v: exp.Var(this=v.name) for v in predicate.arguments}
    return general_condition(predicate, names).sql()


def filter_condition(condition: Filter, alias: str) -> exp.Expression:
    """A filter with its bare columns placed in the table called ``alias``."""

    def placed(node: exp.Expression) -> exp.Expression:
        return column(node.name, alias) if isinstance(node, exp.Column) else node

    tree = cast(exp.Expression, condition.condition).transform(placed)
    return exp.paren(tree) if isinstance(tree, exp.Or) else tree


def term_of(term: Term, places: Places) -> exp.Expression:
    """The expression for a variable or a constant."""
    return again(places[term]) if isinstance(term, Variable) else literal(term)
