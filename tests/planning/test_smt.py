"""The solver's values against brute force over every external value of a domain beyond the data."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import date, timedelta

import duckdb
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.errors import EngineFailed
from sqlrs.measuring import solver
from sqlrs.measuring.solvable import solvable, understood
from sqlrs.planning.external_plans import Solved
from sqlrs.query import General, Query, Variable
from sqlrs.residuals.residual import Reading, Residual, Residuals
from sqlrs.sql.write import statement_of
from tests.support import brute
from tests.support.builders import DECIMAL, INTEGER, TEXT, Side, atom, query, table
from tests.support.examples import examples
from tests.support.weights import cells_of, weighable, weighed

DATE = ColumnType(Family.DATE, "DATE")
R = table("r", "x", "y", nullable="x y")
HEAVY = weighable(R)
CONNECTION = duckdb.connect(config={"threads": 1})


def condition(text: str) -> exp.Expression:
    """A predicate over v0, v1, … as the compiler writes it."""
    tree = sqlglot.parse_one(text, dialect="duckdb")
    return tree.transform(
        lambda n: exp.Placeholder(this=n.name) if isinstance(n, exp.Column) else n
    )


def by_database(tree: Hashable, values: object) -> bool:
    """The truth of a condition for given arguments, asked of DuckDB."""
    assert isinstance(tree, exp.Expression)
    assert isinstance(values, tuple)

    def placed(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Placeholder):
            return node
        value = values[int(node.name[1:])]
        return exp.cast(exp.convert(value), "DATE" if isinstance(value, date) else "BIGINT")

    sql = exp.select(tree.copy().transform(placed)).sql(dialect="duckdb")
    row = CONNECTION.execute(sql).fetchone()
    assert row is not None
    return row[0] is True


def load(q: Query, rows: brute.Database) -> None:
    for each in {a.table.label: a.table for a in q.atoms}.values():
        columns = ", ".join(f"{c.name} {c.type.name}" for c in each.columns)
        CONNECTION.execute(f"CREATE OR REPLACE TABLE {each.name} ({columns})")
        for row in rows[each.label]:
            CONNECTION.execute(f"INSERT INTO {each.name} VALUES ({', '.join('?' * len(row))})", row)


def solve(residual: Residual, seconds: float = 60) -> int:
    plan = Solved(residual, seconds)
    return solver.solve(
        plan, CONNECTION.execute(statement_of(plan, "duckdb").sql("duckdb")).fetchall()
    )


TEXTS = [
    "v0 + v1 < 4",
    "v0 % 2 = v1 % 2",
    "ABS(v0 - v1) <= 1",
    "v0 - v1 >= 0 AND v0 - v1 <= 2",
    "v0 < v1 OR v0 + v1 = 3",
    "NOT (v0 * v1 = 2)",
    "v0 IN (v1, v1 + 2)",
    "2 * v0 <> v1 + 1",
    "NOT (v0 > 1 AND v1 < 2)",
    "v0 % 3 = v1 + 1",
]


@st.composite
def problems(draw: st.DrawFn) -> tuple[Query, brute.Database]:
    """Two atoms, with or without a shared variable, and predicates that cross between them."""
    atoms = [atom(HEAVY, "a", "b"), atom(HEAVY, draw(st.sampled_from("ac")), "d")]
    inside, outside = ["a", "b"], sorted({v.name for v in atoms[1].variables} - {"a"})
    crossing = [f"{x} {z}" for x in inside for z in outside]
    generals = [
        (condition(draw(st.sampled_from(TEXTS))), draw(st.sampled_from(crossing)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    pairs: list[tuple[Side, Side]] = [(x, z) for x in inside for z in outside]
    less = draw(st.lists(st.sampled_from(pairs + [(z, x) for x, z in pairs]), max_size=1))
    distinct = draw(st.sampled_from([None, None, "a", "b", "a b"]))
    if distinct is None:
        atoms = [*draw(weighed(atoms))]
    value = st.one_of(st.none(), st.integers(-4, 4), st.integers(0, 4))
    pairs_of = st.tuples(st.integers(0, 1) | value, value)
    rows = draw(cells_of(draw(st.lists(pairs_of, min_size=3, max_size=7))))
    return query(*atoms, general=generals, less=less, distinct=distinct), {HEAVY.name: rows}


@settings(max_examples=examples(30), deadline=None)
@given(problems())
def test_equal_to_brute_force(problem: tuple[Query, brute.Database]) -> None:
    q, rows = problem
    load(q, rows)
    residuals = Residuals(q, Reading(solved=solvable(q)))

    def domain(_: Variable) -> list[object]:
        return [None, *range(-5, 10)]

    known: dict[tuple[Hashable, object], bool] = {}

    def evaluate(tree: Hashable, values: object) -> bool:
        if (tree, values) not in known:
            known[tree, values] = by_database(tree, values)
        return known[tree, values]

    residual = residuals.of(frozenset({0}))
    expected = brute.residual_value(residual, rows, domain=domain, evaluate=evaluate)
    assert solve(residual) == expected


def test_visits_within_seven_days() -> None:
    """The best external day allows a window of fifteen days, wherever it lies."""
    visit = table("visit", "patient", "day", types={"day": DATE})
    within = condition("ABS(v0 - v1) <= 7")
    q = query(atom(visit, "p", "d"), atom(visit, "p", "e"), general=[(within, "d e")])
    start = date(2024, 2, 20)
    days = [0, 3, 14, 15, 16, 40, 41]
    rows: brute.Database = {"visit": [(1, start + timedelta(days=d)) for d in days]}
    load(q, rows)
    residual = Residuals(q, Reading(solved=solvable(q))).of(frozenset({0}))
    assert solve(residual) == 4


def test_a_date_without_end_counts_as_later_than_every_date() -> None:
    """The first row allows every day, the second one beyond the year 10000: together two."""
    visit = table("visit", "x", "day", types={"day": DATE})
    far = condition("v0 = 1 AND v1 > v2 OR v0 = 2 AND v2 - v1 > 1000")
    q = query(atom(visit, "x", "d"), atom(visit, "y", "e"), general=[(far, "x d e")])
    CONNECTION.execute("CREATE OR REPLACE TABLE visit (x BIGINT, day DATE)")
    CONNECTION.execute("INSERT INTO visit VALUES (1, 'infinity'), (2, '9999-12-31')")
    residual = Residuals(q, Reading(solved=solvable(q))).of(frozenset({0}))
    assert solve(residual) == 2


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("v0 + v1 < 10", INTEGER, True),
        ("v0 + INTERVAL '7' DAY >= v1", DATE, False),
        ("v0 + 7 <= v1", DATE, False),
        ("v0 + v1 < 10", DECIMAL, True),
        ("v0 + v1 < 10", ColumnType(Family.DECIMAL, "numeric"), False),
        ("v0 - v1 <= 7", DATE, True),
        ("v0 + v1 < 10", DATE, False),
        ("v0 + 1.5 < v1", INTEGER, True),
        ("v0 + 1e3 < v1", INTEGER, False),
        (f"v0 + 0.{'0' * 39}1 < v1", INTEGER, False),
        ("v0 / v1 < 10", INTEGER, False),
        ("v0 % v1 = 0", INTEGER, False),
        ("SQRT(v0) < v1", INTEGER, False),
        ("v0 IS NULL OR v0 < v1", INTEGER, False),
        ("COALESCE(v0, v1) < 3", INTEGER, False),
        ("v0 || v1 = 'a'", TEXT, False),
    ],
)
def test_what_is_understood_is_decided_from_the_predicate(
    text: str, kind: ColumnType, expected: bool
) -> None:
    arguments = (Variable("x", kind), Variable("y", kind))
    assert understood(General(condition(text), arguments)) == expected


def test_reaching_the_limit_raises() -> None:
    hard = condition("v0 * v0 * v0 + v1 * v1 * v1 = v2 * v2 * v2 + 33")
    q = query(atom(R, "a", "b"), atom(R, "c", "d"), general=[(hard, "b c d")])
    load(q, {"r": [(0, i) for i in range(2, 60)]})
    residual = Residuals(q, Reading(solved=solvable(q))).of(frozenset({0}))
    with pytest.raises(EngineFailed) as caught:
        solve(residual, seconds=0.05)
    assert caught.value.code == "solver_limit"
