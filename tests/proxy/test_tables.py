"""Statements with groups, sums and outer joins through the proxy, against a plain PostgreSQL.

With epsilon 1000 the noise on small counts is 0 but for a chance that nobody meets: what is left is
the answer that the server itself gives to the same text, with the same names and types of columns.
"""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import sqlrs
from sqlrs.config import Config
from sqlrs.errors import Interrupted, QueryRefused
from sqlrs.ledger.store import StoreLedger
from sqlrs.proxy.config import Epsilons, ProxyConfig
from sqlrs.proxy.library import LibraryBackend
from sqlrs.proxy.released_values import check_columns, text_rows
from sqlrs.release import describe_table
from sqlrs.settings import Request
from tests.proxy.harness import PASSWORD, RunningProxy, running_proxy
from tests.support.postgres_server import PostgresServer
from tests.test_query import SCHEMA

_VARCHAR, _TEXT = 1043, 25
_SEGMENTS = "SELECT c_segment, count(*) FROM customer GROUP BY c_segment ORDER BY 1"


@dataclass
class Served:
    """A proxy over data, and a plain server with the same rows."""

    proxy: RunningProxy
    plain: str
    ledger: StoreLedger

    @contextmanager
    def client(self, epsilon: str = "1000", **options: Any) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.proxy.dsn(), autocommit=True, **options) as connection:
            connection.execute(f"SET sqlrs.epsilon = {epsilon}")
            yield connection

    @property
    def spent(self) -> Decimal:
        return self.ledger.budget(analyst="alice").spent


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def served(
    request: pytest.FixtureRequest,
    postgres_server: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("tables")
    ledger = StoreLedger(f"sqlite:///{folder}/budget.db")
    ledger.grant(epsilon=1_000_000, analyst="alice")
    ledger.grant(epsilon=1_000_000, dataset="data")
    with postgres_server.database() as url:
        with psycopg.connect(url) as connection:
            connection.execute(SCHEMA)
        target: Any = url
        if request.param == "duckdb":
            target = duckdb.connect()
            target.execute(SCHEMA)
        with (
            sqlrs.connect(
                target,
                public=["region", "nation"],
                bounds={"orders.o_total": [0, 100]},
                domains={"orders.o_status": ["open", "done"]},
                ledger=ledger,
            ) as database,
            running_proxy(
                LibraryBackend(database),
                folder,
                default=Epsilons(epsilon=Decimal(1), max_epsilon=Decimal(2000)),
            ) as proxy,
        ):
            yield Served(proxy, url, ledger)


SAME_AS_PLAIN = [
    _SEGMENTS,
    "SELECT c_segment AS s, count(*) AS n FROM customer GROUP BY s HAVING count(*) > 5 "
    "ORDER BY n DESC, s LIMIT 1",
    "SELECT c_nation, count(*) FROM customer GROUP BY c_nation ORDER BY 1 DESC LIMIT 2 OFFSET 1",
    # NULL comes where PostgreSQL puts it, whoever holds the data.
    "SELECT c_vip, count(*) FROM customer GROUP BY c_vip ORDER BY 1",
    "SELECT c_vip, count(*) FROM customer GROUP BY c_vip ORDER BY 1 DESC",
    "SELECT o_status, count(*), count(o_total) FROM orders GROUP BY o_status ORDER BY 1 DESC",
    "SELECT c_segment, rank() OVER (ORDER BY count(*) DESC, c_segment) FROM customer "
    "GROUP BY c_segment ORDER BY 2",
    "SELECT o_date, count(*) FROM orders WHERE o_date IN "
    "(DATE '2024-01-06', DATE '2024-01-11') GROUP BY o_date ORDER BY o_date",
    "SELECT extract(month FROM o_date) AS m, count(*) FROM orders "
    "WHERE o_date BETWEEN DATE '2024-01-01' AND DATE '2024-06-30' GROUP BY m ORDER BY m",
    "SELECT sum(o_total), count(o_total) AS n FROM orders",
    "SELECT avg(o_total) FROM orders",
    "SELECT c_segment, sum(o_total) FROM customer LEFT JOIN orders ON c_id = o_cust "
    "GROUP BY c_segment ORDER BY 1",
    "SELECT count(*) FROM customer LEFT JOIN orders ON c_id = o_cust WHERE o_id IS NULL",
    "SELECT n_name, count(*) > 13 AS many, 'x' AS label FROM customer "
    "JOIN nation ON c_nation = n_id GROUP BY n_name ORDER BY n_name",
    "WITH per AS (SELECT c_nation, count(*) AS n FROM customer GROUP BY c_nation) "
    "SELECT n_name, n FROM per JOIN nation ON c_nation = n_id ORDER BY n_name",
    "SELECT c_segment FROM customer GROUP BY c_segment HAVING count(*) > 1000 ORDER BY 1",
]


@pytest.mark.parametrize("sql", SAME_AS_PLAIN)
@pytest.mark.parametrize("kind", ["simple", "extended", "binary"])
def test_without_noise_it_is_the_servers_answer(served: Served, sql: str, kind: str) -> None:
    with served.client() as client, psycopg.connect(served.plain) as plain:
        if kind == "simple":
            mine: Any = psycopg.ClientCursor(client)
        else:
            mine = client.cursor(binary=kind == "binary")
        found = mine.execute(sql, prepare=kind != "simple" or None)
        expected = plain.execute(sql)
        assert _columns(found) == _columns(expected)
        _same(found.fetchall(), expected.fetchall())


def _columns(cursor: Any) -> list[tuple[str, int]]:
    return [
        (one.name, _TEXT if one.type_code == _VARCHAR else one.type_code)
        for one in cursor.description
    ]


def _same(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for value, true in zip(one, other, strict=True):
            assert type(value) is type(true)
            if isinstance(value, Decimal) and value != true:
                # Sums are of hundredths: their noise is not 0, but far below a mistake.
                assert abs(value - true) < 10
            else:
                assert value == true


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT c_segment, 100.0 * count(*) / sum(count(*)) OVER () AS share FROM customer "
        "GROUP BY c_segment ORDER BY 1",
        "WITH per AS (SELECT c_nation, count(*) AS n FROM customer GROUP BY c_nation) "
        "SELECT c_nation, CAST(n AS double precision) / 7 FROM per ORDER BY 1",
        "SELECT c_segment FROM customer GROUP BY c_segment HAVING count(*) / 2.0 > 9 ORDER BY 1",
    ],
)
def test_percentages_of_released_numbers(served: Served, sql: str) -> None:
    with served.client() as client, psycopg.connect(served.plain) as plain:
        found, expected = client.execute(sql), plain.execute(sql)
        assert _columns(found) == _columns(expected)
        for one, other in zip(found.fetchall(), expected.fetchall(), strict=True):
            for value, true in zip(one, other, strict=True):
                assert type(value) is type(true)
                assert value == (true if isinstance(true, str) else pytest.approx(true))


