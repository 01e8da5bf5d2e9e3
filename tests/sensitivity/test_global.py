from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations
from math import ceil, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrs.query import Query
from sqlrs.sensitivity.agm import Power, agm_bound
from sqlrs.sensitivity.global_ import global_sensitivity
from tests.support import brute
from tests.support.builders import EDGE, PATTERNS, atom, pattern, query, table

Edge = frozenset[str]


def covers(edges: list[Edge]) -> Iterator[list[Fraction]]:
    """Every vertex of the polytope of fractional covers, by solving each choice of tight rows."""
    variables = sorted(frozenset[str]().union(*edges))
    n = len(edges)
    rows = [([Fraction(v in e) for e in edges], Fraction(1)) for v in variables]
    rows += [([Fraction(i == j) for j in range(n)], Fraction(0)) for i in range(n)]
    for chosen in combinations(rows, n):
        cover = solve([[*a, b] for a, b in chosen])
        if cover is not None and all(
            sum(x * y for x, y in zip(a, cover, strict=True)) >= b for a, b in rows
        ):
            yield cover


def solve(matrix: list[list[Fraction]]) -> list[Fraction] | None:
    """Gauss-Jordan; None for a singular system."""
    n = len(matrix)
    for i in range(n):
        pivot = next((r for r in range(i, n) if matrix[r][i]), None)
        if pivot is None:
            return None
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        matrix[i] = [x / matrix[i][i] for x in matrix[i]]
        for r in range(n):
            if r != i and matrix[r][i]:
                factor = matrix[r][i]
                matrix[r] = [x - factor * y for x, y in zip(matrix[r], matrix[i], strict=True)]
    return [row[n] for row in matrix]


def to_the(power: int, cover: list[Fraction], sizes: list[int]) -> int:
    """(Π N_i^{x_i})^power, an integer where the power clears all denominators."""
    return prod(n ** int(x * power) for n, x in zip(sizes, cover, strict=True))


@given(
    st.lists(st.frozensets(st.sampled_from("abcd"), max_size=3), min_size=1, max_size=5),
    st.data(),
)
def test_simplex_equals_the_best_vertex(edges: list[Edge], data: st.DataObject) -> None:
    sizes = [data.draw(st.sampled_from([1, 2, 3, 4, 9, 1000])) for _ in edges]
    found = agm_bound(edges, sizes)
    for variable in frozenset[str]().union(*edges):
        assert sum(x for e, x in zip(edges, found.exponents, strict=True) if variable in e) >= 1
    assert min(found.exponents) >= 0
    # Determinants of 0/1 matrices of this size divide 60.
    best = min(to_the(60, cover, sizes) for cover in covers(edges))
    assert to_the(60, list(found.exponents), sizes) == best


@given(st.integers(1, 10**9), st.integers(1, 10**6), st.integers(0, 9), st.integers(1, 4))
def test_ceiling_is_exact(one: int, other: int, above: int, below: int) -> None:
    x = Fraction(above, below)
    found = Power((one, other), (x, Fraction(1, 2))).ceiling()
    exact = one ** (2 * above) * other**below
    root = 2 * below
    assert found**root >= exact > (found - 1) ** root


@pytest.mark.parametrize(
    ("q", "exponent", "formula", "at_100"),
    [
        (pattern(PATTERNS["triangle"]), 1, "3·N + 4", 304),
        (pattern(PATTERNS["star3"]), 2, "3·N^2 + 3·N + 1", 30301),
        (pattern("ab bc cd de"), 2, "5·N^2 + 7·N + 3", 50703),
        (pattern("ab"), 0, "1", 1),
    ],
)
def test_known_queries(q: Query, exponent: int, formula: str, at_100: int) -> None:
    found = global_sensitivity(q, {"edge": 100})
    assert (found.exponent, found.formula, found.value) == (
        Fraction(exponent),
        formula,
        Fraction(at_100),
    )
    assert global_sensitivity(q).value is None


def test_fractional_exponents_are_rounded_up() -> None:
    # A row of t leaves a triangle of three tables free: (N1·N2·N3)^(1/2).
    r, s, u = (table(n, "x", "y", keys=["x y"], private=False) for n in "rsu")
    q = query(atom(table("t", "w"), "w"), atom(r, "a", "b"), atom(s, "b", "c"), atom(u, "c", "a"))
    found = global_sensitivity(q, {"t": 1, "r": 10, "s": 10, "u": 10})
    assert (found.exponent, found.formula) == (Fraction(3, 2), "N^(3/2)")
    assert found.value == 32 == ceil(1000**0.5)


def test_bags_public_tables_keys_and_projections() -> None:
    bag, public = table("b", "x"), table("p", "x", "y", private=False)
    # The rows of a bag are not told apart by their values.
    assert global_sensitivity(query(atom(bag, "x"), atom(bag, "x"))).formula == "2·N + 1"
    assert global_sensitivity(query(atom(public, "x", "y"))).formula == "0"
    found = global_sensitivity(query(atom(bag, "x"), atom(public, "x", "y")), {"b": 5, "p": 7})
    assert (found.exponent, found.value) == (Fraction(1), Fraction(7))
    person = table("k", "id", "x", keys=["id"])
    assert global_sensitivity(query(atom(bag, "i"), atom(person, "i", "x"))).exponent == 1
    visit = table("v", "id", "x", keys=["id x"])
    country = table("c", "id", "x", keys=["id"], private=False)
    assert global_sensitivity(query(atom(visit, "i", "x"), atom(country, "i", "y"))).formula == "1"
    looked_up = query(atom(visit, "i", "x"), atom(person, "i", "y"))
    assert global_sensitivity(looked_up, {"v": 50, "k": 9}).formula == "N"
    assert global_sensitivity(
        query(atom(EDGE, "a", "b"), atom(bag, "b"), distinct="b")
    ).formula == "1"  # fmt: skip


ROWS: Mapping[str, list[brute.Row]] = {
    "edge": [(a, b) for a in range(2) for b in range(2)],
    "r": [(0,), (1,)],
    "s": [(0, 0), (0, 1), (1, 1)],
}
R, S = table("r", "x"), table("s", "x", "y")


@pytest.mark.parametrize(
    "q",
    [
        pattern("ab bc ca", different=False),
        pattern("ab bc", different=False),
        query(atom(R, "x"), atom(S, "x", "y"), atom(R, "y")),
        query(atom(S, "x", "y"), atom(S, "y", "z"), distinct="x z"),
    ],
)
def test_never_below_a_substitution_in_any_database(q: Query) -> None:
    tables = {a.table.label: a.table for a in q.atoms}
    for database in brute.databases(tables.values(), ROWS, most=3):
        sizes = {label: len(rows) for label, rows in database.items()}
        here = brute.count(q, database)
        found = global_sensitivity(q, sizes).value
        assert found is not None
        for other in brute.neighbours(q, database, ROWS):
            if all(len(rows) == sizes[label] for label, rows in other.items()):
                assert abs(brute.count(q, other) - here) <= found
