"""Special values in sweeps, domains and solved residuals, on both engines, against brute force.

The oracle reads order and equality from tests.support.special, never from sqlrs.values.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import duckdb
import psycopg
import pytest
import sqlglot
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.measuring import solver
from sqlrs.measuring.solvable import solvable
from sqlrs.planning.external_plans import Domain, Solved, Sweep, external_plan
from sqlrs.query import Query
from sqlrs.residuals.residual import Reading, Residual, Residuals, subsets
from sqlrs.sql import places
from sqlrs.sql.write import statement_of
from tests.planning.adapters import Direct
from tests.support import brute
from tests.support.builders import INTEGER, atom, query, table
from tests.support.examples import examples
from tests.support.special import APART, LINES, Line, Special

DAYS = {"duckdb": ColumnType(Family.DATE, "DATE"), "postgres": ColumnType(Family.DATE, "date")}
EVERY = [(engine, line) for engine, lines in LINES.items() for line in lines]
every_line = pytest.mark.parametrize(("engine", "line"), EVERY, ids=lambda v: str(v))
both = pytest.mark.parametrize("engine", LINES)


@pytest.fixture(scope="module")
def engines(postgres: str) -> Iterator[dict[str, Direct]]:
    with (
        duckdb.connect(config={"threads": 1}) as one,
        psycopg.connect(postgres, autocommit=True) as other,
    ):
        one.execute("SET default_order = 'DESC'")
        other.execute("CREATE SCHEMA IF NOT EXISTS special_plans")
        other.execute("SET search_path = special_plans")
        other.execute(
            "CREATE COLLATION IF NOT EXISTS nocase "
            "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        )
        yield {"duckdb": Direct(one), "postgres": Direct(other)}
        other.execute("DROP SCHEMA special_plans CASCADE")


def load(on: Direct, q: Query, rows: brute.Database) -> None:
    for each in {a.table.label: a.table for a in q.atoms}.values():
        on.fill(each, rows[each.label])


def solve(on: Direct, residual: Residual) -> int:
    plan = Solved(residual)
    return solver.solve(plan, on.rows(statement_of(plan, "duckdb")))


def condition(text: str) -> exp.Expression:
    """A predicate over v0, v1, … as the compiler writes it."""
    tree = sqlglot.parse_one(text, dialect="duckdb")
    return tree.transform(
        lambda n: exp.Placeholder(this=n.name) if isinstance(n, exp.Column) else n
    )


@st.composite
def compared(draw: st.DrawFn, line: Line) -> tuple[Query, brute.Database]:
    """Up to three atoms with up to four comparisons, which may form a cycle."""
    of = table("r", "x", "y", nullable="x y", types={"x": line.type, "y": line.type})
    names = "abcd"
    atoms = [
        atom(of, draw(st.sampled_from(names)), draw(st.sampled_from(names)))
        for _ in range(draw(st.integers(2, 3)))
    ]
    used = sorted({v.name for a in atoms for v in a.variables})
    assume(len(used) > 1)
    pairs = list(combinations(used, 2))
    less = draw(st.lists(st.sampled_from(pairs), max_size=3, unique=True))
    at_most = draw(
        st.lists(
            st.sampled_from([*pairs, *(p[::-1] for p in pairs)]),
            min_size=0 if less else 1,
            max_size=2,
            unique=True,
        )
    )
    distinct = draw(st.one_of(st.none(), st.sets(st.sampled_from(used), min_size=1)))
    q = query(
        *atoms,
        less=less,
        at_most=at_most,
        distinct=None if distinct is None else " ".join(sorted(distinct)),
    )
    value = st.one_of(st.none(), st.sampled_from(line.values), st.sampled_from(line.values))
    return q, {"r": draw(st.lists(st.tuples(value, value), max_size=4))}


@every_line
@settings(max_examples=examples(10), deadline=None)
@given(data=st.data())
def test_equal_to_brute_force(
    engines: dict[str, Direct], engine: str, line: Line, data: st.DataObject
) -> None:
    on = engines[engine]
    q, rows = data.draw(compared(line))
    load(on, q, rows)
    residuals = Residuals(q, Reading())
    for members in subsets(q.everything):
        residual = residuals.of(members)
        # Three externals of brute force are a million points; the plans see no difference.
        if 0 < len(residual.external) <= 2 and len(residuals.parts(members)) == 1:
            expected = brute.residual_value(residual, rows)
            assert on.scalar(statement_of(external_plan(residual), "duckdb")) == expected
            assert on.scalar(statement_of(Domain(residual), "duckdb")) == expected


def between(kind: ColumnType, **more: Any) -> Query:
    """The issue's shape: a.x < m.z and m.z < a.v."""
    a = table("a", "id", "x", "v", keys=["id"], types={"x": kind, "v": kind})
    m = table("m", "z", "y", types={"z": kind, "y": kind})
    return query(atom(a, "id", "x", "v"), atom(m, "z", "y"), **more)


