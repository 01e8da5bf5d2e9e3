"""Texts and casts whose value depends on the moment are refused, in every spelling of them."""

from __future__ import annotations

from itertools import product

import psycopg
import pytest

from sqlrs.catalog import Catalog, ColumnType, Family
from sqlrs.compiler.compile import compile_query
from sqlrs.compiler.functions import names_the_moment
from sqlrs.errors import QueryRefused
from tests.compiler.schema import BIGINT, DATE, TEXT, TIMESTAMP, table

ZONED = ColumnType(Family.TIMESTAMP_TZ, "timestamp with time zone")
TIME = ColumnType(Family.OTHER, "time without time zone")
RANGE = ColumnType(Family.OTHER, "tsrange")
CATALOG = Catalog(
    "postgres",
    (table("t", i=BIGINT, s=TEXT, dt=DATE, ts=TIMESTAMP, tz=ZONED, tm=TIME, r=RANGE),),
    search_path=("public",),
)
WORDS = ["now", "today", "tomorrow", "yesterday", "epoch", "infinity", "allballs", "noon"]
AROUND = ["{}", "{},", " {} ", ",{}", "{}.", "{};", "{} 12:00", "12:00 {}", "{} allballs", "({})"]
AROUND += ["{}12:00", "{}-", "-{}", "{}+01", "\t{}\n", "{} UTC", "'{}", "{}/", "{}_", "{}1", "T{}"]
CASES = [str.lower, str.upper, str.title]


@pytest.mark.postgres
def test_no_text_that_postgres_reads_as_the_moment_is_missed(postgres: str) -> None:
    missed, found = [], 0
    with psycopg.connect(postgres, autocommit=True) as connection:
        for word, around, case in product(WORDS, AROUND, CASES):
            text = around.format(case(word))
            for kind in ("date", "timestamp", "timestamptz", "time", "timetz"):
                # A moment of these days, or a time of this minute.
                near = "now()::timestamp" if kind in ("date", "timestamp") else "now()"
                test = (
                    f"SELECT abs(extract(epoch FROM %s::{kind} - {near})) < 300000"
                    if "time" not in kind or "stamp" in kind
                    else f"SELECT abs(extract(epoch FROM %s::{kind}::time - now()::time)) < 60"
                )
                try:
                    rows = connection.execute(test.encode(), (text,)).fetchall()
                except psycopg.Error:
                    continue
                if rows == [(True,)]:
                    found += 1
                    if not names_the_moment(text) and word not in ("noon", "allballs"):
                        missed.append((text, kind))
    assert missed == []
    assert found > 100


@pytest.mark.parametrize(
    "condition",
    [
        "dt < 'now,'::date", "dt < date 'now'", "dt < DATE ' TODAY '", "ts > 'today 12:00'",
        "tz > timestamptz 'now'", "ts < '12:00 yesterday'::timestamp", "tm < 'now'",
        "tm < time 'now,'", "r = '[today,tomorrow]'", "make_date(2024, 1, i::int) = 'today'",
        "extract(hour FROM 'now'::time) = 3", "isfinite('now')", "coalesce(dt, 'today') = dt",
        "date_trunc('day', ts) = 'yesterday'", "(dt = 'today' OR i = 1)", "dt IN ('tomorrow')",
        "CASE WHEN i = 1 THEN dt ELSE 'now,' END = dt", "s::date = dt", "s::timestamp > ts",
        "(s || '')::date = dt", "lower(s)::timestamptz = tz", "('n' || 'ow')::date = dt",
        "'2020-01-01'::text::date = dt", "coalesce(s, 'a')::date = dt", "s::varchar(9)::time = tm",
        "CASE WHEN i = 1 THEN s END::date = dt", "concat('to', 'day')::date = dt",
    ],
)  # fmt: skip
def test_what_depends_on_the_moment_is_refused(condition: str) -> None:
    with pytest.raises(QueryRefused) as caught:
        compile_query(f"SELECT count(*) FROM t WHERE {condition}", CATALOG)
    assert caught.value.code == "volatile_function"


@pytest.mark.parametrize(
    "condition",
    [
        "s = 'now'", "s LIKE '%today%'", "s || 'tomorrow' = 'a'", "dt < DATE 'epoch'",
        "dt < 'infinity'::date", "ts < TIMESTAMP '2020-01-01 12:00:00'", "ts::date = dt",
        "tz::date = dt", "(ts + INTERVAL '1 day')::date = dt", "coalesce(dt, dt)::timestamp = ts",
        "date_trunc('day', ts)::date = dt", "s = 'snow'",
        "CASE WHEN s = 'a' THEN dt END::timestamp = ts",
        "make_date(2024, 1, i::int)::timestamp = ts",
    ],
)  # fmt: skip
def test_what_is_the_same_at_every_moment_is_not(condition: str) -> None:
    compile_query(f"SELECT count(*) FROM t WHERE {condition}", CATALOG)