def test_a_repeat_is_free_and_said_to_be_one(served: Served) -> None:
    told: list[str] = []
    with served.client("0.75") as client:
        client.add_notice_handler(lambda report: told.append(report.message_primary or ""))
        before = served.spent
        first = client.execute(_SEGMENTS).fetchall()
        assert served.spent == before + Decimal("0.75")
        assert client.execute(_SEGMENTS).fetchall() == first
        # What stands above the counts is free as well.
        backwards = _SEGMENTS.replace("ORDER BY 1", "ORDER BY 1 DESC LIMIT 1")
        assert client.execute(backwards).fetchall() == first[-1:]
        assert served.spent == before + Decimal("0.75")
        history = client.execute("SELECT epsilon, status, answer FROM sqlrs.history LIMIT 1")
        assert history.fetchall() == [(Decimal("0.75"), "released", None)]
    assert told[0].startswith("sqlrs: epsilon 0.75 charged, ")
    assert len(told) == 3
    assert all("from the record, nothing charged, " in one for one in told[1:])


def test_error_bars_are_columns(served: Served) -> None:
    sql = "SELECT c_segment, count(*) AS n FROM customer GROUP BY c_segment ORDER BY n, 1"
    with served.client("2") as client:
        client.execute("SET sqlrs.error_bars = 1")
        before = served.spent
        for binary in (False, True):
            cursor = client.cursor(binary=binary)
            rows = cursor.execute(sql).fetchall()
            assert [c.name for c in cursor.description or ()] == [
                "c_segment",
                "n",
                "n_low",
                "n_high",
            ]
            assert all(low <= number <= high for _, number, low, high in rows)
        # The width of this noise is public: the price is that of the numbers alone.
        assert served.spent == before + 2


