"""Statistics are read once where nobody can change the rows, and anew where somebody could."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import sqlrs
from sqlrs.engines.duckdb import DuckDBSnapshot

SQL = "SELECT count(*) FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y"
ROWS = "CREATE TABLE {} AS SELECT range % 700 AS x, range % 900 AS y FROM range(3000)"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that read statistics."""
    found: list[str] = []
    run = DuckDBSnapshot.run

    def heard(snapshot: DuckDBSnapshot, sql: str, *others: dict[str, str]) -> object:
        if " AS size " in sql or " AS squares," in sql:
            found.append(sql)
        return run(snapshot, sql, *others)

    monkeypatch.setattr(DuckDBSnapshot, "run", heard)
    return found


def filled(path: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(path)
    for name in "abc":
        connection.execute(ROWS.format(name))
    return connection


def test_a_second_query_on_a_file_reads_no_statistics(tmp_path: Path, seen: list[str]) -> None:
    filled(str(tmp_path / "data.db")).close()
    with sqlrs.connect(f"duckdb:///{tmp_path / 'data.db'}") as database:
        database.count(SQL, "1")
        assert len(seen) == 2
        database.count(SQL, "2")
        assert len(seen) == 2
        # Of another query only the column that is new.
        database.count(SQL.replace("b.y = c.y", "b.y = c.x"), "1")
        assert len(seen) == 3 and "GROUP BY x" in seen[2] and "GROUP BY y" not in seen[2]


def test_rows_that_others_may_change_are_looked_at_again(seen: list[str]) -> None:
    with filled(":memory:") as connection, sqlrs.connect(connection) as database:
        before = database.sensitivity(SQL).value
        connection.execute("INSERT INTO b SELECT 5, 5 FROM range(50000)")
        read = len(seen)
        database.count(SQL, "1")
        assert len(seen) == read + 2
        assert database.sensitivity(SQL).value > before
