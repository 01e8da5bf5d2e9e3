"""The refined bound: numbers known from elsewhere, public choices, limits, and what it asks for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrs.catalog import ColumnType, Family, Value
from sqlrs.errors import QueryRefused
from sqlrs.query import Atom, Constant, Query
from sqlrs.residuals.isomorphism import representatives
from sqlrs.residuals.residual import Members, Residual, Residuals
from sqlrs.sensitivity import refined, steps
from sqlrs.sensitivity.ceiling import Ceiling, turning_point
from sqlrs.sensitivity.components import components
from sqlrs.sensitivity.equal_constants import surely_different
from sqlrs.sensitivity.feasible import Checks, role_families
from sqlrs.sensitivity.horizon import Horizon
from sqlrs.sensitivity.recursion import apply
from sqlrs.sensitivity.refined import (
    choose_method,
    reached,
    refined_sensitivity,
    released_sensitivity,
    roles,
)
from sqlrs.sensitivity.residual_bound import residual_sensitivity
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.sensitivity.weights import Weights
from tests.sensitivity.exhaustive import Shape, check
from tests.sensitivity.shapes import several_tables, shapes
from tests.support import brute
from tests.support.builders import EDGE, INTEGER, PATTERNS, atom, pattern, query, table
from tests.support.examples import examples

SHARED = Path(__file__).parents[3] / "shared"
BAG = table("edge", "src", "dst")
TENTH = Weights.from_beta(Fraction(1, 10))
TWO_TRIANGLES = (36_666, 192_282, 511_266, 4_606, 12_144)


def values_of(residuals: Residuals, measure: Callable[[Residual], int]) -> dict[Members, int]:
    """T of all sets that the bounds need, one measurement for isomorphic parts."""
    wanted = (*residuals.required, *reached(residuals))
    parts = residuals.undecided(wanted)
    first = representatives(parts)
    known = {m: measure(r) for m, r in {r.members: r for r in first.values()}.items()}
    return residuals.assemble(wanted, {p.members: known[first[p.members].members] for p in parts})


def constant_values(residuals: Residuals, value: int) -> dict[Members, int]:
    return values_of(residuals, lambda part: value)


# The paper's graphs.


def graph(name: str) -> duckdb.DuckDBPyConnection:
    path = SHARED / "snap" / f"ca-{name}.txt.gz"
    if not path.exists():
        pytest.skip(f"the graph {name} is not here")
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE edge AS SELECT DISTINCT * FROM read_csv(?, delim='\t', skip=3, header=false,"
        " auto_detect=false, columns={'src': 'INTEGER', 'dst': 'INTEGER'})",
        [str(path)],
    )
    return connection


def sql(residual: Residual) -> str:
    """The plain form: join, group by the boundary, the largest count."""
    places: dict[str, str] = {}
    conditions: list[str] = []
    for i in sorted(residual.members):
        for column, term in residual.query.atoms[i].terms:
            here = f"e{i}.{column}"
            if str(term) in places:
                conditions.append(f"{here} = {places[str(term)]}")
            places.setdefault(str(term), here)
    conditions += [
        f"{places[str(p.left)]} <> {places[str(p.right)]}" for p in residual.inequalities
    ]
    tables = ", ".join(f"edge e{i}" for i in sorted(residual.members))
    groups = ", ".join(places[str(v)] for v in sorted(residual.boundary))
    return (
        f"SELECT coalesce(max(c), 0) FROM (SELECT count(*) AS c FROM {tables}"
        f" WHERE {' AND '.join(conditions) or 'TRUE'}{' GROUP BY ' + groups if groups else ''})"
    )


def sensitivities(name: str, shape: str) -> tuple[Fraction, Fraction]:
    connection = graph(name)
    residuals = Residuals(pattern(PATTERNS[shape]))

    def measure(residual: Residual) -> int:
        return int(connection.execute(sql(residual)).fetchall()[0][0])

    values = values_of(residuals, measure)
    return (
        refined_sensitivity(residuals, values, TENTH).value,
        residual_sensitivity(residuals, values, TENTH).value,
    )


def slow(name: str, shape: str) -> object:
    return pytest.param(name, shape, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *product(("GrQc", "HepTh"), ("triangle", "star3")),
        *map(slow, ("GrQc", "HepTh"), ("two_triangles", "two_triangles")),
        *(slow(*cell) for cell in product(("CondMat", "AstroPh", "HepPh"), ("triangle", "star3"))),
    ],
)
def test_graphs_of_the_paper(name: str, shape: str) -> None:
    """Triangle and star reach the smooth sensitivity itself; the paper prints whole numbers."""
    table1 = SHARED / "table1.json"
    if not table1.exists():
        pytest.skip("the paper's numbers are not here")
    paper = json.loads(table1.read_text())
    column = paper["order"].index(name)
    numbers = paper["queries"][shape]
    expected = TWO_TRIANGLES[column] if shape == "two_triangles" else numbers["SS"][column]
    refined_value, plain_value = sensitivities(name, shape)
    assert int(refined_value) == expected
    assert abs(plain_value - numbers["RS"][column]) < 1


# What only the query decides.


def test_the_whole_search_over_role_sets_agrees_with_all_patterns() -> None:
    """Every set partition of boundary values, columns and constants, by brute force."""
    for shape in shapes():
        residuals = Residuals(shape.query, shape.reading)
        for members in (*residuals.required, shape.query.everything):
            residual = residuals.of(members)
            for atoms in shape.query.private_tables:
                if candidates := members & atoms:
                    found = role_families(residual, candidates)
                    assert set(found) == all_patterns(residual, candidates), shape.name


def partitions(items: list[object]) -> list[list[list[object]]]:
    if not items:
        return [[]]
    smaller = partitions(items[1:])
    return [
        [*blocks[:i], [items[0], *blocks[i]], *blocks[i + 1 :]]
        for blocks in smaller
        for i in range(len(blocks))
    ] + [[[items[0]], *blocks] for blocks in smaller]


def all_patterns(residual: Residual, candidates: Members) -> set[frozenset[Members]]:
    """The definition: for each pattern the sets F that agree with it, the largest families kept."""
    asked = residual.query
    atoms = {j: asked.atoms[j] for j in candidates}
    columns = sorted({column for a in atoms.values() for column, _ in a.terms})
    terms = {term for a in atoms.values() for _, term in a.terms}
    valued = residual.boundary | residual.external
    tokens = [t for t in terms if isinstance(t, Constant) or t in valued]
    families = set()
    for blocks in partitions([*columns, *sorted(tokens, key=str)]):
        block = {item: i for i, items in enumerate(blocks) for item in items}
        if any(sum(isinstance(item, Constant) for item in items) > 1 for items in blocks):
            continue
        family = set()
        for size in range(1, len(candidates) + 1):
            family |= {
                roles
                for roles in map(frozenset, combinations(sorted(candidates), size))
                if agrees(residual, roles, atoms, block)
            }
        families.add(frozenset(family))
    return {f for f in families if f and not any(f < other for other in families)}


def agrees(
    residual: Residual, members: Members, atoms: dict[int, Atom], block: dict[object, int]
) -> bool:
    place: dict[object, object] = {t: b for t, b in block.items() if not isinstance(t, str)}
    for j in members:
        for column, term in atoms[j].terms:
            if place.setdefault(term, block[column]) != block[column]:
                return False
    if any(
        p.left in place and p.right in place and place[p.left] == place[p.right]
        for p in residual.inequalities
    ):
        return False
    edges = {
        (place.get(c.left, c.left), place.get(c.right, c.right), c.strict)
        for c in residual.comparisons
    }
    # Equal types are compared, so that any of them does.
    constants = {
        t for c in residual.comparisons for t in (c.left, c.right) if isinstance(t, Constant)
    } | {t for t in place if isinstance(t, Constant)}
    edges |= {
        (place.get(a, a), place.get(b, b), True)
        for a in constants
        for b in constants
        if a.value < b.value  # type: ignore[operator]
    }
    # The closure of the order: strict as soon as one step is.
    for _ in range(len(edges) + 1):
        edges |= {
            (a, d, strict or more) for a, b, strict in edges for c, d, more in edges if b == c
        }
    if any(a == b and strict for a, b, strict in edges):
        return False
    return not any(
        all(
            term in place and place[term] == block[column]
            for column, term in atoms[j].terms
            if column in key
        )
        for j in atoms
        if j not in members
        for key in atoms[j].table.keys
    )


def test_past_the_limit_all_role_sets_count_together() -> None:
    residuals = Residuals(pattern("ab bc cd de"))
    residual = residuals.of(frozenset({0, 2, 3}))
    exact = role_families(residual, residual.members)
    cut = role_families(residual, residual.members, max_checks=0)
    assert len(exact) > 1
    assert cut == (frozenset().union(*exact),)


def test_a_query_that_uses_up_its_checks_still_has_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No check left for small sets, then none at all: RS+ grows, and the step still holds."""
    shape = next(s for s in shapes() if s.name == "path of three, different")
    residuals = Residuals(shape.query, shape.reading)
    values = constant_values(residuals, 3)
    exact = refined_sensitivity(residuals, values, TENTH).value
    bounds = [exact]
    for checks in (40, 0):
        monkeypatch.setattr(steps, "Checks", lambda checks=checks: Checks(checks))
        steps.compile_recursion.cache_clear()
        again = Residuals(shape.query, shape.reading)
        bounds.append(refined_sensitivity(again, values, TENTH).value)
        report = check(replace(shape, most=2, decays=(Fraction(1, 2),)))
        assert report.pairs
        assert not report.failed
    steps.compile_recursion.cache_clear()
    assert bounds == sorted(bounds)
    assert bounds[-1] > exact


