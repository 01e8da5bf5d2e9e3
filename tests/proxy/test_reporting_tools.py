"""Reporting tools ask in forms of their own; each is answered as a plain PostgreSQL would answer.

With epsilon 1000 the noise on small counts is 0 but for a chance that nobody meets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import sqlrs
from sqlrs.ledger.store import StoreLedger
from sqlrs.proxy.config import Epsilons
from sqlrs.proxy.library import LibraryBackend
from sqlrs.proxy.policy.written_moments import with_literals
from tests.proxy.harness import PASSWORD, RunningProxy, running_proxy
from tests.proxy.jdbc import run_jdbc
from tests.support.postgres_server import PostgresServer

FIXTURE = Path(__file__).parent / "fixtures" / "reporting.sql"
QUESTIONS = [
    text.strip() for text in FIXTURE.read_text(encoding="utf-8").split(";\n") if text.strip()
]
SCHEMA = """
CREATE TABLE ward (id INT PRIMARY KEY, name VARCHAR NOT NULL);
INSERT INTO ward VALUES (1, 'north'), (2, 'south'), (3, 'west');
CREATE TABLE visit (id INT PRIMARY KEY, ward_id INT NOT NULL REFERENCES ward (id),
  day DATE NOT NULL, seen TIMESTAMP NOT NULL, cost INT NOT NULL);
INSERT INTO visit SELECT i, 1 + i % 3, DATE '2024-01-01' + CAST(i % 300 AS INT),
  TIMESTAMP '2024-01-01 08:00:00' + INTERVAL '7 hours' * i, i % 500
  FROM generate_series(0, 999) AS t(i);
"""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    folder: Path = tmp_path_factory.mktemp("reporting")
    ledger = StoreLedger(f"sqlite:///{folder}/budget.db")
    ledger.grant(epsilon=1_000_000, analyst="alice")
    ledger.grant(epsilon=1_000_000, dataset="data")
    connection = duckdb.connect()
    connection.execute(SCHEMA)
    with (
        sqlrs.connect(
            connection, public=["ward"], bounds={"visit.cost": [0, 1000]}, ledger=ledger
        ) as database,
        running_proxy(
            LibraryBackend(database),
            folder,
            default=Epsilons(epsilon=Decimal(1000), max_epsilon=Decimal(1000)),
        ) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def plain(postgres_server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    with postgres_server.database() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA main; SET search_path = main; SET timezone = 'UTC'")
        connection.execute(SCHEMA)
        yield connection


def test_each_question_is_answered_as_by_a_plain_server(
    proxy: RunningProxy, plain: psycopg.Connection[Any]
) -> None:
    assert len(QUESTIONS) > 20
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        for text in QUESTIONS:
            asked, expected = connection.execute(text), plain.execute(text)
            assert [c.name for c in asked.description or ()] == [
                c.name for c in expected.description or ()
            ], text
            # Every group that there could be is shown, with noise on the empty ones: here none.
            shown = [row for row in asked.fetchall() if None not in row]
            told = expected.fetchall()
            if "cost" in text:
                # A cost of up to 1000 has noise even so.
                told, shown = (_rounded(rows) for rows in (told, shown))
            assert sorted(shown) == sorted(told), text


@pytest.mark.slow
def test_each_question_and_the_metadata_come_through_jdbc(proxy: RunningProxy) -> None:
    done = run_jdbc("JdbcReport", str(proxy.port), PASSWORD, str(proxy.certificate), str(FIXTURE))
    lines = done.stdout.splitlines()
    looked = [line for line in lines if not line.startswith("asked")]
    assert looked == [
        "tables visit ward",
        "columns id ward_id day seen cost",
        "key id",
        "references ward",
        "referenced visit",
        "cross ward_id",
        "row id",
        "product PostgreSQL",
        # 2024-01-01 to 2024-01-31 are 31 of 300 days, each with 3 or 4 of 1000 visits.
        "between 124",
    ], done.stderr
    asked = [line for line in lines if line.startswith("asked")]
    assert len(asked) == 2 * len(QUESTIONS)
    assert all(line.endswith(" true") for line in asked)


def _rounded(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Whether a sum is near the true one, 249,500 in all and a third of that in each ward."""
    return [
        (*row[:-1], min(abs(row[-1] - near) for near in (249_500, 83_167)) < 400) for row in rows
    ]


