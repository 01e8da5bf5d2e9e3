"""Spark Connect: what Spark's dialect writes runs behind it too, and gives the same values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession as RemoteSession

import sqlrs
from sqlrs.database import Database
from sqlrs.engines.open import open_engine
from tests.golden.constructs import CONSTRUCTS, ROWS, TABLES
from tests.spark import test_chains as chains
from tests.spark import test_statements_alike as alike
from tests.support.spark import connect_url, load
from tests.support.spark_golden import SparkConstructs

# A join, a series of days with a window, names of all kinds.
_QUICK = frozenset({"join_on", "sweep_date", "quoted_names"})


@pytest.fixture(scope="module")
def constructs(spark: Any) -> Iterator[SparkConstructs]:
    load(spark, TABLES, ROWS, stored=True)
    found = SparkConstructs.on(connect_url(spark))
    yield found
    found.engine.close()


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in _QUICK else [pytest.mark.slow]) for n in CONSTRUCTS],
)
def test_the_constructs_have_the_values_of_the_definition(
    constructs: SparkConstructs, name: str
) -> None:
    constructs.assert_values(name)


def test_rows_are_sent_by_a_column(spark: Any) -> None:
    load(spark, chains.STAR_TABLES, rows := chains.star_rows(), stored=True)
    engine = open_engine(connect_url(spark))
    chains.assert_star(engine, rows)
    engine.close()


@pytest.fixture(scope="module")
def opened(spark: Any) -> Iterator[dict[str, tuple[Database, Database]]]:
    load(spark, alike.TABLES, alike.rows(), stored=True)
    with alike.both(connect_url(spark)) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("name", alike.STATEMENTS)
def test_statements_about_rows(
    opened: dict[str, tuple[Database, Database]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert alike.same_rows(opened["rows"], alike.STATEMENTS[name], monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*alike.OF_UNITS, *alike.INSIDE_UNITS])
def test_statements_about_units(
    opened: dict[str, tuple[Database, Database]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = {**alike.STATEMENTS, **alike.INSIDE_UNITS}[name]
    assert alike.same_rows(opened["units"], sql, monkeypatch)


def test_a_session_that_is_given_stays_its_owner_s(spark: Any) -> None:
    load(spark, alike.TABLES, alike.rows(), stored=True)
    given = RemoteSession.builder.remote(connect_url(spark)).create()
    try:
        given.conf.set("spark.sql.ansi.enabled", "false")
        with sqlrs.connect(given) as database:
            assert database.count("SELECT count(*) FROM stay", epsilon=40).value == 60
        assert given.conf.get("spark.sql.ansi.enabled") == "false"
        assert [row[0] for row in given.sql("SELECT count(*) FROM stay").collect()] == [60]
        assert given.sql("SHOW VIEWS").collect() == []
    finally:
        given.stop()
