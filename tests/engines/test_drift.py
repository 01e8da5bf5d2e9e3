"""A schema that has changed since the start is refused in the snapshot that would be counted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal

import duckdb
import psycopg
import pytest

import sqlrs
from sqlrs.database import Database
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.ledger import MemoryLedger
from sqlrs.measuring.drift import unchanged

JOIN = "SELECT count(*) FROM person AS p JOIN visit AS v ON p.id = v.person"
SEEN = "SELECT count(*) FROM grown_up AS p JOIN visit AS v ON p.id = v.person"
REGIONS = "SELECT count(*) FROM region"

SETUP = (
    "CREATE TABLE person (id INTEGER PRIMARY KEY, age INTEGER NOT NULL)",
    "CREATE TABLE visit (person INTEGER NOT NULL, day INTEGER NOT NULL)",
    "CREATE TABLE region (name INTEGER NOT NULL)",
    "CREATE TABLE secret (name INTEGER NOT NULL)",
    "INSERT INTO person VALUES (1, 20), (2, 70)",
    "INSERT INTO visit VALUES (1, 1), (1, 2), (2, 1)",
    "INSERT INTO region VALUES (1), (2)",
    "INSERT INTO secret VALUES (1), (2), (3)",
    "CREATE VIEW grown_up AS SELECT id, age FROM person WHERE age >= 18",
)


@dataclass
class World:
    """A database under sqlrs, and the owner's own connection to it."""

    database: Database
    ledger: MemoryLedger
    run: Callable[[str], object]
    kind: str

    def refuses(self, sql: str) -> UsageError:
        spent = self.ledger.spent()
        with pytest.raises(UsageError) as caught:
            self.database.count(sql, "1")
        assert caught.value.code == "schema_changed"
        assert caught.value.sqlstate == "55000"
        assert self.ledger.spent() == spent
        return caught.value

    def answers(self, sql: str) -> None:
        self.database.count(sql, "1", analyst=f"analyst {len(self.ledger.history())}")


@pytest.fixture(params=["duckdb", "postgres"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    ledger = MemoryLedger()
    if request.param == "duckdb":
        connection = duckdb.connect()
        for statement in SETUP:
            connection.execute(statement)
        with sqlrs.connect(connection, public=["region"], ledger=ledger) as database:
            yield World(database, ledger, connection.execute, "duckdb")
        connection.close()
        return
    url = request.getfixturevalue("postgres_db")
    with psycopg.connect(url, autocommit=True) as owner:
        for statement in SETUP:
            owner.execute(statement.encode())
        with sqlrs.connect(url, public=["region"], ledger=ledger) as database:
            yield World(database, ledger, lambda sql: owner.execute(sql.encode()), "postgres")


def test_what_the_query_does_not_rely_on_may_change(world: World) -> None:
    world.answers(JOIN)
    world.run("CREATE TABLE another (x INTEGER)")
    world.run("ALTER TABLE secret ADD COLUMN more INTEGER")
    world.run("CREATE VIEW other AS SELECT id FROM person")
    world.run("INSERT INTO visit VALUES (2, 2)")
    world.answers(JOIN)
    world.answers(SEEN)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE visit ADD COLUMN more INTEGER",
        "ALTER TABLE visit ALTER COLUMN day TYPE BIGINT",
        "ALTER TABLE visit ALTER COLUMN day DROP NOT NULL",
        "ALTER TABLE visit RENAME COLUMN person TO patient",
        "ALTER TABLE visit RENAME TO visits",
        "DROP TABLE visit",
    ],
)
def test_a_changed_table_is_refused(world: World, change: str) -> None:
    world.run(change)
    assert "visit" in world.refuses(JOIN).message
    world.answers(REGIONS)


def test_a_dropped_key_is_refused(world: World) -> None:
    world.answers(JOIN)
    if world.kind == "duckdb":
        # DuckDB cannot drop a key: the table is made anew without it.
        world.run("DROP VIEW grown_up")
        world.run("CREATE OR REPLACE TABLE person (id INTEGER NOT NULL, age INTEGER NOT NULL)")
    else:
        world.run("ALTER TABLE person DROP CONSTRAINT person_pkey")
    assert "person" in world.refuses(JOIN).message


def test_a_view_with_another_text_is_refused(world: World) -> None:
    world.answers(SEEN)
    world.run("CREATE OR REPLACE VIEW grown_up AS SELECT id, age FROM person WHERE age >= 21")
    assert "view" in world.refuses(SEEN).message
    world.answers(JOIN)


def test_a_view_in_the_place_of_a_table_is_refused(world: World) -> None:
    world.answers(REGIONS)
    world.run("DROP TABLE region")
    world.run("CREATE VIEW region AS SELECT name FROM secret")
    world.refuses(REGIONS)


def test_public_is_the_table_and_not_its_name(world: World) -> None:
    world.answers(REGIONS)
    world.run("DROP TABLE region")
    world.run("ALTER TABLE secret RENAME TO region")
    world.refuses(REGIONS)


