"""Public tables are read exactly and free; nothing of a private one comes along, by any way."""

from __future__ import annotations

import asyncio
import datetime
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import duckdb
import psycopg
import pytest

import sqlrs
from sqlrs.errors import QueryRefused, SqlrsError
from sqlrs.ledger.store import StoreLedger
from sqlrs.proxy.config import Limits
from sqlrs.proxy.library import LibraryBackend
from sqlrs.proxy.policy.public_reading import public_reading
from tests.proxy.harness import PASSWORD, RunningProxy, running_proxy
from tests.support.postgres_server import PostgresServer

REGIONS = [(1, "Åland", 2.5), (2, "bay, 'east'", None), (3, None, -1.0), (4, 'say "no"', 0.0)]
SCHEMA = """
CREATE TABLE region (id INTEGER PRIMARY KEY, name TEXT, score DOUBLE PRECISION);
CREATE TABLE shop (id INTEGER PRIMARY KEY, region INTEGER, opened DATE, seen TIMESTAMP,
                   price DECIMAL(10, 2), big BIGINT, open BOOLEAN);
CREATE TABLE visit (id INTEGER PRIMARY KEY, shop INTEGER, secret TEXT);
CREATE VIEW named AS SELECT id, name FROM region;
CREATE VIEW spied AS SELECT id, secret AS name FROM visit;
INSERT INTO shop VALUES
  (1, 1, '2020-02-03', '2020-02-03 04:05:06.789', 12.50, 9007199254740993, true),
  (2, 1, NULL, NULL, NULL, NULL, NULL), (3, 2, '1999-12-31', NULL, 0, -1, false);
INSERT INTO visit VALUES (1, 1, 'hidden'), (2, 3, 'hidden too');
"""


def _ledger(folder: Path) -> StoreLedger:
    ledger = StoreLedger(f"sqlite:///{folder}/budget.db")
    for analyst in ("alice", "bob", "carol"):
        ledger.grant(epsilon=10, analyst=analyst)
    ledger.grant(epsilon=100, dataset="data")
    return ledger


