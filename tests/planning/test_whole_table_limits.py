"""A residual without its conditions is a limit of it, and what it makes needless is not read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.measuring import evaluate, work
from sqlrs.measuring import sampling as reading
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.measuring.measure import measure
from sqlrs.measuring.measurements import Measurements
from sqlrs.measuring.work import Values
from sqlrs.planning.limits import of_whole_tables, without_conditions
from sqlrs.query import Atom, Constant, Filter
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sensitivity.refined import reached
from sqlrs.trees.kept import Kept
from tests.planning.adapters import Direct, Lasting
from tests.planning.strategies import TABLES, Case, cases, queries, rows_of
from tests.support.builders import INTEGER, atom, query, table
from tests.support.examples import examples


@pytest.fixture(scope="module", autouse=True)
def everything_is_worth_it() -> Iterator[None]:
    """Small tables are otherwise too quick to be worth anything that is kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_SMALL", 0)
        patch.setattr(evaluate, "_WORTH_SHARING", 0.0)
        patch.setattr(evaluate, "_COST_OF_A_SECOND", 1e12)
        patch.setattr(work, "_LONG", 0.0)
        yield


def plain_value(residual: Residual, snapshot: Direct) -> int:
    return Evaluator(snapshot, residual.query, snapshot.dialect, "plain")(residual).value


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
@settings(max_examples=examples(60))
@given(case=cases())
def test_no_value_exceeds_that_of_whole_tables(
    on_duckdb: Direct, on_postgres: Direct, engine: str, case: Case
) -> None:
    snapshot = on_duckdb if engine == "duckdb" else on_postgres
    whole = without_conditions(case.residual)
    if whole is None or case.residual.external:
        return
    for one in {a.table.name: a.table for a in case.residual.query.atoms}.values():
        snapshot.fill(one, case.rows[one.name])
    assert of_whole_tables(whole) is not None
    assert plain_value(case.residual, snapshot) <= plain_value(whole, snapshot)


def largest(values: Values) -> Fraction:
    """A fold that small values do not move."""
    return Fraction(max(values.values(), default=0))


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
@settings(max_examples=examples(40))
@given(data=st.data())
def test_every_answer_folds_to_the_same(
    on_duckdb: Direct, on_postgres: Direct, engine: str, data: st.DataObject
) -> None:
    direct = on_duckdb if engine == "duckdb" else on_postgres
    texts = [Residuals(data.draw(queries(3))) for _ in range(2)]
    for one in TABLES:
        direct.fill(one, data.draw(rows_of(one)))
    source = Lasting(direct, {})
    kept = [Kept(), Kept()]
    for turn in (0, 0, 0, 1, 0, 1, 1):
        residuals = texts[turn]
        wanted = (*residuals.required, *reached(residuals))
        expected = measure(source, residuals, wanted, plan="plain")
        found = Measurements(source, kept=kept[turn]).enough(residuals, wanted, largest)
        assert found.count == expected.count
        assert largest(found.values) == largest(expected.values)


ORDERS = table("orders", "id", "customer", keys=["id"])
LINE = table("line", "orders", "part", "number")
PART = table("part", "id", keys=["id"])


def late(given: Atom, most: int) -> Atom:
    test = exp.LT(this=exp.column("number"), expression=exp.Literal.number(most))
    return replace(given, filters=(Filter(test, frozenset({"number"})),))


def weighed(values: Values) -> Fraction:
    """A fold to which lines of one customer and part count thrice."""
    return Fraction(max(n * (3 if members == {0, 1} else 1) for members, n in values.items()))


