"""What units contribute, in one statement: equal to the definition on random measures."""

from __future__ import annotations

import random
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.engines.base import Opened
from sqlrs.errors import SqlrsError
from sqlrs.measures import Contributions, KeyDomain, PerUnit, Signed
from sqlrs.measuring.contributions import contributions, owned_term
from sqlrs.measuring.measurements import Measurements
from sqlrs.query import Atom, Constant, Query, Variable, Weight
from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity.clipping import fine_grid
from sqlrs.sql.by_place import (
    contributions_by_place,
    units_by_number,
    units_near_each_other,
)
from sqlrs.trees.kept import Kept
from tests.planning.adapters import Direct
from tests.planning.owned_cases import OwnedCase, random_measure, seen
from tests.planning.test_grouped import listed, with_remainder
from tests.support.builders import INTEGER, TEXT, atom, query, table
from tests.support.examples import examples

P, R = Variable("p", INTEGER), Variable("r", INTEGER)
SMALL = (1, 2, 4, 7)
GRIDS = (SMALL, fine_grid(2**40), (3,), (1, 2**70, 2**100))


@pytest.fixture(params=["duckdb", "postgres"])
def anywhere(request: pytest.FixtureRequest) -> Direct:
    found = request.getfixturevalue(f"on_{request.param}")
    assert isinstance(found, Direct)
    return found


def measured(
    snapshot: Direct,
    source: tuple[Signed, ...] | PerUnit,
    domains: tuple[KeyDomain, ...] = (),
    grid: tuple[int, ...] = SMALL,
    how: str = "auto",
) -> Contributions:
    parts = source if isinstance(source, PerUnit) else [(s, Residuals(s.query)) for s in source]
    measurements = Measurements(Opened(snapshot, snapshot.dialect), how)
    return measurements.contributions(parts, domains, grid)


def check(case: OwnedCase, snapshot: Direct, grid: tuple[int, ...], how: str) -> None:
    case.fill(snapshot)
    wanted = seen(case.contributions(grid))
    assert seen(measured(snapshot, case.terms, case.domains, grid, how)) == wanted
    # Few different numbers are placed here, others in the database.
    with patch("sqlrs.measuring.contributions._FEW", 0):
        assert seen(measured(snapshot, case.terms, case.domains, grid, how)) == wanted


seeds = st.integers(0, 2**32)
plans = st.sampled_from(["auto", "plain", "factorised"])
grids = st.sampled_from(GRIDS)


@settings(max_examples=examples(80))
@given(seeds, grids, plans)
def test_random_measures_on_duckdb(
    on_duckdb: Direct, seed: int, grid: tuple[int, ...], how: str
) -> None:
    check(random_measure(random.Random(seed)), on_duckdb, grid, how)


@settings(max_examples=examples(40))
@given(seeds, grids, plans)
def test_random_measures_on_postgres(
    on_postgres: Direct, seed: int, grid: tuple[int, ...], how: str
) -> None:
    check(random_measure(random.Random(seed)), on_postgres, grid, how)


VISIT = table("visit", "person", "ward", "cost", nullable="person ward", types={"ward": TEXT})
WARDS = listed([0], [("B",), (None,), ("a",), ("C",)], "VARCHAR")
ROWS: list[tuple[object, ...]] = [
    *((1, "a", 4), (1, "a", 2**62), (2, "B", 1), (2, None, 0), (2, None, 5)),
    *((3, "elsewhere", 9), (3, "A", 7), (4, "a", 2**62), (4, "a", 2**62), (4, "a", 2**62)),
    *((None, "a", 8), (None, None, 8)),
]


def owned(
    *atoms: Atom, keys: str = "", coefficient: int = 1, distinct: str | None = None
) -> Signed:
    found = query(*atoms, distinct=distinct)
    known = {v.name: v for v in found.variables(found.everything)}
    return Signed(coefficient, found, tuple(known[name] for name in keys), (known["p"],))


def heavy(one: Atom) -> Atom:
    return replace(one, weight=Weight("cost", 2**62))


@pytest.mark.parametrize("how", ["plain", "factorised"])
def test_sums_beyond_64_bits_and_rows_of_nobody(anywhere: Direct, how: str) -> None:
    anywhere.fill(VISIT, ROWS)
    grid = (5, 2**62, 2**64)
    found = measured(anywhere, (owned(heavy(atom(VISIT, "p"))),), (), grid, how)
    # 1: 2**62 + 4; 2: 6; 3: 16; 4: 3 * 2**62.
    assert found.units == (0, 2, 2, 0)
    assert found.totals == {(): (0, 22, 2**62 + 4 + 3 * 2**62, 0)}


@pytest.mark.parametrize("how", ["plain", "factorised"])
def test_groups_of_texts_and_null(anywhere: Direct, how: str) -> None:
    """Results in no group are left out before sizes are taken: person 3 is in none."""
    anywhere.fill(VISIT, ROWS)
    found = measured(anywhere, (owned(atom(VISIT, "p", "w"), keys="w"),), (WARDS,), (1, 2), how)
    # NULL is last; "a" comes after "B" and "C" or before them.
    sizes = {1: 2, 2: 3, 4: 3}
    assert found.units == (0, 1, 2)
    assert sum(map(sum, found.totals.values())) == sum(sizes.values())
    assert found.totals[3,] == (0, 0, 2)


