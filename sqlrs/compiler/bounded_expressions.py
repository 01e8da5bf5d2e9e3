"""An expression over one row of one table -> whole numbers between ends that follow from it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.compiler.bounded_columns import OPEN, UnknownEnds, UnknownGrid, Window, bounded_column
from sqlrs.compiler.bounded_values import MOST, BoundedValue, TooLarge, WholeNumbers, nothing
from sqlrs.compiler.conditions import never_fails, over_bare_columns, references
from sqlrs.compiler.flat import FlatQuery, operand
from sqlrs.compiler.grammar import CONDITIONS
from sqlrs.dialects import dialect_named
from sqlrs.errors import QueryRefused
from sqlrs.values import NUMBERS

_TRUTHS = (*CONDITIONS, exp.And, exp.Or, exp.Not, exp.Boolean)
# What no bounded sum can use, and what Python reads in no time.
_LARGEST_EXPONENT = 40
_ANSWERED = (
    "numbers, columns, + - * and / by a number, abs, least, greatest, coalesce, nullif, round and "
    "CASE are summed"
)


def branches(
    case: exp.Case | exp.If | exp.Nullif,
) -> tuple[list[tuple[exp.Expr, exp.Expr]], exp.Expr]:
    """The conditions of CASE with their values, and its ELSE.

    CASE x WHEN y asks for x = y, and so does nullif(x, y).
    """
    if isinstance(case, exp.If):
        return [(case.this, case.args["true"])], case.args.get("false") or exp.Null()
    if isinstance(case, exp.Nullif):
        return [(_equal(case.this, case.expression), exp.Null())], case.this
    tested = case.this
    pairs = []
    for branch in case.args["ifs"]:
        condition = branch.this
        if tested is not None:
            condition = _equal(tested, condition)
        pairs.append((condition, branch.args["true"]))
    return pairs, case.args.get("default") or exp.Null()


def _equal(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.EQ(this=operand(left), expression=operand(right))


def aliases(node: exp.Expr) -> frozenset[str]:
    """The tables that an expression reads."""
    return frozenset(alias for alias, _ in references(node))


class BoundedExpressions:
    """The expressions of one query, each over one of its tables."""

    def __init__(self, flat: FlatQuery, catalog: Catalog) -> None:
        self.source = flat.source
        self._dialect = dialect_named(catalog.dialect)
        self._tables: dict[str, Table] = {o.alias: o.table for o in flat.occurrences}
        self.numbers = WholeNumbers(
            self._dialect.whole_number_type(), held=catalog.unit is not None
        )

    def value(self, node: exp.Expr, window: Window = OPEN) -> BoundedValue:
        """The value of an expression over one table, wherever it lies within the window."""
        try:
            return self._value(node.unnest(), window)
        except TooLarge:
            raise self.too_large(node) from None

    def condition(self, condition: exp.Expr) -> exp.Expr:
        """A condition as written, over bare columns; it must have an answer for every row."""
        types = {self._column(column).type for column in condition.find_all(exp.Column)}
        if any(kind.family is Family.OPAQUE for kind in types) or not never_fails(
            condition, types, self._type_of, self._dialect
        ):
            raise self.source.refusal(
                "unsupported",
                condition,
                "this condition can fail on some rows, which a sum must not",
                "compare columns with constants in it, without arithmetic and casts",
            )
        return over_bare_columns(condition)

    def too_large(self, node: exp.Expr) -> QueryRefused:
        """The refusal of numbers beyond what is summed."""
        return self.source.refusal(
            "unknown_bounds",
            node,
            f"what is summed here can exceed {MOST:.0e} units of its last decimal place",
            "bound it more tightly, round it to fewer places, or let the owner declare less",
        )

    def _value(self, node: exp.Expr, window: Window) -> BoundedValue:
        numbers = self.numbers
        match node:
            case exp.Null():
                return nothing()
            case exp.Literal() if not node.is_string:
                return self._literal(node)
            case exp.Column():
                return self._bounded(node, window)
            case exp.Neg():
                return numbers.negated(self.value(node.this, window.mirrored))
            case exp.Add() | exp.Sub():
                return self._sum(node, window)
            case exp.Mul():
                return self._product(node, window)
            case exp.Div():
                return self._quotient(node, window)
            case exp.Abs():
                return numbers.absolute(self.value(node.this, window.both_ways))
            case exp.Least() | exp.Greatest():
                return self._extreme(node, window)
            case exp.Coalesce():
                parts = [node.this, *node.expressions]
                return numbers.coalesced([self.value(part, window) for part in parts])
            case exp.Case() | exp.If() | exp.Nullif():
                pairs, last = branches(node)
                values = [self.value(value, window) for _, value in pairs]
                conditions = [self.condition(condition) for condition, _ in pairs]
                return numbers.chosen(conditions, values, self.value(last, window))
            case exp.Cast():
                return self._cast(node, window)
            case exp.Round() if not node.args.get("truncate"):
                return self._round(node, window)
        raise self.source.refusal(
            "unknown_bounds", node, "nothing says between what the values of this lie", _ANSWERED
        )

    def _literal(self, node: exp.Literal) -> BoundedValue:
        try:
            number = Decimal(str(node.this))
        except InvalidOperation:
            raise self.source.refusal("unsupported", node) from None
        if number and not -_LARGEST_EXPONENT <= number.adjusted() <= _LARGEST_EXPONENT:
            raise TooLarge
        if len(number.as_tuple().digits) > _LARGEST_EXPONENT:
            raise TooLarge
        return self.numbers.constant(Fraction(number), whole=bool(node.is_int))

    def _bounded(self, node: exp.Column, window: Window) -> BoundedValue:
        column = self._column(node)
        name = f"{self._tables[node.table].name}.{column.name}"
        if column.type.family not in NUMBERS:
            hint = "sum numbers; of a truth write CASE WHEN … THEN 1 ELSE 0 END"
            raise self.source.refusal("unsupported", node, f"{name} holds no numbers", hint)
        try:
            return bounded_column(column, window, self.numbers)
        except UnknownEnds:
            raise self.source.refusal(
                "unknown_bounds",
                node,
                f"nothing says between what the values of {name} lie",
                f"write least(greatest({column.name}, low), high) with two numbers; or the owner "
                f'declares [bounds] "{name}" = [low, high], or a CHECK of the table says it',
            ) from None
        except UnknownGrid:
            raise self.source.refusal(
                "unknown_bounds",
                node,
                f"nothing says to which step the floating-point values of {name} are rounded",
                f"write round({column.name}, 2); or the owner declares it: "
                f'[bounds] "{name}" = [low, high, step]',
            ) from None

    def _sum(self, node: exp.Add | exp.Sub, window: Window) -> BoundedValue:
        numbers, minus = self.numbers, isinstance(node, exp.Sub)
        left, right = node.this, node.expression
        sign = Fraction(-1 if minus else 1)
        if not aliases(right):
            two = self.value(right)
            shift = sign * two.number if two.constant else Fraction(0)
            one = self.value(left, window.before(Fraction(1), shift) if two.constant else OPEN)
        elif not aliases(left):
            one = self.value(left)
            two = self.value(right, window.before(sign, one.number) if one.constant else OPEN)
        else:
            one, two = self.value(left), self.value(right)
        return numbers.added(one, numbers.negated(two) if minus else two)

    def _product(self, node: exp.Mul, window: Window) -> BoundedValue:
        left, right = node.this, node.expression
        if aliases(left) and not aliases(right):
            left, right = right, left
        one = self.value(left)
        scaled = one.constant and one.number != 0
        return self.numbers.multiplied(
            one, self.value(right, window.before(one.number) if scaled else OPEN)
        )

    def _quotient(self, node: exp.Div, window: Window) -> BoundedValue:
        divisor = self.value(node.expression) if not aliases(node.expression) else nothing()
        if not divisor.constant or divisor.number == 0:
            raise self.source.refusal(
                "unsupported",
                node,
                "only a division by a number other than 0 is summed",
                "multiply, or sum the dividend and divide the sum",
            )
        dividend = self.value(node.this, window.before(1 / divisor.number))
        self.check_division(node, whole=dividend.whole and divisor.whole)
        return self.numbers.multiplied(dividend, self.numbers.constant(1 / divisor.number))

    def check_division(self, node: exp.Div, *, whole: bool) -> None:
        """Refuse a division of integers that drops the rest."""
        if node.args.get("typed") and whole:
            raise self.source.refusal(
                "unsupported",
                node,
                "this division of integers drops the rest of each row",
                "divide by a decimal such as 100.0, or divide the sum",
            )

    def _extreme(self, node: exp.Least | exp.Greatest, window: Window) -> BoundedValue:
        parts = [node.this, *node.expressions]
        kind = exp.Least if isinstance(node, exp.Least) else exp.Greatest
        cut = Window.at_most if kind is exp.Least else Window.at_least
        fixed = {place: self.value(p) for place, p in enumerate(parts) if not aliases(p)}
        for value in fixed.values():
            window = cut(window, value.number) if value.constant else window
        # What reads no column is not asked twice: such calls may be nested deeply.
        values = [
            fixed[place] if place in fixed else self.value(part, window)
            for place, part in enumerate(parts)
        ]
        return self.numbers.extreme(kind, values)

    def _cast(self, node: exp.Cast, window: Window) -> BoundedValue:
        target, inner = node.to, node.this.unnest()
        if target.this in exp.DataType.INTEGER_TYPES:
            if self._is_truth(inner):
                return self.numbers.truth(self.condition(inner))
            value = self.value(inner, window)
            if value.whole:
                return value
        elif target.this is exp.DataType.Type.DECIMAL:
            kept = self._decimal(inner, target, window)
            if kept is not None:
                return kept
        elif target.this is exp.DataType.Type.DOUBLE:
            return self._inexact(self.value(inner, window))
        raise self.source.refusal(
            "unsupported",
            node,
            "this cast may change what is summed",
            "leave it out; numbers are rounded with round(x, places)",
        )

    def _decimal(
        self, inner: exp.Expr, target: exp.DataType, window: Window
    ) -> BoundedValue | None:
        """A cast to a decimal type, or None if its scale is too small for the value."""
        if not target.expressions:
            return self._inexact(self.value(inner, window))
        places = int(target.expressions[1].name) if len(target.expressions) > 1 else 0
        value = self._stepped(inner, places, window)
        return None if value is None else self._inexact(value)

    def _round(self, node: exp.Round, window: Window) -> BoundedValue:
        decimals = node.args.get("decimals")
        places = self.value(decimals) if decimals is not None else self.numbers.constant(Fraction())
        if places.constant and places.number.denominator == 1 and 0 <= places.number <= 18:
            value = self._stepped(node.this, int(places.number), window)
            if value is not None:
                return value
        raise self.source.refusal(
            "unsupported",
            node,
            "this rounding is not understood in a sum",
            "round a column to the places that it has, or leave it out",
        )

    def _stepped(self, inner: exp.Expr, places: int, window: Window) -> BoundedValue | None:
        """A value that is rounded to places where it has a step of its own choice; else None."""
        step = Fraction(1, 10**places)
        value = self.value(inner, Window(window.low, window.high, step))
        kept = value.empty or (value.constant and (value.number / step).denominator == 1)
        return value if kept or (value.unit / step).denominator == 1 else None

    def _inexact(self, value: BoundedValue) -> BoundedValue:
        """The value where SQL no longer takes it for an integer."""
        return replace(value, whole=False)

    def _is_truth(self, node: exp.Expr) -> bool:
        if isinstance(node, exp.Column):
            return self._column(node).type.family is Family.BOOLEAN
        return isinstance(node, _TRUTHS)

    def _column(self, node: exp.Expr) -> Column:
        return self._tables[node.args["table"].name].column(node.name)

    def _type_of(self, node: exp.Expr) -> ColumnType:
        return self._column(node).type
