from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations, product

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrs.errors import QueryRefused
from sqlrs.owner.frequencies import irregular_edges, maximum_degree, triangle_pairs
from sqlrs.query import Query
from sqlrs.sensitivity.exact_smooth import (
    Pair,
    Star,
    Triangle,
    recognise,
    require_simple_graph,
    star_sensitivity,
    triangle_sensitivity,
)
from sqlrs.sensitivity.weights import Weights
from tests.support import brute, graphs
from tests.support.builders import EDGE, atom, pattern, query, table
from tests.support.examples import examples

WEIGHTS = Weights.from_beta(Fraction("0.1"))
TRIANGLE = Triangle(EDGE, "src", "dst")
Edges = frozenset[tuple[int, int]]


def symmetric(pairs: set[tuple[int, int]]) -> Edges:
    return frozenset(pairs | {(b, a) for a, b in pairs})


def by_definition(edges: Edges, weights: Weights, far: int) -> Fraction:
    """max_k w[k] · 3 · max_ij a_ij + ⌊(k + min(k, b_ij)) / 2⌋ over all pairs and a lone node."""
    near = {a: {y for x, y in edges if x == a} for a in {a for a, _ in edges} | {-1, -2}}
    pairs = [
        (len(near[i] & near[j]), len((near[i] ^ near[j]) - {i, j}))
        for i, j in combinations(near, 2)
    ]
    return max(weights[k] * 3 * max(a + (k + min(k, b)) // 2 for a, b in pairs) for k in range(far))


def measured(edges: Edges) -> list[Pair]:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("create table edge (src bigint, dst bigint)")
    if edges:
        connection.executemany("insert into edge values (?, ?)", sorted(edges))
    assert graphs.value(connection, irregular_edges(TRIANGLE)) == 0
    rows = connection.execute(triangle_pairs(TRIANGLE).sql("duckdb")).fetchall()
    return [Pair(*row) for row in rows]


@settings(max_examples=examples(30))
@given(
    st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda e: e[0] != e[1])),
    st.sampled_from(["0.05", "0.3", "1.5", "12.8"]),
)
def test_triangles_by_definition_over_all_pairs(pairs: set[tuple[int, int]], beta: str) -> None:
    edges = symmetric(pairs)
    weights = Weights.from_beta(Fraction(beta))
    found = triangle_sensitivity(measured(edges), weights)
    assert found.value == by_definition(edges, weights, 60 + int(4 / Fraction(beta)))


SMALL: dict[str, Edges] = {
    "nothing": symmetric(set()),
    "edge": symmetric({(0, 1)}),
    "path": symmetric({(0, 1), (1, 2)}),
    "triangle": symmetric({(0, 1), (1, 2), (2, 0)}),
}


def furthest(q: Query, edges: Edges, nodes: int, changes: int) -> int:
    """The greatest local sensitivity among all tables at that distance, recounted row by row."""
    rows = list(permutations(range(nodes), 2))
    best = 0
    for toggled in combinations(rows, changes):
        here = edges ^ set(toggled)
        now = brute.count(q, {"edge": sorted(here)})
        for row in rows:
            best = max(best, abs(brute.count(q, {"edge": sorted(here ^ {row})}) - now))
    return best


