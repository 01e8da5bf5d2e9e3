"""Rows with witnesses: as many as distinct outputs, on random queries with random keys and data."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.planning.by_group import ByGroup
from sqlrs.planning.choose import choose
from sqlrs.planning.plan import Plain, PrunedSemiJoins, SemiJoins
from sqlrs.planning.table_statistics import Statistics
from sqlrs.planning.witnesses import Witnessed, witnessed
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sql.grouped import grouped_totals
from sqlrs.sql.write import statement_of
from tests.planning.adapters import Direct
from tests.planning.strategies import (
    NUMBERS,
    Case,
    distinct_outputs,
    evaluate,
    queries,
    rows_of,
    tables,
)
from tests.support import brute
from tests.support.builders import atom, query, table
from tests.support.examples import examples
from tests.support.special import LINES, Line

# Combinations of rows: more would take the oracle too long.
MOST_TRIED = 3000


@st.composite
def witnessed_cases(draw: st.DrawFn, most_atoms: int = 4, line: Line = NUMBERS) -> Case:
    """A residual of distinct outputs, among which there is mostly a key."""
    residuals = Residuals(draw(distinct_outputs(draw(queries(most_atoms, line)))))
    everything = residuals.query.everything
    members = draw(st.just(everything) | st.sets(st.sampled_from(sorted(everything)), min_size=1))
    residual = residuals.of(frozenset(members))
    if residual.external:
        residual = residuals.of(everything)
    return Case(residual, {t.name: draw(rows_of(t, line)) for t in tables(line)}, None)


def check(case: Case, snapshot: Direct) -> None:
    residual = case.residual
    found = witnessed(residual)
    event(f"witnessed: {found is not None}")
    if found is None:
        return
    for one in {a.table.name: a.table for a in residual.atoms}.values():
        snapshot.fill(one, case.rows[one.name])
    expected = value(Plain(residual), snapshot)
    if prod(len(case.rows[a.table.name]) for a in residual.atoms) <= MOST_TRIED:
        assert brute.residual_value(residual, case.rows, evaluate=evaluate) == expected
    assert value(SemiJoins(residual, found), snapshot) == expected
    if residual.boundary:
        for seeds in (1, 2, 64):
            assert value(PrunedSemiJoins(residual, found, seeds), snapshot) == expected
    else:
        plan = ByGroup(residual, frozenset(), witnesses=found)
        assert snapshot.scalar(grouped_totals(plan, (), (), snapshot.dialect)) == expected


def value(plan: Plain | SemiJoins | PrunedSemiJoins, snapshot: Direct) -> int:
    return snapshot.scalar(statement_of(plan, snapshot.dialect))


@settings(max_examples=examples(80))
@given(witnessed_cases())
def test_on_duckdb(on_duckdb: Direct, case: Case) -> None:
    check(case, on_duckdb)


@settings(max_examples=examples(30))
@given(witnessed_cases())
def test_on_postgres(on_postgres: Direct, case: Case) -> None:
    check(case, on_postgres)


SPECIAL = [(engine, line) for engine, lines in LINES.items() for line in lines]


@pytest.mark.parametrize(("engine", "line"), SPECIAL, ids=lambda v: str(v))
@settings(max_examples=examples(6))
@given(data=st.data())
def test_special_values(
    on_duckdb: Direct, on_postgres: Direct, engine: str, line: Line, data: st.DataObject
) -> None:
    snapshot = {"duckdb": on_duckdb, "postgres": on_postgres}[engine]
    check(data.draw(witnessed_cases(most_atoms=3, line=line)), snapshot)


@pytest.mark.slow
@settings(max_examples=2000)
@given(witnessed_cases(most_atoms=6))
def test_many_on_duckdb(on_duckdb: Direct, case: Case) -> None:
    check(case, on_duckdb)


@pytest.mark.slow
@settings(max_examples=1500)
@given(witnessed_cases(most_atoms=6))
def test_many_on_postgres(on_postgres: Direct, case: Case) -> None:
    check(case, on_postgres)


ORDER = table("orders", "id", "customer", keys=["id"])
LINE = table("line", "of", "supplier")
CUSTOMER = table("customer", "id", keys=["id"])


def two_suppliers(output: str) -> Residual:
    """Orders by customer that have two lines of different suppliers."""
    orders = query(
        atom(ORDER, "o", "c"),
        atom(CUSTOMER, "c"),
        atom(LINE, "o", "s", alias="first"),
        atom(LINE, "o", "t", alias="second"),
        different="s t",
        distinct=output,
    )
    return Residuals(orders).of(frozenset({0, 2, 3}))


def test_what_is_counted_and_what_is_a_witness() -> None:
    """An inequality ties two lines together; without a key in the output no row is decided."""
    residual = two_suppliers("o")
    assert witnessed(residual) == Witnessed(frozenset({0}), (frozenset({2, 3}),))
    assert witnessed(two_suppliers("s")) is None
    assert witnessed(replace(residual, query=replace(residual.query, distinct=None))) is None


def test_no_witness_where_a_condition_tells_equal_values_apart() -> None:
    """Which of several equal values it reads is decided by the joined rows: they stay joined."""
    double = ColumnType(Family.FLOAT, "DOUBLE")
    weighed = table("weighed", "id", "kilos", keys=["id"], types={"kilos": double})
    scale = table("scale", "of", "kilos", types={"kilos": double})
    text = exp.DataType.build("VARCHAR")
    one, other = (exp.Cast(this=exp.Placeholder(this=f"v{i}"), to=text.copy()) for i in (0, 1))
    for condition, found in ((exp.LT(this=one, expression=other), False), (None, True)):
        general = [] if condition is None else [(condition, "k l")]
        of = query(atom(weighed, "o", "k"), atom(scale, "o", "l"), general=general, distinct="o")
        assert (witnessed(Residuals(of).of(of.everything)) is not None) is found


def test_an_order_counts_once(on_duckdb: Direct) -> None:
    """As distinct outputs do: joined rows, the negative control, are more."""
    residual = two_suppliers("o")
    on_duckdb.fill(ORDER, [(1, 7), (2, 7), (3, 7), (4, 8)])
    on_duckdb.fill(CUSTOMER, [(7,), (8,)])
    on_duckdb.fill(LINE, [(1, 1), (1, 2), (1, 3), (2, 1), (2, 1), (4, 1), (4, 2)])
    found = witnessed(residual)
    assert found is not None
    assert value(SemiJoins(residual, found), on_duckdb) == 1
    assert value(PrunedSemiJoins(residual, found), on_duckdb) == 1
    rows = replace(residual, query=replace(residual.query, distinct=None))
    assert value(Plain(rows), on_duckdb) == 6


def test_a_witness_meets_what_ties_it_to_the_counted_row(on_duckdb: Direct) -> None:
    """A line of another supplier than the order's customer; without the condition any line does."""
    tied = query(atom(ORDER, "o", "c"), atom(LINE, "o", "s"), different="c s", distinct="o")
    residual = Residuals(tied).of(tied.everything)
    on_duckdb.fill(ORDER, [(1, 7), (2, 7), (3, 8)])
    on_duckdb.fill(LINE, [(1, 7), (1, 9), (2, 7), (2, 7)])
    found = witnessed(residual)
    assert found is not None
    assert value(SemiJoins(residual, found), on_duckdb) == 1
    free = replace(residual, inequalities=frozenset())
    assert value(SemiJoins(free, found), on_duckdb) == 2