def integer(value: Value) -> Constant:
    return Constant(value, INTEGER)


def text(value: str, collation: str | None = None) -> Constant:
    return Constant(value, ColumnType(Family.TEXT, "VARCHAR", collation))


def test_constants_differ_only_where_no_engine_could_equate_them() -> None:
    day = ColumnType(Family.DATE, "DATE")
    assert surely_different(integer(1), integer(2))
    assert surely_different(text("a"), text("b"))
    assert surely_different(Constant(date(2020, 1, 1), day), Constant(date(2020, 1, 2), day))
    assert not surely_different(integer(1), integer(1))
    assert not surely_different(integer(1), integer(True))
    assert not surely_different(text("a"), text("A"))
    assert not surely_different(text("a"), text("a "))
    assert not surely_different(text("a", "nocase"), text("b", "nocase"))
    assert not surely_different(text("1"), integer(2))


@pytest.mark.parametrize(
    ("asked", "members", "expected"),
    [
        (query(atom(BAG, "a", "u"), atom(BAG, "w", "a"), atom(BAG, "a", "a")), {0, 1}, [{0}, {1}]),
        (
            query(*(atom(table(n, "v"), n) for n in "abc"), at_most=[("a", "b"), ("b", "a")]),
            {0, 1},
            [{0, 1}],
        ),
        (query(*(atom(table(n, "v"), n) for n in "abc"), different="a b"), {0, 1}, [{0}, {1}]),
        (query(atom(EDGE, "a", "b"), atom(EDGE, "b", "c"), atom(EDGE, "c", "a")), {0, 1}, [{0, 1}]),
        (
            query(
                atom(table("o", "id", "c", keys=["id"]), "o", "c"),
                atom(BAG, "o", "x"),
                atom(BAG, "c", "y"),
                atom(BAG, "o", "z"),
            ),
            {0, 1, 2},
            [{1}, {2}],
        ),
    ],
)
def test_components(asked: Query, members: set[int], expected: list[set[int]]) -> None:
    found = components(Residuals(asked), frozenset(members))
    assert [set(c) for c in found] == expected


