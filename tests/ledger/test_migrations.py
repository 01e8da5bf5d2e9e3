"""Ledgers of older versions are brought up with all that is spent; newer ones are refused."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy import Column, Connection, Text

from sqlrs.errors import BudgetExhausted, EngineFailed, SqlrsError, UsageError
from sqlrs.ledger import migrations, opened
from sqlrs.ledger.ledger_tables import TABLES, Epsilon
from sqlrs.ledger.migrations import MIGRATIONS, add_column, has_shape, newest
from sqlrs.ledger.store import StoreLedger
from sqlrs.templates import template
from tests.ledger.build import charge
from tests.ledger.older import content, run, version_1

ROOT = Path(__file__).parents[2]
NEXT = len(MIGRATIONS) + 1
PROCESSES = 8
CONTEXT = multiprocessing.get_context("forkserver")
# Opens a ledger and is killed in the middle of the step to the next version.
DIE_IN_THE_MIDDLE = """
import os, signal, sys
from sqlrs.ledger import migrations
from sqlrs.ledger.store import StoreLedger
from tests.ledger.test_migrations import add_notes

def die(connection):
    add_notes(connection)
    connection.exec_driver_sql(sys.argv[2])
    os.kill(os.getpid(), signal.SIGKILL)

migrations.MIGRATIONS += (die,)
StoreLedger(sys.argv[1])
"""


def add_notes(connection: Connection) -> None:
    """What a later version does: a text and an exact number for every line of the journal."""
    add_column(connection, "sqlrs_releases", Column("note", Text, server_default="50% 'old'"))
    number = Column("low", Epsilon, nullable=False, server_default="0")
    add_column(connection, "sqlrs_releases", number)


@pytest.fixture
def old(store_url: str) -> str:
    version_1(store_url)
    return store_url


@pytest.fixture
def newer_code(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The code of a version to come; ``undo`` makes it today's again."""
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, add_notes))
    yield monkeypatch


def recorded(url: str) -> list[tuple[int]]:
    return run(url, "SELECT version FROM sqlrs_version")


def test_an_older_ledger_is_brought_up_with_all_that_is_spent(old: str) -> None:
    before = content(old)
    ledger = StoreLedger(old)
    assert content(old) == before
    assert recorded(old) == [(newest(),)]
    spent = {(b.kind, b.name): (b.cap, b.spent) for b in ledger.show()}
    assert spent == {
        ("analyst", "ada"): (1, Decimal("0.95000000000000000001")),
        ("analyst", "Zoë O'Neill"): (Decimal("2.5"), Decimal("0.25")),
        ("dataset", "graph"): (3, Decimal("1.20000000000000000001")),
    }
    assert ledger.repeat(charge("0.4")) == '{"answer": 7, "epsilon": "0.4"}'
    assert ledger.repeat(charge("0.25", analyst="Zoë O'Neill")) == '{"answer": -3}'
    assert ledger.repeat(charge("0.45", query="SELECT COUNT(*) FROM edge AS a")) is None
    with pytest.raises(BudgetExhausted, match=r"has 0\.04999999999999999999 left"):
        ledger.reserve(charge("0.05"))
    assert content(old) == before
    outcomes = ["released", "interrupted", "reserved", "released"]
    assert [line.outcome for line in ledger.history()] == outcomes
    assert ledger.history()[0].at.isoformat() == "2026-11-17T18:00:51.585518+00:00"
    ledger.settle(3, "5")  # reserved by the older code
    assert ledger.reserve(charge("0.5", analyst="Zoë O'Neill")) == 5
    ledger.close()
    again = StoreLedger(old)
    assert again.remaining("Zoë O'Neill", "graph") == Decimal("1.29999999999999999999")
    again.close()


@pytest.mark.parametrize("made", ["new", "old"])
def test_the_migrations_lead_to_the_tables_of_today(store_url: str, made: str) -> None:
    if made == "old":
        version_1(store_url)
    ledger = StoreLedger(store_url)
    with ledger._writing() as connection:
        assert all(has_shape(connection, table) for table in TABLES)
    indexes = {
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
        "postgresql": "SELECT indexname FROM pg_indexes WHERE schemaname = 'sqlrs_ledger' "
        "AND indexname NOT LIKE '%\\_pkey'",
    }[ledger._engine.dialect.name]
    names = {"sqlrs_releases_by_analyst", "sqlrs_releases_by_fingerprint"}
    assert {name for (name,) in run(store_url, indexes)} == names
    ledger.close()


def test_a_column_of_a_later_version(old: str, newer_code: pytest.MonkeyPatch) -> None:
    before = content(old)
    ledger = StoreLedger(old)
    assert recorded(old) == [(NEXT,)]
    assert content(old) == before
    notes = run(old, "SELECT note, low FROM sqlrs_releases")
    assert {(note, Decimal(low)) for note, low in notes} == {("50% 'old'", Decimal(0))}
    assert ledger.repeat(charge("0.4")) is not None
    ledger.settle(ledger.reserve(charge("0.01")), "1")
    ledger.close()
    StoreLedger(old).close()
    assert recorded(old) == [(NEXT,)]


