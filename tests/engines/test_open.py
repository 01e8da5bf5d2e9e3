"""What `open_engine` takes for a database, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqlrs.engines.open import open_engine
from sqlrs.errors import EngineFailed, UsageError


@pytest.mark.parametrize("url", ["duckdb://", "duckdb:", "duckdb:///:memory:", "duckdb:///"])
def test_in_memory_urls(url: str) -> None:
    with closing(open_engine(url)) as engine:
        assert engine.catalog().tables == ()


def test_three_slashes_are_relative_and_four_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with duckdb.connect(str(tmp_path / "here.db")) as connection:
        connection.execute("CREATE TABLE t (a INT)")
    monkeypatch.chdir(tmp_path)
    for url in ("duckdb:///here.db", f"duckdb:///{tmp_path}/here.db"):
        with closing(open_engine(url)) as engine:
            assert [t.name for t in engine.catalog().tables] == ["t"]


@pytest.mark.parametrize(
    "target",
    [
        "duckdb:///missing.db",
        "duckdb:///.",
        "duckdb://host/file.db",
        "duckdb:file.db",
        "duckdb:///file.db?access_mode=read_write",
        "sqlite:///file.db",
        "spark://host",
        "file.db",
        "",
        "postgresql://u@h/x?nonsense=1",
        3,
        None,
        object(),
    ],
)
def test_other_targets_are_refused(target: object) -> None:
    with pytest.raises(UsageError):
        open_engine(target)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_text("not a database" * 1000)
    with pytest.raises(UsageError, match=r"no\.db"):
        open_engine(f"duckdb:///{tmp_path}/no.db")


@pytest.mark.parametrize(
    "options",
    [
        {"memory_limit": "lots"},
        {"threads": 0},
        {"max_temp_directory_size": "x"},
        {"temp_directory": "/nowhere/at/all"},
        {"timeout": 0},
        {"timeout": -1.0},
        {"timeout": float("nan")},
        {"timeout": float("inf")},
    ],
)
def test_senseless_limits_are_refused(options: Mapping[str, Any]) -> None:
    with pytest.raises(UsageError):
        open_engine("duckdb://", **options)


def test_limits_and_files_are_for_duckdb_urls_only(tmp_path: Path) -> None:
    with duckdb.connect() as connection, pytest.raises(UsageError, match="memory limit"):
        open_engine(connection, memory_limit="1GB")
    with pytest.raises(UsageError, match="files"):
        open_engine("postgresql://h/d", tables={"t": tmp_path / "t.csv"})


def test_an_engine_is_taken_as_it_is() -> None:
    with closing(open_engine("duckdb://")) as engine:
        assert open_engine(engine) is engine


def test_no_server_is_a_database_failure_without_the_password() -> None:
    with pytest.raises(EngineFailed) as caught:
        open_engine("postgresql://user:hunter2@127.0.0.1:1/data?connect_timeout=2")
    assert caught.value.code == "connection_failed"
    assert "hunter2" not in caught.value.describe()
    assert caught.value.__context__ is None


def test_without_psycopg_the_install_command_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "sqlrs.engines.postgres", raising=False)
    with pytest.raises(UsageError) as caught:
        open_engine("postgresql://h/d")
    assert caught.value.hint == "pip install 'sqlrs[postgres]'"


def test_drivers_are_imported_only_when_they_are_used() -> None:
    program = (
        "import sys, sqlrs.engines.open as o\n"
        "drivers = {'_duckdb', 'duckdb', 'psycopg', 'sqlalchemy'}\n"
        "assert not drivers & set(sys.modules)\n"
        "o.open_engine('duckdb://').close()\n"
        "assert drivers & set(sys.modules) == {'_duckdb'}\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
