"""Folders of Delta, Iceberg and Hudi: what stands in their files is not what is in the table."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import sqlrs
from sqlrs.errors import UsageError

FORMATS = {
    "Delta": ("part-0.parquet", "_delta_log/00000000000000000000.json"),
    "Hudi": ("year=2024/part-0.parquet", ".hoodie/hoodie.properties"),
    "Iceberg": ("data/day=1/part-0.parquet", "metadata/v1.metadata.json"),
}


def made(folder: Path, format_: str) -> Path:
    """A table of the format, as far as anybody looks."""
    data, mark = (folder / one for one in FORMATS[format_])
    for one in (data, mark):
        one.parent.mkdir(parents=True, exist_ok=True)
    duckdb.sql(f"COPY (SELECT 1 AS id) TO '{data}' (FORMAT parquet)")
    mark.write_text("{}", encoding="utf-8")
    return data


@pytest.mark.parametrize("format_", FORMATS)
def test_versions_are_no_table(tmp_path: Path, format_: str) -> None:
    table = tmp_path / "a table"
    data = made(table, format_)
    for given in (table, data.parent, table / "**" / "*.parquet", data.parent / "part-*.parquet"):
        with pytest.raises(UsageError, match=f"is a table of {format_}") as refused:
            sqlrs.connect(tables={"t": given})
        assert refused.value.code == "versioned_folder"
        assert "one version" in str(refused.value.hint)
    # One file is one file, whatever lies beside it.
    with sqlrs.connect(tables={"t": data}) as database:
        assert database.count("SELECT count(*) FROM t", epsilon=40).value == 1


def test_a_folder_of_tables_has_none_of_them(tmp_path: Path) -> None:
    made(tmp_path / "visits", "Delta")
    with pytest.raises(UsageError, match="is a table of Delta"):
        sqlrs.connect(tmp_path)


def test_other_folders_are_read_as_before(tmp_path: Path) -> None:
    """Folders called data and metadata are common; so are tables in a folder that has a log."""
    for name in ("data/visits", "metadata"):
        (tmp_path / name).mkdir(parents=True)
    duckdb.sql(f"COPY (SELECT 1 AS id) TO '{tmp_path}/data/visits/a.parquet' (FORMAT parquet)")
    (tmp_path / "metadata" / "notes.json").write_text("{}", encoding="utf-8")
    for given in (tmp_path / "data" / "visits", tmp_path / "data"):
        with sqlrs.connect(tables={"t": given}) as database:
            assert database.count("SELECT count(*) FROM t", epsilon=40).value == 1
