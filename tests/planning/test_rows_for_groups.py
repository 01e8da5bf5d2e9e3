"""Counts of few results are joined as rows: the same numbers as with groups."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import sqlrs
from sqlrs.engines.duckdb import DuckDBSnapshot
from sqlrs.measuring import sampling as reading
from sqlrs.planning.bags import Grouping
from sqlrs.planning.choose import choose
from sqlrs.planning.plan import Factorised
from sqlrs.planning.rows_for_groups import rows_for_groups
from sqlrs.planning.table_statistics import Repetition, Statistics
from sqlrs.query import Query
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sql.write import statement_of
from tests.planning.adapters import Direct
from tests.planning.strategies import Case, cases
from tests.support.builders import atom, query, table
from tests.support.examples import examples

SALE = table("sale", "customer", "product", "day", nullable="customer")
CLICK = table("click", "customer", "product", "day", nullable="product")
PRODUCT = table("product", "id", "category", keys=["id"], nullable="category")
SHOP = (SALE, CLICK, PRODUCT)
MANY = Statistics(
    {SALE.identity: 2e5, CLICK.identity: 4e5, PRODUCT.identity: 2e3},
    {
        (SALE.identity, "customer"): Repetition(1e4, 4e6, 38.0),
        (SALE.identity, "product"): Repetition(2e3, 7e8, 2e4),
        (CLICK.identity, "customer"): Repetition(1e4, 2e9, 3e4),
        (CLICK.identity, "product"): Repetition(2e3, 8e7, 300.0),
        (PRODUCT.identity, "category"): Repetition(300.0, 1e5, 250.0),
    },
)


def of_a_category(**more: object) -> Query:
    """Sales and clicks of one customer and of products of one category."""
    return query(
        atom(SALE, "c", "p", "d"),
        atom(CLICK, "c", "q", "e"),
        atom(PRODUCT, "p", "k"),
        atom(PRODUCT, "q", "k"),
        **more,  # type: ignore[arg-type]
    )


def counted(residual: Residual, statistics: Statistics | None) -> Factorised | None:
    """The plan with rows in place of groups, None where there is none."""
    if residual.external or residual.output is not None:
        return None
    plan = choose(replace(residual, boundary=frozenset()), statistics, how="factorised")
    return rows_for_groups(plan) if isinstance(plan, Factorised) else None


def check(residual: Residual, statistics: Statistics | None, on: Direct) -> bool:
    plan = counted(residual, statistics)
    if plan is not None:
        plain = choose(plan.residual, how="plain")
        expected = on.scalar(statement_of(plain, on.dialect))
        assert on.scalar(statement_of(plan, on.dialect)) == expected
    return plan is not None


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
@settings(max_examples=examples(80))
@given(case=cases())
def test_random_queries(on_duckdb: Direct, on_postgres: Direct, engine: str, case: Case) -> None:
    snapshot = on_duckdb if engine == "duckdb" else on_postgres
    for one in {a.table.name: a.table for a in case.residual.atoms}.values():
        snapshot.fill(one, case.rows[one.name])
    event(f"opened: {check(case.residual, case.statistics, snapshot)}")


numbers = st.integers(0, 3)


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
@settings(max_examples=examples(40))
@given(
    facts=st.lists(st.tuples(numbers | st.none(), numbers, numbers), max_size=12),
    others=st.lists(st.tuples(numbers, numbers | st.none(), numbers), max_size=12),
    categories=st.lists(numbers | st.none(), max_size=4),
    early=st.booleans(),
)
def test_two_facts(
    on_duckdb: Direct,
    on_postgres: Direct,
    engine: str,
    facts: list[tuple[object, ...]],
    others: list[tuple[object, ...]],
    categories: list[int | None],
    early: bool,
) -> None:
    """Rows come several times, products lack, and some have no category."""
    snapshot = on_duckdb if engine == "duckdb" else on_postgres
    snapshot.fill(SALE, facts)
    snapshot.fill(CLICK, others)
    snapshot.fill(PRODUCT, list(enumerate(categories)))
    of = of_a_category(less=[("d", 2)] if early else [])
    assert check(Residuals(of).of(of.everything), MANY, snapshot)


def test_every_row_counts(on_duckdb: Direct) -> None:
    """Two equal sales and three equal clicks are six results: rows are no groups."""
    on_duckdb.fill(SALE, [(1, 1, 0)] * 2)
    on_duckdb.fill(CLICK, [(1, 2, 0)] * 3)
    on_duckdb.fill(PRODUCT, [(1, 7), (2, 7)])
    of = of_a_category()
    plan = counted(Residuals(of).of(of.everything), MANY)
    assert plan is not None
    (step,) = (one for one in plan.total.terms[0].join.inputs if isinstance(one, Grouping))
    assert step.opened and not step.counted
    assert replace(step, opened=False).canonical.form != step.canonical.form
    assert on_duckdb.scalar(statement_of(plan, "duckdb")) == 6


def test_what_stays_grouped() -> None:
    """A condition on both sides hides how many rows agree, and a table without a key adds rows."""
    of = of_a_category(less=[("d", "e")])
    assert counted(Residuals(of).of(of.everything), MANY) is None
    unkeyed = table("unkeyed", "id", "category")
    spread = {
        (unkeyed.identity, "id"): Repetition(2e3, 4e3, 2.0),
        (unkeyed.identity, "category"): MANY.columns[PRODUCT.identity, "category"],
    }
    more = query(
        atom(SALE, "c", "p", "d"),
        atom(CLICK, "c", "q", "e"),
        atom(PRODUCT, "p", "k"),
        atom(unkeyed, "q", "k"),
    )
    rows, columns = {**MANY.rows, unkeyed.identity: 2e3}, {**MANY.columns, **spread}
    assert counted(Residuals(more).of(more.everything), Statistics(rows, columns)) is None


def test_the_second_answer_joins_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the count turned out to be small; on other rows it is grouped again."""
    monkeypatch.setattr(reading, "_SMALL", 0)
    rng = random.Random(5)
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        for name, many in (("sale", 3000), ("click", 6000)):
            connection.execute(f"CREATE TABLE {name} (customer INT NOT NULL, product INT NOT NULL)")
            rows = [(rng.randrange(900), rng.randrange(300)) for _ in range(many)]
            connection.execute(f"INSERT INTO {name} VALUES {', '.join(map(str, rows))}")
        connection.execute(
            "CREATE TABLE product AS SELECT range AS id, range % 150 AS category FROM range(300)"
        )
        connection.execute("ALTER TABLE product ALTER id SET NOT NULL")
        connection.execute("ALTER TABLE product ALTER category SET NOT NULL")
    run, read = DuckDBSnapshot.run, list[str]()

    def heard(self: DuckDBSnapshot, text: str, *more: object) -> object:
        read.append(text)
        return run(self, text, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(DuckDBSnapshot, "run", heard)
    sql = (
        "SELECT count(*) FROM sale, click, product AS bought, product AS seen"
        " WHERE sale.customer = click.customer AND sale.product = bought.id"
        " AND click.product = seen.id AND bought.category = seen.category"
    )
    grouped = []
    with sqlrs.connect(f"duckdb:///{path}", keys={"product": ["id"]}) as database:
        for turn in range(3):
            read.clear()
            database.count(sql, f"1.0{turn}")
            count = next(text for text in read if "SUM(" in text and "CAST" not in text)
            grouped.append("GROUP BY" in count.split("value_2")[0])
    assert grouped[0] and not grouped[2]
