"""A declaration is about one table, and a name before a column about one item of FROM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import psycopg
import pytest

import sqlrs
from sqlrs.errors import QueryRefused, UsageError
from tests.support.postgres_server import PostgresServer

SCHEMAS = """
    CREATE SCHEMA hr; CREATE SCHEMA sales;
    CREATE TABLE hr.region (id integer NOT NULL, name text);
    CREATE TABLE sales.region (id integer NOT NULL, name text);
    CREATE TABLE sales.shop (id integer NOT NULL, region integer);
    CREATE VIEW hr.shop AS SELECT id FROM hr.region;
    CREATE VIEW hr.all_shops AS SELECT id FROM sales.shop;
    INSERT INTO hr.region VALUES (1, 'a'), (2, 'b'), (2, 'c');
    INSERT INTO sales.region VALUES (1, 'a');
    INSERT INTO sales.shop VALUES (1, 1), (2, 1);
"""


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def target(request: pytest.FixtureRequest) -> Iterator[object]:
    """A database with the same names in two schemas, which the tests only read."""
    if request.param == "duckdb":
        connection = duckdb.connect()
        connection.execute(SCHEMAS)
        yield connection
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.database() as url:
        with psycopg.connect(url, autocommit=True) as postgres:
            postgres.execute(SCHEMAS)
        yield url


@pytest.mark.parametrize(
    "declared",
    [{"public": ["region"]}, {"private": ["region"]}, {"keys": {"region": ["id"]}}],
    ids=["public", "private", "key"],
)
def test_a_name_that_fits_several_tables_is_refused(
    target: object, declared: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match="several tables") as caught:
        sqlrs.connect(target, **declared)
    assert caught.value.hint == "write one of hr.region, sales.region"


def test_a_declaration_reaches_the_named_table_only(target: object) -> None:
    with sqlrs.connect(target, public=["sales.region"], keys={"sales.region": ["id"]}) as db:
        declared = {t.label: (t.private, t.keys) for t in db.catalog.tables}
    assert declared == {
        "hr.region": (True, frozenset()),
        "sales.region": (False, frozenset({frozenset({"id"})})),
        "sales.shop": (True, frozenset()),
    }


def test_a_table_and_a_view_of_one_name_are_told_apart(target: object) -> None:
    with pytest.raises(UsageError, match="several tables") as caught:
        sqlrs.connect(target, public=["shop"])
    assert caught.value.hint == "write one of hr.shop, sales.shop"
    with pytest.raises(UsageError, match="is a view"):
        sqlrs.connect(target, public=["all_shops"])
    with pytest.raises(UsageError, match="both private and public"):
        sqlrs.connect(target, public=["sales.shop"], private=["sales.shop"])


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ('SELECT count(*) FROM "hr"."region" WHERE "hr"."region"."id" = 2', 2),
        ("SELECT count(hr.region.name) FROM hr.region", 3),
        (
            "SELECT count(*) FROM sales.shop JOIN hr.region "
            "ON sales.shop.region = hr.region.id AND hr.region.name = 'a'",
            2,
        ),
        ("SELECT count(*) FROM (SELECT hr.region.* FROM hr.region) AS d WHERE d.id < 2", 1),
        (
            "SELECT count(DISTINCT sales.shop.id) FROM sales.shop WHERE EXISTS "
            "(SELECT 1 FROM hr.region WHERE hr.region.id = sales.shop.region)",
            2,
        ),
    ],
)
def test_a_column_is_found_by_schema_and_table(target: object, sql: str, count: int) -> None:
    public = ["hr.region", "sales.region", "sales.shop"]
    with sqlrs.connect(target, public=public) as db:
        assert db.count(sql, 1).value == count


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM hr.region WHERE sales.region.id = 1",
        "SELECT count(*) FROM hr.region AS r WHERE hr.region.id = 1",
        "SELECT count(*) FROM hr.region AS region WHERE hr.region.id = 1",
        "SELECT count(*) FROM (SELECT id FROM hr.region) AS region WHERE hr.region.id = 1",
        "WITH region AS (SELECT id FROM hr.region) SELECT count(*) FROM region "
        "WHERE hr.region.id = 1",
    ],
)
def test_a_schema_before_another_item_is_refused_as_by_the_engine(target: object, sql: str) -> None:
    with sqlrs.connect(target) as db, pytest.raises(QueryRefused) as caught:
        db.count(sql, 1)
    assert caught.value.code == "unknown_column"
    with pytest.raises((duckdb.Error, psycopg.Error)):
        if isinstance(target, str):
            with psycopg.connect(target) as connection:
                connection.execute(sql.encode())
        else:
            assert isinstance(target, duckdb.DuckDBPyConnection)
            target.execute(sql)
