"""What CHECK constraints, enumerations and foreign keys say of values, and what they do not.

The independent oracle is the engine: it takes the values of a domain and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal

import duckdb
import psycopg
import pytest

import sqlrs
from sqlrs.catalog import Bounds, Catalog, Column, Listed, Range, Referred
from sqlrs.errors import UsageError
from tests.support.postgres_server import PostgresServer

Make = Callable[[str], Catalog]

DAY = "d between '2024-01-01' and date '2024-12-31'"
DECEMBER = (date(2024, 12, 1), date(2024, 12, 31))

# (columns of table t with their constraints, the column asked about, what is known of it)
SAID = [
    ("c integer CHECK (c IN (1, 2, -3))", "c", (1, 2, -3)),
    ("c integer CHECK (c IN (2, 2, 1))", "c", (2, 1)),
    ("c integer CHECK (c = 5)", "c", (5,)),
    ("c integer CHECK (5 = c)", "c", (5,)),
    ("c integer CHECK (c IN (1, 2.5, 3))", "c", (1, 3)),
    ("c smallint CHECK (c IN (1, 40000))", "c", (1,)),
    ("c integer CHECK (c IN (1, 2, 3)), CHECK (c IN (3, 2, 7))", "c", (2, 3)),
    ("c integer CHECK (c IN (1, 2, 3) AND c > 1)", "c", (2, 3)),
    ("c text CHECK (c IN ('A', 'B''x', '', ' ', '%', 'é\"'))", "c",
     ("A", "B'x", "", " ", "%", 'é"')),
    ("c varchar(3) CHECK (c IN ('A', 'B'))", "c", ("A", "B")),
    ("c varchar CHECK (c = 'A')", "c", ("A",)),
    ("c text CHECK (c IN ('A', 'B') AND length(c) < 9)", "c", ("A", "B")),
    ("c text, b integer, CHECK (c IN ('A', 'B') AND b > 0)", "c", ("A", "B")),
    ("c numeric(10, 2) CHECK (c IN (1.5, -2))", "c", (Decimal("1.5"), Decimal(-2))),
    ("c date CHECK (c IN (DATE '2024-01-01', DATE '2024-02-29'))", "c",
     (date(2024, 1, 1), date(2024, 2, 29))),
    ('"Odd ""name" integer CHECK ("Odd ""name" IN (1, 2))', 'Odd "name', (1, 2)),
    ('"select" integer CHECK ("select" IN (1, 2))', "select", (1, 2)),
    ("c integer CHECK (c BETWEEN 0 AND 9)", "c", [0, 9]),
    ("c integer CHECK (c BETWEEN -9 AND -1)", "c", [-9, -1]),
    ("c integer CHECK (c >= 0 AND c <= 9)", "c", [0, 9]),
    ("c integer CHECK (c > 0 AND c < 9)", "c", [1, 8]),
    ("c bigint CHECK (0 < c AND 9 >= c)", "c", [1, 9]),
    ("c integer CHECK (c > 0), CHECK (c <= 10)", "c", [1, 10]),
    ("c integer CHECK (c > 0), CHECK (c <= 10), CHECK (c BETWEEN 5 AND 20)", "c", [5, 10]),
    ("c integer CHECK (c > 0.5 AND c < 3.5)", "c", [1, 3]),
    ("c integer CHECK (c >= 0.5 AND c <= 3.5)", "c", [1, 3]),
    ("c bigint CHECK (c BETWEEN -9223372036854775807 AND 9223372036854775807)", "c",
     [-(2**63) + 1, 2**63 - 1]),
    ("c integer, b integer, CHECK (c BETWEEN 1 AND 2 AND b > c)", "c", [1, 2]),
    ("c date CHECK (c BETWEEN '2024-12-01' AND DATE '2024-12-31')", "c", [*DECEMBER]),
    ("c date CHECK (c > DATE '2024-11-30' AND c < DATE '2025-01-01')", "c", [*DECEMBER]),
    # Nothing is known: another form, or one that admits more than it seems to.
    ("c integer CHECK (c >= 0)", "c", None),
    ("c integer CHECK (c <> 1)", "c", None),
    ("c integer CHECK (c NOT IN (1, 2))", "c", None),
    ("c integer CHECK (NOT c IN (1, 2))", "c", None),
    ("c integer CHECK (c NOT BETWEEN 1 AND 2)", "c", None),
    ("c integer CHECK (c IN (1, NULL))", "c", None),
    ("c integer CHECK (c = NULL)", "c", None),
    ("c integer CHECK (c BETWEEN 0 AND NULL)", "c", None),
    ("c integer CHECK (c IN (1, 2) OR true)", "c", None),
    ("c integer CHECK (c IN (1, 2) OR c = 3)", "c", None),
    ("c integer CHECK ((c IN (1, 2)) = false)", "c", None),
    ("c integer CHECK ((c IN (1, 2)) IS NOT NULL)", "c", None),
    ("c integer CHECK (coalesce(c IN (1, 2), true))", "c", None),
    ("c integer CHECK (abs(c) IN (1, 2))", "c", None),
    ("c integer CHECK (-c BETWEEN 1 AND 2)", "c", None),
    ("c integer CHECK (c + 1 BETWEEN 1 AND 2)", "c", None),
    ("c integer CHECK (c IN (1, 1 + 1))", "c", None),
    ("c integer CHECK (c % 2 = 1)", "c", None),
    ("c integer, b integer, CHECK (c IN (1, b))", "c", None),
    ("c integer, b integer, CHECK (c BETWEEN 1 AND b)", "c", None),
    ("c integer, b integer, CHECK (b IN (1, 2))", "c", None),
    ("c integer CHECK (c BETWEEN 9 AND 0)", "c", None),
    ("c bigint CHECK (CAST(c AS double precision) IN (1, 2))", "c", None),
    ("c bigint CHECK (CAST(c AS real) BETWEEN 1 AND 2)", "c", None),
    ("c integer CHECK (CAST(c AS text) IN ('1', '2'))", "c", None),
    ("c numeric(10, 2) CHECK (CAST(c AS integer) IN (1, 2))", "c", None),
    ("c numeric(10, 2) CHECK (CAST(c AS numeric(10, 0)) IN (1, 2))", "c", None),
    ("c text CHECK (c BETWEEN 'A' AND 'C')", "c", None),
    ("c text CHECK (lower(c) IN ('a', 'b'))", "c", None),
    ("c text CHECK (c LIKE 'a')", "c", None),
    ("c text CHECK (c || 'x' = 'ax')", "c", None),
    ("c date CHECK (c BETWEEN '-infinity' AND '2024-12-31')", "c", None),
    ("c date CHECK (c <= 'infinity' AND c >= '2024-12-31')", "c", None),
    ("c date CHECK (c >= TIMESTAMP '2024-12-31 12:00' AND c <= DATE '2025-12-31')", "c", None),
    ("c double precision CHECK (c IN (0.5, 1))", "c", None),
    ("c timestamp CHECK (c BETWEEN '2024-01-01' AND '2024-12-31')", "c", None),
    ("c boolean CHECK (c = true)", "c", None),
]  # fmt: skip

BOUNDED = [
    ("c integer CHECK (c BETWEEN 0 AND 9)", ("0", "9")),
    ("c integer CHECK (c > 0 AND c < 9)", ("1", "8")),
    ("c integer CHECK (c IN (5, -1, 3))", ("-1", "5")),
    ("c numeric(10, 2) CHECK (c >= 0 AND c <= 5000.55)", ("0", "5000.55")),
    ("c numeric(10, 2) CHECK (c > -5.5 AND c < -1)", ("-5.5", "-1")),
    ("c numeric(10, 2) CHECK (c IN (1.5, 2))", ("1.5", "2")),
    ("c double precision CHECK (c BETWEEN 0.1 AND 1e3)", ("0.1", "1000")),
    ("c real CHECK (c BETWEEN -0.5 AND 0.5)", ("-0.5", "0.5")),
    ("c numeric(10, 2) CHECK (c >= 0)", None),
    ("c numeric(10, 2) CHECK (c <= 9)", None),
    ("c double precision CHECK (c >= 0)", None),
    ("c double precision CHECK (c BETWEEN 0 AND CAST('infinity' AS double precision))", None),
    ("c double precision CHECK (c BETWEEN 0 AND CAST('NaN' AS double precision))", None),
    ("c double precision CHECK (c BETWEEN 0 AND 1 OR c = 7)", None),
    ("c text CHECK (c IN ('1', '2'))", None),
    ("c date CHECK (c BETWEEN '2024-12-01' AND '2024-12-31')", None),
]


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Creates tables in a database that is empty otherwise, and reads its catalog."""
    if request.param == "duckdb":

        def in_duckdb(sql: str) -> Catalog:
            connection = duckdb.connect()
            connection.execute(sql)
            with sqlrs.connect(connection) as database:
                return database.catalog

        yield in_duckdb
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.database() as url, psycopg.connect(url, autocommit=True) as postgres:

        def in_postgres(sql: str) -> Catalog:
            postgres.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            postgres.execute(sql.encode())
            with sqlrs.connect(url) as database:
                return database.catalog

        yield in_postgres


