"""Schemas of older versions are brought up with all that is spent; newer ones are refused.

A function answers only beside the functions that it was installed with.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from sqlrs.errors import UsageError
from sqlrs.procedures import Grants, install_script, render
from sqlrs.procedures.install import balances, install, installed
from sqlrs.procedures.schema_parts import MIGRATIONS, edition
from sqlrs.templates import template
from tests.procedures.desk import Desk, ask

FIXTURE = Path(__file__).parent / "fixtures" / "version_2.sql"
PATHS = "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src"
NEXT = len(MIGRATIONS) + 1
BY_ANOTHER = "installed by another version of sqlrs"
JOURNAL = "SELECT ticket, at, analyst, query, mechanism, epsilon, answer FROM sqlrs.releases"


def version_2(desk: Desk, name: str = "asked") -> None:
    """A schema from before there were versions, with one function for ada."""
    desk.analyst("ada")
    desk.run(FIXTURE.read_text("utf-8").replace("asked", name))


def version_1(desk: Desk) -> None:
    """The same, from before the journal kept what was spent; functions spent through charge."""
    version_2(desk)
    desk.run("ALTER TABLE sqlrs.releases DROP COLUMN analyst_spent, DROP COLUMN dataset_spent")
    desk.run(
        "CREATE FUNCTION sqlrs.charge(analyst text, dataset text, query text, epsilon numeric) "
        "RETURNS pg_lsn LANGUAGE sql AS 'SELECT pg_current_wal_lsn()'"
    )
    desk.run("ALTER FUNCTION sqlrs.charge(text, text, text, numeric) OWNER TO sqlrs_owner")


def reinstall(desk: Desk, name: str = "asked") -> None:
    desk.install(PATHS, name=name, budget=None, dataset_budget=None)


def recorded(desk: Desk) -> list[tuple[int, str]]:
    return desk.run("SELECT version, edition FROM sqlrs.version")


def columns(desk: Desk) -> list[tuple[object, ...]]:
    return desk.run(
        "SELECT relname, attname, atttypid::regtype, attnotnull FROM pg_attribute "
        "JOIN pg_class ON pg_class.oid = attrelid WHERE attnum > 0 AND NOT attisdropped "
        "AND relnamespace = 'sqlrs'::regnamespace AND relkind IN ('r', 'i', 'v') ORDER BY 1, 2"
    )


def refuses(desk: Desk, name: str = "asked") -> None:
    """A clear error before anything is charged, whatever was asked, repeats included."""
    before = desk.spent(), desk.run(JOURNAL)
    for epsilon in ("0.5", "0.125", "900"):
        with pytest.raises(errors.ObjectNotInPrerequisiteState, match=BY_ANOTHER) as error:
            desk.ask(epsilon, name=name)
        assert "sqlrs install" in (error.value.diag.message_hint or "")
    assert (desk.spent(), desk.run(JOURNAL)) == before


def test_an_older_schema_is_brought_up_with_all_that_is_spent(desk: Desk) -> None:
    version_2(desk)
    version_2(desk, "other")
    first = desk.ask("0.5")
    with desk.session("ada", autocommit=False) as analyst:
        ask(analyst, "0.25")
        analyst.rollback()  # spent, and in no journal
    with pytest.raises(errors.ConfigurationLimitExceeded):
        desk.ask("1.5")
    spent = {"ada": Decimal("0.75"), "data": Decimal("0.75")}
    before = desk.run(JOURNAL)
    assert (desk.spent(), len(before)) == (spent, 1)
    with desk.session("ada") as analyst:
        assert ask(analyst, "0.5", "other") == first
        reinstall(desk)
        assert recorded(desk) == [(len(MIGRATIONS), edition())]
        assert (desk.spent(), desk.run(JOURNAL)) == (spent, before)
        assert {b.name: b.cap for b in balances(desk.url)} == {"ada": 2, "data": 3}
        assert desk.ask("0.5") == first
        assert desk.spent() == spent
        # Also in a session that has called it before.
        with pytest.raises(errors.ObjectNotInPrerequisiteState, match=BY_ANOTHER):
            ask(analyst, "0.5", "other")
    refuses(desk, "other")
    with pytest.raises(errors.ConfigurationLimitExceeded):
        desk.ask("1.5")
    editions = {one.name: one.edition for one in installed(desk.url)}
    assert editions == {"asked": edition(), "other": ""}
    reinstall(desk, "other")
    assert desk.ask("0.5", name="other") == first
    desk.ask("1.25")
    assert desk.spent() == {"ada": 2, "data": 2}


def test_a_schema_of_the_first_version_is_brought_up(desk: Desk) -> None:
    """Its functions lack today's checks and stop; its journal learns what was spent."""
    version_2(desk)
    desk.ask("1")
    desk.ask("0.5")
    desk.run("DROP SCHEMA IF EXISTS kept CASCADE; CREATE SCHEMA kept")
    desk.run("CREATE TABLE kept.releases AS SELECT * FROM sqlrs.releases")
    version_1(desk)
    reinstall(desk, "another")
    old = "sqlrs.charge(text, text, text, numeric)"
    assert desk.run(f"SELECT to_regprocedure('{old}')") == [(None,)]
    spent = "SELECT ticket, analyst_spent, dataset_spent FROM {}.releases ORDER BY ticket"
    assert desk.run(spent.format("sqlrs")) == desk.run(spent.format("kept"))
    assert desk.run("SELECT sqlrs.recorded_units('analyst', 'ada')") == [(1_500_000_000_000,)]
    refuses(desk)
    desk.ask("0.25", name="another")
    assert desk.spent()["ada"] == Decimal("1.75")


