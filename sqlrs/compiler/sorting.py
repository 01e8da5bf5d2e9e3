"""First pass: equalities become classes of columns; comparison operators stand apart."""

from __future__ import annotations

from dataclasses import field

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.compiler.conditions import (
    RELATIONS,
    Pair,
    Reference,
    as_column,
    holds,
    normal_form,
    reference,
)
from sqlrs.compiler.equalities import Equalities
from sqlrs.compiler.flat import FlatQuery
from sqlrs.compiler.function_parameters import is_comparable, is_parameter
from sqlrs.compiler.hints import fitting
from sqlrs.compiler.literals import fits, is_literal, read, readable
from sqlrs.compiler.moments import check_moments
from sqlrs.dialects import dialect_named
from sqlrs.errors import QueryRefused
from sqlrs.query import Constant
from sqlrs.records import dataclass
from sqlrs.values import MOMENTS, NUMBERS, values_of

_BIGINT = ColumnType(Family.INTEGER, "BIGINT")
_INTEGERS = {
    kind: ColumnType(Family.INTEGER, name)
    for kind, name in {
        exp.DataType.Type.SMALLINT: "SMALLINT",
        exp.DataType.Type.INT: "INTEGER",
        exp.DataType.Type.BIGINT: "BIGINT",
        exp.DataType.Type.INT128: "HUGEINT",
    }.items()
}


@dataclass(frozen=True, eq=False)
class Compared:
    """A comparison operator between a column and a column or a literal that can be read."""

    kind: type[exp.Expr]
    left: Reference
    right: Reference | Constant
    condition: exp.Expr

    @property
    def columns(self) -> tuple[Reference, ...]:
        """The columns it mentions."""
        if isinstance(self.right, Constant):
            return (self.left,)
        return (self.left, self.right)


@dataclass(eq=False)
class Sorted:
    """What the first pass found. ``bound`` are the columns set equal to a constant."""

    equal: Equalities
    bound: set[Reference] = field(default_factory=set)
    relations: list[Compared] = field(default_factory=list)
    others: list[exp.Expr] = field(default_factory=list)
    never: bool = False


def sort_conditions(flat: FlatQuery) -> Sorted:
    """Sort the conditions of the query; refuse comparisons whose sides do not fit."""
    sorter = _Sorter(flat)
    for condition in flat.conditions:
        for part in normal_form(condition, sorter.splits_rows):
            check_moments(part, sorter.equal.type_of, flat.source)
            sorter.add(part)
    found = sorter.found
    found.never = found.never or found.equal.contradictory()
    return found