def column_of(catalog: Catalog, name: str = "c", table: str = "t") -> Column:
    return catalog.named(table).column(name)


@pytest.mark.parametrize(("columns", "name", "known"), SAID, ids=[one[0] for one in SAID])
def test_a_check_says_which_values_there_are(
    make: Make, columns: str, name: str, known: tuple[object, ...] | list[object] | None
) -> None:
    found = column_of(make(f"CREATE TABLE t ({columns})"), name).domain
    if known is None:
        assert found is None
    elif isinstance(known, list):
        assert isinstance(found, Range)
        assert [found.low, found.high] == known
        assert type(found.low) is type(known[0])
        assert found.origin == f"CHECK of t.{name}"
    else:
        assert isinstance(found, Listed)
        assert found.values == known
        assert [type(value) for value in found.values] == [type(value) for value in known]
        assert found.origin == f"CHECK of t.{name}"


@pytest.mark.parametrize(("columns", "known"), BOUNDED, ids=[one[0] for one in BOUNDED])
def test_a_check_bounds_numbers(make: Make, columns: str, known: tuple[str, str] | None) -> None:
    found = column_of(make(f"CREATE TABLE t ({columns})")).bounds
    if known is None:
        assert found is None
        return
    assert found == Bounds(Decimal(known[0]), Decimal(known[1]), "CHECK of t.c")