@contextmanager
def _opened(engine: str, folder: Path, url: str) -> Iterator[sqlrs.Database]:
    if engine == "duckdb":
        connection = duckdb.connect()
        for statement in SCHEMA.split(";"):
            connection.execute(statement)
        connection.executemany("INSERT INTO region VALUES (?, ?, ?)", REGIONS)
        target: object = connection
    else:
        with psycopg.connect(url) as owner:
            owner.execute(SCHEMA)
            owner.cursor().executemany("INSERT INTO region VALUES (%s, %s, %s)", REGIONS)
        target = url
    with sqlrs.connect(target, public=["region", "shop"], ledger=_ledger(folder)) as database:
        yield database


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def proxy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningProxy]:
    folder = tmp_path_factory.mktemp("public")
    url = ""
    if request.param == "postgres":
        url = request.getfixturevalue("module_db")
    with (
        _opened(request.param, folder, url) as database,
        running_proxy(LibraryBackend(database), folder, limits=Limits(public_rows=50)) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def module_db(postgres_server: PostgresServer) -> Iterator[str]:
    """An empty database for the whole module."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(scope="module")
def shared(proxy: RunningProxy) -> Iterator[psycopg.Connection]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        yield connection


def _left(connection: psycopg.Connection) -> object:
    row = connection.execute("SELECT remaining FROM sqlrs.budget").fetchone()
    assert row is not None
    return row[0]


READINGS = [
    (
        "SELECT DISTINCT name FROM region ORDER BY 1",
        [("bay, 'east'",), ('say "no"',), ("Åland",), (None,)],
    ),
    ("SELECT * FROM region ORDER BY id", REGIONS),
    ("SELECT r.* FROM region AS r WHERE r.id = 1", REGIONS[:1]),
    (
        'SELECT "public"."region"."name" AS "name" FROM "public"."region" '
        'WHERE "public"."region"."id" IN (1, 2) GROUP BY "public"."region"."name" '
        'ORDER BY "public"."region"."name" ASC LIMIT 1001',
        [("bay, 'east'",), ("Åland",)],
    ),
    (
        "SELECT name AS n, id FROM region WHERE name IS NOT NULL ORDER BY n DESC, id",
        [("Åland", 1), ('say "no"', 4), ("bay, 'east'", 2)],
    ),
    ("SELECT name FROM region ORDER BY name DESC LIMIT 1", [(None,)]),
    ("SELECT score FROM region ORDER BY score LIMIT 2 OFFSET 1", [(0.0,), (2.5,)]),
    (
        "SELECT opened, seen, price, big, open FROM shop ORDER BY id",
        [
            (
                datetime.date(2020, 2, 3),
                datetime.datetime(2020, 2, 3, 4, 5, 6, 789000),
                Decimal("12.50"),
                9007199254740993,
                True,
            ),
            (None,) * 5,
            (datetime.date(1999, 12, 31), None, Decimal("0.00"), -1, False),
        ],
    ),
    (
        "SELECT region, count(*), max(price) FROM shop GROUP BY region HAVING count(*) > 1",
        [(1, 2, Decimal("12.50"))],
    ),
    ("SELECT count(DISTINCT region), count(*), min(id), sum(id) FROM shop", [(2, 3, 1, 6)]),
    ("SELECT count(*) FROM region", [(4,)]),
    (
        "SELECT r.name, s.id FROM region r JOIN shop s ON s.region = r.id WHERE s.id > 1"
        " ORDER BY 2",
        [("Åland", 2), ("bay, 'east'", 3)],
    ),
    ("SELECT upper(name) AS u FROM region WHERE lower(name) LIKE 'bay%'", [("BAY, 'EAST'",)]),
    ("SELECT id FROM shop WHERE opened BETWEEN '2000-01-01' AND '2030-01-01'", [(1,)]),
    ("SELECT 1 AS one, 'x' AS x FROM region LIMIT 1", [(1, "x")]),
    ("SELECT id AS name, name AS id FROM region WHERE id = 2", [(2, "bay, 'east'")]),
    ("SELECT id FROM region WHERE FALSE", []),
]


@pytest.mark.parametrize(("sql", "expected"), READINGS)
def test_public_tables_are_read_exactly_and_free(
    shared: psycopg.Connection, sql: str, expected: list[tuple[object, ...]]
) -> None:
    schema = shared.execute("SELECT current_schema()").fetchone()
    assert schema is not None
    sql = sql.replace('"public"', f'"{schema[0]}"')
    left = _left(shared)
    assert shared.execute(sql).fetchall() == expected
    assert shared.cursor(binary=True).execute(sql).fetchall() == expected
    simple = psycopg.ClientCursor(shared)
    assert simple.execute(sql).fetchall() == expected
    assert _left(shared) == left


def test_parameters_portals_and_names(shared: psycopg.Connection) -> None:
    query = 'SELECT name AS "the ""name""", id FROM region WHERE id = ANY(%s) OR name = %s'
    for _ in range(7):
        cursor = shared.execute(query + " ORDER BY id", ([1, 3], 'say "no"'))
        assert [column.name for column in cursor.description or ()] == ['the "name"', "id"]
        assert [row[1] for row in cursor.fetchall()] == [1, 3, 4]
    with shared.transaction():
        assert shared.execute("SELECT id FROM region WHERE id < %s", (2,)).fetchall() == [(1,)]
    days = shared.execute(
        "SELECT id FROM shop WHERE opened = %s", (datetime.date(2020, 2, 3),)
    ).fetchall()
    assert days == [(1,)]


def test_asyncpg_reads_in_binary_and_in_steps(proxy: RunningProxy) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def run() -> None:
        connection = await asyncpg.connect(
            host="localhost",
            port=proxy.port,
            user="bob",
            password=PASSWORD,
            database="sqlrs",
            ssl=ssl.create_default_context(cafile=str(proxy.certificate)),
        )
        statement = await connection.prepare(
            "SELECT id, price FROM shop WHERE id >= $1 ORDER BY id"
        )
        assert [attribute.name for attribute in statement.get_attributes()] == ["id", "price"]
        rows = await statement.fetch(1)
        assert [tuple(row) for row in rows] == [
            (1, Decimal("12.50")),
            (2, None),
            (3, Decimal("0.00")),
        ]
        async with connection.transaction():
            steps = [r["id"] async for r in statement.cursor(2, prefetch=1)]
            assert steps == [2, 3]
        await connection.close()

    asyncio.run(run())


PRIVATE = [
    "SELECT * FROM visit",
    "SELECT id FROM visit",
    "SELECT * FROM spied",
    "SELECT * FROM named",
    "SELECT r.name, v.secret FROM region r JOIN visit v ON v.id = r.id",
    "SELECT r.name FROM region r, visit v WHERE v.id = r.id",
    "SELECT name FROM region WHERE id IN (SELECT id FROM visit)",
    "SELECT name FROM region WHERE EXISTS (SELECT 1 FROM visit WHERE visit.id = region.id)",
    "SELECT name, (SELECT secret FROM visit LIMIT 1) FROM region",
    "SELECT name FROM region LIMIT (SELECT count(*) FROM visit)",
    "SELECT name FROM region UNION ALL SELECT secret FROM visit",
    "WITH region AS (SELECT id, secret AS name FROM visit) SELECT name FROM region",
    "WITH x AS (SELECT secret FROM visit) SELECT name FROM region, x",
    "SELECT name FROM region, LATERAL (SELECT secret FROM visit) x",
    "SELECT name FROM region WHERE (SELECT true FROM visit LIMIT 1)",
    "SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM visit)) FROM region",
    "SELECT max(secret) FROM region, visit",
    # Public tables, but with something that is not on the list.
    "SELECT query_to_xml('SELECT * FROM visit', true, true, '') FROM region",
    "SELECT pg_read_file('/etc/passwd') FROM region",
    "SELECT name, pg_sleep(1) FROM region",
    "SELECT current_setting('data_directory') FROM region",
    "SELECT name FROM region, pg_class",
    "SELECT name FROM region, pg_stats",
    "SELECT name FROM region, information_schema.tables",
    "SELECT name FROM region, sqlrs.history",
    "SELECT name FROM region, generate_series(1, 1000)",
    "SELECT repeat(name, 1000000) FROM region",
    "SELECT array_agg(name) FROM region",
    "SELECT ctid FROM region",
    "SELECT xmin, tableoid FROM region",
    "SELECT region FROM region",
    "SELECT name::regclass FROM region",
    "SELECT name FROM region TABLESAMPLE system (10)",
    "SELECT DISTINCT ON (name) name FROM region",
    "SELECT a.name FROM region a, region b, region c, region d, region e",
]


@pytest.mark.parametrize("sql", PRIVATE)
def test_nothing_private_and_nothing_unknown_is_read(shared: psycopg.Connection, sql: str) -> None:
    left = _left(shared)
    for cursor in (shared.cursor(), psycopg.ClientCursor(shared)):
        with pytest.raises(psycopg.Error) as caught:
            cursor.execute(sql)
        assert caught.value.sqlstate is not None
        assert caught.value.sqlstate.startswith(("0A", "42"))
        assert "hidden" not in str(caught.value)
    assert _left(shared) == left


# No reading of public rows alone either, but statements whose private part is released.
RELEASED = {
    "SELECT name || name FROM region": Decimal(0),
    "SELECT row_number() OVER () FROM region": Decimal(0),
    "SELECT name FROM region LEFT JOIN shop ON true": Decimal(0),
    "SELECT name FROM region ORDER BY (SELECT count(*) FROM visit)": Decimal("0.125"),
}


def test_what_is_made_of_public_rows_and_released_numbers_is_answered(
    shared: psycopg.Connection,
) -> None:
    shared.execute("SET sqlrs.epsilon = 0.125")
    for sql, price in RELEASED.items():
        left = _left(shared)
        rows = shared.execute(sql).fetchall()
        assert rows and "hidden" not in str(rows)
        assert _left(shared) == Decimal(str(left)) - price
    shared.execute("RESET sqlrs.epsilon")


@pytest.mark.parametrize("sql", [*PRIVATE, *RELEASED])
def test_the_backend_makes_the_proof_itself(tmp_path: Path, sql: str) -> None:
    """Whatever the proxy thinks of a statement, the catalog decides."""
    with _opened("duckdb", tmp_path, "") as database, pytest.raises(QueryRefused):
        public_reading(sql, database.catalog, 10)


def test_a_function_of_the_database_is_not_called() -> None:
    connection = duckdb.connect()
    for statement in SCHEMA.split(";"):
        connection.execute(statement)
    connection.execute("INSERT INTO region VALUES (1, 'Bay', 1.0)")
    connection.execute("CREATE MACRO lower(x) AS (SELECT min(secret) FROM visit)")
    sql = "SELECT lower(name) FROM region"
    assert connection.execute(sql).fetchall() == [("hidden",)]
    with sqlrs.connect(connection, public=["region", "shop"]) as database:
        backend = LibraryBackend(database)
        with pytest.raises(QueryRefused):
            backend.read(sql, rows=10, characters=100, cancel=threading.Event())
        # Others are.
        sql = "SELECT upper(name) FROM region"
        assert backend.read(sql, rows=9, characters=99, cancel=threading.Event()) == [("BAY",)]


def test_counts_of_private_tables_stay_private(shared: psycopg.Connection) -> None:
    notices: list[str] = []
    shared.add_notice_handler(lambda report: notices.append(str(report.message_primary)))
    shared.execute(
        "SELECT count(*) FROM visit v JOIN shop s ON s.id = v.shop JOIN region r ON r.id = s.region"
    )
    assert notices[0].startswith("sqlrs: epsilon 0.5 charged")


def test_a_result_is_limited(shared: psycopg.Connection) -> None:
    pairs = "SELECT a.id FROM region a, region b, region c"
    with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="more than 50 rows"):
        shared.execute(pairs)
    assert len(shared.execute(f"{pairs} LIMIT 50").fetchall()) == 50
    assert shared.execute("SELECT 1").fetchone() == (1,)


