"""Numbers of every type of both engines as whole numbers between ends: special ones, grids."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product

import duckdb
import psycopg
import pytest
from sqlglot import exp

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.compiler.bounded_columns import OPEN, bounded_column
from sqlrs.compiler.bounded_values import WholeNumbers
from sqlrs.compiler.inline import inline
from sqlrs.compiler.understand import read_select
from sqlrs.compiler.weighing import Weighing, weigh
from sqlrs.engines.open import open_engine
from sqlrs.trees.build import inner, named, select_from, table_of
from sqlrs.trees.constants import data_type
from sqlrs.trees.identifiers import column
from sqlrs.values import NUMBERS
from tests.compiler.weighed_tables import (
    DIALECTS,
    DRUG,
    INTEGER,
    VISIT,
    bounds,
    expression_of,
    weighing,
)
from tests.support.engine_fixtures import BothEngines
from tests.support.special import LINES, Line

# Decimals without a scale and floating point, with ends and grids by the owner.
LOOSE = Table(
    "loose",
    (
        Column("id", INTEGER, nullable=False),
        Column("n", ColumnType(Family.DECIMAL, "numeric"), bounds=bounds("-2", "5000")),
        Column("g", ColumnType(Family.DECIMAL, "numeric"), bounds=bounds("0", "10", "0.3")),
        Column("x", ColumnType(Family.FLOAT, "double precision"), bounds=bounds("0", "9", "0.01")),
        Column("y", ColumnType(Family.FLOAT, "real"), bounds=bounds("-1e9", "1e9", "1e-9")),
        Column(
            "z", ColumnType(Family.FLOAT, "double precision"), bounds=bounds("-1", "1", "1e100")
        ),
    ),
)
SPECIALS = ["NaN", "Infinity", "-Infinity", "1e300", "-1e300", "5e-324", "-5e-324", "0", "2.675"]


def weight_of(
    both: BothEngines, dialect: str, known: Column, text: str
) -> tuple[Weighing, Fraction]:
    """What a row weighs that holds the text, as the column's type reads it."""
    one = Table("one", (known,))
    catalog = Catalog(dialect, (one,), search_path=("public", "main"))
    flat = inline(read_select("SELECT count(*) FROM one", catalog), catalog)
    found = weigh(replace(flat, weight=column(known.name, "one")), catalog)
    total = Fraction(0)
    with both.engines[dialect].snapshot() as snapshot:
        for term in found.terms:
            [factor] = term.factors
            cell = exp.cast(exp.Literal.string(text), data_type(known.type))
            row = exp.Select(expressions=[named(cell, known.name)])
            value = snapshot.scalar(select_from(inner(row, "one"), expression_of(factor)))
            assert 0 <= value <= factor.bound
            total += found.unit * term.coefficient * value
    return found, total


@pytest.mark.parametrize("name", ["n", "g", "x", "y", "z"])
def test_special_values_of_postgres_are_clamped(both_engines: BothEngines, name: str) -> None:
    known = LOOSE.column(name)
    assert known.bounds is not None
    low, high = ends = Fraction(known.bounds.low), Fraction(known.bounds.high)
    for text in SPECIALS if known.type.name != "real" else ["NaN", "Infinity", "-3e38", "2.75"]:
        found, value = weight_of(both_engines, "postgres", known, text)
        number = float(text.replace("NaN", "Infinity"))
        exact = ends[number > 0] if math.isinf(number) else min(max(Fraction(text), low), high)
        assert abs(value - exact) <= found.unit, text


@pytest.mark.parametrize(
    ("dialect", "line"),
    [(e, line) for e in DIALECTS for line in LINES[e] if line.type.family in NUMBERS],
    ids=str,
)
def test_every_number_of_every_type_lies_between_the_ends(
    both_engines: BothEngines, dialect: str, line: Line
) -> None:
    known = Column("c", line.type, bounds=bounds("-0.5", "5.5", "0.25"))
    values = [weight_of(both_engines, dialect, known, str(text))[1] for text in line.values]
    assert values == sorted(values)
    low = Fraction(0) if line.type.family is Family.INTEGER else Fraction(-1, 2)
    high = Fraction(5) if line.type.family is Family.INTEGER else Fraction("5.5")
    assert values[0] == low
    assert values[-1] == high


def test_a_decimal_without_a_scale_keeps_eight_digits_of_its_bound() -> None:
    catalog = Catalog("postgres", (LOOSE,), search_path=("public",))
    sql = "SELECT count(*) FROM loose WHERE (n) IS NOT NULL"
    flat = inline(read_select(sql, catalog), catalog)
    assert weigh(replace(flat, weight=column("n", "loose")), catalog).unit == Fraction(1, 10**4)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_grid_rounds_to_the_nearest_step(both_engines: BothEngines, dialect: str) -> None:
    """0.01 is no double: the quotient may be off by a little, so the nearest step or the next."""
    texts = [f"{n}.{n:03d}" for n in range(0, 1000, 37)]
    visits = [
        (i, *([None] * 4), 1, None, None, float(text), *([None] * 3))
        for i, text in enumerate(texts)
    ]
    both_engines.load((VISIT, DRUG), {"visit": visits, "drug": []})
    found = weighing("round(least(greatest(v.loose, 0), 900.5), 2)", dialect)
    assert found.unit == Fraction(1, 100)
    [[factor]] = [term.factors for term in found.terms]
    assert factor.bound == 90_050
    statement = select_from(table_of(VISIT), column("id"), expression_of(factor))
    with both_engines.engines[dialect].snapshot() as snapshot:
        read = {int(str(i)): int(str(value)) for i, value in snapshot.rows(statement)}
    for i, text in enumerate(texts):
        assert abs(Fraction(read[i], 100) - min(Fraction(text), Fraction("900.5"))) <= Fraction(
            "0.0051"
        )


