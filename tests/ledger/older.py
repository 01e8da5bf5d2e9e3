"""Ledgers of older versions, and a look at what a store holds from outside."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import psycopg

FIXTURES = Path(__file__).parent / "fixtures"


def run(url: str, script: str) -> list[tuple[Any, ...]]:
    """Run SQL as the owner; the rows of the last statement that has some."""
    if url.startswith("sqlite:///"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
            if script.count(";") > 1:
                file.executescript(script)
                return []
            return file.execute(script).fetchall()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = sqlrs_ledger, public")
        cursor = connection.execute(script.encode())
        return cursor.fetchall() if cursor.description else []


def version_1(url: str) -> None:
    """A ledger with history, charges and an exhausted analyst, from before there were versions."""
    name = "sqlite" if url.startswith("sqlite:///") else "postgresql"
    if name == "sqlite":
        Path(url.removeprefix("sqlite:///")).touch(0o600)
    run(url, (FIXTURES / f"version_1_{name}.sql").read_text("utf-8"))


def version_2(url: str) -> None:
    """The same ledger once it says its version, and with a dataset that was never charged."""
    version_1(url)
    schema = "" if url.startswith("sqlite:///") else "sqlrs_ledger."
    run(url, f"CREATE TABLE {schema}sqlrs_version (version INTEGER NOT NULL)")
    run(url, f"INSERT INTO {schema}sqlrs_version VALUES (2)")
    run(url, f"INSERT INTO {schema}sqlrs_budgets VALUES ('dataset', 'untouched', '2', '0')")


def version_3(url: str) -> None:
    """The same ledger once datasets have units."""
    version_2(url)
    schema = "" if url.startswith("sqlite:///") else "sqlrs_ledger."
    column = "unit TEXT NOT NULL DEFAULT 'row'"
    run(url, f"ALTER TABLE {schema}sqlrs_releases ADD COLUMN {column}")
    run(url, f"ALTER TABLE {schema}sqlrs_budgets ADD COLUMN unit TEXT")
    run(url, f"UPDATE {schema}sqlrs_budgets SET unit = 'row' WHERE name = 'graph'")
    run(url, f"UPDATE {schema}sqlrs_version SET version = 3")


def content(url: str) -> list[list[tuple[Any, ...]]]:
    """Every row of every table that a ledger of version 1 has."""
    return [
        run(url, "SELECT kind, name, cap, spent FROM sqlrs_budgets ORDER BY kind, name"),
        run(
            url,
            "SELECT ticket, at, analyst, dataset, query, mechanism, epsilon, outcome, answer, "
            "fingerprint FROM sqlrs_releases ORDER BY ticket",
        ),
    ]
