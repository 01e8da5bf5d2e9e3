"""The proxy serves tables of Spark: clients see them in the catalog, and are answered."""

from __future__ import annotations

import shutil
import subprocess
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

import sqlrs
from sqlrs.catalog import ColumnType, Family
from sqlrs.ledger.store import StoreLedger
from sqlrs.proxy.library import LibraryBackend
from tests.proxy.harness import running_proxy
from tests.support.builders import TEXT, table
from tests.support.spark import load

_DATE = ColumnType(Family.DATE, "DATE")
_TABLES = (
    table("stay", "pid", "ward", "day", types={"ward": TEXT, "day": _DATE}, nullable="ward day"),
    table("ward", "name", "floor", types={"name": TEXT}),
)
_ROWS: dict[str, list[tuple[object, ...]]] = {
    "stay": [(n % 40, "ab"[n % 2], date(2024, 1, 1 + n % 28)) for n in range(300)],
    "ward": [("a", 1), ("b", 2)],
}
_JOINED = "SELECT count(*) FROM stay s JOIN ward w ON s.ward = w.name WHERE w.floor = 1"


@pytest.mark.slow
def test_clients_of_postgresql_ask_spark(spark: Any, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    load(spark, _TABLES, _ROWS)
    ledger = StoreLedger(f"sqlite:///{tmp_path}/budget.db")
    ledger.grant(analyst="alice", epsilon=10)
    ledger.grant(dataset="data", epsilon=10)
    database = sqlrs.connect(
        spark,
        public=["ward"],
        keys={"ward": ["name"]},
        domains={"stay.ward": ["a", "b"]},
        ledger=ledger,
    )
    with running_proxy(LibraryBackend(database), tmp_path) as running:
        with psycopg.connect(running.dsn(), autocommit=True) as connection:
            (joined,) = connection.execute(_JOINED).fetchone() or (None,)
            assert isinstance(joined, int)
            groups = connection.execute(
                "SELECT ward, count(*) AS n FROM stay GROUP BY ward ORDER BY ward"
            ).fetchall()
            # All columns of Spark's may be NULL.
            assert [name for name, _ in groups] == ["a", "b", None]
            # What is public is read as it is; no private row is.
            assert connection.execute("SELECT name, floor FROM ward ORDER BY name").fetchall() == [
                ("a", 1),
                ("b", 2),
            ]
            with pytest.raises(psycopg.Error) as refused:
                connection.execute("SELECT pid, day FROM stay")
            assert "2024" not in str(refused.value)
            types = connection.execute(
                "SELECT column_name, data_type FROM information_schema.columns "
                "WHERE table_name = 'stay' ORDER BY ordinal_position"
            ).fetchall()
            assert types == [("pid", "bigint"), ("ward", "text"), ("day", "date")]
        psql = shutil.which("psql")
        shown = str(joined)
        if psql is not None:
            shown = subprocess.run(
                [psql, "--no-psqlrc", "-At", "-c", _JOINED, running.dsn()],
                capture_output=True,
                text=True,
                timeout=300,
                check=True,
            ).stdout
    # The same question again is the recorded answer, and costs nothing.
    assert shown.split() == [str(joined)]
    assert ledger.budget(analyst="alice").spent == Decimal(1)
    database.close()