def test_numbers_of_two_signs_are_one_number_for_each_group(anywhere: Direct) -> None:
    anywhere.fill(VISIT, ROWS)
    both = (
        owned(atom(VISIT, "p", "w"), keys="w"),
        owned(atom(VISIT, "p", "w"), keys="w", coefficient=-1, distinct="p w"),
    )
    # Visits without the first of each person and ward: 1: 1; 2: NULL 1; 4: 2.
    found = measured(anywhere, both, (WARDS,), (1, 2))
    assert sum(map(sum, found.totals.values())) == 4
    assert found.units[1:] == (1, 0)
    found = measured(anywhere, tuple(replace(s, keys=()) for s in both[::-1]), (), (1, 2))
    # Of persons 1 to 4, without groups; person 3 has two wards.
    assert found.totals == {(): (2, 2, 0)}
    assert found.below == (0, 0, 0)


def test_more_taken_than_given(anywhere: Direct) -> None:
    anywhere.fill(VISIT, ROWS)
    found = measured(anywhere, (owned(atom(VISIT, "p"), coefficient=-2),), (), (2, 4))
    # 2, 3, 2 and 3 visits.
    assert found.units == found.below == (0, 2, 2)
    assert found.totals == {(): (0, -8, -12)}


def test_without_any_row_there_is_nothing(anywhere: Direct) -> None:
    anywhere.fill(VISIT, [])
    nothing = (0,) * (len(SMALL) + 1)
    for keys, domains in (("", ()), ("w", (WARDS,))):
        for how in ("plain", "factorised"):
            terms = (owned(atom(VISIT, "p", "w"), keys=keys),)
            found = measured(anywhere, terms, domains, how=how)
            assert found == Contributions(SMALL, nothing, nothing, {})


def test_an_owner_that_the_query_fixes(anywhere: Direct) -> None:
    anywhere.fill(VISIT, ROWS)
    one = Constant(1, INTEGER)
    by_name = Signed(1, query(atom(VISIT, 1, "w")), (), (one, one))
    found = measured(anywhere, (by_name, owned(atom(VISIT, "p"))), ())
    # Person 1 has two visits in either term.
    assert found.units == (0, 1, 3, 0, 0)
    assert found.totals == {(): (0, 2, 10, 0, 0)}


def test_the_owner_as_a_group_key(anywhere: Direct) -> None:
    anywhere.fill(VISIT, ROWS)
    persons = listed([0], [(1,), (4,), (9,), (None,)])
    found = measured(anywhere, (owned(atom(VISIT, "p"), keys="p"),), (persons,))
    assert seen(found) == (
        SMALL,
        (1, 1, 0, 0),
        (0,) * 4,
        {(0,): (0, 2, 0, 0, 0), (1,): (0, 0, 3, 0, 0)},
    )


def test_several_owners_are_not_counted_by_one() -> None:
    edge = query(atom(table("edge", "src", "dst"), "a", "b"))
    signed = Signed(1, edge, (), tuple(sorted(edge.variables(edge.everything))))
    with pytest.raises(ValueError, match="one owner"):
        owned_term(signed, Residuals(edge).of(edge.everything), None, "auto")


PER_UNIT = """
SELECT person AS owner, ward AS k0, sum(cost) AS number FROM visit WHERE cost < 100
GROUP BY person, ward
UNION ALL SELECT person, 'a', -5 FROM visit WHERE cost < 1 UNION ALL SELECT 7, 'C', NULL
"""


def by_unit(sql: str, *, signed: bool) -> PerUnit:
    select: exp.Expression = exp.maybe_parse(sql, dialect="duckdb")
    return PerUnit(select, frozenset({VISIT}), signed=signed)


def test_sql_by_unit(anywhere: Direct) -> None:
    """Rows of one unit and key are added up, rows of nobody and in no group left out."""
    anywhere.fill(VISIT, ROWS)
    found = measured(anywhere, by_unit(PER_UNIT, signed=True), (WARDS,), (4, 6, 10))
    # 1: a 4; 2: B 1, NULL 5, a -5; 7: C 0, without a number.
    assert found.units == (2, 0, 0, 1)
    assert found.below == (0, 0, 0, 0)
    assert found.totals[3,] == (0, 0, 0, 5)
    assert sorted(map(sum, found.totals.values())) == [-1, 0, 1, 5]
    alone = "SELECT person AS owner, cost AS number FROM visit WHERE cost < 100"
    found = measured(anywhere, by_unit(alone, signed=False), (), (4, 6, 10))
    assert found.units == (1, 1, 0, 1)
    assert found.totals == {(): (4, 6, 0, 16)}


