"""Random SQL of the whole language, from text to T_E, on both engines against brute force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.noise import PolyLaplace
from sqlrs.residuals.residual import Members
from sqlrs.sensitivity.local import local_bound
from sqlrs.sensitivity.refined import refined_sensitivity, released_sensitivity
from sqlrs.sensitivity.residual_bound import residual_sensitivity
from sqlrs.settings import Settings
from tests.support import brute
from tests.support.engine_fixtures import BothEngines
from tests.support.examples import examples
from tests.support.sql_cases import Case, declared, universe
from tests.support.strategies import ALL, TinyDatabase, databases, queries

PLANS = st.sampled_from(["auto", "plain", "factorised", "pruned"])
WEIGHTS = PolyLaplace(Decimal(1), 5).weights
# The nightly profile asks for ten times the usual number of examples.
QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


def _load(both: BothEngines, database: TinyDatabase) -> dict[str, Catalog]:
    both.load(database.catalog.tables, database.rows)
    return {name: declared(e.catalog(), database) for name, e in both.engines.items()}


@settings(max_examples=examples(30), suppress_health_check=QUIET)
@given(data=st.data())
def test_the_count_and_every_residual_are_what_brute_force_says(
    both_engines: BothEngines, data: st.DataObject
) -> None:
    database = data.draw(databases(max_rows=4))
    sql = data.draw(queries(database.catalog, ALL))
    plan = data.draw(PLANS)
    chosen = Settings(max_external=data.draw(st.sampled_from([2, 0, 3])))
    catalogs = _load(both_engines, database)
    expected = both_engines.direct(sql)
    for name, engine in both_engines.engines.items():
        case = Case.of(sql, catalogs[name], database, chosen)
        if case is None:
            assert expected == 0
            continue
        measured = case.measured(engine, plan)
        assert measured.count == expected == case.count()
        assert measured.values == case.values()


@settings(max_examples=examples(12), suppress_health_check=QUIET)
@given(data=st.data())
def test_solved_predicates_are_what_brute_force_says(
    both_engines: BothEngines, data: st.DataObject
) -> None:
    database = data.draw(databases(max_rows=4))
    sql = data.draw(queries(database.catalog, replace(ALL, max_tables=2)))
    catalogs = _load(both_engines, database)
    for name, engine in both_engines.engines.items():
        case = Case.of(sql, catalogs[name], database, Settings(solver=True))
        if case is not None:
            measured = case.measured(engine)
            assert measured.count == case.count()
            assert measured.values == case.values(wide=9)


DAY = datetime(2024, 2, 28)
TYPES: dict[str, tuple[Family, Sequence[object], tuple[str, str]]] = {
    "INTEGER": (Family.INTEGER, [-1, 0, 1, 3], ("0", "2")),
    "BIGINT": (
        Family.INTEGER,
        [2**63 - n for n in (1, 2, 4)],
        ("9223372036854775804", "9223372036854775806"),
    ),
    "DECIMAL(9, 2)": (Family.DECIMAL, [Decimal("0.10"), Decimal(1), Decimal(2)], ("0.50", "2")),
    "DOUBLE": (Family.FLOAT, [-0.5, 0.25, 1.0], ("0.25", "1")),
    "DATE": (
        Family.DATE,
        [(DAY + timedelta(days=n)).date() for n in (0, 1, 2, 4)],
        ("DATE '2024-02-29'", "'2024-03-02'"),
    ),
    "TIMESTAMP": (
        Family.TIMESTAMP,
        [DAY + timedelta(seconds=n) for n in (0, 1, 3)],
        ("TIMESTAMP '2024-02-28 00:00:01'", "'2024-02-29'"),
    ),
    "VARCHAR": (Family.TEXT, ["m", "p", "q"], ("'n'", "'q'")),
}
CHAINS = [
    "a.x < b.x AND b.x < c.x",
    "a.x <= b.x AND b.x < c.y AND a.y <> c.x",
    "b.x BETWEEN a.x AND c.x",
    "b.x BETWEEN {low} AND a.y",
    "a.x < b.x AND b.x <= {high} AND c.y >= b.y",
    "a.x < b.x AND b.x < c.x AND a.y <= b.y AND b.y < c.y",
    "a.x < b.x AND b.x < c.x AND a.x < {high} AND c.x > {low}",
    "a.x < b.x AND b.x < b.y AND b.y < c.x",
    "NOT (a.x >= b.x OR b.x > c.x)",
]


@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=examples(4), suppress_health_check=QUIET)
@given(data=st.data())
def test_comparisons_of_every_ordered_type(
    both_engines: BothEngines, kind: str, data: st.DataObject
) -> None:
    family, values, (low, high) = TYPES[kind]
    column = ColumnType(family, kind)
    table = Table("e", (Column("k", ColumnType(Family.INTEGER, "INTEGER"), nullable=False),
                        Column("x", column), Column("y", column)))  # fmt: skip
    value = st.sampled_from([*values, None])
    rows = data.draw(st.lists(st.tuples(st.integers(0, 1), value, value), min_size=2, max_size=4))
    database = TinyDatabase(Catalog("duckdb", (table,)), {table.identity: rows})
    head = data.draw(
        st.sampled_from(["count(*)", "count(DISTINCT a.x)", "count(DISTINCT (a.k, c.y))"])
    )
    how = data.draw(st.sampled_from(["USING (k)", "ON TRUE"]))
    where = data.draw(st.sampled_from(CHAINS)).format(low=low, high=high)
    sql = f"SELECT {head} FROM e a JOIN e b {how} JOIN e c {how} WHERE {where}"
    catalogs = _load(both_engines, database)
    expected = both_engines.direct(sql)
    for name, engine in both_engines.engines.items():
        case = Case.of(sql, catalogs[name], database, Settings())
        assert case is not None
        measured = case.measured(engine)
        assert measured.count == expected == case.count()
        assert measured.values == case.values()


@settings(max_examples=examples(20), suppress_health_check=QUIET)
@given(data=st.data(), solver=st.booleans())
def test_bounds_are_in_order_and_smooth(data: st.DataObject, solver: bool) -> None:
    """|q(I) - q(I')| <= the bounds at I, RS+ <= RS, and no bound moves faster than the weights."""
    database = data.draw(databases(max_rows=2))
    sql = data.draw(queries(database.catalog, replace(ALL, max_tables=2)))
    case = Case.of(sql, database.catalog, database, Settings(solver=solver))
    if case is None:
        return
    values = case.values(wide=9)
    bounds = _bounds(case, values)
    assert bounds["released"] <= bounds["residual"]
    assert bounds["released"] <= bounds["refined"]
    count = case.count()
    rows = universe(database.catalog.tables)
    tried = list(brute.neighbours(case.query, case.rows, rows))
    some = data.draw(st.permutations(range(len(tried))))[:12] if tried else []
    for other in (tried[i] for i in some):
        change = abs(case.count(other) - count)
        assert change <= min(bounds.values())
        there = _bounds(case, case.values(other, wide=9))
        for name in ("residual", "refined", "released"):
            assert WEIGHTS.decay * bounds[name] <= there[name], (name, other)
            assert WEIGHTS.decay * there[name] <= bounds[name], (name, other)


def _bounds(case: Case, values: Mapping[Members, int]) -> dict[str, Fraction]:
    return {
        "local": local_bound(case.residuals, values).value,
        "residual": residual_sensitivity(case.residuals, values, WEIGHTS).value,
        "refined": refined_sensitivity(case.residuals, values, WEIGHTS).value,
        "released": released_sensitivity(case.residuals, values, WEIGHTS).value,
    }
