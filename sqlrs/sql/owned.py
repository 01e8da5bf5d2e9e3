"""Results by their owners -> one statement that tells nothing but numbers.

An id that is a whole number of 64 bits names its unit as it is. Others are numbered inside the
database, by its own equality.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlrs.catalog import Family
from sqlrs.dialects import dialect_named
from sqlrs.planning.by_group import ByGroup
from sqlrs.planning.plan import table_names
from sqlrs.query import Variable
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.sql.grouped import counts_per_key
from sqlrs.trees.build import (
    ascending,
    filtered_by,
    joined_with,
    named,
    number,
    select_from,
    table_named,
)
from sqlrs.trees.identifiers import column
from sqlrs.trees.naming import RESULTS
from sqlrs.values import values_of

_ID, _UNIT = "id", "unit"
_LEAST_BIGINT, _LARGEST_BIGINT = -(2**63), 2**63 - 1


def owned_results(plan: ByGroup, most: int, dialect: str) -> exp.Select:
    """At most so many rows (units…, results): the owners' ids once, with what they add up to.

    The owners are the keys of the plan. A unit may stand at several places of a row, and the same
    units at other places in other rows.
    """
    building = StatementBuilder(dialect_named(dialect), table_names(plan.residual))
    counted, names = counts_per_key(plan, building)
    ids, places = list(names.values()), [f"u{i}" for i in range(len(names))]
    if all(map(_is_small, names)):
        units = (column(name, counted) for name in ids)
        shown = [named(_whole(unit), place) for unit, place in zip(units, places, strict=True)]
        select = select_from(table_named(counted), *shown)
    else:
        select = _located(counted, ids, building.add("numbered", _numbered(counted, ids)), places)
    select.append("expressions", named(_whole(column(RESULTS, counted)), RESULTS))
    some = exp.NEQ(this=column(RESULTS, counted), expression=number(0))
    select = filtered_by(select, [some])
    select.set("limit", exp.Limit(expression=number(most)))
    return building.finished(select)


def _is_small(variable: Variable) -> bool:
    """Whether all values of a type are whole numbers of 64 bits."""
    values = values_of(variable.type)
    return (
        variable.type.family is Family.INTEGER
        and values.first is not None
        and values.last is not None
        and _LEAST_BIGINT <= values.first <= values.last <= _LARGEST_BIGINT
    )


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
    select = select_from(table_named(counted), *found)
    for name, place in zip(ids, places, strict=True):
        equal = exp.EQ(this=column(name, counted), expression=column(_ID, f"n_{place}"))
        select = joined_with(select, table_named(numbered, alias=f"n_{place}"), [equal])
    return select


def _whole(value: exp.Expression) -> exp.Expression:
    """As an integer of 64 bits; what does not fit fails, in every database."""
    return exp.Cast(this=value, to=exp.DataType.build("bigint"))