def test_a_small_residual_is_read_without_its_conditions_and_then_never(on_duckdb: Direct) -> None:
    """Lines of one customer and part are few; what matters is how many lines a part has."""
    on_duckdb.fill(ORDERS, [(o, o % 20) for o in range(40)])
    on_duckdb.fill(PART, [(p,) for p in range(10)])
    on_duckdb.fill(LINE, [*((o, 0, o % 3) for o in range(40)), *((0, p, 0) for p in range(1, 10))])
    customer = table("customer", "id", keys=["id"])
    on_duckdb.fill(customer, [(c,) for c in range(20)])
    line = late(atom(LINE, "o", "p", "n"), 2)
    residuals = Residuals(query(line, atom(ORDERS, "o", "c"), atom(PART, "p"), atom(customer, "c")))
    source, kept = Lasting(on_duckdb, {}), Kept()
    expected = measure(source, residuals, residuals.required, plan="plain")
    seen = []
    for _ in range(6):
        source.read.clear()
        found = Measurements(source, kept=kept).enough(residuals, residuals.required, weighed)
        assert weighed(found.values) == weighed(expected.values)
        seen.append([one.sql("duckdb") for one in source.read])
    both = [[sql for sql in sqls if is_by_both(sql)] for sqls in seen]
    assert both[0] and all("number" in sql for sql in both[0])
    assert any("number" not in sql for sqls in both for sql in sqls)
    assert not both[-1]


def test_where_the_limit_is_a_frequency_it_is_read_once(on_duckdb: Direct) -> None:
    """Lines of one order and part, one table with a condition: they matter until they are known."""
    on_duckdb.fill(ORDERS, [(o, o % 20) for o in range(40)])
    on_duckdb.fill(PART, [(p,) for p in range(10)])
    on_duckdb.fill(LINE, [*((o, 0, o % 3) for o in range(40)), *((0, p, 0) for p in range(1, 10))])
    line = late(atom(LINE, "o", "p", "n"), 2)
    residuals = Residuals(query(line, atom(ORDERS, "o", "c"), atom(PART, "p")))
    source, kept = Lasting(on_duckdb, {}), Kept()
    expected = measure(source, residuals, residuals.required, plan="plain")
    seen = []
    for _ in range(6):
        source.read.clear()
        found = Measurements(source, kept=kept).enough(residuals, residuals.required, tenfold)
        assert tenfold(found.values) == tenfold(expected.values)
        seen.append([one.sql("duckdb") for one in source.read])
    both = [[sql for sql in sqls if is_by_order_and_part(sql)] for sqls in seen]
    assert any("number" in sql for sql in both[0])
    assert any("number" not in sql for sqls in both for sql in sqls)
    assert not both[-1]


def tenfold(values: Values) -> Fraction:
    """A fold to which lines of one order and part count tenfold."""
    return Fraction(max(n * (10 if members == {0} else 1) for members, n in values.items()))


def is_by_order_and_part(sql: str) -> bool:
    """Whether it groups one table by order and part, and reads no other."""
    _, grouped, tail = sql.rpartition("GROUP BY")
    return bool(grouped) and "JOIN" not in sql and "orders" in tail and "part" in tail


def is_by_both(sql: str) -> bool:
    """Whether it is no statistics, and groups by customer and part."""
    tail = sql.rpartition("GROUP BY")[2]
    return "position" not in sql and "customer" in tail and "part" in tail


def test_whose_limit_there_is_none() -> None:
    """Of whole tables already, with a key's column fixed, or with a weight."""
    plain = Residuals(query(atom(LINE, "o", "p", "n"), atom(ORDERS, "o", "c"), atom(PART, "p")))
    members = frozenset({0, 1})
    assert without_conditions(plain.of(members)) is None
    line = late(atom(LINE, "o", "p", "n"), 2)
    filtered = Residuals(query(line, atom(ORDERS, "o", "c"), atom(PART, "p"))).of(members)
    assert without_conditions(filtered) is not None
    fixed = replace(atom(ORDERS, "o", "c"), terms=(("id", Constant(1, INTEGER)),))
    of_one = Residuals(query(late(atom(LINE, "o", "p", "n"), 2), fixed, atom(PART, "p")))
    assert without_conditions(of_one.of(frozenset({0}))) is None