def test_a_newer_ledger_is_refused(old: str, newer_code: pytest.MonkeyPatch) -> None:
    StoreLedger(old).close()
    newer_code.undo()
    before = content(old)
    told = f"has version {NEXT}, and this sqlrs knows versions up to {NEXT - 1}"
    with pytest.raises(UsageError, match=told) as error:
        StoreLedger(old)
    assert "upgrade sqlrs" in (error.value.hint or "")
    assert error.value.code == "ledger_version"
    assert content(old) == before
    assert recorded(old) == [(NEXT,)]


def test_a_running_process_does_not_use_a_ledger_that_was_upgraded(
    old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = StoreLedger(old)
    ticket = ledger.reserve(charge("0.01"))
    with monkeypatch.context() as newer_code:
        newer_code.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, add_notes))
        StoreLedger(old).close()
    before = content(old)
    refused: list[Callable[[], object]] = [
        lambda: ledger.repeat(charge("0.4")),
        lambda: ledger.reserve(charge("0.01")),
        lambda: ledger.remaining("ada", "graph"),
        lambda: ledger.grant(analyst="ada", epsilon=9),
        lambda: ledger.history(),
    ]
    for use in refused:
        with pytest.raises(UsageError, match=f"has version {NEXT}"):
            use()
    # After the charge there is one text for everything that fails.
    with pytest.raises(EngineFailed, match="no answer is given without it"):
        ledger.settle(ticket, "1")
    with pytest.raises(EngineFailed, match="no answer is given without it"):
        ledger.fail(ticket, "failed")
    assert content(old) == before
    ledger.close()


def test_a_ledger_that_went_back_is_opened_anew(old: str, newer_code: pytest.MonkeyPatch) -> None:
    ledger = StoreLedger(old)
    run(old, f"UPDATE sqlrs_version SET version = {NEXT - 1}")
    with pytest.raises(UsageError, match=f"gone back to version {NEXT - 1}"):
        ledger.reserve(charge("0.01"))
    ledger.close()


