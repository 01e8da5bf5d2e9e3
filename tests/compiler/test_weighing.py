"""What is summed, as products of bounded whole numbers: against exact arithmetic in Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import prod

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.compiler.bounded_values import MOST
from sqlrs.compiler.summed_nulls import not_null_condition
from sqlrs.compiler.weighing import Weighing, weigh
from sqlrs.errors import QueryRefused
from sqlrs.trees.build import inner, named, select_from, table_of
from sqlrs.trees.identifiers import column
from tests.compiler.weighed_tables import (
    CATALOGS,
    DIALECTS,
    DRUG,
    VISIT,
    expression_of,
    flattened,
    weighing,
)
from tests.support.engine_fixtures import BothEngines
from tests.support.examples import examples

Row = dict[str, object]
Rows = list[Row]
Value = Fraction | None


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
