"""Results by the set of their owners -> one statement that tells nothing but numbers.

Units are numbered inside the database, by its own equality: no id is ever read.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot import exp

from sqlrs.dialects import dialect_named
from sqlrs.planning.by_group import ByGroup
from sqlrs.planning.plan import table_names
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.sql.grouped import counts_per_key
from sqlrs.trees.build import (
    ascending,
    grouped_by,
    inner,
    joined_with,
    named,
    number,
    select_from,
    table_named,
)
from sqlrs.trees.identifiers import again, column
from sqlrs.trees.naming import RESULTS

_ID, _UNIT = "id", "unit"
_ROWS = "owned"
_NOBODY = -1


def owned_results(plan: ByGroup, most: int, dialect: str) -> exp.Select:
    """At most so many rows (units…, results): each set of owners once, with what it adds up to.

    The owners are the keys of the plan. A place that is left over has -1.
    """
    building = StatementBuilder(dialect_named(dialect), table_names(plan.residual))
    counted, names = counts_per_key(plan, building)
    ids = list(names.values())
    numbered = building.add("numbered", _numbered(counted, ids))
    places = [f"u{i}" for i in range(len(ids))]
    rows = _located(counted, ids, numbered, places)
    if len(places) <= 3:
        rows = _few_in_order(rows, places)
    else:
        rows = _in_order(building, rows, places)
        rows = _in_order(building, _without_repetition(rows, places), places)
    units = [column(place, _ROWS) for place in places]
    total = exp.Sum(this=column(RESULTS, _ROWS))
    select = grouped_by(
        select_from(inner(rows, _ROWS), *units, named(_whole(total), RESULTS)), map(again, units)
    )
    some = exp.NEQ(this=exp.Sum(this=column(RESULTS, _ROWS)), expression=number(0))
    select.set("having", exp.Having(this=some))
    select.set("limit", exp.Limit(expression=number(most)))
    return building.finished(select)


def _numbered(counted: str, ids: Sequence[str]) -> exp.Select:
    """Every unit that owns a result, with a number from 0 on; one id is one unit in all columns."""
    each: exp.Expression = _ids(counted, ids[0])
    for name in ids[1:]:
        each = exp.union(each, _ids(counted, name), distinct=True, copy=False)
    if len(ids) == 1:
        each.set("distinct", exp.Distinct())
    # By the order of the ids, so that every evaluation numbers alike.
    order = exp.Order(expressions=[ascending(column(_ID, "ids"))])
    numbers = exp.Window(this=exp.RowNumber(), order=order)
    from_zero = exp.Sub(this=numbers, expression=number(1))
    source = exp.Subquery(this=each, alias=exp.TableAlias(this=exp.to_identifier("ids")))
    return select_from(source, column(_ID, "ids"), named(_whole(from_zero), _UNIT))


def _ids(counted: str, name: str) -> exp.Select:
    return select_from(table_named(counted), named(column(name, counted), _ID))


def _located(counted: str, ids: Sequence[str], numbered: str, places: Sequence[str]) -> exp.Select:
    """The rows with a number in the place of each id."""
    found = [named(column(_UNIT, f"n_{place}"), place) for place in places]
    select = select_from(table_named(counted), *found, column(RESULTS, counted))
    for name, place in zip(ids, places, strict=True):
        equal = exp.EQ(this=column(name, counted), expression=column(_ID, f"n_{place}"))
        select = joined_with(select, table_named(numbered, alias=f"n_{place}"), [equal])
    return select


def _few_in_order(rows: exp.Select, places: Sequence[str]) -> exp.Select:
    """Rows of up to three units with the least first and the largest last, each of them once.

    One that stands alone in the middle is neither of these, so every set has one form.
    """
    if len(places) == 1:
        return rows
    first, *middle, last = places
    units = [column(place, _ROWS) for place in places]
    least, largest = _of_all(exp.Least, units), _of_all(exp.Greatest, units)
    shown = [named(least, first), named(largest, last)]
    for place in middle:
        left: exp.Expression = column(places[0], _ROWS)
        for other in places[1:]:
            left = exp.Add(this=left, expression=column(other, _ROWS))
        for end in (least, largest):
            left = exp.Sub(this=left, expression=again(end))
        shown.append(named(left, place))
    rows = select_from(inner(rows, _ROWS), *shown, column(RESULTS, _ROWS))
    once = [_unless_equal(place, [first, last]) for place in middle]
    ends = [column(first, _ROWS), _unless_equal(last, [first])]
    return select_from(inner(rows, _ROWS), *ends, *once, column(RESULTS, _ROWS))


def _in_order(building: StatementBuilder, rows: exp.Select, places: Sequence[str]) -> exp.Select:
    """Rows with their units in ascending order: neighbours are exchanged until all stand so.

    Each exchange is a step of its own: written into each other, each would double the text of all.
    """
    for layer in range(len(places)):
        source = building.add("exchanged", rows)
        shown: dict[str, exp.Expression] = {place: column(place, _ROWS) for place in places}
        for i in range(layer % 2, len(places) - 1, 2):
            low, high = places[i : i + 2]
            pair = [column(low, _ROWS), column(high, _ROWS)]
            shown[low] = named(_of_all(exp.Least, pair), low)
            shown[high] = named(_of_all(exp.Greatest, pair), high)
        table = table_named(source, alias=_ROWS)
        rows = select_from(table, *shown.values(), column(RESULTS, _ROWS))
    return rows


def _of_all(
    kind: type[exp.Least] | type[exp.Greatest], units: Sequence[exp.Expression]
) -> exp.Expression:
    # None of them is NULL; without the word, each would be asked whether it is.
    first, *others = map(again, units)
    return kind(this=first, expressions=others, ignore_nulls=True)


def _without_repetition(rows: exp.Select, places: Sequence[str]) -> exp.Select:
    """Rows in order with nobody in the place of a unit that stands before it already."""
    shown = [_unless_equal(place, [before]) for before, place in pairwise(places)]
    return select_from(inner(rows, _ROWS), column(places[0], _ROWS), *shown, column(RESULTS, _ROWS))


def _unless_equal(place: str, others: Sequence[str]) -> exp.Expression:
    """The unit of a place, or nobody where it stands at one of the other places already."""
    same = exp.or_(
        *(exp.EQ(this=column(place, _ROWS), expression=column(one, _ROWS)) for one in others)
    )
    nobody = exp.If(this=same, true=_whole(number(_NOBODY)))
    return named(exp.Case(ifs=[nobody], default=column(place, _ROWS)), place)


def _whole(value: exp.Expression) -> exp.Expression:
    """As an integer of 64 bits; what does not fit fails, in every database."""
    return exp.Cast(this=value, to=exp.DataType.build("bigint"))
