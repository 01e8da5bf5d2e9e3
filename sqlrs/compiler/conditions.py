"""Conditions as trees: a normal form exact in SQL's three truth values, columns by reference."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.compiler.complexity import swap
from sqlrs.compiler.function_parameters import is_parameter
from sqlrs.dialects.base import Dialect
from sqlrs.query import General
from sqlrs.values import is_wide

Reference = tuple[str, str]
"""A column of the flat query: the occurrence's alias and the column's name."""
Pair = tuple[exp.Expr, exp.Expr]
"""Parts of two rows that stand at the same place."""
TypeOf = Callable[[exp.Expr], ColumnType]
"""The type of a column of a condition, or of a placeholder for one."""

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
    *(exp.Column, exp.Placeholder, exp.Identifier, exp.Literal, exp.Null, exp.Boolean),
)
# Operations that give a result for every value, of whatever width. Not arithmetic, which overflows;
# not casts, not functions that refuse some arguments.
_NEVER_FAILING = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between, exp.Is),
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.And, exp.Or, exp.Not, exp.Paren, exp.Tuple),
    *(exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean),
    *(exp.Coalesce, exp.Nullif, exp.Case, exp.If, exp.Greatest, exp.Least, exp.Any, exp.Array),
    *(exp.Lower, exp.Upper, exp.Length, exp.StartsWith, exp.EndsWith, exp.Contains),
    *(exp.Var, exp.Year, exp.Month, exp.Day, exp.Quarter, exp.DayOfWeek),
)
# What every date and timestamp has. PostgreSQL refuses the hour of a date, row by row.
_PARTS = frozenset(
    "year month day quarter week dow isodow doy isoyear decade century millennium epoch".split()  # noqa: SIM905
)
_MOMENT_FAMILIES = frozenset({Family.DATE, Family.TIMESTAMP, Family.TIMESTAMP_TZ})
# Nodes between a value and what it is set against.
_WRAPPING = (exp.Paren, exp.Tuple, exp.Array, exp.Any, exp.Neg, exp.If)
_COMPARING = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between, exp.Is),
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.And, exp.Or, exp.Not, exp.Paren),
    *(exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean),
)
# Texts that every engine reads as a date or time, whatever the session says. The last days of a
# month are left out: not every month has them.
_DAY = r"[12]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])|-?infinity|epoch"
_CLOCK = r"[ T]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?"
_MOMENTS = {
    exp.DataType.Type.DATE: re.compile(_DAY),
    exp.DataType.Type.TIMESTAMP: re.compile(f"({_DAY})|({_DAY}){_CLOCK}"),
    exp.DataType.Type.TIMESTAMPNTZ: re.compile(f"({_DAY})|({_DAY}){_CLOCK}"),
    exp.DataType.Type.TIMESTAMPTZ: re.compile(rf"({_DAY}){_CLOCK}[+-]0\d(:00)?"),
}
_WHOLE_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
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
_MORE_RELATIONS = (exp.In, exp.Between, exp.NullSafeEQ, exp.NullSafeNEQ)


def normal_form(
    condition: exp.Expr, splits_rows: Callable[[list[Pair]], bool] = lambda pairs: True
) -> Iterator[exp.Expr]:
    """Conjuncts that hold together exactly when the condition is true (not false, not unknown).

    A comparison has its column on the left where the other side has none; nothing is mutated.
    ``splits_rows`` says whether two rows are equal exactly when = holds between their parts.
    """
    pending = [condition]
    while pending:
        part = pending.pop().unnest()
        rewritten = _rewritten(part, splits_rows)
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
            swap(column, new)
    result: exp.Expr = tree.this
    result.pop()
    return mirrored(result)


def reads_values_only(condition: exp.Expr, type_of: TypeOf) -> bool:
    """Whether equal values make the condition equal, whatever their form (1.5, 1.50; 0.0, -0.0).

    Of a type that only the engine knows, equal values may differ in arithmetic (a month and 30
    days, added to a date) and against another type (a text without case, against a plain one).
    """
    return all(isinstance(node, _BY_VALUE) for node in condition.walk()) and all(
        _among_its_like(node, type_of)
        for node in condition.find_all(exp.Column, exp.Placeholder)
        if type_of(node).family is Family.OTHER
    )


def by_value(general: General) -> bool:
    """Whether a general predicate reads the values of its arguments only, not their form."""

    def type_of(placeholder: exp.Expr) -> ColumnType:
        return general.arguments[int(placeholder.name.removeprefix("v"))].type

    condition = general.condition
    return isinstance(condition, exp.Expr) and reads_values_only(condition, type_of)


def _among_its_like(node: exp.Expr, type_of: TypeOf) -> bool:
    """Whether a column is compared with columns of its own type and plain literals, if at all."""
    holder = node.parent
    while isinstance(holder, exp.Paren):
        holder = holder.parent
    if holder is None or not isinstance(holder, (*RELATIONS, *_MORE_RELATIONS)):
        return isinstance(holder, exp.Is)
    sides = [side.unnest() for side in holder.iter_expressions()]
    return all(
        type_of(side) == type_of(node)
        if isinstance(side, exp.Column | exp.Placeholder)
        else isinstance(side, exp.Literal | exp.Null)
        for side in sides
    )


def never_fails(
    condition: exp.Expr, types: Collection[ColumnType], type_of: TypeOf, dialect: Dialect
) -> bool:
    """Whether the engine can evaluate the condition on every row of columns of these types.

    Only such a condition may be tried on rows that the analyst's own SQL would not try it on.
    ``type_of`` gives the types of the columns that it names, ``types`` also those of their equals.
    """
    if any(map(is_wide, types)) and not (
        len(set(types)) == 1 and compares_whole_numbers(condition)
    ):
        return False
    if dialect.converts_each_row and not _alike_as_written(condition, type_of):
        return False
    return all(_never_fails(node, type_of) for node in condition.walk(prune=is_constant))


def _alike_as_written(condition: exp.Expr, type_of: TypeOf) -> bool:
    """Whether nothing must be made into another type that does not hold all of its values."""
    moments = {type_of(c).family for c in condition.find_all(exp.Column)} & _MOMENT_FAMILIES
    typed = {cast.to.this for cast in condition.find_all(exp.Cast) if is_constant(cast)}
    if Family.DATE in moments and (len(moments) > 1 or typed - {exp.DataType.Type.DATE}):
        return False
    texts = [found for found in condition.find_all(exp.Literal) if found.is_string]
    return all(isinstance(t.parent, exp.Cast) or _fits_beside(t, type_of) for t in texts)


def _fits_beside(text: exp.Literal, type_of: TypeOf) -> bool:
    """Whether a plain text is one of the values of the columns that it is set against."""
    holder = text.parent
    while isinstance(holder, _WRAPPING):
        holder = holder.parent
    columns = [] if holder is None else holder.find_all(exp.Column)
    families = {type_of(column).family for column in columns}
    if families <= {Family.TEXT}:
        return True
    day = _MOMENTS[exp.DataType.Type.DATE].fullmatch(str(text.this)) is not None
    return day and families <= _MOMENT_FAMILIES


def compares_whole_numbers(condition: exp.Expr) -> bool:
    """Whether it only compares columns and whole numbers: then the columns' widths do not show."""
    return compares_numbers(condition) and all(
        _WHOLE_NUMBER.fullmatch(str(literal.this)) is not None
        for literal in condition.find_all(exp.Literal)
    )


