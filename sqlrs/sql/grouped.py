"""Values of groups -> one statement: counted by the keys' values, then found in the public domains.

Groups are numbered by the rows of their domains, so that no value of a key is ever read from
private rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from sqlglot import exp

from sqlrs.dialects import dialect_named
from sqlrs.measures import KeyDomain
from sqlrs.planning.by_group import ByGroup
from sqlrs.planning.plan import table_names
from sqlrs.query import Term, Variable
from sqlrs.residuals.residual import Residual
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.sql.known_groups import Known, located_in_constants
from sqlrs.sql.locating import (
    ORDINAL,
    Locator,
    domain_columns,
    key_places,
    listed,
    numbered_domain,
    tables_of,
)
from sqlrs.sql.plain import factors_of, grouped_count, join_of, weights_in
from sqlrs.sql.semi_joins import semi_joined
from sqlrs.sql.side_by_side import SideBySide
from sqlrs.trees.build import (
    ascending,
    filtered_by,
    grouped_by,
    inner,
    named,
    number,
    select_from,
    table_named,
    with_columns,
)
from sqlrs.trees.constants import literal
from sqlrs.trees.identifiers import again, column
from sqlrs.trees.naming import RESULTS, column_names, free_name
from sqlrs.trees.totals import product, summed


def grouped_totals(
    plan: ByGroup,
    keys: Sequence[Term | None],
    domains: Sequence[KeyDomain],
    dialect: str,
    known: Known | None = None,
) -> exp.Select:
    """Rows (ordinals…, number) of all groups with a result: the value of the whole query in each.

    Without a domain it is one number. ``known``: the rows of the domains where they are written
    into the statement.
    """
    building = building_for(plan.residual, domains, dialect)
    rows, names = counts_per_key(plan, building)
    return _by_ordinals(plan, building, rows, names, [RESULTS], keys, domains, known, exp.Sum)


def grouped_largest(
    plan: ByGroup,
    keys: Sequence[Term | None],
    domains: Sequence[KeyDomain],
    dialect: str,
    known: Known | None = None,
) -> exp.Select:
    """Rows (ordinals…, number) of all groups with a result: the largest count over the boundary."""
    building = building_for(plan.residual, domains, dialect)
    rows, names = counts_per_key(plan, building)
    return _by_ordinals(plan, building, rows, names, [RESULTS], keys, domains, known, exp.Max)


def grouped_side_by_side(
    sides: SideBySide,
    whole: Residual,
    keys: Sequence[Term | None],
    domains: Sequence[KeyDomain],
    dialect: str,
    known: Known | None = None,
) -> exp.Select:
    """Rows (ordinals…, a number for each query) of all groups with a result.

    ``whole`` is the residual of all atoms of the query that they have in common.
    """
    plan = ByGroup(whole, frozenset(key for key in keys if isinstance(key, Variable)))
    building = building_for(whole, domains, dialect)
    names = {v: name for v, name in column_names(plan.free).items() if v in plan.keys}
    taken = set(names.values())
    results = [free_name(RESULTS, taken) for _ in sides.weights]
    rows = building.add("per_key", _summed(sides, whole, names, results))
    return _by_ordinals(plan, building, rows, names, results, keys, domains, known, exp.Sum)


def domain_rows(domain: KeyDomain, most: int) -> exp.Select:
    """The first rows of a domain, in the order of their numbers."""
    names = domain_columns(domain)
    select = select_from(
        inner(numbered_domain(domain), "numbered"), *(column(name, "numbered") for name in names)
    )
    select.set("order", exp.Order(expressions=[ascending(column(ORDINAL, "numbered"))]))
    select.set("limit", exp.Limit(expression=number(most)))
    return select


def domain_rows_where(domain: KeyDomain, conditions: Sequence[exp.Expression]) -> exp.Select:
    """One number: how many rows of a domain, named domain, meet one of the conditions."""
    source = inner(cast(exp.Query, domain.select).copy(), "domain")
    select = select_from(source, exp.Count(this=exp.Star()))
    return filtered_by(select, [cast(exp.Expression, exp.or_(*conditions))])


def domain_sizes(domains: Sequence[KeyDomain]) -> exp.Select:
    """One row: the number of rows of each domain."""
    sizes: list[exp.Expression] = []
    for i, domain in enumerate(domains):
        counted = select_from(listed(domain), exp.Count(this=exp.Star()))
        sizes.append(named(exp.Subquery(this=counted), f"size_{i}"))
    return exp.Select(expressions=sizes)


def counts_per_key(plan: ByGroup, building: StatementBuilder) -> tuple[str, dict[Variable, str]]:
    """The value for each value of the keys' variables, as a step, and the columns of these.

    Without any variable it is one row, with 0 where there is no result.
    """
    names = {v: name for v, name in column_names(plan.free).items() if v in plan.keys}
    return building.add("per_key", _per_key(plan, building, names.values())), names


def building_for(
    residual: Residual, domains: Sequence[KeyDomain], dialect: str
) -> StatementBuilder:
    """An empty statement in which no name of a table is taken."""
    return StatementBuilder(dialect_named(dialect), table_names(residual) | tables_of(domains))


def _by_ordinals(
    plan: ByGroup,
    building: StatementBuilder,
    rows: str,
    names: Mapping[Variable, str],
    results: Sequence[str],
    keys: Sequence[Term | None],
    domains: Sequence[KeyDomain],
    known: Known | None,
    joined: type[exp.Sum] | type[exp.Max],
) -> exp.Select:
    """The statement; ``joined`` makes one number of those that belong to one group."""
    if not domains:
        only = (column(name, rows) for name in results)
        return building.finished(select_from(table_named(rows), *only))
    if known is not None:
        return located_in_constants(building, rows, names, results, keys, domains, known)
    columns = [*names.values(), *results]
    taken = set(columns)
    places = key_places(keys, names, plan.residual.query)
    numbers = [free_name(f"o{i}", taken) for i, _ in enumerate(domains)]
    locator = Locator(building, places, domains, numbers)
    rows = locator.once(locator.located(rows, columns), columns, results)
    ordinals = [column(name, rows) for name in numbers]
    totals = (named(joined(this=column(name, rows)), name) for name in results)
    select = select_from(table_named(rows), *ordinals, *totals)
    return building.finished(grouped_by(select, map(again, ordinals)))


def _summed(
    sides: SideBySide, whole: Residual, names: Mapping[Variable, str], results: Sequence[str]
) -> exp.Select:
    """All sums for each value of the keys: everything is joined, then grouped."""
    tables = {atom.alias: atom.table for atom in whole.atoms}
    select, places = join_of(whole, sides.columns)
    keys = sorted(names)
    totals: list[exp.Expression] = []
    for name, weights in zip(results, sides.weights, strict=True):
        total = summed(factors_of(weights, tables), few=True)
        if not keys:
            total = exp.Coalesce(this=total, expressions=[number(0)])
        totals.append(named(total, name))
    shown = (named(again(places[v]), names[v]) for v in keys)
    return grouped_by(with_columns(select, *shown, *totals), (again(places[v]) for v in keys))


def _per_key(plan: ByGroup, building: StatementBuilder, keys: Collection[str]) -> exp.Select:
    rows = _counted(plan, building)
    if not plan.residual.boundary:
        if not keys:
            last = rows.expressions[-1]
            last.set("this", exp.Coalesce(this=last.this, expressions=[number(0)]))
        return rows
    name = building.add("per_boundary_value", rows)
    most = exp.Max(this=column(RESULTS, name))
    value = most if keys else exp.Coalesce(this=most, expressions=[number(0)])
    select = select_from(
        table_named(name), *(column(key, name) for key in keys), named(value, RESULTS)
    )
    return grouped_by(select, (column(key, name) for key in keys))


def _counted(plan: ByGroup, building: StatementBuilder) -> exp.Select:
    """The value for each value of the boundary and the keys."""
    names = column_names(plan.free)
    if plan.total is not None:
        rows, _ = building.totals(plan.total)
    else:
        output, found = plan.residual.output, plan.witnesses
        if found is not None:
            joined, places = semi_joined(plan.residual, found)
            output = None
        else:
            joined, places = join_of(plan.residual)
        weights = weights_in(plan.residual)
        rows = grouped_count(
            joined,
            places,
            list(names),
            output,
            weights,
            names,
            few=not plan.residual.boundary,
        )
    if not plan.factors:
        return rows
    name = building.add("per_weight", rows)
    factors = [
        column(names[term], name) if isinstance(term, Variable) else literal(term)
        for term in plan.factors
    ]
    kept = [names[v] for v in sorted(plan.residual.boundary | plan.keys)]
    value = exp.Sum(this=product([column(RESULTS, name), *factors]))
    select = select_from(
        table_named(name), *(column(key, name) for key in kept), named(value, RESULTS)
    )
    return grouped_by(select, (column(key, name) for key in kept))