class _Sorter:
    def __init__(self, flat: FlatQuery) -> None:
        self.source = flat.source
        self.equal = Equalities(
            {
                (occurrence.alias, column.name): column.type
                for occurrence in flat.occurrences
                for column in occurrence.table.columns
            }
        )
        self._not_null = {
            (occurrence.alias, column.name)
            for occurrence in flat.occurrences
            for column in occurrence.table.columns
            if not column.nullable
        }
        self.found = Sorted(self.equal)

    def add(self, condition: exp.Expr) -> None:
        if isinstance(condition, exp.Boolean | exp.Null):
            if isinstance(condition, exp.Null) or not condition.this:
                self.found.never = True
        elif isinstance(condition, RELATIONS):
            if not self._relation(condition):
                self.found.others.append(condition)
        else:
            self._refuse_null_safe(condition, isinstance(condition, exp.NullSafeEQ))
            self.found.others.append(condition)

    def splits_rows(self, pairs: list[Pair]) -> bool:
        """Whether two rows are equal exactly when = holds between their parts.

        Where two NULLs in a row are equal, one side of each pair must never be null.
        """
        return not dialect_named(self.source.dialect).nulls_equal_in_rows or all(
            any(map(self._never_null, pair)) for pair in pairs
        )

    def _never_null(self, value: exp.Expr) -> bool:
        column = as_column(value)
        if column is not None:
            return reference(column) in self._not_null
        return is_literal(value) and not isinstance(value.unnest(), exp.Null)

    def _refuse_null_safe(self, condition: exp.Expr, null_safe: bool) -> None:
        if null_safe and _spans_tables(condition):
            raise self.source.refusal("null_safe_equality", condition)

    def _relation(self, condition: exp.Expr) -> bool:
        """Take the comparison in if its sides can be read; False leaves it to the engine."""
        sides = (condition.this.unnest(), condition.expression.unnest())
        rows = all(isinstance(side, exp.Tuple) for side in sides)
        self._refuse_null_safe(condition, rows and isinstance(condition, exp.EQ))
        if any(isinstance(side, exp.Null) for side in sides):
            self.found.never = True
            return True
        left, right = (self._column(side, condition) for side in sides)
        if left is not None and right is not None:
            return self._columns(type(condition), left, right, condition)
        if left is not None and is_literal(sides[1]):
            return self._literal(type(condition), left, sides[1], condition)
        if left is not None and is_parameter(sides[1]):
            # Its value is not known: the column is not bound, the condition stays a filter.
            if not is_comparable(sides[1], self.equal.type_of(left)):
                raise self._mismatch(condition, left)
            return False
        if all(isinstance(side, exp.Literal) and not side.is_string for side in sides):
            return self._numbers(condition)
        return False

    def _literal(
        self,
        kind: type[exp.Expr],
        left: Reference,
        literal: exp.Expr,
        condition: exp.Expr,
    ) -> bool:
        column = self.equal.type_of(left)
        if not fits(literal, column):
            raise self._mismatch(condition, left, hint=fitting(literal, column))
        value = read(literal, column)
        if value is None:
            if isinstance(literal, exp.Literal) and not readable(literal, column):
                raise self.source.refusal("bad_literal", literal)
            return False
        if kind is exp.EQ:
            self.equal.bind(left, value)
            self.found.bound.add(left)
            return True
        if kind is exp.NEQ or not column.ordered:
            return False
        self.found.relations.append(Compared(kind, left, Constant(value, column), condition))
        return True

    def _columns(
        self,
        kind: type[exp.Expr],
        left: Reference,
        right: Reference,
        condition: exp.Expr,
    ) -> bool:
        if left == right:
            return False
        one, other = self.equal.type_of(left), self.equal.type_of(right)
        joinable = one.joins_with(other)
        families = {one.family, other.family}
        comparable = joinable or families <= NUMBERS or families <= MOMENTS
        if not comparable or (kind is exp.EQ and not joinable):
            raise self._mismatch(condition, left, right)
        if kind is exp.EQ:
            self.equal.join(left, right)
            return True
        if joinable and (kind is exp.NEQ or one.ordered):
            self.found.relations.append(Compared(kind, left, right, condition))
            return True
        return False

    def _numbers(self, condition: exp.Expr) -> bool:
        """Decide 1 = 1 and its like."""
        left, right = read(condition.this, _BIGINT), read(condition.expression, _BIGINT)
        if left is None or right is None:
            return False
        self.found.never = self.found.never or not holds(type(condition), left, right)
        return True

    def _column(self, side: exp.Expr, condition: exp.Expr) -> Reference | None:
        """The column that a side is; a cast within its family changes no value."""
        cast = side if type(side) is exp.Cast else None
        column = as_column(side if cast is None else cast.this)
        if column is None or cast is None:
            return None if column is None else reference(column)
        if self._keeps_values(cast.to, reference(column)):
            return reference(column)
        if isinstance(condition, exp.EQ) and _spans_tables(condition):
            raise self.source.refusal(
                "type_mismatch", condition, "a join on a cast is not answered"
            )
        return None

    def _keeps_values(self, target: exp.DataType, place: Reference) -> bool:
        """Whether the cast changes no value of the column and fails on none."""
        column = self.equal.type_of(place)
        kinds = exp.DataType.Type
        if target.expressions:
            return False
        match column.family:
            case Family.INTEGER:
                wide = _INTEGERS.get(target.this)
                own = values_of(column)
                return wide is not None and all(
                    end is not None and values_of(wide).holds(end) for end in (own.first, own.last)
                )
            case Family.TEXT:
                return target.this in (kinds.TEXT, kinds.VARCHAR) and values_of(column).one_form
            case Family.DATE:
                return target.this is kinds.DATE
        return False

    def _mismatch(
        self, condition: exp.Expr, *places: Reference, hint: str | None = None
    ) -> QueryRefused:
        shown = " and ".join(
            f"{alias}.{column} ({self.equal.type_of((alias, column)).name})"
            for alias, column in places
        )
        several = len(places) > 1
        message = f"{shown} have different types" if several else f"the value does not fit {shown}"
        return self.source.refusal("type_mismatch", condition, message, hint)


def _spans_tables(condition: exp.Expr) -> bool:
    sides = (condition.this, condition.expression)
    columns = [column for side in sides for column in side.find_all(exp.Column)]
    return len({column.table for column in columns}) > 1