def test_decided_sets_are_not_asked_for_in_the_recursion() -> None:
    residuals = Residuals(pattern("ab bc ca"))
    coordinates = compile_recursion(residuals).coordinates
    # The three pairs of edges are isomorphic: one stands for all.
    assert coordinates == (frozenset({0, 1}),)
    assert all(not residuals.of(members).decided for members in coordinates)


def test_values_that_no_private_row_moves_have_no_degree() -> None:
    free = replace(BAG, name="public", private=False)
    residuals = Residuals(query(atom(table("r", "v", keys=["v"]), "a"), atom(free, "a", "b")))
    recursion = compile_recursion(residuals)
    assert recursion.coordinates and not recursion.steps
    assert Ceiling.of(recursion, ()).degrees() == ()
    assert refined_sensitivity(residuals, constant_values(residuals, 7), TENTH).value == 7


def test_too_many_different_residuals_are_refused() -> None:
    def star(tables: list[str]) -> Residuals:
        atoms = (atom(table(name, "v", "w"), "x", f"y{i}") for i, name in enumerate(tables))
        return Residuals(query(*atoms))

    with pytest.raises(QueryRefused, match="residuals that all differ"):
        compile_recursion(star([f"t{i}" for i in range(9)]))
    assert len(compile_recursion(star([f"t{i}" for i in range(8)])).coordinates) == 2**8 - 2
    # As many residuals, but only one for each number of atoms.
    assert len(compile_recursion(star(["t"] * 9)).coordinates) == 8