def test_an_enumeration_lists_its_values(make: Make) -> None:
    catalog = make(
        "CREATE TYPE mood AS ENUM ('sad', 'o''k', 'Happy, ()');"
        "CREATE TABLE t (c mood, d mood CHECK (d IN ('sad', 'Happy, ()')), e mood NOT NULL)"
    )
    for name in ("c", "e"):
        found = column_of(catalog, name).domain
        assert isinstance(found, Listed)
        assert found.values == ("sad", "o'k", "Happy, ()")
        assert found.origin in ("type mood", "type ENUM")
    narrowed = column_of(catalog, "d").domain
    assert narrowed == Listed(("sad", "Happy, ()"), "CHECK of t.d")


def test_a_foreign_key_refers_to_its_column(make: Make) -> None:
    catalog = make(
        """
        CREATE TABLE ward (name text PRIMARY KEY, id integer UNIQUE, a integer, b integer,
          UNIQUE (a, b));
        CREATE TABLE t (
          c text REFERENCES ward (name),
          n integer REFERENCES ward (id),
          few integer REFERENCES ward (id) CHECK (few BETWEEN 1 AND 5),
          many integer REFERENCES ward (id) CHECK (many BETWEEN 1 AND 50000),
          listed text REFERENCES ward (name) CHECK (listed IN ('A', 'B')),
          a integer, b integer, FOREIGN KEY (a, b) REFERENCES ward (a, b))
        """
    )
    schema = catalog.named("ward").schema
    name = Referred((schema, "ward"), "name", "foreign key to ward.name")
    number = Referred((schema, "ward"), "id", "foreign key to ward.id")
    found = {column.name: column.domain for column in catalog.named("t").columns}
    assert (found["c"], found["n"]) == (name, number)
    # Few values need no other table; many are as many groups.
    assert found["few"] == Range(1, 5, "CHECK of t.few")
    assert found["many"] == number
    assert found["listed"] == Listed(("A", "B"), "CHECK of t.listed")
    assert found["a"] is None
    assert found["b"] is None
    assert column_of(catalog, "many").bounds == Bounds(
        Decimal(1), Decimal(50000), "CHECK of t.many"
    )