def test_intervals_are_columns_for_tools_that_show_no_notices(proxy: RunningProxy) -> None:
    by_ward = "SELECT ward_id, count(*) AS n FROM visit WHERE ward_id IN (1, 2) GROUP BY ward_id"
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        connection.execute("SET sqlrs.error_columns = on")
        assert connection.execute("SELECT count(*) FROM visit").fetchall() == [(1000, None, None)]
        rows = connection.execute(by_ward)
        assert [c.name for c in rows.description or ()] == ["ward_id", "n", "n_low", "n_high"]
        assert sorted(rows.fetchall()) == [(1, 334, None, None), (2, 333, None, None)]
        connection.execute("SET sqlrs.error = 20")
        ((count, low, high),) = connection.execute("SELECT count(*) FROM visit").fetchall()
        assert (high - count, count - low) == (20, 20)
        assert {row[3] - row[1] for row in connection.execute(by_ward)} == {20}
        newest = connection.execute("SELECT low, high FROM sqlrs.history WHERE low IS NOT NULL")
        assert (low, high) in newest.fetchall()


def test_bigquerys_clause_names_the_price_of_its_statement(proxy: RunningProxy) -> None:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = {}, delta = 1e-9)"
    spent = "SELECT epsilon FROM sqlrs.history LIMIT 1"
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        for text, parameters in (
            ("count(*) FROM visit WHERE cost < 17", None),
            ("count(*) FROM visit WHERE cost < %s", [18]),
            ("ward_id, count(*) FROM visit WHERE ward_id IN (1, 2) GROUP BY ward_id", None),
        ):
            for epsilon in ("700", "600.5"):
                asked = connection.execute(f"{clause.format(epsilon)} {text}", parameters)
                assert asked.fetchall()
                assert connection.execute(spent).fetchone() == (Decimal(epsilon),), text
        # The next statement costs what the session says, and none more than the owner allows.
        connection.execute("SELECT count(*) FROM visit WHERE cost < 19")
        assert connection.execute(spent).fetchone() == (Decimal(1000),)
        for options, message in (
            ("epsilon = 1001", "and 1000"),
            ("max_groups_contributed = 2", "is not taken over"),
            ("epsilon = 1, privacy_unit_column = id", "single rows are protected"),
        ):
            text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) count(*) FROM visit"
            with pytest.raises(psycopg.Error, match=message):
                connection.execute(text)
        assert connection.execute(spent).fetchone() == (Decimal(1000),)
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(f"{clause.format(1)} count(*) FROM nothing")
        # Its place is that of the text as it was sent.
        position = refused.value.diag.statement_position
        assert position == str(len(f"{clause.format(1)} count(*) FROM ") + 1)


def test_a_cached_statement_outlives_every_setting(proxy: RunningProxy) -> None:
    """asyncpg keeps the columns of a statement that it prepared."""
    asyncpg = pytest.importorskip("asyncpg")

    async def asks() -> list[int]:
        connection = await asyncpg.connect(
            host="127.0.0.1",
            port=proxy.port,
            user="alice",
            password=PASSWORD,
            database="sqlrs",
            ssl="require",
        )
        widths = []
        for columns in ("on", "off"):
            await connection.execute(f"SET sqlrs.error_columns = {columns}")
            for bars in ("off", "1", "off"):
                await connection.execute(f"SET sqlrs.epsilon = 1; SET sqlrs.error_bars = {bars}")
                widths.append(len(await connection.fetchrow("SELECT count(*) AS n FROM visit")))
        await connection.close()
        return widths

    assert asyncio.run(asks()) == [3] * 6


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("x >= TO_DATE('2024-02-29', 'YYYY-MM-DD')", "x >= DATE '2024-02-29'"),
        (
            "x < to_timestamp('2024-01-01 10:00:00.500000', 'YYYY-MM-DD HH24:MI:SS.US')",
            "x < TIMESTAMP '2024-01-01 10:00:00.500000'",
        ),
        # What is not exactly that stays, and is refused.
        ("to_date('2024-02-30', 'YYYY-MM-DD')", None),
        ("to_date('01.02.2024', 'DD.MM.YYYY')", None),
        ("to_date(day, 'YYYY-MM-DD')", None),
        ("mine.to_date('2024-01-01', 'YYYY-MM-DD')", None),
        ("'to_date(''2024-01-01'', ''YYYY-MM-DD'')'", None),
        ("to_timestamp('2024-01-01 10:00:00', 'YYYY-MM-DD HH12:MI:SS')", None),
        ("to_timestamp(0)", None),
    ],
)
def test_calls_on_constants_are_literals(written: str, meant: str | None) -> None:
    found = with_literals(written)
    assert len(found) == len(written)
    assert found.rstrip() == (written if meant is None else meant)