@pytest.mark.parametrize("name", SMALL)
def test_triangle_formula_is_the_local_sensitivity_at_each_distance(name: str) -> None:
    # Five nodes are enough for two changes and one more row; substitutions cannot do better.
    q, pairs = pattern("ab bc ca"), [Pair(0, 0), *measured(SMALL[name])]
    for k in range(3 if name in ("nothing", "edge") else 2):
        expected = 3 * max(min(p.common + k, (p.reach + k) // 2) for p in pairs)
        assert furthest(q, SMALL[name], 5, k) == expected


@pytest.mark.parametrize(("text", "size"), [("ab", 1), ("ab ac", 2), ("ba ca da", 3)])
def test_star_formula_is_the_local_sensitivity_at_each_distance(text: str, size: int) -> None:
    weights = Weights.from_beta(Fraction("0.0001"))
    degree = 2
    edges = frozenset({(0, 1), (0, 2), (1, 0), (2, 0)})
    for k in range(2):
        # With almost constant weights a truncated maximum shows the value at the last distance.
        expected = size
        for i in range(size - 1):
            expected *= degree + k - i
        assert furthest(pattern(text), edges, 5, k) == expected
    assert star_sensitivity(degree, size, weights).value >= weights[1] * expected


@given(st.integers(0, 40), st.integers(1, 5), st.sampled_from(["0.05", "0.4", "2", "12.8"]))
def test_star_maximum_over_all_distances(degree: int, size: int, beta: str) -> None:
    weights = Weights.from_beta(Fraction(beta))
    values = []
    for k in range(20 + int(8 / Fraction(beta))):
        local = size
        for i in range(size - 1):
            local *= max(0, degree + k - i)
        values.append(weights[k] * local)
    found = star_sensitivity(degree, size, weights)
    assert (found.value, found.k) == (max(values), values.index(max(values)))


@pytest.mark.parametrize("graph", graphs.GRAPHS)
def test_paper_table(graph: str) -> None:
    connection = graphs.load(graph)
    assert graphs.value(connection, irregular_edges(TRIANGLE)) == 0
    rows = connection.execute(triangle_pairs(TRIANGLE).sql("duckdb")).fetchall()
    found = triangle_sensitivity([Pair(*row) for row in rows], WEIGHTS)
    assert round(found.value) == graphs.printed("SS", "triangle", graph)
    star = recognise(pattern("ab ac ad"))
    assert isinstance(star, Star)
    degree = graphs.value(connection, maximum_degree(star))
    assert star_sensitivity(degree, 3, WEIGHTS).value == graphs.printed("SS", "star3", graph)


@pytest.mark.parametrize(
    ("rows", "irregular"),
    [([(1, 2), (2, 1)], 0), ([(1, 2)], 1), ([(1, 1)], 1), ([(1, 2), (2, 1), (3, 1), (4, 4)], 2)],
)
def test_loops_and_one_way_edges_are_noticed(rows: list[tuple[int, int]], irregular: int) -> None:
    connection = duckdb.connect()
    connection.execute("create table edge (src bigint, dst bigint)")
    connection.executemany("insert into edge values (?, ?)", rows)
    found = graphs.value(connection, irregular_edges(TRIANGLE))
    assert found == irregular
    if irregular:
        with pytest.raises(QueryRefused, match="undirected"):
            require_simple_graph(found)
    else:
        require_simple_graph(found)


def test_degrees_leave_loops_out() -> None:
    connection = duckdb.connect()
    connection.execute(
        "create table edge as select * from (values (1, 1), (1, 2), (3, 2)) t(src, dst)"
    )
    assert graphs.value(connection, maximum_degree(Star(EDGE, "src", "dst", 3))) == 1
    assert graphs.value(connection, maximum_degree(Star(EDGE, "dst", "src", 3))) == 2


@pytest.mark.parametrize("order", list(permutations(["xy", "yz", "zx"])))
def test_triangles_are_recognised_in_any_order_and_by_any_name(order: tuple[str, ...]) -> None:
    assert recognise(pattern(" ".join(order))) == TRIANGLE


def test_stars_are_recognised_in_both_directions() -> None:
    assert recognise(pattern("ab ac ad")) == Star(EDGE, "src", "dst", 3)
    assert recognise(pattern("ba ca")) == Star(EDGE, "dst", "src", 2)


BAG = table("bag", "src", "dst")
NARROW = table("narrow", "src", "dst", keys=["src"])
TWICE = table("twice", "src", "dst", keys=["src dst", "dst"])
PUBLIC = replace(EDGE, private=False)
WIDE = table("wide", "src", "dst", "w", keys=["src dst"])

OTHERS = {
    "path": pattern("ab bc"),
    "transitive triangle": pattern("ab bc ac"),
    "square": pattern("ab bc cd da"),
    "two triangles": pattern("ab bc ca bd da"),
    "back and forth": pattern("ab ba"),
    "in and out": pattern("ab ca"),
    "no inequalities": pattern("ab bc ca", different=False),
    "an inequality is missing": query(
        atom(EDGE, "a", "b"), atom(EDGE, "a", "c"), different=["a b", "a c"]
    ),
    "bag": pattern("ab bc ca", of=BAG),
    "stronger key": pattern("ab ac", of=NARROW),
    "second key": pattern("ab ac", of=TWICE),
    "public": pattern("ab bc ca", of=PUBLIC),
    "filter": query(
        atom(EDGE, "a", "b", where=lambda s: s > 0, reads="src"), atom(EDGE, "a", "c"),
        different="a b c",
    ),
    "constant": query(atom(EDGE, 1, "b"), atom(EDGE, 1, "c"), different="b c"),
    "distinct": query(
        atom(EDGE, "a", "b"), atom(EDGE, "a", "c"), different="a b c", distinct="a"
    ),
    "compared": query(
        atom(EDGE, "a", "b"), atom(EDGE, "a", "c"), different="a b c", less=[("b", "c")]
    ),
    "third column": query(
        atom(WIDE, "a", "b", "w"), atom(WIDE, "a", "c", "v"), different="a b c w v"
    ),
    "two tables": query(
        atom(EDGE, "a", "b"), atom(table("e2", "src", "dst", keys=["src dst"]), "a", "c"),
        different="a b c",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_everything_else_is_refused(name: str) -> None:
    with pytest.raises(QueryRefused) as caught:
        recognise(OTHERS[name])
    assert caught.value.code == "smooth_unsupported"


def test_a_wider_table_is_still_a_graph() -> None:
    assert recognise(pattern("ab bc ca", of=WIDE)) == Triangle(WIDE, "src", "dst")


def test_pairs_that_understate_do_no_harm() -> None:
    true = [Pair(3, 9), Pair(0, 12)]
    weaker = [Pair(a, b) for a, b in product(range(4), range(10))]
    assert triangle_sensitivity([*true, *weaker], WEIGHTS) == triangle_sensitivity(true, WEIGHTS)
