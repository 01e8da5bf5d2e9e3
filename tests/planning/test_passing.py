"""Rows beyond a value, by a running sum: the same count as by comparing every pair."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrs import emit
from sqlrs.catalog import ColumnType, Family, Table
from sqlrs.planning import choose
from sqlrs.planning.inclusion_exclusion import Solver
from sqlrs.planning.passing import passed, replacements
from sqlrs.planning.plan import Factorised
from sqlrs.planning.problem import Problem
from sqlrs.planning.statistics import Repetition, Statistics
from sqlrs.query import Query
from sqlrs.residuals import Residual, Residuals
from tests.builders import TEXT, atom, query, table
from tests.planning.adapters import Direct

VISIT = table("visit", "person", "place", "day", nullable="person place day")
SHORT = ColumnType(Family.INTEGER, "SMALLINT")
STAY = table("stay", "person", "place", "day", types={"day": SHORT}, nullable="day")
NOTE = table("note", "person", "place", "day", types={"day": TEXT})
SOLVER = Solver(Statistics())


@pytest.fixture(scope="module")
def on_duckdb() -> Iterator[Direct]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        yield Direct(connection)


@pytest.fixture(scope="module")
def on_postgres(postgres: str) -> Iterator[Direct]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("SET search_path = pg_temp")
        yield Direct(connection)


def everything(whole: Query) -> Residual:
    return Residuals(whole).of(whole.everything)


@st.composite
def comparing(draw: st.DrawFn) -> Query:
    """Two rows with nothing, a person, or a person and a place in common, and some others."""
    tables = st.sampled_from([VISIT, STAY])
    common = draw(st.sampled_from(["", "p", "pq"]))
    shared = [v if v in common else None for v in "pq"]
    kind = draw(st.sampled_from([None, 1]))
    first = [*shared, "s"]
    second = [shared[0], kind if shared[1] is None else shared[1], "t"]
    atoms = [atom(draw(tables), *first), atom(draw(tables), *second)]
    pairs = [("s", "t") if draw(st.booleans()) else ("t", "s")]
    if draw(st.booleans()):
        atoms.append(atom(draw(tables), *shared, "u"))
        pairs.append(draw(st.sampled_from([("s", "u"), ("u", "s"), ("t", "u")])))
    if common and draw(st.booleans()):
        atoms.append(atom(VISIT, "p", "r"))
    strict = draw(st.booleans())
    return query(*atoms, **{"less" if strict else "at_most": pairs})


def rows_of(one: Table) -> st.SearchStrategy[list[tuple[object, ...]]]:
    small = st.integers(0, 3)
    columns = [st.one_of(st.none(), small) if c.nullable else small for c in one.columns]
    return st.lists(st.tuples(*columns), max_size=12)


def check(whole: Query, data: st.DataObject, snapshot: Direct) -> None:
    for one in (VISIT, STAY):
        snapshot.fill(one, data.draw(rows_of(one)))
    residual = everything(whole)
    total = passed(Problem.of(residual), SOLVER)
    assert total is not None
    plan = Factorised(residual, total, snapshot.dialect)
    expected = snapshot.scalar(emit.plain(residual))
    assert snapshot.scalar(plan.statement()) == expected, "\n".join(plan.lines())


@settings(max_examples=150)
@given(comparing(), st.data())
def test_the_count_stays_on_duckdb(on_duckdb: Direct, whole: Query, data: st.DataObject) -> None:
    check(whole, data, on_duckdb)


@settings(max_examples=60)
@given(comparing(), st.data())
def test_the_count_stays_on_postgres(
    on_postgres: Direct, whole: Query, data: st.DataObject
) -> None:
    check(whole, data, on_postgres)


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
    residual = everything(query(*atoms, **{"less" if strict else "at_most": pairs}))
    total = passed(Problem.of(residual), SOLVER)
    assert total is not None
    assert on_duckdb.scalar(Factorised(residual, total, "duckdb").statement()) == expected


def left(whole: Query) -> int:
    """How many ways there are to replace a comparison."""
    return len(list(replacements(Problem.of(everything(whole)))))


def test_what_can_be_replaced() -> None:
    a, b = atom(VISIT, "p", None, "s"), atom(VISIT, "p", None, "t")
    assert left(query(a, b, less=[("s", "t")])) == 2
    # A constant is a filter, and so is a comparison within a row.
    assert left(query(a, b, less=[("s", 5)])) == 0
    assert left(query(atom(VISIT, "p", "s", "t"), less=[("s", "t")])) == 0
    # Each of both times is needed elsewhere.
    assert left(query(a, b, less=[("s", "t")], different="s t")) == 0
    assert left(query(a, b, atom(VISIT, "t"), less=[("s", "t")])) == 1
    # The place of b is that of c, which a knows nothing of.
    c = atom(VISIT, "p", "q")
    assert left(query(a, atom(VISIT, "p", "q", "t"), c, less=[("s", "t")])) == 1
    assert left(query(a, b, less=[("s", "t")], distinct="s")) == 2
    assert (
        passed(Problem.of(everything(query(a, b, less=[("s", "t")], distinct="s"))), SOLVER) is None
    )
    # Boundary variables keep their values.
    whole = query(a, b, atom(VISIT, "t"), atom(VISIT, "s"), less=[("s", "t")])
    assert left(whole) == 0


def test_it_is_chosen_where_many_rows_agree() -> None:
    a, b = atom(VISIT, "p", None, "s"), atom(VISIT, "p", None, "t")
    residual = everything(query(a, b, less=[("s", "t")]))
    rows = 100_000.0
    persons = {"few": Repetition(10, rows * rows / 10, rows / 10), "many": Repetition.unique(rows)}
    chosen = {}
    for name, repetition in persons.items():
        columns = {(VISIT.identity, "person"): repetition}
        plan = choose(residual, Statistics({VISIT.identity: rows}, columns), dialect="duckdb")
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
    total = passed(Problem.of(residual), SOLVER)
    assert total is not None
    plan = Factorised(residual, total, snapshot.dialect)
    assert snapshot.scalar(plan.statement()) == snapshot.scalar(emit.plain(residual)) == 19


def test_any_names_of_columns(on_duckdb: Direct) -> None:
    """Columns may be called like those that the running sum adds, in any spelling."""
    odd = table("odd", "results", "Kind", "VALUE")
    on_duckdb.fill(odd, [(1, 1, day % 3) for day in range(5)])
    atoms = [atom(odd, "p", "q", "s"), atom(odd, "p", "q", "t")]
    residual = everything(query(*atoms, less=[("s", "t")]))
    total = passed(Problem.of(residual), SOLVER)
    assert total is not None
    assert on_duckdb.scalar(Factorised(residual, total, "duckdb").statement()) == 8
