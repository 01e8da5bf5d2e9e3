"""Rows with witnesses -> sqlglot tree: the counted rows are joined, each witness is an EXISTS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from sqlrs.planning.key_joins import has_condition
from sqlrs.planning.witnesses import Witnessed, part_of, predicates_of
from sqlrs.query import Variable
from sqlrs.residuals.residual import Members, Residual
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.sql.index_order import in_index_order
from sqlrs.sql.plain import grouped_count, join_of, largest_of
from sqlrs.trees.build import (
    all_of,
    ascending,
    filtered_by,
    joined_with,
    named,
    number,
    select_from,
    table_named,
)
from sqlrs.trees.identifiers import again, column
from sqlrs.trees.naming import RESULTS, column_names
from sqlrs.trees.predicates import Places, predicate_condition


def semi_joined(
    residual: Residual,
    found: Witnessed,
    among: Mapping[Variable, exp.Select] | None = None,
    first: Callable[[exp.Select], exp.Select] = lambda select: select,
) -> tuple[exp.Select, Places]:
    """FROM, JOIN and WHERE: a row for each distinct output.

    ``among``: variables of the counted rows whose values are some alone, and ``first`` what keeps
    an engine from joining before it picks these.
    """
    held = residual.query.variables(found.counted)
    select, places = join_of(part_of(residual, found.counted, held), among=among, first=first)
    conditions = [has_witnesses(residual, found, group, places) for group in found.groups]
    if where := select.args.get("where"):
        conditions.insert(0, where.this)
    if conditions:
        select.set("where", exp.Where(this=all_of(conditions)))
    return select, places


def semi_joins(residual: Residual, found: Witnessed) -> exp.Select:
    """T_E as one statement that yields one integer."""
    joined, places = semi_joined(residual, found)
    rows = grouped_count(joined, places, sorted(residual.boundary), None)
    return largest_of(rows) if residual.boundary else rows


def pruned_semi_joins(
    residual: Residual, found: Witnessed, seeds: int, building: StatementBuilder
) -> exp.Select:
    """The same, with witnesses looked for in those groups alone that may hold the maximum.

    There is a boundary.
    """
    held = residual.query.variables(found.counted)
    boundary = sorted(residual.boundary)
    names = column_names(residual.boundary)
    counted = part_of(residual, found.counted, held)
    joined, places = join_of(counted)
    groups = grouped_count(joined, places, boundary, None, shown=names)
    if len(counted.members) == 1 and not counted.predicates and not has_condition(*counted.atoms):
        groups = in_index_order(groups, counted.atoms[0].table)
    bounds = building.add("bounds", groups)

    def keys() -> list[exp.Expression]:
        return [column(names[v], bounds) for v in boundary]

    def exact(among: str) -> exp.Select:
        some = {v: select_from(table_named(among), column(names[v], among)) for v in boundary}
        evaluated_first = building.dialect.evaluated_first
        joined, places = semi_joined(residual, found, some, evaluated_first)
        return largest_of(grouped_count(joined, places, boundary, None))

    largest = in_order_of_bounds(select_from(table_named(bounds), *keys()), bounds, keys(), seeds)
    best = building.add("best_seed", exact(building.add("seeds", largest)))
    above = exp.GT(this=column(RESULTS, bounds), expression=column(RESULTS, best))
    left = select_from(table_named(bounds), *keys())
    left = filtered_by(joined_with(left, table_named(best), []), [above])
    rest = building.add("best_survivor", exact(building.add("survivors", left)))
    value = exp.Greatest(this=column(RESULTS, best), expressions=[column(RESULTS, rest)])
    return building.finished(
        joined_with(select_from(table_named(best), named(value, RESULTS)), table_named(rest), [])
    )


def in_order_of_bounds(
    select: exp.Select, bounds: str, keys: Sequence[exp.Expression], most: int
) -> exp.Select:
    """The groups with the largest bounds, ties broken."""
    order = [exp.Ordered(this=column(RESULTS, bounds), desc=True)]
    order += [ascending(again(key)) for key in keys]
    select.set("order", exp.Order(expressions=order))
    select.set("limit", exp.Limit(expression=number(most)))
    return select


def has_witnesses(
    residual: Residual, found: Witnessed, group: Members, outside: Places
) -> exp.Expression:
    """Whether rows of a group agree with the counted row and meet the predicates."""
    select, own = join_of(part_of(residual, group, frozenset()))
    conditions: list[exp.Expression] = [
        exp.EQ(this=again(outside[v]), expression=again(here))
        for v, here in sorted(own.items())
        if v in outside
    ]
    conditions += [
        predicate_condition(p, {**own, **outside}) for p in predicates_of(residual, found, group)
    ]
    if where := select.args.get("where"):
        conditions.append(where.this)
    select.set("expressions", [number(1)])
    if conditions:
        select.set("where", exp.Where(this=all_of(conditions)))
    return exp.Exists(this=select)