def test_the_engine_takes_the_values_of_a_domain_and_no_others() -> None:
    """The values as read are those that the engine itself lets in: each form against inserts."""
    numbers = range(-12, 13)
    for columns, name, known in SAID:
        connection = duckdb.connect()
        connection.execute(f"CREATE TABLE t ({columns})")
        kind = connection.sql("SELECT * FROM t").types[0]
        if name != "c" or str(kind) not in ("INTEGER", "SMALLINT", "BIGINT") or known is None:
            continue
        admitted = set()
        for number in numbers:
            try:
                connection.execute("INSERT INTO t (c) VALUES (?)", [number])
            except duckdb.ConstraintException:
                continue
            admitted.add(number)
        if isinstance(known, list):
            low, high = known
            assert isinstance(low, int)
            assert isinstance(high, int)
            known = tuple(number for number in numbers if low <= number <= high)
        assert admitted == set(known), columns


def test_names_of_duckdb_ignore_case() -> None:
    connection = duckdb.connect()
    connection.execute('CREATE TABLE "T" ("Ward" integer, CHECK (WARD IN (1, 2)))')
    connection.execute("CREATE TABLE p (ID integer PRIMARY KEY)")
    connection.execute("CREATE TABLE f (c integer REFERENCES P (id))")
    with sqlrs.connect(connection) as database:
        found = database.catalog
    assert column_of(found, "Ward", "T").domain == Listed((1, 2), "CHECK of T.Ward")
    target = Referred(("main", "p"), "ID", "foreign key to p.ID")
    assert column_of(found, "c", "f").domain == target


def test_a_collation_of_duckdb_leaves_nothing_known() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (c text COLLATE nocase CHECK (c IN ('a', 'b')))")
    with sqlrs.connect(connection) as database:
        assert column_of(database.catalog).domain is None


def test_a_text_of_duckdb_against_a_number_says_nothing() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (c integer CHECK (c IN ('1', '2')), d date, b bigint)")
    connection.execute("CREATE TABLE u (c bigint CHECK (c BETWEEN 0 AND 1e3))")
    with sqlrs.connect(connection) as database:
        assert column_of(database.catalog).domain is None
        # The numbers become doubles, which round.
        assert column_of(database.catalog, "c", "u").domain is None


def test_the_types_of_a_file_can_list_values(tmp_path: object) -> None:
    file = f"{tmp_path}/visit.csv"
    with open(file, "w", encoding="utf-8") as lines:
        lines.write("id,mood\n1,sad\n")
    types = {"visit": {"id": "BIGINT", "mood": "ENUM('sad', 'ok')"}}
    with sqlrs.connect(tables={"visit": file}, types=types) as database:
        found = column_of(database.catalog, "mood", "visit").domain
    assert found == Listed(("sad", "ok"), "type ENUM")


@pytest.fixture(scope="module")
def in_postgres(postgres_server: PostgresServer) -> Iterator[Make]:
    with postgres_server.database() as url, psycopg.connect(url, autocommit=True) as postgres:

        def run(sql: str) -> Catalog:
            postgres.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            postgres.execute(sql.encode())
            with sqlrs.connect(url) as database:
                return database.catalog

        yield run


