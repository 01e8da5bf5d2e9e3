"""Parameters of installed functions: typed constants whose values only a call knows."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import sql

from sqlrs.errors import QueryRefused, SqlrsError, UsageError
from sqlrs.procedures import TableDefinition
from tests.procedures.desk import Desk
from tests.support.postgres_server import PostgresServer

TABLES = """
CREATE TABLE person (id int PRIMARY KEY, name text, size double precision, born date, big bigint);
INSERT INTO person VALUES
  (1, 'ada', 1.5, '1815-12-10', 1), (2, 'o''neill', 'NaN', 'infinity', 9223372036854775807),
  (3, '', '-infinity', NULL, -9223372036854775808), (4, NULL, NULL, '1912-06-23', NULL),
  (5, '%', '-0', '0001-01-01', 0), (6, E'a\\\\', 0, '1912-06-23', 5);
CREATE TABLE visit (id int PRIMARY KEY, person int NOT NULL REFERENCES person, day date NOT NULL);
INSERT INTO visit SELECT i, 1 + i % 6, date '2024-01-01' + i FROM generate_series(1, 60) AS i;
"""
# (the condition, types, arguments); every function is asked at an epsilon that leaves no noise.
CASES: list[tuple[str, list[str], list[list[object]]]] = [
    ("p.id = $1", ["int"], [[1], [99], [None], [-(2**31)]]),
    ("p.big >= $1", ["bigint"], [[0], [2**63 - 1], [-(2**63)], [None]]),
    ("p.big = $1", ["numeric"], [[Decimal("5")], [Decimal("5.5")], [Decimal("NaN")], [None]]),
    ("p.size >= $1", ["float8"], [[0.0], [float("nan")], [float("-inf")], [None]]),
    ("p.name = $1", ["text"], [["ada"], ["o'neill"], [""], [None], ["' OR true --"], ["a\\"]]),
    ("p.name IN ($1, $2)", ["text", "text"], [["ada", "%"], ["ada", None], ["x", "y"]]),
    ("p.born BETWEEN $1 AND $2", ["date", "date"],
     [["1800-01-01", "1950-01-01"], ["-infinity", "infinity"], [None, "infinity"]]),
    ("NOT (p.id = $1)", ["int"], [[1], [None]]),
    ("p.name IS NOT DISTINCT FROM $1", ["text"], [["ada"], [None], ["x"]]),
    ("($1 IS NULL OR p.id < $1)", ["int"], [[3], [None]]),
    ("$1 = 5", ["int"], [[5], [4], [None]]),
    ("v.day > $2 AND p.id <> $1", ["int", "date"], [[2, "2024-02-01"], [None, "2024-02-01"]]),
]  # fmt: skip


@pytest.fixture
def people(own_server: PostgresServer) -> Iterator[Desk]:
    with own_server.database() as url:
        desk = Desk(own_server, url)
        desk.run(TABLES)
        yield desk


def called(desk: Desk, *arguments: object, role: str = "ada", epsilon: str = "1000") -> Any:
    """The rows of one call; arguments are written by the driver as texts without a type."""
    given = [sql.Literal(Decimal(epsilon)), *(sql.Literal(_text(one)) for one in arguments)]
    call = sql.SQL("SELECT * FROM sqlrs.asked({})").format(sql.SQL(", ").join(given))
    with desk.session(role) as connection:
        return connection.execute(call).fetchall()


def _text(value: object) -> str | None:
    return None if value is None else str(value)


@pytest.mark.parametrize(("condition", "types", "calls"), CASES, ids=[c for c, _, _ in CASES])
def test_the_count_is_what_sql_says(
    people: Desk, condition: str, types: list[str], calls: list[list[object]]
) -> None:
    statement = f"SELECT count(*) FROM person p JOIN visit v ON v.person = p.id WHERE {condition}"
    people.install(statement, parameters=types, budget="1000000", dataset_budget="1000000")
    seen = set()
    for arguments in calls:
        plain = statement
        for place, (value, kind) in enumerate(zip(arguments, types, strict=True), 1):
            written = sql.SQL("({}::{})").format(sql.Literal(_text(value)), sql.SQL(kind))
            plain = plain.replace(f"${place}", written.as_string())
        ((expected,),) = people.run(plain)
        ((answer, cost, _),) = called(people, *arguments)
        assert (answer, cost) == (expected, 1000), arguments
        seen.add(int(answer))
    # The arguments matter.
    assert len(seen) > 1
    assert people.spent()["ada"] == 1000 * len(calls)


def test_another_value_is_another_query_and_the_same_one_is_free(people: Desk) -> None:
    people.install("SELECT count(*) FROM person WHERE name = $1 AND id > $2",
                   parameters=["text", "int"], roles=["ada", "bob"])  # fmt: skip
    # Texts that would be alike if their quotes were not kept.
    pairs = [("a", "1"), ("a', $2 = '1", "1"), ("a", "11"), ("NULL", "1"), (None, "1"), ("", "1")]
    for place, pair in enumerate(pairs, 1):
        first = called(people, *pair, epsilon="0.5")
        assert first[0][1] == Decimal("0.5")
        assert people.spent()["ada"] == Decimal("0.5") * place
        again = called(people, *pair, epsilon="0.5")
        assert again == [(first[0][0], 0, first[0][2])]
    assert people.spent()["bob"] == 0
    called(people, *pairs[0], role="bob", epsilon="0.5")
    assert people.spent()["bob"] == Decimal("0.5")
    queries = [q for (q,) in people.run("SELECT query FROM sqlrs.history()", "ada")]
    assert len(set(queries)) == len(pairs)
    assert queries[1].endswith("WITH $1 = 'a'', $2 = ''1', $2 = '1'")
    assert queries[4].endswith("WITH $1 = NULL, $2 = '1'")


@pytest.mark.parametrize(
    "text",
    ["' OR true --", "$1", "$measure$ x", "$sqlrs$; DROP TABLE person; --", "{0}", "%s %I", "\\'"],
)
def test_a_text_is_never_read_as_sql(people: Desk, text: str) -> None:
    people.install("SELECT count(*) FROM person WHERE name = $1", parameters=["text"],
                   budget="10000", dataset_budget="10000")  # fmt: skip
    assert called(people, text)[0][0] == 0
    with people.session() as connection:
        connection.execute("INSERT INTO person VALUES (7, %s)", [text])
    people.install("SELECT count(*) FROM person WHERE name = $1", parameters=["text"],
                   repeats=False, budget=None, dataset_budget=None)  # fmt: skip
    assert called(people, text)[0][0] == 1


def test_arguments_are_checked_before_the_charge(people: Desk) -> None:
    people.install("SELECT count(*) FROM person WHERE name = $1 AND big > $2 AND born >= $3",
                   parameters=["text", "numeric", "date"])  # fmt: skip
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="1000 bytes"):
        called(people, "é" * 501, "1", "2024-01-01", epsilon="1")
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="1000 bytes"):
        called(people, "a", "1" * 1001, "2024-01-01", epsilon="1")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        called(people, "a", "one", "2024-01-01", epsilon="1")
    with pytest.raises(psycopg.errors.DatetimeFieldOverflow):
        called(people, "a", "1", "2024-02-31", epsilon="1")
    with pytest.raises(psycopg.errors.UndefinedFunction):
        called(people, epsilon="1")
    assert people.spent()["ada"] == 0
    called(people, "é" * 500, "1", "2024-01-01", epsilon="1")
    assert people.spent()["ada"] == 1


def test_a_caller_s_settings_do_not_change_how_an_argument_is_written(people: Desk) -> None:
    people.install("SELECT count(*) FROM person WHERE born >= $1", parameters=["date"])
    with people.session("ada") as connection:
        for style in ("ISO", "German", "SQL, DMY"):
            connection.execute(f"SET DateStyle = {style}".encode())
            connection.execute("SELECT * FROM sqlrs.asked(1, make_date(1912, 6, 2))")
    assert people.spent()["ada"] == 1


@pytest.mark.parametrize(
    ("condition", "types", "code"),
    [
        ("id = $1", [], "parameter"),
        ("id = $2", ["int"], "unknown_parameter"),
        ("id = $1", ["int", "int"], "unknown_parameter"),
        ("id + $1 > 3", ["int"], "parameter"),
        ("100 / $1 > 3", ["int"], "parameter"),
        ("name LIKE $1", ["text"], "parameter"),
        ("id = $1::int", ["text"], "parameter"),
        ("born > date '2024-01-01' + $1", ["int"], "parameter"),
        ("$1", ["boolean"], "parameter"),
        ("id = ANY ($1)", ["int"], "parameter"),
        ("name = $1", ["int"], "type_mismatch"),
        ("born = $1", ["text"], "type_mismatch"),
        ("id = $name", ["int"], "unknown_parameter"),
        ("id = ?", ["int"], None),
    ],
)
def test_what_is_no_constant_of_a_known_type_is_refused(
    people: Desk, condition: str, types: list[str], code: str | None
) -> None:
    with pytest.raises(QueryRefused) as caught:
        people.define(f"SELECT count(*) FROM person WHERE {condition}", parameters=types)
    assert code is None or caught.value.code == code


@pytest.mark.parametrize("kind", ["int[]", "varchar(3)", "int; DROP TABLE person", "", "money"])
def test_a_type_is_one_of_the_list(people: Desk, kind: str) -> None:
    with pytest.raises(UsageError, match="no type of a parameter"):
        people.define("SELECT count(*) FROM person WHERE id = $1", parameters=[kind])


def test_what_postgresql_cannot_compare_is_told_at_installation(people: Desk) -> None:
    with pytest.raises(SqlrsError, match="operator does not exist"):
        people.install("SELECT count(*) FROM person WHERE id + 1 = $1", parameters=["text"])
    assert people.run("SELECT to_regnamespace('sqlrs')") == [(None,)]


def test_a_view_has_no_parameters(people: Desk) -> None:
    people.run("CREATE VIEW tall AS SELECT * FROM person WHERE size > 1")
    people.install("SELECT count(*) FROM tall WHERE id = $1", parameters=["int"],
                   budget="10000", dataset_budget="10000")  # fmt: skip
    assert [called(people, one)[0][0] for one in (1, 3)] == [1, 0]


def test_the_formula_does_not_depend_on_the_value(people: Desk) -> None:
    """Of literals the compiler sees a contradiction; here there is none to see."""
    with pytest.raises(UsageError, match="contradict"):
        people.define("SELECT count(*) FROM person WHERE id = 1 AND id = 2")
    statement = "SELECT count(*) FROM person WHERE id = 1 AND id = $1"
    definition = people.install(statement, parameters=["int"], budget="9000", dataset_budget="9000")
    assert "$1" in definition.canonical
    assert [called(people, one)[0][0] for one in (1, 2)] == [1, 0]


def test_a_function_whose_parameters_change_is_one_function(people: Desk) -> None:
    people.install("SELECT count(*) FROM person WHERE id = $1", parameters=["int"])
    people.install("SELECT count(*) FROM person")
    assert people.run("SELECT count(*) FROM pg_proc WHERE proname = 'asked'") == [(1,)]
    people.ask("1")
    # Who may call it stays.
    people.install("SELECT count(*) FROM person WHERE id > 0", roles=[])
    people.ask("1")
    people.install("SELECT count(*) FROM person WHERE id = $1", parameters=["int"], roles=[])
    called(people, 1, epsilon="1")
    people.analyst("eve")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        called(people, 1, role="eve")


# (the statement, types, arguments); $n are written into the plain SQL in their types.
STATEMENTS: list[tuple[str, list[str], list[list[object]]]] = [
    ("WITH x AS (SELECT * FROM visit WHERE id > $1) SELECT count(*) AS n FROM x WHERE id < $2",
     ["int", "int"], [[1, 5], [None, 5]]),
    ("SELECT count(*) AS n FROM visit WHERE $1 IN (SELECT name FROM person)", ["text"],
     [["ada"], ["nobody"], [None]]),
    ("SELECT count(*) AS n FROM person p WHERE EXISTS "
     "(SELECT 1 FROM visit v WHERE v.person = p.id AND v.id <= $1)", ["int"], [[3], [0], [None]]),
    ("SELECT count(*) AS n FROM visit a JOIN visit b ON a.id = b.id WHERE a.person = $1 "
     "AND b.person = $2", ["int", "int"], [[2, 2], [2, 3]]),
    ("SELECT count(*) AS n, count(p.id) AS m FROM visit v LEFT JOIN person p ON v.person = p.id "
     "AND p.name IS NOT DISTINCT FROM $1 WHERE v.id > $2 OR p.id = $2", ["text", "int"],
     [["ada", 50], [None, 50], ["ada", None], [None, 1]]),
    ("SELECT count(*) AS n FROM visit v WHERE NOT EXISTS "
     "(SELECT 1 FROM person p WHERE p.id = v.person AND p.born <= $1)", ["date"],
     [["1900-01-01"], ["infinity"], [None]]),
    ("SELECT count(*) FILTER (WHERE person = $1) AS n, count(*) AS m FROM visit", ["int"],
     [[1], [None]]),
    ("SELECT sum(CASE WHEN person < $1 THEN 1 ELSE 0 END) AS n FROM visit", ["int"],
     [[3], [7]]),
    ("SELECT person IN (1, 2) AS k, count(*) AS n FROM visit WHERE day >= $1 GROUP BY 1",
     ["date"], [["2024-01-20"], ["-infinity"]]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "types", "calls"), STATEMENTS, ids=[s for s, _, _ in STATEMENTS]
)
def test_every_part_of_a_statement_has_the_value(
    people: Desk, statement: str, types: list[str], calls: list[list[object]]
) -> None:
    definition = people.define_any(statement, parameters=types, public=["person"])
    people.install_defined(definition, ["ada"], "1000000", "1000000")
    # Without noise, so that only the counts differ.
    people.run("CREATE OR REPLACE FUNCTION sqlrs.laplace(epsilon numeric, bound numeric) "
               "RETURNS numeric LANGUAGE sql AS 'SELECT 0::numeric'")  # fmt: skip
    seen = set()
    for arguments in calls:
        plain = statement
        for place, (value, kind) in enumerate(zip(arguments, types, strict=True), 1):
            written = sql.SQL("({}::{})").format(sql.Literal(_text(value)), sql.SQL(kind))
            plain = plain.replace(f"${place}", written.as_string())
        rows = called(people, *arguments)
        told = rows if isinstance(definition, TableDefinition) else [row[:1] for row in rows]
        assert sorted(map(str, map(_whole, told))) == sorted(
            str(_whole(row)) for row in people.run(plain)
        ), arguments
        seen.add(str(told))
    assert len(seen) > 1


def _whole(row: tuple[object, ...]) -> list[object]:
    return [int(one) if isinstance(one, Decimal) else one for one in row]
