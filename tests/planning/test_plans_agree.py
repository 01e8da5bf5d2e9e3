"""Every plan gives the number that the plain plan gives."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import psycopg
import pytest
from hypothesis import given, settings

from sqlrs.planning import choose
from tests.planning.adapters import Direct
from tests.planning.strategies import Case, cases


@pytest.fixture(scope="module")
def on_duckdb() -> Iterator[Direct]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        yield Direct(connection)


@pytest.fixture(scope="module")
def on_postgres(postgres: str) -> Iterator[Direct]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("SET search_path = pg_temp")
        yield Direct(connection)


def check(case: Case, snapshot: Direct) -> None:
    for t in {atom.table.name: atom.table for atom in case.residual.atoms}.values():
        snapshot.fill(t, case.rows[t.name])
    plain = choose(case.residual, how="plain", dialect=snapshot.dialect)
    expected = snapshot.scalar(plain.statement())
    for how in ("factorised", "pruned", "auto"):
        plan = choose(case.residual, case.statistics, how=how, dialect=snapshot.dialect)
        found = snapshot.scalar(plan.statement())
        assert found == expected, "\n".join([how, *plan.lines()])


@settings(max_examples=250)
@given(cases())
def test_on_duckdb(on_duckdb: Direct, case: Case) -> None:
    check(case, on_duckdb)


@settings(max_examples=100)
@given(cases())
def test_on_postgres(on_postgres: Direct, case: Case) -> None:
    check(case, on_postgres)


@pytest.mark.slow
@settings(max_examples=2500)
@given(cases(most_atoms=6))
def test_many_on_duckdb(on_duckdb: Direct, case: Case) -> None:
    check(case, on_duckdb)


@pytest.mark.slow
@settings(max_examples=2000)
@given(cases(most_atoms=6))
def test_many_on_postgres(on_postgres: Direct, case: Case) -> None:
    check(case, on_postgres)
