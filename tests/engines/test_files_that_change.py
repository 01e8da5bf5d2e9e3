"""What is kept of a file's rows is believed only while nobody has changed it, by any means."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from sqlglot import exp

import sqlrs
from sqlrs.compiler.compile import compile_query
from sqlrs.engines.duckdb import DuckDBEngine
from sqlrs.engines.loaded_files import FileState
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.ledger import MemoryLedger
from sqlrs.measuring.measurements import Measurements
from sqlrs.query import Query
from sqlrs.residuals.residual import Residuals

SQL = "SELECT count(*) FROM visit a JOIN visit b ON a.k = b.k"
DIFFERENT = "range"
ALIKE = "CASE WHEN range % 3 = 0 THEN 3 ELSE range END"


def select(key: str) -> str:
    """Rows that take the same number of bytes whatever the keys are."""
    return f"SELECT (hash({key}) >> 2)::BIGINT AS k FROM range(3000)"


def parquet(path: Path, key: str) -> Path:
    with duckdb.connect() as connection:
        connection.sql(select(key)).write_parquet(str(path), compression="uncompressed")
    return path


def database(path: Path, key: str) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE visit AS {select(key)}")
    return path


def overwrite(path: Path, other: Path) -> None:
    """The same file, of the same size, with the time of its last writing as it was."""
    before = os.stat(path)
    with path.open("r+b") as file:
        file.write(other.read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = os.stat(path)
    assert (before.st_ino, before.st_size) == (after.st_ino, after.st_size)
    assert before.st_mtime_ns == after.st_mtime_ns


def largest_group(opened: sqlrs.Database) -> int:
    """T_E of one visit, by what is kept of the rows."""
    query = compile_query(SQL, opened.catalog)
    assert isinstance(query, Query)
    residuals = Residuals(query)
    values = Measurements(opened.engine).enough(residuals, residuals.required, None).values
    return values[frozenset({0})]


def test_a_parquet_file_that_is_rewritten_at_its_old_time_ends_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parquet(tmp_path / "visit.parquet", DIFFERENT)
    other = parquet(tmp_path / "other.parquet", ALIKE)
    ledger = MemoryLedger()
    with sqlrs.connect(tables={"visit": path}, ledger=ledger) as opened:
        assert largest_group(opened) == 1
        overwrite(path, other)
        with pytest.raises(EngineFailed) as caught:
            opened.count(SQL, epsilon=1)
        assert caught.value.code == "database_failed"
        with pytest.raises(EngineFailed, match="has changed"):
            largest_group(opened)
    # Without the time of any change, the value of rows that are gone is believed.
    of = FileState.of

    def written(path: Path) -> FileState | None:
        found = of(path)
        return None if found is None else replace(found, changed=0)

    monkeypatch.setattr(FileState, "of", written)
    parquet(path, DIFFERENT)
    with sqlrs.connect(tables={"visit": path}) as opened:
        assert largest_group(opened) == 1
        overwrite(path, other)
        assert largest_group(opened) == 1
    with sqlrs.connect(tables={"visit": path}) as opened:
        assert largest_group(opened) == 1000


def copied_over(path: Path, other: Path) -> None:
    """As ``cp`` does, past every lock."""
    path.write_bytes(other.read_bytes())


def replaced(path: Path, other: Path) -> None:
    other.replace(path)


@pytest.mark.parametrize("change", [overwrite, copied_over, replaced, lambda p, _: p.unlink()])
def test_a_database_file_that_changes_is_answered_from_no_more(
    tmp_path: Path, change: Callable[[Path, Path], object]
) -> None:
    """DuckDB's lock binds programs that ask for it; its cache would mix old rows with new ones."""
    path = database(tmp_path / "data.duckdb", DIFFERENT)
    other = database(tmp_path / "other.duckdb", ALIKE)
    ledger = MemoryLedger()
    with sqlrs.connect(path, ledger=ledger) as opened:
        assert largest_group(opened) == 1
        opened.count(SQL, epsilon=1)
        assert isinstance(opened.engine, DuckDBEngine)
        with opened.engine.snapshot() as snapshot:
            everything = exp.select("count(*)").from_("visit")
            assert snapshot.scalar(everything) == 3000
            change(path, other)
            with pytest.raises(EngineFailed, match="has changed") as during:
                snapshot.scalar(everything)
            assert during.value.code == "file_changed"
        with pytest.raises(UsageError, match="has changed") as before:
            opened.count(SQL, epsilon=2)
        assert before.value.code == "file_changed"
        assert str(tmp_path) not in str(before.value)
        assert len(ledger.history()) == 1


def test_a_database_file_that_nobody_changes_stays(tmp_path: Path) -> None:
    """To read it, also by others, is no change."""
    path = database(tmp_path / "data.duckdb", DIFFERENT)
    with sqlrs.connect(path) as opened:
        opened.count(SQL, epsilon=1)
        path.read_bytes()
        opened.count(SQL, epsilon=2)