def test_a_step_waits_for_whoever_is_charging(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody writes in the way of one version what is read in the way of the next."""
    ledger = StoreLedger(old)
    with monkeypatch.context() as newer_code:
        with ledger._writing():
            newer_code.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, add_notes))
            opening = threading.Thread(target=lambda: StoreLedger(old).close(), daemon=True)
            opening.start()
            opening.join(1)
            assert opening.is_alive()
        opening.join(30)
        assert not opening.is_alive()
    assert recorded(old) == [(NEXT,)]
    ledger.close()


def test_a_step_that_fails_leaves_the_version_before(
    old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(connection: Connection) -> None:
        add_notes(connection)
        connection.exec_driver_sql(_empty(old))
        raise RuntimeError("in the middle")

    before = content(old)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, fails))
    with pytest.raises(RuntimeError, match="in the middle"):
        StoreLedger(old)
    assert content(old) == before
    assert recorded(old) == [(NEXT - 1,)]  # the steps before it are done, each by itself
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, add_notes))
    StoreLedger(old).close()
    assert content(old) == before
    assert recorded(old) == [(NEXT,)]


def test_a_process_killed_in_a_step_leaves_the_version_before(old: str) -> None:
    before = content(old)
    command = [sys.executable, "-c", DIE_IN_THE_MIDDLE, old, _empty(old)]
    run_ = subprocess.run(command, cwd=ROOT, check=False)
    assert run_.returncode == -signal.SIGKILL
    assert content(old) == before
    ledger = StoreLedger(old)
    assert ledger.budget(analyst="ada").spent == Decimal("0.95000000000000000001")
    assert recorded(old) == [(NEXT - 1,)]
    ledger.close()


def open_and_charge(url: str) -> str:
    """One of many processes that open an old ledger at the same moment."""
    ledger = StoreLedger(url)
    try:
        ledger.reserve(charge("0.25", analyst="Zoë O'Neill"))
        return "charged"
    except BudgetExhausted:
        return "refused"
    finally:
        ledger.close()


def test_many_processes_open_an_old_ledger_at_once(old: str) -> None:
    with CONTEXT.Pool(PROCESSES) as pool:
        outcomes = pool.map_async(open_and_charge, [old] * PROCESSES, chunksize=1).get(120)
    # 1.8 is left of the dataset's budget: seven times 0.25.
    assert sorted(outcomes) == ["charged"] * 7 + ["refused"]
    assert recorded(old) == [(newest(),)]
    ledger = StoreLedger(old)
    assert ledger.budget(dataset="graph").spent == Decimal("2.95000000000000000001")
    ledger.close()


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE sqlrs_budgets",
        "DROP TABLE sqlrs_releases",
        "ALTER TABLE sqlrs_releases ADD COLUMN note TEXT",
        "ALTER TABLE sqlrs_releases RENAME COLUMN outcome TO result",
        "ALTER TABLE sqlrs_budgets ADD COLUMN expires TEXT",
        "ALTER TABLE sqlrs_budgets RENAME TO kept; CREATE TABLE sqlrs_budgets (kind TEXT NOT NULL, "
        "name TEXT NOT NULL, cap REAL NOT NULL, spent REAL NOT NULL, PRIMARY KEY (kind, name));",
        "ALTER TABLE sqlrs_budgets RENAME TO kept; CREATE TABLE sqlrs_budgets AS "
        "SELECT kind, name, cap, spent FROM kept;",
    ],
)
def test_tables_of_no_version_are_refused(old: str, change: str) -> None:
    run(old, change)
    tables = _tables(old)
    with pytest.raises(UsageError, match="of no version that sqlrs knows"):
        StoreLedger(old)
    assert _tables(old) == tables


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM sqlrs_version",
        "INSERT INTO sqlrs_version VALUES (2)",
        "UPDATE sqlrs_version SET version = 0",
        "UPDATE sqlrs_version SET version = 1",
        "UPDATE sqlrs_version SET version = -2",
    ],
)
def test_a_ledger_that_does_not_say_its_version(store_url: str, change: str) -> None:
    ledger = StoreLedger(store_url)
    ledger.grant(analyst="ada", epsilon=1)
    ledger.grant(dataset="graph", epsilon=1)
    run(store_url, change)
    with pytest.raises(UsageError, match="does not say which version"):
        StoreLedger(store_url)
    with pytest.raises(UsageError, match="does not say which version"):
        ledger.reserve(charge("0.5"))
    ledger.close()
    assert {spent for *_, spent in content(store_url)[0]} <= {"0", Decimal(0)}


def test_a_number_that_is_a_text(sqlite_url: str) -> None:
    StoreLedger(sqlite_url).close()
    run(sqlite_url, "UPDATE sqlrs_version SET version = 'two'")
    with pytest.raises(SqlrsError):
        StoreLedger(sqlite_url)


@pytest.mark.postgres
def test_a_ledger_on_a_server_that_only_reads(postgres_db: str) -> None:
    version_1(postgres_db)
    name = urlsplit(postgres_db).path.strip("/")
    run(postgres_db, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(UsageError, match=r"cannot be written: .* read-only transaction"):
        StoreLedger(postgres_db)
    run(postgres_db, f"SET transaction_read_only = off; ALTER DATABASE {name} RESET ALL")
    StoreLedger(postgres_db).close()
    run(postgres_db, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    ledger = StoreLedger(postgres_db)  # of today's version: there is nothing to write
    assert len(ledger.history()) == 4
    with pytest.raises(EngineFailed):
        ledger.reserve(charge("0.01"))
    ledger.close()


@pytest.fixture
def folder_of_another() -> Iterator[Path]:
    """A folder that user 65534 may enter, but not write to."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_file_in_a_folder_that_is_not_writable(folder_of_another: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    file = folder_of_another / "budget.db"
    url = f"sqlite:///{file}"
    version_1(url)
    before = file.read_bytes()
    os.chown(file, 65534, -1)
    os.seteuid(65534)
    try:
        with pytest.raises(UsageError, match="the ledger cannot be written") as error:
            StoreLedger(url)
        assert "folder" in (error.value.hint or "")
        file.chmod(0o400)
        with pytest.raises(UsageError, match="cannot be opened: Permission denied"):
            StoreLedger(url)
    finally:
        os.seteuid(0)
    assert file.read_bytes() == before


@pytest.mark.postgres
def test_a_reader_who_never_ends_is_not_waited_for_without_end(
    postgres_db: str, newer_code: pytest.MonkeyPatch
) -> None:
    version_1(postgres_db)
    newer_code.undo()
    reader = StoreLedger(postgres_db)
    newer_code.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, add_notes))
    newer_code.setattr(opened, "template", lambda name: template(name).replace("'30s'", "'50ms'"))
    with reader._transaction(opened.READ) as connection:
        connection.exec_driver_sql("SELECT * FROM sqlrs_ledger.sqlrs_version")
        with pytest.raises(UsageError, match="could not be upgraded: canceling statement"):
            StoreLedger(postgres_db)
    assert recorded(postgres_db) == [(NEXT - 1,)]
    StoreLedger(postgres_db).close()
    reader.close()


def _empty(url: str) -> str:
    schema = "" if url.startswith("sqlite") else "sqlrs_ledger."
    return f"UPDATE {schema}sqlrs_budgets SET spent = '0'"


def _tables(url: str) -> list[tuple[str]]:
    if url.startswith("sqlite"):
        return run(url, "SELECT sql FROM sqlite_master ORDER BY name")
    return run(url, "SELECT relname FROM pg_class WHERE relnamespace = 'sqlrs_ledger'::regnamespace"
                    " ORDER BY relname")  # fmt: skip
