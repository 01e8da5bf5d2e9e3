"""Units of several rows: S bounds the change by one unit and is smooth, on every tiny instance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement

import pytest

from sqlrs.catalog import Table
from sqlrs.query import Query
from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity import refined
from sqlrs.sensitivity.refined import reached, refined_sensitivity, released_sensitivity
from sqlrs.sensitivity.residual_bound import residual_sensitivity
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.sensitivity.weights import Weights
from tests.support import brute
from tests.support.builders import EDGE, atom, pattern, query, table

Edge = tuple[int, int]
Rows = tuple[tuple[object, ...], ...]
Instance = dict[str, Rows]

FAST = Weights(Fraction(1, 2))
SLOW = Weights(Fraction(9, 10))


def undirected(rows: int) -> Table:
    return replace(EDGE, rows_per_unit=rows)


def both_ways(edges: Iterable[Edge]) -> Rows:
    """Each edge as its two rows, a loop as its one."""
    return tuple(sorted({row for a, b in edges for row in ((a, b), (b, a))}))


class World:
    """A query's bounds on instances, each computed once."""

    def __init__(self, q: Query) -> None:
        self.query = q
        self.residuals = Residuals(q)
        self.wanted = tuple(dict.fromkeys((*self.residuals.required, *reached(self.residuals))))
        self._known: dict[object, tuple[int, list[Fraction]]] = {}
        self._folded: dict[object, list[Fraction]] = {}

    def at(self, instance: Instance) -> tuple[int, list[Fraction]]:
        """The count, and the bounds RS, RS+ and min of both for each sequence of weights."""
        key = tuple(sorted(instance.items()))
        if key not in self._known:
            values = brute.residual_values(self.residuals, self.wanted, instance)
            vector = tuple(values[members] for members in self.wanted)
            if vector not in self._folded:
                self._folded[vector] = [
                    bound(self.residuals, values, weights).value
                    for weights in (FAST, SLOW)
                    for bound in (residual_sensitivity, refined_sensitivity, released_sensitivity)
                ]
            self._known[key] = brute.count(self.query, instance), self._folded[vector]
        return self._known[key]

    def failures(self, pairs: Iterable[tuple[Instance, Instance]]) -> tuple[int, set[str]]:
        """How many pairs were looked at, and what failed on one of them."""
        failed: set[str] = set()
        looked = 0
        for one, other in pairs:
            looked += 1
            (count, bounds), (other_count, other_bounds) = self.at(one), self.at(other)
            if abs(count - other_count) > min(*bounds, *other_bounds):
                failed.add("local")
            for place, (bound, other_bound) in enumerate(zip(bounds, other_bounds, strict=True)):
                decay = (FAST if place < len(bounds) // 2 else SLOW).decay
                if decay * max(bound, other_bound) > min(bound, other_bound):
                    failed.add("smooth")
                if place % 3 == 1 and bound > bounds[place - 1]:
                    failed.add("above RS")
        return looked, failed


def graph_pairs(units: Sequence[Edge]) -> Iterator[tuple[Instance, Instance]]:
    """All graphs of these edges, with an edge inserted, deleted or put in place of another one."""
    for size in range(len(units)):
        for common in combinations(units, size):
            around = [common, *((*common, unit) for unit in units if unit not in common)]
            for one, other in combinations(around, 2):
                yield {"edge": both_ways(one)}, {"edge": both_ways(other)}


FOUR_NODES = list(combinations(range(4), 2))
THREE_NODES_AND_LOOPS = list(combinations_with_replacement(range(3), 2))

GRAPHS = [
    ("triangle", "ab bc ca", True, FOUR_NODES),
    ("star of two", "ab ac", True, FOUR_NODES),
    ("path of three", "ab bc cd", True, FOUR_NODES),
    ("star of three", "ab ac ad", True, FOUR_NODES),
    ("there and back", "ab ba", False, THREE_NODES_AND_LOOPS),
    ("triangle with loops", "ab bc ca", False, THREE_NODES_AND_LOOPS),
    ("path of two with loops", "ab bc", False, THREE_NODES_AND_LOOPS),
]


@pytest.mark.parametrize(("text", "different", "units"), [g[1:] for g in GRAPHS])
def test_an_undirected_edge_on_all_tiny_graphs(
    text: str, different: bool, units: Sequence[Edge]
) -> None:
    world = World(pattern(text, different=different, of=undirected(2)))
    looked, failed = world.failures(graph_pairs(units))
    assert looked == 432
    assert not failed


@pytest.mark.parametrize("text", ["ab bc ca", "ab ac", "ab ac ad"])
def test_with_the_bound_of_one_row_it_fails(text: str) -> None:
    """The negative control: a directed row's bound does not cover an undirected edge."""
    world = World(pattern(text, of=undirected(1)))
    _, failed = world.failures(graph_pairs(FOUR_NODES))
    assert "local" in failed


@pytest.mark.slow
def test_a_square_of_undirected_edges() -> None:
    world = World(pattern("ab bc cd da", of=undirected(2)))
    _, failed = world.failures(graph_pairs(FOUR_NODES))
    assert not failed


def bag(name: str, columns: str, rows: int) -> Table:
    return replace(table(name, *columns.split()), rows_per_unit=rows)


def unit_pairs(tables: Sequence[Table], domain: int) -> Iterator[tuple[Instance, Instance]]:
    """All tiny instances with up to the rows of one unit inserted, twice: any rows at all."""

    def rows(t: Table) -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = [()]
        for _ in t.columns:
            found = [(*row, value) for row in found for value in range(domain)]
        return found

    def instances(left: Sequence[Table]) -> Iterator[Instance]:
        if not left:
            yield {}
            return
        for rest in instances(left[1:]):
            for size in range(2):
                for own in combinations_with_replacement(rows(left[0]), size):
                    yield {**rest, left[0].name: own}

    for common in instances(tables):
        for t in tables:
            around = [
                {**common, t.name: tuple(sorted((*common[t.name], *unit), key=repr))}
                for size in range(t.rows_per_unit + 1)
                for unit in combinations_with_replacement(rows(t), size)
            ]
            yield from combinations(around, 2)


@pytest.mark.parametrize("joint", [False, True])
def test_units_of_several_tables(joint: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if joint:
        monkeypatch.setattr(refined, "MAX_LATTICE_WORK", 0)
    r, s = bag("r", "x y", 2), bag("s", "x", 1)
    world = World(query(atom(r, "a", "b"), atom(s, "b"), atom(r, "b", "c")))
    looked, failed = world.failures(unit_pairs([r, s], 2))
    assert looked > 1000
    assert failed <= ({"above RS"} if joint else set())


def test_units_of_three_rows() -> None:
    r = bag("r", "x", 3)
    world = World(query(atom(r, "a"), atom(r, "b")))
    assert not world.failures(unit_pairs([r], 2))[1]
    single = World(query(atom(bag("r", "x", 2), "a"), atom(bag("r", "x", 2), "b")))
    assert single.failures(unit_pairs([r], 2))[1]


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("text", ["ab bc ca", "ab bc cd", "ab ac"])
def test_the_search_ends_late_enough(text: str, rows: int) -> None:
    """The same number as without any end: all distances far beyond the turning point."""
    world = World(pattern(text, of=undirected(rows)))
    recursion = compile_recursion(world.residuals)
    for edges in ([], [(0, 1)], [(0, 1), (1, 2), (0, 2), (2, 3)]):
        instance = {"edge": both_ways(edges)}
        values = brute.residual_values(world.residuals, world.wanted, instance)
        vector = tuple(values[members] for members in recursion.coordinates)
        best = Fraction(0)
        for k in range(300):
            best = max(best, SLOW[k] * recursion.last(vector))
            vector = recursion.steps[0](vector)
        assert refined_sensitivity(world.residuals, values, SLOW).value == best


def test_one_row_a_unit_is_the_row_itself() -> None:
    assert EDGE.rows_per_unit == 1
    one, two = (World(pattern("ab bc ca", of=undirected(rows))) for rows in (1, 2))
    instance = {"edge": both_ways([(0, 1), (1, 2)])}
    assert all(a < b for a, b in zip(one.at(instance)[1], two.at(instance)[1], strict=True))
