"""to_char, age, AT TIME ZONE and date_trunc mean what PostgreSQL means by them, on both engines."""

from __future__ import annotations

from itertools import product

import duckdb
import psycopg
import pytest
from sqlglot import exp

import sqlrs
from sqlrs.compiler.complexity import parse_tokens, tokens_of
from sqlrs.compiler.tool_forms import with_known_forms
from sqlrs.errors import QueryRefused

FORMS = (
    *("YYYY", "YYYY-MM", "YYYY-MM-DD", "MM", "DD", "YYYYMMDD", "DD.MM.YYYY", "Q", "YYYY Q"),
    *("HH24", "YYYY-MM-DD HH24:MI:SS", "HH24MISS", "MI/SS", "IYYY-IW", "IYYYIWID", "ID", "Q-"),
)
DAYS = (
    *("0001-01-01", "0999-12-31", "1969-07-20", "2024-02-29", "9999-12-31", "2021-01-03"),
    *("2020-12-31 23:59:59.999999", "2024-03-31 02:30:00", "1600-01-01 00:00:00.5"),
)
MOMENTS = (
    *("2024-02-29", "2023-02-28 23:59:59.75", "2024-03-31", "2024-03-30 12:00", "1999-12-31"),
    *("2000-01-01 00:00:01", "1582-10-15", "2024-01-31 06:07:08", "2023-12-01", "2100-02-28"),
)
OUTSIDE = ("infinity", "-infinity", "10000-01-01", "0044-03-15 BC")
KEYS = "SELECT to_char(day, 'YYYY-MM') AS month, count(*) FROM visit WHERE day BETWEEN "


def meant(text: str, dialect: str) -> str:
    tokens = tokens_of(text, dialect)
    (tree,) = parse_tokens(tokens, text, dialect)
    return with_known_forms(tree, tokens, dialect).sql(dialect)


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


def test_forms_of_names_and_other_calls_stay_as_they_are() -> None:
    for text in (
        "SELECT to_char(d, 'FMMonth') FROM t",
        "SELECT to_char(d, f) FROM t",
        "SELECT strftime(d, '%Y') FROM t",
        *(
            f"SELECT to_char(d, '{form}') FROM t"
            for form in ("", "-", "Month", "DDD", "IDDD", "SSSS", "DDTH", "HH12", "YYYY Y", "TMMM")
        ),
    ):
        tokens = tokens_of(text, "duckdb")
        (tree,) = parse_tokens(tokens, text, "duckdb")
        assert not with_known_forms(tree, tokens, "duckdb").find(exp.Case), text


@pytest.mark.parametrize("kind", ["date", "timestamp"])
def test_age_is_postgresql_s_on_both_engines(postgres_db: str, kind: str) -> None:
    with psycopg.connect(postgres_db) as server, duckdb.connect() as local:
        # Between two days PostgreSQL takes the time zone of the session, in which some days lack
        # an hour; what the compiler makes of them does not.
        server.execute("SET TimeZone = 'America/Sao_Paulo'")
        for one, other in product(MOMENTS, repeat=2):
            age = f"age(CAST('{one}' AS {kind}), CAST('{other}' AS {kind}))"
            parts = [f"extract({part} FROM {age})" for part in ("year", "month", "day", "hour")]
            text = f"SELECT {', '.join(parts)}, {age} > INTERVAL '18 years', {age} = {age}"
            plain = text.replace("AS date)", "AS date)::timestamp")
            expected = server.execute(plain).fetchone()
            assert server.execute(meant(text, "postgres")).fetchone() == expected, (one, other)
            assert local.execute(meant(text, "duckdb")).fetchone() == expected, (one, other)


def test_utc_is_the_same_on_both_engines(postgres_db: str) -> None:
    with psycopg.connect(postgres_db) as server, duckdb.connect() as local:
        server.execute("SET TimeZone = 'Asia/Kolkata'")
        local.execute("SET TimeZone = 'Asia/Kolkata'")
        for moment in MOMENTS:
            clock = moment if ":" in moment else f"{moment} 00:00"
            text = (
                f"SELECT extract(epoch FROM (TIMESTAMP '{moment}' AT TIME ZONE 'UTC')), "
                f"CAST(TIMESTAMPTZ '{clock}+00' AT TIME ZONE 'UTC' AS text)"
            )
            assert local.execute(text).fetchone() == server.execute(text).fetchone()


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
            ("to_char(day, 'Month') = 'May'", "a form of digits"),
            ("age(day) > INTERVAL '1 year'", "reads the clock"),
            ("age(now(), day) > INTERVAL '1 year'", "volatile"),
            ("age('today', day) > INTERVAL '1 year'", "volatile"),
            ("CAST(day AS TIMESTAMP) AT TIME ZONE 'Europe/Paris' > TIMESTAMP '2024-01-01'", "view"),
            ("CAST(day AS TIMESTAMP) AT TIME ZONE zone > TIMESTAMP '2024-01-01'", "view"),
        ):
            with pytest.raises(QueryRefused, match=hint):
                database.count(f"SELECT count(*) FROM visit WHERE {refused}", 1)


CONDITIONS = {
    "to_char(day, 'YYYY-MM') = '2024-02'": 29,
    "to_char(moment, 'HH24:MI') < '02:00'": 48,
    "to_char(day, 'IW') IN ('01', '02')": 14,
    "age(DATE '2024-04-01', day) >= INTERVAL '2 months'": 32,
    "age(moment, day) > INTERVAL '1 year'": 0,
    "extract(day FROM age(DATE '2024-03-31', day)) = 0": 2,
    "moment AT TIME ZONE 'UTC' >= TIMESTAMPTZ '2024-01-01 03:00:00+00'": 19,
}


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_conditions_and_keys_count_the_same_rows(
    engine: str, request: pytest.FixtureRequest
) -> None:
    rows = (
        "CREATE TABLE visit (id INT PRIMARY KEY, day DATE NOT NULL, moment TIMESTAMP NOT NULL); "
        "INSERT INTO visit SELECT i, DATE '2024-01-01' + CAST(i AS INT), "
        "TIMESTAMP '2024-01-01' + i * INTERVAL '151 seconds' FROM generate_series(0, 90) AS t(i)"
    )
    opened: duckdb.DuckDBPyConnection | str
    if engine == "duckdb":
        opened = duckdb.connect()
        opened.execute(rows)
    else:
        opened = request.getfixturevalue("postgres_db")
        with psycopg.connect(str(opened), autocommit=True) as server:
            server.execute(rows)
    with sqlrs.connect(opened) as database:
        for condition, expected in CONDITIONS.items():
            text = f"SELECT count(*) FROM visit WHERE {condition}"
            assert int(database.count(text, 1000)) == expected, condition
        months = database.query(
            "SELECT extract(month FROM age(DATE '2024-03-31', day)) AS m, count(*) FROM visit "
            "WHERE day BETWEEN DATE '2024-01-01' AND DATE '2024-03-31' GROUP BY 1 ORDER BY 1",
            1000,
        )
        assert [row[1] for row in months.rows] == [31, 29, 31]
