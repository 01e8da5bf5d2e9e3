"""Several plans in one statement: each value as if it were alone, common steps once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.planning.choose import choose
from sqlrs.planning.plan import Factorised, Pruned, ResidualPlan
from sqlrs.residuals.residual import Residuals
from sqlrs.sql import plain as emit
from sqlrs.sql.together import Stepped, batches, together
from tests.planning.adapters import Direct
from tests.planning.strategies import TABLES, queries, rows_of, statistics
from tests.support.builders import EDGE, PATTERNS, atom, pattern, query
from tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("one_seed")


def check(data: st.DataObject, snapshot: Direct) -> None:
    residuals = Residuals(data.draw(queries()))
    for table in TABLES:
        snapshot.fill(table, data.draw(rows_of(table)))
    known = data.draw(st.one_of(st.none(), statistics()))
    wanted = [residuals.of(residuals.query.everything), *residuals.undecided(residuals.required)]
    plans = []
    for residual in wanted:
        how = data.draw(st.sampled_from(["auto", "factorised", "pruned"]))
        plan = choose(residual, known, how=how)
        if isinstance(plan, Factorised | Pruned):
            plans.append(plan)
    if plans:
        (row,) = snapshot.rows(together(plans, snapshot.dialect))
        assert list(row) == [snapshot.scalar(emit.plain(plan.residual)) for plan in plans]


@settings(max_examples=examples(30))
@given(st.data())
def test_on_duckdb(on_duckdb: Direct, data: st.DataObject) -> None:
    check(data, on_duckdb)


@settings(max_examples=examples(12))
@given(st.data())
def test_on_postgres(on_postgres: Direct, data: st.DataObject) -> None:
    check(data, on_postgres)


def plans_of(text: str, how: str = "factorised") -> list[ResidualPlan]:
    residuals = Residuals(query(*(atom(EDGE, *p) for p in text.split())))
    wanted = [residuals.of(residuals.query.everything), *residuals.undecided(residuals.required)]
    return [choose(residual, how=how) for residual in wanted]


def stepped(plans: Iterable[ResidualPlan]) -> list[Stepped]:
    return [plan for plan in plans if isinstance(plan, Factorised | Pruned)]


def outer_names(statement: exp.Select) -> list[str]:
    return [cte.alias for cte in statement.args["with_"].expressions]


def test_a_step_of_several_plans_stands_once_before_them() -> None:
    statement = together(stepped(plans_of("ab bc cd de")), "duckdb")
    shared = [name for name in outer_names(statement) if name.startswith("shared_")]
    assert shared
    uses = [t for t in statement.find_all(exp.Table) if t.name in shared]
    assert len(uses) > len(shared)


def test_without_common_steps_there_is_nothing_before_the_values() -> None:
    plans = stepped(plans_of("ab bc"))
    assert outer_names(together(plans, "duckdb")) == ["value_1", "value_2", "value_3"][: len(plans)]


def test_names_inside_hide_none_outside() -> None:
    """A table called like a shared step, or like a value, is still the table."""
    for name in ("value_1", "shared_edge1_edge2_per_a_c"):
        edge = replace(EDGE, name=name)
        residuals = Residuals(pattern(PATTERNS["square"], of=edge))
        wanted = [residuals.of(residuals.query.everything)]
        wanted += residuals.undecided(residuals.required)
        with duckdb.connect() as connection:
            snapshot = Direct(connection)
            snapshot.fill(edge, [(a, b) for a in range(5) for b in range(5) if a != b])
            plans = [choose(r, how="factorised") for r in wanted]
            (row,) = snapshot.rows(together(stepped(plans), "duckdb"))
            assert list(row) == [snapshot.scalar(emit.plain(r)) for r in wanted]


def test_plans_without_steps_run_alone() -> None:
    cheap, plain = plans_of("ab bc cd de"), plans_of("ab bc cd de", "plain")
    assert list(batches(cheap)) == [cheap]
    assert list(batches(plain)) == plain
    assert list(batches([cheap[0], plain[0], *cheap[1:]])) == [cheap[0], plain[0], cheap[1:]]
    assert list(batches([])) == []


def test_expensive_plans_run_alone() -> None:
    cheap = stepped(plans_of("ab bc cd de"))
    dear = [
        replace(p, total=replace(p.total, cost=1.5e8)) for p in cheap if isinstance(p, Factorised)
    ]
    assert list(batches(dear)) == dear
    assert list(batches([*cheap, *dear])) == [[*cheap, dear[0]], *dear[1:]]
