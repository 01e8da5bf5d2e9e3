"""A table that changed after the proxy's start: its clients are told, and nothing is charged."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import sqlrs
from sqlrs.ledger.memory import MemoryLedger
from sqlrs.proxy.library import LibraryBackend
from tests.proxy.harness import running_proxy

SETUP = "CREATE TABLE person{0} (id int PRIMARY KEY); CREATE TABLE visit{0} (person int NOT NULL)"
JOIN = "SELECT count(*) FROM person{0} p JOIN visit{0} v ON p.id = v.person WHERE p.id <> {1}"
# Each on tables of its own.
CHANGES = (
    "ALTER TABLE person{0} DROP CONSTRAINT person{0}_pkey",
    "ALTER TABLE visit{0} ADD note text",
    "CREATE TABLE guest () INHERITS (person{0})",
)


def test_what_changed_after_the_start_is_refused_before_the_charge(
    postgres_db: str, tmp_path: Path
) -> None:
    ledger = MemoryLedger()
    with psycopg.connect(postgres_db, autocommit=True) as owner:
        for number in range(len(CHANGES)):
            owner.execute(SETUP.format(number).encode())
        with (
            sqlrs.connect(postgres_db, ledger=ledger) as database,
            running_proxy(LibraryBackend(database), tmp_path) as proxy,
            psycopg.connect(proxy.dsn(), autocommit=True) as analyst,
        ):
            for number, change in enumerate(CHANGES):
                analyst.execute(JOIN.format(number, 1).encode())
                spent = ledger.spent()
                owner.execute(change.format(number).encode())
                with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="changed"):
                    analyst.execute(JOIN.format(number, 2).encode())
                assert ledger.spent() == spent > 0
