"""Expressions with finitely many values, whatever the rows are: which values these can be."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from sqlglot import exp

from sqlrs.catalog import Family
from sqlrs.compiler import said
from sqlrs.compiler.buckets import buckets, steps_in
from sqlrs.compiler.column_values import RANGE, ColumnValues
from sqlrs.compiler.conditions import Reference, reference, references
from sqlrs.compiler.enumerated import (
    MOST_ENUMERATED,
    Enumerated,
    computed,
    constants,
    days,
    none,
    together,
    value_of,
    whole_numbers,
)
from sqlrs.compiler.grounds import Grounds, form, form_at, placed
from sqlrs.compiler.kinds import (
    BIGINT,
    is_truth,
    kind_of,
    may_fail,
    never_null_truth,
    part_of_moment,
    unit_asked_for,
)
from sqlrs.records import dataclass
from sqlrs.values import MOMENTS, NUMBERS, values_of

MOST_COMBINED = 100_000
"""No expression of several columns is evaluated on more combinations of their values."""

_MOST_PARTS = 50
_DAYS = {
    # The days on which a part of a date takes all of its values; 2004 has a week 53.
    "week": (date(2000, 1, 1), date(2004, 12, 31)),
    **dict.fromkeys(
        ("month", "day", "dow", "isodow", "quarter", "doy"), (date(2000, 1, 1), date(2000, 12, 31))
    ),
}
_CLOCKS = {
    "hour": [f"2000-01-01 {hour:02}:00:00" for hour in range(24)],
    "minute": [f"2000-01-01 00:{minute:02}:00" for minute in range(60)],
}
_WORDS = {
    "month": "12 months",
    "day": "31 days of a month",
    "dow": "7 days of a week",
    "isodow": "7 days of a week",
    "quarter": "4 quarters",
    "doy": "366 days of a year",
    "week": "53 weeks",
    "hour": "24 hours",
    "minute": "60 minutes",
}


@dataclass(frozen=True, eq=False)
class KnownValues:
    """What is known of expressions over the columns of one flat query."""

    grounds: Grounds
    columns: ColumnValues

    def of(self, expression: exp.Expr) -> Enumerated | None:
        """Every value that the expression can have in a result, None if that is not known."""
        tree = form(expression)
        if isinstance(tree, exp.Column):
            return self.columns.of(reference(tree))
        found = self._base(tree)
        if found is None or found.most == 0:
            return found
        return found.filtered(list(self.grounds.over({tree: value_of("d")})))

    def _base(self, tree: exp.Expr) -> Enumerated | None:
        kind = kind_of(tree, self.grounds.type_at)
        found = said.listed(self.grounds, {tree}, kind)
        if found is None and kind is not None and self.columns.counts:
            ends = said.bounded(self.grounds, {tree}, kind)
            found = said.enumerated(ends, kind, RANGE)
        return (
            found
            or self._chosen(tree, literals_only=True)
            or self._truth(tree)
            or self._over_columns(tree)
            or self._over_moments(tree)
            or self._rounded(tree)
            or self._part(tree)
            or self._remainder(tree)
            or self._chosen(tree, literals_only=False)
        )

    def _chosen(self, tree: exp.Expr, *, literals_only: bool) -> Enumerated | None:
        """CASE and its like: the values of all that it can choose from."""
        branches = _branches(tree)
        if branches is None:
            return None
        fixed = [one for one in branches if not one.find(exp.Column)]
        others = [one for one in branches if one.find(exp.Column)]
        if literals_only and others:
            return None
        words = f"{len(branches)} branches of {'CASE' if isinstance(tree, exp.Case) else tree.key}"
        if len(set(others)) > _MOST_PARTS:
            return None
        parts = [self.of(one) for one in dict.fromkeys(others)]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        # Typed constants first: a NULL takes on the type of what stands before it.
        ordered = sorted(dict.fromkeys(fixed), key=lambda one: isinstance(one, exp.Null))
        return together([*known, *([constants(ordered, words)] if ordered else [])])

    def _truth(self, tree: exp.Expr) -> Enumerated | None:
        if not is_truth(tree):
            return None
        values: list[exp.Expr] = [exp.true(), exp.false()]
        if not never_null_truth(tree, self.grounds.nullable):
            values.append(exp.Null())
        return constants(values, "true and false")

    def _over_columns(self, tree: exp.Expr) -> Enumerated | None:
        """The expression evaluated on all values of its columns, which stand in one table."""
        if may_fail(tree, self.grounds.type_at):
            return None
        leaders: dict[Reference, Enumerated | None] = {}
        leader_of: dict[Reference, Reference] = {}
        for place in references(tree):
            known = next((one for one in self.grounds.alike(place) if one in leaders), place)
            leader_of[place] = known
            if known not in leaders:
                leaders[known] = self.columns.of(known)
        values = [(place, one) for place, one in leaders.items() if one is not None]
        if not values or len(values) < len(leaders) or not self._in_one_table(list(leaders)):
            return None
        if any(one.most == 0 for _, one in values):
            return none(values[0][1].origin)
        if len(values) > 1 and not _few([one for _, one in values]):
            return None
        names = {place: f"d{i}" for i, (place, _) in enumerate(values)}
        places = {
            form_at(other): value_of(names[leader])
            for leader in leaders
            for other in self.grounds.alike(leader)
        }
        expression = placed(tree, places)
        if expression is None:
            return None
        spanning = [
            one
            for one in self.grounds.over(places)
            if len({column.table for column in one.find_all(exp.Column)}) > 1
        ]
        origin = "; ".join(dict.fromkeys(one.origin for _, one in values))
        over = [(names[place], one) for place, one in values]
        return computed(expression, over, spanning, f"computed from {origin}")

    def _in_one_table(self, places: Sequence[Reference]) -> bool:
        homes = [{alias for alias, _ in self.grounds.equal.members(place)} for place in places]
        return bool(set.intersection(*homes)) if homes else False

    def _over_moments(self, tree: exp.Expr) -> Enumerated | None:
        """An expression that only asks in which day, hour or minute a moment between two falls."""
        found = references(tree)
        if len(found) != 1 or not self.columns.counts or may_fail(tree, self.grounds.type_at):
            return None
        kind = self.grounds.type_at(found[0])
        unit = unit_asked_for(tree)
        if kind.family not in MOMENTS or unit is None:
            return None
        ends, origin = self.columns.ends(found[0]), "the range of the moments"
        values = said.touched(ends, unit, kind, origin)
        if values is None or values.most == 0:
            return values
        expression = placed(tree, {form_at(found[0]): value_of("d")})
        assert expression is not None
        if not self.columns.never_null(found[0]):
            values = values.with_null()
        return computed(expression, [("d", values)], (), values.origin)

    def _rounded(self, tree: exp.Expr) -> Enumerated | None:
        """An expression that reads a number only through its whole part, between two bounds."""
        step, found = steps_in(tree), references(tree)
        if step is None or len(found) != 1 or not self.columns.counts:
            return None
        kind = self.grounds.type_at(found[0])
        if kind.family not in NUMBERS or may_fail(tree, self.grounds.type_at):
            return None
        ends, dialect = self.columns.ends(found[0]), self.grounds.catalog.dialect
        values = buckets(step, form_at(found[0]), kind, ends, dialect, "the range of the number")
        if values is None:
            return None
        if not self.columns.never_null(found[0]):
            values = values.with_null()
        expression = placed(tree, {step: value_of("d")})
        assert expression is not None
        return computed(expression, [("d", values)], (), values.origin)

    def _part(self, tree: exp.Expr) -> Enumerated | None:
        """The month of a date and its like."""
        asked = part_of_moment(tree, self.grounds.type_at)
        if asked is None:
            return None
        part, argument, family = asked
        if part in _DAYS and self.columns.counts:
            values = days(*_DAYS[part], _WORDS[part], "timestamp")
        elif part in _CLOCKS and family is not Family.DATE:
            moments = [exp.cast(exp.Literal.string(one), "timestamp") for one in _CLOCKS[part]]
            values = constants(moments, _WORDS[part])
        else:
            return None
        expression = placed(tree, {form(argument): value_of("d")})
        assert expression is not None
        found = computed(expression, [("d", values)], (), _WORDS[part])
        # Infinite dates have no month either.
        column = argument.unnest()
        finite = (
            isinstance(column, exp.Column)
            and self.columns.ends(reference(column)).closed
            and self.columns.never_null(reference(column))
        )
        return found if finite else found.with_null()

    def _remainder(self, tree: exp.Expr) -> Enumerated | None:
        """What a division by a constant leaves of a whole number: of either sign."""
        if not isinstance(tree, exp.Mod) or not self.columns.counts:
            return None
        divisor, divided = tree.expression.unnest(), tree.this.unnest()
        kind = kind_of(divided, self.grounds.type_at)
        if kind is None or kind.family is not Family.INTEGER:
            return None
        if not (isinstance(divisor, exp.Literal) and divisor.is_int):
            return None
        most = int(divisor.this) - 1
        if not 0 <= most < MOST_ENUMERATED // 2:
            return None
        place = reference(divided) if isinstance(divided, exp.Column) else None
        kind = kind if place is not None else BIGINT
        first, last = values_of(kind).first, values_of(kind).last
        if first is None or last is None:
            return None
        low, high = max(-most, int(first)), min(most, int(last))
        values = whole_numbers(low, high, kind, f"remainders by {divisor.this}")
        if place is None or self.grounds.nullable(place):
            values = values.with_null()
        expression = placed(tree, {divided: value_of("d")})
        assert expression is not None
        return computed(expression, [("d", values)], (), values.origin)


def _branches(tree: exp.Expr) -> list[exp.Expr] | None:
    """What an expression chooses its value from, NULL for a missing ELSE."""
    chosen: list[exp.Expr | None]
    match tree:
        case exp.Case():
            chosen = [*(one.args["true"] for one in tree.args["ifs"]), tree.args.get("default")]
        case exp.If():
            chosen = [tree.args["true"], tree.args.get("false")]
        case exp.Coalesce():
            chosen = _up_to_constant([tree.this, *tree.expressions])
        case exp.Nullif():
            chosen = [tree.this, exp.Null()]
        case _:
            return None
    trees = [exp.Null() if one is None else one.unnest() for one in chosen]
    return [part for one in trees for part in (_branches(one) or [one])]


def _up_to_constant(parts: Sequence[exp.Expr]) -> list[exp.Expr | None]:
    """What coalesce can choose: after a constant nothing more, without one NULL."""
    chosen: list[exp.Expr | None] = []
    for part in parts:
        chosen.append(part)
        if isinstance(part.unnest(), exp.Literal | exp.Boolean):
            return chosen
    return [*chosen, None]


def _few(values: Sequence[Enumerated]) -> bool:
    size = 1
    for one in values:
        if one.most is None:
            return False
        size *= one.most
    return size <= MOST_COMBINED