@pytest.mark.parametrize(
    ("sql", "known"),
    [
        ("CREATE TABLE t (c char(3) CHECK (c IN ('a', 'b  ')))", ("a", "b")),
        ("CREATE TABLE t (c char(3) CHECK (c::text IN ('a', 'b')))", None),
        ("CREATE TABLE t (c integer CHECK (c = ANY (ARRAY[1, 2])))", (1, 2)),
        ("CREATE TABLE t (c bigint CHECK (c = ANY (ARRAY[1, 2])))", (1, 2)),
        ("CREATE TABLE t (c integer CHECK (c = ANY (ARRAY[1, NULL])))", None),
        ("CREATE TABLE t (c integer CHECK (c <> ANY (ARRAY[1, 2])))", None),
        ("CREATE TABLE t (c integer CHECK (c = ALL (ARRAY[1, 2])))", None),
        ("CREATE TABLE t (c integer CHECK (c = ANY ('{1,2}')))", None),
        ("CREATE TABLE t (c text CHECK (c = ANY (ARRAY['a', 'b']::varchar(1)[])))", None),
        ("CREATE TABLE t (c text COLLATE \"C\" CHECK (c IN ('a', 'b')))", ("a", "b")),
        ("CREATE TABLE t (c text CHECK (c COLLATE \"C\" IN ('a', 'b')))", None),
        ("CREATE TABLE t (c text CHECK (c IN ('a\\b', 'b')))", ("a\\b", "b")),
        ("CREATE TABLE t (c text CHECK (c ~ 'a'))", None),
        ("CREATE TABLE t (c text CHECK (CAST(c AS varchar(1)) IN ('a', 'b')))", None),
        ("CREATE TABLE t (c integer CHECK (c BETWEEN SYMMETRIC 3 AND 1))", None),
        ("CREATE TABLE t (c integer); ALTER TABLE t ADD CHECK (c IN (1, 2)) NOT VALID", None),
        ("CREATE TABLE t (c integer); ALTER TABLE t ADD CONSTRAINT v CHECK (c IN (1, 2)) NOT VALID;"
         "ALTER TABLE t VALIDATE CONSTRAINT v", (1, 2)),
        # Partitions and children: each row that the table shows must obey.
        ("CREATE TABLE t (c integer CHECK (c IN (1, 2))) PARTITION BY LIST (c);"
         "CREATE TABLE p PARTITION OF t FOR VALUES IN (1)", (1, 2)),
        ("CREATE TABLE t (c integer) PARTITION BY LIST (c);"
         "CREATE TABLE p PARTITION OF t (CHECK (c IN (1, 2))) DEFAULT", None),
        ("CREATE TABLE t (c integer CHECK (c IN (1, 2))); CREATE TABLE k () INHERITS (t);"
         "CREATE TABLE l () INHERITS (k)", (1, 2)),
        ("CREATE TABLE t (c integer CHECK (c IN (1, 2)) NO INHERIT);"
         "CREATE TABLE k () INHERITS (t)", None),
        ("CREATE TABLE t (c integer CHECK (c IN (1, 2)) NO INHERIT)", (1, 2)),
        ("CREATE TABLE t (c integer CONSTRAINT x CHECK (c IN (1, 2)) NO INHERIT);"
         "CREATE TABLE k (CONSTRAINT x CHECK (c IN (1, 2, 3))) INHERITS (t)", None),
        ("CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;"
         "CREATE FOREIGN TABLE t (c integer CHECK (c IN (1, 2))) SERVER s;"
         , None),
        # Types with constraints of their own.
        ("CREATE DOMAIN letter AS text CHECK (VALUE IN ('a', 'b'));"
         "CREATE TABLE t (c letter)", ("a", "b")),
        ("CREATE DOMAIN letter AS text CHECK (VALUE IN ('a', 'b'));"
         "CREATE DOMAIN first AS letter CHECK (VALUE <> 'b'); CREATE TABLE t (c first)",
         ("a", "b")),
        ("CREATE DOMAIN number AS integer; ALTER DOMAIN number ADD CHECK (VALUE IN (1)) NOT VALID;"
         "CREATE TABLE t (c number)", None),
        ("CREATE DOMAIN number AS integer CHECK (VALUE IN (1, 2));"
         'CREATE TABLE t (c number, "VALUE" integer, value integer CHECK (value IN (7)))', (1, 2)),
        ("CREATE TYPE mood AS ENUM ('a', 'b'); CREATE DOMAIN happy AS mood;"
         "CREATE TABLE t (c happy)", ("a", "b")),
        ('CREATE TYPE "Odd Mood" AS ENUM (\'a\', \'b\', \'c\');'
         'CREATE TABLE t (c "Odd Mood" CHECK (c IN (\'a\', \'b\')))', ("a", "b")),
        # An operator of somebody's own is not the type's.
        ("CREATE TYPE mood AS ENUM ('a', 'b');"
         "CREATE FUNCTION same(mood, mood) RETURNS boolean LANGUAGE sql AS 'SELECT true';"
         "CREATE OPERATOR public.= (LEFTARG = mood, RIGHTARG = mood, FUNCTION = same);"
         "CREATE TABLE t (c mood CHECK (c OPERATOR(public.=) 'a'))", ("a", "b")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_only_postgres_can_say(
    in_postgres: Make, sql: str, known: tuple[object, ...] | None
) -> None:
    if "FOREIGN DATA" in sql:
        sql = f"DROP FOREIGN DATA WRAPPER IF EXISTS w CASCADE; {sql}"
    found = column_of(in_postgres(sql)).domain
    assert (found.values if isinstance(found, Listed) else found) == known


@pytest.mark.parametrize(
    ("sql", "known"),
    [
        ("CREATE TABLE t (c integer); ALTER TABLE t ADD FOREIGN KEY (c) REFERENCES p NOT VALID",
         False),
        ("CREATE TABLE t (c integer REFERENCES p); CREATE TABLE k () INHERITS (t)", False),
        ("CREATE TABLE t (c integer REFERENCES p) PARTITION BY LIST (c);"
         "CREATE TABLE k PARTITION OF t DEFAULT", True),
        ("CREATE TABLE t (c bigint REFERENCES p)", True),
        ("CREATE TABLE n (id numeric PRIMARY KEY); CREATE TABLE t (c integer REFERENCES n)", False),
        ("CREATE TABLE q (c integer REFERENCES p); CREATE TABLE t (c integer)", False),
    ],
)  # fmt: skip
def test_foreign_keys_of_postgres(in_postgres: Make, sql: str, *, known: bool) -> None:
    found = column_of(in_postgres(f"CREATE TABLE p (id integer PRIMARY KEY); {sql}")).domain
    target = Referred(("public", "p"), "id", "foreign key to p.id")
    assert found == (target if known else None)


def test_a_referred_table_out_of_sight_says_nothing(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as url, psycopg.connect(url, autocommit=True) as postgres:
        postgres.execute(
            "CREATE TABLE whole (id integer PRIMARY KEY) PARTITION BY LIST (id);"
            "CREATE TABLE part PARTITION OF whole DEFAULT;"
            "CREATE TABLE t (c integer REFERENCES part, d integer REFERENCES whole)"
        )
        with sqlrs.connect(url) as database:
            # A partition is no table of its own.
            assert column_of(database.catalog).domain is None
            assert isinstance(column_of(database.catalog, "d").domain, Referred)


COUNT = "SELECT count(*) FROM t"


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE t DROP CONSTRAINT known",
        "ALTER TABLE t DROP CONSTRAINT known, ADD CONSTRAINT known CHECK (c IN (1, 2, 3))",
        "ALTER TYPE mood ADD VALUE 'new'",
        "ALTER DOMAIN small ADD CHECK (VALUE < 5)",
        "ALTER TABLE t DROP CONSTRAINT t_w_fkey",
    ],
)
def test_a_changed_constraint_is_a_changed_schema(
    postgres_server: PostgresServer, change: str
) -> None:
    with postgres_server.database() as url, psycopg.connect(url, autocommit=True) as postgres:
        postgres.execute(
            "CREATE TYPE mood AS ENUM ('a', 'b'); CREATE TABLE ward (name text PRIMARY KEY);"
            "CREATE DOMAIN small AS integer CHECK (VALUE BETWEEN 0 AND 9);"
            "CREATE TABLE t (c integer CONSTRAINT known CHECK (c IN (1, 2)), m mood, s small,"
            "  w text REFERENCES ward)"
        )
        with sqlrs.connect(url) as database:
            database.count(COUNT, 1)
            postgres.execute(change.encode())
            with pytest.raises(UsageError) as caught:
                database.count(f"{COUNT} WHERE c = 1", 1)
    assert caught.value.code == "schema_changed"