def test_tables_with_the_names_of_steps(anywhere: Direct) -> None:
    private = table("owned", "owner", "results", "o0", nullable="o0")
    anywhere.fill(private, [(1, 2, 3), (1, 2, 3), (1, 2, 4), (2, 2, None)])
    found = query(atom(private, "owner", "results", "o0"))
    known = {v.name: v for v in found.variables(found.everything)}
    signed = Signed(1, found, (known["o0"],), (known["owner"],))
    got = measured(anywhere, (signed,), (listed([0], [(3,), (4,), (None,)]),))
    assert seen(got)[1] == (0, 1, 0, 0)
    assert got.totals == {
        (0,): (0, 0, 2, 0, 0),
        (1,): (0, 0, 1, 0, 0),
        (2,): (1, 0, 0, 0, 0),
    }


def test_one_name_that_is_computed_in_two_ways(anywhere: Direct) -> None:
    """Steps of two terms look alike and are not."""
    stay = table("stay", "person", "ward", "bed")
    kind = table("kind", "remainder", private=False)
    person = table("person", "id", keys=["id"])
    anywhere.fill(person, [(1,), (2,)])
    anywhere.fill(stay, [(1, 0, 1), (1, 0, 1), (1, 2, 1), (2, 1, 0)])
    anywhere.fill(kind, [(0,), (0,), (2,)])

    def even(column: str) -> Signed:
        of = with_remainder(stay, column)
        rows = Atom("s", of, (("person", P), (of.columns[-1].name, R)))
        known = Atom("o", person, (("id", P),)), Atom("k", kind, (("remainder", R),))
        return Signed(1, Query((rows, *known)), (), (P,))

    for how in ("plain", "factorised"):
        terms = [
            owned_term(one, Residuals(one.query).of(one.query.everything), None, how)
            for one in (even("ward"), even("bed"))
        ]
        found = contributions(anywhere, terms, (), (2, 6), anywhere.dialect, Kept())
        assert (found.units, found.totals) == ((1, 1, 0), {(): (2, 6, 0)})


def test_a_sum_that_no_engine_holds_fails() -> None:
    """Past 38 digits nothing is rounded: the release ends with the one error."""
    import duckdb

    with duckdb.connect() as connection:
        snapshot = Direct(connection)
        large = by_unit(
            "SELECT 1 AS owner, CAST(repeat('9', 38) AS DECIMAL(38, 0)) AS number FROM range(3)",
            signed=False,
        )
        with pytest.raises((duckdb.Error, SqlrsError)):
            measured(snapshot, large)


def test_no_id_leaves_the_database() -> None:
    """The statement's outputs are places, ordinals and sums."""
    signed = owned(atom(VISIT, "p", "w"), keys="w")
    whole = Residuals(signed.query).of(signed.query.everything)
    for keys, domains, names in (
        ((), (), ["place", "units", "below", "results"]),
        (signed.keys, (WARDS,), ["place", "o0", "units", "below", "results"]),
    ):
        term = owned_term(replace(signed, keys=keys), whole, None, "auto")
        statement = contributions_by_place([term], domains, SMALL, "duckdb")
        assert [one.alias_or_name for one in statement.expressions] == names
    term = owned_term(replace(signed, keys=()), whole, None, "auto")
    few = units_by_number([term], 9, "duckdb")
    assert few is not None
    assert [one.alias_or_name for one in few.expressions] == ["results", "units"]


def test_sizes_that_only_seem_to_be_alike_are_told_apart(on_duckdb: Direct) -> None:
    """A threshold between sizes of one logarithm: the database places them one by one."""
    on_duckdb.fill(VISIT, [(1, "a", 1000), (2, "a", 1010), (3, "a", 1010), (4, "a", 3)])
    costs = (owned(heavy(atom(VISIT, "p"))),)
    for grid, units in (
        ((3, 1009, 1010), (1, 1, 2, 0)),
        ((2, 1005), (0, 2, 2)),
        ((1009, 2**70), (2, 2, 0)),
        ((999,), (1, 3)),
    ):
        assert measured(on_duckdb, costs, (), grid).units == units
    # Where nothing lies between them, they are placed together, and nothing else is asked.
    near = units_near_each_other(
        [
            owned_term(
                costs[0], Residuals(costs[0].query).of(costs[0].query.everything), None, "auto"
            )
        ],
        (2, 2000),
        "duckdb",
    )
    assert near is not None and len(on_duckdb.rows(near)) == 2


@settings(max_examples=examples(60))
@given(seeds, grids)
def test_places_are_found_in_the_list_as_well(
    on_duckdb: Direct, seed: int, grid: tuple[int, ...]
) -> None:
    case = random_measure(random.Random(seed))
    case.fill(on_duckdb)
    with (
        patch("sqlrs.measuring.contributions._FEW", 0),
        patch("sqlrs.measuring.contributions.units_near_each_other", lambda *_: None),
    ):
        found = measured(on_duckdb, case.terms, case.domains, grid)
    assert seen(found) == seen(case.contributions(grid))
