from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrs.query import Query
from sqlrs.residuals.residual import Members, Reading, Residuals, subsets
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.residual_bound import Groups, groups, growths, residual_sensitivity
from sqlrs.sensitivity.search import last_useful
from sqlrs.sensitivity.weights import Weights
from tests.support import brute
from tests.support.builders import EDGE, atom, pattern, query, table

Values = Mapping[Members, int]


def one_step(residuals: Residuals, values: Values, distances: tuple[int, ...]) -> int:
    """max_r Σ_F Σ_E' T_{[n]−F−E'} Π s_j, written out."""
    q = residuals.query
    distance = {j: s for d, s in zip(q.private_tables, distances, strict=True) for j in d}
    return max(
        sum(
            values[q.everything - changed - grown] * prod(distance[j] for j in grown)
            for changed in subsets(d)
            if changed
            for grown in subsets(q.private - changed)
        )
        for d in q.private_tables
    )


def enumerated(residuals: Residuals, values: Values, weights: Weights, most: int) -> Bound:
    """The definition, over all vectors with no distance above `most`."""
    tables = len(residuals.query.private_tables)
    best = Bound()
    for distances in product(range(most + 1), repeat=tables):
        value = weights[sum(distances)] * one_step(residuals, values, distances)
        if value > best.value or (value == best.value and sum(distances) < best.k):
            best = Bound(value, sum(distances))
    return best


@st.composite
def structures(draw: st.DrawFn) -> Query:
    """Up to four atoms on up to three tables, private or not."""
    tables = [
        table(f"R{i}", "x", "y", private=i == 0 or draw(st.booleans()))
        for i in range(draw(st.integers(1, 3)))
    ]
    chosen = draw(st.lists(st.sampled_from(tables), min_size=1, max_size=4))
    return query(*(atom(t, f"v{i}", f"v{i + 1}") for i, t in enumerate([tables[0], *chosen])))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Residuals, dict[Members, int]]:
    residuals = Residuals(draw(structures()))
    size = draw(st.sampled_from([0, 1, 3, 50, 10**6]))
    number = st.integers(0, size)
    values = {members: draw(number) if members else 1 for members in residuals.required}
    return residuals, values


# Powers of one half and of one quarter are exact, so that different distances can tie.
DECAYS = [Weights(Fraction(1, 2)), Weights(Fraction(1, 4))]
BETAS = [Weights.from_beta(Fraction(beta)) for beta in ("0.3", "0.5", "1", "2.3", "12.8")]


@given(cases(), st.sampled_from([*DECAYS, *BETAS]))
def test_fold_equals_enumeration_beyond_the_cut_offs(
    case: tuple[Residuals, dict[Members, int]], weights: Weights
) -> None:
    residuals, values = case
    deepest = max(len(d) for d in residuals.query.private_tables)
    most = last_useful(deepest, weights) + 2
    if most ** len(residuals.query.private_tables) > 3000:
        most = 8
        weights = Weights.from_beta(Fraction("2.3"))
    assert residual_sensitivity(residuals, values, weights) == enumerated(
        residuals, values, weights, most
    )


def expanded(residuals: Residuals, values: Values) -> list[Counter[tuple[int, ...]]]:
    """The sum that `one_step` writes out, as coefficients of powers of the distances."""
    q = residuals.query
    tables = q.private_tables
    polynomials = []
    for d in tables:
        powers = Counter[tuple[int, ...]]()
        for changed in subsets(d):
            for grown in subsets(q.private - changed) if changed else ():
                outside = q.everything - changed - grown
                powers[tuple(len(grown & t) for t in tables)] += values[outside]
        polynomials.append(powers)
    return polynomials


