"""Tables grouped in the order of an index: the same counts, and the same statistics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.catalog import Table
from sqlrs.measuring import sampling
from sqlrs.planning.choose import choose
from sqlrs.planning.plan import PrunedSemiJoins
from sqlrs.planning.witnesses import witnessed
from sqlrs.query import Query
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sql.index_order import in_index_order
from sqlrs.sql.repetitions import largest_frequencies
from sqlrs.sql.write import statement_of
from sqlrs.trees.build import grouped_by, select_from, table_of
from sqlrs.trees.identifiers import column
from tests.planning.adapters import Direct
from tests.planning.strategies import Case, cases
from tests.planning.test_witnesses import witnessed_cases
from tests.support.builders import atom, query, table
from tests.support.examples import examples
from tests.support.special import LINES, Line

pytestmark = pytest.mark.usefixtures("one_seed")

LINE = table("line", "orders", "number", "part", keys=["orders number"])


def led(of: Table, *names: str) -> Table:
    """A table with indexes that begin with these columns; with none given, with each of them."""
    return replace(of, index_leads=frozenset(names or (c.name for c in of.columns)))


def with_indexes(residual: Residual) -> Residual:
    """The same residual over tables that have an index of every column."""
    atoms = tuple(replace(one, table=led(one.table)) for one in residual.query.atoms)
    return Residuals(replace(residual.query, atoms=atoms)).of(residual.members)


def check(case: Case, snapshot: Direct) -> None:
    for one in {a.table.name: a.table for a in case.residual.atoms}.values():
        snapshot.fill(one, case.rows[one.name])
    plain = statement_of(choose(case.residual, how="plain"), snapshot.dialect)
    expected = snapshot.scalar(plain)
    residual = with_indexes(case.residual)
    for how in ("factorised", "pruned", "auto"):
        plan = choose(residual, case.statistics, how=how)
        assert snapshot.scalar(statement_of(plan, snapshot.dialect)) == expected, plan.lines()
    if residual.boundary and (found := witnessed(residual)) is not None:
        for seeds in (1, 64):
            pruned = statement_of(PrunedSemiJoins(residual, found, seeds), snapshot.dialect)
            assert snapshot.scalar(pruned) == expected


any_cases = st.one_of(cases(most_atoms=2), witnessed_cases(most_atoms=2))


@settings(max_examples=examples(80))
@given(any_cases)
def test_on_duckdb(on_duckdb: Direct, case: Case) -> None:
    check(case, on_duckdb)


@settings(max_examples=examples(40))
@given(any_cases)
def test_on_postgres(on_postgres: Direct, case: Case) -> None:
    check(case, on_postgres)


@pytest.mark.parametrize("line", LINES["postgres"], ids=lambda line: line.type.name)
@settings(max_examples=examples(4))
@given(data=st.data())
def test_special_values(on_postgres: Direct, line: Line, data: st.DataObject) -> None:
    check(data.draw(cases(most_atoms=2, line=line)), on_postgres)


def grouped(of: Table, *names: str) -> str:
    select = select_from(table_of(of, "l"), exp.Count(this=exp.Star()))
    select = grouped_by(select, [column(name, "l") for name in names])
    return in_index_order(select, of).sql("postgres")


def test_rows_are_read_in_the_order_of_a_key() -> None:
    assert grouped(led(LINE, "orders"), "part", "orders") == (
        "SELECT COUNT(*) FROM (SELECT l.orders, l.part FROM line AS l "
        "ORDER BY l.orders ASC, l.part ASC) AS l GROUP BY l.orders, l.part"
    )


def test_an_index_that_does_not_help_is_left_alone() -> None:
    """Of a column outside the keys all else would be read row by row, and many rows are alike."""
    plain = grouped(LINE, "part", "orders")
    assert plain == "SELECT COUNT(*) FROM line AS l GROUP BY l.part, l.orders"
    assert grouped(led(LINE, "number"), "part", "orders") == plain
    assert grouped(led(LINE, "part"), "part", "orders") == plain
    # All of it is in the index.
    assert "ORDER BY" in grouped(led(LINE, "part"), "part")


def test_statistics_are_the_same_in_any_order(on_postgres: Direct) -> None:
    """What an index has in order is read as a whole, however long it is, and tells the size."""
    rows = [(i // 4, i % 4, i % 7) for i in range(4000)]
    on_postgres.fill(LINE, rows)
    indexed = led(LINE, "orders")
    sampled = sampling.SampledTables()
    found = sampled.of(on_postgres, meeting(indexed), whole=0)
    whole = sampling.read_statistics(on_postgres, meeting(LINE))
    assert found.rows == whole.rows == {LINE.identity: 4000}
    assert found.repetition(indexed, "orders") == whole.repetition(LINE, "orders")
    wanted = [(one, frozenset({"orders", "part"})) for one in (LINE, indexed)]
    assert [most for _, most in on_postgres.rows(largest_frequencies(wanted))] == [1, 1]


def meeting(of: Table) -> Query:
    """Three lines: two of one order, two of one part."""
    return query(atom(of, "o", "m", "p"), atom(of, "o", "n", "q"), atom(of, "a", "k", "p"))


def texts_run_on(snapshot: Direct, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of all statements from now on."""
    texts: list[str] = []
    run = snapshot.run

    def noted(sql: str) -> list[tuple[Any, ...]]:
        texts.append(sql)
        return run(sql)

    monkeypatch.setattr(snapshot, "run", noted)
    return texts


@pytest.mark.parametrize("engine", ["on_duckdb", "on_postgres"])
def test_columns_of_one_sample(
    engine: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One reading of the table for all that is sampled of it; no sample limits any value."""
    snapshot: Direct = request.getfixturevalue(engine)
    monkeypatch.setattr(sampling, "_SAMPLE", 2_000)
    wide = table("facts", "id", "kind", "place", keys=["id"])
    joined = query(atom(wide, "x", "k", "p"), atom(wide, "y", "k", "q"), atom(wide, "z", "l", "p"))
    snapshot.fill(wide, [(i, i % 50, i % 20) for i in range(8000)])
    texts = texts_run_on(snapshot, monkeypatch)
    found = sampling.SampledTables().of(snapshot, joined, whole=1000)
    assert "".join(texts).count("TABLESAMPLE") == 1
    assert not found.frequencies
    assert found.count(wide) == 8000
    for name, distinct in (("kind", 50), ("place", 20)):
        assert found.repetition(wide, name).distinct == pytest.approx(distinct, rel=0.1)
        assert found.repetition(wide, name).squares == pytest.approx(8000**2 / distinct, rel=0.2)


def test_a_column_compared_with_a_constant_is_not_read() -> None:
    """It guides no join; one that is compared with another column may."""
    visit = table("visit", "id", "person", "day", "cost", keys=["id"])
    two = query(
        atom(visit, "i", "p", "d", "c"),
        atom(visit, "j", "p", "e", "k"),
        less=[("d", "e"), (10, "c")],
    )
    assert {name for _, name in sampling._joined_columns(two)} == {"person", "day"}
