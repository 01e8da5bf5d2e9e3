"""Functions that return a table: noisy numbers of public groups, charged and recorded as one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import psycopg
import pytest

from sqlrs.errors import QueryRefused, UsageError
from sqlrs.noise import Laplace
from sqlrs.noise.laplace import tail_ceiling
from sqlrs.settings import Settings
from tests.noise.oracle import deviation_allowed
from tests.procedures.desk import Desk
from tests.support.postgres_server import PostgresServer

TABLES = """
CREATE TABLE ward (name text PRIMARY KEY, big boolean);
INSERT INTO ward VALUES ('A', true), ('B', false), ('o''n', NULL), ('empty', true);
CREATE TABLE visit (
  id int PRIMARY KEY, ward text NOT NULL REFERENCES ward, day date NOT NULL, age int,
  cost numeric(8, 2) CHECK (cost BETWEEN 0 AND 500), urgent boolean, at timestamp
);
INSERT INTO visit SELECT
  i, CASE i % 3 WHEN 0 THEN 'A' WHEN 1 THEN 'B' ELSE 'o''n' END, date '2024-01-01' + i % 7,
  nullif(i % 11, 4), nullif(i % 90, 17) + 0.25, nullif(i % 5, 2) > 1,
  timestamp '2024-01-01 10:00' + i % 3 * interval '1 month'
