"""Only so many rows of each unit are read: always the same ones, by their values alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import psycopg
import pytest
from sqlglot import exp

from sqlrs.catalog import Column, ColumnType, Family, Table
from sqlrs.engines.base import Engine
from sqlrs.engines.open import open_engine
from sqlrs.measures import KeyDomain, Signed
from sqlrs.measuring.measurements import Measurements
from sqlrs.planning.plan import HOW
from sqlrs.query import Variable, Weight
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.bounded_rows import bounded_reached, bounded_sensitivity
from sqlrs.sensitivity.weights import Weights
from sqlrs.trees.build import rows_of, select_from
from sqlrs.trees.identifiers import column
from sqlrs.units import Link, Owner
from tests.sensitivity.few_row_worlds import few
from tests.support import brute, weighted_brute
from tests.support.builders import DECIMAL, INTEGER, TEXT, atom, query, table
from tests.support.engine_fixtures import BothEngines

Row = tuple[Any, ...]

DOUBLE = ColumnType(Family.FLOAT, "DOUBLE")
DATE = ColumnType(Family.DATE, "DATE")
MOMENT = ColumnType(Family.TIMESTAMP_TZ, "TIMESTAMP WITH TIME ZONE")
WEIGHTS = Weights(Fraction(9, 10))
NAN, INFINITY = float("nan"), float("inf")


def owned(of: Table, rows: int, owner: Owner | None = None) -> Table:
    return replace(of, owners=(owner or Owner("u"),), max_rows=rows)


VISIT = owned(table("visit", "u", "x", "note", types={"note": TEXT}, nullable="u x note"), 3)
KEYED = owned(table("keyed", "id", "u", "x", keys=["id"], nullable="u x"), 2)
ORDERS = owned(table("orders", "o", "u", keys=["o"], nullable="u"), 2)
LINE = owned(
    table("line", "o", "x", nullable="o"),
    3,
    Owner("u", (Link(("o",), (None, "orders"), ("o",)),)),
)


def kept(of: Table, rows: Iterable[Row], owner: int, key: int | None = None) -> list[Row]:
    """By definition; the hash is of the key where there is one."""
    found: list[Row] = []
    told = [row for row in rows if row[owner] is not None]
    for unit in {row[owner] for row in told}:
        own = [row for row in told if row[owner] == unit]
        if key is None:
            found += few(of, own)
        else:
            keys = few(of, [(row[key],) for row in own])
            found += [row for row in own if (row[key],) in keys]
    return found


def everything(of: Table) -> exp.Select:
    names = [one.name for one in of.columns]
    return select_from(rows_of(of, names, "t"), *(column(name, "t") for name in names))


def random_rows(seed: int, size: int) -> list[Row]:
    chance = random.Random(seed)
    notes = [None, "", ",", "a", "A", "ä", "a,b", "zz", "\\", "'", "😀"]
    return [
        (
            chance.choice([None, 1, 2, -3]),
            chance.choice([None, 0, 1, -1, 2**62]),
            chance.choice(notes),
        )
        for _ in range(size)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_the_kept_rows_are_those_of_the_definition(seed: int, both_engines: BothEngines) -> None:
    """Identical rows, NULL and empty texts, letters of both cases, in two physical orders."""
    rows = random_rows(seed, 40)
    wanted = Counter(kept(VISIT, rows, 0))
    for order in (rows, random.Random(seed).sample(rows, len(rows))):
        both_engines.load([VISIT], {"visit": order})
        assert Counter(both_engines.rows(everything(VISIT))) == wanted


@pytest.mark.parametrize("seed", range(3))
def test_units_with_few_rows_need_no_order(seed: int, both_engines: BothEngines) -> None:
    """Units with less rows than the limit, with as many, and with more."""
    chance = random.Random(seed)
    rows: list[Row] = [
        (unit, chance.choice([None, 0, 1]), chance.choice([None, "", "a"]))
        for unit in (*range(8), None)
        for _ in range(chance.randrange(7))
    ]
    both_engines.load([VISIT], {"visit": rows})
    assert Counter(both_engines.rows(everything(VISIT))) == Counter(kept(VISIT, rows, 0))
    none = select_from(rows_of(VISIT, [], "t"), exp.Count(this=exp.Star()))
    assert both_engines.scalar(none) == len(kept(VISIT, rows, 0))


def test_a_key_alone_decides_where_there_is_one(both_engines: BothEngines) -> None:
    rows: list[Row] = [(i, i % 3 or None, None if i % 4 else i) for i in range(30)]
    both_engines.load([KEYED], {"keyed": rows})
    found = both_engines.rows(everything(KEYED))
    assert Counter(found) == Counter(kept(KEYED, rows, 1, 0))
    assert len(found) == 4


def test_the_owner_of_a_link_is_found_before_rows_are_left_out(both_engines: BothEngines) -> None:
    """Rows of all orders of a unit together; a link to nowhere, and an owner that is NULL."""
    orders: list[Row] = [(1, 7), (2, 7), (3, 7), (4, 8), (5, None)]
    lines: list[Row] = [(o, x) for o in (1, 2, 3, 4, 5, 6, None) for x in range(4)]
    both_engines.load([ORDERS, LINE], {"orders": orders, "line": lines})
    owners: dict[Any, Any] = dict(orders)
    expected: list[Row] = []
    for unit in (7, 8):
        expected += few(LINE, [row for row in lines if owners.get(row[0]) == unit])
    assert Counter(both_engines.rows(everything(LINE))) == Counter(expected)
    # No column at all, and a condition on the rows that are left.
    none = select_from(rows_of(LINE, [], "t"), exp.Count(this=exp.Star()))
    assert both_engines.scalar(none) == 6


def test_a_computed_column_comes_after(both_engines: BothEngines) -> None:
    """It fails on a row that is left out."""
    rows: list[Row] = [(1, x, None) for x in range(8)]
    used = {row[1] for row in kept(VISIT, rows, 0)}
    left_out = next(x for x in range(8) if x not in used)
    tree = exp.Div(
        this=exp.Literal.number(60),
        expression=exp.Sub(this=exp.column("x"), expression=exp.Literal.number(left_out)),
    )
    per = Column("per", INTEGER, nullable=False, computed=tree)
    computed = VISIT.with_computed([per])
    both_engines.load([VISIT], {"visit": rows})
    source = rows_of(computed, ["per"], "t")
    select = select_from(source, exp.Count(this=column("per", "t")))
    assert both_engines.scalar(select) == 3


SPECIAL = owned(
    table(
        "special",
        *("u", "f", "d", "day", "at"),
        types={"f": DOUBLE, "d": DECIMAL, "day": DATE, "at": MOMENT},
        nullable="u f d day at",
    ),
    4,
)


def special_rows() -> list[Row]:
    floats = [None, 0.0, -0.0, NAN, INFINITY, -INFINITY, 1e308, 5e-324, 0.1]
    moments = [None, datetime(2026, 1, 1, tzinfo=UTC), datetime(1900, 1, 1, 0, 0, 1, tzinfo=UTC)]
    days = [None, date(1, 1, 1), date(9999, 12, 31)]
    return [
        (u, f, Decimal("1.100"), days[i % 3], moments[(i + u) % 3])
        for u in (1, 2)
        for i, f in enumerate(floats + floats)
    ]


def test_special_values_in_any_physical_order(both_engines: BothEngines) -> None:
    """Engines write values in their own way, so each keeps rows of its own, but always those."""
    rows = special_rows()
    seen: dict[str, set[str]] = {"duckdb": set(), "postgres": set()}
    for seed in range(3):
        both_engines.load([SPECIAL], {"special": random.Random(seed).sample(rows, len(rows))})
        for name, engine in both_engines.engines.items():
            found = _rows(engine, in_texts(SPECIAL))
            assert Counter(row[0] for row in found) == {1: 4, 2: 4}
            seen[name].add(repr(sorted(map(repr, found))))
    assert [len(found) for found in seen.values()] == [1, 1]
    # What one unit keeps does not depend on the rows of others.
    both_engines.load([SPECIAL], {"special": [row for row in rows if row[0] == 1]})
    for name, engine in both_engines.engines.items():
        (before,) = seen[name]
        assert all(repr(row) in before for row in _rows(engine, in_texts(SPECIAL)))


def in_texts(of: Table) -> exp.Select:
    """The rows with all but the owner as texts: a client may lack what it reads moments with."""
    owner, *names = (one.name for one in of.columns)
    texts = (exp.cast(column(name, "t"), "text") for name in names)
    return select_from(rows_of(of, [owner, *names], "t"), column(owner, "t"), *texts)


def _rows(engine: Engine, statement: exp.Select) -> list[Row]:
    with engine.snapshot() as snapshot:
        return [tuple(row) for row in snapshot.rows(statement)]


def _catalogued(engine: Engine, rows: int) -> Table:
    return owned(engine.catalog().named("odd"), rows)


ODD = [(u, i % 2, f'{{"a": {i}}}') for u in (1, 2) for i in range(12)]


def test_types_without_an_order_in_postgresql(postgres_db: str) -> None:
    """A json, a point and a text of a collation under which its values are equal."""
    found = []
    with psycopg.connect(postgres_db, autocommit=True) as connection:
        connection.execute(
            "CREATE COLLATION alike (provider = icu, locale = 'und-u-ks-level2', "
            "deterministic = false)"
        )
        connection.execute(
            "CREATE TABLE odd "
            '(u bigint, j json, p point, t text COLLATE alike, x xml, c text COLLATE "C")'
        )
        for seed in range(2):
            connection.execute("TRUNCATE odd")
            for u, i, text in random.Random(seed).sample(ODD, len(ODD)):
                connection.execute(
                    "INSERT INTO odd VALUES (%s, %s, point(%s, 0), %s, '<a/>', 'c')",
                    (u, text, i, "aA"[i]),
                )
            engine = open_engine(postgres_db)
            of = _catalogued(engine, 5)
            names = ["u", "j", "t"]
            tree = exp.cast(column("j", "t"), "text")
            select = select_from(rows_of(of, names, "t"), column("u", "t"), tree, column("t", "t"))
            found.append(sorted(_rows(engine, select)))
            engine.close()
    assert found[0] == found[1]
    assert len(found[0]) == 10


def test_nested_types_in_duckdb() -> None:
    """Lists and structures whose texts look alike, and a text without letters of two cases."""
    found = []
    for seed in range(2):
        connection = duckdb.connect()
        connection.execute(
            "CREATE TABLE odd "
            "(u BIGINT, l VARCHAR[], s STRUCT(a VARCHAR), t VARCHAR COLLATE NOCASE)"
        )
        values = [None, [None], ["NULL"], ["a, b"], ["a", "b"], [], ["a,b"], [""]]
        rows = [(u, one, {"a": "x"}, t) for u in (1, 2) for one in values for t in "aA"]
        for row in random.Random(seed).sample(rows, len(rows)):
            connection.execute("INSERT INTO odd VALUES (?, ?, ?, ?)", row)
        engine = open_engine(connection)
        of = _catalogued(engine, 5)
        names = ["u", "l", "t"]
        select = select_from(rows_of(of, names, "t"), *(column(name, "t") for name in names))
        found.append(sorted(map(repr, _rows(engine, select))))
        engine.close()
    assert found[0] == found[1]
    assert len(found[0]) == 10


QUERIES = {
    "meet": query(atom(VISIT, "u", "x"), atom(VISIT, "v", "x"), different="u v"),
    "chain": query(atom(LINE, "o", "x"), atom(ORDERS, "o", "u")),
    "chains meet": query(
        *(atom(LINE, "o", "x"), atom(ORDERS, "o", "u")),
        *(atom(LINE, "p", "x"), atom(ORDERS, "p", "v"), atom(VISIT, "w", "x")),
        less=[("u", "v")],
    ),
    "in order": query(atom(VISIT, "u", "x"), atom(LINE, "o", "y"), at_most=[("x", "y")]),
    "distinct": query(atom(VISIT, "u", "x"), atom(LINE, "o", "x"), distinct="u x"),
}


def _database(seed: int) -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
    """All rows, and those that are used."""
    chance = random.Random(seed)
    visits: list[Row] = [
        (chance.choice([None, 1, 2, 3]), chance.choice([None, 0, 1, 2]), chance.choice("ab"))
        for _ in range(25)
    ]
    orders: list[Row] = [(o, chance.choice([None, 1, 2, 3])) for o in range(8)]
    lines: list[Row] = [(chance.choice([None, *range(9)]), chance.randrange(3)) for _ in range(30)]
    owners: dict[Any, Any] = dict(orders)
    used: list[Row] = []
    for unit in (1, 2, 3):
        used += few(LINE, [line for line in lines if owners.get(line[0]) == unit])
    everything = {"visit": visits, "orders": orders, "line": lines}
    return everything, {
        "visit": kept(VISIT, visits, 0),
        "orders": kept(ORDERS, orders, 1, 0),
        "line": used,
    }


@pytest.mark.parametrize("how", HOW)
def test_every_plan_reads_the_same_rows(how: str, both_engines: BothEngines) -> None:
    """The count and all T_E, also where limits by the sizes of whole tables end the search."""
    rows, used = _database(4)
    both_engines.load([VISIT, ORDERS, LINE], rows)
    for asked in QUERIES.values():
        residuals = Residuals(asked)
        wanted = bounded_reached(residuals)
        expected = brute.residual_values(residuals, wanted, used)
        count = brute.count(asked, used)
        assert count != brute.count(asked, rows)

        def fold(values: Mapping[Members, int]) -> Fraction:
            return bounded_sensitivity(residuals, values, {}, WEIGHTS).value  # noqa: B023

        for engine in both_engines.engines.values():
            measurements = Measurements(engine, how)
            measured = measurements.enough(residuals, wanted, None)
            assert (measured.count, dict(measured.values)) == (count, dict(expected))
            if how == HOW[0]:
                enough = measurements.enough(residuals, wanted, fold)
                assert (enough.count, fold(enough.values)) == (count, fold(expected))


def test_groups_and_weights_read_the_same_rows(both_engines: BothEngines) -> None:
    rows, used = _database(5)
    both_engines.load([VISIT, ORDERS, LINE], rows)
    g = Variable("o", INTEGER)
    asked = query(replace(atom(LINE, "o"), weight=Weight("x", 2)), atom(ORDERS, "o", "u"))
    values = exp.values([(n, n) for n in range(8)], alias="d", columns=["ordinal", "k0"])
    for engine in both_engines.engines.values():
        domain = KeyDomain((0,), exp.select("ordinal", "k0").from_(values), "in the test")
        totals = Measurements(engine).totals(Signed(1, asked, (g,)), Residuals(asked), [domain])
        expected = weighted_brute.vector(asked, (g,), used)
        assert totals == {group: n for group, n in expected.items() if n}