def test_roles_tell_what_keys_and_predicates_decide() -> None:
    described = {r.members: r for r in roles(Residuals(pattern("ab bc ca")))}
    everything = described[frozenset({0, 1, 2})]
    assert everything.families == (
        ("edge", (frozenset({frozenset({0}), frozenset({1}), frozenset({2})}),)),
    )
    assert described[frozenset({0})].decided
    assert not described[frozenset({0, 1})].decided


# The search over distances.


@pytest.mark.parametrize("work", [0, 10**9], ids=["joint", "lattice"])
@pytest.mark.parametrize(
    "shape", [s for s in several_tables() if len(s.query.private_tables) > 1], ids=lambda s: s.name
)
def test_every_grouping_is_smooth(shape: Shape, work: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refined, "MAX_LATTICE_WORK", work)
    small = replace(shape, most=1, decays=(Fraction(1, 2), Fraction(3, 4)))
    report = check(small)
    assert report.pairs
    assert not report.failed


def three_tables() -> Residuals:
    return Residuals(query(*(atom(table(name, "v"), "x", alias=name) for name in "abc")))


def test_the_method_follows_from_public_facts() -> None:
    recursion = compile_recursion(three_tables())
    fine = choose_method(recursion, TENTH)
    assert fine is not None and fine.lattice and len(fine.groups) == 3
    coarse = choose_method(recursion, Weights.from_beta(Fraction(1, 50)))
    assert coarse is not None and not coarse.lattice and len(coarse.groups) == 2
    joint = choose_method(recursion, Weights.from_beta(Fraction(1, 1000)))
    assert joint is not None and not joint.lattice and len(joint.groups) == 1
    assert choose_method(recursion, Weights.from_beta(Fraction(1, 10**8))) is None


def test_too_many_distances_fall_back_to_the_residual_sensitivity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    residuals = three_tables()
    values = constant_values(residuals, 7)
    expected = residual_sensitivity(residuals, values, TENTH)
    monkeypatch.setattr(refined, "MAX_LATTICE_WORK", 0)
    # Which method it is depends on the limits, and is kept by the query.
    method = vars(refined)["_method"]
    method.cache_clear()
    assert refined_sensitivity(residuals, values, TENTH).value > expected.value
    assert released_sensitivity(residuals, values, TENTH) == expected
    monkeypatch.setattr(refined, "MAX_WORK", 0)
    method.cache_clear()
    assert refined_sensitivity(residuals, values, TENTH) == expected
    assert released_sensitivity(residuals, values, TENTH) == expected
    method.cache_clear()


