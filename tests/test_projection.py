"""Counting distinct outputs never needs more noise than counting the rows they come from."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from math import prod

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sqlrs.compiler.compile import compile_query
from sqlrs.noise import PolyLaplace
from sqlrs.query import Query
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.refined import reached, released_sensitivity
from sqlrs.sensitivity.residual_bound import residual_sensitivity
from tests.support.examples import examples
from tests.support.sql_cases import Case
from tests.support.strategies import Features, databases, queries

ROWS = Features(comparisons=True, generals=True)
WEIGHTS = PolyLaplace(Decimal(1), 5).weights


def _case(query: Query, rows: dict[str, list[tuple[object, ...]]]) -> Case:
    residuals = Residuals(query)
    wanted = tuple(dict.fromkeys((*residuals.required, *reached(residuals))))
    return Case(residuals, wanted, rows)


def _at_least_one(case: Case) -> dict[Members, int]:
    """T_E with every part that joins nothing counted as 1."""
    parts = {m: [p.members for p in case.residuals.parts(m)] for m in case.wanted}
    once = tuple({part for members in parts.values() for part in members})
    values = replace(case, wanted=once).values()
    return {m: prod(max(1, values[part]) for part in parts[m]) for m in case.wanted}


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.data_too_large])
@given(data=st.data())
def test_projection_is_never_larger_than_the_full_query(data: st.DataObject) -> None:
    """Also where a residual joins nothing: keys may still decide that a projection counts 1."""
    database = data.draw(databases(max_rows=3))
    full = compile_query(data.draw(queries(database.catalog, ROWS)), database.catalog)
    assume(isinstance(full, Query))
    assert isinstance(full, Query)
    variables = sorted(full.variables(full.everything))
    assume(variables)
    output = data.draw(st.sets(st.sampled_from(variables), min_size=1))
    rows = {t.label: list(database.rows[t.identity]) for t in database.catalog.tables}
    all_rows, distinct = _case(full, rows), _case(replace(full, distinct=frozenset(output)), rows)
    assert distinct.count() <= all_rows.count()
    whole, projected = _at_least_one(all_rows), distinct.values()
    assert all(projected[members] <= whole[members] for members in set(whole) & set(projected))
    for bound in (residual_sensitivity, released_sensitivity):
        larger = bound(all_rows.residuals, whole, WEIGHTS).value
        smaller = bound(distinct.residuals, projected, WEIGHTS).value
        assert smaller <= larger, bound
