"""One of several exchangeable variables above the others, times their number: the same count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrs.catalog import ColumnType, Family, Table
from sqlrs.planning.canonical import canonical
from sqlrs.planning.choose import choose
from sqlrs.planning.inclusion_exclusion import Planner
from sqlrs.planning.plan import Factorised
from sqlrs.planning.problem import Problem
from sqlrs.planning.symmetry import first_above, keeps, orbits, ordered
from sqlrs.planning.table_statistics import Repetition, Statistics
from sqlrs.query import Query, Variable
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sql import plain as emit
from sqlrs.sql.write import statement_of
from tests.planning.adapters import Direct
from tests.support.builders import (
    DECIMAL,
    EDGE,
    INTEGER,
    PATTERNS,
    TEXT,
    atom,
    pattern,
    query,
    table,
)
from tests.support.examples import examples
from tests.support.weights import cells_of, weighable, weighing

KEYED = table("keyed", "src", "dst", keys=["src dst"])
BAG = table("bag", "src", "dst", "kind", nullable="src dst kind")
HEAVY = weighable(KEYED)
NAMED = table("named", "src", "dst", keys=["src dst"], types={"src": TEXT, "dst": TEXT})
# Values sort differently as texts and by frequency than as numbers.
NUMBERS = st.one_of(st.none(), st.integers(8, 12))


@pytest.fixture(scope="module")
def on_duckdb() -> Iterator[Direct]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        # A connection of the user's may sort downwards unless told otherwise.
        connection.execute("SET default_order = 'DESC'")
        yield Direct(connection)


def everything(whole: Query) -> Residual:
    return Residuals(whole).of(whole.everything)


def found(whole: Query) -> set[str]:
    """The exchangeable variables of a query, each set as a word."""
    return {"".join(v.name for v in orbit) for orbit in orbits(Problem.of(everything(whole)))}


@pytest.mark.parametrize(
    ("edges", "sets"),
    [
        ("ab bc ca", {"abc"}),
        ("ab bc cd da", {"abcd"}),
        ("ab bc cd de ea", {"abcde"}),
        # Opposite corners: both edges leave from a and c.
        ("ab ad cb cd", set()),
        ("ab bc", set()),
        ("ab bc ac", set()),
        # The tips of two triangles can be exchanged, but they also differ from the shared ends.
        (PATTERNS["two_triangles"], set()),
    ],
)
def test_variables_that_can_be_exchanged(edges: str, sets: set[str]) -> None:
    assert found(pattern(edges)) == sets


def test_what_stands_in_the_way() -> None:
    triangle = [atom(EDGE, *p) for p in ("ab", "bc", "ca")]
    assert found(query(*triangle, different="a b c")) == {"abc"}
    # Equal values have no largest one.
    assert found(query(*triangle, different=["a b", "b c"])) == set()
    # Ranks are not the values that a comparison is about.
    below = [("a", 5), ("b", 5), ("c", 5)]
    assert found(query(*triangle, different="a b c", less=below)) == set()
    # One edge is of another kind than the others.
    kinds = [atom(BAG, "a", "b", 1), atom(BAG, "b", "c", 1), atom(BAG, "c", "a", 2)]
    assert found(query(*kinds, different="a b c")) == set()
    assert found(query(kinds[0], kinds[1], atom(BAG, "c", "a", 1), different="a b c")) == {"abc"}
    # One edge has another weight than the others, or none.
    heavy = [atom(HEAVY, *p) for p in ("ab", "bc", "ca")]
    for columns, sets in (
        (["few", "few", "few"], {"abc"}),
        (["few", "few", "many"], set()),
        (["few", "few", None], set()),
    ):
        edges = [weighing(one, column) for one, column in zip(heavy, columns, strict=True)]
        assert found(query(*edges, different="a b c")) == sets
    # Outputs are counted once, whatever their number of results.
    assert (
        ordered(Problem.of(everything(query(*triangle, different="a b c", distinct="a"))), PLANNER)
        is None
    )


@pytest.mark.parametrize(
    ("kind", "sets"),
    [
        (TEXT, {"abc"}),
        (ColumnType(Family.DATE, "DATE"), {"abc"}),
        (DECIMAL, {"abc"}),
        (ColumnType(Family.DECIMAL, "numeric"), set()),
        (ColumnType(Family.FLOAT, "DOUBLE"), set()),
        (ColumnType(Family.TEXT, "VARCHAR", collation="NOCASE"), set()),
        (ColumnType(Family.TEXT, "CHAR(3)"), set()),
    ],
    ids=lambda one: str(getattr(one, "collation", None) or getattr(one, "name", one)),
)
def test_only_values_that_behave_alike_have_ranks(kind: ColumnType, sets: set[str]) -> None:
    of = table("typed", "src", "dst", types={"src": kind, "dst": kind})
    assert found(pattern("ab bc ca", of=of)) == sets


PLANNER = Planner(Statistics())


@st.composite
def cycles(draw: st.DrawFn) -> tuple[Query, Table]:
    """Cycles of three to five atoms of one table, each with the same conditions and weight."""
    of = draw(st.sampled_from([KEYED, BAG, NAMED]))
    names = "abcde"[: draw(st.integers(3, 5))]
    kind = draw(st.sampled_from([(), (1,)])) if of is BAG else ()
    turned = draw(st.booleans())
    weight = draw(st.sampled_from([None, "few"]))
    atoms = []
    for a, b in zip(names, names[1:] + names[0], strict=True):
        pair = (b, a) if turned else (a, b)
        atoms += [atom(of, *pair, *kind)] * (1 if len(names) > 3 else draw(REPEATS))
    if weight is not None:
        of = weighable(of)
        atoms = [weighing(replace(one, table=of), weight) for one in atoms]
    return query(*atoms, different=" ".join(names)), of


REPEATS = st.shared(st.sampled_from([1, 1, 2]), key="repeats")


@st.composite
def rows_of(draw: st.DrawFn, of: Table) -> list[tuple[object, ...]]:
    values: st.SearchStrategy[Any] = st.integers(8, 12) if of.keys else NUMBERS
    if of.column("src").type is TEXT:
        values = values.map(str)
    columns = [values, values]
    if any(column.name == "kind" for column in of.columns):
        columns.append(st.sampled_from([None, 1, 2]))
    rows = draw(st.lists(st.tuples(*columns), max_size=30))
    found: list[tuple[object, ...]] = [*sorted(set(rows))] if of.keys else [*rows]
    return found if len(columns) == len(of.columns) else draw(cells_of(found))


def check(whole: Query, of: Table, rows: Sequence[tuple[object, ...]], snapshot: Direct) -> None:
    snapshot.fill(of, rows)
    residual = everything(whole)
    total = ordered(Problem.of(residual), PLANNER)
    assert total is not None
    plan = Factorised(residual, total)
    expected = snapshot.scalar(emit.plain(residual))
    assert snapshot.scalar(statement_of(plan, snapshot.dialect)) == expected, "\n".join(
        plan.lines()
    )


@settings(max_examples=examples(60))
@given(cycles(), st.data())
def test_the_count_stays_on_duckdb(
    on_duckdb: Direct, case: tuple[Query, Table], data: st.DataObject
) -> None:
    check(*case, data.draw(rows_of(case[1])), on_duckdb)


@settings(max_examples=examples(20))
@given(cycles(), st.data())
def test_the_count_stays_on_postgres(
    on_postgres: Direct, case: tuple[Query, Table], data: st.DataObject
) -> None:
    check(*case, data.draw(rows_of(case[1])), on_postgres)


def test_other_tables_keep_their_values(on_duckdb: Direct) -> None:
    """Each corner of a triangle has a property, which a public table may hold as well."""
    property_of = table("property", "of", "what", nullable="what")
    corners = [atom(property_of, v, f"p{v}") for v in "abc"]
    edges = [atom(KEYED, *p) for p in ("ab", "bc", "ca")]
    whole = query(*edges, *corners, different="a b c")
    on_duckdb.fill(property_of, [(v, v % 2 or None) for v in (1, 2, 3, 3, 4)])
    rows = [(a, b) for a in range(1, 6) for b in range(1, 6) if (a * b) % 7 != 2]
    check(whole, KEYED, rows, on_duckdb)


def test_no_value_differs_from_null(on_duckdb: Direct) -> None:
    """What stands next to a ranked column is compared too, and a row without it does not count."""
    property_of = table("property", "of", "what", nullable="what")
    corners = [atom(property_of, v, f"p{v}") for v in "abc"]
    edges = [atom(KEYED, *p) for p in ("ab", "bc", "ca")]
    whole = query(*edges, *corners, different=["a b c", "pa pb pc"])
    on_duckdb.fill(property_of, [(v, w) for v in range(5) for w in (v % 3, None)])
    check(whole, KEYED, [(a, b) for a in range(5) for b in range(5) if a != b], on_duckdb)
    assert on_duckdb.scalar(emit.plain(everything(whole))) == 24


def test_a_key_does_not_join_ranks_with_values(on_duckdb: Direct) -> None:
    """Each corner is named by one row of a table and meant by another; both may be one row."""
    row = table("row_of", "id", "named", "meant", keys=["id"])
    corners = [atom(row, f"i{v}", v) for v in "abc"] + [atom(row, f"j{v}", None, v) for v in "abc"]
    edges = [atom(KEYED, *p) for p in ("ab", "bc", "ca")]
    whole = query(*edges, *corners, different=["a b c", *(f"i{v} j{v}" for v in "abc")])
    crossed = [(1, 10, 12), (2, 12, 10), (3, 11, 13), (4, 14, 11)]
    on_duckdb.fill(row, [(v, v, v) for v in range(10, 15)] + crossed)
    corner = range(10, 15)
    check(whole, KEYED, [(a, b) for a in corner for b in corner if a != b], on_duckdb)
    assert on_duckdb.scalar(emit.plain(everything(whole))) > 0


def test_the_rarest_value_has_the_first_rank(on_duckdb: Direct) -> None:
    """As often as a value occurs, then by value, both upwards whatever the connection's order."""
    residual = everything(pattern("ab bc ca", of=BAG))
    on_duckdb.fill(BAG, [(v, v, None) for v in (5, 5, 9, 7, 5, 8, 8, 10)])
    total = ordered(Problem.of(residual), PLANNER)
    assert total is not None
    statement = statement_of(Factorised(residual, total), "duckdb")
    [ranks] = [cte.this for cte in statement.ctes if cte.alias == "ranks"]
    assert set(on_duckdb.rows(ranks)) == {(7, 1), (9, 2), (10, 3), (8, 4), (5, 5)}


