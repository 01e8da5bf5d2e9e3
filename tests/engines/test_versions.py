"""Only versions that were tested are counted with; pyproject.toml names the same ranges."""

from __future__ import annotations

import tomllib
from pathlib import Path

import duckdb
import psycopg
import pytest
import sqlglot

from sqlrs.engines import versions
from sqlrs.engines.open import open_engine
from sqlrs.errors import UsageError
from tests.support.oldest import lower_ends

PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_pyproject_names_the_same_ranges() -> None:
    assert f"duckdb{versions.DUCKDB.specifier}" in PROJECT["dependencies"]
    assert f"sqlglot{versions.SQLGLOT.specifier}" in PROJECT["dependencies"]
    (spark,) = PROJECT["optional-dependencies"]["spark"]
    assert spark == f"pyspark[connect]{versions.SPARK.specifier}"


def test_every_dependency_has_both_ends() -> None:
    extras = PROJECT["optional-dependencies"].values()
    for dependency in [*PROJECT["dependencies"], *(d for extra in extras for d in extra)]:
        if not dependency.startswith("sqlrs["):
            assert ">=" in dependency, dependency
            assert ",<" in dependency, dependency


def test_the_lower_ends_are_pinned_for_make_versions() -> None:
    pins = lower_ends()
    assert "duckdb==2.0.0" in pins
    assert "psycopg-binary==3.2.2" in pins
    assert all("==" in pin for pin in pins)


@pytest.mark.parametrize(
    "version", ["1.4.9", "1.5.4", "2.0", "2.0.0", "2.0.7", "2.1.0", "3.0", "x"]
)
def test_a_version_outside_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlrs.engines.duckdb.VERSION", version)
    if version in ("2.0", "2.0.0", "2.0.7"):
        open_engine("duckdb://").close()
        return
    for target in ("duckdb://", duckdb.connect()):
        with pytest.raises(UsageError) as caught:
            open_engine(target)
        assert caught.value.code == "untested_version"
        assert version in caught.value.message
        assert "duckdb>=2.0,<2.1" in (caught.value.hint or "")


def test_another_parser_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlglot, "__version__", "31.0.0")
    with pytest.raises(UsageError, match=r"sqlglot 31\.0\.0 is not supported"):
        open_engine("duckdb://")


def test_a_compiled_parser_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlglot.parser, "__file__", "/lib/sqlglot/parser.cpython-311.so")
    with pytest.raises(UsageError, match="compiled form of sqlglot") as caught:
        open_engine("duckdb://")
    assert caught.value.hint == "pip uninstall sqlglotc"


@pytest.mark.parametrize("number", [140_012, 190_000])
def test_another_server_is_refused(
    postgres_db: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server itself is of a version that is supported: only what it says of itself is changed.
    monkeypatch.setattr(psycopg.ConnectionInfo, "server_version", number)
    engine = open_engine(postgres_db)
    with pytest.raises(UsageError, match=f"PostgreSQL {number // 10_000}"):
        engine.catalog()
    engine.close()
