"""Rows beyond a value, by a running sum: the same count as by comparing every pair."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import duckdb
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from sqlrs.catalog import ColumnType, Family, Table
from sqlrs.planning.choose import choose
from sqlrs.planning.inclusion_exclusion import Planner
from sqlrs.planning.passing import passed, replacements
from sqlrs.planning.plan import Factorised
from sqlrs.planning.problem import Problem
from sqlrs.planning.table_statistics import Repetition, Statistics
from sqlrs.query import Atom, Query
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sql import plain as emit
from sqlrs.sql.write import statement_of
from tests.planning.adapters import Direct
from tests.support.builders import DECIMAL, INTEGER, TEXT, atom, query, table
from tests.support.examples import examples
from tests.support.weights import cells, weighable, weighed

VISIT = table("visit", "person", "place", "day", nullable="person place day")
SHORT = ColumnType(Family.INTEGER, "SMALLINT")
STAY = table("stay", "person", "place", "day", types={"day": SHORT}, nullable="day")
ONCE = table("once", "person", "place", "day", keys=["person day"], nullable="place")
TABLES = tuple(map(weighable, (VISIT, STAY, ONCE)))
NOTE = table("note", "person", "place", "day", types={"day": TEXT})
PLANNER = Planner(Statistics())


@pytest.fixture(scope="module")
def on_duckdb() -> Iterator[Direct]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        # A connection of the user's may sort downwards unless told otherwise.
        connection.execute("SET default_order = 'DESC'")
        yield Direct(connection)


def everything(whole: Query) -> Residual:
    return Residuals(whole).of(whole.everything)


@st.composite
def comparing(draw: st.DrawFn) -> Residual:
    """Two rows with nothing, a person, or a person and a place in common, and some others.

    Values may have to differ, and a row outside of the residual makes some of them its boundary.
    """
    common = draw(st.sampled_from(["", "p", "pq"]))
    shared = [v if v in common else None for v in "pq"]
    kind = draw(st.sampled_from([None, 1]))
    atoms: list[Atom] = []

    def add(*terms: str | int | None) -> None:
        of = draw(st.sampled_from(TABLES))
        person, *rest = terms
        # The columns of a key have variables.
        alone = f"p{len(atoms)}" if of.keys else None
        atoms.append(atom(of, alone if person is None else person, *rest))

    add(*shared, "s")
    add(shared[0], kind if shared[1] is None else shared[1], "t")
    pairs = [("s", "t") if draw(st.booleans()) else ("t", "s")]
    if draw(st.booleans()):
        add(*shared, "u")
        pairs.append(draw(st.sampled_from([("s", "u"), ("u", "s"), ("t", "u")])))
    if common:
        for v in draw(st.sampled_from(["", "v", "vw"])):
            add("p", v, f"day_{v}")
    inside = frozenset(range(len(atoms)))
    names = sorted({v.name for a in atoms for v in a.variables})
    if draw(st.booleans()):
        atoms.append(atom(TABLES[0], *draw(st.permutations(names))[:2]))
    unequal = st.lists(st.sampled_from(list(combinations(names, 2))), max_size=2, unique=True)
    strict = draw(st.booleans())
    whole = query(
        *draw(weighed(atoms[: len(inside)])),
        *atoms[len(inside) :],
        different=[" ".join(pair) for pair in draw(unequal)],
        less=pairs if strict else (),
        at_most=() if strict else pairs,
    )
    return Residuals(whole).of(inside)


def rows_of(one: Table) -> st.SearchStrategy[list[tuple[object, ...]]]:
    small = st.integers(0, 3)
    columns = [st.one_of(st.none(), small) if c.nullable else small for c in one.columns[:3]]
    rows = st.tuples(*columns, *(cells(c.name) for c in one.columns[3:]))
    if one.keys:
        return st.lists(rows, max_size=12, unique_by=lambda row: (row[0], row[2]))
    return st.lists(rows, max_size=12)


def check(residual: Residual, data: st.DataObject, snapshot: Direct) -> None:
    total = passed(Problem.of(residual), PLANNER)
    # With both times free to be anything, one of them can always be replaced.
    if not residual.boundary and not residual.inequalities:
        assert total is not None
    if total is None:
        reject()
    for one in TABLES:
        snapshot.fill(one, data.draw(rows_of(one)))
    plan = Factorised(residual, total)
    expected = snapshot.scalar(emit.plain(residual))
    assert snapshot.scalar(statement_of(plan, snapshot.dialect)) == expected, "\n".join(
        plan.lines()
    )


@settings(max_examples=examples(50))
@given(comparing(), st.data())
def test_the_count_stays_on_duckdb(
    on_duckdb: Direct, residual: Residual, data: st.DataObject
) -> None:
    check(residual, data, on_duckdb)


@settings(max_examples=examples(20))
@given(comparing(), st.data())
def test_the_count_stays_on_postgres(
    on_postgres: Direct, residual: Residual, data: st.DataObject
) -> None:
    check(residual, data, on_postgres)


@pytest.mark.parametrize(
    ("pairs", "strict", "expected"),
    [
        ([("s", "t")], True, 2),
        ([("s", "t")], False, 11),
        ([("t", "s")], True, 2),
        ([("t", "s")], False, 11),
    ],
)
def test_equal_values(
    pairs: list[tuple[str, str]], strict: bool, expected: int, on_duckdb: Direct
) -> None:
    """Person 7 comes on the days 1, 1 and 2, person 8 twice on day 2."""
    on_duckdb.fill(VISIT, [(7, 0, 1), (7, 0, 1), (7, 0, 2), (8, 0, 2), (7, None, None), (8, 0, 2)])
    atoms = [atom(VISIT, "p", None, "s"), atom(VISIT, "p", None, "t")]
    residual = everything(
        query(*atoms, less=pairs if strict else (), at_most=() if strict else pairs)
    )
    total = passed(Problem.of(residual), PLANNER)
    assert total is not None
    assert on_duckdb.scalar(statement_of(Factorised(residual, total), "duckdb")) == expected


@pytest.mark.parametrize(("pair", "expected"), [(("s", "t"), 1), (("t", "s"), 2)])
def test_both_directions(pair: tuple[str, str], expected: int, on_duckdb: Direct) -> None:
    """Two stays before the visit and one after it."""
    on_duckdb.fill(VISIT, [(7, 0, 2)])
    on_duckdb.fill(STAY, [(7, 0, 1), (7, 0, 1), (7, 0, 3)])
    atoms = [atom(VISIT, "p", None, "s"), atom(STAY, "p", None, "t")]
    residual = everything(query(*atoms, less=[pair]))
    total = passed(Problem.of(residual), PLANNER)
    assert total is not None
    assert on_duckdb.scalar(statement_of(Factorised(residual, total), "duckdb")) == expected


@pytest.mark.parametrize("turned", [False, True])
def test_counts_are_not_rows_of_a_key(turned: bool, on_duckdb: Direct) -> None:
    """Where inequalities make variables equal, a key merges rows, but not the counts for them."""
    first, second, third = (atom(ONCE, "p", v, d) for v, d in (("q", "s"), (None, "t"), ("r", "u")))
    atoms = [second, first, third] if turned else [first, second, third]
    residual = everything(query(*atoms, different="q r", less=[("s", "t")]))
    on_duckdb.fill(ONCE, [(7, day % 2, day) for day in range(5)] + [(8, None, 1), (8, 0, 2)])
    total = passed(Problem.of(residual), PLANNER)
    assert total is not None
    assert [term.coefficient for term in total.terms] == [1, -1]
    counted = on_duckdb.scalar(statement_of(Factorised(residual, total), "duckdb"))
    assert counted == on_duckdb.scalar(emit.plain(residual)) == 24


def test_boundary_values_are_told_apart(on_duckdb: Direct) -> None:
    """Of the three pairs of visits, two end at place 2 and one at place 1."""
    on_duckdb.fill(VISIT, [(7, 0, 1), (7, 1, 2), (7, 2, 3)])
    atoms = [atom(VISIT, "p", None, "s"), atom(VISIT, "p", "q", "t"), atom(VISIT, None, "q")]
    residual = Residuals(query(*atoms, less=[("s", "t")])).of(frozenset({0, 1}))
    total = passed(Problem.of(residual), PLANNER)
    assert total is not None
    assert on_duckdb.scalar(statement_of(Factorised(residual, total), "duckdb")) == 2


def left(residual: Residual) -> int:
    """How many ways there are to replace a comparison."""
    return len(list(replacements(Problem.of(residual))))


def left_in(*atoms: Atom, **conditions: Any) -> int:
    """The same for the count of a query."""
    return left(everything(query(*atoms, **conditions)))


def test_what_can_be_replaced() -> None:
    a, b = atom(VISIT, "p", None, "s"), atom(VISIT, "p", None, "t")
    assert left_in(a, b, less=[("s", "t")]) == 2
    # A constant is a filter, and so is a comparison within a row.
    assert left_in(a, b, less=[("s", 5)]) == 0
    assert left_in(atom(VISIT, "p", "s", "t"), less=[("s", "t")]) == 0
    # Each of both times is needed elsewhere.
    assert left_in(a, b, less=[("s", "t")], different="s t") == 0
    assert left_in(a, b, atom(VISIT, "t"), less=[("s", "t")]) == 1
    # The place of b is that of c, which a knows nothing of.
    c = atom(VISIT, "p", "q")
    assert left_in(a, atom(VISIT, "p", "q", "t"), c, less=[("s", "t")]) == 1
    # One variable in two columns of a row is a condition on the row.
    assert left_in(atom(VISIT, "p", "p", "s"), b, less=[("s", "t")]) == 0
    assert left_in(a, atom(VISIT, "p", "t", "t"), less=[("s", "t")]) == 0
    assert left_in(a, b, less=[("s", "t")], distinct="s") == 2
    outputs = everything(query(a, b, less=[("s", "t")], distinct="s"))
    assert passed(Problem.of(outputs), PLANNER) is None


@pytest.mark.parametrize(
    ("boundary", "ways"),
    [
        (["s", "t"], 0),
        # A value of the boundary may be the one that rows lie beyond, or be common to both.
        (["s"], 1),
        (["t"], 1),
        (["p"], 2),
        (["p", "s"], 1),
        # The place of the second row is in the boundary, and the first row does not have it.
        (["q"], 1),
        (["q", "s"], 0),
    ],
)
def test_boundary_variables_keep_their_values(boundary: list[str], ways: int) -> None:
    pair = [atom(VISIT, "p", None, "s"), atom(VISIT, "p", "q", "t")]
    whole = query(*pair, *(atom(VISIT, v) for v in boundary), less=[("s", "t")])
    residual = Residuals(whole).of(frozenset({0, 1}))
    assert {v.name for v in residual.boundary} == set(boundary)
    assert left(residual) == ways


@pytest.mark.parametrize("column", ["person", "day"])
@pytest.mark.parametrize(
    ("kind", "ways"),
    [
        (TEXT, 2),
        (ColumnType(Family.DATE, "DATE"), 2),
        (DECIMAL, 2),
        (ColumnType(Family.DECIMAL, "numeric"), 0),
        (ColumnType(Family.FLOAT, "DOUBLE"), 0),
        (ColumnType(Family.TEXT, "VARCHAR", collation="NOCASE"), 0),
        (ColumnType(Family.TEXT, "CHAR(3)"), 0),
    ],
    ids=lambda one: str(getattr(one, "collation", None) or getattr(one, "name", one)),
)
def test_only_values_that_behave_alike_are_put_below_each_other(
    column: str, kind: ColumnType, ways: int
) -> None:
    of = table("typed", "person", "day", types={column: kind})
    assert left_in(atom(of, "p", "s"), atom(of, "p", "t"), less=[("s", "t")]) == ways


def test_columns_of_different_widths_are_put_below_each_other() -> None:
    pair = [atom(VISIT, "p", None, "s"), atom(STAY, "p", None, "t")]
    assert [v.type for v in sorted(pair[1].variables)] == [INTEGER, SHORT]
    assert left_in(*pair, less=[("s", "t")]) == 2


def test_it_is_chosen_where_many_rows_agree() -> None:
    a, b = atom(VISIT, "p", None, "s"), atom(VISIT, "p", None, "t")
    residual = everything(query(a, b, less=[("s", "t")]))
    rows = 100_000.0
    persons = {"few": Repetition(10, rows * rows / 10, rows / 10), "many": Repetition.unique(rows)}
    chosen = {}
    for name, repetition in persons.items():
        columns = {(VISIT.identity, "person"): repetition}
        plan = choose(residual, Statistics({VISIT.identity: rows}, columns))
        chosen[name] = "day > s" in "\n".join(plan.lines()) or "day < t" in "\n".join(plan.lines())
    assert chosen == {"few": True, "many": False}


@pytest.mark.parametrize("engine", ["on_duckdb", "on_postgres"])
def test_texts(engine: str, request: pytest.FixtureRequest) -> None:
    """The engine's own order of texts decides, capitals and digits as they come."""
    snapshot: Direct = request.getfixturevalue(engine)
    days = ["10", "9", "a", "B", "b", "A", "ä", "", " ", "9"]
    snapshot.fill(NOTE, [(i % 2, 0, day) for i, day in enumerate(days)])
    atoms = [atom(NOTE, "p", None, "s"), atom(NOTE, "p", None, "t")]
    residual = everything(query(*atoms, less=[("s", "t")]))
    total = passed(Problem.of(residual), PLANNER)
    assert total is not None
    plan = Factorised(residual, total)
    assert (
        snapshot.scalar(statement_of(plan, snapshot.dialect))
        == snapshot.scalar(emit.plain(residual))
        == 19
    )


def test_any_names_of_columns(on_duckdb: Direct) -> None:
    """Columns may be called like those that the running sum adds, in any spelling."""
    odd = table("odd", "results", "Kind", "VALUE")
    on_duckdb.fill(odd, [(1, 1, day % 3) for day in range(5)])
    atoms = [atom(odd, "p", "q", "s"), atom(odd, "p", "q", "t")]
    residual = everything(query(*atoms, less=[("s", "t")]))
    total = passed(Problem.of(residual), PLANNER)
    assert total is not None
    assert on_duckdb.scalar(statement_of(Factorised(residual, total), "duckdb")) == 8
