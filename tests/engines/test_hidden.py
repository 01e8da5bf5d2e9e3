"""A function of the database is never called in the place of a built-in one of the list."""

from __future__ import annotations

import duckdb
import psycopg
import pytest

import sqlrs
from sqlrs.errors import QueryRefused, UsageError


def test_a_macro_hides_the_built_in_function() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (x integer); INSERT INTO t VALUES (-1), (2)")
    connection.execute("CREATE MACRO Abs(x) AS (SELECT count(*) FROM t)")
    with sqlrs.connect(connection, public=["t"]) as db:
        assert db.count("SELECT count(*) FROM t WHERE sign(x) = 1", 1).value == 1
        with pytest.raises(QueryRefused, match="abs is hidden") as caught:
            db.count("SELECT count(*) FROM t WHERE abs(x) = 1", 1)
    assert caught.value.code == "unknown_function"


@pytest.mark.parametrize("name", ["max", "SUM", "+", "||", "isfinite", "duckdb_tables"])
def test_a_macro_that_our_own_statements_would_call_is_refused(name: str) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (x integer); INSERT INTO t VALUES (-1), (2)")
    with sqlrs.connect(connection) as db:
        # One that comes later too, before the charge.
        connection.execute(f'CREATE MACRO "{name}"(a) AS 77')
        with pytest.raises(UsageError, match="of its own"):
            db.count("SELECT count(*) FROM t a JOIN t b ON a.x = b.x", 1)
        assert isinstance(db.ledger, sqlrs.MemoryLedger) and not list(db.ledger.history())
    with pytest.raises(UsageError, match="of its own"):
        sqlrs.connect(connection)


def test_a_function_with_better_fitting_types_hides_the_built_in_one(postgres_db: str) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (x varchar); INSERT INTO t VALUES ('A')")
        connection.execute(
            "CREATE FUNCTION public.lower(varchar) RETURNS text LANGUAGE sql AS $$ SELECT 'b' $$"
        )
        with sqlrs.connect(postgres_db, public=["t"]) as db:
            assert db.count("SELECT count(*) FROM t WHERE upper(x) = 'A'", 1).value == 1
            with pytest.raises(QueryRefused, match="lower is hidden"):
                db.count("SELECT count(*) FROM t WHERE lower(x) = 'a'", 1)
        # A function for a type of the owner's own stands in nobody's way.
        connection.execute("DROP FUNCTION public.lower(varchar); CREATE TYPE mood AS ENUM ('ok')")
        connection.execute(
            "CREATE FUNCTION public.lower(mood) RETURNS text LANGUAGE sql AS $$ SELECT 'b' $$"
        )
        with sqlrs.connect(postgres_db, public=["t"]) as db:
            assert db.count("SELECT count(*) FROM t WHERE lower(x) = 'a'", 1).value == 1


def test_an_operator_with_better_fitting_types_is_refused(postgres_db: str) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (x varchar)")
        connection.execute(
            "CREATE FUNCTION same(varchar, varchar) RETURNS boolean LANGUAGE sql "
            "AS $$ SELECT true $$;"
            "CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = same)"
        )
    with pytest.raises(UsageError, match="operators = of its own"):
        sqlrs.connect(postgres_db)
