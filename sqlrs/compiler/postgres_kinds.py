"""What kind of value an expression of PostgreSQL's has, and the same expression in DuckDB.

Both read most expressions alike. Where they do not, the kinds of the arguments say what to write
instead; where nothing gives the same value, the expression is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from sqlrs.compiler.aggregates import averaged
from sqlrs.compiler.source import Source
from sqlrs.compiler.value_kinds import TYPES, ValueKind, kind_of_literal

_WHOLE = (ValueKind.INTEGER, ValueKind.BIGINT)
_WRITTEN_AS_TEXT = (
    ValueKind.TEXT,
    ValueKind.INTEGER,
    ValueKind.BIGINT,
    ValueKind.DATE,
    ValueKind.UUID,
    ValueKind.UNKNOWN,
)
_FIELDS = frozenset(
    """
    YEAR MONTH DAY HOUR MINUTE QUARTER DOW ISODOW DOY WEEK ISOYEAR
    """.split()  # noqa: SIM905
)
_UNITS = frozenset(
    """
    YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND DECADE
    """.split()  # noqa: SIM905
)
_INTERVALS = frozenset({"YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"})
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", re.ASCII)
_SMALL = re.compile(r"\d{1,4}", re.ASCII)
# What a function of one number gives for whole numbers and doubles; for numerics it is a quotient.
_DOUBLES = (exp.Sqrt, exp.Cbrt, exp.Exp, exp.Ln, exp.Pow)
_ANGLES = (
    *(exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Atan2),
    *(exp.Degrees, exp.Radians, exp.Pi),
)
_ROUNDING = (exp.Round, exp.Trunc, exp.Ceil, exp.Floor)
_OF_TEXTS: dict[type[exp.Expr], ValueKind] = {
    **dict.fromkeys((exp.Lower, exp.Upper, exp.Reverse, exp.Trim, exp.Replace), ValueKind.TEXT),
    **dict.fromkeys((exp.Length, exp.StrPosition), ValueKind.INTEGER),
    exp.StartsWith: ValueKind.BOOLEAN,
}
_COUNTED: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Left: ("expression",),
    exp.Right: ("expression",),
    exp.Substring: ("start", "length"),
    exp.SplitPart: ("part_index",),
}
_COMPARED = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Between, exp.In),
)
_DIFFERS = "PostgreSQL and DuckDB, where released rows are, read this differently"


class Expressions:
    """Finds kinds from the leaves up, and rewrites what DuckDB reads differently.

    ``column`` resolves a column in place; ``query`` writes a subquery and gives its first kind.
    """

    def __init__(
        self,
        source: Source,
        column: Callable[[exp.Column], ValueKind],
        query: Callable[[exp.Query], ValueKind],
    ) -> None:
        self._source = source
        self._column = column
        self._query = query

    def kind(self, node: exp.Expr) -> ValueKind:
        """The kind of the expression, which is rewritten in its place."""
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Subquery | exp.Exists):
            found = self._query(node.this)
            return ValueKind.BOOLEAN if isinstance(node, exp.Exists) else found
        if isinstance(node, exp.Case):
            is_average = averaged(node) is not None
            found = self._chosen(node)
            return ValueKind.QUOTIENT if is_average else found
        skipped = exp.Identifier | exp.DataType | exp.Var | exp.Star | exp.WindowSpec
        parts = [part for part in node.iter_expressions() if not isinstance(part, skipped)]
        return self._whole(node, [self.kind(part) for part in parts])

    def _whole(self, node: exp.Expr, kinds: list[ValueKind]) -> ValueKind:
        match node:
            case exp.Literal():
                return kind_of_literal(node)
            case exp.Null():
                return ValueKind.UNKNOWN
            case exp.Boolean() | exp.And() | exp.Or() | exp.Not() | exp.Is():
                return ValueKind.BOOLEAN
            case exp.Paren() | exp.Ordered() | exp.Where() | exp.Distinct():
                return kinds[0]
            case exp.Order():
                return ValueKind.UNKNOWN
            case exp.Interval():
                return self._interval(node)
            case exp.Like() | exp.ILike():
                return self._pattern(node, kinds)
            case _ if isinstance(node, _COMPARED):
                self._meet(node, kinds)
                return ValueKind.BOOLEAN
            case exp.Filter() | exp.Window():
                return kinds[0]
            case exp.Cast():
                return self._cast(node, kinds[0])
            case exp.Neg():
                return self._require(node, kinds, kinds[0].number, kinds[0])
            case exp.Div():
                return self._quotient(node, kinds)
            case exp.Add() | exp.Sub():
                return self._sum_of_moments(node, kinds) or self._arithmetic(node, kinds)
            case exp.Mul() | exp.Mod():
                return self._arithmetic(node, kinds)
            case exp.DPipe() | exp.Concat():
                fits = all(kind in _WRITTEN_AS_TEXT for kind in kinds)
                return self._require(node, kinds, fits, ValueKind.TEXT)
        return self._call(node, kinds)

    def _call(self, node: exp.Expr, kinds: list[ValueKind]) -> ValueKind:
        first = kinds[0] if kinds else ValueKind.UNKNOWN
        match node:
            case exp.Count() | exp.RowNumber() | exp.Rank() | exp.DenseRank():
                return ValueKind.BIGINT
            case exp.Sum():
                added = (
                    ValueKind.BIGINT
                    if first is ValueKind.INTEGER
                    else max(first, ValueKind.NUMERIC)
                )
                return self._require(node, kinds, first.number, added)
            case exp.Avg():
                mean = ValueKind.DOUBLE if first is ValueKind.DOUBLE else ValueKind.QUOTIENT
                return self._require(node, kinds, first.number, mean)
            case exp.Min() | exp.Max():
                return first
            case exp.Lag() | exp.Lead():
                default = node.args.get("default")
                return self._meet(node, [first, kinds[-1]]) if default is not None else first
            case exp.Coalesce() | exp.Greatest() | exp.Least():
                return self._meet(node, kinds)
            case exp.Nullif():
                # The value is compared as what both become together, and stays that.
                together = self._meet(node, kinds)
                return first if together in _WHOLE else together
            case exp.Abs():
                return self._require(node, kinds, first.number, first)
            case exp.Sign():
                kind = (
                    first if first in (ValueKind.NUMERIC, ValueKind.QUOTIENT) else ValueKind.DOUBLE
                )
                return self._require(node, kinds, first.number, kind)
            case exp.Extract():
                fits = node.this.name.upper() in _FIELDS
                fits = fits and first in (ValueKind.DATE, ValueKind.TIMESTAMP)
                return self._require(node, kinds, fits, ValueKind.NUMERIC)
            case exp.TimestampTrunc():
                return self._truncated(node, first)
        if isinstance(node, _ROUNDING):
            return self._rounded(node, kinds)
        if isinstance(node, _DOUBLES):
            exact = ValueKind.NUMERIC in kinds or ValueKind.QUOTIENT in kinds
            kind = (
                ValueKind.QUOTIENT if exact and ValueKind.DOUBLE not in kinds else ValueKind.DOUBLE
            )
            return self._require(node, kinds, all(k.number for k in kinds), kind)
        if isinstance(node, _ANGLES):
            return self._require(node, kinds, all(k.number for k in kinds), ValueKind.DOUBLE)
        if type(node) in _OF_TEXTS:
            fits = all(k in (ValueKind.TEXT, ValueKind.UNKNOWN) for k in kinds)
            return self._require(node, kinds, fits, _OF_TEXTS[type(node)])
        if type(node) in _COUNTED:
            counts = [(name, node.args.get(name)) for name in _COUNTED[type(node)]]
            fits = first in (ValueKind.TEXT, ValueKind.UNKNOWN)
            for name, count in counts:
                # Positions are counted from 1; below that the two differ.
                least = 1 if name in ("start", "part_index") else 0
                fits = fits and (count is None or _is_small(count, least))
            return self._require(node, kinds, fits, ValueKind.TEXT)
        raise self._source.refusal("unknown_function", node, _DIFFERS)

    def _chosen(self, node: exp.Case) -> ValueKind:
        branches, other = node.args["ifs"], node.args.get("default")
        tested = [self.kind(branch.this) for branch in branches]
        if node.this is not None:
            self._meet(node, [self.kind(node.this), *tested])
        values = [self.kind(branch.args["true"]) for branch in branches]
        return self._meet(node, [*values, *([self.kind(other)] if other is not None else [])])

    def _meet(self, node: exp.Expr, kinds: list[ValueKind]) -> ValueKind:
        """The kind that all of these become together."""
        known = {kind for kind in kinds if kind is not ValueKind.UNKNOWN}
        moments = known == {ValueKind.DATE, ValueKind.TIMESTAMP}
        fits = len(known) < 2 or moments or all(kind.number for kind in known)
        return self._require(node, kinds, fits, max(known, default=ValueKind.UNKNOWN))

    def _arithmetic(self, node: exp.Expr, kinds: list[ValueKind]) -> ValueKind:
        numbers = [kind for kind in kinds if kind is not ValueKind.UNKNOWN]
        fits = bool(numbers) and all(kind.number for kind in numbers)
        kind = max(numbers, default=ValueKind.UNKNOWN)
        if isinstance(node, exp.Mod):
            fits = fits and kind in (*_WHOLE, ValueKind.NUMERIC)
        return self._require(node, kinds, fits, kind)

    def _sum_of_moments(self, node: exp.Expr, kinds: list[ValueKind]) -> ValueKind | None:
        minus = isinstance(node, exp.Sub)
        match kinds:
            case [ValueKind.DATE, ValueKind.INTEGER | ValueKind.BIGINT]:
                return ValueKind.DATE
            case [ValueKind.DATE, ValueKind.DATE] if minus:
                return ValueKind.INTEGER
            case [ValueKind.DATE | ValueKind.TIMESTAMP, ValueKind.INTERVAL]:
                return ValueKind.TIMESTAMP
        return None

    def _quotient(self, node: exp.Div, kinds: list[ValueKind]) -> ValueKind:
        kind = self._arithmetic(node, kinds)
        if kind in _WHOLE:
            sides = (exp.paren(node.this), exp.paren(node.expression))
            node.replace(exp.paren(exp.IntDiv(this=sides[0], expression=sides[1])))
            return kind
        node.set("typed", False)
        return max(kind, ValueKind.QUOTIENT)

    def _rounded(self, node: exp.Expr, kinds: list[ValueKind]) -> ValueKind:
        first = kinds[0]
        digits = node.args.get("decimals")
        self._require(node, kinds, all(kind.number for kind in kinds), first)
        if digits is not None and not _is_small(digits.this if _negated(digits) else digits):
            raise self._source.refusal("unsupported", node, "write the number of digits itself")
        if first is ValueKind.QUOTIENT:
            node.set("this", _exact(node.this))
            return ValueKind.NUMERIC
        if first is ValueKind.DOUBLE and isinstance(node, exp.Round) and digits is None:
            # Halves go to the even number there.
            even = exp.Anonymous(
                this="round_even", expressions=[node.this.copy(), exp.Literal.number(0)]
            )
            node.replace(even)
        if first in _WHOLE:
            return ValueKind.NUMERIC if digits is not None else ValueKind.DOUBLE
        return first

    def _truncated(self, node: exp.TimestampTrunc, first: ValueKind) -> ValueKind:
        fits = node.unit is not None and node.unit.name.upper() in _UNITS
        fits = fits and first in (ValueKind.DATE, ValueKind.TIMESTAMP)
        self._require(node, [first], fits, first)
        if first is ValueKind.DATE:
            node.set("this", exp.cast(node.this.copy(), "timestamp"))
        return ValueKind.TIMESTAMP

    def _interval(self, node: exp.Interval) -> ValueKind:
        unit = node.args.get("unit")
        fits = isinstance(node.this, exp.Literal) and bool(_SMALL.fullmatch(node.name))
        fits = fits and isinstance(unit, exp.Var) and unit.name.upper().rstrip("S") in _INTERVALS
        return self._require(node, [], fits, ValueKind.INTERVAL)

    def _pattern(self, node: exp.Expr, kinds: list[ValueKind]) -> ValueKind:
        """The backslash escapes in PostgreSQL alone."""
        pattern = node.expression
        plain = isinstance(pattern, exp.Literal) and "\\" not in str(pattern.this)
        fits = plain and kinds[0] in (ValueKind.TEXT, ValueKind.UNKNOWN)
        return self._require(node, kinds, fits, ValueKind.BOOLEAN)

    def _cast(self, node: exp.Cast, given: ValueKind) -> ValueKind:
        target = TYPES.get(node.to.this)
        value = node.this.unnest()
        literal = isinstance(value, exp.Literal) and value.is_string
        if target is None or (node.to.expressions and target is not ValueKind.NUMERIC):
            raise self._source.refusal("unsupported", node, _DIFFERS)
        if literal or given is ValueKind.UNKNOWN:
            return self._read(node, str(value.this) if literal else None, target)
        fits = given is target or (given, target) in _CASTS or (given.number and target.number)
        self._require(node, [given], fits, target)
        if given is ValueKind.QUOTIENT and (target in _WHOLE or node.to.expressions):
            node.set("this", _exact(node.this))
        elif target is ValueKind.NUMERIC and not node.to.expressions:
            # DuckDB's DECIMAL alone has three digits behind the point.
            if given in _WHOLE:
                node.set("to", exp.DataType.build("HUGEINT", "duckdb"))
            elif given is ValueKind.NUMERIC:
                node.replace(node.this)
            else:
                node.set("to", exp.DataType.build("DOUBLE", "duckdb"))
                return ValueKind.QUOTIENT
        return target

    def _read(self, node: exp.Cast, text: str | None, target: ValueKind) -> ValueKind:
        """A cast of a text that stands there, or of NULL."""
        if text is None or target is ValueKind.TEXT:
            return target
        if target.number:
            fits = _NUMBER.fullmatch(text.strip()) is not None
            fits = fits and (target not in _WHOLE or "." not in text)
            self._require(node, [ValueKind.UNKNOWN], fits, target)
            if target is ValueKind.NUMERIC and not node.to.expressions:
                digits = len(text.strip().partition(".")[2])
                node.set("to", exp.DataType.build(f"DECIMAL(38, {digits})", "duckdb"))
            return target
        if target in (ValueKind.DATE, ValueKind.TIMESTAMP):
            fits = _MOMENT.fullmatch(text) is not None
            return self._require(node, [ValueKind.UNKNOWN], fits, target)
        return target

    def _require(
        self, node: exp.Expr, kinds: list[ValueKind], fits: bool, kind: ValueKind
    ) -> ValueKind:
        if not fits:
            raise self._source.refusal("unsupported", node, _DIFFERS)
        return kind


_CASTS = {
    *((given, ValueKind.TEXT) for given in _WRITTEN_AS_TEXT),
    (ValueKind.BOOLEAN, ValueKind.TEXT),
    (ValueKind.BOOLEAN, ValueKind.INTEGER),
    (ValueKind.INTEGER, ValueKind.BOOLEAN),
    (ValueKind.DATE, ValueKind.TIMESTAMP),
    (ValueKind.TIMESTAMP, ValueKind.DATE),
}


def _is_small(node: exp.Expr, least: int = 0) -> bool:
    plain = isinstance(node, exp.Literal) and not node.is_string
    found = plain and _SMALL.fullmatch(str(node.this)) is not None
    return found and int(str(node.this)) >= least


def _negated(node: exp.Expr) -> bool:
    return isinstance(node, exp.Neg)


def _exact(quotient: exp.Expr) -> exp.Expr:
    """A quotient in decimal digits: 0.145 is no double, and would be rounded down."""
    return exp.cast(quotient.copy(), exp.DataType.build("DECIMAL(38, 12)", "duckdb"))
