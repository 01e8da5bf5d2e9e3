"""Domains of columns whose types have a look of their own: enums, padded and collated texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import duckdb
import psycopg
import pytest
from sqlglot import parse_one

from sqlrs.catalog import Catalog, Column, Family, Listed, PublicDomain, Range, Table
from sqlrs.compiler.domains import find_domains
from sqlrs.engines.base import Engine
from sqlrs.engines.open import open_engine
from sqlrs.errors import QueryRefused
from sqlrs.measures import KeyDomain
from tests.compiler.domain_cases import flat_of
from tests.compiler.schema import TEXT
from tests.support.engine_fixtures import Row
from tests.support.postgres_server import PostgresServer

LETTERS = Listed(("a", "A", "b"), "a list")
DOMAINS: Mapping[str, PublicDomain] = {
    "mood": Listed(("sad", "so so"), "the enum"),
    "status": Listed(("F", "OK"), "CHECK"),
    "folded": LETTERS,
    "plain": LETTERS,
    "small": Listed((1, 2, 40_000), "a list"),
    "ratio": Listed((Decimal("0.5"), Decimal("-1.5")), "a list"),
    "moment": Range(datetime(2024, 1, 31, 12), datetime(2024, 2, 1, 12), "CHECK"),
    "zoned": Range(
        datetime(2024, 1, 31, 12, tzinfo=UTC), datetime(2024, 2, 2, tzinfo=UTC), "CHECK"
    ),
    "first": Range(date(1, 1, 1), date(1, 1, 2), "CHECK"),
    "huge": Range(2**62, 2**62 + 1, "CHECK"),
}


@pytest.fixture(scope="module")
def in_duckdb() -> Iterator[Engine]:
    connection = duckdb.connect()
    connection.execute(
        """
        CREATE TABLE t (
          mood ENUM('sad', 'so so'), folded VARCHAR COLLATE NOCASE, plain VARCHAR, small SMALLINT,
          ratio DOUBLE, moment TIMESTAMP, first DATE NOT NULL, huge HUGEINT
        )
        """
    )
    with closing(open_engine(connection)) as engine:
        yield engine


@pytest.fixture(scope="module")
def in_postgres(postgres_server: PostgresServer) -> Iterator[Engine]:
    with postgres_server.database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                """
                CREATE SCHEMA "odd schema";
                CREATE TYPE "odd schema"."Mood" AS ENUM ('sad', 'so so');
                CREATE COLLATION ci (
                  provider = icu, locale = 'und-u-ks-level2', deterministic = false
                );
                CREATE TABLE t (
                  mood "odd schema"."Mood", status character(2), folded text COLLATE ci,
                  plain varchar(9), small smallint, ratio double precision, moment timestamp(0),
                  zoned timestamptz, first date NOT NULL
                );
                INSERT INTO t (mood, status, folded, first) VALUES ('so so', 'F', 'B', '0001-01-02')
                """
            )
        with closing(open_engine(url)) as engine:
            yield engine


def catalog_of(engine: Engine) -> Catalog:
    catalog = engine.catalog()
    [table] = catalog.tables
    columns = tuple(replace(one, domain=DOMAINS.get(one.name)) for one in table.columns)
    return replace(catalog, tables=(replace(table, columns=columns),))


def domain_of(engine: Engine, key: str, where: str = "") -> KeyDomain:
    catalog = catalog_of(engine)
    [domain] = find_domains([flat_of(f"FROM t {where}", key, catalog=catalog)], catalog)
    return domain


def read(engine: Engine, domain: KeyDomain) -> set[object]:
    with engine.snapshot() as snapshot:
        rows: list[Row] = snapshot.rows(domain.select)  # type: ignore[arg-type]
    assert len(rows) == len({row[0] for row in rows})
    return {row[0] for row in rows}


@pytest.fixture(params=["in_duckdb", "in_postgres"])
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.getfixturevalue(request.param)
    return found


BOTH: list[tuple[str, str, set[object]]] = [
    ("mood", "", {"sad", "so so", None}),
    ("mood", "WHERE mood = 'sad'", {"sad"}),
    ("mood", "WHERE mood IN ('sad', 'so so')", {"sad", "so so"}),
    ("CASE WHEN mood = 'sad' THEN 1 ELSE 0 END", "", {0, 1}),
    ("plain", "", {"a", "A", "b", None}),
    ("plain", "WHERE plain IN ('x', 'X')", {"x", "X"}),
    ("small", "", {1, 2, None}),
    ("ratio", "", {0.5, -1.5, None}),
    ("ratio", "WHERE ratio > 0", {0.5}),
    ("date_trunc('month', moment)", "", {datetime(2024, 1, 1), datetime(2024, 2, 1), None}),
    ("CAST(moment AS date)", "WHERE moment < '2024-02-01'", {date(2024, 1, 31)}),
    ("CAST(moment AS date)", "WHERE moment IS NOT NULL", {date(2024, 1, 31), date(2024, 2, 1)}),
    ("CAST(moment AS date)", "WHERE moment <> '2024-02-01'", {date(2024, 1, 31), date(2024, 2, 1)}),
    ("extract(hour FROM moment)", "", {*range(24), None}),
    ("extract(hour FROM moment)", "WHERE moment > '2024-02-01'", {*range(13)}),
    ("first", "", {date(1, 1, 1), date(1, 1, 2)}),
    ("first", "WHERE first < '0001-01-02'", {date(1, 1, 1)}),
]  # fmt: skip


@pytest.mark.parametrize(("key", "where", "expected"), BOTH)
def test_values(engine: Engine, key: str, where: str, expected: set[object]) -> None:
    assert read(engine, domain_of(engine, key, where)) == expected


@pytest.mark.parametrize("where", ["", "WHERE folded IN ('a', 'A', 'b')"])
def test_texts_that_the_database_holds_equal_are_one_group(engine: Engine, where: str) -> None:
    found = read(engine, domain_of(engine, "folded", where))
    assert {None if one is None else str(one).lower() for one in found} - {None} == {"a", "b"}
    assert len(found - {None}) == 2
    assert (None in found) == (not where)


def test_whole_numbers_wider_than_64_bits(in_duckdb: Engine) -> None:
    assert read(in_duckdb, domain_of(in_duckdb, "huge")) == {2**62, 2**62 + 1, None}


def test_a_padded_text_is_not_cut(in_postgres: Engine) -> None:
    found = read(in_postgres, domain_of(in_postgres, "status"))
    assert {one if one is None else str(one).rstrip() for one in found} == {"F", "OK", None}


def test_moments_in_a_zone(in_postgres: Engine) -> None:
    found = read(in_postgres, domain_of(in_postgres, "date_trunc('month', zoned)"))
    assert {(one.year, one.month) if isinstance(one, datetime) else one for one in found} == {
        (2024, 1),
        (2024, 2),
        None,
    }


@pytest.mark.parametrize("key", ["mood", "status", "folded", "first"])
def test_rows_find_their_group(in_postgres: Engine, key: str) -> None:
    """What is printed equals what is stored, by the database's own equality."""
    domain = domain_of(in_postgres, key)
    with in_postgres.snapshot() as snapshot:
        select = domain.select.sql("postgres")  # type: ignore[attr-defined]
        joined = parse_one(
            f"SELECT count(*) FROM t JOIN ({select}) AS d ON t.{key} = d.k0", dialect="postgres"
        )
        assert snapshot.scalar(joined) == 1  # type: ignore[arg-type]


def test_a_type_without_a_name_has_no_list() -> None:
    for family, collation in ((Family.OPAQUE, None), (Family.TEXT, "unknown")):
        kind = replace(Column("x", TEXT).type, family=family, collation=collation)
        table = Table("t", (Column("x", kind, domain=LETTERS),))
        catalog = Catalog("duckdb", (table,))
        with pytest.raises(QueryRefused) as caught:
            find_domains([flat_of("FROM t", "x", catalog=catalog)], catalog)
        assert "not known without" in caught.value.message
