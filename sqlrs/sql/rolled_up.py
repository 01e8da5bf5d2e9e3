"""Plans that are read from the groups of others -> one statement: each group is counted once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sqlglot import exp

from sqlrs.dialects import dialect_named
from sqlrs.planning.plan import SemiJoins, table_names
from sqlrs.planning.rolling_up import Joined, RolledUp, further_atoms
from sqlrs.query import Variable
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.sql.leading_groups import kept_values
from sqlrs.sql.plain import grouped_count, join_of, joined_further, largest_of
from sqlrs.sql.semi_joins import semi_joined
from sqlrs.trees.build import grouped_by, named, number, select_from, table_named
from sqlrs.trees.identifiers import again, column
from sqlrs.trees.naming import RESULTS, column_names

_Names = dict[Variable, str]


def rolled_up_statement(
    together: RolledUp,
    dialect: str,
    *,
    among: Mapping[Variable, Iterable[int]] | None = None,
    numbered: Collection[int] = (),
) -> exp.Select:
    """One row with the value of each plan, in order, then the number of groups of some of them.

    ``among``: the values of variables of all boundaries that are looked at; no other group counts.
    ``numbered``: the places of plans that others begin with, of which the number is wanted.
    """
    reserved = frozenset[str]().union(*(table_names(one.residual) for one in together.plans))
    building = StatementBuilder(dialect_named(dialect), reserved)
    some = {v: kept_values(v, values, building) for v, values in (among or {}).items()}
    groups: dict[int, str] = {}
    values = []
    for place, (plan, parent) in enumerate(zip(together.plans, together.parents, strict=True)):
        names = column_names(plan.residual.boundary)
        if parent is None:
            rows = _groups(plan, names, some)
        else:
            rows = _from_groups(plan, together.plans[parent], groups[parent], names)
        if place in together.begun:
            # What nothing begins with is not kept.
            groups[place] = building.add("per_boundary_value", rows)
            rows = select_from(table_named(groups[place]), column(RESULTS, groups[place]))
        value = largest_of(rows) if plan.residual.boundary else rows
        values.append(named(exp.Subquery(this=value), f"value_{place + 1}"))
    for place in numbered:
        count = named(exp.Count(this=exp.Star()), RESULTS)
        counted = select_from(table_named(groups[place]), count)
        values.append(named(exp.Subquery(this=counted), f"groups_{place + 1}"))
    return building.finished(exp.Select(expressions=values))


def _groups(plan: Joined, names: _Names, among: Mapping[Variable, exp.Select]) -> exp.Select:
    residual = plan.residual
    if isinstance(plan, SemiJoins):
        joined, places = semi_joined(residual, plan.found, among)
    else:
        joined, places = join_of(residual, among=among)
    return grouped_count(joined, places, sorted(residual.boundary), None, shown=names)


def _from_groups(plan: Joined, parent: Joined, groups: str, names: _Names) -> exp.Select:
    """The groups of a plan, each a sum of the parent's groups that meet rows of further tables."""
    residual, smaller = plan.residual, parent.residual
    held = column_names(smaller.boundary)
    places: dict[Variable, exp.Expression] = {v: column(held[v], groups) for v in held}
    joined = exp.Select(from_=exp.From(this=table_named(groups)))
    if further := further_atoms(residual, smaller):
        joined, found = joined_further(joined, places, residual, smaller, further)
        places = dict(found)
    total: exp.Expression = exp.Sum(this=column(RESULTS, groups))
    if not residual.boundary:
        total = exp.Coalesce(this=total, expressions=[number(0)])
    keys = [named(again(places[v]), names[v]) for v in sorted(residual.boundary)]
    joined.set("expressions", [*keys, named(total, RESULTS)])
    return grouped_by(joined, (again(places[v]) for v in sorted(residual.boundary)))
