"""A column of numbers as whole numbers between known ends: first clamped, then scaled, then cast.

What a row holds beyond the ends counts as the nearer one; NaN, which both engines order above all
other numbers, counts as the high end. Nothing fails on any value of the column's type: each is
between the ends before it is multiplied, divided or cast.
Where sums need no declared ends, those of the column's type serve, or the largest whole numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from sqlrs.catalog import Column, Family, Listed, Range
from sqlrs.compiler.bounded_values import BoundedValue, TooLarge, WholeNumbers, held_ends
from sqlrs.records import dataclass
from sqlrs.trees.build import ROUNDS
from sqlrs.trees.constants import data_type
from sqlrs.values import values_of

_SCALED = re.compile(r"(?:decimal|numeric)\((\d+),\s*(\d+)\)")
# So many digits of the larger end are kept of a decimal type without a scale: what is rounded off
# ten million rows is less than one row can add.
_DIGITS = 8
_QUICK_DIGITS = 18
# A double holds these, and their quotients by a step within the same limits.
_LARGEST_DOUBLE = Fraction(10) ** 150
_WIDEST = 38
# More than any number: the ends of a type of unknown ends.
_UNENDING = 10**100
# A wider type of whole numbers does not become the one that is computed in.
_LARGEST_INTEGER = 2**127 - 1


@dataclass(frozen=True)
class Window:
    """What the text does to a value: only its part between the ends counts; None: no such end.

    ``step``: it is rounded to multiples of this.
    """

    low: Fraction | None = None
    high: Fraction | None = None
    step: Fraction | None = None

    def at_most(self, end: Fraction) -> Window:
        """The window of what is the lesser of a value and ``end``."""
        return replace(self, high=end if self.high is None else min(self.high, end))

    def at_least(self, end: Fraction) -> Window:
        """The window of what is the greater of a value and ``end``."""
        return replace(self, low=end if self.low is None else max(self.low, end))

    def before(self, times: Fraction, plus: Fraction = Fraction(0)) -> Window:
        """The window of x where this is that of ``times`` · x + ``plus``; no rounding is kept."""
        ends = [None if end is None else (end - plus) / times for end in (self.low, self.high)]
        return Window(*(ends if times > 0 else reversed(ends)))

    @property
    def mirrored(self) -> Window:
        """The window of a value whose negative has this one."""
        return replace(self.before(Fraction(-1)), step=self.step)

    @property
    def both_ways(self) -> Window:
        """The window of a value whose absolute value has this one."""
        low = None if self.high is None else -max(self.high, Fraction(0))
        return Window(low, None if low is None else -low, self.step)


OPEN = Window()
"""Any number, as it is."""


class UnknownEnds(ValueError):
    """Nothing bounds a column."""


class UnknownGrid(ValueError):
    """Nothing says to which multiples a column is rounded."""


def declared_ends(column: Column) -> tuple[Fraction, Fraction] | None:
    """Between what the column's numbers lie by the owner's word or by the schema."""
    if column.bounds is not None:
        return Fraction(column.bounds.low), Fraction(column.bounds.high)
    match column.domain:
        case Listed(values=values):
            held = values
        case Range(low=low, high=high):
            held = (low, high)
        case _:
            return None
    numbers = [Fraction(value) for value in held if isinstance(value, int | Decimal)]
    truths = any(isinstance(value, bool) for value in held)
    if truths or not numbers or len(numbers) < len(held):
        return None
    return min(numbers), max(numbers)


def bounded_column(column: Column, window: Window, numbers: WholeNumbers) -> BoundedValue:
    """The column, which holds numbers, as whole numbers between its ends."""
    here = exp.column(column.name, quoted=True)
    nulls: tuple[exp.Expr, ...] = (here,) if column.nullable else ()
    scale = _SCALED.fullmatch(column.type.name.lower())
    if column.type.family is Family.INTEGER:
        own = _integers(column)
        held = own if numbers.held else None
        low, high = _ends(column, window, Fraction(1), exact=True, held=held)
        whole = numbers.cast(here)
        if own is None or low > own[0] or high < own[1]:
            whole = _clamped(whole, numbers.literal(low), numbers.literal(high))
        between = _in_64_bits(here, own) if numbers.wide and own is not None else None
        return BoundedValue(whole, low, high, nulls=nulls, between=between)
    if column.type.family is Family.DECIMAL and scale is not None:
        return _scaled(column, window, int(scale[1]), int(scale[2]), nulls, numbers)
    places = column.type.places
    exact = places is not None and window.step is None
    step = window.step or (Fraction(1, 10**places) if places is not None else _grid(column, window))
    held = (-_UNENDING, _UNENDING) if numbers.held else None
    low, high = _ends(column, window, step, exact=exact, held=held)
    write = _decimal_steps if column.type.family is Family.DECIMAL else _double_steps
    tree = write(here, low, high, step, numbers)
    return BoundedValue(tree, low, high, step, nulls, whole=False)


def _integers(column: Column) -> tuple[int, int] | None:
    """The first and the last value of a type of whole numbers, if these are known."""
    described = values_of(column.type)
    if described.first is None or described.last is None or described.last > _LARGEST_INTEGER:
        return None
    return int(described.first), int(described.last)


def _ends(
    column: Column,
    window: Window,
    unit: Fraction,
    *,
    exact: bool,
    held: tuple[int, int] | None = None,
) -> tuple[int, int]:
    """The ends in units. Declared ones that no value of an exact type equals lie inside them.

    Those of the window lie outside: what the text does to the value is done to it afterwards.
    ``held``: those of the type, which serve where nothing is declared.
    """
    wide_low = None if window.low is None else floor(window.low / unit)
    wide_high = None if window.high is None else ceil(window.high / unit)
    declared = declared_ends(column)
    if declared is not None:
        low, high = ceil(declared[0] / unit), floor(declared[1] / unit)
        if not exact or low > high:
            low, high = floor(declared[0] / unit), ceil(declared[1] / unit)
    elif held is not None:
        low, high = held
    elif wide_low is None or wide_high is None:
        raise UnknownEnds
    else:
        # A text such as greatest(least(x, 0), 5) asks for ends in the other order.
        return min(wide_low, wide_high), max(wide_low, wide_high)

    def within(end: int) -> int:
        end = end if wide_high is None else min(end, wide_high)
        return end if wide_low is None else max(end, wide_low)

    low, high = within(low), within(high)
    return (low, high) if held is None else held_ends(low, high, unit)


def _grid(column: Column, window: Window) -> Fraction:
    if column.bounds is not None and column.bounds.grid is not None:
        return Fraction(column.bounds.grid)
    if column.type.family is Family.FLOAT:
        raise UnknownGrid
    tiny = Fraction(1, 10**40)
    largest = max(abs(end) for end in _ends(column, window, tiny, exact=True)) * tiny
    place = 0
    while largest > Fraction(10) ** place:
        place += 1
    while largest and largest <= Fraction(10) ** (place - 1):
        place -= 1
    return Fraction(10) ** (place - _DIGITS)


def _scaled(
    column: Column,
    window: Window,
    width: int,
    scale: int,
    nulls: tuple[exp.Expr, ...],
    numbers: WholeNumbers,
) -> BoundedValue:
    """A decimal of known scale, exactly. Its own type compares with its ends without a failure."""
    unit = Fraction(1, 10**scale)
    here, last = exp.column(column.name, quoted=True), 10**width - 1
    if scale > 18:
        raise TooLarge
    held = (-last, last) if numbers.held else None
    low, high = _ends(column, window, unit, exact=True, held=held)
    if low > last or high < -last:
        value = low if low > last else high
        tree = _unless_null(here, numbers.literal(value))
        return BoundedValue(tree, value, value, unit, nulls, whole=False)
    low, high = max(low, -last), min(high, last)

    def end(units: int) -> exp.Expr:
        return exp.Cast(this=_decimal(units * unit), to=data_type(column.type))

    # A product of at most 18 digits is one of machine words, ten times as fast as one of 38.
    # Numbers between the ends may have fewer digits than their type, but a cast takes time, too.
    digits = max(len(str(max(abs(low), abs(high)))), scale + 1)
    narrow = digits + scale + 1 <= _QUICK_DIGITS

    def between(least: int, most: int) -> exp.Expr:
        tree: exp.Expr = _clamped(here, end(least), end(most))
        if width + scale + 1 > _QUICK_DIGITS:
            kind = _decimal_type(scale, digits) if narrow else _decimal_type(scale)
            tree = exp.Cast(this=tree, to=kind)
        if scale:
            factor = _decimal_type(0, scale + 1) if narrow else _decimal_type(0)
            times = exp.Cast(this=_decimal(Fraction(10**scale)), to=factor)
            tree = exp.Mul(this=tree, expression=times)
        return tree

    return BoundedValue(
        numbers.cast(_rounded(between(low, high))),
        low,
        high,
        unit,
        nulls,
        whole=False,
        between=between if numbers.wide and narrow else None,
        decimal=True,
    )


def _in_64_bits(here: exp.Expr, own: tuple[int, int]) -> Callable[[int, int], exp.Expr] | None:
    """A column of whole numbers of at most 64 bits, held between two ends."""
    if own[0] < -(2**63) or own[1] >= 2**63:
        return None

    def between(least: int, most: int) -> exp.Expr:
        def end(value: int) -> exp.Expr:
            return exp.Cast(this=_decimal(Fraction(value)), to=exp.DataType.build("bigint"))

        value = exp.Cast(this=here.copy(), to=exp.DataType.build("bigint"))
        if least <= own[0] and most >= own[1]:
            return value
        return _clamped(value, end(least), end(most))

    return between


def _decimal_steps(
    here: exp.Expr, low: int, high: int, step: Fraction, numbers: WholeNumbers
) -> exp.Expr:
    """A decimal of any scale, rounded to steps."""

    def end(units: int) -> exp.Expr:
        return exp.Cast(this=_decimal(units * step), to=exp.DataType.build("decimal"))

    tree: exp.Expr = _clamped(here, end(low), end(high))
    if step.denominator > 1:
        tree = exp.Mul(this=tree, expression=_decimal(Fraction(step.denominator)))
    if step.numerator > 1:
        divisor = exp.Cast(
            this=_decimal(Fraction(step.numerator)), to=exp.DataType.build("decimal")
        )
        tree = exp.Div(this=tree, expression=divisor, typed=True)
    return numbers.cast(_rounded(tree))


def _double_steps(
    here: exp.Expr, low: int, high: int, step: Fraction, numbers: WholeNumbers
) -> exp.Expr:
    """A floating-point number, rounded to steps.

    PostgreSQL fails where a quotient is too small for a double, so what is near 0 is 0 before.
    The quotient itself is rounded: the ends are held once more as whole numbers.
    """
    largest = max(abs(low), abs(high), 1) * step
    if largest > _LARGEST_DOUBLE or step < 1 / _LARGEST_DOUBLE:
        raise TooLarge

    def double(value: Fraction) -> exp.Expr:
        literal = exp.Literal.number(repr(float(abs(value))))
        tree = exp.Paren(this=exp.Neg(this=literal)) if value < 0 else literal
        return exp.Cast(this=tree, to=exp.DataType.build("double"))

    value = exp.Cast(this=here, to=exp.DataType.build("double"))
    inner = _clamped(value, double(low * step), double(high * step))
    near = exp.And(
        this=exp.GT(this=value.copy(), expression=double(-step / 4)),
        expression=exp.LT(this=value.copy(), expression=double(step / 4)),
    )
    inner.append("ifs", exp.If(this=near, true=double(Fraction(0))))
    units = _rounded(exp.Div(this=inner, expression=double(step), typed=True))
    lower = exp.Greatest(
        this=numbers.cast(units), expressions=[numbers.literal(low)], ignore_nulls=True
    )
    held = exp.Least(this=lower, expressions=[numbers.literal(high)], ignore_nulls=True)
    return _unless_null(here, held)


def _clamped(value: exp.Expr, low: exp.Expr, high: exp.Expr) -> exp.Case:
    """NULL stays NULL; NaN is above the high end.

    An end itself is left as it is: an engine that knows a column to lie between the ends, as its
    bounds mostly say, has nothing to compare then.
    """
    above = exp.If(this=exp.GT(this=value.copy(), expression=high), true=high.copy())
    below = exp.If(this=exp.LT(this=value.copy(), expression=low), true=low.copy())
    return exp.Case(ifs=[above, below], default=value.copy())


def _unless_null(here: exp.Expr, tree: exp.Expr) -> exp.Expr:
    missing = exp.Is(this=here.copy(), expression=exp.Null())
    return exp.Case(ifs=[exp.If(this=missing, true=exp.Null())], default=tree)


def _rounded(tree: exp.Expr) -> exp.Expr:
    """A cast to an integer type rounds to the nearest one; no function can be hidden by another.

    In Spark it cuts off, so that the mark is needed.
    """
    cast = exp.Cast(this=tree, to=exp.DataType.build("bigint"))
    cast.meta[ROUNDS] = True
    return cast


def _decimal(value: Fraction) -> exp.Expr:
    """A finite decimal with all its digits and no exponent, which DuckDB would read as a double."""
    places = 0
    while (value * 10**places).denominator > 1:
        places += 1
    digits = str(int(abs(value) * 10**places)).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    literal = exp.Literal.number(text)
    return exp.Paren(this=exp.Neg(this=literal)) if value < 0 else literal


def _decimal_type(scale: int, width: int = _WIDEST) -> exp.DataType:
    parameters = [exp.DataTypeParam(this=exp.Literal.number(str(part))) for part in (width, scale)]
    return exp.DataType(this=exp.DataType.Type.DECIMAL, expressions=parameters)
