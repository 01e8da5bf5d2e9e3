"""Ids of units that are odd: NULL after the declaration, infinite, equal in several forms or types.

An id is what the engine's own equality says; what that cannot say alike everywhere is refused when
the unit is declared. Epsilon is so large, and what a unit contributes so little, that noise changes
an answer with a chance below 10**-6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import duckdb
import psycopg
import pytest

import sqlrs
from sqlrs.errors import UsageError
from sqlrs.settings import Settings

SMALL = Settings(max_contribution=16)
Run = Callable[[str], object]
World = tuple[Run, object]
MEET = "SELECT count(*) FROM visit a JOIN visit b ON a.day = b.day WHERE a.patient <> b.patient"
PERSONS = "SELECT count(DISTINCT patient) FROM visit"
TWICE = "SELECT count(*) FROM (SELECT patient FROM visit GROUP BY patient HAVING count(*) > 1) AS t"


@pytest.fixture(params=["duckdb", "postgres"])
def world(request: pytest.FixtureRequest) -> World:
    """How a statement is run, and what sqlrs connects to."""
    if request.param == "duckdb":
        connection = duckdb.connect()
        return connection.execute, connection
    url = request.getfixturevalue("postgres_db")
    server = psycopg.connect(url, autocommit=True)
    request.addfinalizer(server.close)
    return lambda statement: server.execute(statement.encode()), url


def asked(database: sqlrs.Database, *statements: str) -> list[int]:
    """The only number of each answer."""
    answers = [database.query(one, epsilon=1000) for one in statements]
    return [int(str(answer.rows[0][0])) for answer in answers]


def visits(run: Run, kind: str, ids: Sequence[str]) -> None:
    run(f"CREATE TABLE visit (patient {kind}, day integer)")
    for one in ids:
        run(f"INSERT INTO visit VALUES ({one}, 1)")


@pytest.mark.parametrize(
    ("kind", "ids", "persons", "twice", "meetings"),
    [
        ("date", ["'2024-01-01'", "'infinity'", "'-infinity'", "'infinity'"], 3, 1, 10),
        ("timestamp", ["'2024-01-01'", "'infinity'", "'infinity'"], 2, 1, 4),
        ("bigint", ["9223372036854775807", "-9223372036854775808", "9223372036854775806"], 3, 0, 6),
        ("varchar", ["'a'", "'A'", "'a '", "''", "'1'", "'01'"], 6, 0, 30),
        (
            "uuid",
            [
                "'00000000-0000-0000-0000-00000000000a'",
                "'00000000-0000-0000-0000-00000000000A'",
                "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
            ],
            2,
            1,
            4,
        ),
    ],
)
def test_an_id_is_what_the_engine_calls_equal(
    world: World, kind: str, ids: list[str], persons: int, twice: int, meetings: int
) -> None:
    run, data = world
    visits(run, kind, [*ids, "NULL", "NULL"])
    with sqlrs.connect(data, unit="visit.patient", settings=SMALL) as database:
        assert asked(database, PERSONS, TWICE, MEET) == [persons, twice, meetings]
        assert asked(database, "SELECT count(*) FROM visit") == [len(ids)]


@pytest.mark.parametrize(
    "kind",
    ["double precision", "real", "timestamptz", "boolean", "interval", "time", "bytea", "bit"],
)
def test_ids_whose_equality_is_doubtful_are_refused(world: World, kind: str) -> None:
    """NaN, -0.0, a month that is 30 days, a zone: none of them names a unit."""
    run, data = world
    visits(run, kind, [])
    with pytest.raises(UsageError, match="cannot hold ids of units"):
        sqlrs.connect(data, unit="visit.patient")


def test_decimals_name_units_only_without_nan(world: World) -> None:
    """PostgreSQL's numeric has NaN and 1.0 beside 1.00; DuckDB's decimal has neither."""
    run, data = world
    visits(run, "decimal(10, 2)", ["1.0", "1.00", "2"])
    if isinstance(data, str):
        with pytest.raises(UsageError, match="cannot hold ids of units"):
            sqlrs.connect(data, unit="visit.patient")
        return
    with sqlrs.connect(data, unit="visit.patient", settings=SMALL) as database:
        assert asked(database, PERSONS, TWICE, MEET) == [2, 1, 4]


def test_rows_that_lose_their_owner_later_take_part_in_nothing(world: World) -> None:
    run, data = world
    run("CREATE TABLE patient (id integer PRIMARY KEY)")
    run("INSERT INTO patient VALUES (1), (2)")
    visits(run, "integer", ["1", "2", "2"])
    said = {"visit": "patient"}
    with sqlrs.connect(data, unit="patient.id", owners=said, settings=SMALL) as database:
        run("INSERT INTO visit VALUES (NULL, 1), (NULL, 1), (NULL, NULL)")
        assert asked(
            database,
            "SELECT count(*) FROM visit",
            "SELECT count(*) FROM visit a JOIN visit b ON a.day = b.day",
            "SELECT count(*) FROM visit a LEFT JOIN visit b ON a.patient = b.patient AND b.day > 1",
            "SELECT count(*) FROM patient p WHERE p.id NOT IN (SELECT patient FROM visit)",
            PERSONS,
        ) == [3, 9, 3, 0, 2]


def test_a_column_that_may_be_null_later_is_a_change_of_the_schema(world: World) -> None:
    run, data = world
    run("CREATE TABLE visit (patient integer NOT NULL, day integer)")
    with sqlrs.connect(data, unit="visit.patient") as database:
        run("ALTER TABLE visit ALTER patient DROP NOT NULL")
        run("INSERT INTO visit VALUES (NULL, 1)")
        with pytest.raises(UsageError, match="has changed"):
            database.query("SELECT count(*) FROM visit", epsilon=1)


def accounts(run: Run, key: str, kind: str, held: Sequence[str]) -> None:
    """Two accounts of one customer, one of nobody; orders that name accounts."""
    run(f"CREATE TABLE account (no {key} PRIMARY KEY, customer integer)")
    run("INSERT INTO account VALUES ('1', 7), ('2', 7), ('3', NULL)")
    run(f"CREATE TABLE orders (account {kind}, day integer)")
    for one in held:
        run(f"INSERT INTO orders VALUES ({one}, 1)")


LINKED = {"orders": ("account", "account")}


@pytest.mark.parametrize(
    ("key", "kind"), [("integer", "bigint"), ("bigint", "smallint"), ("smallint", "integer")]
)
def test_a_link_may_join_whole_numbers_of_any_width(world: World, key: str, kind: str) -> None:
    run, data = world
    accounts(run, key, kind, ["1", "1", "2", "3", "30000", "NULL"])
    with sqlrs.connect(data, unit="account.customer", owners=LINKED, settings=SMALL) as found:
        assert asked(
            found,
            "SELECT count(*) FROM orders",
            "SELECT count(*) FROM orders a JOIN orders b ON a.day = b.day",
        ) == [3, 9]


@pytest.mark.parametrize("kind", ["decimal(10, 0)", "varchar", "double precision", "real"])
def test_a_link_does_not_join_other_types(world: World, kind: str) -> None:
    """'01' = 1, and 2^53 + 1 = 2^53 as floating point: a row would have several owners."""
    run, data = world
    accounts(run, "bigint", kind, [])
    with pytest.raises(UsageError, match="does not compare with"):
        sqlrs.connect(data, unit="account.customer", owners=LINKED)


def test_a_key_under_a_collation_leads_to_one_owner(world: World) -> None:
    """DuckDB keeps 'a' and 'A' apart in a key and joins them: no key. PostgreSQL does neither."""
    run, data = world
    collation = "nocase"
    if isinstance(data, str):
        collation = "ci"
        how = "provider = icu, locale = 'und-u-ks-level2', deterministic = false"
        run(f"CREATE COLLATION ci ({how})")
    run(f"CREATE TABLE account (no varchar COLLATE {collation} PRIMARY KEY, customer integer)")
    run("INSERT INTO account VALUES ('a', 1)")
    run(f"CREATE TABLE orders (account varchar COLLATE {collation}, day integer)")
    run("INSERT INTO orders VALUES ('a', 1), ('A', 1)")
    if not isinstance(data, str):
        run("INSERT INTO account VALUES ('A', 2)")
        with pytest.raises(UsageError, match="several owners"):
            sqlrs.connect(data, unit="account.customer", owners=LINKED)
        return
    with sqlrs.connect(data, unit="account.customer", owners=LINKED, settings=SMALL) as found:
        assert asked(found, "SELECT count(*) FROM orders") == [2]
    run("ALTER TABLE orders ALTER account TYPE varchar")
    with pytest.raises(UsageError, match="does not compare with"):
        sqlrs.connect(data, unit="account.customer", owners=LINKED)
