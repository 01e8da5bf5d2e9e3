"""Random queries on random databases: Spark gives the values of brute force, as the others do."""

from __future__ import annotations

from datetime import date
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from sqlrs.engines.open import open_engine
from sqlrs.query import Query
from sqlrs.sql.plain import plain
from tests.engines.test_both import every_residual, labelled, loaded_queries
from tests.support import brute
from tests.support.examples import examples
from tests.support.spark import load
from tests.support.special import Special
from tests.support.strategies import TinyDatabase

_FEW = settings(
    max_examples=examples(4),
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


# Spark has no infinite dates; other days stand for them.
_DAYS = {"infinity": date(9999, 12, 31), "-infinity": date(1, 1, 1)}


def _rows(database: TinyDatabase) -> dict[str, list[Any]]:
    return {
        name: [tuple(_day(v) if isinstance(v, Special) else v for v in row) for row in rows]
        for name, rows in labelled(database).items()
    }


def _day(value: Special) -> date:
    return _DAYS.get(str(value)) or date.fromisoformat(str(value))


def _values(spark: Any, database: TinyDatabase, of: Query) -> list[int]:
    load(spark, database.catalog.tables, _rows(database))
    engine = open_engine(spark)
    with engine.snapshot() as snapshot:
        return [snapshot.scalar(plain(one)) for one in every_residual(of)]


@_FEW
@given(drawn=loaded_queries())
def test_queries_as_values(spark: Any, drawn: tuple[TinyDatabase, Query]) -> None:
    database, of = drawn
    expected = [brute.residual_value(one, _rows(database)) for one in every_residual(of)]
    assert _values(spark, database, of) == expected
