"""Results by the set of their owners, in one statement: equal to brute force, on both engines."""

from __future__ import annotations

import random
from array import array
from dataclasses import replace

import pytest
import sqlglot
from sqlglot import exp

import sqlrs
from sqlrs.engines.base import InColumns, Opened, integer_columns
from sqlrs.errors import EngineFailed
from sqlrs.measures import OwnedResults, Signed
from sqlrs.measuring.measurements import Measurements
from sqlrs.query import Query, Variable, Weight
from sqlrs.residuals.residual import Reading, Residuals
from sqlrs.trees.build import number
from tests.planning.adapters import Direct
from tests.support import weighted_brute
from tests.support.brute import Database
from tests.support.builders import TEXT, atom, query, table

EDGE = table("edge", "src", "dst", "cost")
NAMES = table("names", "one", "two", types={"one": TEXT, "two": TEXT})


@pytest.fixture(params=["duckdb", "postgres"])
def anywhere(request: pytest.FixtureRequest) -> Direct:
    found = request.getfixturevalue(f"on_{request.param}")
    assert isinstance(found, Direct)
    if found.dialect == "postgres":
        # Without statistics of these tables the server expects many rows, and compiles for them.
        found.connection.execute("SET jit = off")
    return found


def owners(of: Query, *names: str) -> tuple[Variable, ...]:
    known = {v.name: v for v in of.variables(of.everything)}
    return tuple(known[name] for name in names)


def measured(snapshot: Direct, signed: Signed, most: int = 1000) -> OwnedResults:
    residuals = Residuals(signed.query, Reading())
    source = Opened(snapshot, snapshot.dialect)
    return Measurements(source).owned_results(signed, residuals, most)


def expected(signed: Signed, database: Database) -> list[tuple[int, int]]:
    """The weights of all sets of owners, by the size of the set: numbers of units are private."""
    found: dict[frozenset[object], int] = {}
    for assignment, weight in weighted_brute.results(signed.query, database):
        own = frozenset(assignment[v] for v in signed.owners if isinstance(v, Variable))
        found[own] = found.get(own, 0) + weight
    return sorted((len(own), weight) for own, weight in found.items() if weight)


def loads(signed: Signed, database: Database) -> list[int]:
    """What each unit has."""
    found: dict[object, int] = {}
    for assignment, weight in weighted_brute.results(signed.query, database):
        for own in {assignment[v] for v in signed.owners if isinstance(v, Variable)}:
            found[own] = found.get(own, 0) + weight
    return sorted(load for load in found.values() if load)


def merged(results: OwnedResults) -> dict[frozenset[int], int]:
    found: dict[frozenset[int], int] = {}
    for *units, weight in zip(*results.owners, results.weights, strict=True):
        found[frozenset(units)] = found.get(frozenset(units), 0) + weight
    return found


def check(snapshot: Direct, signed: Signed, database: Database) -> None:
    found = merged(measured(snapshot, signed))
    assert sorted((len(own), w) for own, w in found.items()) == expected(signed, database)
    units = frozenset[int]().union(*found)
    by_unit = [sum(w for own, w in found.items() if u in own) for u in units]
    assert sorted(by_unit) == loads(signed, database)


EDGES = query(atom(EDGE, "a", "b", None))
PATHS = query(atom(EDGE, "a", "b", None), atom(EDGE, "b", "c", None))
CHAIN = query(
    atom(EDGE, "a", "b", None),
    atom(EDGE, "b", "c", None),
    atom(EDGE, "c", "d", None),
    distinct="a d",
)
COSTS = replace(EDGES, atoms=(replace(EDGES.atoms[0], weight=Weight("cost", 9)),))
QUERIES = {
    "edges": (EDGES, "ab"),
    "one owner": (EDGES, "a"),
    "paths": (PATHS, "abc"),
    "ends": (CHAIN, "ad"),
    "costs": (COSTS, "ab"),
    "apart": (query(atom(EDGE, "a", "b", None), atom(EDGE, "c", "d", None)), "abcd"),
}


@pytest.mark.parametrize("name", QUERIES)
def test_all_sets_of_owners(name: str, anywhere: Direct) -> None:
    of, named = QUERIES[name]
    signed = Signed(1, of, (), owners(of, *named))
    rng = random.Random(7)
    for size in (0, 1, 6):
        rows = [(rng.randrange(4), rng.randrange(4), rng.randrange(10)) for _ in range(size)]
        anywhere.fill(EDGE, rows)
        check(anywhere, signed, {EDGE.label: rows})


def test_ids_are_units_by_the_equality_of_the_database(anywhere: Direct) -> None:
    of = query(atom(NAMES, "a", "b"))
    rows = [("x", "y"), ("y", "x"), ("", "x"), ("x", "x"), ("é", "e"), ("X", "x"), ("x ", "x")]
    anywhere.fill(NAMES, rows)
    check(anywhere, Signed(1, of, (), owners(of, "a", "b")), {NAMES.label: rows})


def test_more_sets_than_the_limit_fail(anywhere: Direct) -> None:
    anywhere.fill(EDGE, [(0, i, 1) for i in range(1, 6)])
    signed = Signed(1, EDGES, (), owners(EDGES, "a", "b"))
    assert len(measured(anywhere, signed, 5).weights) == 5
    with pytest.raises(EngineFailed, match="limit"):
        measured(anywhere, signed, 4)


def test_the_largest_integers_are_ids_as_others_are(anywhere: Direct) -> None:
    rows = [(2**63 - 1, -(2**63), 1), (-(2**63), 0, 1)]
    anywhere.fill(EDGE, rows)
    signed = Signed(1, EDGES, (), owners(EDGES, "a", "b"))
    check(anywhere, signed, {EDGE.label: rows})


def test_residuals_of_another_query_are_refused(on_duckdb: Direct) -> None:
    signed = Signed(1, EDGES, (), owners(EDGES, "a", "b"))
    with pytest.raises(ValueError, match="another query"):
        Measurements(Opened(on_duckdb, "duckdb")).owned_results(
            signed, Residuals(PATHS, Reading()), 10
        )


def test_duckdb_gives_columns() -> None:
    with sqlrs.connect("duckdb://", tables={}) as database, database.engine.snapshot() as snapshot:
        assert isinstance(snapshot, InColumns)
        select = sqlglot_select("CAST(1 AS BIGINT) AS a").select("CAST(2 AS BIGINT) AS b")
        assert integer_columns(snapshot, select, 2) == [array("q", [1]), array("q", [2])]
        for wrong in (
            "1.5 AS a",
            "CAST(NULL AS BIGINT) AS a",
            "CAST(1 AS HUGEINT) AS a",
            "'x' AS a",
        ):
            with pytest.raises(EngineFailed):
                integer_columns(snapshot, sqlglot_select(wrong), 1)
        with pytest.raises(EngineFailed):
            integer_columns(snapshot, select, 3)


def sqlglot_select(text: str) -> exp.Select:
    return sqlglot.select(text, dialect="duckdb")


def test_rows_are_made_columns_where_a_driver_has_none(anywhere: Direct) -> None:
    select = exp.Select(expressions=[number(1), number(2)])
    assert integer_columns(anywhere, select, 2) == [array("q", [1]), array("q", [2])]
    with pytest.raises(EngineFailed):
        integer_columns(anywhere, select, 3)
