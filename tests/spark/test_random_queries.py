"""Random queries on random databases: Spark, DuckDB and brute force give the same values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sqlrs.compiler.compile import compile_query
from sqlrs.engines.open import open_engine
from sqlrs.query import Query
from sqlrs.sql.plain import plain
from tests.engines.test_both import every_residual, labelled, loaded_queries
from tests.support import brute, strategies
from tests.support.spark import load
from tests.support.strategies import Draw, Features, TinyDatabase

_FEW = settings(
    max_examples=4,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def _values(spark: Any, database: TinyDatabase, of: Query) -> list[int]:
    load(spark, database.catalog.tables, labelled(database))
    engine = open_engine(spark)
    with engine.snapshot() as snapshot:
        return [snapshot.scalar(plain(one)) for one in every_residual(of)]


@_FEW
@given(drawn=loaded_queries())
def test_queries_as_values(spark: Any, drawn: tuple[TinyDatabase, Query]) -> None:
    database, of = drawn
    expected = [brute.residual_value(one, labelled(database)) for one in every_residual(of)]
    assert _values(spark, database, of) == expected


@st.composite
def _loaded_sql(draw: Draw) -> tuple[TinyDatabase, str]:
    database = draw(strategies.databases())
    features = Features(comparisons=True, distinct=True, semi_joins=True)
    return database, draw(strategies.queries(database.catalog, features))


@pytest.mark.slow
@_FEW
@given(drawn=_loaded_sql())
def test_queries_as_sql(spark: Any, drawn: tuple[TinyDatabase, str]) -> None:
    database, sql = drawn
    compiled = compile_query(sql, database.catalog)
    if isinstance(compiled, Query):
        expected = [
            brute.residual_value(one, labelled(database)) for one in every_residual(compiled)
        ]
        assert _values(spark, database, compiled) == expected
