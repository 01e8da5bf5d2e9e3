"""Files as Spark's tables in the course of a session: written anew, gone, cached by somebody."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqlrs
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.ledger import MemoryLedger
from tests.engines.test_versioned_folders import FORMATS, made
from tests.support.spark import FOR_FEW_ROWS, connect_url, load

# The noise is below one half but for one time in many millions.
_SURE = 40


@pytest.fixture(params=["given", "behind connect"])
def target(spark: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    load(spark, (), {})
    yield spark if request.param == "given" else connect_url(spark)


def test_edges_that_are_written_anew_are_read_anew(target: Any, tmp_path: Path) -> None:
    """Spark keeps parsed edges, and takes two plans over one path for the same."""
    file, asked = tmp_path / "edge.txt", "SELECT count(*) FROM edge"
    file.write_text("1\t2\n2\t3\n", encoding="utf-8")
    with sqlrs.connect(target, tables={"edge": file}) as first:
        assert first.count(asked, epsilon=_SURE).value == 2
        file.write_text("1\t2\n2\t3\n3\t4\n", encoding="utf-8")
        with sqlrs.connect(target, tables={"edge": file}) as second:
            assert second.count(asked, epsilon=_SURE).value == 3
        # Another price: the same one would be the recorded answer.
        assert first.count(asked, epsilon=_SURE + 1).value == 3


def test_what_somebody_cached_of_a_file_is_not_read(spark: Any, tmp_path: Path) -> None:
    """Not only the table: a part of a statement may look like what is cached."""
    load(spark, (), {})
    folder = str(tmp_path / "visit")
    spark.range(8).write.parquet(folder)
    cached = spark.read.parquet(folder).where("NOT id IS NULL AND 3 < id").cache()
    try:
        assert cached.count() == 4
        # Spark reads a cache anew where it writes itself.
        duckdb.connect().execute(
            f"COPY (SELECT unnest(range(100)) AS id) TO '{folder}/more.parquet'"
        )
        with sqlrs.connect(spark, tables={"visit": folder}) as db:
            assert db.count("SELECT count(*) FROM visit WHERE id > 3", epsilon=_SURE).value == 100
    finally:
        cached.unpersist()


@pytest.mark.parametrize("ending", ["csv", "parquet", "txt"])
def test_files_that_are_gone_cost_nothing(target: Any, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"t.{ending}"
    if ending == "parquet":
        duckdb.connect().execute(f"COPY (SELECT 1 AS src, 2 AS dst) TO '{file}'")
    else:
        file.write_text("src,dst\n1,2\n" if ending == "csv" else "1\t2\n", encoding="utf-8")
    types = {"t": "src BIGINT, dst BIGINT"} if ending == "csv" else None
    ledger = MemoryLedger()
    with sqlrs.connect(target, tables={"t": file}, types=types, ledger=ledger) as db:
        db.count("SELECT count(*) FROM t", epsilon=1)
        file.unlink()
        for ask in (db.count, db.query):
            with pytest.raises(EngineFailed, match="nothing was charged") as failed:
                ask("SELECT count(*) AS n FROM t WHERE src > 0", epsilon=1)
            assert failed.value.code == "file_changed"
    assert ledger.spent() == Decimal(1)


def test_what_cannot_be_read_is_told_when_it_is_opened(target: Any, tmp_path: Path) -> None:
    file = tmp_path / "visit.csv"
    file.write_text("day,patient\n2024-02-29,secret77\n", encoding="utf-8")
    for name, types, said in (
        ("visit.csv", "patient BIGINT, day DATE", "the first line"),
        ("visit.csv", "day DATE", "the first line"),
        ("none/*.csv", "day DATE", "could not be read"),
    ):
        with pytest.raises(UsageError, match=said) as refused:
            sqlrs.connect(target, tables={"visit": str(tmp_path / name)}, types={"visit": types})
        assert "secret77" not in str(refused.value)
        assert refused.value.__context__ is None
    # Rows that do not fit are nothing that an error before a charge may tell.
    with (
        sqlrs.connect(
            target, tables={"visit": file}, types={"visit": "day DATE, patient BIGINT"}
        ) as db,
        pytest.raises(EngineFailed, match="its budget stays spent"),
    ):
        db.count("SELECT count(*) FROM visit WHERE patient > 0", epsilon=1)


def test_columns_of_folders_stand_in_no_header(target: Any, tmp_path: Path) -> None:
    for year in (2023, 2024):
        folder = tmp_path / "visits" / f"year={year}"
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text("patient\n1\n2\n", encoding="utf-8")
    with sqlrs.connect(
        target,
        tables={"visit": tmp_path / "visits"},
        types={"visit": "year INT, patient BIGINT"},
    ) as db:
        asked = "SELECT count(*) FROM visit WHERE year = 2024 AND patient > 1"
        assert db.count(asked, epsilon=_SURE).value == 1


def test_few_edges_are_few_parts(spark: Any, tmp_path: Path) -> None:
    """Each part of what is kept is a task in every stage that reads it."""
    load(spark, (), {})
    file = tmp_path / "edge.txt"
    file.write_text("1\t2\n2\t3\n", encoding="utf-8")
    for name, value in (("adaptive.enabled", "true"), ("shuffle.partitions", "50")):
        spark.conf.set(f"spark.sql.{name}", value)
    try:
        with sqlrs.connect(spark, tables={"edge": file}) as db:
            db.count("SELECT count(*) FROM edge", epsilon=1)
            (kept,) = spark.sparkContext._jsc.sc().getRDDStorageInfo()
            assert kept.numPartitions() == 1
    finally:
        for name in ("adaptive.enabled", "shuffle.partitions"):
            spark.conf.set(f"spark.sql.{name}", FOR_FEW_ROWS[f"spark.sql.{name}"])


@pytest.mark.parametrize("format_", FORMATS)
def test_folders_of_versions_are_no_tables(target: Any, tmp_path: Path, format_: str) -> None:
    table = tmp_path / "a table"
    data = made(table, format_)
    for given in (table, data.parent, data.parent / "part-*.parquet"):
        with pytest.raises(UsageError, match=f"is a table of {format_}"):
            sqlrs.connect(target, tables={"t": given})
    with sqlrs.connect(target, tables={"t": data}) as database:
        assert database.count("SELECT count(*) FROM t", epsilon=_SURE).value == 1