def test_groups_whose_bound_is_above_the_best_seed_are_counted(on_duckdb: Direct) -> None:
    """The customer with the most orders has no line; the next two decide."""
    ordered = query(atom(ORDER, "o", "c"), atom(CUSTOMER, "c"), atom(LINE, "o", "s"), distinct="o")
    residual = Residuals(ordered).of(frozenset({0, 2}))
    found = witnessed(residual)
    assert found is not None and residual.boundary
    orders = [(1, 7), (2, 7), (3, 7), (4, 7), (5, 8), (6, 8), (7, 8), (8, 9), (9, 9)]
    on_duckdb.fill(ORDER, orders)
    on_duckdb.fill(LINE, [(5, 1), (8, 1), (9, 1), (9, 2)])
    expected = value(SemiJoins(residual, found), on_duckdb)
    assert expected == 2
    for seeds in (1, 2, 3):
        assert value(PrunedSemiJoins(residual, found, seeds), on_duckdb) == expected


def test_which_plan_is_chosen() -> None:
    """Bounds first where there are many rows; witnesses that no key joins have another plan."""
    ordered = query(atom(ORDER, "o", "c"), atom(CUSTOMER, "c"), atom(LINE, "o", "s"), distinct="o")
    residual = Residuals(ordered).of(frozenset({0, 2}))
    few = Statistics({ORDER.identity: 10.0, LINE.identity: 1e7})
    many = Statistics({ORDER.identity: 1e7, LINE.identity: 10.0})
    assert isinstance(choose(residual, few, in_turn=True), SemiJoins)
    assert isinstance(choose(residual, many, in_turn=True), PrunedSemiJoins)
    whole = Residuals(ordered).of(ordered.everything)
    assert isinstance(choose(whole, many, in_turn=True), SemiJoins)
    assert not isinstance(choose(two_suppliers("o"), few, in_turn=True), SemiJoins)
    for plan in (choose(residual, few, in_turn=True), choose(residual, many, in_turn=True)):
        assert "orders1 where there is line3" in "\n".join(plan.lines())