def test_a_prepared_statement_that_is_described_costs_nothing(served: Served) -> None:
    sql = (
        "SELECT c_segment, count(*) AS n FROM customer WHERE c_nation = $1 "
        "GROUP BY c_segment ORDER BY 1"
    )

    async def run() -> None:
        connection = await asyncpg.connect(
            host="localhost",
            port=served.proxy.port,
            user="alice",
            password=PASSWORD,
            database="sqlrs",
            ssl=ssl.create_default_context(cafile=str(served.proxy.certificate)),
        )
        await connection.execute("SET sqlrs.epsilon = 1000")
        before = served.spent
        statement = await connection.prepare(sql)
        names = [(one.name, one.type.name) for one in statement.get_attributes()]
        assert names == [("c_segment", "text"), ("n", "int8")]
        plain = await connection.prepare(_SEGMENTS.replace("ORDER BY 1", "ORDER BY 2, 1"))
        assert [one.name for one in plain.get_attributes()] == ["c_segment", "count"]
        assert served.spent == before
        for nation, counts in ((1, (6, 7)), (2, (7, 7)), (1, (6, 7))):
            found = await statement.fetch(nation)
            assert [tuple(row) for row in found] == [("car", counts[0]), ("home", counts[1])]
        assert served.spent == before + 2000
        # The columns that were told do not hold any more.
        await connection.execute("SET sqlrs.error_bars = 1")
        with pytest.raises(asyncpg.FeatureNotSupportedError, match="must not change result type"):
            await plain.fetch()
        assert served.spent == before + 2000
        total = "SELECT o_status, sum(o_total), avg(o_total) FROM orders GROUP BY 1 ORDER BY 1"
        await connection.execute("SET sqlrs.error_bars = off")
        rows = await connection.fetch(total)
        assert [type(value) for value in rows[0]] == [str, Decimal, Decimal]
        await connection.close()

    asyncpg = pytest.importorskip("asyncpg")
    asyncio.run(run())


def test_rows_are_handed_out_as_many_as_are_asked_for(served: Served) -> None:
    sql = "SELECT n_name, c_segment, count(*) AS n FROM customer JOIN nation ON c_nation = n_id "
    sql += "GROUP BY 1, 2 ORDER BY 1, 2"

    async def run() -> None:
        connection = await asyncpg.connect(
            host="localhost",
            port=served.proxy.port,
            user="alice",
            password=PASSWORD,
            database="sqlrs",
            ssl=ssl.create_default_context(cafile=str(served.proxy.certificate)),
        )
        before = served.spent
        async with connection.transaction():
            cursor = await connection.cursor(sql)
            first = await cursor.fetch(4)
            assert served.spent == before + 1
            rest = await cursor.fetch(4)
            assert await cursor.fetch(4) == []
        assert [len(first), len(rest)] == [4, 2]
        whole = await connection.fetch(sql)
        assert [*first, *rest] == whole
        assert served.spent == before + 1
        await connection.close()

    asyncpg = pytest.importorskip("asyncpg")
    asyncio.run(run())


