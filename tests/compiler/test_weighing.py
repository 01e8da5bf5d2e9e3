"""What is summed, as products of bounded whole numbers: against exact arithmetic in Python."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import prod

import duckdb
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.catalog import (
    Bounds,
    Catalog,
    Column,
    ColumnType,
    Family,
    Listed,
    Range,
    Table,
)
from sqlrs.compiler.bounded_columns import OPEN, bounded_column
from sqlrs.compiler.bounded_values import MOST, WholeNumbers
from sqlrs.compiler.flat import FlatQuery
from sqlrs.compiler.inline import inline
from sqlrs.compiler.summed_nulls import not_null_condition
from sqlrs.compiler.understand import read_select
from sqlrs.compiler.weighing import Factor, Weighing, weigh
from sqlrs.engines.open import open_engine
from sqlrs.errors import QueryRefused
from sqlrs.trees.build import inner, named, select_from, table_of
from sqlrs.trees.constants import data_type
from sqlrs.trees.identifiers import column
from sqlrs.values import NUMBERS
from tests.support.engine_fixtures import BothEngines
from tests.support.examples import examples
from tests.support.special import LINES, Line

INTEGER = ColumnType(Family.INTEGER, "INTEGER")
BIGINT = ColumnType(Family.INTEGER, "BIGINT")
MONEY = ColumnType(Family.DECIMAL, "DECIMAL(10,2)")
WIDE = ColumnType(Family.DECIMAL, "DECIMAL(38,2)")
DOUBLE = ColumnType(Family.FLOAT, "DOUBLE")
BOOLEAN = ColumnType(Family.BOOLEAN, "BOOLEAN")
TEXT = ColumnType(Family.TEXT, "VARCHAR")


def _bounds(low: str, high: str, grid: str | None = None) -> Bounds:
    return Bounds(Decimal(low), Decimal(high), "a test", None if grid is None else Decimal(grid))


VISIT = Table(
    "visit",
    (
        Column("id", INTEGER, nullable=False),
        Column("days", INTEGER, bounds=_bounds("-5", "10")),
        Column("cost", MONEY, bounds=_bounds("0", "50.5")),
        Column("debt", WIDE, bounds=_bounds("-7.25", "3")),
        Column("score", DOUBLE, bounds=_bounds("-3", "7", "0.25")),
        Column("grade", BIGINT, domain=Range(1, 6, "a test"), nullable=False),
        Column("level", INTEGER, domain=Listed((1, 3, 2), "a test")),
        Column("free", BIGINT),
        Column("loose", DOUBLE),
        Column("huge", WIDE),
        Column("urgent", BOOLEAN),
        Column("ward", TEXT),
    ),
)
DRUG = Table(
    "drug",
    (
        Column("id", INTEGER, nullable=False),
        Column("price", MONEY, bounds=_bounds("0", "20")),
        Column("dose", INTEGER, bounds=_bounds("-2", "4")),
        Column("rate", MONEY, nullable=False, bounds=_bounds("0", "1")),
        Column("odd", BOOLEAN),
    ),
)
CATALOGS = {
    "duckdb": Catalog("duckdb", (VISIT, DRUG)),
    "postgres": Catalog("postgres", (VISIT, DRUG), search_path=("public",)),
}
DIALECTS = sorted(CATALOGS)
Row = dict[str, object]
Rows = list[Row]
Value = Fraction | None


def flattened(
    expression: str, dialect: str, tables: str = "visit v, drug d", empty: str = ""
) -> FlatQuery:
    """The query that sums an expression; an outer join left the table ``empty`` without a row."""
    sql = f"SELECT count(*) FROM {tables} WHERE ({expression}) IS NOT NULL"
    flat = inline(read_select(sql, CATALOGS[dialect]), CATALOGS[dialect])
    *others, condition = flat.conditions
    found = condition.find(exp.Is)
    assert found is not None
    weight = exp.Paren(this=found.this.unnest().copy())
    for node in list(weight.find_all(exp.Column)):
        if node.table == empty:
            node.replace(exp.Null())
    return replace(flat, conditions=tuple(others), weight=weight.this)


def weighing(
    expression: str, dialect: str, tables: str = "visit v, drug d", empty: str = ""
) -> Weighing:
    return weigh(flattened(expression, dialect, tables, empty), CATALOGS[dialect])


def expression_of(factor: Factor) -> exp.Expression:
    tree = factor.expression.copy()
    assert isinstance(tree, exp.Expression)
    return tree


def _is_whole(value: object, decimal: bool) -> bool:
    number = Decimal(str(value))
    return number == int(number) and (decimal or str(value) == str(int(number)))


def measured(
    both: BothEngines, dialect: str, found: Weighing, rows: dict[str, Rows]
) -> dict[tuple[int, int], Fraction]:
    """What each pair of rows weighs by the engine's own values of the factors."""
    tables = {"v": VISIT, "d": DRUG}
    weights: dict[tuple[int, int], Fraction] = {
        (int(str(one["id"])), int(str(two["id"]))): Fraction(0)
        for one, two in product(rows["visit"], rows["drug"])
    }
    with both.engines[dialect].snapshot() as snapshot:
        for term in found.terms:
            assert term.coefficient != 0
            assert len({factor.alias for factor in term.factors}) == len(term.factors)
            values: dict[str, dict[int, int]] = {}
            for factor in term.factors:
                assert all(not c.table for c in factor.expression.find_all(exp.Column))
                statement = select_from(
                    table_of(tables[factor.alias]), column("id"), expression_of(factor)
                )
                read = {int(str(i)): value for i, value in snapshot.rows(statement)}
                assert all(_is_whole(value, factor.decimal) for value in read.values())
                values[factor.alias] = {i: int(Decimal(str(value))) for i, value in read.items()}
                assert all(0 <= v <= factor.bound <= MOST for v in values[factor.alias].values())
            for one, two in weights:
                keys = {"v": one, "d": two}
                times = prod(found_of[keys[alias]] for alias, found_of in values.items())
                weights[one, two] += found.unit * term.coefficient * times
    return weights