def test_a_declared_key_is_of_the_table_that_was_checked(world: World) -> None:
    target = world.database.engine
    catalog = target.catalog().declare(keys={"visit": [["person", "day"]]})
    world.database.catalog = catalog
    world.answers(JOIN)
    world.run("DROP TABLE visit")
    world.run("CREATE TABLE visit (person INTEGER NOT NULL, day INTEGER NOT NULL)")
    world.refuses(JOIN)


def test_diagnostics_look_at_the_schema_too(world: World) -> None:
    world.database.sensitivity(JOIN)
    world.run("ALTER TABLE visit ADD COLUMN more INTEGER")
    with pytest.raises(UsageError, match="visit has changed"):
        world.database.sensitivity(JOIN)


@pytest.fixture
def parents(postgres_db: str) -> Iterator[World]:
    """A table with a key, a partitioned one, and tables full of rows that can be attached."""
    with psycopg.connect(postgres_db, autocommit=True) as owner:
        for statement in (
            "CREATE TABLE parent (id integer PRIMARY KEY)",
            "INSERT INTO parent VALUES (1)",
            "CREATE TABLE child (id integer NOT NULL)",
            "INSERT INTO child SELECT 1 FROM generate_series(1, 2000)",
            "CREATE TABLE month (id integer PRIMARY KEY) PARTITION BY RANGE (id)",
            "CREATE TABLE january PARTITION OF month FOR VALUES FROM (0) TO (10)",
            "CREATE TABLE february (id integer PRIMARY KEY)",
            "INSERT INTO month VALUES (1)",
            "INSERT INTO february VALUES (11), (12)",
        ):
            owner.execute(statement.encode())
        ledger = MemoryLedger()
        with sqlrs.connect(postgres_db, ledger=ledger) as database:
            yield World(database, ledger, lambda sql: owner.execute(sql.encode()), "postgres")


PARENTS = "SELECT count(*) FROM parent a JOIN parent b ON a.id = b.id"
ATTACH_CHILD = "ALTER TABLE child INHERIT parent"
ATTACH_MONTH = "ALTER TABLE month ATTACH PARTITION february FOR VALUES FROM (10) TO (20)"


def test_an_attached_child_table_is_refused(parents: World) -> None:
    parents.answers(PARENTS)
    parents.run(ATTACH_CHILD)
    parents.refuses(PARENTS)


def test_a_new_partition_of_a_private_table_is_fine_and_of_a_public_one_not(
    parents: World,
) -> None:
    months = "SELECT count(*) FROM month"
    public = parents.database.engine.catalog().declare(public=["month"])
    parents.answers(months)
    parents.run(ATTACH_MONTH)
    parents.answers(months)
    parents.database.catalog = public
    parents.refuses(months)


@pytest.mark.parametrize(
    ("sql", "attach"), [("SELECT count(*) FROM month", ATTACH_MONTH), (PARENTS, ATTACH_CHILD)]
)
def test_a_table_attached_during_the_work_ends_it(parents: World, sql: str, attach: str) -> None:
    """The server shows the rows of a child in a snapshot that began before it was one."""
    attached = threading.Event()

    def attach_at_the_first_statement(position: int, total: int, name: str) -> None:
        if not attached.is_set():
            attached.set()
            parents.run(attach)

    with pytest.raises(EngineFailed) as caught:
        parents.database.count(sql, "1", progress=attach_at_the_first_statement)
    assert attached.is_set()
    assert caught.value.message == "the release could not be completed; its budget stays spent"
    assert parents.ledger.spent() == Decimal(1)


def test_a_declared_key_is_of_the_columns_that_were_checked(parents: World) -> None:
    catalog = parents.database.engine.catalog().declare(keys={"child": [["id"]]})
    parents.database.catalog = catalog
    children = "SELECT count(*) FROM child a JOIN child b ON a.id = b.id"
    parents.answers(children)
    parents.run("ALTER TABLE child DROP id")
    parents.run("ALTER TABLE child ADD id integer NOT NULL DEFAULT 1")
    parents.refuses(children)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE parent RENAME id TO before; ALTER TABLE parent RENAME other TO id",
        "ALTER TABLE parent DROP id; ALTER TABLE parent ADD id integer NOT NULL DEFAULT 1",
        "ALTER TABLE parent ALTER id TYPE oid",
    ],
    ids=["renamed", "new", "retyped"],
)
def test_a_column_that_becomes_another_one_during_the_work_ends_it(
    parents: World, change: str
) -> None:
    """The server reads columns by the names that they have now."""
    parents.run("ALTER TABLE parent ADD other integer NOT NULL DEFAULT 1")
    engine = parents.database.engine
    catalog = engine.catalog()
    tables = [catalog.named("parent")]
    with (
        pytest.raises(EngineFailed, match="changed during"),
        unchanged(tables, engine, catalog, lambda _: True),
    ):
        parents.run(change)
    catalog = engine.catalog()
    with unchanged([catalog.named("parent")], engine, catalog, lambda _: True):
        parents.run("ALTER TABLE parent ADD another integer")


def test_a_given_connection_is_free_for_the_second_look(postgres_db: str) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id integer PRIMARY KEY)")
        with closing(sqlrs.connect(connection)) as database:
            assert database.count("SELECT count(*) FROM t", "1").epsilon == 1
