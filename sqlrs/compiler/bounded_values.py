"""Whole numbers between two known ends as trees over one row, and arithmetic that keeps the ends.

Everything is computed in one wide type. No end exceeds ``MOST``, so no product of two such numbers
leaves that type: the engine's arithmetic cannot fail, whatever the row holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import gcd

from sqlglot import exp

from sqlrs.compiler.flat import operand
from sqlrs.effort import spend
from sqlrs.records import dataclass
from sqlrs.trees.build import number

MOST = 10**18
"""The largest whole number: its square has 37 digits, and sums of it have room in 128 bits."""
FAR = 10**9
"""What is held at a largest number is worth at least this: no text means so large a one."""
# Every value holds a copy of what it is made of, so a long sum copies its first part often.
_NODES_PER_STEP = 2


class TooLarge(ValueError):
    """A number beyond ``MOST``; who knows the place in the text makes a refusal of it."""


@dataclass(frozen=True, eq=False)
class BoundedValue:
    """``tree`` is a whole number from ``low`` to ``high``, or NULL; ``unit`` is what 1 is worth.

    ``nulls``: it is NULL exactly where one of these is. ``whole``: SQL gives it an integer type.
    ``constant``: a number that the text gives, never NULL. ``empty``: NULL for every row.
    ``between``: the same value held between two narrower ends, in a type that is summed in less
    time than the one that all is computed in; ``decimal`` where that is a decimal type.
    """

    tree: exp.Expr
    low: int
    high: int
    unit: Fraction = Fraction(1)
    nulls: tuple[exp.Expr, ...] = ()
    whole: bool = True
    constant: bool = False
    empty: bool = False
    between: Callable[[int, int], exp.Expr] | None = None
    decimal: bool = False

    def __post_init__(self) -> None:
        if self.low > self.high or self.unit <= 0:
            raise ValueError("a bounded value has its ends in order and a unit above 0")
        if max(-self.low, self.high) > MOST:
            raise TooLarge
        spend(_nodes([self.tree]) // _NODES_PER_STEP)

    @property
    def number(self) -> Fraction:
        """What a constant is worth."""
        return self.low * self.unit


def nothing() -> BoundedValue:
    """NULL."""
    return BoundedValue(exp.Null(), 0, 0, nulls=(exp.Null(),), empty=True)


def common_unit(units: Iterable[Fraction]) -> Fraction:
    """The largest number of which all of these are whole multiples."""
    numerator, denominator = 0, 1
    for unit in units:
        numerator, denominator = (
            gcd(numerator * unit.denominator, unit.numerator * denominator),
            denominator * unit.denominator,
        )
    return Fraction(numerator, denominator) if numerator else Fraction(1)


class WholeNumbers:
    """The arithmetic of bounded values in the type that a database computes whole numbers in.

    ``held``: what could exceed ``MOST`` counts as that much, where it is refused otherwise. So the
    numbers of any type are bounded: no row adds more, which is all that is asked of it where the
    sum of all rows of a unit is limited anyway.
    """

    def __init__(self, kind: exp.DataType, *, held: bool = False) -> None:
        self._kind = kind
        self.held = held

    @property
    def wide(self) -> bool:
        """Whether it is a type of 128 bits, whose arithmetic takes longer than that of 64."""
        return self._kind.this is exp.DType.INT128

    def cast(self, tree: exp.Expr) -> exp.Expr:
        """The tree in the wide type."""
        return exp.Cast(this=tree, to=self._kind.copy())

    def literal(self, value: int) -> exp.Expr:
        """A whole number in the wide type."""
        return self.cast(_number(value))

    def constant(self, value: Fraction, *, whole: bool = False) -> BoundedValue:
        """A number of the text: it counts once, and what it is worth is the unit."""
        sign = (value > 0) - (value < 0)
        unit = abs(value) or Fraction(1)
        return BoundedValue(self.literal(sign), sign, sign, unit, whole=whole, constant=True)

    def indicator(self, condition: exp.Expr) -> BoundedValue:
        """1 where the condition is true, 0 where it is false or unknown."""
        tree = exp.Case(ifs=[exp.If(this=condition, true=self.literal(1))], default=self.literal(0))
        return BoundedValue(tree, 0, 1)

    def truth(self, condition: exp.Expr) -> BoundedValue:
        """1 where the condition is true, 0 where it is false, NULL where it is unknown."""
        ifs = [
            exp.If(this=condition, true=self.literal(1)),
            exp.If(this=exp.Not(this=exp.Paren(this=condition.copy())), true=self.literal(0)),
        ]
        tree = exp.Case(ifs=ifs)
        return BoundedValue(tree, 0, 1, nulls=(tree,))

    def negated(self, value: BoundedValue) -> BoundedValue:
        """``-value``."""
        if value.constant:
            return self.constant(-value.number, whole=value.whole)
        if value.empty:
            return value
        tree = exp.Neg(this=exp.Paren(this=value.tree.copy()))
        return replace(value, tree=tree, low=-value.high, high=-value.low, between=None)

    def added(self, left: BoundedValue, right: BoundedValue) -> BoundedValue:
        """``left + right``."""
        if left.empty or right.empty:
            return nothing()
        whole = left.whole and right.whole
        if left.constant and right.constant:
            return self.constant(left.number + right.number, whole=whole)
        one, other = self.aligned([left, right])
        return self._within(
            exp.Add(this=operand(one.tree), expression=operand(other.tree)),
            one.low + other.low,
            one.high + other.high,
            one.unit,
            _together(left.nulls, right.nulls),
            whole,
        )

    def multiplied(self, left: BoundedValue, right: BoundedValue) -> BoundedValue:
        """``left * right``. A constant goes into the unit, so that it does not add digits."""
        if left.empty or right.empty:
            return nothing()
        whole = left.whole and right.whole
        if left.constant and right.constant:
            return self.constant(left.number * right.number, whole=whole)
        if left.constant and left.number:
            left, right = right, left
        if right.constant and right.number:
            signed = left if right.number > 0 else self.negated(left)
            return replace(signed, unit=left.unit * abs(right.number), whole=whole)
        corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
        found = self._within(
            exp.Mul(this=operand(left.tree), expression=operand(right.tree)),
            min(corners),
            max(corners),
            left.unit * right.unit,
            _together(left.nulls, right.nulls),
            whole,
        )
        return replace(found, between=_product_in_64_bits(left, right, corners))

    def absolute(self, value: BoundedValue) -> BoundedValue:
        """``abs(value)``."""
        if value.empty or value.low >= 0:
            return value
        if value.constant:
            return self.negated(value)
        low = 0 if value.high >= 0 else -value.high
        tree = exp.Abs(this=value.tree.copy())
        return replace(value, tree=tree, low=low, high=max(-value.low, value.high), between=None)

    def extreme(
        self, kind: type[exp.Least | exp.Greatest], values: Sequence[BoundedValue]
    ) -> BoundedValue:
        """``least(…)`` or ``greatest(…)``, which pass over NULL unless all are NULL."""
        present = [value for value in values if not value.empty]
        if len(present) < 2:
            return present[0] if present else nothing()
        if all(value.constant for value in present):
            choose = min if kind is exp.Least else max
            return choose(present, key=lambda value: value.number)
        present = self.aligned(present)
        sure = [value for value in present if not value.nulls]
        if kind is exp.Least:
            low = min(value.low for value in present)
            high = min([v.high for v in sure], default=max(v.high for v in present))
        else:
            high = max(value.high for value in present)
            low = max([v.low for v in sure], default=min(v.low for v in present))
        trees = [value.tree.copy() for value in present]
        tree = kind(this=trees[0], expressions=trees[1:], ignore_nulls=True)
        return self._chosen(tree, low, high, present, nullable=not sure)

    def coalesced(self, values: Sequence[BoundedValue]) -> BoundedValue:
        """``coalesce(…)``."""
        present = [value for value in values if not value.empty]
        sure = next((place for place, value in enumerate(present) if not value.nulls), None)
        used = present if sure is None else present[: sure + 1]
        if len(used) < 2:
            return used[0] if used else nothing()
        used = self.aligned(used)
        trees = [value.tree.copy() for value in used]
        tree = exp.Coalesce(this=trees[0], expressions=trees[1:])
        low, high = min(v.low for v in used), max(v.high for v in used)
        return self._chosen(tree, low, high, used, nullable=sure is None)

    def chosen(
        self, conditions: Sequence[exp.Expr], values: Sequence[BoundedValue], last: BoundedValue
    ) -> BoundedValue:
        """``CASE WHEN condition THEN value … ELSE last END``."""
        present = self.aligned([value for value in (*values, last) if not value.empty])
        if not present:
            return nothing()
        scaled = iter(present)
        trees = [v.tree.copy() if v.empty else next(scaled).tree.copy() for v in (*values, last)]
        ifs = [
            exp.If(this=condition, true=tree)
            for condition, tree in zip(conditions, trees, strict=False)
        ]
        tree = exp.Case(ifs=ifs, default=trees[-1])
        low, high = min(v.low for v in present), max(v.high for v in present)
        nullable = any(v.nulls for v in (*values, last))
        return self._chosen(tree, low, high, present, nullable=nullable)

    def aligned(self, values: Sequence[BoundedValue]) -> list[BoundedValue]:
        """The values in one unit."""
        unit = common_unit(value.unit for value in values if not value.constant or value.low)
        return [self._in_unit(value, unit) for value in values]

    def _in_unit(self, value: BoundedValue, unit: Fraction) -> BoundedValue:
        if value.constant:
            times = value.number / unit
            value = replace(value, constant=False)
            tree = self.literal(int(times))
            return replace(value, tree=tree, low=int(times), high=int(times), unit=unit)
        times = value.unit / unit
        if times == 1:
            return value
        if times > MOST:
            raise TooLarge
        tree = exp.Mul(this=operand(value.tree), expression=_number(int(times)))
        low, high = value.low * int(times), value.high * int(times)
        return self._within(tree, low, high, unit, value.nulls, value.whole)

    def _within(
        self,
        tree: exp.Expr,
        low: int,
        high: int,
        unit: Fraction,
        nulls: tuple[exp.Expr, ...],
        whole: bool,
    ) -> BoundedValue:
        """The value of a tree whose ends may be too far, each at most the square of ``MOST``."""
        if not self.held or max(-low, high) <= MOST:
            return BoundedValue(tree, low, high, unit, nulls, whole)
        low, high = held_ends(low, high, unit)
        # Where a part tells by itself whether it is NULL, it stands in the tree twice from here on.
        spend(2 * _nodes(nulls))
        above = exp.Greatest(this=tree, expressions=[self.literal(low)], ignore_nulls=True)
        tree = exp.Least(this=above, expressions=[self.literal(high)], ignore_nulls=True)
        if nulls:
            # Both functions pass over NULL.
            missing = exp.If(this=any_null(nulls), true=exp.Null())
            tree = exp.Case(ifs=[missing], default=tree)
        return BoundedValue(tree, low, high, unit, nulls, whole)

    def _chosen(
        self,
        tree: exp.Expr,
        low: int,
        high: int,
        among: Sequence[BoundedValue],
        *,
        nullable: bool,
    ) -> BoundedValue:
        whole = all(value.whole for value in among)
        return BoundedValue(tree, low, high, among[0].unit, (tree,) if nullable else (), whole)


def _product_in_64_bits(
    left: BoundedValue, right: BoundedValue, corners: Sequence[int]
) -> Callable[[int, int], exp.Expr] | None:
    """A product that is never below 0, of factors that have a quick type each; None if it is not.

    No factor and no product exceeds ``MOST``, so that 64 bits are enough for each.
    """
    one, other = left.between, right.between
    if one is None or other is None or min(corners) < 0 or max(corners) > MOST:
        return None

    def between(least: int, most: int) -> exp.Expr:
        if least > min(corners) or most < max(corners):
            raise ValueError("a product is held between its own ends")
        first, second = one(left.low, left.high), other(right.low, right.high)
        return exp.Mul(this=_in_64_bits(first), expression=_in_64_bits(second))

    return between


def _in_64_bits(tree: exp.Expr) -> exp.Expr:
    return exp.Cast(this=tree, to=exp.DataType.build("bigint"))


def held_ends(low: int, high: int, unit: Fraction) -> tuple[int, int]:
    """The ends, none beyond ``MOST``; where so few units are worth little, they are too large."""
    if max(-low, high) <= MOST:
        return low, high
    if MOST * unit < FAR:
        raise TooLarge
    return max(-MOST, min(low, MOST)), max(-MOST, min(high, MOST))


def any_null(trees: Iterable[exp.Expr]) -> exp.Expr:
    """The condition that one of these is NULL."""
    tests: list[exp.Expr] = [exp.Is(this=operand(t), expression=exp.Null()) for t in trees]
    tree = tests[0]
    for test in tests[1:]:
        tree = exp.Or(this=tree, expression=test)
    return tree


def _nodes(trees: Iterable[exp.Expr]) -> int:
    return sum(1 for tree in trees for _ in tree.walk())


def _number(value: int) -> exp.Expr:
    return exp.Paren(this=exp.Neg(this=number(-value))) if value < 0 else number(value)


def _together(left: Sequence[exp.Expr], right: Sequence[exp.Expr]) -> tuple[exp.Expr, ...]:
    return tuple({tree.sql(): tree for tree in (*left, *right)}.values())
