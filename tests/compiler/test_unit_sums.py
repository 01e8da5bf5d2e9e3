"""Sums where units are protected: no bounds are asked for, and no value of a type fails a sum."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.compiler.bounded_values import MOST
from sqlrs.compiler.held_products import MOST_PRODUCT, common_cut
from sqlrs.compiler.statement import compile_statement
from sqlrs.errors import QueryRefused
from sqlrs.measures import Measure
from sqlrs.measuring.measurements import Measurements
from sqlrs.residuals.residual import Residuals
from sqlrs.units import Owner, Unit
from tests.support.engine_fixtures import BothEngines

_INT = ColumnType(Family.INTEGER, "INTEGER")
_BIG = ColumnType(Family.INTEGER, "BIGINT")
_SMALL = ColumnType(Family.INTEGER, "SMALLINT")
_MONEY = ColumnType(Family.DECIMAL, "DECIMAL(15,2)")
_WIDE = ColumnType(Family.DECIMAL, "DECIMAL(38,2)")
_FINE = ColumnType(Family.DECIMAL, "DECIMAL(38,18)")
_DOUBLE = ColumnType(Family.FLOAT, "DOUBLE")

SALE = Table(
    "sale",
    (
        Column("id", _INT, nullable=False),
        Column("customer", _INT, nullable=False),
        Column("s", _SMALL),
        Column("n", _INT),
        Column("b", _BIG),
        Column("m", _MONEY),
        Column("w", _WIDE),
        Column("fine", _FINE),
        Column("x", _DOUBLE),
    ),
    frozenset({frozenset({"id"})}),
)
RATE = Table(
    "rate",
    (
        Column("sale", _INT, nullable=False),
        Column("customer", _INT, nullable=False),
        Column("r", _MONEY, nullable=False),
    ),
    frozenset({frozenset({"sale"})}),
)
MONEY = Decimal("9999999999999.99")
SALES: list[tuple[object, ...]] = [
    (1, 1, 7, 7, 7, Decimal("7.25"), Decimal("7.25"), Decimal(1), 7.25),
    (2, 1, -8, -8, -8, Decimal("-8.5"), Decimal("-8.5"), Decimal(1), -8.5),
    (3, 1, *(None,) * 7),
    (4, 2, 32767, 2**31 - 1, 2**63 - 1, MONEY, Decimal("9" * 36 + ".99"), Decimal(1), math.inf),
    (
        5,
        2,
        -32768,
        -(2**31),
        -(2**63),
        -MONEY,
        Decimal("-" + "9" * 36 + ".99"),
        Decimal(1),
        -math.inf,
    ),
    (6, 3, 32767, 2**31 - 1, 2**63 - 1, MONEY, Decimal("9" * 36 + ".99"), Decimal(1), math.nan),
    (7, 3, 0, 0, 0, Decimal(0), Decimal(0), Decimal(1), 1e300),
]
RATES: list[tuple[object, ...]] = [(1, 1, Decimal("1.5")), (2, 1, Decimal("-2")), (4, 2, MONEY)]
Row = dict[str, Fraction | None]
CENT = Fraction(1, 100)


def _held(value: Fraction, unit: Fraction = Fraction(1)) -> Fraction:
    return max(-MOST * unit, min(MOST * unit, value))


def _number(value: object) -> Fraction | None:
    if isinstance(value, float):
        if math.isnan(value) or abs(value) > 1e16:
            return -MOST * CENT if value < 0 else MOST * CENT
        return round(Fraction(value) / CENT) * CENT
    assert value is None or isinstance(value, int | Decimal)
    return None if value is None else Fraction(value)


def _rows() -> list[Row]:
    return [
        dict(zip((c.name for c in SALE.columns), map(_number, row), strict=True)) for row in SALES
    ]


def _column(name: str, unit: Fraction = Fraction(1)) -> Callable[[Row], Fraction | None]:
    def meaning(row: Row) -> Fraction | None:
        value = row[name]
        return None if value is None else _held(value, unit)

    return meaning


def _product(
    one: Callable[[Row], Fraction | None], two: Callable[[Row], Fraction | None], unit: Fraction
) -> Callable[[Row], Fraction | None]:
    def meaning(row: Row) -> Fraction | None:
        a, b = one(row), two(row)
        return None if a is None or b is None else _held(a * b, unit)

    return meaning


def _of(function: Callable[[Fraction], Fraction], name: str) -> Callable[[Row], Fraction | None]:
    def meaning(row: Row) -> Fraction | None:
        value = row[name]
        return None if value is None else function(value)

    return meaning


ANSWERED: dict[str, Callable[[Row], Fraction | None]] = {
    "sum(s)": _column("s"),
    "sum(n)": _column("n"),
    "sum(b)": _column("b"),
    "sum(m)": _column("m", CENT),
    "sum(w)": _column("w", CENT),
    "sum(round(x, 2))": _column("x", CENT),
    "sum(-b)": _of(lambda b: -_held(b), "b"),
    "sum(abs(b))": _of(lambda b: abs(_held(b)), "b"),
    "sum(b + b)": _of(lambda b: _held(2 * _held(b)), "b"),
    "sum(b - 5)": _of(lambda b: _held(_held(b) - 5), "b"),
    "sum(greatest(n, 0))": lambda row: max(row["n"] or Fraction(0), Fraction(0)),
    "sum(least(b, 100))": lambda row: (
        Fraction(100) if row["b"] is None else min(_held(row["b"]), Fraction(100))
    ),
    "sum(n * m)": _product(_column("n"), _column("m"), CENT),
    "sum(m * m)": _product(_column("m"), _column("m"), CENT**2),
    "sum(m * (1 - m))": _product(_column("m"), _of(lambda m: 1 - m, "m"), CENT**2),
    "sum(b * b)": _product(_column("b"), _column("b"), Fraction(1)),
    "sum(m + b)": lambda row: (
        None
        if row["b"] is None or row["m"] is None
        else _held(_held(_held(row["b"]), CENT) + row["m"], CENT)
    ),
    "sum(CASE WHEN n > 0 THEN m ELSE 0 END)": lambda row: (
        row["m"] if row["n"] is not None and row["n"] > 0 else Fraction(0)
    ),
    "sum(m) FILTER (WHERE n > 0)": lambda row: (
        row["m"] if row["n"] is not None and row["n"] > 0 else None
    ),
    "sum(CASE WHEN n > 0 THEN 1 ELSE 0 END)": lambda row: Fraction(
        row["n"] is not None and row["n"] > 0
    ),
    "count(n)": lambda row: Fraction(row["n"] is not None),
}


def _catalogs(both: BothEngines) -> dict[str, Catalog]:
    both.load((SALE, RATE), {"sale": SALES, "rate": RATES})
    return {name: _with_unit(engine.catalog()) for name, engine in both.engines.items()}


def _with_unit(catalog: Catalog) -> Catalog:
    tables = tuple(replace(t, owners=(Owner("customer"),)) for t in catalog.tables)
    return replace(catalog, tables=tables, unit=Unit("customer.id"))


def _measures(sql: str, catalog: Catalog) -> list[Measure]:
    [aggregation] = compile_statement(sql, catalog).aggregations
    return [aggregation.measures[place] for place in aggregation.columns]


def _total(measure: Measure, both: BothEngines, name: str) -> Fraction:
    measurements = Measurements(both.engines[name])
    total = 0
    for term in measure.terms:
        assert len(term.owners) == 1
        found = measurements.totals(term, Residuals(term.query), ())
        total += term.coefficient * sum(found.values())
    return total * measure.unit


def _sum(values: Iterable[Fraction | None]) -> Fraction:
    return sum((value for value in values if value is not None), start=Fraction(0))


def test_every_type_is_summed_within_its_own_range(both_engines: BothEngines) -> None:
    for name, catalog in _catalogs(both_engines).items():
        for text, meaning in ANSWERED.items():
            [measure] = _measures(f"SELECT {text} FROM sale", catalog)
            expected = _sum(map(meaning, _rows()))
            assert _total(measure, both_engines, name) == expected, (name, text)


def test_products_of_tables_are_held(both_engines: BothEngines) -> None:
    """Of two amounts of money each counts up to a limit, far beyond what one can be."""
    cut = common_cut([10**15 - 1] * 2) * CENT
    assert cut > 10**11
    sales, rates = _rows(), {row[0]: _number(row[2]) for row in RATES}
    expected = Fraction(0)
    for sale in sales:
        amount, rate = sale["m"], rates.get(int(sale["id"] or 0))
        if amount is not None and rate is not None:
            expected += max(-cut, min(cut, amount)) * max(-cut, min(cut, rate))
    for name, catalog in _catalogs(both_engines).items():
        sql = "SELECT sum(m * r) FROM sale s JOIN rate t ON s.id = t.sale AND "
        [measure] = _measures(sql + "s.customer = t.customer", catalog)
        assert _total(measure, both_engines, name) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("sum(x)", "unknown_bounds"),
        ("sum(fine)", "unknown_bounds"),
        ("sum(round(x, 12))", "unknown_bounds"),
        ("sum(m * m * m * m * m)", "unknown_bounds"),
        ("sum(least(b, 1e30))", "unknown_bounds"),
        ("avg(n)", None),
        ("sum(least(fine, 1.5)) FILTER (WHERE n > 0)", "unknown_bounds"),
        ("sum(least(greatest(fine, 0), 0.5))", None),
    ],
)
def test_what_needs_bounds_all_the_same(text: str, code: str | None) -> None:
    catalog = _with_unit(Catalog("duckdb", (SALE, RATE)))
    if code is None:
        assert _measures(f"SELECT {text} FROM sale", catalog)
        return
    with pytest.raises(QueryRefused) as caught:
        _measures(f"SELECT {text} FROM sale", catalog)
    assert caught.value.code == code


def test_decimals_without_places_need_bounds() -> None:
    loose = Table("loose", (Column("c", _INT), Column("v", ColumnType(Family.DECIMAL, "numeric"))))
    catalog = _with_unit(Catalog("postgres", (loose,), search_path=("public",)))
    with pytest.raises(QueryRefused) as caught:
        _measures("SELECT sum(v) FROM loose", replace(catalog, tables=(_owned_by(loose, "c"),)))
    assert caught.value.code == "unknown_bounds"
    assert "[bounds]" in (caught.value.hint or "")
    rounded = replace(catalog, tables=(_owned_by(loose, "c"),))
    assert _measures("SELECT sum(round(v, 2)) FROM loose", rounded)[0].unit == CENT


def _owned_by(table: Table, column: str) -> Table:
    return replace(table, owners=(Owner(column),))


@given(st.lists(st.integers(0, 10**18), min_size=1, max_size=5))
def test_a_cut_holds_every_product_and_is_the_largest(bounds: list[int]) -> None:
    cut = common_cut(bounds)
    assert prod(min(bound, cut) for bound in bounds) <= MOST_PRODUCT
    if cut < max(bounds):
        larger = prod(min(bound, cut + 1) for bound in bounds)
        assert larger * 1000 > MOST_PRODUCT
