"""The whole way on real data: clients, proxy, compiler, DuckDB or PostgreSQL, noise, ledger."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import psycopg
import pytest

import sqlrs
from sqlrs.catalog import ColumnType, Family
from sqlrs.errors import Interrupted, QueryRefused, SqlrsError
from sqlrs.ledger.store import StoreLedger
from sqlrs.proxy.checking import check_dialect
from sqlrs.proxy.exposed import postgres_type
from sqlrs.proxy.library import LibraryBackend
from sqlrs.settings import Settings
from tests.proxy.harness import RunningProxy, running_proxy

TRIANGLES = (
    "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src"
    " JOIN edge c ON b.dst = c.src AND c.dst = a.src"
)
EDGES = [(a, b) for a in range(30) for b in range(30) if a != b and (a + b) % 3]
KNOWS = [(a, b, f"n{a % 4}") for a, b in EDGES]


def _ledger(folder: Path) -> StoreLedger:
    ledger = StoreLedger(f"sqlite:///{folder}/budget.db")
    ledger.grant(epsilon=4, analyst="alice")
    ledger.grant(epsilon=100, analyst="bob")
    ledger.grant(epsilon=1000, dataset="data")
    return ledger


@contextmanager
def _on_duckdb(folder: Path, plan: str = "auto") -> Iterator[sqlrs.Database]:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE Edge (src BIGINT, dst BIGINT, label VARCHAR)")
    connection.executemany("INSERT INTO Edge VALUES (?, ?, ?)", KNOWS)
    connection.execute("CREATE VIEW low AS SELECT src, dst FROM Edge WHERE src < 10")
    connection.execute("CREATE TABLE number AS SELECT unnest(range(5000)) AS n")
    with sqlrs.connect(
        connection,
        keys={"Edge": ["src", "dst"]},
        ledger=_ledger(folder),
        settings=Settings(plan=plan),
    ) as database:
        yield database


@contextmanager
def _on_postgres(folder: Path, url: str) -> Iterator[sqlrs.Database]:
    with psycopg.connect(url) as connection:
        connection.execute(
            "CREATE TABLE edge (src bigint, dst bigint, label text, PRIMARY KEY (src, dst))"
        )
        connection.cursor().executemany("INSERT INTO edge VALUES (%s, %s, %s)", KNOWS)
        connection.execute("CREATE VIEW low AS SELECT src, dst FROM edge WHERE src < 10")
    with sqlrs.connect(url, ledger=_ledger(folder)) as database:
        yield database


@pytest.fixture(params=["duckdb", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sqlrs.Database]:
    if request.param == "duckdb":
        with _on_duckdb(tmp_path) as opened:
            yield opened
    else:
        with _on_postgres(tmp_path, request.getfixturevalue("postgres_db")) as opened:
            yield opened


@pytest.fixture
def proxy(database: sqlrs.Database, tmp_path: Path) -> Iterator[RunningProxy]:
    with running_proxy(LibraryBackend(database), tmp_path) as running:
        yield running


def test_real_clients_on_real_data(proxy: RunningProxy, database: sqlrs.Database) -> None:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        notices: list[str] = []
        connection.add_notice_handler(lambda report: notices.append(str(report.message_primary)))
        connection.execute("SET sqlrs.epsilon = 1")
        first = connection.execute(TRIANGLES).fetchone()
        assert connection.execute(TRIANGLES).fetchone() == first
        assert notices == [
            "sqlrs: epsilon 1 charged, 3 remains",
            "sqlrs: answered from the record, nothing charged, 3 remains",
        ]
        by_label = "SELECT count(*) FROM edge WHERE label = %s AND src < %s"
        row = connection.execute(by_label, ("n1", 20)).fetchone()
        truth = sum(label == "n1" and a < 20 for a, _, label in KNOWS)
        assert row is not None
        # The noise of a single table at epsilon 1 is of the order of 1; this fails once in 10^9.
        assert abs(row[0] - truth) < 200
        assert connection.execute("SELECT count(*) FROM low").fetchone() is not None
        connection.execute("SET sqlrs.error_bars = 0.5")
        connection.execute("SET sqlrs.epsilon = 0.5")
        pairs = "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src WHERE a.src = 3"
        assert connection.execute(pairs).fetchone() is not None
        assert "epsilon 1 charged, 0 remains, error bars" in notices[-1]
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("SELECT count(*) FROM edge WHERE src = 4")
        assert caught.value.sqlstate == "53400"
        history = connection.execute("SELECT epsilon, status FROM sqlrs.history").fetchall()
        assert history == [(Decimal(1), "released")] * 4
        qualified = f'SELECT count(*) FROM "{database.catalog.search_path[0]}"."edge" WHERE src = 3'
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(qualified + " AND dst = 5")
        assert caught.value.sqlstate == "53400"
    ledger = database.ledger
    assert isinstance(ledger, StoreLedger)
    assert ledger.budget(analyst="alice").spent == 4


def test_clauses_after_a_count_act_on_the_released_number(
    proxy: RunningProxy, database: sqlrs.Database
) -> None:
    with psycopg.connect(proxy.dsn(), autocommit=True) as client:

        def ask(clauses: str, *values: object) -> list[tuple[int]]:
            cursor = client.execute(f"SELECT count(*) AS n FROM edge {clauses}", values or None)
            assert [column.name for column in cursor.description or ()] == ["n"]
            return cursor.fetchall()

        [(first,)] = ask("")
        spent = database.ledger.remaining("alice", "data")
        for clauses in ("ORDER BY 1 LIMIT 1001", "ORDER BY n DESC LIMIT 1 OFFSET 0"):
            assert ask(clauses) == [(first,)]
        assert ask("LIMIT %s", 1000) == [(first,)]
        assert ask("LIMIT 0") == ask("OFFSET 1") == []
        # The released number is compared, not the true one.
        assert ask(f"HAVING count(*) >= {first}") == [(first,)]
        assert ask(f"HAVING count(*) > {first}") == []
        assert ask(f"HAVING count(*) > {first} AND count(*) < 0 ORDER BY 1") == []
        assert database.ledger.remaining("alice", "data") == spent
        # One not asked before is charged whether or not its row is shown.
        client.execute("SET sqlrs.epsilon = 0.25")
        assert ask("HAVING count(*) > 1000000000") == []
        assert database.ledger.remaining("alice", "data") == Decimal("3.25")


def test_a_public_count_is_exact_and_free(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE region AS SELECT unnest(range(7)) AS id")
    with (
        sqlrs.connect(connection, public=["region"], ledger=_ledger(tmp_path)) as database,
        running_proxy(LibraryBackend(database), tmp_path) as proxy,
        psycopg.connect(proxy.dsn(), autocommit=True) as client,
    ):
        told: list[str] = []
        client.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        assert client.execute("SELECT count(*) FROM region").fetchall() == [(7,)]
        assert client.execute("SELECT count(*) FROM region HAVING count(*) > 7").fetchall() == []
        # Nothing was charged, so nothing is told.
        assert told == []
        assert database.ledger.remaining("alice", "data") == 4


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT stddev(src) FROM edge", "stddev"),
        ("SELECT DISTINCT label FROM edge", None),
        ("SELECT count(*) FROM edge ORDER BY src LIMIT 3", None),
        ("SELECT count(*) FROM edge WHERE random() < 0.5", None),
        ("SELECT count(*) FROM edge, pg_class", None),
        ("SELECT count(*) FROM edge, sqlrs.history", None),
        ("SELECT count(*) FILTER (WHERE random() > 0.5) FROM edge", None),
    ],
)
def test_refusals_of_the_compiler_reach_the_client(
    tmp_path_factory: pytest.TempPathFactory, sql: str, place: str | None
) -> None:
    with _on_duckdb(tmp_path_factory.mktemp("refusals")) as database:
        backend = LibraryBackend(database)
        with pytest.raises(SqlrsError) as caught:
            backend.checker().check(sql)
        assert caught.value.sqlstate.startswith(("0A", "42"))
        if place is not None:
            assert caught.value.span is not None
            assert sql[caught.value.span.start :].startswith(place.split()[0])
        assert backend.remaining("alice") == 4


@pytest.mark.parametrize(
    ("sql", "same"),
    [
        ("SELECT count(*) FROM edge WHERE src % 2 = 0 AND label LIKE 'a%'", True),
        ("SELECT count(*) FROM edge WHERE src::text = '3' AND lower(label) = 'a'", True),
        ("SELECT count(*) FROM edge WHERE src / 2 = 1", False),
        ("SELECT count(*) FROM edge WHERE src / 2.0 > 1", False),
        ("SELECT count(*) FROM (SELECT src / 2.0 AS half FROM edge) e WHERE half > 1", False),
        ("SELECT count(*) FILTER (WHERE src / 2.0 > 1) FROM edge", False),
        ("SELECT src / 2.0 AS half, count(*) FROM edge GROUP BY half", False),
        ("SELECT src / 2.0, count(*) FROM edge GROUP BY 1", False),
        ("SELECT label, sum(src / 2.0) FROM edge GROUP BY label", False),
        ("SELECT label, count(*) / 2 FROM edge GROUP BY label", False),
        ("SELECT label, count(*) / 2.0 FROM edge GROUP BY label", True),
        ("SELECT n / 2.0 FROM (SELECT count(*) AS n FROM edge) e", True),
        ("WITH e AS (SELECT src AS n FROM edge) SELECT n / 2.0 FROM e", False),
        ("WITH e AS (SELECT count(*) AS n FROM edge) SELECT n / 2.0 FROM e", True),
        ("SELECT n / 2.0 FROM edge, (SELECT count(*) AS n FROM edge) e", False),
        ("SELECT count(*) FROM edge WHERE at < timestamp '2024-05-01 12:00:00'", True),
        ("SELECT count(*) FROM edge WHERE at < '2024-05-01'::timestamp", True),
        ("SELECT count(*) FROM edge WHERE src::varchar = '3'", True),
        # PostgreSQL cuts and rounds here.
        ("SELECT count(*) FROM edge WHERE label::varchar(3) = 'abc'", False),
        ("SELECT count(*) FROM edge WHERE at::timestamp(3) < at", False),
    ],
)
def test_texts_that_two_databases_read_differently_are_refused(sql: str, same: bool) -> None:
    check_dialect(sql, "postgres")
    if same:
        check_dialect(sql, "duckdb")
    else:
        with pytest.raises(QueryRefused) as caught:
            check_dialect(sql, "duckdb")
        assert caught.value.code == "dialect"


def test_times_as_drivers_send_them(tmp_path: Path) -> None:
    """A driver types its parameter as a timestamp, whatever the column is."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE visit AS SELECT noted, noted::DATE AS day FROM (SELECT "
        "TIMESTAMP '2024-01-01' + to_hours(i::INTEGER) AS noted FROM range(9600) AS t(i))"
    )
    noon = datetime(2024, 3, 1, 12)
    with (
        sqlrs.connect(connection, ledger=_ledger(tmp_path)) as database,
        running_proxy(LibraryBackend(database), tmp_path) as proxy,
        psycopg.connect(proxy.dsn(), autocommit=True) as client,
    ):
        for column, truth in (("noted", 60 * 24 + 12), ("day", 61 * 24)):
            for binary in (False, True):
                row = client.execute(
                    f"SELECT count(*) FROM visit WHERE {column} < %s", (noon,), binary=binary
                ).fetchone()
                assert row is not None
                # At epsilon 0.1 the standard error is about 20; this fails once in 10^6.
                assert abs(row[0] - truth) < 1000