@pytest.mark.parametrize(
    ("sql", "sqlstate", "code"),
    [
        ("SELECT o_cust, count(*) FROM orders GROUP BY o_cust", "0A000", "unknown_domain"),
        ("SELECT sum(o_cust) FROM orders", "0A000", "unknown_bounds"),
        ("SELECT c_segment, c_vip FROM customer", "0A000", None),
        ("SELECT nothing, count(*) FROM customer GROUP BY 1", "42703", None),
        ("SELECT c_segment, count(*) FROM customer", "42803", None),
    ],
)
def test_a_refused_statement_charges_nothing(
    served: Served, sql: str, sqlstate: str, code: str | None
) -> None:
    with served.client() as client:
        before = served.spent
        for prepare in (None, True):
            with pytest.raises(psycopg.Error) as caught:
                client.execute(sql, prepare=prepare)
            assert caught.value.sqlstate == sqlstate
            if prepare is None:
                assert caught.value.diag.statement_position is not None
            if code is not None:
                assert caught.value.diag.message_detail == f"sqlrs code: {code}"
                assert caught.value.diag.message_hint
        assert served.spent == before


def test_psql_prints_a_table(served: Served) -> None:
    program = shutil.which("psql")
    if program is None:
        pytest.skip("psql is not installed")
    done = subprocess.run(
        [program, "-X", "-A", "-d", served.proxy.dsn()],
        input=f"SET sqlrs.epsilon = 1000;\n{_SEGMENTS} \\gdesc\n{_SEGMENTS};\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "c_segment|text\ncount|bigint\n(2 rows)" in done.stdout, done.stderr
    assert "c_segment|count\ncar|20\nhome|20\n(2 rows)" in done.stdout, done.stderr


def test_keys_are_given_as_dates(served: Served) -> None:
    sql = "SELECT o_date, count(*) FROM orders WHERE o_date = DATE '2024-01-06' GROUP BY o_date"
    with served.client() as client:
        assert client.execute(sql).fetchall() == [(date(2024, 1, 6), 2)]


def test_explain_shows_how_it_would_be_answered(served: Served) -> None:
    with served.client("3") as client:
        before = served.spent
        for prepare, binary in ((None, False), (True, False), (True, True)):
            cursor = client.cursor(binary=binary)
            rows = cursor.execute(f"EXPLAIN {_SEGMENTS}", prepare=prepare).fetchall()
            assert [one.name for one in cursor.description or ()] == ["QUERY PLAN"]
            text = "\n".join(line for (line,) in rows)
            assert text.startswith("protects one row of customer; ") and "\nreleased_0\n" in text
            assert "2 groups; rows whose keys are not among them are in no group" in text
            assert "noise: " in text and "afterwards, free of charge" in text
        count = client.execute("EXPLAIN SELECT count(*) FROM customer").fetchall()
        assert len(count) > 3
        values = f"EXPLAIN {_SEGMENTS.replace('GROUP', 'WHERE c_nation = %s GROUP')}"
        assert "= 2" in str(client.execute(values, (2,)).fetchall())
        with pytest.raises(psycopg.Error) as caught:
            client.execute("EXPLAIN SELECT o_cust, count(*) FROM orders GROUP BY o_cust")
        assert caught.value.diag.message_detail == "sqlrs code: unknown_domain"
        assert caught.value.diag.statement_position == "54"
        assert served.spent == before


CONFIG = """
[data]
ledger = "sqlite:///budget.db"
db = "duckdb:///shop.duckdb"
public = ["region", "nation"]
neighbours = "add-remove"
max_groups = 3

[domain]
"orders.o_status" = ["open", "done"]
"orders.o_cust" = { from = 1, to = 45 }

[bounds]
"orders.o_total" = [0, 100]

[proxy]
port = 0
users = "users.toml"

[proxy.default]
epsilon = "0.5"
max_epsilon = "1000"
"""


def test_what_the_owner_declares_reaches_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("shop.duckdb") as connection:
        connection.execute(SCHEMA)
    path = tmp_path / "sqlrs.toml"
    path.write_text(CONFIG)
    ledger = StoreLedger("sqlite:///budget.db")
    ledger.grant(epsilon=10_000, analyst="alice")
    ledger.grant(epsilon=10_000, dataset="data")
    config = ProxyConfig.read(path)
    with (
        Config.read(path).open() as database,
        running_proxy(LibraryBackend(database), tmp_path, default=config.default) as proxy,
        psycopg.connect(proxy.dsn(), autocommit=True) as client,
    ):
        client.execute("SET sqlrs.epsilon = 1000")
        sql = "SELECT o_status, sum(o_total) > 0 FROM orders GROUP BY 1 ORDER BY 1"
        assert client.execute(sql).fetchall() == [("done", True), ("open", True), (None, True)]
        explained = str(client.execute(f"EXPLAIN {sql}").fetchall())
        assert "3 groups" in explained
        assert database.settings.neighbours == "add-remove"
        left = database.ledger.remaining("alice", "data")
        with pytest.raises(psycopg.Error) as caught:
            client.execute("SELECT o_cust, count(*) FROM orders GROUP BY 1")
        assert caught.value.diag.message_detail == "sqlrs code: too_many_groups"
        assert database.ledger.remaining("alice", "data") == left == Decimal(9000)


def test_a_cancelled_table_ends_and_stays_paid(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE number AS SELECT unnest(range(5000)) AS n, true AS odd")
    ledger = StoreLedger(f"sqlite:///{tmp_path}/budget.db")
    ledger.grant(epsilon=10, analyst="bob")
    ledger.grant(epsilon=10, dataset="data")
    # Evaluated row by row, this takes hours.
    slow = (
        "SELECT a.odd, count(*) FROM number a, number b, number c, number d"
        " WHERE a.n * b.n + c.n * d.n < 17 GROUP BY a.odd"
    )
    settings = sqlrs.Settings(plan="plain")
    with sqlrs.connect(connection, ledger=ledger, settings=settings) as database:
        backend, stop = LibraryBackend(database), threading.Event()
        threading.Timer(1, stop.set).start()
        with pytest.raises(Interrupted):
            backend.table(
                "bob", slow, types=(16, 20), epsilon=Decimal(1), error_bars=None, cancel=stop
            )
        assert backend.remaining("bob") == 9
        assert [row.status for row in backend.history("bob", 5)] == ["interrupted"]


def test_values_have_a_form_in_the_type_that_was_told() -> None:
    check_columns([("a", "HUGEINT"), ("b", "DECIMAL(38, 2)"), ("c", "NULL")], (20, 1700, 1082))
    for kind, oid in (("DOUBLE", 20), ("VARCHAR", 20), ("TIMESTAMP", 1082), ("INTERVAL", 25)):
        with pytest.raises(QueryRefused, match="column 1 has another type"):
            check_columns([("a", kind)], (oid,))
    with pytest.raises(QueryRefused):
        check_columns([("a", "BIGINT")], (20, 20))
    row = (2**80, -(2**80), 1e300, float("nan"), Decimal("1E+3"), True, None, "a\0b")
    types = (20, 23, 701, 1700, 1700, 16, 25, 25)
    assert text_rows([row], types) == (
        (str(2**63 - 1), str(-(2**31)), "1e+300", "nan", "1000", "true", None, "a\ufffdb"),
    )


def test_columns_are_known_before_the_charge(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute(SCHEMA)
    sql = "SELECT c_segment, count(*) AS n FROM customer GROUP BY 1"
    with sqlrs.connect(connection, ledger=sqlrs.MemoryLedger()) as database:
        told = describe_table(
            Request(sql=sql, epsilon=1, error_bars=1),
            engine=database.engine,
            catalog=database.catalog,
            settings=database.settings,
        )
        assert isinstance(database.ledger, sqlrs.MemoryLedger)
        assert database.ledger.history() == ()
        assert told == database.query(sql, 1, error_bars=1).columns
        assert len(told) == 4
