"""The public names are pinned, all importable, and importing the package loads little."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sqlrs

PUBLIC = {
    "Answer",
    "BudgetExhausted",
    "Database",
    "EngineFailed",
    "Interrupted",
    "Interval",
    "Ledger",
    "MemoryLedger",
    "NotShown",
    "QueryRefused",
    "Settings",
    "SqlrsError",
    "TableAnswer",
    "UsageError",
    "connect",
}


def test_the_public_names_are_these() -> None:
    assert set(sqlrs.__all__) == PUBLIC
    assert set(dir(sqlrs)) == PUBLIC | {"__version__"}
    assert all(getattr(sqlrs, name) is not None for name in PUBLIC)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        sqlrs.no_such_name  # noqa: B018


def test_the_version_is_the_project_file_s() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == sqlrs.__version__


HEAVY = {"duckdb", "sqlalchemy", "psycopg", "z3", "matplotlib"}


def loaded_by(module: str) -> set[str]:
    code = f"import {module}, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_loads_no_driver_and_no_compiler() -> None:
    assert loaded_by("sqlrs").isdisjoint(HEAVY | {"sqlglot"})


@pytest.mark.parametrize(
    "module",
    [
        "sqlrs.query",
        "sqlrs.residuals.residual",
        "sqlrs.sensitivity.refined",
        "sqlrs.noise",
        "sqlrs.release",
    ],
)
def test_the_path_to_an_answer_imports_no_driver(module: str) -> None:
    assert loaded_by(module).isdisjoint(HEAVY)


@pytest.mark.parametrize("module", ["sqlrs.query", "sqlrs.residuals.residual", "sqlrs.noise"])
def test_the_mathematics_knows_no_sql(module: str) -> None:
    assert "sqlglot" not in loaded_by(module)