def compares_numbers(condition: exp.Expr) -> bool:
    """Whether it only compares columns and numbers."""
    return all(
        isinstance(node, _COMPARING) and not (isinstance(node, exp.Literal) and node.is_string)
        for node in condition.walk()
    )


def _never_fails(node: exp.Expr, type_of: TypeOf) -> bool:
    match node:
        case exp.Extract():
            column = as_column(node.expression)
            known = column is not None and type_of(column).family in _MOMENT_FAMILIES
            return known and node.name.lower() in _PARTS
        case exp.Like() | exp.ILike():
            # A pattern that ends in an escape is an error once a value gets that far.
            pattern = node.expression.unnest()
            return isinstance(pattern, exp.Literal) and "\\" not in str(pattern.this)
        case exp.Mod():
            divisor = node.expression.unnest()
            return isinstance(divisor, exp.Literal) and divisor.is_int and int(divisor.this) > 0
        case exp.Neg():
            return isinstance(node.this.unnest(), exp.Literal)
    return isinstance(node, _NEVER_FAILING) or is_constant(node)


def is_constant(node: exp.Expr) -> bool:
    """Whether it is a typed literal such as DATE '2026-01-31', which is read once, for no row.

    So is a parameter, which has its type already.
    """
    if is_parameter(node):
        return True
    if type(node) is not exp.Cast or not isinstance(node.this, exp.Literal):
        return False
    form = _MOMENTS.get(node.to.this) if not node.to.expressions else None
    return form is not None and form.fullmatch(str(node.this.this)) is not None


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


def _rewritten(part: exp.Expr, splits_rows: Callable[[list[Pair]], bool]) -> list[exp.Expr] | None:
    match part:
        case exp.And():
            return [part.this, part.expression]
        case exp.Between() if _is_text(part.args["low"]) == _is_text(part.args["high"]):
            # Otherwise the typed end would give its type to the text at the other one.
            value, low, high = part.this, part.args["low"], part.args["high"]
            return [_binary(exp.GTE, value, low, part), _binary(exp.LTE, value, high, part)]
        case exp.EQ() if (pairs := _row_pairs(part)) is not None and splits_rows(pairs):
            return [_binary(exp.EQ, left, right, part) for left, right in pairs]
        case exp.Is() if part.args.get("negate"):
            return [exp.Not(this=exp.Is(this=part.this.copy(), expression=part.expression.copy()))]
        case exp.Not():
            return _negation(part.this.unnest(), part)
        case _:
            return None


def _is_text(node: exp.Expr) -> bool:
    node = node.unnest()
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _row_pairs(part: exp.EQ) -> list[Pair] | None:
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
            # All alternatives at once: two by two, each would be copied as often as it is deep.
            return [exp.Not(this=part.copy()) for part in _alternatives(inner)]
        case exp.Is() if inner.args.get("negate"):
            return [exp.Is(this=inner.this.copy(), expression=inner.expression.copy())]
        case exp.Boolean():
            return [exp.Boolean(this=not inner.this)]
    kind = _NEGATED.get(type(inner))
    # Of two rows neither = nor <> may be true, but NOT is not the opposite of an order of rows.
    if kind is None or isinstance(inner.this.unnest(), exp.Tuple):
        return None
    return [_binary(kind, inner.this, inner.expression, whole)]


def _alternatives(condition: exp.Or) -> Iterator[exp.Expr]:
    """The parts of a disjunction in order, without the parentheses around them."""
    pending: list[exp.Expr] = [condition]
    while pending:
        part = pending.pop().unnest()
        if isinstance(part, exp.Or):
            pending += [part.expression, part.this]
        else:
            yield part


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
