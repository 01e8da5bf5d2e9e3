"""Plans over one join -> one statement: its groups, and what is summed up from them."""

from __future__ import annotations

from sqlglot import exp

from sqlrs.dialects import dialect_named
from sqlrs.planning.plan import SemiJoins, table_names
from sqlrs.planning.rolling_up import Joined, RolledUp
from sqlrs.query import Variable
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.sql.plain import grouped_count, join_of, largest_of
from sqlrs.sql.semi_joins import semi_joined
from sqlrs.trees.build import grouped_by, named, number, select_from, table_named
from sqlrs.trees.identifiers import again, column
from sqlrs.trees.naming import RESULTS, column_names


def rolled_up_statement(together: RolledUp, dialect: str) -> exp.Select:
    """One row with the value of each plan, in order."""
    finest = together.plans[0]
    building = StatementBuilder(dialect_named(dialect), table_names(finest.residual))
    names = column_names(finest.residual.boundary)
    groups = building.add("per_boundary_value", _groups(finest, names))
    values = [
        named(exp.Subquery(this=_value(plan, groups, names)), f"value_{place}")
        for place, plan in enumerate(together.plans, 1)
    ]
    return building.finished(exp.Select(expressions=values))


def _groups(finest: Joined, names: dict[Variable, str]) -> exp.Select:
    residual = finest.residual
    if isinstance(finest, SemiJoins):
        joined, places = semi_joined(residual, finest.found)
    else:
        joined, places = join_of(residual)
    return grouped_count(joined, places, sorted(residual.boundary), None, shown=names)


def _value(plan: Joined, groups: str, names: dict[Variable, str]) -> exp.Select:
    """The largest sum of the groups with one value of the plan's own boundary."""
    boundary = sorted(plan.residual.boundary)
    counted = column(RESULTS, groups)
    if len(boundary) == len(names):
        return largest_of(select_from(table_named(groups), counted))
    total = exp.Sum(this=counted)
    if not boundary:
        whole = exp.Coalesce(this=total, expressions=[number(0)])
        return select_from(table_named(groups), named(whole, RESULTS))
    keys = [column(names[v], groups) for v in boundary]
    summed = select_from(table_named(groups), named(total, RESULTS))
    return largest_of(grouped_by(summed, map(again, keys)))
