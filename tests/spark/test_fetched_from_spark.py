"""Small tables that are fetched from Spark and joined here: the values that Spark itself gives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from sqlglot import exp

import sqlrs
from sqlrs.dialects.spark_text import spark_text
from sqlrs.engines.base import Opened
from sqlrs.engines.duckdb import DuckDBEngine
from sqlrs.engines.open import open_engine
from sqlrs.engines.spark import SparkEngine
from sqlrs.engines.spark_snapshot import SparkSnapshot
from sqlrs.errors import Interrupted
from sqlrs.measuring.measurements import Measurements
from sqlrs.planning.fetched import fetched_query
from sqlrs.query import Query
from sqlrs.residuals.residual import Reading, Residuals
from tests.engines.test_both import every_residual, loaded_queries
from tests.spark.test_chains import noted
from tests.spark.test_random_queries import as_spark_has_them
from tests.support import brute
from tests.support.builders import atom, query, table
from tests.support.examples import examples
from tests.support.spark import connect_url, load
from tests.support.strategies import TinyDatabase

_MUCH = 2**40
# So much that the noise is 0.
_SURE = 40
_FEW = settings(
    max_examples=examples(4),
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@contextmanager
def fetching() -> Iterator[list[str]]:
    """The texts of the statements whose rows are fetched within the block."""
    texts: list[str] = []
    fetch = SparkSnapshot.in_columns

    def kept(own: SparkSnapshot, tree: exp.Expr) -> Any:
        texts.append(spark_text(tree))
        return fetch(own, tree)

    with patch.object(SparkSnapshot, "in_columns", kept):
        yield texts


@_FEW
@given(drawn=loaded_queries())
def test_random_queries_have_the_values_of_the_definition(
    spark: Any, drawn: tuple[TinyDatabase, Query]
) -> None:
    database, asked = drawn
    if fetched_query(asked, lambda one: str(id(one))) is None:
        return
    rows = as_spark_has_them(database)
    load(spark, database.catalog.tables, rows)
    residuals = Residuals(asked, Reading(exact_comparisons=False))
    wanted = [one.members for one in every_residual(asked)]
    parts = residuals.undecided(wanted)
    known = {part.members: brute.residual_value(part, rows) for part in parts}
    with open_engine(spark).snapshot() as snapshot, noted() as run, fetching() as fetched:
        source = Opened(snapshot, "spark")
        found = Measurements(source, fetch_limit=_MUCH).enough(residuals, wanted, None)
    assert found.count == brute.count(asked, rows)
    assert dict(found.values) == residuals.assemble(wanted, known)
    # Beside what is fetched, Spark is asked for numbers of rows alone.
    assert fetched and len(run) <= len(database.catalog.tables)


SPECIAL = """
SELECT CAST(k AS STRING) AS k, n, b, d FROM VALUES
  (X'FF', -9223372036854775808L, true, DATE '0001-01-01'),
  (X'FE', 9223372036854775807L, false, NULL),
  (X'C3A4', 0L, NULL, DATE '9999-12-31'), (X'', NULL, true, DATE '1582-10-04'),
  (X'00', 1L, false, DATE '1582-10-15'), (X'20', 1L, true, DATE '1970-01-01'),
  (NULL, NULL, NULL, NULL), (X'EFBFBD', 2L, NULL, DATE '1969-12-31')
