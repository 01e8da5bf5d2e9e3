"""Texts whose compiled query once failed, or counted otherwise, where the engine's own did not."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import psycopg
import pytest

import sqlrs
from sqlrs.errors import QueryRefused
from tests.support.postgres_server import PostgresServer

TABLES = """
    CREATE TABLE a (x integer, s {text}, k integer, d {decimal}, w numeric(38, 3));
    CREATE TABLE b (x bigint, y integer, c char(4), z smallint);
    INSERT INTO a VALUES (2000000000, '5 ', 1, 1.5, 12345678901234567890123456789012345.678),
      (3, '5', 2, 9.9, -12345678901234567890123456789012345.678), (0, 'q', 0, 0, 0);
    INSERT INTO b VALUES (3, 2000000000, '5', 3), (5000000000, 0, '5', 5), (0, 7, 'q', 0),
      (9223372036854775807, 1, 'z', 1);
"""
TEXTS = [
    # A filter of a bigint on the integer that equals it, and on rows without a partner.
    "SELECT count(*) FROM a, b WHERE a.x = b.x AND b.x * 2000000000 > 0 AND b.x < 4",
    "SELECT count(*) FROM a, b WHERE a.x = b.x AND a.x + 100000000 > 0",
    "SELECT count(*) FROM a, b WHERE a.x = b.x AND b.z * 2000 > 0",
    "SELECT count(*) FROM a, b WHERE a.k = b.z AND a.k * 2000 + a.x > 0",
    # A literal in the place of a bigint, of an integer, of a smallint.
    "SELECT count(*) FROM a, b WHERE b.x = 3 AND b.x * a.x > 0",
    "SELECT count(*) FROM a, b WHERE b.x = 3 AND b.x * 2000000000 > a.k",
    "SELECT count(*) FROM a, b WHERE b.x = 5000000000 AND b.x + a.k > 0",
    "SELECT count(*) FROM a, b WHERE a.x = 5000000000 AND (a.x + b.y > 0 OR b.y = 0)",
    # A text keeps its type.
    "SELECT count(*) FROM a, b WHERE a.s = '5 ' AND (a.s = b.c OR b.y = 0)",
    "SELECT count(*) FROM a, b WHERE a.s = '5' AND (a.s = b.c OR b.y = 0)",
    # Guards stay in front of what they guard.
    "SELECT count(*) FROM a WHERE a.k > 0 AND a.x / a.k > 2",
    "SELECT count(*) FROM a WHERE 10 / a.k > 2 AND a.k = 2",
    "SELECT count(*) FROM a, b WHERE b.z <> 0 AND b.x < 9 AND b.y / b.z > 2 AND a.k = b.z",
    "SELECT count(*) FROM a, b WHERE a.k = a.x AND b.x < 10 AND b.x * 2000000000 >= a.k",
    "SELECT count(*) FROM a WHERE d = 123456.5 AND k IS NOT NULL",
    # Every digit of a decimal counts.
    "SELECT count(*) FROM a WHERE w = 12345678901234567890123456789012345.678",
    "SELECT count(*) FROM a WHERE w <= -12345678901234567890123456789012345.678",
    "SELECT count(*) FROM a, b WHERE a.w < -12345678901234567890123456789012345.677 AND b.z = a.k",
]
DUCKDB_TEXTS = [
    "SELECT count(*) FROM t WHERE s = '2020-01-01 00:00:00.4'",
    "SELECT count(*) FROM t WHERE s = '2020-01-01 00:00:00.4' AND s = '2020-01-01 00:00:00.3'",
    "SELECT count(*) FROM t WHERE s < '2020-01-01 00:00:00.4'",
    "SELECT count(*) FROM t WHERE m >= '2020-01-01 00:00:00.0006'",
    "SELECT count(*) FROM t WHERE s = TIMESTAMP '2020-01-01 00:00:00.4'",
    "SELECT count(*) FROM t WHERE s BETWEEN '2020-01-01 00:00:00.4' AND TIMESTAMP '2020-01-01'",
    "SELECT count(*) FROM t, u WHERE t.s = u.u AND (t.s = '2020-01-01 00:00:00.4' OR u.i = 9)",
    "SELECT count(*) FROM t WHERE i::bit = '00000000000000000000000000000101'",
    "SELECT count(*) FROM t, u WHERE t.i = u.i::bit",
    "SELECT count(*) FROM t WHERE d = 1234.5 AND (d > i OR i = 5)",
]


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def target(request: pytest.FixtureRequest) -> Iterator[object]:
    """A database with columns of several widths."""
    if request.param == "duckdb":
        connection = duckdb.connect()
        connection.execute(TABLES.format(text="varchar", decimal="decimal(4,1)"))
        yield connection
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.database() as url, psycopg.connect(url, autocommit=True) as postgres:
        postgres.execute(TABLES.format(text="text", decimal="numeric(4,1)").encode())
        yield postgres


def _own(target: object, sql: str) -> int:
    if isinstance(target, duckdb.DuckDBPyConnection):
        return int(target.execute(sql).fetchall()[0][0])
    assert isinstance(target, psycopg.Connection)
    return int(target.execute(sql.encode()).fetchall()[0][0])


@pytest.mark.parametrize("sql", TEXTS)
def test_the_count_is_the_engines_own(target: object, sql: str) -> None:
    with sqlrs.connect(target, public=["a", "b"]) as db:
        assert db.count(sql, 1).value == _own(target, sql)


@pytest.mark.parametrize("sql", TEXTS[:7])
def test_a_release_does_not_fail_where_the_engine_does_not(target: object, sql: str) -> None:
    with sqlrs.connect(target) as db:
        db.count(sql, 1)


@pytest.mark.parametrize("sql", DUCKDB_TEXTS)
def test_duckdbs_coarse_timestamps_and_bits_are_read_as_it_reads_them(sql: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t (s TIMESTAMP_S, m TIMESTAMP_MS, i INTEGER, d DECIMAL(4,1));"
            "CREATE TABLE u (u TIMESTAMP, i INTEGER);"
            "INSERT INTO t VALUES ('2020-01-01 00:00:00', '2020-01-01 00:00:00.001', 5, 1.5);"
            "INSERT INTO u VALUES ('2020-01-01 00:00:00', 5)"
        )
        with sqlrs.connect(connection, public=["t", "u"]) as db:
            try:
                found = db.count(sql, 1).value
            except QueryRefused:
                return
            assert found == _own(connection, sql)


def test_a_views_text_is_read_word_for_word() -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t (s varchar, ts timestamp);"
            "INSERT INTO t VALUES ('month', '2020-01-01'), ('x', '2020-01-02');"
            "CREATE VIEW \"as\" (a) AS SELECT s FROM t WHERE date_trunc('month', ts) = ts;"
            "CREATE VIEW by_unit AS SELECT s FROM t WHERE date_trunc(s, ts) = ts"
        )
        with sqlrs.connect(connection, public=["t"]) as db:
            assert db.count('SELECT count(a) FROM "as"', 1).value == 1
            # A tree takes the column s for the unit.
            with pytest.raises(QueryRefused, match="unit"):
                db.count("SELECT count(*) FROM by_unit", 1)