# What an analyst writes, with what it means: a text and a function of a row of each table.


@dataclass(frozen=True)
class Written:
    text: str
    meaning: Callable[[Row, Row], Value]
    whole: bool = False


def _clamp(value: Fraction, low: object, high: object) -> Fraction:
    return min(max(value, Fraction(str(low))), Fraction(str(high)))


def _exact(value: object, low: object, high: object) -> Value:
    if value is None:
        return None
    if isinstance(value, Decimal) and value.is_nan():
        return Fraction(str(high))
    assert isinstance(value, int | Decimal)
    return _clamp(Fraction(value), low, high)


def _stepped(value: object, low: object, high: object, step: Fraction) -> Value:
    if value is None:
        return None
    assert isinstance(value, float)
    if math.isnan(value) or value == math.inf:
        return Fraction(str(high))
    if value == -math.inf:
        return Fraction(str(low))
    return round(_clamp(Fraction(value), low, high) / step) * step


COLUMNS: dict[str, Callable[[object], Value]] = {
    "v.days": lambda x: _exact(x, -5, 10),
    "v.cost": lambda x: _exact(x, 0, "50.5"),
    "v.debt": lambda x: _exact(x, "-7.25", 3),
    "v.score": lambda x: _stepped(x, -3, 7, Fraction(1, 4)),
    "v.grade": lambda x: _exact(x, 1, 6),
    "v.level": lambda x: _exact(x, 1, 3),
    "d.price": lambda x: _exact(x, 0, 20),
    "d.dose": lambda x: _exact(x, -2, 4),
    "d.rate": lambda x: _exact(x, 0, 1),
}
WHOLE = {"v.days", "v.grade", "v.level", "d.dose"}


def _column(name: str) -> Written:
    alias, _, own = name.partition(".")

    def meaning(v: Row, d: Row) -> Value:
        return COLUMNS[name]((v if alias == "v" else d)[own])

    return Written(name, meaning, name in WHOLE)


def _number(text: str) -> Written:
    return Written(f"({text})", lambda v, d: Fraction(text), "." not in text)


def _strict(sign: str, one: Written, two: Written) -> Written:
    operation: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
    }

    def meaning(v: Row, d: Row) -> Value:
        a, b = one.meaning(v, d), two.meaning(v, d)
        return None if a is None or b is None else operation[sign](a, b)

    return Written(f"({one.text} {sign} {two.text})", meaning, one.whole and two.whole)


def _choice(name: str, one: Written, two: Written) -> Written:
    def meaning(v: Row, d: Row) -> Value:
        found = [x for x in (one.meaning(v, d), two.meaning(v, d)) if x is not None]
        if name == "coalesce":
            return found[0] if found else None
        return (min if name == "least" else max)(found, default=None)

    return Written(f"{name}({one.text}, {two.text})", meaning, one.whole and two.whole)