def test_decimals_of_postgres_have_the_places_of_their_type(postgres_db: str) -> None:
    """The catalog names the type without its modifiers, and tells the places apart from it."""
    with psycopg.connect(postgres_db, autocommit=True) as connection:
        connection.execute("CREATE DOMAIN euro AS numeric(12, 3)")
        connection.execute(
            "CREATE TABLE bill "
            "(a numeric(10, 2), b euro, c numeric, d numeric(5), e numeric(9, 20))"
        )
        connection.execute("INSERT INTO bill VALUES (10.25, 7.125, 3, 99999, 0)")
        connection.execute("INSERT INTO bill VALUES ('NaN', 1, NULL, NULL, NULL)")
        with closing(open_engine(postgres_db)) as engine:
            found = engine.catalog()
            bill = found.named("bill")
            assert [c.type.places for c in bill.columns] == [2, 3, None, 0, None]
            bounded = tuple(replace(c, bounds=bounds("0", "20.005")) for c in bill.columns)
            catalog = replace(found, tables=(replace(bill, columns=bounded),))
            flat = inline(read_select("SELECT count(*) FROM bill", catalog), catalog)
            for name, unit, bound, total in (
                ("a", Fraction(1, 100), 2000, "30.25"),
                ("b", Fraction(1, 1000), 20005, "8.125"),
                ("d", Fraction(1), 20, "20"),
                ("c", Fraction(1, 10**6), 20005000, "3"),
            ):
                weighed = weigh(replace(flat, weight=column(name, "bill")), catalog)
                [[factor]] = [term.factors for term in weighed.terms]
                assert (weighed.unit, factor.bound) == (unit, bound)
                statement = select_from(table_of(bill), exp.Sum(this=expression_of(factor)))
                with engine.snapshot() as snapshot:
                    assert snapshot.scalar(statement) * unit == Fraction(total)


@pytest.mark.parametrize("scale", [0, 1, 3, 8])
@pytest.mark.parametrize("digits", [1, 4, 9, 10, 13, 14, 15, 16, 17])
def test_decimals_are_scaled_exactly_in_narrow_types_and_in_wide_ones(
    digits: int, scale: int
) -> None:
    """The ends have so many digits; what is beyond them, up to the type's own end, is clamped."""
    step = Decimal(1).scaleb(-scale)
    high = (10**digits - 1) * step
    width = max(digits, scale) + 1
    kind = ColumnType(Family.DECIMAL, f"DECIMAL({width},{scale})")
    held = Column("x", kind, bounds=bounds(str(-high), str(high)))
    most = (10**width - 1) * step
    given = [most, -most, high, -high, high + step, step, -step, Decimal(0), None]
    value = bounded_column(held, OPEN, WholeNumbers(exp.DataType.build("hugeint", "duckdb")))
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (i INTEGER, x {kind.name})")
    for place, number in enumerate(given):
        text = None if number is None else f"{number:f}"
        connection.execute("INSERT INTO t VALUES (?, CAST(? AS VARCHAR))", [place, text])
    select = exp.select(value.tree).from_("t").order_by("i")
    found = [one for (one,) in connection.execute(select.sql("duckdb")).fetchall()]
    units = [None if x is None else int(max(-high, min(high, x)) / step) for x in given]
    assert found == units


@pytest.mark.parametrize(
    ("whole_ends", "decimal_ends", "quick"),
    [
        (("1", "9999"), ("1", "1000"), True),
        (("0", "10000000"), ("0", "999999999.99"), True),
        (("0", "2147483647"), ("0", "9999999999.99"), False),
        (("-7", "-2"), ("-3", "-1.5"), True),
        (("-7", "2"), ("1", "1000"), False),
    ],
)
def test_products_in_64_bits_are_those_in_128(
    whole_ends: tuple[str, str], decimal_ends: tuple[str, str], quick: bool
) -> None:
    """Every pair of numbers at, beyond and between the ends; with a sign or too large, none."""
    one = Column("x", ColumnType(Family.INTEGER, "INTEGER"), bounds=bounds(*whole_ends))
    kind = ColumnType(Family.DECIMAL, "DECIMAL(12,2)")
    other = Column("y", kind, bounds=bounds(*decimal_ends))
    numbers = WholeNumbers(exp.DataType.build("hugeint", "duckdb"), held=True)
    found = numbers.multiplied(*(bounded_column(each, OPEN, numbers) for each in (one, other)))
    assert (found.between is not None) == quick
    if found.between is None:
        return
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (x INTEGER, y DECIMAL(12,2))")
    wholes = [None, -(2**31), 2**31 - 1, 0, 1, 5, -3, *map(int, whole_ends)]
    decimals = [None, "-9999999999.99", "9999999999.99", "0", "0.01", "2.5", *decimal_ends]
    connection.executemany("INSERT INTO t VALUES (?, ?)", list(product(wholes, decimals)))
    select = exp.select(found.tree, found.between(found.low, found.high)).from_("t")
    rows = connection.execute(select.sql("duckdb")).fetchall()
    assert len(rows) == len(wholes) * len(decimals)
    assert all(wide == small for wide, small in rows)
    known = [wide for wide, _ in rows if wide is not None]
    assert (min(known), max(known)) == (found.low, found.high)
    with pytest.raises(ValueError, match="its own ends"):
        found.between(found.low + 1, found.high)