@pytest.mark.parametrize(("beta", "step", "last"), [("0.1", 1, 24), ("0.01", 12, 240)])
def test_six_atoms_on_three_tables(beta: str, step: int, last: int) -> None:
    # The surface is flat: neither corner of the search space is near the maximum.
    tables = [table(f"R{i}", "x", "y") for i in range(3)]
    residuals = Residuals(query(*(atom(tables[i % 3], f"v{i}", f"v{i + 1}") for i in range(6))))
    rng = random.Random(20240)
    values = {m: rng.randrange(100) if m else 1 for m in residuals.required}
    weights = Weights.from_beta(Fraction(beta))
    polynomials = [list(p.items()) for p in expanded(residuals, values)]

    def at(x: int, y: int, z: int) -> Fraction:
        most = max(sum(c * x**i * y**j * z**k for (i, j, k), c in p) for p in polynomials)
        return weights[x + y + z] * Fraction(most)

    # A grid over the whole range, then every vector around the best of the grid.
    grid = list(product(range(0, last, step), repeat=3))
    centre = max(grid, key=lambda s: at(*s))
    near = product(*(range(max(0, s - step), s + step + 1) for s in centre))
    best = max([*grid, *near], key=lambda s: at(*s))
    assert residual_sensitivity(residuals, values, weights) == Bound(at(*best), sum(best))


@pytest.mark.parametrize("beta", ["0.001", "0.01", "0.1", "1", "12.8"])
def test_one_private_table_at_every_beta(beta: str) -> None:
    residuals = Residuals(pattern("ab bc cd de", different=False))
    rng = random.Random(7)
    values = {m: rng.randrange(1000) if m else 1 for m in residuals.required}
    weights = Weights.from_beta(Fraction(beta))
    # Four atoms: the product of a weight and a cubic falls for good after 3 / beta.
    most = 2 + int(4 / Fraction(beta))
    coefficients = [one_step(residuals, values, (k,)) for k in range(4)]
    best = Bound()
    for k in range(most):
        # A cubic is fixed by four of its values (Lagrange), which keeps long ranges quick.
        cubic = sum(
            Fraction(
                c * prod(k - j for j in range(4) if j != i),
                prod(i - j for j in range(4) if j != i),
            )
            for i, c in enumerate(coefficients)
        )
        if weights[k] * cubic > best.value:
            best = Bound(weights[k] * cubic, k)
    assert residual_sensitivity(residuals, values, weights) == best


def test_an_absent_value_is_never_read_as_zero() -> None:
    residuals = Residuals(pattern("ab bc ca"))
    values = dict.fromkeys(residuals.required, 1)
    weights = Weights.from_beta(Fraction(1))
    for members in residuals.required:
        with pytest.raises(KeyError):
            residual_sensitivity(
                residuals, {m: v for m, v in values.items() if m != members}, weights
            )


def test_a_query_without_private_tables_has_no_sensitivity() -> None:
    residuals = Residuals(query(atom(table("p", "x", private=False), "x")))
    assert residual_sensitivity(residuals, {}, Weights.from_beta(Fraction(1))) == Bound()


def test_distances_are_shared_only_by_very_many_tables() -> None:
    def chain(tables: int, atoms: int) -> Query:
        pool = [table(f"R{i}", "x", "y") for i in range(tables)]
        return query(*(atom(pool[i % tables], f"v{i}", f"v{i + 1}") for i in range(atoms)))

    slow, quick = (Weights.from_beta(Fraction(b)) for b in ("0.01", "0.2"))
    assert groups(chain(3, 6), slow) == ((0,), (1,), (2,))
    assert groups(chain(8, 8), quick) == tuple((i,) for i in range(8))
    for weights in (slow, quick):
        found = groups(chain(12, 12), weights)
        assert sorted(t for group in found for t in group) == list(range(12))
        assert 1 < len(found) < 12


@pytest.mark.parametrize("together", [((0, 1), (2,)), ((0, 1, 2),), ((0, 2), (1,))])
def test_shared_distances_raise_the_bound(together: Groups) -> None:
    tables = [table(f"R{i}", "x", "y") for i in range(3)]
    residuals = Residuals(query(*(atom(tables[i % 3], f"v{i}", f"v{i + 1}") for i in range(4))))
    rng = random.Random(3)
    values = {m: rng.randrange(20) if m else 1 for m in residuals.required}
    steps = growths(residuals, values, together)
    for distances in product(range(4), repeat=len(together)):
        each = {t: s for group, s in zip(together, distances, strict=True) for t in group}
        expected = one_step(residuals, values, tuple(each[t] for t in range(3)))
        assert max(step(distances) for step in steps) == expected