@pytest.mark.parametrize("old", [version_1, version_2])
def test_an_upgraded_schema_is_like_a_new_one(desk: Desk, workshop: Desk, old: object) -> None:
    assert callable(old)
    old(desk)
    reinstall(desk)
    assert columns(desk) == columns(workshop)


def test_functions_from_before_are_listed_before_the_upgrade(desk: Desk) -> None:
    version_2(desk)
    assert [(one.name, one.edition) for one in installed(desk.url)] == [("asked", None)]
    assert {b.name: b.cap for b in balances(desk.url)} == {"ada": 2, "data": 3}


def test_a_newer_schema_is_refused(desk: Desk) -> None:
    desk.install(PATHS)
    first = desk.ask("0.5")
    desk.run(f"UPDATE sqlrs.version SET version = {NEXT}")
    before = columns(desk), recorded(desk), desk.run("SELECT * FROM sqlrs.queries")
    told = f"has version {NEXT}, and this sqlrs installs version {NEXT - 1}"
    with pytest.raises(UsageError, match=told) as error:
        desk.install(PATHS, name="another", budget="1000")
    assert "upgrade sqlrs" in (error.value.hint or "")
    assert (columns(desk), recorded(desk), desk.run("SELECT * FROM sqlrs.queries")) == before
    assert {b.name: b.cap for b in balances(desk.url)} == {"ada": 100, "data": 1000}
    assert desk.ask("0.5") == first