def test_part_of_an_orbit_is_no_set_to_choose_from() -> None:
    """Turning a square by one corner maps two neighbours to others, by two opposite ones not."""
    problem = Problem.of(everything(pattern("ab bc cd da")))
    a, b, c, d = (
        canonical(problem.leaves, problem.conditions, {v: "first"}) for v in problem.variables
    )
    assert a.form == b.form == c.form == d.form
    corners = problem.variables
    assert keeps(corners, a, b)
    assert keeps((corners[0], corners[2]), a, c)
    assert not keeps((corners[0], corners[1]), a, b)


def test_sets_that_renaming_does_not_keep_would_miscount(on_duckdb: Direct) -> None:
    """A negative control: of a path's three vertices none can take another's place."""
    residual = everything(query(atom(KEYED, "a", "b"), atom(KEYED, "b", "c"), different="a b c"))
    on_duckdb.fill(KEYED, [(1, 2), (2, 3), (3, 3)])
    problem = Problem.of(residual)
    orbit = tuple(Variable(v, INTEGER) for v in "abc")
    total = PLANNER.exact(first_above(problem, orbit, Statistics()))
    terms = tuple(replace(t, coefficient=3 * t.coefficient) for t in total.terms)
    wrong = statement_of(Factorised(residual, replace(total, terms=terms)), "duckdb")
    assert on_duckdb.scalar(wrong) != on_duckdb.scalar(emit.plain(residual))


def test_large_counts_are_ordered_and_small_ones_are_not() -> None:
    residual = everything(pattern("ab bc cd da"))
    few, many = (
        Statistics(
            {EDGE.identity: rows},
            {(EDGE.identity, c): Repetition(rows / 20, rows * 60, 500) for c in ("src", "dst")},
        )
        for rows in (200.0, 400_000.0)
    )
    assert "above" in "\n".join(choose(residual, many).lines())
    assert "above" not in "\n".join(choose(residual, few).lines())
