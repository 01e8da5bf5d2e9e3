"""Random schemas over every type, random texts of analysts, and all their neighbours' answers.

`attack` draws tables whose columns share one type full of special values, texts that join, compare,
list and group these columns, and databases one row apart. It asks the owner's side of sqlrs and the
engine itself, and tells what breaks: a count that is not the engine's own, a failure that the
engine does not have, a count that moves by more than S, or an S that is not smooth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

import duckdb
import psycopg

import sqlrs
from sqlrs.errors import QueryRefused, SqlrsError

Target = duckdb.DuckDBPyConnection | psycopg.Connection
# β = 0.1, and e^0.1 rounded up.
_STEP = Fraction(110_518, 100_000)
_DAYS = ("'-infinity'", "'2020-02-01'", "'2020-02-02'", "'infinity'")
_MOMENTS = ("'-infinity'", "'2020-02-01 00:00:00'", "'2020-02-01 00:00:00.4'", "'infinity'")
_SPANS = ("'1 month'", "'30 days'", "'720 hours'", "'1 day'")
_FLOATS = ("'NaN'", "'Infinity'", "'-Infinity'", "'-0.0'", "'0.0'", "1.5")
_TEXTS = ("'a'", "'A'", "'a '", "''", "'b'")
_BOTH = {
    "date": _DAYS,
    "timestamp": _MOMENTS,
    "timestamptz": ("'2020-02-01 00:00:00+00'", "'2020-02-01 01:00:00+01'", "'infinity'"),
    "interval": _SPANS,
    "time": ("'24:00:00'", "'00:00:00'", "'12:30:00'"),
    "timetz": ("'12:00:00+00'", "'13:00:00+01'"),
    "real": _FLOATS,
    "double precision": _FLOATS,
    "smallint": ("-32768", "-1", "0", "1", "32767"),
    "bigint": ("-9223372036854775808", "0", "1", "9223372036854775807"),
    "numeric(8,2)": ("-999999.99", "0", "1.5", "1.50", "999999.99"),
    "boolean": ("true", "false"),
    "uuid": ("'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"),
    "mood": ("'z'", "'a'"),
    "integer[]": ("'{1,NULL}'", "'{1,2}'", "'{}'"),
    "text": _TEXTS,
}
TYPES: dict[str, dict[str, tuple[str, ...]]] = {
    "duckdb": {
        **_BOTH,
        "integer[]": ("[1, NULL]", "[1, 2]", "[]"),
        "double[]": ("['nan'::double]", "[0.0::double]", "['-0.0'::double]", "[NULL]"),
        "struct(p double, q varchar)": (
            *("{'p': 0.0, 'q': NULL}", "{'p': '-0.0'::double, 'q': NULL}"),
            *("{'p': NULL, 'q': NULL}", "{'p': 1.5, 'q': 'a'}"),
        ),
        "varchar collate nocase": _TEXTS,
        "timestamp_s": ("'2020-02-01 00:00:00'", "'2020-02-01 00:00:01'", "'infinity'"),
        "timestamp_ns": ("'2020-02-01 00:00:00'", "'2020-02-01 00:00:00.000000001'"),
        "hugeint": (str(-(2**127)), "-1", "0", "1", str(2**127 - 1)),
        "uhugeint": ("0", "1", str(2**128 - 1)),
        "ubigint": ("0", "1", str(2**64 - 1)),
        "decimal(38,2)": (f"-{'9' * 36}.99", "0", "0.01", f"{'9' * 36}.99"),
        "bit": ("'1'::bit", "'01'::bit"),
        "blob": ("'a'::blob", "'A'::blob", "''::blob"),
    },
    "postgres": {
        **_BOTH,
        "numeric": ("'NaN'", "'Infinity'", "'-Infinity'", "0", "1.5", "1.50", "1.500"),
        "char(3)": _TEXTS,
        "varchar(4)": _TEXTS,
        "citext": _TEXTS,
        "text collate ci": _TEXTS,
        'text collate "C"': _TEXTS,
        "bit(3)": ("'101'", "'000'"),
        "bytea": ("'a'", "'A'", "''"),
        "jsonb": ("'1.0'", "'1.00'", "'null'", "'[1]'"),
        "inet": ("'10.0.0.1'", "'10.0.0.1/24'"),
        "numrange": ("'[1,2]'", "'[1.0,2.0]'", "'empty'"),
    },
}
_MOOD = "CREATE TYPE mood AS ENUM ('z', 'a')"
_SET_UP = {
    "duckdb": (_MOOD,),
    "postgres": (
        _MOOD,
        "CREATE EXTENSION citext",
        "CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    ),
}
_TABLES = ("a", "b", "c")


@dataclass(frozen=True)
class Break:
    """What broke, on which text and rows."""

    kind: str
    sql: str
    rows: str
    seen: str


class _Database:
    """One schema on one engine, filled again and again."""

    def __init__(self, target: Target, random: Random, kind: str, values: Sequence[str]) -> None:
        self.target, self.random = target, random
        self.type, self.values = kind, values
        for table in _TABLES:
            null = random.choice(["", "", "NOT NULL"])
            key = random.choice(["", "PRIMARY KEY"])
            self.run(f"DROP TABLE IF EXISTS {table}")
            self.run(f"CREATE TABLE {table} (k {self.type} {null}, v {self.type}, i integer {key})")
        public = random.sample(_TABLES, random.choice([0, 0, 1]))
        self.opened = sqlrs.connect(target, public=public)
        self.private = [t for t in _TABLES if t not in public]
        self.keyed = {t.name for t in self.opened.catalog.tables if t.keys}

    def run(self, sql: str) -> list[tuple[int]]:
        """The engine's own answer."""
        if isinstance(self.target, duckdb.DuckDBPyConnection):
            return self.target.execute(sql).fetchall()
        cursor = self.target.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []

    def fill(self) -> None:
        """Few different rows, some of them often."""
        for table in _TABLES:
            self.run(f"DELETE FROM {table}")
            for _ in range(self.random.randint(0, 3)):
                self.insert(table, 1 if table in self.keyed else self.random.choice([1, 12]))

    def insert(self, table: str, times: int = 1) -> str | None:
        """The same random row some times; None where the table does not take it."""
        draw = self.random
        key = draw.randint(0, 99) if table in self.keyed else draw.randint(0, 2)
        k, v = draw.choice(self.values), draw.choice([*self.values, "NULL"])
        row = f"INSERT INTO {table} VALUES {', '.join([f'({k}, {v}, {key})'] * times)}"
        try:
            self.run(row)
        except (duckdb.Error, psycopg.Error):
            return None
        return row

    def query(self) -> str:
        """One counting text."""
        draw = self.random
        value, other = draw.choice(self.values), draw.choice(self.values)
        joins = ["a.k = b.k", "a.i = b.i", "(a.k, a.i) = (b.k, b.i)", "a.v = b.k", "b.k = a.v"]
        more = [
            *("b.k = c.k", "b.i = c.i", "a.k = c.v", "(b.k, b.v) = (c.k, c.v)"),
            *("a.v < b.v", "a.k <= c.k", "c.v <= b.k", "a.v <> c.v", "b.v BETWEEN a.k AND c.k"),
            *(f"a.k = {value}", f"b.v <= {value}", f"c.k IN ({value}, {other})"),
            *(f"a.v IS DISTINCT FROM {value}", f"a.k BETWEEN {value} AND {other}"),
            *("(a.k = c.k OR a.i = c.i)", f"(b.k > {value} OR c.i IS NULL)"),
            *("length(a.v::text) > c.i", "(b.k::text || 'x' <> c.i::text OR a.i = 1)"),
            *(f"coalesce(a.v, a.k) = {value}", "nullif(b.v, b.k) IS NULL", "a.k = a.v"),
            *("DATE '2020-02-01' + a.v < DATE '2020-03-01' + c.v", "a.v + b.v < c.v"),
            *("a.v - b.k < c.v", "(a.k, a.v) < (b.k, c.v)", "NOT (a.k, a.v) = (c.k, c.v)"),
            *("c.k IS NOT NULL", f"CASE WHEN b.k = {value} THEN a.i = 1 ELSE c.i = 1 END"),
        ]
        parts = [draw.choice(joins), *draw.sample(more, draw.randint(1, 3))]
        if "a" in self.keyed and draw.random() < 0.25:
            inner = " AND ".join(parts)
            return f"SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM b, c WHERE {inner})"
        what = draw.choice(["*", "*", "*", "a.v", "DISTINCT a.k", "DISTINCT (a.v, b.k)"])
        return f"SELECT count({what}) FROM a, b, c WHERE {' AND '.join(parts)}"

    def own(self, sql: str) -> int | None:
        """The engine's own count, None where it fails."""
        try:
            return self.run(sql)[0][0]
        except (duckdb.Error, psycopg.Error):
            return None

    def measured(self, sql: str) -> tuple[int, Fraction] | None:
        """Count and S of sqlrs, None where it fails."""
        try:
            found = self.opened.sensitivity(sql)
        except QueryRefused:
            raise
        except SqlrsError:
            return None
        assert found.count is not None
        return found.count, found.value


