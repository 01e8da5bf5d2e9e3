from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrs.catalog import Table
from sqlrs.errors import QueryRefused
from sqlrs.owner.frequencies import maximum_frequency
from sqlrs.query import Query, Variable
from sqlrs.sensitivity.elastic import (
    Frequency,
    elastic_sensitivity,
    needed_frequencies,
    stability,
)
from sqlrs.sensitivity.weights import Weights
from tests.support import brute, graphs
from tests.support.builders import EDGE, PATTERNS, atom, pattern, query, table

WEIGHTS = Weights.from_beta(Fraction("0.1"))


@dataclass(frozen=True)
class Leaf:
    """A table occurrence of a FLEX relation tree; an attribute is a pair (position, column)."""

    position: int
    table: Table


@dataclass(frozen=True)
class Join:
    left: Leaf | Join
    right: Leaf
    on: tuple[tuple[int, str], tuple[int, str]]


def tables(relation: Leaf | Join) -> set[str]:
    if isinstance(relation, Leaf):
        return {relation.table.label}
    return tables(relation.left) | tables(relation.right)


def positions(relation: Leaf | Join) -> set[int]:
    if isinstance(relation, Leaf):
        return {relation.position}
    return positions(relation.left) | positions(relation.right)


def frequency(
    attribute: tuple[int, str], relation: Leaf | Join, mf: Mapping[tuple[str, str], int], k: int
) -> int:
    """mf_k of the paper: products along the joins."""
    if isinstance(relation, Leaf):
        grown = k if relation.table.private else 0
        return mf[relation.table.label, attribute[1]] + grown
    ours, theirs = relation.on
    if attribute[0] in positions(relation.left):
        return frequency(attribute, relation.left, mf, k) * frequency(theirs, relation.right, mf, k)
    return frequency(attribute, relation.right, mf, k) * frequency(ours, relation.left, mf, k)


def elastic_stability(relation: Leaf | Join, mf: Mapping[tuple[str, str], int], k: int) -> int:
    """S_R of the paper: a sum with a common table, a maximum without."""
    if isinstance(relation, Leaf):
        return 1 if relation.table.private else 0
    ours, theirs = relation.on
    left = elastic_stability(relation.left, mf, k)
    right = elastic_stability(relation.right, mf, k)
    by_left = frequency(ours, relation.left, mf, k) * right
    by_right = frequency(theirs, relation.right, mf, k) * left
    if tables(relation.left) & tables(relation.right):
        return by_left + by_right + left * right
    return max(by_left, by_right)


def tree(q: Query) -> Leaf | Join:
    relation: Leaf | Join = Leaf(0, q.atoms[0].table)
    for i, a in enumerate(q.atoms[1:], 1):
        on = next(
            ((j, other), (i, column))
            for column, term in a.terms
            if isinstance(term, Variable)
            for j in range(i)
            for other, same in q.atoms[j].terms
            if same == term
        )
        relation = Join(relation, Leaf(i, a.table), on)
    return relation


POOL = [
    table("r", "x", "y"),
    table("s", "x", "y"),
    table("p", "x", "y", private=False),
]


@st.composite
def chains(draw: st.DrawFn) -> Query:
    """Connected joins of up to five atoms on three tables, with cycles and repeated columns."""
    atoms = [atom(POOL[0], "v0", "v1")]
    for i in range(draw(st.integers(0, 4))):
        old = draw(st.integers(0, i + 1))
        new = draw(st.integers(0, i + 2))
        pair = (f"v{old}", f"v{new}") if draw(st.booleans()) else (f"v{new}", f"v{old}")
        known = {v.name for a in atoms for v in a.variables}
        if known.isdisjoint(pair):
            pair = ("v0", pair[1])
        atoms.append(atom(draw(st.sampled_from(POOL)), *pair))
    return query(*atoms)


@given(chains(), st.data(), st.integers(0, 9))
def test_rules_equal_the_recursion_over_the_relation_tree(
    q: Query, data: st.DataObject, k: int
) -> None:
    mf = {(t.label, c): data.draw(st.integers(0, 20)) for t in POOL for c in "xy"}
    frequencies = {f: mf[f.table.label, f.column] for f in needed_frequencies(q)}
    assert stability(q, frequencies, k) == elastic_stability(tree(q), mf, k)


@given(chains(), st.data(), st.sampled_from(["0.2", "1", "12.8"]))
def test_maximum_over_all_distances(q: Query, data: st.DataObject, beta: str) -> None:
    frequencies = {f: data.draw(st.integers(0, 30)) for f in needed_frequencies(q)}
    weights = Weights.from_beta(Fraction(beta))
    found = elastic_sensitivity(q, frequencies, weights)
    far = 20 + int(10 / Fraction(beta))
    values = [weights[k] * stability(q, frequencies, k) for k in range(far)]
    assert found.value == max(values)
    assert found.k == values.index(max(values))


