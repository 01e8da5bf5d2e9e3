"""Only a proven balance lets a call through: lost, reset, missing, NULL and NaN refuse."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import errors

from sqlrs.procedures.install import balances
from tests.procedures.conftest import EDGES
from tests.procedures.desk import Desk
from tests.support import postgres_server
from tests.support.postgres_server import PostgresServer, find_binaries

COUNTER = "(SELECT spent FROM sqlrs.budgets WHERE kind = 'analyst')"
OUTRAGEOUS = ["902", "903"]
DAMAGES = [
    "ALTER SEQUENCE {} RESTART",
    "SELECT setval('{}', 0, false)",
    "SELECT setval('{}', 0)",
    "SELECT setval('{}', 499999999999)",
    "DROP SEQUENCE {}",
]


def counter_of(desk: Desk, kind: str = "analyst") -> str:
    ((name,),) = desk.run(f"SELECT spent::text FROM sqlrs.budgets WHERE kind = '{kind}'")
    return str(name)


def refuses(desk: Desk, kind: str = "analyst") -> None:
    """Nothing is answered, nothing read, and the way out is named."""
    before = desk.run("SELECT count(*) FROM sqlrs.releases")
    for epsilon in ("0.1", *OUTRAGEOUS):
        with pytest.raises(errors.ObjectNotInPrerequisiteState, match=f"budget of the {kind}") as e:
            desk.ask(epsilon)
        assert f"sqlrs.restore_spent('{kind}'" in (e.value.diag.message_hint or "")
    assert desk.run("SELECT count(*) FROM sqlrs.releases") == before
    ((remaining,),) = desk.run("SELECT remaining FROM sqlrs.budget()", "ada")
    assert remaining == 0
    assert any(balance.spent is None for balance in balances(desk.url))


def dump(url: str, *options: str) -> str:
    parts = urlsplit(url)
    run = subprocess.run(
        [
            *(find_binaries() / "pg_dump", "--host=127.0.0.1", f"--port={parts.port}"),
            *("--username=postgres", *options, parts.path.strip("/")),
        ],
        env={"PGPASSWORD": parts.password or ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout


def restore(url: str, script: str) -> None:
    parts = urlsplit(url)
    subprocess.run(
        [
            *(find_binaries() / "psql", "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1"),
            *("--host=127.0.0.1", f"--port={parts.port}", "--username=postgres"),
            parts.path.strip("/"),
        ],
        env={"PGPASSWORD": parts.password or ""},
        input=script,
        stdout=subprocess.DEVNULL,
        text=True,
        check=True,
    )


@contextmanager
def restored(desk: Desk, *options: str) -> Iterator[Desk]:
    """A second database with what pg_dump took of the first."""
    with desk.server.database() as url:
        restore(url, dump(desk.url, *options))
        yield Desk(desk.server, url)


def test_a_counter_that_went_back_or_away(desk: Desk) -> None:
    desk.install(budget="5", dataset_budget="5", repeats=False)
    desk.ask("0.5")
    for damage in DAMAGES:
        for kind, name in (("analyst", "ada"), ("dataset", "data")):
            desk.run(damage.format(counter_of(desk, kind)))
            refuses(desk, kind)
            desk.run(f"SELECT sqlrs.restore_spent('{kind}', '{name}', 0.5)")
    desk.ask("0.5")
    assert desk.spent() == {"ada": 1, "data": 1}


def test_a_counter_that_was_never_set(desk: Desk) -> None:
    desk.install(budget="5", dataset_budget="5")
    for kind in ("analyst", "dataset"):
        desk.run(f"ALTER SEQUENCE {counter_of(desk, kind)} RESTART")
    refuses(desk)


def test_a_counter_that_a_crash_would_forget(desk: Desk) -> None:
    desk.install()
    desk.run(f"ALTER SEQUENCE {counter_of(desk)} SET UNLOGGED")
    refuses(desk)


def test_a_counter_that_cannot_be_advanced(desk: Desk) -> None:
    desk.install(repeats=False)
    desk.ask("0.5")
    desk.run(f"ALTER SEQUENCE {counter_of(desk, 'dataset')} MAXVALUE 600000000000")
    with pytest.raises(errors.NumericValueOutOfRange):
        desk.ask("0.5")
    assert desk.run("SELECT count(*) FROM sqlrs.releases") == [(1,)]
    assert desk.spent() == {"ada": 1, "data": Decimal("0.5")}  # never less than answered


def test_two_budgets_of_one_counter(desk: Desk) -> None:
    desk.install()
    desk.run("ALTER TABLE sqlrs.budgets DROP CONSTRAINT budgets_spent_key")
    desk.run(f"UPDATE sqlrs.budgets SET spent = {COUNTER}")
    with pytest.raises(errors.ObjectNotInPrerequisiteState):
        desk.ask("0.5")
    assert set(desk.spent().values()) == {0}


def test_a_cap_that_is_none(desk: Desk) -> None:
    desk.install(repeats=False)
    desk.run("ALTER TABLE sqlrs.budgets DROP CONSTRAINT budgets_cap_check, ALTER cap DROP NOT NULL")
    for cap in ("NULL", "'NaN'", "'Infinity'", "1e9", "-1"):
        desk.run(f"UPDATE sqlrs.budgets SET cap = {cap} WHERE kind = 'dataset'")
        for epsilon in ("0.1", *OUTRAGEOUS):
            with pytest.raises(errors.ConfigurationLimitExceeded):
                desk.ask(epsilon)
    assert set(desk.spent().values()) == {0}


def test_a_cap_that_cannot_be_granted(desk: Desk) -> None:
    desk.install(budget="5", dataset_budget="5")
    for cap in ("-8", "NULL", "'NaN'", "'Infinity'", "1000001", "0.0000000000001"):
        with pytest.raises(errors.InvalidParameterValue, match="from 0 to 1000000"):
            desk.run(f"SELECT sqlrs.grant_budget('analyst', 'ada', {cap})")
    for budget in ("'analyst', ''", "'analyst', NULL", "NULL, 'ada'", "'analysts', 'ada'"):
        with pytest.raises(errors.InvalidParameterValue, match="an analyst or of a dataset"):
            desk.run(f"SELECT sqlrs.grant_budget({budget}, 1)")
    assert {balance.cap for balance in balances(desk.url)} == {5}


def test_a_counter_that_is_null(desk: Desk) -> None:
    desk.install()
    desk.run("ALTER TABLE sqlrs.budgets ALTER spent DROP NOT NULL")
    desk.run("UPDATE sqlrs.budgets SET spent = NULL WHERE kind = 'analyst'")
    refuses(desk)


def test_a_deleted_budget_is_no_budget_and_finds_its_counter_again(desk: Desk) -> None:
    desk.install(budget="5", dataset_budget="5", repeats=False)
    desk.ask("4")
    with desk.session("ada", autocommit=False) as analyst:
        analyst.execute("SELECT * FROM sqlrs.asked(0.5)")
        analyst.rollback()  # spent, and in no journal
    for kind in ("analyst", "dataset"):
        ((name,),) = desk.run(f"DELETE FROM sqlrs.budgets WHERE kind = '{kind}' RETURNING name")
        with pytest.raises(errors.ConfigurationLimitExceeded, match=f"of the {kind}") as error:
            desk.ask("0.1")
        hint = error.value.diag.message_hint or ""
        assert f"sqlrs.grant_budget('{kind}', '{name}', …)" in hint
        desk.run(f"SELECT sqlrs.grant_budget('{kind}', '{name}', 5)")
        assert desk.spent() == {"ada": Decimal("4.5"), "data": Decimal("4.5")}
        with pytest.raises(errors.ConfigurationLimitExceeded):
            desk.ask("1")


def test_what_is_spent_is_restored_and_never_lowered(desk: Desk) -> None:
    desk.install(budget="5", dataset_budget="5", repeats=False)
    desk.ask("3")
    desk.run(f"DROP SEQUENCE {counter_of(desk)}")
    refuses(desk)
    for low in ("2.9", "0", "NULL", "'NaN'", "1000001", "3.0000000000001"):
        with pytest.raises(errors.InvalidParameterValue):
            desk.run(f"SELECT sqlrs.restore_spent('analyst', 'ada', {low})")
    refuses_nobody = "SELECT sqlrs.restore_spent('analyst', 'nobody', 1)"
    with pytest.raises(errors.InvalidParameterValue, match="no budget"):
        desk.run(refuses_nobody)
    desk.run("SELECT sqlrs.restore_spent('analyst', 'ada', 4.25)")
    assert desk.spent()["ada"] == Decimal("4.25")
    with pytest.raises(errors.ConfigurationLimitExceeded):
        desk.ask("1")
    desk.ask("0.75")
    with pytest.raises(errors.InvalidParameterValue, match="from 5 to"):
        desk.run("SELECT sqlrs.restore_spent('analyst', 'ada', 4.9)")


def test_a_dump_carries_what_is_spent(desk: Desk) -> None:
    desk.install(budget="5", dataset_budget="5", repeats=False)
    desk.ask("3")
    with restored(desk) as copy:
        assert copy.spent() == {"ada": 3, "data": 3}
        with pytest.raises(errors.ConfigurationLimitExceeded):
            copy.ask("2.5")
        copy.ask("2")
        assert copy.spent() == {"ada": 5, "data": 5}


def test_a_dump_without_the_counters(desk: Desk) -> None:
    desk.install(budget="5", dataset_budget="5", repeats=False)
    desk.ask("3")
    with restored(desk, "--exclude-table-data=sqlrs.spent_*") as copy:
        refuses(copy)
        copy.run("SELECT sqlrs.restore_spent('analyst', 'ada', 3)")
        refuses(copy, "dataset")
        copy.run("SELECT sqlrs.restore_spent('dataset', 'data', 3)")
        copy.ask("2")


def test_replication_leaves_the_counters_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = postgres_server._SETTINGS + "wal_level = logical\nmax_wal_senders = 4\n"
    monkeypatch.setattr(postgres_server, "_SETTINGS", settings)
    with PostgresServer() as server, server.database() as url, server.database() as other:
        desk, replica = Desk(server, url), Desk(server, other)
        desk.edges(EDGES)
        desk.install(budget="5", dataset_budget="5", repeats=False)
        restore(other, dump(url, "--schema-only"))
        desk.run("CREATE PUBLICATION all_tables FOR ALL TABLES")
        desk.run("SELECT pg_create_logical_replication_slot('copy', 'pgoutput')")
        source = f"CREATE SUBSCRIPTION copy CONNECTION '{url}' PUBLICATION all_tables"
        replica.run(f"{source} WITH (create_slot = false)")
        desk.ask("3")
        deadline = time.monotonic() + 60
        while replica.run("SELECT count(*) FROM sqlrs.releases, sqlrs.budgets, sqlrs.version") != [
            (2,)
        ]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        refuses(replica)
        replica.run("ALTER SUBSCRIPTION copy DISABLE")
        replica.run("ALTER SUBSCRIPTION copy SET (slot_name = NONE)")
        replica.run("DROP SUBSCRIPTION copy")
        while desk.run("SELECT count(*) FROM pg_replication_slots WHERE active") != [(0,)]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        desk.run("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")


def test_a_place_that_is_null_is_not_on_disk(workshop: Desk) -> None:
    with pytest.raises(psycopg.Error, match="does not reach the disk"):
        workshop.run("SELECT sqlrs.await_durable(NULL)")


@pytest.mark.parametrize("t", ["NULL", "ARRAY[1, NULL]", "ARRAY[-1, 1]", "ARRAY['NaN', 1]"])
def test_numbers_of_results_that_are_none(workshop: Desk, t: str) -> None:
    with pytest.raises(psycopg.Error, match="missing or negative"):
        workshop.run(
            "SELECT sqlrs.fold('{1, 1, 1, 0, -1}', '{1, 6}', '{2, 1, 0, 1, 1, -1}', '{}', '{}', "
            f"'{{1}}', {t}::numeric[], 1200000000000)"
        )
    with pytest.raises(psycopg.Error, match="no noise"):
        workshop.run("SELECT sqlrs.noise(NULL, 0, 1200000000000, 5)")
    with pytest.raises(psycopg.Error, match="no noise"):
        workshop.run("SELECT sqlrs.noise('NaN', 0, 1200000000000, 5)")