SHAPES: dict[str, dict[str, Any]] = {
    "rows": {"less": [("x", "z"), ("z", "v")]},
    "distinct": {"less": [("x", "z"), ("z", "v")], "distinct": "id"},
    "chain": {"less": [("x", "z"), ("z", "y")], "at_most": [("y", "v")]},
}


@both
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ("-infinity", "2020-01-01", 5),
        ("2020-01-01", "infinity", 5),
        ("-infinity", "infinity", 5),
        ("infinity", "infinity", 0),
        ("2019-12-30", "2020-01-01", 5),
        ("2019-12-31", "2020-01-01", None),
    ],
)
def test_infinite_dates(
    engines: dict[str, Direct],
    engine: str,
    shape: str,
    low: str,
    high: str,
    expected: int | None,
) -> None:
    """-infinity + 1 is -infinity: T_E was 0 where one row of m makes every row of a count."""
    on, q = engines[engine], between(DAYS[engine], **SHAPES[shape])
    if expected is None or (shape, low) == ("chain", "2019-12-30"):
        expected = 5 if shape == "chain" and low == "2019-12-30" else 0
    load(on, q, {"a": [(i, low, high) for i in range(5)], "m": []})
    residual = Residuals(q).of(frozenset({0}))
    assert on.scalar(statement_of(external_plan(residual), "duckdb")) == expected
    assert on.scalar(statement_of(Domain(residual), "duckdb")) == expected


@both
def test_the_last_date_has_a_place_beyond(engines: dict[str, Direct], engine: str) -> None:
    """Its next day overflowed; in PostgreSQL many days lie before infinity, in DuckDB none."""
    (line,) = (each for each in LINES[engine] if each.type.family is Family.DATE)
    last, infinity = line.values[-2:]
    q = between(DAYS[engine], less=[("x", "z")], at_most=[("z", "v")])
    load(engines[engine], q, {"a": [(1, last, infinity), (2, last, last)], "m": []})
    residual = Residuals(q).of(frozenset({0}))
    assert engines[engine].scalar(statement_of(Sweep(residual), "duckdb")) == 1
    assert engines[engine].scalar(statement_of(Domain(residual), "duckdb")) == 1