AS t(k, n, b, d)
"""


@pytest.mark.parametrize("column", ["k", "n", "b", "d"])
def test_special_values_meet_as_they_do_in_spark(spark: Any, tmp_path: Path, column: str) -> None:
    """Bytes that are no text, ends of ranges, days of another calendar, NULL."""
    for name in ("left", "right"):
        spark.sql(SPECIAL).write.parquet(str(tmp_path / name))
    given = {name: tmp_path / name for name in ("left", "right")}
    with sqlrs.connect(spark, tables=given) as database:
        same, apart = f"l.{column} = r.{column}", "b" if column == "n" else "n"
        for on in (same, f"{same} AND l.{apart} <> r.{apart}"):
            sql = f"SELECT count(*) FROM `left` l JOIN `right` r ON {on}"
            with fetching() as fetched:
                answer = database.count(sql, epsilon=_SURE).value
            frames = [spark.read.parquet(str(given[name])) for name in ("left", "right")]
            for frame, alias in zip(frames, "lr", strict=True):
                frame.createOrReplaceTempView(alias)
            assert fetched
            assert answer == spark.sql(f"SELECT count(*) FROM l JOIN r ON {on}").collect()[0][0]
            for alias in "lr":
                spark.catalog.dropTempView(alias)


_VISITS = "SELECT count(*) FROM visit a JOIN visit b ON a.patient = b.patient WHERE a.id < 50"


@pytest.fixture
def visits(spark: Any, tmp_path: Path) -> Path:
    path = tmp_path / "visits"
    spark.range(100).selectExpr("id", "id % 7 AS patient").write.parquet(str(path))
    return path


@pytest.mark.parametrize("remote", [False, True], ids=["application", "connect"])
def test_a_release_fetches_what_it_joins(spark: Any, visits: Path, remote: bool) -> None:
    target = connect_url(spark) if remote else spark
    expected = sum(1 for a in range(50) for b in range(100) if a % 7 == b % 7)
    with sqlrs.connect(target, tables={"visit": visits}) as database:
        with noted() as run, fetching() as fetched:
            assert database.count(_VISITS, epsilon=_SURE).value == expected
        # One occurrence has a condition, which stays in Spark.
        assert sorted("< 50" in text for text in fetched) == [False, True]
        assert len(run) == 1 and "COUNT(*)" in run[0]
        spark.range(100, 107).selectExpr("id", "id % 7 AS patient").write.mode("append").parquet(
            str(visits)
        )
        with noted() as run, fetching() as fetched:
            assert database.count(_VISITS, epsilon=_SURE + 1).value == expected + 50
        assert len(run) == 1 and len(fetched) == 2
        # While the files stay, their rows are counted once.
        with noted() as run, fetching() as fetched:
            assert database.count(_VISITS, epsilon=_SURE + 2).value == expected + 50
        assert not run and len(fetched) == 2


def test_an_owner_may_forbid_it(spark: Any, visits: Path) -> None:
    own = sqlrs.Settings(fetch_limit=0)
    with (
        sqlrs.connect(spark, tables={"visit": visits}, settings=own) as database,
        noted() as run,
        fetching() as fetched,
    ):
        assert database.count(_VISITS, epsilon=_SURE).value
    assert run and not fetched


def test_fetched_rows_end_with_the_release(spark: Any, visits: Path) -> None:
    engine = open_engine(spark, tables={"visit": visits})
    opened: list[DuckDBEngine] = []
    visit = table("visit", "id", "patient")
    residuals = Residuals(query(atom(visit, "i", "p", alias="a"), atom(visit, "j", "p", alias="b")))
    begin = SparkEngine.database_here

    def noted_here(own: SparkEngine, memory: int) -> DuckDBEngine:
        opened.append(begin(own, memory))
        return opened[-1]

    with patch.object(SparkEngine, "database_here", noted_here):
        with engine.snapshot() as snapshot:
            source = Opened(snapshot, "spark")
            assert Measurements(source, fetch_limit=_MUCH).count(residuals) > 100
            (here,) = opened
            with here.snapshot() as inside:
                names = inside.run("SELECT table_name FROM duckdb_tables()")
            assert len(names) == 1
        with pytest.raises(sqlrs.SqlrsError, match="closed"), here.snapshot():
            pass
    engine.close()


def test_what_is_joined_here_is_stopped(spark: Any, visits: Path) -> None:
    engine = open_engine(spark, tables={"visit": visits})
    many = exp.select(exp.Sum(this=exp.column("range", "a"))).from_(
        "range(1000000000) AS a, range(1000000) AS b"
    )
    with pytest.raises(Interrupted), engine.snapshot() as snapshot:
        here = snapshot.fetched({}, 2**30)  # type: ignore[attr-defined]
        with here.snapshot() as inside:
            threading.Timer(0.5, engine.interrupt).start()
            inside.scalar(many)
    engine.close()


def test_days_and_numbers_of_rows_are_compared_within_spark(spark: Any, tmp_path: Path) -> None:
    """A comparison within a row is Spark's, whatever type it is of."""
    rows = [(1, 1.5, date(2024, 1, 1)), (1, float("nan"), date(2024, 1, 2)), (2, -0.0, None)]
    path = tmp_path / "held"
    spark.createDataFrame(rows, "k INT, x DOUBLE, d DATE").write.parquet(str(path))
    sql = "SELECT count(*) FROM held a JOIN held b ON a.k = b.k WHERE a.x > 1.0 AND b.d >= a.d"
    with sqlrs.connect(spark, tables={"held": path}) as database, fetching() as fetched:
        # NaN is above every number in Spark, and both rows of 1 are.
        assert database.count(sql, epsilon=_SURE).value == 3
    assert any("1.0" in text for text in fetched)
