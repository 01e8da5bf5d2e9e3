"""Random queries on random databases: DuckDB, PostgreSQL and Spark give the same count and T_E."""

from __future__ import annotations

from datetime import date
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from sqlrs.engines.open import open_engine
from sqlrs.measuring.measure import measure
from sqlrs.query import Query
from sqlrs.residuals.residual import Reading, Residuals
from sqlrs.sql.plain import plain
from tests.engines.test_both import every_residual, labelled, loaded_queries
from tests.support import brute
from tests.support.engine_fixtures import BothEngines
from tests.support.examples import examples
from tests.support.spark import load
from tests.support.special import Special
from tests.support.strategies import TinyDatabase

_FEW = settings(
    max_examples=examples(2),
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


# Spark has no infinite dates; other days stand for them.
_DAYS = {"infinity": date(9999, 12, 31), "-infinity": date(1, 1, 1)}


def as_spark_has_them(database: TinyDatabase) -> dict[str, list[Any]]:
    """The rows by table, with days that Spark has."""
    return {
        name: [tuple(_day(v) if isinstance(v, Special) else v for v in row) for row in rows]
        for name, rows in labelled(database).items()
    }


def _day(value: Special) -> date:
    return _DAYS.get(str(value)) or date.fromisoformat(str(value))


@_FEW
@given(drawn=loaded_queries())
def test_three_engines_give_one_count_and_one_value_of_each_residual(
    spark: Any, both_engines: BothEngines, drawn: tuple[TinyDatabase, Query]
) -> None:
    database, of = drawn
    rows = as_spark_has_them(database)
    both_engines.load(database.catalog.tables, rows)
    load(spark, database.catalog.tables, rows)
    engines = {**both_engines.engines, "spark": open_engine(spark)}
    residuals = Residuals(of, Reading(exact_comparisons=False))
    wanted = [one.members for one in every_residual(of)]
    expected = {members: brute.residual_value(residuals.of(members), rows) for members in wanted}
    # What keys decide is 1 to a release, also where there is no row.
    parts = residuals.undecided(wanted)
    known = {part.members: brute.residual_value(part, rows) for part in parts}
    values = residuals.assemble(wanted, known)
    for name, engine in engines.items():
        # As a release plans them, and by the definition.
        measured = measure(engine, residuals, wanted)
        assert (measured.count, dict(measured.values)) == (brute.count(of, rows), values), name
        with engine.snapshot() as snapshot:
            for members, value in expected.items():
                assert snapshot.scalar(plain(residuals.of(members))) == value, name
