"""Functions of the database that an owner vouches for: used, checked, refused where in doubt."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg
import pytest
from sqlglot import exp

import sqlrs
from sqlrs.compiled import Compiled
from sqlrs.compiler.conditions import never_fails
from sqlrs.dialects import dialect_named
from sqlrs.errors import EngineFailed, QueryRefused, UsageError
from sqlrs.ledger import MemoryLedger
from sqlrs.procedures import Definition

SETUP = (
    "CREATE TABLE person "
    "(id INTEGER PRIMARY KEY, kg DOUBLE PRECISION, m DOUBLE PRECISION, name TEXT)",
    "INSERT INTO person VALUES (1, 80, 2, 'Ann'), (2, 50, 1, 'anne'), (3, 90, 1.5, 'bob')",
    "CREATE TABLE visit (person INTEGER NOT NULL, kg DOUBLE PRECISION)",
    "INSERT INTO visit VALUES (1, 81), (1, 82), (3, 90)",
)
BMI = {"bmi": "(double precision, double precision) -> double precision"}
HEAVY = "SELECT count(*) FROM person WHERE bmi(kg, m) > 30"
JOINED = "SELECT count(*) FROM person p JOIN visit v ON p.id = v.person AND bmi(v.kg, p.m) > 30"
MAKE = {
    "duckdb": "CREATE MACRO bmi(kg, m) AS kg / (m * m)",
    "postgres": "CREATE FUNCTION bmi(double precision, double precision) RETURNS double precision "
    "IMMUTABLE LANGUAGE sql AS 'SELECT $1 / ($2 * $2)'",
}


@dataclass
class World:
    """A database with the function bmi, and the owner's own connection to it."""

    kind: str
    target: object
    run: Callable[[str], object]

    def connect(self, functions: object = None, **more: object) -> sqlrs.Database:
        given = BMI if functions is None else functions
        return sqlrs.connect(self.target, functions=given, **more)  # type: ignore[arg-type]


