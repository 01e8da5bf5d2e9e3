"""Equal values that look different: which predicates can tell them apart."""

from __future__ import annotations

from sqlglot import exp

from sqlrs.compiler.conditions import by_value
from sqlrs.query import General
from sqlrs.values import behave_alike


def tells_equal_values_apart(predicate: General) -> bool:
    """Whether a predicate may differ on values that are equal (0.0 and -0.0, 1.0 and 1.00).

    Grouping keeps one of several equal values, so a condition on groups would be a condition on
    whichever row came first.
    """
    return (
        isinstance(predicate.condition, exp.Expr)
        and not by_value(predicate)
        and not all(behave_alike([v.type]) for v in predicate.variables)
    )