@pytest.mark.parametrize("name", PATTERNS)
def test_graph_patterns_follow_the_known_recursion(name: str) -> None:
    q = pattern(PATTERNS[name])
    d = 17
    frequencies = dict.fromkeys(needed_frequencies(q), d)
    for k in range(6):
        expected = 1
        for t in range(2, len(q.atoms) + 1):
            expected = (d + k) ** (t - 1) + (d + k + 1) * expected
        assert stability(q, frequencies, k) == expected


@pytest.mark.parametrize("graph", [*graphs.QUICK, *graphs.LARGE])
def test_paper_table(graph: str) -> None:
    connection = graphs.load(graph)
    for name, text in PATTERNS.items():
        q = pattern(text)
        frequencies = {
            f: graphs.value(connection, maximum_frequency(f)) for f in needed_frequencies(q)
        }
        found = elastic_sensitivity(q, frequencies, WEIGHTS)
        assert found.value == graphs.printed("ES", name, graph)


R, S = table("r", "x"), table("s", "x", "y")
P = table("p", "x", "y", private=False)
K = table("k", "id", "x", keys=["id"])
ROWS: dict[str, list[brute.Row]] = {
    "r": [(0,), (1,)],
    "s": [(0, 1), (1, 0), (1, 1)],
    "k": [(0, 0), (1, 0)],
    "p": [(0, 1), (1, 1)],
    "edge": [(0, 1), (1, 0), (1, 1), (1, 2)],
}
SHAPES = {
    "triangle": pattern("ab bc ca"),
    "path": pattern("ab bc", different=False),
    "loop": query(atom(EDGE, "a", "a"), atom(EDGE, "a", "b")),
    "two private tables": query(atom(R, "x"), atom(S, "x", "y"), atom(R, "y")),
    "key": query(atom(K, "i", "x"), atom(S, "i", "x")),
    "public": query(atom(P, "x", "y"), atom(R, "x"), atom(R, "y"), different="x y"),
    "distinct": query(atom(S, "x", "y"), atom(R, "y"), distinct="x"),
}


def frequencies_of(q: Query, database: brute.Database) -> dict[Frequency, int]:
    found = {}
    for f in needed_frequencies(q):
        place = [c.name for c in f.table.columns].index(f.column)
        column = [row[place] for row in database[f.table.label]]
        found[f] = max(map(column.count, column), default=0)
    return found


@pytest.mark.parametrize("name", SHAPES)
def test_smooth_over_all_neighbours_and_never_below_local_sensitivity(name: str) -> None:
    q = SHAPES[name]
    labels = {a.table.label: a.table for a in q.atoms}
    weights = Weights.from_beta(Fraction("0.7"))
    private = [t for t in labels.values() if t.private]
    fixed = {t.label: ROWS[t.label] for t in labels.values() if not t.private}
    for chosen in brute.databases(private, ROWS, most=2):
        database = {**chosen, **fixed}
        here = elastic_sensitivity(q, frequencies_of(q, database), weights).value
        assert here >= brute.local_sensitivity(q, database, ROWS)
        for other in brute.neighbours(q, database, ROWS):
            there = elastic_sensitivity(q, frequencies_of(q, other), weights).value
            assert weights.decay * there <= here


def test_frequencies_ignore_nulls_and_quote_names() -> None:
    odd = table("Odd Name", "select", nullable="select")
    connection = duckdb.connect()
    connection.execute('create table "Odd Name" ("select" bigint)')
    statement = maximum_frequency(Frequency(odd, "select"))
    assert graphs.value(connection, statement) == 0
    connection.execute('insert into "Odd Name" values (null), (null), (null), (4), (4), (5)')
    assert graphs.value(connection, statement) == 2


def test_a_missing_frequency_raises() -> None:
    with pytest.raises(KeyError):
        elastic_sensitivity(pattern("ab bc"), {}, WEIGHTS)


def test_joins_without_an_equality_are_refused() -> None:
    for q in (
        query(atom(R, "x"), atom(R, "y")),
        query(atom(R, "x"), atom(R, "y"), less=[("x", "y")]),
        query(atom(R, "x"), atom(R, "z"), atom(S, "x", "z")),
    ):
        with pytest.raises(QueryRefused) as caught:
            needed_frequencies(q)
        assert caught.value.code == "elastic_unsupported"


def test_one_atom_moves_by_one_row() -> None:
    assert elastic_sensitivity(query(atom(R, "x")), {}, WEIGHTS).value == 1
    assert elastic_sensitivity(query(atom(P, "x", "y")), {}, WEIGHTS).value == 0