@pytest.fixture(params=["duckdb", "postgres"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "duckdb":
        with closing(duckdb.connect()) as connection:
            made = World("duckdb", connection, connection.execute)
            for statement in (*SETUP, MAKE["duckdb"]):
                made.run(statement)
            yield made
        return
    url = request.getfixturevalue("postgres_db")
    with psycopg.connect(url, autocommit=True) as owner:
        made = World("postgres", url, lambda sql: owner.execute(sql.encode()))
        for statement in (*SETUP, MAKE["postgres"]):
            made.run(statement)
        yield made


def test_it_filters_rows_and_joins_tables(world: World) -> None:
    with world.connect(public=["person", "visit"]) as db:
        assert db.count(HEAVY, 1).value == 2
        assert db.count(JOINED, 1).value == 1
        assert db.count("SELECT count(*) FROM person WHERE BMI(kg, 1) = 50", 1).value == 1
    with world.connect() as db:
        # A residual without the other table does not have the condition: it is not solved.
        diagnosis = db.sensitivity(JOINED)
        assert diagnosis.count == 1
        assert diagnosis.value >= 2
        assert str(db.catalog.functions[0]).lower().startswith("bmi(double")


def test_the_same_count_as_the_database_itself(world: World) -> None:
    sql = (
        "SELECT count(*) FROM person p, visit v WHERE (bmi(p.kg, p.m) > 20 OR p.id = v.person) "
        "AND NOT bmi(v.kg, p.m) BETWEEN 21 AND 45"
    )
    with world.connect(public=["person", "visit"]) as db:
        answer = db.count(sql, 1).value
    if isinstance(world.target, str):
        with psycopg.connect(world.target) as plain:
            row = plain.execute(sql.encode()).fetchone()
    else:
        row = world.target.execute(sql).fetchone()  # type: ignore[attr-defined]
    assert row is not None and answer == row[0]


def test_what_is_not_declared_is_refused(world: World) -> None:
    with world.connect({}) as db, pytest.raises(QueryRefused) as caught:
        db.count(HEAVY, 1)
    assert caught.value.code == "unknown_function"
    assert "owner can declare" in str(caught.value.hint)
    with world.connect() as db, pytest.raises(QueryRefused, match="not known with these arguments"):
        db.count("SELECT count(*) FROM person WHERE bmi(kg) > 30", 1)


def test_it_can_fail(world: World) -> None:
    """It is not tried on rows that the analyst's own SQL does not try it on."""
    with world.connect() as db:
        compiled = Compiled.of(HEAVY, db.catalog, db.settings)
        assert isinstance(compiled, Compiled)
        assert compiled.declared_functions == ("bmi",)
        (condition,) = [f.condition for a in compiled.residuals.query.atoms for f in a.filters]
        assert isinstance(condition, exp.Expr)
        double = db.catalog.functions[0].returns
        dialect = dialect_named(db.catalog.dialect)
        assert not never_fails(condition, [], lambda _: double, dialect)


@pytest.mark.parametrize(
    ("functions", "told"),
    [
        ({"bmi": "(double precision) -> double precision"}, "takes 2 arguments, not 1"),
        ({"bmi": "(double precision, double precision) -> integer"}, "returns double, not integer"),
        ({"bmi": "(double precision, date) -> double precision"}, "cannot be called as bmi"),
        ({"bmi": "(double precision, thing) -> integer"}, "names a type that is not known"),
        ({"none": "() -> integer"}, "the database has no function none"),
        ({"abs": "(integer) -> integer"}, "has a meaning of its own in SQL"),
        ({"lower": "(text) -> text"}, "has a meaning of its own in SQL"),
        ({"suffix": "(text) -> text"}, "has a meaning of its own in SQL"),
        ({"random": "() -> double precision"}, "changes from call to call"),
        ({"nextval": "(text) -> bigint"}, "changes from call to call"),
        ({"main.bmi": "() -> integer"}, "cannot be declared as"),
        ({"BMI": BMI["bmi"]}, "cannot be declared as"),
        ({"bmi": 3}, "functions.bmi must be a text"),
        ({"bmi": "double"}, "not the signature of a function"),
        ({3: "() -> integer"}, "a function of functions must be a text"),
        (["bmi"], "functions must be a mapping"),
    ],
)  # fmt: skip
def test_what_the_database_contradicts_is_refused(
    world: World, functions: object, told: str
) -> None:
    with pytest.raises(UsageError) as caught:
        world.connect(functions)
    assert told in caught.value.message.replace("DOUBLE", "double").replace(" precision,", ",")


UNSTEADY_MACROS = {
    "(a) AS a + random()": "calls random",
    "(a) AS a < current_date": "reads more than its arguments",
    "(a) AS CAST(now() AS DATE) = a": "present moment",
    "(a) AS a = 'today'::DATE": "present moment",
    "(a) AS (SELECT count(*) FROM person WHERE id = a)": "holds a subquery",
    "(a) AS EXISTS (SELECT 1 FROM visit WHERE person = a)": "holds a subquery",
    "(a) AS a IN (SELECT person FROM visit)": "holds a subquery",
    "(a) AS sum(a)": "calls sum",
    "(a) AS row_number() OVER () + a": "holds a window",
    "(a) AS list_sum(list_transform([a], lambda x: x + 1))": "holds a lambda",
    "(a) AS bmi(a, 1)": "calls bmi",
    "(a) AS nextval('s') + a": "calls nextval",
    "(a) AS age(make_date(a, 1, 1)) > INTERVAL 1 YEAR": "calls age",
    "(a) AS current_localtimestamp() IS NULL": "calls current_localtimestamp",
    "(a) AS version() = a": "calls version",
    "(a) AS current_setting('threads') || a": "calls current_setting",
    "(a) AS TABLE SELECT a": "not a function of one row's values",
    "(a) AS a, (a, b) AS a + b": "shares its name",
}  # fmt: skip


@pytest.mark.parametrize("body", UNSTEADY_MACROS)
def test_a_macro_must_be_an_expression_of_its_arguments(body: str) -> None:
    with closing(duckdb.connect()) as connection:
        for statement in (*SETUP, MAKE["duckdb"], "CREATE SEQUENCE s"):
            connection.execute(statement)
        connection.execute(f"CREATE MACRO odd{body}")
        with pytest.raises(UsageError) as caught:
            sqlrs.connect(connection, functions={"odd": "(integer) -> integer"})
        assert UNSTEADY_MACROS[body] in caught.value.message


def test_a_macro_is_not_trusted_through_a_hidden_function() -> None:
    with closing(duckdb.connect()) as connection:
        for statement in SETUP:
            connection.execute(statement)
        connection.execute("CREATE MACRO odd(a) AS sign(a)")
        with sqlrs.connect(connection, functions={"odd": "(integer) -> tinyint"}) as db:
            ask = "SELECT count(*) FROM person WHERE odd(id) = 1"
            db.count(ask, 1)
            connection.execute("CREATE MACRO sign(a) AS (SELECT count(*) FROM visit)")
            with pytest.raises(UsageError) as caught:
                db.count(ask, 2)
            assert caught.value.code == "schema_changed"
        with pytest.raises(UsageError, match="calls sign"):
            sqlrs.connect(connection, functions={"odd": "(integer) -> tinyint"})


def test_scalar_functions_of_duckdb() -> None:
    with closing(duckdb.connect()) as connection:
        for statement in SETUP:
            connection.execute(statement)
        connection.create_function("next_id", lambda x: x + 1, ["BIGINT"], "BIGINT")
        connection.create_function("dice", lambda x: x, ["BIGINT"], "BIGINT", side_effects=True)
        functions = {
            "next_id": "(bigint) -> bigint",
            "jaccard": "(varchar, varchar) -> double",
        }
        with sqlrs.connect(connection, public=["person"], functions=functions) as db:
            assert db.count("SELECT count(*) FROM person WHERE next_id(id) = 3", 1).value == 1
            pairs = "SELECT count(*) FROM person a, person b WHERE jaccard(a.name, b.name) > 0.9"
            assert db.count(pairs, 1).value == 3
        for name in ("dice", "version", "age"):
            with pytest.raises(
                UsageError, match=r"not always give the same|shares its name|of its own"
            ):
                sqlrs.connect(connection, functions={name: "(bigint) -> bigint"})


UNSTEADY_FUNCTIONS = {
    "CREATE FUNCTION odd(integer) RETURNS integer STABLE LANGUAGE sql AS 'SELECT $1'": "IMMUTABLE",
    "CREATE FUNCTION odd(integer) RETURNS integer LANGUAGE sql AS 'SELECT $1'": "IMMUTABLE",
    "CREATE FUNCTION odd(integer DEFAULT 1) RETURNS integer IMMUTABLE LANGUAGE sql "
    "AS 'SELECT $1'": "left out",
    "CREATE FUNCTION odd(VARIADIC integer[]) RETURNS integer IMMUTABLE LANGUAGE sql "
    "AS 'SELECT 1'": "repeated",
    "CREATE FUNCTION odd(integer) RETURNS SETOF integer IMMUTABLE LANGUAGE sql "
    "AS 'SELECT $1'": "not a function of one row's values",
    "CREATE AGGREGATE odd(integer) (SFUNC = int4pl, STYPE = integer)": "not a function of one row",
    "CREATE PROCEDURE odd(integer) LANGUAGE sql AS 'SELECT 1'": "not a function of one row",
    "CREATE FUNCTION odd(integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT $1'; "
    "CREATE FUNCTION odd(text) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT 1'": "shares",
    "CREATE SCHEMA other; CREATE FUNCTION other.odd(integer) RETURNS integer IMMUTABLE "
    "LANGUAGE sql AS 'SELECT $1'": "cannot be called",
}


@pytest.mark.parametrize("made", UNSTEADY_FUNCTIONS)
def test_a_function_must_be_immutable_and_alone(postgres_db: str, made: str) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as owner:
        for statement in (*SETUP, made):
            owner.execute(statement.encode())
    with pytest.raises(UsageError) as caught:
        sqlrs.connect(postgres_db, functions={"odd": "(integer) -> integer"})
    assert UNSTEADY_FUNCTIONS[made] in caught.value.message


def test_built_in_functions_of_postgres(postgres_db: str) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as owner:
        for statement in SETUP:
            owner.execute(statement.encode())
    functions = {"min_scale": "(numeric) -> integer"}
    with sqlrs.connect(postgres_db, public=["person"], functions=functions) as db:
        assert db.count("SELECT count(*) FROM person WHERE min_scale(id) = 0", 1).value == 3
    with pytest.raises(UsageError, match="is not IMMUTABLE"):
        sqlrs.connect(postgres_db, functions={"pg_postmaster_start_time": "() -> timestamptz"})


CHANGES = {
    "duckdb": [
        "CREATE OR REPLACE MACRO bmi(kg, m) AS kg / m",
        "CREATE OR REPLACE MACRO bmi(m, kg) AS kg / (m * m)",
        "DROP MACRO bmi",
        "CREATE OR REPLACE MACRO bmi(kg, m) AS kg + m, (kg) AS kg",
    ],
    "postgres": [
        MAKE["postgres"].replace("CREATE", "CREATE OR REPLACE").replace("($2 * $2)", "$2"),
        "ALTER FUNCTION bmi VOLATILE",
        "ALTER FUNCTION bmi STRICT",
        "ALTER FUNCTION bmi RENAME TO other",
        "DROP FUNCTION bmi",
        "CREATE FUNCTION bmi(integer, integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    ],
}


@pytest.mark.parametrize("number", range(6))
def test_a_function_that_changed_is_refused_before_the_charge(world: World, number: int) -> None:
    if number >= len(CHANGES[world.kind]):
        return
    ledger = MemoryLedger()
    with world.connect(ledger=ledger) as db:
        db.count(HEAVY, 1)
        world.run(CHANGES[world.kind][number])
        for ask in (HEAVY, JOINED):
            with pytest.raises(UsageError) as caught:
                db.count(ask, 2)
            assert caught.value.code == "schema_changed"
        assert ledger.spent() == 1
        # Who does not call it goes on.
        db.count("SELECT count(*) FROM person WHERE kg > 1", 2)


def test_a_temporary_function_of_somebody_else_is_never_called(postgres_db: str) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as owner:
        for statement in (*SETUP, MAKE["postgres"]):
            owner.execute(statement.encode())
        owner.execute(MAKE["postgres"].replace(" bmi", " pg_temp.bmi").encode())
        with sqlrs.connect(postgres_db, public=["person"], functions=BMI) as db:
            assert db.count(HEAVY, 1).value == 2
        with sqlrs.connect(owner, public=["person"], functions=BMI) as db:
            assert db.count(HEAVY, 1).value == 2


def test_a_function_that_changes_during_the_work_ends_it(postgres_db: str) -> None:
    """PostgreSQL calls the new one at once, whatever the snapshot."""
    with psycopg.connect(postgres_db, autocommit=True) as owner:
        for statement in (*SETUP, MAKE["postgres"]):
            owner.execute(statement.encode())
        with sqlrs.connect(postgres_db, functions=BMI) as db:
            changed = CHANGES["postgres"][0]

            def meanwhile(*_: object) -> None:
                owner.execute(changed.encode())

            with pytest.raises(EngineFailed):
                db.count(JOINED, 1, progress=meanwhile)


def test_a_hiding_function_that_comes_later_is_seen(world: World) -> None:
    ask = "SELECT count(*) FROM person WHERE lower(name) = 'ann'"
    with world.connect({}) as db:
        db.count(ask, 1)
        if world.kind == "duckdb":
            world.run("CREATE MACRO lower(x) AS 'ann'")
        else:
            world.run(
                "CREATE FUNCTION public.lower(varchar) RETURNS text LANGUAGE sql "
                "AS $$ SELECT 'b' $$"
            )
        with pytest.raises(UsageError) as caught:
            db.count(ask, 2)
        assert caught.value.code == "schema_changed"


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("bmi(kg, m) > 'now'", "volatile_function"),
        ("plain(name) = 'ann'", None),
        ("plain(name) LIKE 'a%' AND upper(name) = 'ANN'", None),
        ("plain(name || 'x') = 'ann'", "text_growth"),
        ("plain(upper(name)) = 'ann'", "text_growth"),
        ("plain(plain(name)) = 'ann'", "text_growth"),
        ("upper(plain(name)) = 'ANN'", "text_growth"),
        ("coalesce(plain(name), name) || 'x' = 'ann'", "text_growth"),
        ("CAST(bmi(kg, m) AS text) = '1'", "text_growth"),
        ("bmi(bmi(kg, m), m) > 2", "text_growth"),
        ("EXISTS (SELECT 1 FROM visit WHERE bmi(person.kg, visit.kg) > 1)", None),
        ("id IN (SELECT i FROM (SELECT id AS i, bmi(kg, m) AS b FROM person) t WHERE b > 1)", None),
        (
            "id IN (SELECT i FROM (SELECT id AS i, bmi(kg, m) AS b, m FROM person) t "
            "WHERE bmi(b, m) > 1)",
            "text_growth",
        ),
    ],
)
def test_moments_and_growing_texts(world: World, condition: str, code: str | None) -> None:
    if world.kind == "duckdb":
        world.run("CREATE MACRO plain(x) AS trim(lower(x))")
    else:
        world.run(
            "CREATE FUNCTION plain(text) RETURNS text IMMUTABLE LANGUAGE sql "
            "AS 'SELECT trim(lower($1))'"
        )
    with world.connect({**BMI, "plain": "(text) -> text"}, public=["person"]) as db:
        sql = f"SELECT count(*) FROM person WHERE {condition}"
        if code is None:
            assert isinstance(db.count(sql, 1).value, int)
            return
        with pytest.raises(QueryRefused) as caught:
            db.count(sql, 1)
        assert caught.value.code == code


def test_a_function_inside_postgres_does_not_call_it(postgres_db: str) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as owner:
        for statement in (*SETUP, MAKE["postgres"]):
            owner.execute(statement.encode())
    with sqlrs.connect(postgres_db, functions=BMI) as db:
        for sql in (HEAVY, JOINED):
            with pytest.raises(UsageError, match="does not call bmi"):
                Definition.of(sql, db.catalog, name="heavy", settings=db.settings)
        Definition.of("SELECT count(*) FROM person", db.catalog, name="people")


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sqlrs", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_the_command_line_and_the_file_declare_functions(tmp_path: Path) -> None:
    with closing(duckdb.connect(str(tmp_path / "clinic.db"))) as connection:
        for statement in (*SETUP, MAKE["duckdb"]):
            connection.execute(statement)
    data = ("--db", "duckdb:///clinic.db", "--public", "person")
    signature = "bmi(double, double) -> double"
    asked = command(tmp_path, "count", HEAVY, "--epsilon", "1", *data, "--function", signature)
    assert (asked.returncode, asked.stdout) == (0, "2\n"), asked.stderr
    shown = command(tmp_path, "tables", *data, "--function", signature, "--json")
    assert json.loads(shown.stdout)["functions"] == ["bmi(DOUBLE, DOUBLE) -> DOUBLE"]
    refused = command(tmp_path, "explain", HEAVY, *data)
    assert refused.returncode == 3
    for wrong in ("bmi", "bmi double", "bmi(double) -> double", "none() -> integer"):
        misused = command(tmp_path, "explain", HEAVY, *data, "--function", wrong)
        assert misused.returncode == 2, wrong
    (tmp_path / "sqlrs.toml").write_text(
        '[data]\ndb = "duckdb:///clinic.db"\npublic = ["person"]\n'
        '[functions]\nbmi = "(double, double) -> double"\n'
    )
    found = command(tmp_path, "count", HEAVY, "--epsilon", "1")
    assert (found.returncode, found.stdout) == (0, "2\n"), found.stderr
    listed = command(tmp_path, "tables")
    assert "bmi(DOUBLE, DOUBLE) -> DOUBLE  [function]" in listed.stdout


def test_the_command_line_on_postgres(postgres_db: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as owner:
        for statement in (*SETUP, MAKE["postgres"]):
            owner.execute(statement.encode())
    given = ("--db", postgres_db, "--public", "person", "--function", f"bmi{BMI['bmi']}")
    asked = command(tmp_path, "count", HEAVY, "--epsilon", "1", *given)
    assert (asked.returncode, asked.stdout) == (0, "2\n"), asked.stderr
