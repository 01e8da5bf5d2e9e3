"""Kinds of expressions: truths, whole numbers, parts of dates, and which of them may fail."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.compiler.conditions import Reference, reference
from sqlrs.values import MOMENTS, values_of

BIGINT = ColumnType(Family.INTEGER, "BIGINT")
_TEXT = ColumnType(Family.TEXT, "VARCHAR")
_DATE = ColumnType(Family.DATE, "DATE")

TypeAt = Callable[[Reference], ColumnType]
"""The type of a column of the flat query."""

_TRUTHS = (exp.Predicate, exp.Connector, exp.Not, exp.StartsWith, exp.EndsWith, exp.Contains)
_COMPARED = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between, exp.And, exp.Or),
    *(exp.Not, exp.Paren, exp.Literal, exp.Boolean, exp.Column, exp.Identifier, exp.Neg),
)
_OF_A_DATE: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.Quarter: "quarter",
    exp.DayOfWeek: "dow",
    exp.DayOfYear: "doy",
    exp.Hour: "hour",
    exp.Minute: "minute",
}
_WHOLE_PARTS = frozenset(
    "year month day quarter week dow isodow doy isoyear decade century millennium hour minute".split()  # noqa: SIM905, E501
)
_BY_DAY = _WHOLE_PARTS - {"hour", "minute"}
UNITS = ("day", "hour", "minute")
"""From which on the values of moments between two others are known, the coarsest first."""
_UNITS_BY_DAY = frozenset(
    {"day", "week", "month", "quarter", "year", "decade", "century", "millennium"}
)
_TEXTS = (
    *(exp.Lower, exp.Upper, exp.Left, exp.Right, exp.Trim, exp.Substring, exp.Concat, exp.DPipe),
    *(exp.Replace, exp.Reverse),
)
# NULL wherever one of their arguments is.
_STRICT = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike, exp.Not),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Abs, exp.Sign),
    *(exp.Floor, exp.Ceil, exp.Round, exp.Trunc, exp.Lower, exp.Upper, exp.Length, exp.Left),
    *(exp.Right, exp.Substring, exp.Trim, exp.Replace, exp.Reverse, exp.DPipe, exp.StartsWith),
    *(exp.Cast, exp.Extract, exp.TimestampTrunc),
)
_ROUNDED = (exp.Floor, exp.Ceil, exp.Trunc, exp.Round)
_CAST_TEXTS = (exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR)
_CAST_MOMENTS = {
    exp.DataType.Type.DATE: Family.DATE,
    exp.DataType.Type.TIMESTAMP: Family.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPNTZ: Family.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: Family.TIMESTAMP_TZ,
}
# They give a value for every argument; sums and products do unless the numbers grow out of all
# measure, which the engine then says of public values.
_SAFE = (
    *(exp.Predicate, exp.Connector, exp.Not, exp.Paren, exp.Tuple, exp.Any, exp.Array),
    *(exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Var, exp.DataType),
    *(exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least),
    *(exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.Sign, exp.Floor, exp.Ceil),
    *(exp.Round, exp.Trunc, exp.Interval, exp.Extract, exp.TimestampTrunc),
    *(exp.Lower, exp.Upper, exp.Left, exp.Right, exp.Trim, exp.Concat, exp.DPipe, exp.Replace),
    *(exp.Reverse, exp.Length, exp.StartsWith, exp.EndsWith, exp.Contains, exp.StrPosition),
    exp.TryCast,
)


def null_folded(tree: exp.Expr) -> exp.Expr:
    """A copy in which what is NULL whatever the rows are is written as NULL.

    Where an outer join leaves a column empty PostgreSQL would not know which function of several
    is meant by a NULL without a type.
    """
    whole = exp.Paren(this=tree.copy())
    for node in reversed(list(whole.walk(bfs=True))):
        inside = [part.unnest() for part in node.iter_expressions()]
        strict = isinstance(node, _STRICT) or type(node) in _OF_A_DATE
        if strict and any(isinstance(part, exp.Null) for part in inside):
            node.replace(exp.Null())
    folded: exp.Expr = whole.this
    folded.pop()
    return folded


def is_truth(tree: exp.Expr) -> bool:
    """Whether it is true, false or NULL."""
    return isinstance(tree.unnest(), _TRUTHS)


def never_null_truth(tree: exp.Expr, nullable: Callable[[Reference], bool]) -> bool:
    """Whether a condition is never NULL: it compares columns that are not, or asks for NULL."""
    if isinstance(tree, exp.Is | exp.NullSafeEQ | exp.NullSafeNEQ):
        return True
    if isinstance(tree, exp.Not):
        return never_null_truth(tree.this.unnest(), nullable)
    return all(isinstance(node, _COMPARED) for node in tree.walk()) and not any(
        nullable(reference(column)) for column in tree.find_all(exp.Column)
    )


def kind_of(tree: exp.Expr, type_at: TypeAt) -> ColumnType | None:
    """The type in which the values of an expression can be written, None if that is not clear."""
    tree = tree.unnest()
    if isinstance(tree, exp.Column):
        return type_at(reference(tree))
    if isinstance(tree, exp.Cast) and tree.to.this is exp.DataType.Type.DATE:
        return _DATE
    if _is_whole(tree, type_at):
        return BIGINT
    if isinstance(tree, _TEXTS):
        own = [type_at(reference(column)) for column in tree.find_all(exp.Column)]
        plain = all(one.family is Family.TEXT and values_of(one).one_form for one in own)
        return _TEXT if plain else None
    return None


def _is_whole(tree: exp.Expr, type_at: TypeAt) -> bool:
    tree = tree.unnest()
    match tree:
        case exp.Column():
            return type_at(reference(tree)).family is Family.INTEGER
        case exp.Literal():
            return not tree.is_string and tree.is_int
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod() | exp.IntDiv():
            return _is_whole(tree.this, type_at) and _is_whole(tree.expression, type_at)
        case exp.Neg() | exp.Abs():
            return _is_whole(tree.this, type_at)
        case exp.Length():
            return True
    part = part_of_moment(tree, type_at)
    return part is not None and part[0] in _WHOLE_PARTS


def part_of_moment(tree: exp.Expr, type_at: TypeAt) -> tuple[str, exp.Expr, Family] | None:
    """Which part of which date or time is asked for; of intervals a part has no bounds."""
    tree = tree.unnest()
    part, argument = _OF_A_DATE.get(type(tree)), tree.args.get("this")
    if isinstance(tree, exp.Extract):
        part, argument = tree.name.lower(), tree.expression
    elif isinstance(tree, exp.Anonymous) and str(tree.this).lower() == "date_part":
        name, argument = tree.expressions
        part = name.name.lower() if isinstance(name, exp.Literal) else None
    if part is None or not isinstance(argument, exp.Expr):
        return None
    family = _moment(argument, type_at)
    return None if family is None else (part, argument, family)


def _moment(tree: exp.Expr, type_at: TypeAt) -> Family | None:
    tree = tree.unnest()
    match tree:
        case exp.Column():
            family = type_at(reference(tree)).family
            return family if family in MOMENTS else None
        case exp.Cast():
            return _CAST_MOMENTS.get(tree.to.this)
        case exp.TimestampTrunc():
            found = _moment(tree.this, type_at)
            return None if found is None else Family.TIMESTAMP
        case exp.Add() | exp.Sub() if isinstance(tree.expression.unnest(), exp.Interval):
            found = _moment(tree.this, type_at)
            return None if found is None else Family.TIMESTAMP
    return None


def unit_asked_for(tree: exp.Expr) -> str | None:
    """The day, hour or minute whose beginning tells all that an expression asks of its columns."""
    found = [_unit_asked_of(column) for column in tree.find_all(exp.Column)]
    known = [UNITS.index(one) for one in found if one is not None]
    return UNITS[max(known)] if known and len(known) == len(found) else None


def _unit_asked_of(column: exp.Column) -> str | None:
    holder = column.parent
    while isinstance(holder, exp.Paren):
        holder = holder.parent
    match holder:
        case exp.Extract():
            asked = holder.name.lower()
        case exp.TimestampTrunc():
            unit = str(holder.args["unit"].name).lower()
            asked = "day" if unit in _UNITS_BY_DAY else unit
        case exp.Cast():
            asked = "day" if holder.to.this is exp.DataType.Type.DATE else ""
        case _:
            asked = "" if holder is None else _OF_A_DATE.get(type(holder), "")
    asked = "day" if asked in _BY_DAY else asked
    return asked if asked in UNITS else None


def may_fail(tree: exp.Expr, type_at: TypeAt) -> bool:
    """Whether some values of its columns may have no value of the expression, but an error."""
    return not all(_is_safe(node, type_at) for node in tree.walk())


def _is_safe(node: exp.Expr, type_at: TypeAt) -> bool:
    match node:
        case exp.TryCast():
            return True
        case exp.Cast():
            return _is_safe_cast(node, type_at)
        case exp.Div() | exp.IntDiv() | exp.Mod():
            divisor = node.expression.unnest()
            plain = isinstance(divisor, exp.Literal) and not divisor.is_string
            return plain and float(divisor.this) != 0
        case exp.Substring():
            numbers = (node.args.get("start"), node.args.get("length"))
            return all(one is None or isinstance(one, exp.Literal) for one in numbers)
        case exp.Extract():
            inside = node.expression.unnest()
            return part_of_moment(node, type_at) is not None or _is_age(inside, type_at)
        case exp.Anonymous():
            return part_of_moment(node, type_at) is not None or _is_age(node, type_at)
    return isinstance(node, _SAFE) or type(node) in _OF_A_DATE


def _is_age(tree: exp.Expr, type_at: TypeAt) -> bool:
    """Whether it is the time between two moments."""
    named = isinstance(tree, exp.Anonymous) and str(tree.this).lower() == "age"
    return named and all(_moment(one, type_at) is not None for one in tree.expressions)


def _is_safe_cast(cast: exp.Cast, type_at: TypeAt) -> bool:
    """A cast to text, of a moment to a day, or of a constant, which is read once."""
    if isinstance(cast.this.unnest(), exp.Literal):
        return True
    if cast.to.this in _CAST_TEXTS:
        return True
    if isinstance(cast.this.unnest(), _ROUNDED):
        # Too large a one is too large for all rows: the engine says so of public values.
        return cast.to.this in exp.DataType.INTEGER_TYPES
    return cast.to.this in _CAST_MOMENTS and _moment(cast.this, type_at) is not None