def test_long_values_are_measured_before_they_are_fetched(tmp_path: Path) -> None:
    with _opened("duckdb", tmp_path, "") as database:
        backend = LibraryBackend(database)
        with pytest.raises(SqlrsError) as caught:
            backend.read("SELECT * FROM region", rows=10, characters=20, cancel=_never())
        assert caught.value.sqlstate == "54000"
        rows = backend.read("SELECT id FROM region", rows=10, characters=20, cancel=_never())
        assert sorted(rows) == [("1",), ("2",), ("3",), ("4",)]


def test_two_megabytes_pass(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE page AS SELECT i AS id, repeat('ü', 190) AS body FROM range(10000) t(i)"
    )
    with (
        sqlrs.connect(connection, public=["page"], ledger=_ledger(tmp_path)) as database,
        running_proxy(LibraryBackend(database), tmp_path) as running,
        psycopg.connect(running.dsn(), autocommit=True) as client,
    ):
        rows = client.execute("SELECT id, body FROM page ORDER BY id").fetchall()
        assert len(rows) == 10_000
        assert rows[-1] == (9999, "ü" * 190)


def test_a_reading_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE number AS SELECT unnest(range(100000)) AS n")
    with (
        sqlrs.connect(connection, public=["number"], ledger=_ledger(tmp_path)) as database,
        running_proxy(
            LibraryBackend(database), tmp_path, limits=Limits(catalog_seconds=0.5)
        ) as running,
        psycopg.connect(running.dsn(), autocommit=True) as client,
    ):
        with pytest.raises(psycopg.errors.QueryCanceled):
            client.execute("SELECT max(a.n) FROM number a, number b, number c WHERE a.n < b.n")
        assert client.execute("SELECT n FROM number WHERE n = 7").fetchone() == (7,)


def _never() -> threading.Event:
    return threading.Event()
