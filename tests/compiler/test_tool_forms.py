"""to_char as a key and date_trunc of a cast mean what PostgreSQL means by them, on both engines."""

from __future__ import annotations

import duckdb
import psycopg
import pytest
from sqlglot import exp

import sqlrs
from sqlrs.compiler.complexity import parse_tokens, tokens_of
from sqlrs.compiler.tool_forms import with_known_forms
from sqlrs.errors import QueryRefused

FORMS = ("YYYY", "YYYY-MM", "YYYY-MM-DD", "MM", "DD")
DAYS = ("0001-01-01", "0999-12-31", "1969-07-20", "2024-02-29", "9999-12-31")
OUTSIDE = ("infinity", "-infinity", "10000-01-01", "0044-03-15 BC")
KEYS = "SELECT to_char(day, 'YYYY-MM') AS month, count(*) FROM visit WHERE day BETWEEN "


def meant(text: str, dialect: str) -> str:
    tokens = tokens_of(text, dialect)
    (tree,) = parse_tokens(tokens, text, dialect)
    return with_known_forms(tree, tokens).sql(dialect)


@pytest.mark.parametrize("kind", ["date", "timestamp"])
def test_to_char_is_postgresql_s_in_the_years_1_to_9999(postgres_db: str, kind: str) -> None:
    with psycopg.connect(postgres_db) as server, duckdb.connect() as local:
        for day in (*DAYS, *OUTSIDE):
            here = "0043-03-15 (BC)" if day.endswith("BC") else day
            asked = [f"to_char(CAST('{day}' AS {kind}), '{form}')" for form in FORMS]
            own = server.execute(f"SELECT {', '.join(asked)}").fetchone()
            expected = own if day in DAYS else (None,) * len(FORMS)
            assert server.execute(meant(f"SELECT {', '.join(asked)}", "postgres")).fetchone() == (
                expected
            )
            text = f"SELECT {', '.join(asked)}".replace(day, here)
            assert local.execute(meant(text, "duckdb")).fetchone() == expected
        # The infinite ones are exact, too.
        assert server.execute("SELECT to_char(DATE 'infinity', 'YYYY')").fetchone() == (None,)


def test_other_forms_and_conditions_stay_as_they_are() -> None:
    for text in (
        "SELECT to_char(d, 'FMMonth') FROM t",
        "SELECT to_char(d, f) FROM t",
        "SELECT count(*) FROM t WHERE to_char(d, 'YYYY') = '2024'",
        "SELECT count(to_char(d, 'YYYY')) FROM t",
        "SELECT strftime(d, '%Y') FROM t",
    ):
        tokens = tokens_of(text, "duckdb")
        (tree,) = parse_tokens(tokens, text, "duckdb")
        assert not with_known_forms(tree, tokens).find(exp.Case), text


def test_months_as_texts_are_keys_where_the_days_are_bounded() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visit (id INT PRIMARY KEY, day DATE NOT NULL)")
    connection.execute(
        "INSERT INTO visit SELECT i, DATE '2024-01-01' + CAST(i % 91 AS INT) "
        "FROM generate_series(0, 90) AS t(i)"
    )
    with sqlrs.connect(connection) as database:
        bounded = f"{KEYS} DATE '2024-01-01' AND DATE '2024-03-31' GROUP BY 1 ORDER BY 1"
        assert database.query(bounded, 1000).rows == (
            ("2024-01", 31),
            ("2024-02", 29),
            ("2024-03", 31),
        )
        by_month = bounded.replace(
            "to_char(day, 'YYYY-MM')", "date_trunc('month', CAST(day AS DATE))"
        )
        assert [row[1] for row in database.query(by_month, 1000).rows] == [31, 29, 31]
        with pytest.raises(QueryRefused, match="unknown_domain"):
            database.query(f"{KEYS.partition(' WHERE')[0]} GROUP BY 1", 1)
        for refused, hint in (
            ("to_char(day, 'YYYY') = '2024'", "compare the day itself"),
            ("age(day) > INTERVAL '1 year'", "compare the day itself"),
            ("CAST(day AS TIMESTAMP) AT TIME ZONE 'UTC' > TIMESTAMP '2024-01-01'", "a view"),
        ):
            with pytest.raises(QueryRefused, match=hint):
                database.count(f"SELECT count(*) FROM visit WHERE {refused}", 1)