@pytest.mark.parametrize("shape", shapes(), ids=lambda s: s.name)
def test_the_stop_loses_nothing(shape: Shape) -> None:
    """A long blind search over all distances finds no more."""
    residuals = Residuals(shape.query, shape.reading)
    recursion = compile_recursion(residuals)
    weights = Weights(Fraction(1, 2))
    method = choose_method(recursion, weights)
    assert method is not None
    for value in (0, 1, 5):
        values = constant_values(residuals, value)
        start = tuple(values[m] for m in recursion.coordinates)
        blind = max(
            weights[k] * max(map(recursion.last, layer.values()), default=0)
            for k, layer in zip(range(14), refined._layers(start, method.groups), strict=False)
        )
        assert refined_sensitivity(residuals, values, weights).value == blind


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.integers(0, 50), min_size=15, max_size=15), st.integers(2, 30))
def test_the_ceiling_is_above_every_distance(numbers: list[int], tenths: int) -> None:
    residuals = Residuals(pattern(PATTERNS["two_triangles"]))
    recursion = compile_recursion(residuals)
    weights = Weights.from_beta(Fraction(tenths, 10))
    ceiling = Ceiling.of(recursion, (recursion.steps,))
    start = tuple(numbers[: len(recursion.coordinates)])
    horizon = Horizon(ceiling.closest(start), 1, weights)
    values, best = start, Fraction(0)
    for k in range(20, -1, -1):
        values = start
        for _ in range(k):
            values = apply(recursion.steps, values)
        best = max(best, weights[k] * recursion.last(values))
        assert horizon.beyond((k,)) >= best


def test_weights_turn_where_the_binomials_no_longer_win() -> None:
    for degree, beta in product(range(6), (Fraction(1, 100), Fraction(1, 10), Fraction(1))):
        weights = Weights.from_beta(beta)
        turn = turning_point(degree, weights)
        for s in range(turn, turn + 50):
            assert weights[s + 1] * (s + 1) <= weights[s] * (s + 1 - degree)


def test_a_query_that_no_row_can_change_has_sensitivity_zero() -> None:
    residuals = Residuals(
        query(atom(BAG, "a", "b"), atom(BAG, "b", "c"), less=[("a", 0), (1, "a")])
    )
    assert refined_sensitivity(residuals, constant_values(residuals, 0), TENTH).value == 0


def test_an_empty_public_table_keeps_the_sensitivity_at_zero() -> None:
    public = table("p", "y", "z", private=False)
    residuals = Residuals(query(atom(BAG, "x", "y"), atom(public, "y", "z"), atom(BAG, "z", "w")))
    values = brute.residual_values(residuals, reached(residuals), {"edge": [(0, 0)], "p": []})
    assert refined_sensitivity(residuals, values, TENTH).value == 0


def test_missing_and_negative_values_are_refused() -> None:
    residuals = Residuals(pattern("ab bc ca"))
    values = constant_values(residuals, 3)
    missing = {m: v for m, v in values.items() if m != frozenset({0, 1})}
    with pytest.raises(KeyError):
        refined_sensitivity(residuals, missing, TENTH)
    with pytest.raises(ValueError, match="not negative"):
        refined_sensitivity(residuals, values | {frozenset({0, 1}): -1}, TENTH)


@settings(max_examples=examples(30), deadline=None)
@given(st.data())
def test_the_released_bound_is_never_above_the_paper(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*PATTERNS.values(), "ab bc cd de"]))
    of = data.draw(st.sampled_from([EDGE, BAG]))
    residuals = Residuals(pattern(name, different=data.draw(st.booleans()), of=of))
    values = values_of(residuals, lambda part: data.draw(st.integers(0, 10**6)))
    plain = residual_sensitivity(residuals, values, TENTH).value
    assert released_sensitivity(residuals, values, TENTH).value <= plain
