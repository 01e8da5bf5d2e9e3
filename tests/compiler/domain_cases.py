"""Tables, keys with the values that they can have, and how a test finds a domain and reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from sqlrs.catalog import Catalog, Column, Listed, Range, Referred, Table
from sqlrs.compiler.domains import find_domains
from sqlrs.compiler.flat import FlatQuery
from sqlrs.compiler.inline import inline
from sqlrs.compiler.understand import read_select
from sqlrs.measures import KeyDomain
from tests.compiler.schema import BIGINT, BOOLEAN, DATE, DECIMAL, DOUBLE, INTEGER, TEXT, TIMESTAMP
from tests.support.engine_fixtures import BothEngines, Row

REGION = Table(
    "region",
    (Column("r_key", INTEGER, nullable=False), Column("r_name", TEXT)),
    frozenset({frozenset({"r_key"})}),
    private=False,
)
NATION = Table(
    "nation",
    (
        Column("n_key", INTEGER, nullable=False),
        Column("n_region", INTEGER),
        Column("n_name", TEXT),
        Column("n_rate", DECIMAL),
    ),
    frozenset({frozenset({"n_key"})}),
    private=False,
)
SECRET = Table("secret", (Column("id", INTEGER),))
VISIT = Table(
    "visit",
    (
        Column("id", BIGINT, nullable=False),
        Column("nation", INTEGER, domain=Referred((None, "nation"), "n_key", "visit.nation REF")),
        Column("hidden", INTEGER, domain=Referred((None, "secret"), "id", "visit.hidden REF")),
        Column("status", TEXT, domain=Listed(("F", "O", "P"), "CHECK of visit.status")),
        Column("grade", INTEGER, False, Range(1, 5, "CHECK of visit.grade")),
        Column("age", INTEGER, domain=Range(0, 120, "owner's domain")),
        Column("wide", BIGINT, domain=Range(0, 2**40, "CHECK of visit.wide")),
        Column(
            "held", DATE, domain=Range(date(2024, 1, 1), date(2024, 1, 3), "CHECK of visit.held")
        ),
        Column("fee", DECIMAL, domain=Listed((Decimal("1.50"), Decimal(2)), "owner's domain")),
        Column("day", DATE),
        Column("at", TIMESTAMP),
        Column("urgent", BOOLEAN),
        Column("sure", BOOLEAN, nullable=False),
        Column("score", DOUBLE),
        Column("name", TEXT),
        Column("number", INTEGER),
        Column("place", INTEGER, nullable=False),
        Column("cost", DECIMAL, domain=Range(Decimal("-0.5"), Decimal("29.99"), "CHECK of cost")),
    ),
    frozenset({frozenset({"id"})}),
)
TABLES = (REGION, NATION, SECRET, VISIT)
PUBLIC: dict[str, Sequence[Row]] = {
    "region": [(1, "north"), (2, "south"), (3, None)],
    "nation": [
        (10, 1, "a", Decimal("1.00")),
        (11, 1, "b", Decimal("2.00")),
        (12, 2, "c", None),
        (13, None, "d", Decimal("0.50")),
        (14, 2, "a", None),
    ],
}
DIALECTS = ("duckdb", "postgres")


def catalog_of(dialect: str, tables: Sequence[Table] = TABLES) -> Catalog:
    return Catalog(dialect, tuple(tables), search_path=("main",))


def flat_of(body: str, *keys: str, catalog: Catalog) -> FlatQuery:
    """The flat query of FROM and WHERE, grouped by the keys."""
    sql = f"SELECT count(DISTINCT ({', '.join([*keys, '1'])})) {body}"
    flat = inline(read_select(sql, catalog), catalog)
    assert flat.distinct is not None
    return replace(flat, keys=flat.distinct[:-1], distinct=None)


def domains_of(
    dialect: str, body: str, *keys: str, tables: Sequence[Table] = TABLES
) -> tuple[KeyDomain, ...]:
    catalog = catalog_of(dialect, tables)
    return find_domains([flat_of(body, *keys, catalog=catalog)], catalog)


def rows_of(domain: KeyDomain, dialect: str, engines: BothEngines) -> list[Row]:
    """The rows of a domain, which reads public tables alone and has no row twice."""
    select = domain.select
    assert isinstance(select, exp.Select)
    assert [one.alias_or_name for one in select.expressions] == [f"k{n}" for n in domain.keys]
    public = {table.name for table in TABLES if not table.private}
    named = {one.name for one in select.find_all(exp.Table) if isinstance(one.this, exp.Identifier)}
    assert named <= public
    with engines.engines[dialect].snapshot() as snapshot:
        rows = [tuple(row) for row in snapshot.rows(select)]
    assert len(set(rows)) == len(rows)
    return sorted(rows, key=repr)


FINITE: list[tuple[str, list[object]]] = [
    ("status", ["F", "O", "P", None]),
    ("grade", [1, 2, 3, 4, 5]),
    ("age", [*range(121), None]),
    ("held", [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3), None]),
    ("fee", [Decimal("1.50"), Decimal("2.00"), None]),
    ("urgent", [False, True, None]),
    ("sure", [False, True]),
    ("nation", [10, 11, 12, 13, 14, None]),
    ("extract(month FROM day)", [*range(1, 13), None]),
    ("extract(day FROM at)", [*range(1, 32), None]),
    ("extract(dow FROM day)", [*range(7), None]),
    ("extract(isodow FROM day)", [*range(1, 8), None]),
    ("extract(quarter FROM day)", [*range(1, 5), None]),
    ("extract(week FROM day)", [*range(1, 54), None]),
    ("extract(doy FROM day)", [*range(1, 367), None]),
    ("extract(hour FROM at)", [*range(24), None]),
    ("extract(minute FROM at)", [*range(60), None]),
    ("extract(month FROM held)", [1, None]),
    ("floor(age / 10)", [*range(13), None]),
    ("age % 10", [*range(10), None]),
    ("number % 3", [-2, -1, 0, 1, 2, None]),
    ("place % 3", [-2, -1, 0, 1, 2]),
    ("(number % 7 + 1) % 2", [-1, 0, 1, None]),
    ("number > 3", [False, True, None]),
    ("place > 3", [False, True]),
    ("number IS NULL", [False, True]),
    ("number IS NOT NULL", [False, True]),
    ("name LIKE 'a%' AND place = 1", [False, True, None]),
    ("CASE WHEN number > 1 THEN 'a' ELSE 'b' END", ["a", "b"]),
    ("CASE WHEN number > 1 THEN 'a' END", ["a", None]),
    ("CASE name WHEN 'x' THEN 1 WHEN 'y' THEN 2.5 ELSE NULL END", [1, Decimal("2.5"), None]),
    ("CASE WHEN number > 1 THEN 0 ELSE CASE WHEN sure THEN 1 ELSE 2 END END", [0, 1, 2]),
    ("CASE WHEN number > 1 THEN status ELSE 'other' END", ["F", "O", "P", "other", None]),
    ("coalesce(status, 'none')", ["F", "O", "P", "none"]),
    ("nullif(grade, 3)", [1, 2, 4, 5, None]),
    ("lower(status)", ["f", "o", "p", None]),
    ("status || CAST(grade AS text)", [*(f"{s}{g}" for s in "FOP" for g in range(1, 6)), None]),
    ("grade * 10", [10, 20, 30, 40, 50]),
    ("floor(cost / 10)", [-1, 0, 1, 2, None]),
    ("floor(cost)", [*range(-1, 30), None]),
    ("ceil(cost / 10) * 10", [0, 10, 20, 30, None]),
    ("CAST(floor((cost + 5) / 10) AS integer)", [0, 1, 2, 3, None]),
    ("floor(wide / 400000000000)", [0, 1, 2, None]),
    ("'x'", ["x"]),
    ("1 + 1", [2]),
]  # fmt: skip

LEFT: list[tuple[str, str, list[object]]] = [
    ("number IN (3, 4, NULL)", "number", [3, 4]),
    ("number = 7", "number", [7]),
    ("7 = number", "number", [7]),
    ("number = 7 OR number IN (8, 9)", "number", [7, 8, 9]),
    ("number IN (1, 2, 3) AND number <> 2", "number", [1, 3]),
    ("number BETWEEN -1 AND 1", "number", [-1, 0, 1]),
    ("number >= 1 AND number < 4", "number", [1, 2, 3]),
    ("1 < number AND 4 > number", "number", [2, 3]),
    ("NOT (number < 1 OR number > 2)", "number", [1, 2]),
    ("number BETWEEN 1 AND 9999999 AND number < 3", "number", [1, 2]),
    ("number BETWEEN 2147483646 AND 9000000000", "number", [2**31 - 2, 2**31 - 1]),
    ("number IN (1, 9000000000)", "number", [1]),
    ("day BETWEEN '2024-02-28' AND '2024-03-01'", "day",
     [date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1)]),
    ("day > DATE '2024-01-01' AND day < DATE '2024-01-03'", "day", [date(2024, 1, 2)]),
    ("day = '2024-01-01'", "day", [date(2024, 1, 1)]),
    ("at = TIMESTAMP '2024-01-01 12:30:00'", "at", [datetime(2024, 1, 1, 12, 30)]),
    ("name IN ('b', 'a', 'a')", "name", ["a", "b"]),
    ("name = 'it''s'", "name", ["it's"]),
    ("score IN (0.5, 1.5)", "score", [0.5, 1.5]),
    ("score = 0.0 OR score = -0.0", "score", [0.0]),
    ("fee IN (1.505, 2)", "fee", [Decimal(2)]),
    ("urgent", "urgent", [True]),
    ("NOT urgent", "urgent", [False]),
    ("urgent IS NOT NULL", "urgent", [False, True]),
    ("status <> 'P'", "status", ["F", "O"]),
    ("status IS NULL", "status", [None]),
    ("age >= 118", "age", [118, 119, 120]),
    ("wide < 3", "wide", [0, 1, 2]),
    ("nation > 12", "nation", [13, 14]),
    ("nation IS NOT NULL", "nation", [10, 11, 12, 13, 14]),
    ("extract(year FROM day) IN (1995, 1996)", "extract(year FROM day)", [1995, 1996]),
    ("extract(year FROM day) BETWEEN 1995 AND 1997", "extract(YEAR FROM visit.day)",
     [1995, 1996, 1997]),
    ("extract(month FROM day) IS NOT NULL", "extract(month FROM day)", [*range(1, 13)]),
    ("extract(month FROM day) < 3", "extract(month FROM day)", [1, 2]),
    ("day BETWEEN '2023-12-30' AND '2024-01-02'", "extract(year FROM day)", [2023, 2024]),
    ("at >= '2023-01-01' AND at < '2023-03-01'", "extract(month FROM at)", [1, 2]),
    ("at >= '2023-01-01' AND at <= '2023-03-01'", "extract(month FROM at)", [1, 2, 3]),
    ("at >= '2023-01-01 12:00:00' AND at < '2023-03-01'", "date_trunc('month', at)",
     [datetime(2023, 1, 1), datetime(2023, 2, 1)]),
    ("at > '2024-02-28 22:59:59' AND at < '2024-02-29 01:00:00'", "date_trunc('hour', at)",
     [datetime(2024, 2, 28, 22), datetime(2024, 2, 28, 23), datetime(2024, 2, 29)]),
    ("at BETWEEN '2024-02-28 23:58:30' AND '2024-02-29'", "date_trunc('minute', at)",
     [datetime(2024, 2, 28, 23, 58), datetime(2024, 2, 28, 23, 59), datetime(2024, 2, 29)]),
    ("at >= '2024-02-28 23:00:00' AND at < '2024-02-29 01:00:00'",
     "extract(day FROM at) * 100 + extract(hour FROM at)", [2823, 2900]),
    ("at BETWEEN '2024-02-28 23:00:00' AND '2024-03-01 01:00:00'", "CAST(at AS DATE)",
     [date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1)]),
    ("at BETWEEN '2024-01-01' AND '2024-01-02'", "extract(hour FROM at)", [*range(24)]),
    ("number IN (1, 2, 3)", "number * number", [1, 4, 9]),
    ("number BETWEEN 1 AND 3 AND number <> grade", "number + grade", [*range(3, 9)]),
    ("score BETWEEN -0.5 AND 2.5", "floor(score)", [-1, 0, 1, 2]),
    ("score BETWEEN 0 AND 1", "floor(score * 4) / 4", [0, 0.25, 0.5, 0.75, 1]),
    ("score >= 0 AND score < 1.5", "round(score)", [0, 1, 2]),
    ("cost >= 10", "floor(cost / 10)", [1, 2]),
    ("lower(name) IN ('a', 'b')", "lower(name)", ["a", "b"]),
    ("CAST(at AS DATE) = '2024-01-01'", "CAST(at AS DATE)", [date(2024, 1, 1)]),
]  # fmt: skip

HELD: list[tuple[str, str, list[object]]] = [
    ("FROM visit v JOIN nation n ON v.nation = n.n_key", "n.n_name", ["a", "b", "c", "d"]),
    ("FROM visit v JOIN nation n ON v.nation = n.n_key", "v.nation", [10, 11, 12, 13, 14]),
    ("FROM visit v, nation n WHERE v.nation = n.n_key AND n.n_name < 'c'", "v.nation",
     [10, 11, 14]),
    ("FROM visit v, nation n WHERE v.nation = n.n_key AND v.nation < 12", "n.n_name",
     ["a", "b"]),
    ("FROM visit v, nation n WHERE v.nation = n.n_key", "v.nation % 2 = 0", [False, True]),
    ("FROM visit v, nation n", "n.n_region", [1, 2, None]),
    ("FROM visit v, nation n WHERE v.number = n.n_region", "n.n_region", [1, 2]),
    ("FROM visit v, nation n WHERE v.number = n.n_region", "v.number", [1, 2]),
    ("FROM visit v, nation n, region r WHERE v.number = n.n_region AND r.r_key = v.number",
     "r.r_name", ["north", "south"]),
    ("FROM visit v, nation n, region r WHERE n.n_region = r.r_key AND r.r_name = 'north'",
     "upper(n.n_name)", ["A", "B"]),
    ("FROM visit v, nation n, region r WHERE v.number < n.n_key", "r.r_name",
     ["north", "south", None]),
    ("FROM visit v, nation n, region r WHERE n.n_key > 13", "n.n_name || r.r_name",
     ["anorth", "asouth", None]),
    ("FROM visit v, nation n", "n.n_rate > 1", [False, True, None]),
]  # fmt: skip