def attack(
    engine: str,
    target: Target,
    seed: int,
    *,
    schemas: int,
    texts: int,
) -> Iterator[Break]:
    """Draw so many schemas and so many answered texts on each; yield what breaks."""
    random = Random(seed)
    for statement in _SET_UP[engine]:
        if isinstance(target, duckdb.DuckDBPyConnection):
            target.execute(statement)
        else:
            target.execute(statement.encode())
    known = TYPES[engine]
    for _ in range(schemas):
        kind = random.choice(sorted(known))
        database = _Database(target, random, kind, known[kind])
        left = texts
        for _ in range(6 * texts):
            database.fill()
            sql = database.query()
            try:
                yield from _around(database, sql)
            except QueryRefused:
                continue
            left -= 1
            if left == 0:
                break
        database.opened.close()


def _around(database: _Database, sql: str) -> Iterator[Break]:
    """The text on one database and on some of its neighbours."""
    own, here = database.own(sql), database.measured(sql)
    yield from _one(database, sql, own, here)
    for _ in range(2):
        row = database.insert(database.random.choice(database.private))
        if row is None:
            continue
        own, there = database.own(sql), database.measured(sql)
        yield from _one(database, sql, own, there)
        if here is not None and there is not None:
            if abs(here[0] - there[0]) > min(here[1], there[1]):
                yield _told("local", database, sql, f"{row}: {here} {there}")
            if max(here[1], there[1]) > _STEP * min(here[1], there[1]):
                yield _told("smooth", database, sql, f"{row}: {here} {there}")
        here = there


def _one(
    database: _Database, sql: str, own: int | None, found: tuple[int, Fraction] | None
) -> Iterator[Break]:
    if own is not None and found is None:
        yield _told("failed", database, sql, f"engine {own}")
    elif found is not None and own != found[0]:
        yield _told("count", database, sql, f"engine {own}, sqlrs {found[0]}")


def _told(kind: str, database: _Database, sql: str, seen: str) -> Break:
    rows = {table: database.run(f"SELECT k::text, v::text, i FROM {table}") for table in _TABLES}
    return Break(kind, sql, f"{database.type}: {rows}", seen)
