"""Texts that PostgreSQL may read as a date or time of the present moment are refused.

A text in the query is looked at: 'now', 'today, 12:00' and their like. A text that the data holds
cannot be, so a cast of anything but a literal from text to a date or time is refused altogether.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.compiler.conditions import Reference, reference, references
from sqlrs.compiler.functions import (
    TEMPORAL_NAMES,
    TEMPORAL_NODES,
    is_declared,
    names_the_moment,
)
from sqlrs.compiler.source import Source
from sqlrs.dialects import dialect_named
from sqlrs.values import NUMBERS

_TIMELESS = NUMBERS | {Family.TEXT, Family.BOOLEAN}
_NEVER_TEXT = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Interval, exp.Null, exp.Boolean),
    *(exp.DateFromParts, exp.TimestampTrunc, exp.Extract),
)
_CHOICES = (exp.Coalesce, exp.Nullif, exp.Case, exp.If, exp.Greatest, exp.Least, exp.Paren)


def check_moments(
    condition: exp.Expr, type_of: Callable[[Reference], ColumnType], source: Source
) -> None:
    """Refuse the condition if its value may depend on the moment at which it is evaluated."""
    for literal in condition.find_all(exp.Literal):
        if (
            literal.is_string
            and names_the_moment(str(literal.this))
            and _has_times(condition, type_of)
        ):
            raise source.refusal("volatile_function", literal)
    if not dialect_named(source.dialect).texts_name_the_moment:
        return
    for cast in condition.find_all(exp.Cast):
        if _is_temporal(cast) and _may_be_text(cast.this, type_of):
            raise source.refusal(
                "volatile_function",
                cast,
                "a text that is read as a date or time may name the present moment",
                "compare a column of a date or time type; a view of the owner can hold the cast",
            )


def _has_times(condition: exp.Expr, type_of: Callable[[Reference], ColumnType]) -> bool:
    """Whether a plain text in the condition can take on a type of dates or times."""
    if any(type_of(place).family not in _TIMELESS for place in references(condition)):
        return True
    return any(
        isinstance(node, TEMPORAL_NODES)
        or (isinstance(node, exp.Cast) and _is_temporal(node))
        or (isinstance(node, exp.Anonymous) and str(node.this).lower() in TEMPORAL_NAMES)
        or is_declared(node)
        for node in condition.walk()
    )


def _is_temporal(cast: exp.Cast) -> bool:
    return cast.to.this in exp.DataType.TEMPORAL_TYPES


def _may_be_text(node: exp.Expr, type_of: Callable[[Reference], ColumnType]) -> bool:
    """Whether a value that is no plain literal may be a text."""
    match node:
        case exp.Literal() | exp.Parameter():
            # A parameter is of the type that it is cast to.
            return False
        case exp.Column():
            return type_of(reference(node)).family in (Family.TEXT, Family.OTHER)
        case exp.Cast():
            return node.to.this in exp.DataType.TEXT_TYPES
        case exp.Anonymous():
            return str(node.this).lower() not in TEMPORAL_NAMES
    if isinstance(node, _NEVER_TEXT):
        return False
    if isinstance(node, _CHOICES):
        return any(_may_be_text(part, type_of) for part in _values(node))
    return True


def _values(choice: exp.Expr) -> list[exp.Expr]:
    """The expressions of which one is the value."""
    match choice:
        case exp.Case():
            return [*choice.args["ifs"], *filter(None, [choice.args.get("default")])]
        case exp.If():
            return [choice.args["true"], *filter(None, [choice.args.get("false")])]
    return list(choice.iter_expressions())