def test_a_cancel_stops_this_count_and_no_other(tmp_path: Path) -> None:
    # Evaluated row by row, this count takes hours.
    with _on_duckdb(tmp_path, plan="plain") as database:
        backend = LibraryBackend(database)
        slow = (
            "SELECT count(*) FROM number a, number b, number c, number d"
            " WHERE a.n * b.n + c.n * d.n < 17"
        )
        outcomes: dict[str, object] = {}
        stop, never = threading.Event(), threading.Event()

        def ask(name: str, sql: str, cancel: threading.Event) -> None:
            try:
                outcomes[name] = backend.count(
                    "bob", sql, epsilon=Decimal(1), error_bars=None, cancel=cancel
                )
            except SqlrsError as problem:
                outcomes[name] = problem

        first = threading.Thread(target=ask, args=("slow", slow, stop))
        first.start()
        time.sleep(0.5)
        ask("quick", "SELECT count(*) FROM edge", never)
        stop.set()
        first.join(30)
        assert not first.is_alive()
        assert getattr(outcomes["quick"], "epsilon", None) == 1
        assert isinstance(outcomes["slow"], Interrupted)
        assert backend.remaining("bob") == 98


@pytest.mark.parametrize(
    ("family", "name", "expected"),
    [
        (Family.INTEGER, "BIGINT", "bigint"),
        (Family.INTEGER, "HUGEINT", "numeric"),
        (Family.INTEGER, "int", "integer"),
        (Family.DECIMAL, "DECIMAL(10,2)", "numeric(10,2)"),
        (Family.FLOAT, "DOUBLE", "double precision"),
        (Family.TEXT, "VARCHAR", "text"),
        (Family.TEXT, "character varying(20)", "text"),
        (Family.TIMESTAMP_TZ, "TIMESTAMP WITH TIME ZONE", "timestamptz"),
        (Family.OTHER, "INTEGER[]", "text"),
        (Family.OTHER, "mood", "text"),
    ],
)
def test_types_as_clients_see_them(family: Family, name: str, expected: str) -> None:
    assert postgres_type(ColumnType(family, name)) == expected
