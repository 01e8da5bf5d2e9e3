"""Days that Python has no form for, in public tables: refused before any charge."""

from __future__ import annotations

import duckdb
import psycopg
import pytest

import sqlrs

SETUP = (
    "CREATE TABLE calendar (id int PRIMARY KEY, day date UNIQUE NOT NULL)",
    "INSERT INTO calendar VALUES (1, '2024-01-01'), (2, '{day}')",
    "CREATE TABLE visit (id int PRIMARY KEY, day date, spot int NOT NULL)",
    "INSERT INTO visit VALUES (1, '2024-01-01', 1), (2, '{day}', 2)",
)
COUNTS = "SELECT spot, count(*) AS n FROM visit WHERE spot IN (1, 2) GROUP BY spot"
GROUPS = (
    "SELECT c.day, count(*) AS n FROM calendar c JOIN visit v ON v.day = c.day{} GROUP BY c.day"
)


def refused_and_mended(db: sqlrs.Database, ledger: sqlrs.MemoryLedger) -> None:
    with pytest.raises(sqlrs.QueryRefused) as refused:
        db.query(GROUPS.format(""), epsilon=1)
    assert "infinite date" in str(refused.value)
    above = f"SELECT c.day, n FROM ({COUNTS}) AS v JOIN calendar AS c ON c.id = v.spot"
    with pytest.raises(sqlrs.QueryRefused):
        db.query(above, epsilon=1)
    assert ledger.spent() == 0
    # As the hint says.
    mended = db.query(
        GROUPS.format(" WHERE c.day < '9999-12-31' AND c.day >= '0001-01-01'"), epsilon=1
    )
    assert len(mended.rows) == 1


@pytest.mark.parametrize("day", ["infinity", "-infinity", "0044-03-15 BC", "20000-01-01"])
def test_postgres(postgres_db: str, day: str) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as connection:
        for text in SETUP:
            connection.execute(text.format(day=day).encode())
    ledger = sqlrs.MemoryLedger()
    with sqlrs.connect(postgres_db, private="visit", public="calendar", ledger=ledger) as db:
        refused_and_mended(db, ledger)


@pytest.mark.parametrize("day", ["infinity", "-infinity", "0044-03-15 (BC)", "20000-01-01"])
def test_duckdb(day: str) -> None:
    connection = duckdb.connect()
    for text in SETUP:
        connection.execute(text.format(day=day))
    ledger = sqlrs.MemoryLedger()
    with sqlrs.connect(connection, private="visit", public="calendar", ledger=ledger) as db:
        refused_and_mended(db, ledger)