def test_a_column_of_a_later_version(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What adding one takes: a file of a statement; and what older functions and code do then."""
    note = "-- Version 4.\nALTER TABLE sqlrs.releases ADD COLUMN note text NOT NULL DEFAULT 'row';"
    desk.install(PATHS)
    desk.install(PATHS, name="other")
    first = desk.ask("0.5")
    with monkeypatch.context() as newer_code:
        newer_code.setattr(render, "MIGRATIONS", (*MIGRATIONS, "note"))
        newer_code.setattr(render, "edition", lambda: "4-next")
        newer_code.setattr(
            render, "template", lambda name: note if "/note" in name else template(name)
        )
        reinstall(desk)
        reinstall(desk)
    assert recorded(desk) == [(NEXT, "4-next")]
    assert desk.run("SELECT DISTINCT note FROM sqlrs.releases") == [("row",)]
    assert desk.ask("0.5") == first
    assert desk.spent()["ada"] == Decimal("0.5")
    refuses(desk, "other")
    with pytest.raises(UsageError, match=f"has version {NEXT}"):
        reinstall(desk, "other")


def test_another_edition_of_the_same_version(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions that all queries share were replaced by those of another sqlrs."""
    desk.install(PATHS)
    desk.ask("0.5")
    with monkeypatch.context() as another:
        another.setattr(render, "edition", lambda: "another")
        reinstall(desk, "other")
    refuses(desk)
    reinstall(desk)
    desk.ask("0.25")
    refuses(desk, "other")


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE sqlrs.releases ADD COLUMN note text",
        "ALTER TABLE sqlrs.releases DROP COLUMN analyst_spent",
        "ALTER TABLE sqlrs.releases ALTER COLUMN answer DROP NOT NULL",
        "ALTER TABLE sqlrs.releases ALTER COLUMN answer TYPE double precision",
        "DROP TABLE sqlrs.queries",
        "CREATE TABLE sqlrs.version (version integer NOT NULL); "
        "ALTER TABLE sqlrs.version OWNER TO sqlrs_owner",
    ],
)
def test_tables_of_no_version_are_refused(desk: Desk, change: str) -> None:
    version_2(desk)
    desk.run(change)
    before = columns(desk)
    with pytest.raises(UsageError, match="of no version that sqlrs knows"):
        reinstall(desk)
    assert columns(desk) == before


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM sqlrs.version",
        "INSERT INTO sqlrs.version SELECT * FROM sqlrs.version",
        "ALTER TABLE sqlrs.version ALTER edition DROP NOT NULL; "
        "UPDATE sqlrs.version SET edition = NULL, version = 2",
    ],
)
def test_a_schema_that_does_not_say_its_version(desk: Desk, change: str) -> None:
    desk.install(PATHS)
    desk.ask("0.5")
    desk.run(change)
    refuses(desk)
    with pytest.raises(UsageError, match="of no version that sqlrs knows"):
        reinstall(desk)


def test_an_upgrade_that_breaks_off_leaves_the_version_before(desk: Desk) -> None:
    version_2(desk)
    first = desk.ask("0.5")
    before = columns(desk)
    script = install_script(desk.define(PATHS), Grants(roles=("ada",)))
    broken = script.replace("\nCOMMIT;", "\nSELECT 1 / 0;\nCOMMIT;")
    with (
        pytest.raises(errors.DivisionByZero),
        psycopg.connect(desk.url, autocommit=True) as connection,
    ):
        connection.execute(broken.encode())
    assert columns(desk) == before
    assert desk.ask("0.5") == first
    desk.ask("0.25")
    assert desk.spent()["ada"] == Decimal("0.75")


def test_installations_upgrade_an_older_schema_at_the_same_time(desk: Desk) -> None:
    """And an analyst who leaves a transaction open after a call holds nobody up."""
    version_2(desk)
    definitions = [desk.define(PATHS, name=f"asked_{i}") for i in range(4)]
    with desk.session("ada", autocommit=False) as analyst:
        first = ask(analyst, "0.5")
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda one: install(desk.url, one, Grants(roles=("ada",))), definitions))
        analyst.commit()
    assert recorded(desk) == [(len(MIGRATIONS), edition())]
    assert [desk.ask("0.5", name=f"asked_{i}") for i in range(4)] == [first] * 4
    assert desk.spent()["ada"] == Decimal("0.5")


def test_an_installation_in_the_middle_of_a_call(desk: Desk) -> None:
    """Once a call is charged, other functions must not finish what it began."""
    desk.install(PATHS)
    ((ratio,),) = desk.run("SELECT sqlrs.smoothness_ratio(0.5, 5)")
    desk.run(
        "CREATE OR REPLACE FUNCTION sqlrs.smoothness_ratio(epsilon numeric, shape integer) RETURNS "
        "numeric LANGUAGE plpgsql VOLATILE AS 'BEGIN UPDATE sqlrs.version SET edition = ''other''; "
        f"RETURN {ratio}; END'"
    )
    with pytest.raises(errors.SystemError, match="its budget stays spent"):
        desk.ask("0.5")
    assert desk.run(JOURNAL) == []
    assert desk.spent()["ada"] == Decimal("0.5")