def test_a_step_on_the_type_itself_is_seen(
    engines: dict[str, Direct], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: dates that step as dates lose the rows from -infinity on."""
    on, q = engines["duckdb"], between(DAYS["duckdb"], **SHAPES["rows"])
    load(on, q, {"a": [(1, "-infinity", "2020-01-01")], "m": []})
    residual = Residuals(q).of(frozenset({0}))
    monkeypatch.setattr(places, "day_number", lambda value: value)
    assert on.scalar(statement_of(Domain(residual), "duckdb")) == 0


def test_the_tightest_bound_follows_the_collation(engines: dict[str, Direct]) -> None:
    """GREATEST('a', 'B') is 'a', whatever the collation: B was no bound, and nothing remained."""
    kind = ColumnType(Family.TEXT, "VARCHAR", "NOCASE")
    r = table("r", "x", "w", "v", types=dict.fromkeys("xwv", kind))
    m = table("m", "z", types={"z": kind})
    q = query(atom(r, "x", "w", "v"), atom(m, "z"), at_most=[("x", "z"), ("w", "z"), ("z", "v")])
    on = engines["duckdb"]
    load(on, q, {"r": [("a", "B", "b")] * 3 + [("a", "B", "A")], "m": []})
    residual = Residuals(q).of(frozenset({0}))
    assert on.scalar(statement_of(Sweep(residual), "duckdb")) == 3
    assert on.scalar(statement_of(Domain(residual), "duckdb")) == 3


@both
@pytest.mark.parametrize("distinct", [None, "x"])
def test_a_cycle_of_external_variables_needs_no_lower_bound(
    engines: dict[str, Direct], engine: str, distinct: str | None
) -> None:
    for line in LINES[engine]:
        kinds = dict.fromkeys("xy", line.type)
        r, m = table("r", "x", types=kinds), table("m", "x", "y", types=kinds)
        q = query(
            *(atom(r, "x"), atom(m, "y", "z")),
            at_most=[("y", "z"), ("z", "y"), ("z", "x")],
            distinct=distinct,
        )
        load(engines[engine], q, {"r": [(v,) for v in line.values], "m": []})
        residual = Residuals(q).of(frozenset({0}))
        different = len(set(line.values)) if distinct else len(line.values)
        assert engines[engine].scalar(statement_of(Domain(residual), "duckdb")) == different


# The solver: the engine says which boundary values and which outputs are equal.

KEYS = [*EVERY, *(("postgres", line) for line in APART)]


@pytest.mark.parametrize(("engine", "line"), KEYS, ids=lambda v: str(v))
@pytest.mark.parametrize("outputs", [False, True], ids=["boundary", "outputs"])
def test_the_solver_groups_as_the_engine_does(
    engines: dict[str, Direct], engine: str, line: Line, outputs: bool
) -> None:
    """NaN is no key of a Python dict, 'a' and 'A' are two, and infinity is no date of Python's."""
    pytest.importorskip("z3")
    a = table("a", "k", "x", nullable="k", types={"k": line.type})
    b = table("b", "k", "y", nullable="k", types={"k": line.type})
    q = query(
        atom(a, "k", "x"),
        atom(b, "j" if outputs else "k", "y"),
        general=[(condition("v0 + v1 < 1000"), "x y")],
        distinct="k" if outputs else None,
    )
    on, values = engines[engine], list(line.values)
    residual = Residuals(q, Reading(solved=solvable(q))).of(frozenset({0}))
    if outputs:
        rows = [(value, i) for i, value in enumerate([*values, None] * 2)]
        load(on, q, {"a": rows, "b": []})
        assert solve(on, residual) == len(set(values)) + 1
        return
    load(on, q, {"a": [], "b": []})
    for same in ([v for v in values if v == one] for one in sorted(set(values))):
        # Each row another number, so that each brings a form of the value of its own.
        on.fill(a, [(value, i) for i, value in enumerate([*same, None] * 3)])
        assert solve(on, residual) == 3 * len(same)


@pytest.mark.parametrize("kind", ["DOUBLE[]", "STRUCT(a DOUBLE, b VARCHAR)"])
def test_the_solver_groups_lists_and_structs(engines: dict[str, Direct], kind: str) -> None:
    pytest.importorskip("z3")
    nested = ColumnType(Family.OTHER, kind)
    a = table("a", "k", "x", types={"k": nested})
    b = table("b", "k", "y", types={"k": nested})
    general = [(condition("v0 + v1 < 1000"), "x y")]
    q = query(atom(a, "k", "x"), atom(b, "k", "y"), general=general)
    text = "[nan, -0.0]" if kind.endswith("[]") else "{'a': nan, 'b': 'x'}"
    other = "[nan, 0.0]" if kind.endswith("[]") else text
    load(engines["duckdb"], q, {"a": [(text, 1), (other, 2), (text, 3)], "b": []})
    residual = Residuals(q, Reading(solved=solvable(q))).of(frozenset({0}))
    assert solve(engines["duckdb"], residual) == 3


@both
def test_the_solver_reads_infinite_dates_as_the_sweep_does(
    engines: dict[str, Direct], engine: str
) -> None:
    """The same residual, once swept and once with a predicate that is always true beside it."""
    pytest.importorskip("z3")
    on, kind = engines[engine], DAYS[engine]
    (line,) = (each for each in LINES[engine] if each.type.family is Family.DATE)
    a = table("a", "x", "v", "n", nullable="x v", types={"x": kind, "v": kind})
    m = table("m", "z", "k", types={"z": kind})
    for low, high in combinations([None, *line.values], 2):
        rows: brute.Database = {"a": [(low, high, 1), (high, low, 1)], "m": []}
        swept = query(atom(a, "x", "v", "n"), atom(m, "z", "k"), less=[("x", "z"), ("z", "v")])
        solved = query(
            *(atom(a, "x", "v", "n"), atom(m, "z", "k")),
            less=[("x", "z"), ("z", "v")],
            general=[(condition("v0 + v1 < 1000"), "n k")],
        )
        load(on, swept, rows)
        one = Residuals(swept).of(frozenset({0}))
        other = Residuals(solved, Reading(solved=solvable(solved))).of(frozenset({0}))
        expected = brute.residual_value(one, rows)
        assert on.scalar(statement_of(Sweep(one), "duckdb")) == expected
        assert solve(on, other) == expected


@both
def test_what_the_solver_understands_follows_from_the_type(engine: str) -> None:
    """A type whose values are not all numbers is never solved, whatever a column holds."""
    for line in LINES[engine]:
        of = table("r", "x", "y", types={"x": line.type, "y": line.type})
        general = [(condition("v0 - v1 < 10"), "y z")]
        q = query(atom(of, "x", "y"), atom(of, "x", "z"), general=general)
        exact = (Family.INTEGER, Family.DATE)
        numbers = line.type.family in exact or line.type.name.startswith("DECIMAL")
        assert bool(solvable(q)) == numbers


def test_numbers_reach_the_solver_exactly(engines: dict[str, Direct]) -> None:
    pytest.importorskip("z3")
    kind = ColumnType(Family.INTEGER, "HUGEINT")
    of = table("r", "x", "y", types={"x": INTEGER, "y": kind})
    other = table("s", "x", "y", types={"x": INTEGER, "y": kind})
    general = [(condition("v0 - v1 = 1"), "y z"), (condition("v0 - v1 = 1"), "z w")]
    q = query(atom(of, "k", "y"), atom(other, "k", "z"), atom(other, "k", "w"), general=general)
    largest = 2**127 - 1
    load(
        engines["duckdb"],
        q,
        {"r": [(1, Special(str(n), n, True)) for n in (largest, largest - 1, largest)], "s": []},
    )
    residual = Residuals(q, Reading(solved=solvable(q))).of(frozenset({0}))
    assert solve(engines["duckdb"], residual) == 2