def test_bound_keeps_its_value_out_of_logs() -> None:
    assert "17" not in repr(Bound(Fraction(17), 17))


R = table("r", "x")
S = table("s", "x", "y")
K = table("k", "id", "x", keys=["id"])
P = table("p", "x", "y", private=False)
N = table("n", "x", "y", nullable="x y")

SHAPES: dict[str, Query] = {
    "triangle": pattern("ab bc ca"),
    "path without inequalities": pattern("ab bc", different=False),
    "both directions": pattern("ab ba", different=False),
    "loop": query(atom(EDGE, "a", "a"), atom(EDGE, "a", "b")),
    "bag squared": query(atom(R, "x"), atom(R, "x")),
    "two private tables": query(atom(R, "x"), atom(S, "x", "y"), atom(R, "y")),
    "key": query(atom(K, "i", "x"), atom(R, "i")),
    "public": query(atom(R, "x"), atom(P, "x", "y"), atom(R, "y"), different="x y"),
    "cartesian": query(atom(R, "x"), atom(R, "y"), different="x y"),
    "less": query(atom(R, "x"), atom(R, "y"), less=[("x", "y")]),
    "between": query(atom(R, "x"), atom(R, "y"), atom(R, "z"), less=[("x", "y"), ("y", "z")]),
    "distinct": query(atom(S, "x", "y"), atom(R, "y"), distinct="x"),
    "distinct elsewhere": query(atom(S, "x", "y"), atom(R, "y"), distinct="y"),
    "nulls": query(atom(N, "x", "y"), atom(R, "y"), distinct="x"),
    "constant": query(atom(S, "x", 1), atom(S, 1, "x")),
    "general": query(
        atom(R, "x"), atom(R, "y"), general=[(lambda x, y: (x + y) % 2 == 0, "x y")]
    ),
    "filter": query(atom(R, "x", where=lambda x: x > 0, reads="x"), atom(R, "x")),
}  # fmt: skip

ROWS: dict[str, list[brute.Row]] = {
    "r": [(0,), (1,), (3,)],
    "s": [(0, 1), (1, 0), (1, 1)],
    "k": [(0, 0), (0, 1), (1, 0)],
    "n": [(0, 1), (None, 1), (0, None)],
    "edge": [(0, 1), (1, 0), (1, 1), (1, 2), (2, 0)],
    "p": [(0, 1), (1, 1), (1, 3)],
}


def small_databases(q: Query, most: int) -> list[brute.Database]:
    tables = {a.table.label: a.table for a in q.atoms}
    private = [t for t in tables.values() if t.private]
    fixed = {t.label: ROWS[t.label] for t in tables.values() if not t.private}
    return [{**d, **fixed} for d in brute.databases(private, ROWS, most=most)]


READINGS = [(name, True) for name in SHAPES] + [("less", False), ("between", False)]


@pytest.mark.parametrize(("name", "exact"), READINGS)
def test_smooth_over_all_neighbours_and_never_below_local_sensitivity(
    name: str, exact: bool
) -> None:
    q = SHAPES[name]
    residuals = Residuals(q, Reading(exact_comparisons=exact))
    weights = Weights.from_beta(Fraction("0.7"))
    known: dict[object, Fraction] = {}

    def bound(database: brute.Database) -> Fraction:
        key = tuple(sorted((label, tuple(sorted(map(repr, r)))) for label, r in database.items()))
        if key not in known:
            values = brute.residual_values(residuals, residuals.required, database)
            known[key] = residual_sensitivity(residuals, values, weights).value
        return known[key]

    pairs = 0
    for database in small_databases(q, 2):
        here = bound(database)
        assert here >= brute.local_sensitivity(q, database, ROWS)
        for other in brute.neighbours(q, database, ROWS):
            pairs += 1
            assert weights.decay * bound(other) <= here, (name, database, other)
            assert weights.decay * here <= bound(other), (name, database, other)
    assert pairs > 10
