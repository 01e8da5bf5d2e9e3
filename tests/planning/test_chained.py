"""Residuals that lead to each other: the values of the definition, and each table read once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.dialects.spark_text import spark_text, spark_tree
from sqlrs.planning.chained import chained
from sqlrs.planning.plan import Factorised
from sqlrs.query import Query
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sql import plain as emit
from sqlrs.sql.together import together
from tests.planning.adapters import Direct
from tests.planning.strategies import NUMBERS, distinct_outputs, queries, rows_of, tables
from tests.support.builders import EDGE, atom, query, table
from tests.support.examples import examples
from tests.support.special import LINES, Line

pytestmark = pytest.mark.usefixtures("one_seed")

CUSTOMER = table("customer", "c", "segment", keys=["c"])
ORDERS = table("orders", "o", "c", keys=["o"])
ITEM = table("item", "o", "number", keys=["o number"])
HOME = table("home", "c", "n", keys=["c"])
SUPPLIER = table("supplier", "s", "n", keys=["s"])
SOLD = table("sold", "o", "s", "number", keys=["o number"])
# A nation is compared across two branches, and a customer decides it.
_STAR = query(
    atom(HOME, "c", "n"),
    atom(ORDERS, "o", "c"),
    atom(SOLD, "o", "s", "i"),
    atom(SUPPLIER, "s", "n"),
)
_CHAIN = query(atom(CUSTOMER, "c", "s"), atom(ORDERS, "o", "c"), atom(ITEM, "o", "n"))


def wanted(of: Query) -> list[Residual]:
    residuals = Residuals(of)
    return [residuals.of(of.everything), *residuals.undecided(residuals.required)]


def check(data: st.DataObject, snapshot: Direct, line: Line) -> None:
    of = data.draw(queries(line=line))
    # Distinct outputs never lead to each other: their groups are no counts.
    parts = wanted(data.draw(distinct_outputs(of)) if data.draw(st.integers(0, 4)) == 0 else of)
    # A chain of some of them where not all are of this kind.
    plans = chained(parts) or chained(parts[1:]) or []
    if not plans:
        return
    for one in tables(line):
        snapshot.fill(one, data.draw(rows_of(one, line)))
    (row,) = snapshot.rows(together([*plans], snapshot.dialect))
    assert list(row) == [snapshot.scalar(emit.plain(plan.residual)) for plan in plans]


@settings(max_examples=examples(60))
@given(st.data())
def test_on_duckdb(on_duckdb: Direct, data: st.DataObject) -> None:
    check(data, on_duckdb, data.draw(st.sampled_from([NUMBERS, *LINES["duckdb"]])))


@settings(max_examples=examples(12))
@given(st.data())
def test_on_postgres(on_postgres: Direct, data: st.DataObject) -> None:
    check(data, on_postgres, NUMBERS)


def check_star(data: st.DataObject, snapshot: Direct) -> None:
    parts = wanted(_STAR)
    plans = chained(parts)
    assert plans is not None
    for one in (HOME, ORDERS, SOLD, SUPPLIER):
        snapshot.fill(one, data.draw(rows_of(one)))
    (row,) = snapshot.rows(together([*plans], snapshot.dialect))
    assert list(row) == [snapshot.scalar(emit.plain(part)) for part in parts]


@settings(max_examples=examples(60))
@given(st.data())
def test_a_star_on_duckdb(on_duckdb: Direct, data: st.DataObject) -> None:
    check_star(data, on_duckdb)


@settings(max_examples=examples(12))
@given(st.data())
def test_a_star_on_postgres(on_postgres: Direct, data: st.DataObject) -> None:
    check_star(data, on_postgres)


def test_rows_whose_key_the_boundary_decides_are_looked_up_by_what_they_share() -> None:
    plans = chained(wanted(_STAR))
    assert plans is not None
    (found,) = [plan for plan in plans if str(plan.residual) == "{home1, sold3, supplier4}"]
    assert {v.name for v in found.residual.boundary} == {"c", "o"}
    assert {v.name for v in found.total.problem.free} == {"n", "o"}


def test_a_table_that_many_group_by_several_columns_is_sent_once() -> None:
    """By the part of its key; and not where one column is left, which is repeated often."""
    star, chain = chained(wanted(_STAR)), chained(wanted(_CHAIN))
    assert star is not None
    assert chain is not None
    text = spark_text(spark_tree(together([*star], "spark")))
    assert "DISTRIBUTE BY `o`" in text
    assert "DISTRIBUTE BY" not in spark_text(spark_tree(together([*chain], "spark")))
    assert "DISTRIBUTE" not in together([*star], "duckdb").sql("duckdb")


def reads(plans: list[Factorised]) -> list[str]:
    """The tables of the one statement, as often as it names them."""
    known = {"customer", "orders", "item", "edge"}
    found = together([*plans], "spark").find_all(exp.Table)
    return sorted(one.name for one in found if one.name in known)


def test_each_table_of_a_chain_is_read_once() -> None:
    plans = chained(wanted(_CHAIN))
    assert plans is not None
    assert [str(plan.residual) for plan in plans] == [
        "{customer1, orders2, item3}",
        "{item3}",
        "{orders2, item3}",
    ]
    assert reads(plans) == ["customer", "item", "orders"]


def test_what_is_joined_is_never_null_in_words() -> None:
    """Spark leaves NULL out of what it joins; only then are the groups beside equal steps."""
    plans = chained(wanted(_CHAIN))
    assert plans is not None
    text = together([*plans], "spark").sql(dialect="spark")
    assert "NOT item3.o IS NULL" in text


@pytest.mark.parametrize(
    "of",
    [
        query(atom(EDGE, "x", "y"), atom(EDGE, "y", "z"), atom(EDGE, "z", "x")),
        query(atom(EDGE, "x", "y"), atom(EDGE, "y", "z"), different="x y z"),
        query(atom(CUSTOMER, "c", "s"), atom(ORDERS, "o", "c"), distinct="s"),
    ],
    ids=["a cycle", "a condition across both", "distinct outputs"],
)
def test_joins_that_can_grow_are_planned_otherwise(of: Query) -> None:
    assert chained(wanted(of)) is None


def test_the_values_of_a_chain(on_duckdb: Direct) -> None:
    for one, rows in (
        (CUSTOMER, [(1, 5)]),
        (ORDERS, [(1, 1), (2, 1), (3, 9)]),
        (ITEM, [(1, 1), (1, 2), (2, 1)]),
    ):
        on_duckdb.fill(one, rows)
    plans = chained(wanted(_CHAIN))
    assert plans is not None
    assert on_duckdb.rows(together([*plans], "duckdb")) == [(3, 2, 3)]
