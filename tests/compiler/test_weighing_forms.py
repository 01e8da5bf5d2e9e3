"""Which terms, units and bounds a sum has, and what is refused, by the text alone."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest

from sqlrs.compiler.summed_nulls import not_null_condition
from sqlrs.errors import QueryRefused
from tests.compiler.weighed_tables import DIALECTS, flattened, weighing

# Each expression with its unit and, for each term, the coefficient and the bounds by table.
FORMS: dict[str, tuple[str, list[tuple[int, dict[str, int]]]]] = {
    "v.cost": ("1/100", [(1, {"v": 5050})]),
    "v.days": ("1", [(1, {"v": 10}), (-1, {"v": 5})]),
    "- v.cost": ("1/100", [(-1, {"v": 5050})]),
    "v.score": ("1/4", [(1, {"v": 28}), (-1, {"v": 12})]),
    # One factor: the ends of the whole are closer than those of its parts.
    "d.price * (1 - d.rate)": ("1/10000", [(1, {"d": 200_000})]),
    "v.cost * d.price": ("1/10000", [(1, {"d": 2000, "v": 5050})]),
    "v.cost * d.dose": ("1/100", [(1, {"d": 4, "v": 5050}), (-1, {"d": 2, "v": 5050})]),
    "v.days * d.dose": (
        "1",
        [
            (1, {"d": 4, "v": 10}),
            (-1, {"d": 4, "v": 5}),
            (-1, {"d": 2, "v": 10}),
            (1, {"d": 2, "v": 5}),
        ],
    ),
    # The other table's column may be NULL, and then the sum is: hence its test, from 0 to 1.
    "v.cost + d.price": ("1/100", [(1, {"d": 1, "v": 5050}), (1, {"d": 2000, "v": 1})]),
    "v.grade + d.rate": ("1/100", [(100, {"v": 6}), (1, {"d": 100})]),
    "v.cost * (v.grade + d.price)": (
        "1/10000",
        [(100, {"d": 1, "v": 30_300}), (1, {"d": 2000, "v": 5050})],
    ),
    # What one table adds and takes away stays together.
    "d.price + v.grade - 5 * d.rate": (
        "1/100",
        [(1, {"d": 2000}), (-1, {"d": 500}), (100, {"d": 1, "v": 6})],
    ),
    "v.cost * d.rate * v.grade / 8.0": ("1/80000", [(1, {"d": 100, "v": 30_300})]),
    # Constants go into the unit.
    "1": ("1", [(1, {})]),
    "-2.5": ("5/2", [(-1, {})]),
    "3 * v.cost * 0.5": ("3/200", [(1, {"v": 5050})]),
    "v.cost * -0.5": ("1/200", [(-1, {"v": 5050})]),
    "-3 * v.days": ("3", [(1, {"v": 5}), (-1, {"v": 10})]),
    "v.cost / 40.0": ("1/4000", [(1, {"v": 5050})]),
    "v.grade * 2 - 1": ("1", [(1, {"v": 11})]),
    # Nothing to sum.
    "0": ("1", []),
    "0 * v.cost": ("1", []),
    "v.cost * NULL": ("1", []),
    "CAST(v.urgent AS INTEGER)": ("1", [(1, {"v": 1})]),
    "CASE WHEN v.ward = 'A' THEN 1 ELSE 0 END": ("1", [(1, {"v": 1})]),
    "CASE v.ward WHEN 'A' THEN 2 WHEN 'B' THEN -1.5 END": (
        "1/2",
        [(1, {"v": 4}), (-1, {"v": 3})],
    ),
    "CASE WHEN v.urgent THEN d.price ELSE d.rate END": (
        "1/100",
        [(1, {"d": 2000, "v": 1}), (1, {"d": 100, "v": 1})],
    ),
    # What the text bounds, tighter than the owner too.
    "least(greatest(v.free, 0), 5000)": ("1", [(1, {"v": 5000})]),
    "greatest(least(v.free, 5000), 100) - 100": ("1", [(1, {"v": 4900})]),
    "abs(least(greatest(2 * v.free - 1, -30), 20))": ("1", [(1, {"v": 30})]),
    "least(v.cost, 7)": ("1/100", [(1, {"v": 700})]),
    "coalesce(least(v.cost, 20), 3)": ("1/100", [(1, {"v": 2000})]),
    # They pass over NULL, and then the number is left, which lies beyond the column's ends.
    "least(v.level, 5)": ("1", [(1, {"v": 5})]),
    "greatest(v.level, -2)": ("1", [(1, {"v": 3}), (-1, {"v": 2})]),
    "least(v.grade, 9)": ("1", [(1, {"v": 6})]),
    "least(v.level, v.cost)": ("1/100", [(1, {"v": 5050})]),
    "nullif(v.grade, 3)": ("1", [(1, {"v": 6})]),
    "round(least(greatest(v.loose, 0), 10), 1)": ("1/10", [(1, {"v": 100})]),
    "CAST(v.cost AS DECIMAL(20, 4))": ("1/100", [(1, {"v": 5050})]),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("expression", FORMS)
def test_terms_units_and_bounds(expression: str, dialect: str) -> None:
    found = weighing(expression, dialect)
    terms = [(t.coefficient, {f.alias: f.bound for f in t.factors}) for t in found.terms]
    unit, expected = FORMS[expression]
    assert (str(found.unit), terms) == (unit, expected)


REFUSED = {
    "v.free": ("unknown_bounds", "v.free", 'declares [bounds] "visit.free" = [low, high]'),
    "v.cost + greatest(v.free, 0)": ("unknown_bounds", "v.free", "least(greatest(free, low)"),
    "least(v.free, 5)": ("unknown_bounds", "v.free", "least(greatest(free, low)"),
    "least(greatest(v.loose, 0), 1)": ("unknown_bounds", "v.loose", "round(loose, 2)"),
    "nullif(v.free + 1, 3)": ("unsupported", None, "constants"),
    "sqrt(v.cost)": ("unknown_bounds", "sqrt(v.cost)", "are summed"),
    "v.ward": ("unsupported", "v.ward", "sum numbers"),
    "v.urgent": ("unsupported", "v.urgent", "CASE WHEN"),
    "v.cost / v.days": ("unsupported", "v.cost / v.days", "divide the sum"),
    "v.cost / 0": ("unsupported", "v.cost / 0", "divide the sum"),
    "(v.cost + d.price) / d.dose": ("unsupported", None, "sums, products and CASE"),
    "CAST(v.cost AS INTEGER)": ("unsupported", None, "round(x, places)"),
    "CAST(v.cost AS REAL)": ("unsupported", None, "round(x, places)"),
    "CAST(v.ward AS INTEGER)": ("unsupported", "v.ward", "sum numbers"),
    "round(v.cost, 1)": ("unsupported", None, "places that it has"),
    "round(v.score + v.score, 1)": ("unsupported", None, "places that it has"),
    "least(v.cost, d.price)": ("unsupported", None, "sums, products and CASE"),
    "CASE WHEN v.days = d.dose THEN 1 ELSE 0 END": ("unsupported", None, "one table"),
    "CASE WHEN 10 / v.days > 1 THEN 1 ELSE 0 END": ("unsupported", "10 / v.days > 1", "constants"),
    "CASE WHEN v.urgent THEN d.price ELSE 0 END + 1": ("unsupported", None, "ELSE"),
    "CASE WHEN v.urgent THEN d.price END + 1": ("unsupported", None, "ELSE"),
    "least(greatest(v.free, 0), 1000000001) * least(greatest(v.free, 0), 1000000000)": (
        "unknown_bounds",
        None,
        "more tightly",
    ),
    "least(greatest(v.free, 0), 1000000001) * (d.dose * 1e9 + 1)": (
        "unknown_bounds",
        None,
        "more tightly",
    ),
    "least(greatest(v.free, 0), 1e18 + 1)": ("unknown_bounds", None, "more tightly"),
    "1e999999999 * v.cost": ("unknown_bounds", None, "more tightly"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("expression", REFUSED)
def test_what_is_not_summed_is_refused_with_its_place_and_a_hint(
    expression: str, dialect: str
) -> None:
    code, place, hint = REFUSED[expression]
    with pytest.raises(QueryRefused) as caught:
        weighing(expression, dialect)
    error = caught.value
    assert error.code == code
    assert error.span is not None and error.text is not None
    marked = error.text[error.span.start : error.span.end]
    assert marked in expression and (place is None or marked == place), marked
    assert hint in (error.hint or ""), error.hint


def test_a_division_of_integers_that_drops_the_rest_is_refused() -> None:
    assert weighing("v.grade / 4", "duckdb").unit == Fraction(1, 4)
    for expression in ("v.grade / 4", "(v.grade + d.dose) / 4"):
        with pytest.raises(QueryRefused, match="drops the rest"):
            weighing(expression, "postgres")
    with pytest.raises(QueryRefused) as caught:
        weighing("v.grade // 4", "duckdb")
    assert caught.value.code == "unknown_bounds"
    assert weighing("v.grade / 4.0", "postgres").unit == Fraction(1, 4)


def test_too_many_terms_are_refused() -> None:
    """Each signed factor doubles the terms: four of them make 16, five are too many."""
    tables = ", ".join(f"drug d{i}" for i in range(5))
    four = " * ".join(f"d{i}.dose" for i in range(4))
    assert len(weighing(four, "duckdb", tables).terms) == 16
    for expression in (f"{four} * d4.dose", f"{four} + d4.rate"):
        with pytest.raises(QueryRefused) as caught:
            weighing(expression, "duckdb", tables)
        assert caught.value.code == "too_complex"


@pytest.mark.parametrize(
    ("inner_text", "around"),
    [
        ("1", "least({}, 2)"),
        ("v.cost", "abs({})"),
        ("v.cost", "coalesce({}, v.cost)"),
        ("v.cost", "least({}, 2)"),
        ("v.days", "nullif({}, 2)"),
        ("v.cost", "CASE WHEN v.urgent THEN {} ELSE v.cost END"),
    ],
)
def test_what_is_nested_deeply_takes_no_time(inner_text: str, around: str) -> None:
    for _ in range(25):
        inner_text = around.format(inner_text)
    start = time.process_time()
    found = weighing(f"{inner_text} + v.cost", "duckdb")
    assert found.terms
    not_null_condition(flattened(inner_text, "duckdb"))
    assert time.process_time() - start < 5


def test_nothing_is_asked_where_nothing_can_be_null() -> None:
    for expression in ("v.grade", "5", "coalesce(v.cost, 0)", "v.grade * d.rate - 1"):
        assert not_null_condition(flattened(expression, "duckdb")) is None
    asked = not_null_condition(flattened("v.cost * v.grade + v.cost", "duckdb"))
    assert asked is not None and asked.sql() == 'NOT "v"."cost" IS NULL'
