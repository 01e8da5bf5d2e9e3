"""Groups that lead -> one statement: their largest count, or -1 where another may be larger."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from sqlrs.planning.inclusion_exclusion import Sum
from sqlrs.planning.leading import Leaders, leading_number, one_grouping
from sqlrs.planning.plan import ByKeptGroups, Plain
from sqlrs.query import Variable
from sqlrs.sql.factorised import StatementBuilder, Stored, in_order, largest
from sqlrs.sql.plain import plain_among
from sqlrs.trees.build import ascending, inner, joined_with, named, number, select_from, table_named
from sqlrs.trees.identifiers import again, column
from sqlrs.trees.naming import RESULTS, column_names

# Of no count: the groups that lead were not enough.
NOT_ENOUGH = -1


def leading_statement(leaders: Leaders, building: StatementBuilder) -> exp.Select:
    """The value of the residual, or NOT_ENOUGH."""
    grouping = leaders.grouping
    stored = building.kept.get(kept_as(leaders)) or leading_groups(leaders, building)
    name, columns, _ = stored
    place = dict(zip(in_order(grouping), columns, strict=True))
    rows = select_from(
        table_named(name),
        *(named(column(place[v], name), c) for c, v in leaders.picked.columns),
    )
    building.keep_picked(leaders.picked, rows)
    exact, _ = building.totals(leaders.exact)
    best = building.add("best_leading", largest(exact, grouped=True))
    least = building.add("least_leading", _least(name, leaders.most))
    value = exp.Case(
        ifs=[
            exp.If(
                this=exp.GTE(this=column(RESULTS, best), expression=column(RESULTS, least)),
                true=column(RESULTS, best),
            )
        ],
        default=number(NOT_ENOUGH),
    )
    return building.finished(
        joined_with(select_from(table_named(best), named(value, RESULTS)), table_named(least), [])
    )


def groups_statement(leaders: Leaders, building: StatementBuilder) -> exp.Select:
    """The groups that lead, their keys in the order of the step's form, then their counts."""
    select, _ = leading_select(leaders, building)
    return building.finished(select)


def kept_groups_statement(plan: ByKeptGroups, building: StatementBuilder) -> exp.Select:
    """The largest exact count of some groups, which stand in the statement as constants."""
    leaders, listed = plan.leaders, plan.values
    columns = leaders.picked.columns
    if isinstance(plan.otherwise, Plain):
        telling = sorted(plan.telling)
        among = {v: kept_values(v, dict.fromkeys(listed[v]), building) for v in telling}
        return building.finished(plain_among(plan.residual, among))
    rows = exp.Select(expressions=[named(_unnested(listed[v]), c) for c, v in columns])
    building.keep_picked(leaders.picked, rows)
    exact, _ = building.totals(leaders.exact)
    return building.finished(largest(exact, grouped=True))


def kept_values(
    variable: Variable, values: Iterable[int], building: StatementBuilder
) -> exp.Select:
    """Some values of a variable, which become a step of their own."""
    (name,) = column_names([variable]).values()
    step = building.add(f"leading_{name}", exp.Select(expressions=[named(_unnested(values), name)]))
    return select_from(table_named(step), column(name, step))


def _unnested(numbers: Iterable[int]) -> exp.Expression:
    """Whole numbers as rows; several such columns go along with each other.

    As one text they take DuckDB a twentieth of the time that it takes to read as many constants.
    """
    text = exp.Literal.string(",".join(map(str, numbers)))
    split = exp.Split(this=text, expression=exp.Literal.string(","))
    return exp.cast(exp.Explode(this=split), exp.DataType.Type.BIGINT)


def kept_as(leaders: Leaders) -> tuple[object, ...]:
    """What groups that lead are found by, where a statement has them once for several plans."""
    return ("leading", leaders.most, leaders.grouping.canonical.form)


def groups_of(total: Sum) -> tuple[object, ...] | None:
    """What groups that lead are found by, if they are those of a sum without any lookup."""
    grouping = one_grouping(total)
    if grouping is None:
        return None
    return ("leading", leading_number(grouping.keep), grouping.canonical.form)


def first_of(stored: Stored) -> exp.Select:
    """The largest of the groups that lead: the largest of all, where nothing was left out."""
    name, _, _ = stored
    value = exp.Max(this=column(RESULTS, name))
    zero = exp.Coalesce(this=value, expressions=[number(0)])
    return select_from(table_named(name), named(zero, RESULTS))


def leading_groups(leaders: Leaders, building: StatementBuilder) -> Stored:
    """Keep the groups with the largest counts without lookups, under a name of their own."""
    select, columns = leading_select(leaders, building)
    return building.add("leading_groups", select), columns, True


def leading_select(
    leaders: Leaders, building: StatementBuilder
) -> tuple[exp.Select, tuple[str, ...]]:
    """The groups with the largest counts, and their columns in the order of the step's form."""
    grouping = leaders.grouping
    rows, names = building.grouped(grouping, last=True)
    alias = "groups"
    columns = tuple(names[v] for v in in_order(grouping))
    keys = [column(name, alias) for name in columns]
    select = select_from(inner(rows, alias), *keys, column(RESULTS, alias))
    order = [exp.Ordered(this=column(RESULTS, alias), desc=True)]
    order += [ascending(again(key)) for key in keys]
    select.set("order", exp.Order(expressions=order))
    select.set("limit", exp.Limit(expression=number(leaders.most)))
    return select, columns


def _least(name: str, most: int) -> exp.Select:
    """What no group beyond those that lead exceeds: nothing, if all of them are there."""
    all_there = exp.LT(this=exp.Count(this=exp.Star()), expression=number(most))
    value = exp.Case(
        ifs=[exp.If(this=all_there, true=number(0))], default=exp.Min(this=column(RESULTS, name))
    )
    return select_from(table_named(name), named(value, RESULTS))
