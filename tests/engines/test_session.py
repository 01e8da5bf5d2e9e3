"""SQL means on a snapshot what it means on the connection that the owner gave."""

from __future__ import annotations

import duckdb
import psycopg
import pytest

import sqlrs
from sqlrs.engines.open import open_engine
from sqlrs.errors import UsageError
from tests.support.gaps import notyet

ROWS = """
    CREATE TABLE t (i integer, j integer, d double, s varchar, dt date, tz timestamptz);
    INSERT INTO t VALUES
      (7, 2, 0.0, 'ab', '2024-01-01', '2024-01-01 03:00:00+00'),
      (8, 3, 1.0, 'AB', '2024-01-02', '2024-01-02 12:00:00+00'),
      (9, 0, -1.0, 'b', '2024-06-30', '2024-06-30 23:00:00+00');
"""


_DIVISION = notyet("duckdb<2", "no error_on_division_by_zero", raises=duckdb.CatalogException)


@pytest.mark.parametrize(
    ("setting", "condition"),
    [
        ("SET TimeZone = 'America/New_York'", "tz >= dt"),
        ("SET TimeZone = 'Asia/Tokyo'", "CAST(tz AS date) = dt"),
        ("SET integer_division = true", "i / (j + 1) = 2"),
        ("SET default_collation = 'NOCASE'", "s = 'ab'"),
        pytest.param(
            "SET ieee_floating_point_ops = false; SET error_on_division_by_zero = false",
            "coalesce(1.0 / d, 5) = 5",
            marks=_DIVISION,
        ),
        pytest.param(
            "SET error_on_division_by_zero = false", "coalesce(i % j, 5) = 5", marks=_DIVISION
        ),
        pytest.param(
            "SET error_on_division_by_zero = false", "coalesce(i // j, 5) = 5", marks=_DIVISION
        ),
        ("SET Calendar = 'japanese'", "year(tz) = 2024"),
    ],
)
def test_a_given_duckdb_connection_keeps_its_settings(setting: str, condition: str) -> None:
    with duckdb.connect() as plain:
        plain.execute(ROWS)
        connection = plain.cursor()
        connection.execute(setting)
        sql = f"SELECT count(*) FROM t WHERE {condition}"
        found = connection.execute(sql).fetchall()[0][0]
        with sqlrs.connect(connection, public=["t"]) as db:
            assert db.count(sql, 1).value == found
            assert connection.execute(sql).fetchall()[0][0] == found


def test_the_settings_change_the_counts() -> None:
    with duckdb.connect() as connection:
        connection.execute(ROWS)
        sql = "SELECT count(*) FROM t WHERE CAST(tz AS date) = dt"
        before = connection.execute(sql).fetchall()
        connection.execute("SET TimeZone = 'America/New_York'")
        assert connection.execute(sql).fetchall() != before


def test_output_settings_stay_behind() -> None:
    with duckdb.connect() as connection:
        connection.execute("SET enable_profiling = 'no_output'; SET TimeZone = 'Asia/Tokyo'")
        engine = open_engine(connection)
        with engine.snapshot() as snapshot:
            found = snapshot.run(  # type: ignore[attr-defined]
                "SELECT current_setting('TimeZone'), current_setting('enable_profiling')"
            )
        assert found == [("Asia/Tokyo", None)]


def test_a_locked_connection_whose_settings_cannot_be_carried_is_refused() -> None:
    off = "SET disabled_optimizers = 'common_subplan'"
    with duckdb.connect() as connection:
        connection.execute(f"{off}; SET lock_configuration = true")
        sqlrs.connect(connection).close()
    with duckdb.connect() as connection:
        connection.execute(f"{off}; SET TimeZone = 'Asia/Tokyo'; SET lock_configuration = true")
        with pytest.raises(UsageError, match="TimeZone cannot be carried"):
            sqlrs.connect(connection)


def test_a_temporary_table_that_hides_another_is_refused() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (x integer); CREATE TEMP TABLE u (x integer)")
        sqlrs.connect(connection).close()
        connection.execute("CREATE TEMP TABLE T (x integer)")
        with pytest.raises(UsageError, match="hides"):
            sqlrs.connect(connection)


@pytest.mark.parametrize(
    ("setting", "condition"),
    [
        ("SET TimeZone = 'America/New_York'", "CAST(tz AS date) = dt"),
        ("SET DateStyle = 'SQL, DMY'", "dt = '02/01/2024'::date"),
        ("SET DateStyle = 'German'", "CAST(dt AS text) = '02.01.2024'"),
        ("SET IntervalStyle = 'iso_8601'", "CAST(tz - tz AS text) = 'PT0S'"),
        ("SET extra_float_digits = 0", "CAST(f + 0.1 AS text) = '0.3'"),
        ("SET search_path = other, public", "i = 1"),
    ],
)
def test_a_given_postgres_connection_keeps_its_settings(
    postgres_db: str, setting: str, condition: str
) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE t (i integer, dt date, tz timestamptz, f float8);"
            "INSERT INTO t VALUES (2, '2024-01-02', '2024-01-02 03:00:00+00', 0.2);"
            "CREATE SCHEMA other; CREATE TABLE other.t (i integer); INSERT INTO other.t VALUES (1)"
        )
        connection.execute(setting.encode())
        sql = f"SELECT count(*) FROM t WHERE {condition}"
        found = connection.execute(sql.encode()).fetchall()[0][0]
        with sqlrs.connect(connection, public=["public.t", "other.t"]) as db:
            assert db.count(sql, 1).value == found


def test_a_postgres_session_that_reads_other_sql_is_refused(postgres_db: str) -> None:
    for name, value in (("standard_conforming_strings", "off"), ("transform_null_equals", "on")):
        with psycopg.connect(postgres_db, autocommit=True) as connection:
            connection.execute(f"SET {name} = {value}".encode())
            with pytest.raises(UsageError, match=name):
                sqlrs.connect(connection)


def test_a_temporary_table_of_postgres_that_hides_another_is_refused(postgres_db: str) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (x integer); CREATE TEMP TABLE u (x integer)")
        sqlrs.connect(connection).close()
        connection.execute("CREATE TEMP TABLE t (x integer)")
        with pytest.raises(UsageError, match="hides t"):
            sqlrs.connect(connection)