FROM generate_series(1, 200) AS i;
CREATE TABLE stay (visit int NOT NULL REFERENCES visit, nights int NOT NULL);
INSERT INTO stay SELECT 1 + i % 50, i FROM generate_series(1, 80) AS i;
"""
# Each asked at an epsilon that leaves no noise; the second text is the plain SQL of all groups.
STATEMENTS = [
    ("SELECT w.name, count(*) FROM visit v JOIN ward w ON v.ward = w.name GROUP BY w.name",
     "SELECT w.name, count(v.id) FROM ward w LEFT JOIN visit v ON v.ward = w.name GROUP BY 1"),
    ("SELECT count(*) AS n, ward AS \"Ward\", count(age) AS aged FROM visit "
     "WHERE ward IN ('A', 'B', 'x') GROUP BY ward",
     "SELECT count(id), k, count(age) FROM (VALUES ('A'), ('B'), ('x')) AS d (k) "
     "LEFT JOIN visit ON ward = k GROUP BY k"),
    ("SELECT urgent, day, count(*) FROM visit "
     "WHERE day BETWEEN date '2024-01-01' AND date '2024-01-09' GROUP BY 1, 2",
     "SELECT u, d::date, count(id) FROM (VALUES (true), (false), (NULL)) AS b (u) "
     "CROSS JOIN generate_series(date '2024-01-01', '2024-01-09', '1 day') AS g (d) "
     "LEFT JOIN visit ON urgent IS NOT DISTINCT FROM u AND day = d GROUP BY 1, 2"),
    ("SELECT ward, sum(cost) AS total, count(*) AS n FROM visit "
     "WHERE ward IN ('A', 'o''n') GROUP BY ward",
     "SELECT ward, sum(cost), count(*) FROM visit WHERE ward IN ('A', 'o''n') GROUP BY ward"),
    ("SELECT sum(cost) AS total FROM visit", "SELECT sum(cost) FROM visit"),
    ("SELECT sum(least(greatest(age, -5), 5)) AS s, count(*) AS n FROM visit",
     "SELECT sum(least(greatest(age, -5), 5)), count(*) FROM visit WHERE true"),
    ("SELECT age > 5 AS old, count(*) AS n FROM visit GROUP BY 1",
     "SELECT o, count(id) FROM (VALUES (true), (false), (NULL)) AS b (o) "
     "LEFT JOIN visit ON (age > 5) IS NOT DISTINCT FROM o GROUP BY 1"),
    ("SELECT date_trunc('month', at) AS month, count(*) AS n FROM visit "
     "WHERE at >= timestamp '2024-01-01' AND at < timestamp '2024-03-01' GROUP BY 1",
     "SELECT date_trunc('month', at), count(*) FROM visit WHERE at < '2024-03-01' GROUP BY 1"),
    ("SELECT w.big, count(*) FROM visit v JOIN ward w ON v.ward = w.name GROUP BY w.big",
     "SELECT w.big, count(*) FROM visit v JOIN ward w ON v.ward = w.name GROUP BY w.big"),
]  # fmt: skip


@pytest.fixture
def hospital(own_server: PostgresServer) -> Iterator[Desk]:
    with own_server.database() as url:
        desk = Desk(own_server, url)
        desk.run(TABLES)
        yield desk


def asked(desk: Desk, epsilon: str = "1000", role: str = "ada", more: str = "") -> Any:
    return desk.run(f"SELECT * FROM sqlrs.asked({epsilon}{more})", role)


def multiset(rows: Any) -> list[str]:
    """Numbers by value: a sum of decimals may be written with more places."""
    return sorted(repr([float(x) if isinstance(x, Decimal | int) and not isinstance(x, bool)
                        else x for x in row]) for row in rows)  # fmt: skip


@pytest.mark.parametrize(("statement", "plain"), STATEMENTS, ids=[s[:50] for s, _ in STATEMENTS])
def test_without_noise_it_is_the_plain_group_by(hospital: Desk, statement: str, plain: str) -> None:
    definition = hospital.install_table(statement, public=["ward"])
    hospital.run("CREATE OR REPLACE FUNCTION sqlrs.laplace(epsilon numeric, bound numeric) "
                 "RETURNS numeric LANGUAGE sql AS 'SELECT 0::numeric'")  # fmt: skip
    rows = asked(hospital)
    assert multiset(rows) == multiset(hospital.run(plain))
    assert hospital.spent()["ada"] == 1000
    assert asked(hospital) == rows
    assert hospital.spent()["ada"] == 1000
    columns = hospital.run("SELECT proargnames FROM pg_proc WHERE proname = 'asked'")
    assert columns[0][0][1:] == [one.name for one in definition.shown]
    assert hospital.run("SELECT to_regclass('sqlrs.key_types')") == [(None,)]


@pytest.mark.parametrize("neighbours", ["strict", "add-remove"])
def test_the_bounds_are_those_of_the_package(hospital: Desk, neighbours: str) -> None:
    """A row counts once and weighs 500; epsilon is shared by two, and strict is twice as far."""
    hospital.install_table(
        "SELECT ward, count(*) AS n, sum(cost) AS total FROM visit WHERE ward IN ('A', 'B') "
        "GROUP BY ward", settings=Settings(neighbours=neighbours)
    )  # fmt: skip
    hospital.run("CREATE OR REPLACE FUNCTION sqlrs.laplace(epsilon numeric, bound numeric) "
                 "RETURNS numeric LANGUAGE sql AS 'SELECT bound'")  # fmt: skip
    rows = {ward: (n, total) for ward, n, total in asked(hospital)}
    plain = hospital.run("SELECT ward, count(*), sum(cost) FROM visit GROUP BY 1")
    moves = 2 if neighbours == "strict" else 1
    for ward, n, total in plain:
        if ward in rows:
            assert rows[ward] == (n + 2 * moves, total + 2 * moves * 500)


def test_a_join_with_a_public_table_that_repeats_rows_has_its_greatest_number(
    hospital: Desk,
) -> None:
    hospital.run("CREATE TABLE tag (ward text NOT NULL, tag text NOT NULL)")
    hospital.run("INSERT INTO tag VALUES ('A', 'x'), ('A', 'y'), ('A', 'x'), ('B', 'x')")
    hospital.install_table(
        "SELECT t.tag, count(*) AS n FROM visit v JOIN tag t ON v.ward = t.ward GROUP BY t.tag",
        public=["ward", "tag"], repeats=False,
    )  # fmt: skip
    hospital.run("CREATE OR REPLACE FUNCTION sqlrs.laplace(epsilon numeric, bound numeric) "
                 "RETURNS numeric LANGUAGE sql AS 'SELECT bound * 1000000'")  # fmt: skip
    assert {int(n) // 10**6 for _, n in asked(hospital)} == {2 * 3}
    # Public rows may change: the bound follows them.
    hospital.run("INSERT INTO tag VALUES ('B', 'x'), ('B', 'x'), ('B', 'x'), ('B', 'z')")
    assert {int(n) // 10**6 for _, n in asked(hospital)} == {2 * 5}
    assert len(asked(hospital)) == 3


def test_a_bound_is_kept_also_without_its_check(hospital: Desk) -> None:
    hospital.install_table("SELECT sum(cost) AS total FROM visit WHERE id = 1")
    hospital.run("ALTER TABLE visit DROP CONSTRAINT visit_cost_check")
    hospital.run("UPDATE visit SET cost = 99999 WHERE id = 1")
    assert abs(asked(hospital)[0][0] - 500) < 100


def test_a_signed_sum(hospital: Desk) -> None:
    statement = ("SELECT count(*) AS n, count(w.name) AS m FROM visit v "
                 "LEFT JOIN ward w ON v.ward = w.name AND w.big")  # fmt: skip
    hospital.install_table(statement, public=["ward"])
    assert asked(hospital) == hospital.run(statement)


def test_a_charge_a_repeat_and_a_second_caller(hospital: Desk) -> None:
    hospital.install_table("SELECT urgent, count(*) AS n FROM visit GROUP BY urgent",
                           roles=["ada", "bob"])  # fmt: skip
    first = asked(hospital, "0.01")
    assert len(first) == 3 and all(n == int(n) for _, n in first)
    assert asked(hospital, "0.010") == first
    assert hospital.spent() == {"ada": Decimal("0.01"), "bob": 0, "data": Decimal("0.01")}
    # The same question with its columns in another order has the same answer.
    hospital.install_table("SELECT count(*) AS n, urgent FROM visit GROUP BY urgent",
                           name="other", budget=None, dataset_budget=None)  # fmt: skip
    other = hospital.run("SELECT * FROM sqlrs.other(0.01)", "ada")
    assert [(u, n) for n, u in other] == first
    second = asked(hospital, "0.01", "bob")
    assert hospital.spent()["bob"] == Decimal("0.01")
    assert second != first  # equal with a chance of about 1e-7
    journal = hospital.run("SELECT answer, told FROM sqlrs.releases JOIN sqlrs.released_rows "
                           "USING (ticket) ORDER BY ticket")  # fmt: skip
    assert [a for a, _ in journal] == [3, 3]
    assert [[(keys, int(numbers[0])) for keys, numbers in rows] for _, rows in journal] == [
        [([None if u is None else str(u).lower()], int(n)) for u, n in told]
        for told in (first, second)
    ]
    assert len(hospital.run("SELECT * FROM sqlrs.history()", "ada")) == 1
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        asked(hospital, role=hospital.analyst("eve"))


def test_too_many_groups_cost_nothing(hospital: Desk) -> None:
    hospital.install_table(
        "SELECT w.name, count(*) AS n FROM visit v JOIN ward w ON v.ward = w.name GROUP BY w.name",
        public=["ward"], settings=Settings(max_groups=4),
    )  # fmt: skip
    assert len(asked(hospital, "1")) == 4
    hospital.run("INSERT INTO ward VALUES ('new')")
    with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="more than 4 groups"):
        asked(hospital, "2")
    assert hospital.spent()["ada"] == 1


def test_a_failure_after_the_charge_is_one_error(hospital: Desk) -> None:
    hospital.install_table("SELECT urgent, count(*) AS n FROM visit WHERE 10 / age > 1 "
                           "GROUP BY urgent")  # fmt: skip
    hospital.run("UPDATE visit SET age = 0 WHERE id = 3")
    with pytest.raises(psycopg.errors.SystemError, match="could not be completed") as caught:
        asked(hospital, "1")
    assert "zero" not in str(caught.value).partition("HINT")[0]
    assert hospital.spent()["ada"] == 1
    hospital.run("ALTER TABLE visit DROP CONSTRAINT visit_pkey CASCADE")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        asked(hospital, "1")
    assert hospital.spent()["ada"] == 1


def test_parameters_of_a_table(hospital: Desk) -> None:
    hospital.install_table("SELECT urgent, count(*) AS n FROM visit WHERE ward = $1 AND day >= $2 "
                           "GROUP BY urgent", parameters=["text", "date"])  # fmt: skip
    plain = ("SELECT urgent, count(*) FROM visit WHERE ward = 'o''n' AND day >= '2024-01-03' "
             "GROUP BY urgent")  # fmt: skip
    rows = asked(hospital, more=", 'o''n', '2024-01-03'")
    assert multiset(rows) == multiset(hospital.run(plain))
    assert [int(n) for _, n in asked(hospital, more=", NULL, '2024-01-03'")] == [0, 0, 0]
    assert hospital.spent()["ada"] == 2000
    assert asked(hospital, more=", 'o''n', '2024-01-03'") == rows
    assert hospital.spent()["ada"] == 2000


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("SELECT urgent, count(*) AS n FROM visit WHERE ward = $1 GROUP BY 1 HAVING count(*) > $2",
         QueryRefused),
        ("SELECT count(*) / (SELECT count(*) FROM visit WHERE urgent) FROM visit", QueryRefused),
        ("SELECT urgent, count(*) + 1 AS epsilon FROM visit GROUP BY 1", UsageError),
        ("SELECT ward, count(*) FROM visit WHERE ward = $1 GROUP BY 1", QueryRefused),
        ("SELECT day, count(*) FROM visit GROUP BY 1", QueryRefused),
        ("SELECT big, count(*) FROM ward GROUP BY big", UsageError),
        ("SELECT urgent AS epsilon, count(*) FROM visit GROUP BY 1", UsageError),
        ("SELECT urgent AS a, count(*) AS a FROM visit GROUP BY 1", UsageError),
        ("SELECT age = $1 AS k, count(*) AS n FROM visit GROUP BY 1", QueryRefused),
        ("SELECT count(*) FROM visit UNION ALL SELECT count(*) FROM visit", QueryRefused),
    ],
)  # fmt: skip
def test_what_a_function_does_not_return_is_refused(
    hospital: Desk, statement: str, error: type[Exception]
) -> None:
    parameters = [] if "$1" not in statement else ["int" if "age" in statement else "text"]
    parameters += ["int"] if "$2" in statement else []
    with pytest.raises(error) as caught:
        hospital.define_any(statement, public=["ward"], parameters=parameters)
    assert getattr(caught.value, "hint", None) or "parameter" in str(caught.value)


def test_no_true_number_is_to_be_seen(hospital: Desk) -> None:
    """A caller sees the function's text, and nothing that it has measured."""
    hospital.install_table("SELECT urgent, count(*) AS n FROM visit GROUP BY urgent")
    rows = asked(hospital, "0.000001")
    counts = {int(n) for (n,) in hospital.run("SELECT count(*) FROM visit GROUP BY urgent")}
    assert counts.isdisjoint({int(n) for _, n in rows})  # a chance of about 1e-5
    for table in ("releases", "released_rows", "queries", "budgets"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            hospital.run(f"SELECT * FROM sqlrs.{table}", "ada")
    for call in ("laplace(1, 1)", "integer_below(5)", "exponential_coin(1, 2)"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            hospital.run(f"SELECT sqlrs.{call}", "ada")


def gap(draws: list[int], epsilon: str, bound: int) -> float:
    """The greatest distance between the frequencies of sizes and the law of the package."""
    scale = Laplace(Decimal(epsilon)).scale(Fraction(bound))
    sizes = sorted(map(abs, draws))
    points = {sizes[len(sizes) * i // 40] for i in range(40)} | {0, 1}
    return max(
        abs(sum(size > w for size in sizes) / len(sizes) - float(tail_ceiling(scale, w)))
        for w in points
    )


@pytest.mark.parametrize(
    ("epsilon", "bound"), [("1", 1), ("0.7", 3), ("0.000001", 1), ("3", 1), ("1", 10**30)]
)
def test_the_noise_has_the_law_of_the_package(workshop: Desk, epsilon: str, bound: int) -> None:
    """Error rate 1e-6 for each of two statistics; another scale must be seen."""
    number = 3000
    drawn = workshop.run(f"SELECT sqlrs.laplace({epsilon}, {bound}) "
                         f"FROM generate_series(1, {number})")  # fmt: skip
    draws = [int(one) for (one,) in drawn]
    allowed = deviation_allowed(number, 1e-6)
    assert gap(draws, epsilon, bound) <= allowed
    signs = [one > 0 for one in draws if one]
    assert abs(sum(signs) / len(signs) - 0.5) <= deviation_allowed(len(signs), 1e-6)
    assert gap(draws, epsilon, 2 * bound) > allowed


def test_an_integer_below_a_bound_is_uniform(workshop: Desk) -> None:
    for bound in (1, 3, 2**128 + 2**127):
        drawn = workshop.run(f"SELECT sqlrs.integer_below({bound}) FROM generate_series(1, 2000)")
        numbers = [int(one) for (one,) in drawn]
        assert all(0 <= one < bound for one in numbers)
        third = sum(3 * one < bound for one in numbers) / len(numbers)
        expected = 1 if bound == 1 else 1 / 3
        assert abs(third - expected) <= deviation_allowed(len(numbers), 1e-6)


@pytest.mark.parametrize("call", ["laplace(0, 1)", "laplace(NULL, 1)", "laplace(1, NULL)",
                                  "laplace(1, -1)", "laplace(1, 'NaN')", "laplace(1, 0.5)",
                                  "laplace('NaN', 1)", "integer_below(0)",
                                  "integer_below('Infinity')"])  # fmt: skip
def test_there_is_no_noise_of_no_scale(workshop: Desk, call: str) -> None:
    with pytest.raises(psycopg.errors.RaiseException):
        workshop.run(f"SELECT sqlrs.{call}")


def test_a_bound_of_nothing_needs_no_noise(workshop: Desk) -> None:
    assert workshop.run("SELECT sqlrs.laplace(1, 0)") == [(0,)]


def test_a_count_that_fixes_its_own_sensitivity_has_the_noise_of_a_table(hospital: Desk) -> None:
    """Also where public rows repeat a private one: the bound is their greatest number, 3."""
    hospital.run("CREATE TABLE tag (ward text NOT NULL, tag text NOT NULL)")
    hospital.run("INSERT INTO tag VALUES ('A', 'x'), ('A', 'y'), ('A', 'x'), ('B', 'x')")
    statement = "SELECT count(*) FROM visit v JOIN tag t ON v.ward = t.ward"
    definition = hospital.install(statement, public=["ward", "tag"], repeats=False,
                                  budget="1000000", dataset_budget="1000000")  # fmt: skip
    assert definition.constant
    assert definition.least_epsilon == Decimal("0.000001")
    ((true,),) = hospital.run(statement)
    assert hospital.run("SELECT * FROM sqlrs.asked(1000)", "ada") == [(true, 1000, "laplace noise")]
    hospital.run("CREATE OR REPLACE FUNCTION sqlrs.laplace(epsilon numeric, bound numeric) "
                 "RETURNS numeric LANGUAGE sql AS 'SELECT bound'")  # fmt: skip
    assert hospital.ask("1") == true + 3
    assert not hospital.define(
        "SELECT count(*) FROM visit v JOIN stay s ON s.visit = v.id"
    ).constant


@pytest.mark.parametrize("function", ["release", "noisy", "told", "one", "this_query"])
def test_names_of_columns_are_never_taken_for_others(hospital: Desk, function: str) -> None:
    names = ["one", 'it"s $1', "caller", "told_rows", "ticket", "returned_1", "value", "analyst"]
    columns = ", ".join(
        'count(*) FILTER (WHERE id <= {}) AS "{}"'.format(10 * i, name.replace('"', '""'))
        for i, name in enumerate(names, 1)
    )
    hospital.install_table(
        f"SELECT urgent AS epsilon_, {columns} FROM visit GROUP BY urgent", name=function
    )
    rows = hospital.run(f"SELECT * FROM sqlrs.{function}(1000)", "ada")
    plain = hospital.run(f"SELECT urgent, {columns} FROM visit GROUP BY urgent")
    # Epsilon is shared by eight: the noise is 0 but for a chance of about 1e-25.
    assert multiset(rows) == multiset(plain)
    assert hospital.run(f"SELECT * FROM sqlrs.{function}(1000)", "ada") == rows


def test_the_command_installs_and_lists_a_table_with_a_parameter(hospital: Desk) -> None:
    hospital.analyst("ada")
    sqlrs = [sys.executable, "-m", "sqlrs"]
    command = [
        *(*sqlrs, "install", "SELECT urgent, count(*) AS n FROM visit WHERE age > $1 GROUP BY 1"),
        *("--name", "by_urgency", "--parameter", "int", "--db", hospital.url, "--grant", "ada"),
        *("--budget", "2000", "--dataset-budget", "2000"),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "SELECT * FROM sqlrs.by_urgency(epsilon => …, p1 => …)" in run.stdout
    rows = hospital.run("SELECT * FROM sqlrs.by_urgency(epsilon => 1000, p1 => 3)", "ada")
    plain = "SELECT urgent, count(*) FROM visit WHERE age > 3 GROUP BY 1"
    assert multiset(rows) == multiset(hospital.run(plain))
    listed = [*sqlrs, "installed", "--db", hospital.url]
    shown = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    assert "by_urgency  dataset data  laplace noise  epsilon from 0.000001" in shown
    remove = [*sqlrs, "uninstall", "--db", hospital.url, "--name", "by_urgency"]
    subprocess.run(remove, check=True)
    assert hospital.run("SELECT count(*) FROM pg_proc WHERE proname = 'by_urgency'") == [(0,)]
    assert hospital.spent()["ada"] == 1000