def _unary(kind: str, one: Written) -> Written:
    def meaning(v: Row, d: Row) -> Value:
        value = one.meaning(v, d)
        if value is None:
            return None
        return {"-": -value, "abs": abs(value), "/": value / 40}.get(kind, value)

    text = {
        "-": f"(- {one.text})",
        "abs": f"abs({one.text})",
        "/": f"({one.text} / 40.0)",
        "double": f"CAST({one.text} AS DOUBLE PRECISION)",
    }[kind]
    return Written(text, meaning, one.whole and kind not in ("/", "double"))


def _case(alias: str, one: Written, two: Written | None) -> Written:
    name = "urgent" if alias == "v" else "odd"

    def meaning(v: Row, d: Row) -> Value:
        if (v if alias == "v" else d)[name]:
            return one.meaning(v, d)
        return None if two is None else two.meaning(v, d)

    last = "" if two is None else f" ELSE {two.text}"
    text = f"(CASE WHEN {alias}.{name} THEN {one.text}{last} END)"
    return Written(text, meaning, one.whole and (two is None or two.whole))


def _null_where(name: str, text: str) -> Written:
    """The column as it is stored is compared, not as it is clamped."""
    alias, _, own = name.partition(".")
    plain = _column(name)

    def meaning(v: Row, d: Row) -> Value:
        value = (v if alias == "v" else d)[own]
        return None if value == Decimal(text) else plain.meaning(v, d)

    return Written(f"nullif({name}, {text})", meaning, plain.whole)


# What stands between a column and the numbers that bound it.
SHAPES: dict[str, Callable[[Fraction], Fraction]] = {
    "v.{}": lambda x: x,
    "- v.{}": lambda x: -x,
    "abs(v.{})": abs,
    "v.{} + 7": lambda x: x + 7,
    "v.{} - 2.5": lambda x: x - Fraction("2.5"),
    "7 - v.{}": lambda x: 7 - x,
    "2 * v.{} - 7": lambda x: 2 * x - 7,
    "3 + v.{} * (-0.5)": lambda x: 3 - x / 2,
    "v.{} / -4.0": lambda x: x / -4,
    "CAST(v.{} AS DECIMAL(30, 2))": lambda x: x,
}
WINDOWS = [("0", "5"), ("-2.5", "1.75"), ("-9", "-4"), ("3", "3")]


def _windowed(low: str, high: str, name: str, order: bool, shape: str) -> Written:
    """A column that only the text bounds."""
    inside = shape.format(name)
    text = (
        f"least(greatest({inside}, {low}), {high})"
        if order
        else f"greatest(least({inside}, {high}), {low})"
    )

    def meaning(v: Row, d: Row) -> Value:
        value = v[name]
        if value is None:
            return Fraction(low if order else high)
        assert isinstance(value, int | Decimal)
        return _clamp(SHAPES[shape](Fraction(value)), low, high)

    return Written(text, meaning)


@st.composite
def _single(draw: st.DrawFn, alias: str, depth: int = 2) -> Written:
    kinds = ["column", "number"]
    kinds += ["strict", "choice", "unary", "case", "nullif", "window"] * (depth > 0)
    kind = draw(st.sampled_from(kinds))
    deeper = _single(alias, depth - 1)
    if kind == "number":
        return _number(draw(st.sampled_from(["2", "0", "0.5", "-1.25", "-3"])))
    if kind == "strict":
        return _strict(draw(st.sampled_from("+-*")), draw(deeper), draw(deeper))
    if kind == "choice":
        name = draw(st.sampled_from(["least", "greatest", "coalesce"]))
        return _choice(name, draw(deeper), draw(deeper))
    if kind == "unary":
        return _unary(draw(st.sampled_from(["-", "abs", "/", "double"])), draw(deeper))
    if kind == "case":
        return _case(alias, draw(deeper), draw(st.none() | deeper))
    if kind == "nullif":
        names = {"v": ["v.days", "v.level", "v.cost"], "d": ["d.dose", "d.price"]}[alias]
        return _null_where(draw(st.sampled_from(names)), draw(st.sampled_from(["1", "7", "11"])))
    if kind == "window" and alias == "v":
        low, high = draw(st.sampled_from(WINDOWS))
        name, shape = draw(st.sampled_from(["free", "huge"])), draw(st.sampled_from(sorted(SHAPES)))
        return _windowed(low, high, name, draw(st.booleans()), shape)
    return _column(draw(st.sampled_from(sorted(n for n in COLUMNS if n.startswith(alias)))))


