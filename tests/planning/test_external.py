"""External comparisons: the sweep and the domain against brute force over the whole domain."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from itertools import combinations

import duckdb
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sqlrs.catalog import ColumnType, Family
from sqlrs.planning.external_plans import Domain, Sweep, external_plan
from sqlrs.planning.plan import ResidualPlan
from sqlrs.query import Query
from sqlrs.residuals.residual import Reading, Residuals, subsets
from sqlrs.sql.write import statement_of
from tests.support import brute
from tests.support.builders import DECIMAL, INTEGER, atom, query, table
from tests.support.examples import examples
from tests.support.weights import COLUMNS, cells, weighed

DATE = ColumnType(Family.DATE, "DATE")
VALUES = {
    INTEGER: st.one_of(st.none(), st.integers(0, 6)),
    DECIMAL: st.one_of(st.none(), st.integers(0, 4).map(Decimal)),
    DATE: st.one_of(st.none(), st.integers(0, 5).map(lambda d: date(2020, 2, 27) + timedelta(d))),
}


CONNECTION = duckdb.connect(config={"threads": 1})
# A connection of the user's may sort downwards unless told otherwise.
CONNECTION.execute("SET default_order = 'DESC'")


def load(q: Query, rows: brute.Database) -> None:
    for each in {a.table.label: a.table for a in q.atoms}.values():
        columns = ", ".join(f"{c.name} {c.type.name}" for c in each.columns)
        CONNECTION.execute(f"CREATE OR REPLACE TABLE {each.name} ({columns})")
        marks = ", ".join("?" for _ in each.columns)
        for row in rows[each.label]:
            CONNECTION.execute(f"INSERT INTO {each.name} VALUES ({marks})", row)


def run(plan: ResidualPlan) -> int:
    result = CONNECTION.execute(statement_of(plan, "duckdb").sql(dialect="duckdb")).fetchone()
    assert result is not None
    return int(result[0])


@st.composite
def compared(draw: st.DrawFn, kind: ColumnType) -> tuple[Query, brute.Database]:
    """A query of up to three atoms with up to four comparisons, and rows for its tables."""
    name = f"r_{kind.family.value}"
    of = table(name, "x", "y", *COLUMNS, nullable="x y", types={"x": kind, "y": kind})
    names = "abcde"
    atoms = [
        atom(of, draw(st.sampled_from(names)), draw(st.sampled_from(names)))
        for _ in range(draw(st.integers(2, 3)))
    ]
    used = sorted({v.name for a in atoms for v in a.variables})
    assume(len(used) > 1)
    # By name, so that no cycle arises: a cycle is simplified away before residuals are made.
    pairs = list(combinations(used, 2))
    constants: list[tuple[str | int, str | int]] = []
    if kind is INTEGER:
        constants = [(v, 4) for v in used] + [(2, v) for v in used]
    choices = st.lists(st.sampled_from([*pairs, *constants]), min_size=1, max_size=3, unique=True)
    less, at_most = draw(choices), draw(choices)
    different = draw(st.lists(st.sampled_from(pairs), max_size=1))
    weighted = draw(weighed(atoms))
    distinct = draw(st.one_of(st.none(), st.sets(st.sampled_from(used), min_size=1)))
    q = query(
        *(weighted if distinct is None else atoms),
        less=less,
        at_most=at_most,
        different=[" ".join(p) for p in different],
        distinct=None if distinct is None else " ".join(sorted(distinct)),
    )
    rows = draw(st.lists(st.tuples(VALUES[kind], VALUES[kind], *map(cells, COLUMNS)), max_size=5))
    return q, {name: rows}


@pytest.mark.parametrize("kind", [INTEGER, DECIMAL, DATE], ids=lambda k: k.family.value)
@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_equal_to_brute_force(kind: ColumnType, data: st.DataObject) -> None:
    q, rows = data.draw(compared(kind))
    load(q, rows)
    residuals = Residuals(q, Reading())
    for members in subsets(q.everything):
        residual = residuals.of(members)
        if residual.external and len(residuals.parts(members)) == 1:
            expected = brute.residual_value(residual, rows)
            assert run(external_plan(residual)) == expected
            assert run(Domain(residual)) == expected


def test_the_best_value_occurs_nowhere_in_the_data() -> None:
    """x4 < z < x8 with x4 in {1,2,3} and x8 in {5,6,7}: all nine pairs meet at z = 4 alone."""
    low, high, middle = table("low", "v"), table("high", "v"), table("middle", "v")
    q = query(atom(low, "x"), atom(high, "y"), atom(middle, "z"), less=[("x", "z"), ("z", "y")])
    rows: brute.Database = {
        "low": [(1,), (2,), (3,)],
        "high": [(5,), (6,), (7,)],
        "middle": [(2,), (6,)],
    }
    load(q, rows)
    residual = Residuals(q).of(frozenset({0, 1}))
    assert run(Sweep(residual)) == 9
    assert run(Domain(residual)) == 9


def test_nothing_lies_between_neighbouring_integers() -> None:
    low, high, middle = table("low", "v"), table("high", "v"), table("middle", "v")
    q = query(atom(low, "x"), atom(high, "y"), atom(middle, "z"), less=[("x", "z"), ("z", "y")])
    rows: brute.Database = {"low": [(3,)], "high": [(4,)], "middle": []}
    load(q, rows)
    residual = Residuals(q).of(frozenset({0, 1}))
    assert run(Sweep(residual)) == 0
    load(q, {"low": [(3,)], "high": [(5,)], "middle": []})
    assert run(Sweep(residual)) == 1


def test_the_largest_integer_has_a_next_one() -> None:
    biggest = 2**63 - 1
    low, middle = table("low", "v"), table("middle", "v")
    q = query(atom(low, "x"), atom(middle, "z"), less=[("x", "z")], at_most=[("z", biggest)])
    residual = Residuals(q).of(frozenset({0}))
    load(q, {"low": [(biggest,), (biggest - 1,)], "middle": []})
    assert run(Sweep(residual)) == 1
    assert run(Domain(residual)) == 1


@pytest.mark.parametrize(("strict", "expected"), [(True, 1), (False, 2)])
def test_open_intervals_that_touch_do_not_overlap(strict: bool, expected: int) -> None:
    """No number is both below 1 and above it; 1 itself is at most 1 and at least 1."""
    span = table("span", "low", "high", types={"low": DECIMAL, "high": DECIMAL})
    middle = table("middle", "v", types={"v": DECIMAL})
    pairs = [("x", "z"), ("z", "y")]
    q = query(
        atom(span, "x", "y"),
        atom(middle, "z"),
        less=pairs if strict else (),
        at_most=() if strict else pairs,
    )
    load(q, {"span": [(Decimal(0), Decimal(1)), (Decimal(1), Decimal(2))], "middle": []})
    residual = Residuals(q).of(frozenset({0}))
    assert run(Sweep(residual)) == expected
    assert run(Domain(residual)) == expected
