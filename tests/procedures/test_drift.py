"""A table that changed after the installation is not asked by the old bound, and costs nothing."""

from __future__ import annotations

import threading
import time
from decimal import Decimal

import psycopg
import pytest
from psycopg import errors

from sqlrs.connecting import connect
from sqlrs.procedures import Definition, Grants
from sqlrs.procedures.install import install
from tests.procedures.desk import Desk

PATHS = "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src"
CHANGES = {
    "the key dropped": "ALTER TABLE edge DROP CONSTRAINT edge_pkey",
    "a wider key": "ALTER TABLE edge DROP CONSTRAINT edge_pkey, ADD kind int DEFAULT 1, "
    "ADD PRIMARY KEY (src, dst, kind)",
    "a key that may wait": "ALTER TABLE edge DROP CONSTRAINT edge_pkey, "
    "ADD CONSTRAINT edge_pkey PRIMARY KEY (src, dst) DEFERRABLE",
    "a partial key": "ALTER TABLE edge DROP CONSTRAINT edge_pkey; ALTER TABLE edge "
    "ALTER src SET NOT NULL, ALTER dst SET NOT NULL; "
    "CREATE UNIQUE INDEX ON edge (src, dst) WHERE src > 0",
    "NULL allowed": "ALTER TABLE edge DROP CONSTRAINT edge_pkey, ADD UNIQUE (src, dst); "
    "ALTER TABLE edge ALTER src DROP NOT NULL",
    "another type": "ALTER TABLE edge ALTER dst TYPE numeric",
    "a child": "CREATE TABLE more () INHERITS (edge)",
    "a column gone": "ALTER TABLE edge RENAME src TO source",
    "another name": "ALTER TABLE edge RENAME TO edges",
    "another schema": "CREATE SCHEMA away; ALTER TABLE edge SET SCHEMA away",
    "a view instead": "ALTER TABLE edge RENAME TO edges; CREATE VIEW edge AS SELECT * FROM edges; "
    "GRANT SELECT ON edge TO sqlrs_owner",
    "made anew": "DROP TABLE edge; CREATE TABLE edge (src int, dst int, PRIMARY KEY (src, dst))",
    "made anew without a key": "DROP TABLE edge; CREATE TABLE edge (src int NOT NULL, "
    "dst int NOT NULL); GRANT SELECT ON edge TO sqlrs_owner",
}


def refuses(connection: psycopg.Connection[tuple[object, ...]], what: str) -> None:
    with (
        pytest.raises(errors.ObjectNotInPrerequisiteState, match=what) as error,
        connection.transaction(),
    ):
        connection.execute("SELECT * FROM sqlrs.asked(0.5)")
    assert "has changed since the function was installed" in str(error.value)
    assert "sqlrs install" in (error.value.diag.message_hint or "")


def test_a_changed_table_is_refused_before_the_charge(desk: Desk) -> None:
    """Each change in a transaction that is rolled back, asked inside it."""
    desk.install(PATHS)
    with desk.session(autocommit=False) as owner:
        owner.execute("SELECT sqlrs.grant_budget('analyst', 'postgres', 100)")
        owner.commit()
        for change in CHANGES.values():
            owner.execute(change.encode())
            refuses(owner, r"table public\.edge")
            owner.rollback()
        owner.execute("SELECT * FROM sqlrs.asked(0.25)")  # nothing has changed: it answers
        owner.rollback()
    assert desk.spent()["data"] == desk.spent()["postgres"] == Decimal("0.25")


def test_another_collation_is_another_type(desk: Desk) -> None:
    desk.run("CREATE TABLE word (text text NOT NULL)")
    desk.install("SELECT count(*) FROM word a JOIN word b ON a.text = b.text")
    desk.run('ALTER TABLE word ALTER text TYPE text COLLATE "POSIX"')
    with desk.session("ada") as analyst:
        refuses(analyst, r"table public\.word")


def test_what_the_query_does_not_rely_on_may_change(desk: Desk) -> None:
    desk.install(PATHS, repeats=False)
    for change in (
        "ALTER TABLE edge ADD weight numeric",
        "CREATE UNIQUE INDEX ON edge (dst, src)",
        "ALTER TABLE edge DROP COLUMN weight",
        "CREATE INDEX ON edge (dst)",
        "INSERT INTO edge VALUES (100, 101)",
    ):
        desk.run(change)
        desk.ask("0.5")
    desk.run("DROP TABLE edge; CREATE TABLE edge (src int, dst int, PRIMARY KEY (src, dst)); "
             "GRANT SELECT ON edge TO sqlrs_owner")  # fmt: skip
    desk.ask("0.5")  # another table of the same name and the same facts: the same bound holds


def test_a_changed_view_is_refused(desk: Desk) -> None:
    desk.run("CREATE VIEW inner_view AS SELECT src, dst FROM edge WHERE src <> dst")
    desk.run("CREATE VIEW outer_view AS SELECT src, dst FROM inner_view WHERE src < 100")
    desk.install("SELECT count(*) FROM outer_view WHERE src > 1", repeats=False)
    desk.ask("0.5")
    desk.run("CREATE OR REPLACE VIEW inner_view AS SELECT src, dst FROM edge")
    with desk.session("ada") as analyst:
        refuses(analyst, r"view public\.inner_view")
    desk.run("DROP VIEW outer_view; DROP VIEW inner_view")
    with desk.session("ada") as analyst:
        refuses(analyst, r"view public\.outer_view")


def test_a_promised_key_is_not_looked_for(desk: Desk) -> None:
    desk.run("CREATE TABLE trip (who int, at int)")
    keys = {"trip": [["who", "at"]]}
    with connect(desk.url, keys=keys) as database:
        query = "SELECT count(*) FROM trip a JOIN trip b ON a.who = b.who"
        definition = Definition.of(query, database.catalog, name="asked", declared_keys=keys)
    grants = Grants(roles=(desk.analyst("ada"),), budget=Decimal(9), dataset_budget=Decimal(9))
    install(desk.url, definition, grants)
    desk.ask("1")
    desk.run("ALTER TABLE trip ALTER who TYPE bigint")
    with desk.session("ada") as analyst:
        refuses(analyst, r"table public\.trip")


def test_a_change_between_the_check_and_the_measurement_gives_no_answer(desk: Desk) -> None:
    """The owner adds a child while the call waits for its charge: the statement itself sees it."""
    desk.install(PATHS, repeats=False)
    outcome: list[Exception] = []

    def call() -> None:
        try:
            desk.ask("0.5")
        except psycopg.Error as error:
            outcome.append(error)

    with desk.session(autocommit=False) as owner:
        owner.execute("SELECT 1 FROM sqlrs.budgets FOR UPDATE")
        caller = threading.Thread(target=call)
        caller.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while desk.run(waiting) == [(0,)] and caller.is_alive():
            time.sleep(0.01)
        desk.run("CREATE TABLE more () INHERITS (edge)")
        desk.run("INSERT INTO more SELECT 1, 2 FROM generate_series(1, 1000)")
        owner.rollback()
        caller.join(60)
    assert [type(error) for error in outcome] == [errors.SystemError]
    assert desk.run("SELECT count(*) FROM sqlrs.releases") == [(0,)]