@st.composite
def _mixed(draw: st.DrawFn) -> Written:
    one, two = draw(_single("v")), draw(_single("d", 1))
    kind = draw(st.sampled_from(["single", "product", "sum", "difference", "spread", "case"]))
    if kind == "single":
        return one
    if kind == "case":
        return _case("d", one, draw(st.none() | st.just(two)))
    if kind == "spread":
        return _strict("*", _strict("-", one, two), _column("v.grade"))
    return _strict({"product": "*", "sum": "+", "difference": "-"}[kind], one, two)


def _maybe(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | values


_INTS = st.sampled_from([-(2**31), -6, -5, -1, 0, 1, 2, 3, 7, 10, 11, 2**31 - 1])
_LONGS = st.sampled_from([-(2**63), -3, 0, 1, 4, 2**63 - 1])
_MONEY = st.sampled_from(
    [Decimal(x) for x in ("-99999999.99", "-0.01", "0", "0.01", "0.99", "19.99", "50.51", "1e7")]
)
_WIDE = st.sampled_from(
    [Decimal(x) for x in (f"-{'9' * 36}.99", "-7.26", "-2.5", "0.01", "1.75", "3.01", "9" * 36)]
)
_DOUBLES = st.sampled_from(
    [-math.inf, -1e308, -3.2, -0.1, -0.0, 5e-324, 0.125, 0.374, 2.5, 6.9, 7.1, math.inf, math.nan]
)
_VISITS = st.fixed_dictionaries(
    {
        "days": _maybe(_INTS),
        "cost": _maybe(_MONEY),
        "debt": _maybe(_WIDE),
        "score": _maybe(_DOUBLES),
        "grade": _LONGS,
        "level": _maybe(_INTS),
        "free": _maybe(_LONGS),
        "loose": _maybe(_DOUBLES),
        "huge": _maybe(_WIDE),
        "urgent": _maybe(st.booleans()),
        "ward": _maybe(st.sampled_from(["A", "b", ""])),
    }
)
_DRUGS = st.fixed_dictionaries(
    {"price": _maybe(_MONEY), "dose": _maybe(_INTS), "rate": _MONEY, "odd": _maybe(st.booleans())}
)


def loaded(both: BothEngines, visits: Sequence[Row], drugs: Sequence[Row]) -> dict[str, Rows]:
    rows = {
        "visit": [{**row, "id": i} for i, row in enumerate(visits)],
        "drug": [{**row, "id": i} for i, row in enumerate(drugs)],
    }
    tables = {table.name: [column.name for column in table.columns] for table in (VISIT, DRUG)}
    contents = {n: [tuple(row[c] for c in tables[n]) for row in rows[n]] for n in tables}
    both.load((VISIT, DRUG), contents)
    return rows


def _nobody(row: Row) -> Row:
    """The row that an outer join puts in the place of a partner."""
    return {name: value if name == "id" else None for name, value in row.items()}


def _true(condition: exp.Expr | None) -> exp.Select:
    pairs = select_from(table_of(VISIT, "v"), column("id", "v"), column("id", "d"))
    pairs.append("joins", exp.Join(this=table_of(DRUG, "d"), kind="CROSS"))
    return pairs.where(condition.copy()) if condition is not None else pairs


def test_every_pair_of_rows_weighs_what_the_text_says(both_engines: BothEngines) -> None:
    weighed = 0

    @given(
        st.lists(_VISITS, min_size=1, max_size=6),
        st.lists(_DRUGS, min_size=1, max_size=4),
        st.lists(st.tuples(_mixed(), st.sampled_from(["", "", "d"])), min_size=1, max_size=6),
    )
    @settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
    def check(visits: list[Row], drugs: list[Row], expressions: list[tuple[Written, str]]) -> None:
        nonlocal weighed
        rows = loaded(both_engines, visits, drugs)
        for written, empty in expressions:
            values = {
                (v["id"], d["id"]): written.meaning(v, _nobody(d) if empty else d)
                for v, d in product(rows["visit"], rows["drug"])
            }
            expected = {pair: value or Fraction(0) for pair, value in values.items()}
            present = {pair for pair, value in values.items() if value is not None}
            for dialect in DIALECTS:
                flat = flattened(written.text, dialect, empty=empty)
                with both_engines.engines[dialect].snapshot() as snapshot:
                    found = snapshot.rows(_true(not_null_condition(flat)))
                assert set(found) == present, (written.text, empty)
                try:
                    weighing_of = weigh(flat, CATALOGS[dialect])
                except QueryRefused as error:
                    assert "several tables" in error.message, (written.text, error.message)
                    continue
                assert len(weighing_of.terms) <= 16
                weights = measured(both_engines, dialect, weighing_of, rows)
                assert weights == expected, (written.text, empty)
                weighed += 1

    check()
    assert weighed > 50


def test_what_only_the_text_bounds(both_engines: BothEngines) -> None:
    """Every shape in every window, over the largest numbers and those around the ends."""
    longs: list[object] = [None, -(2**63), *range(-30, 31, 3), 2, 2**63 - 1]
    wides = [None if n is None else Decimal(str(n)) / 4 for n in longs]
    blank = dict.fromkeys((c.name for c in VISIT.columns), None) | {"grade": 1}
    visits = [{**blank, "free": n, "huge": w} for n, w in zip(longs, wides, strict=True)]
    drug = dict.fromkeys((c.name for c in DRUG.columns), None) | {"rate": 1}
    rows = loaded(both_engines, visits, [drug])
    for shape, ends, name, order in product(SHAPES, WINDOWS, ("free", "huge"), (True, False)):
        written = _windowed(*ends, name, order, shape)
        expected = {(v["id"], 0): written.meaning(v, {}) for v in rows["visit"]}
        for dialect in DIALECTS:
            found = weighing(written.text, dialect)
            assert measured(both_engines, dialect, found, rows) == expected, written.text


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


def test_the_largest_sums_lose_no_digit(both_engines: BothEngines) -> None:
    """300 rows of the largest weight, once more for each of 300 others."""
    number = 300
    visit = dict.fromkeys((c.name for c in VISIT.columns), None) | {"grade": 1, "free": 2**63 - 1}
    drug = dict.fromkeys((c.name for c in DRUG.columns), None) | {"rate": 1}
    loaded(both_engines, [visit] * number, [drug] * number)
    for dialect in DIALECTS:
        found = weighing(f"least(greatest(v.free, 0), {MOST})", dialect)
        [[factor]] = [term.factors for term in found.terms]
        assert factor.bound == MOST
        weights = inner(select_from(table_of(VISIT), named(expression_of(factor), "w")), "weights")
        total = select_from(weights, exp.Sum(this=column("w")))
        total.append("joins", exp.Join(this=table_of(DRUG), kind="CROSS"))
        with both_engines.engines[dialect].snapshot() as snapshot:
            assert snapshot.scalar(total) == MOST * number**2


# Decimals without a scale and floating point, with ends and grids by the owner.
LOOSE = Table(
    "loose",
    (
        Column("id", INTEGER, nullable=False),
        Column("n", ColumnType(Family.DECIMAL, "numeric"), bounds=_bounds("-2", "5000")),
        Column("g", ColumnType(Family.DECIMAL, "numeric"), bounds=_bounds("0", "10", "0.3")),
        Column("x", ColumnType(Family.FLOAT, "double precision"), bounds=_bounds("0", "9", "0.01")),
        Column("y", ColumnType(Family.FLOAT, "real"), bounds=_bounds("-1e9", "1e9", "1e-9")),
        Column(
            "z", ColumnType(Family.FLOAT, "double precision"), bounds=_bounds("-1", "1", "1e100")
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
    ends = Fraction(known.bounds.low), Fraction(known.bounds.high)
    for text in SPECIALS if known.type.name != "real" else ["NaN", "Infinity", "-3e38", "2.75"]:
        found, value = weight_of(both_engines, "postgres", known, text)
        number = float(text.replace("NaN", "Infinity"))
        exact = ends[number > 0] if math.isinf(number) else _clamp(Fraction(text), *ends)
        assert abs(value - exact) <= found.unit, text


@pytest.mark.parametrize(
    ("dialect", "line"),
    [(e, line) for e in DIALECTS for line in LINES[e] if line.type.family in NUMBERS],
    ids=str,
)
def test_every_number_of_every_type_lies_between_the_ends(
    both_engines: BothEngines, dialect: str, line: Line
) -> None:
    known = Column("c", line.type, bounds=_bounds("-0.5", "5.5", "0.25"))
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
            bounded = tuple(replace(c, bounds=_bounds("0", "20.005")) for c in bill.columns)
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
    held = Column("x", kind, bounds=_bounds(str(-high), str(high)))
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
    one = Column("x", ColumnType(Family.INTEGER, "INTEGER"), bounds=_bounds(*whole_ends))
    kind = ColumnType(Family.DECIMAL, "DECIMAL(12,2)")
    other = Column("y", kind, bounds=_bounds(*decimal_ends))
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
