"""Bounds of sums: their size, when the search ends, units of several rows, fixed sensitivities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import pytest

from sqlrs.query import Query
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity import refined
from sqlrs.sensitivity.constant import constant_sensitivity, is_constant
from sqlrs.sensitivity.refined import released_sensitivity
from sqlrs.sensitivity.weighted import (
    compile_sums,
    counted,
    largest_weight,
    needs_sums,
    sum_is_quick,
    sum_reached,
    sum_sensitivity,
)
from sqlrs.sensitivity.weights import Weights
from tests.sensitivity.exhaustive import Rows, Shape, insertions, instances
from tests.sensitivity.sum_shapes import BY_NAME, FAST, KEYED, PRICE, SHAPES, rows
from tests.sensitivity.sums import SumWorld, weigh
from tests.support import brute, weighted_brute
from tests.support.builders import atom, pattern, query, table

HALF = Weights(Fraction(1, 2))
SLOW = Weights(Fraction(9, 10))


def values_of(
    asked: Query, database: Mapping[str, Rows]
) -> tuple[Residuals, dict[Members, int], dict[Members, int]]:
    residuals = Residuals(asked)
    wanted = sum_reached(residuals)
    counts = brute.residual_values(counted(residuals), wanted, database)
    sums = weighted_brute.residual_sums(residuals, wanted, database)
    return residuals, counts, sums


def test_without_weights_it_is_the_bound_of_the_count() -> None:
    database = {"edge": ((0, 1), (1, 2), (2, 0), (0, 2), (2, 3))}
    for text in ("ab bc ca", "ab ac", "ab bc cd"):
        residuals, counts, _ = values_of(pattern(text), database)
        assert sum_reached(residuals) == refined.reached(residuals)
        assert not needs_sums(residuals.query)
        found = sum_sensitivity(residuals, counts, {}, SLOW)
        assert found == released_sensitivity(residuals, counts, SLOW)


def weighs_one_way(shape: Shape) -> bool:
    """Whether each table has one weight in all its atoms."""
    atoms = shape.query.atoms
    return len({(a.table, a.weight) for a in atoms}) == len({a.table for a in atoms})


@pytest.mark.parametrize(
    "shape", [s for s in SHAPES if weighs_one_way(s)], ids=lambda shape: shape.name
)
def test_rows_that_all_weigh_the_most_have_the_bound_of_the_count(shape: Shape) -> None:
    """A sum of equal weights is a multiple of the count; with light rows it is not above."""
    asked = shape.query
    most = {a.table.label: a.weight.bound for a in asked.atoms if a.weight is not None}
    databases = [d for d in instances(shape) if all(d.values())][-8:]
    assert databases
    for database in databases:
        heavy = {
            label: tuple((*row[:-1], most.get(label, row[-1])) for row in own)
            for label, own in database.items()
        }
        residuals, counts, sums = values_of(asked, heavy)
        by_count = released_sensitivity(counted(residuals), counts, HALF).value
        found = sum_sensitivity(residuals, counts, sums, HALF).value
        assert found == largest_weight(asked) * by_count
        residuals, counts, sums = values_of(asked, database)
        assert sum_sensitivity(residuals, counts, sums, HALF).value <= found


def test_light_rows_have_a_smaller_bound() -> None:
    """What the sums are measured for: many light rows do not count as heavy ones."""
    asked = BY_NAME["path, both weights"].query
    residuals, counts, sums = values_of(asked, {"flow": (*[(0, 0, 0)] * 30, (0, 0, 3))})
    by_count = largest_weight(asked) * released_sensitivity(counted(residuals), counts, HALF).value
    assert 10 * sum_sensitivity(residuals, counts, sums, HALF).value < by_count


def test_larger_values_have_no_smaller_bound() -> None:
    for name in ("path of three, ends weighted", "apart", "star of bags"):
        residuals = Residuals(BY_NAME[name].query)
        wanted = sum_reached(residuals)
        values = [dict.fromkeys(wanted, size) for size in (0, 1, 2, 5)]
        found = [
            [sum_sensitivity(residuals, counts, sums, SLOW).value for sums in values]
            for counts in values
        ]
        assert all(list(line) == sorted(line) for line in (*found, *zip(*found, strict=True)))
        assert found[0][0] < found[-1][-1]


def test_the_search_of_sums_ends_late_enough() -> None:
    """The same number as without any end: all distances far beyond the turning point."""
    for name in ("path, both weights", "path of three, ends weighted", "triangle"):
        shape = BY_NAME[name]
        label = shape.query.atoms[0].table.label
        for rows_there in ((), tuple(shape.universe[label][:3])):
            residuals, counts, sums = values_of(shape.query, {label: rows_there})
            moved = compile_sums(residuals)
            size = len(moved.coordinates) // 2
            vector = tuple(
                (counts if i < size else sums)[m] for i, m in enumerate(moved.coordinates)
            )
            best = Fraction(0)
            for k in range(300):
                best = max(best, SLOW[k] * moved.last(vector))
                vector = moved.steps[0](vector)
            assert sum_sensitivity(residuals, counts, sums, SLOW).value == best


def test_what_is_absent_or_negative_is_an_error() -> None:
    shape = BY_NAME["path, one weight"]
    residuals, counts, sums = values_of(shape.query, {"flow": ((0, 0, 1),)})
    for missing in (counts, sums):
        for members in missing:
            left = {m: v for m, v in missing.items() if m != members}
            if members in compile_sums(residuals).coordinates:
                given = (left, sums) if missing is counts else (counts, left)
                with pytest.raises(KeyError):
                    sum_sensitivity(residuals, *given, SLOW)
    with pytest.raises(ValueError, match="not negative"):
        sum_sensitivity(residuals, counts, dict.fromkeys(sums, -1), SLOW)


def test_a_distinct_result_has_no_weight_that_it_does_not_decide() -> None:
    asked = BY_NAME["distinct, decided by a key"].query
    open_weight = Residuals(weigh(asked, other2=("w", 2)))
    with pytest.raises(ValueError, match="does not decide"):
        sum_sensitivity(open_weight, {}, {}, SLOW)
    with pytest.raises(ValueError, match="does not decide"):
        constant_sensitivity(open_weight, {})


def test_a_sum_is_quick_where_its_count_is() -> None:
    quick = Residuals(BY_NAME["one table"].query)
    assert sum_is_quick(quick, SLOW)
    slow = Weights(Fraction(9999, 10000))
    assert not sum_is_quick(Residuals(BY_NAME["star of bags"].query), slow)
    asked = BY_NAME["distinct, decided by a key"].query
    assert sum_is_quick(Residuals(asked), SLOW)


# Units of several rows.


def unit_pairs(
    shape: Shape, label: str, unit: int
) -> Iterator[tuple[Mapping[str, Rows], Mapping[str, Rows]]]:
    """All tiny instances with up to the rows of one unit inserted, twice."""
    universe = list(shape.universe[label])
    added = [chosen for size in range(unit + 1) for chosen in combinations(universe, size)]
    for database in instances(replace(shape, most=1)):
        around = [{**database, label: (*database[label], *chosen)} for chosen in added]
        yield from combinations(around, 2)


def with_units(shape: Shape, label: str, unit: int) -> Shape:
    atoms = tuple(
        replace(a, table=replace(a.table, rows_per_unit=unit)) if a.table.label == label else a
        for a in shape.query.atoms
    )
    return replace(shape, query=replace(shape.query, atoms=atoms), decays=FAST)


def failures_of_units(shape: Shape, label: str, changed: int) -> set[str]:
    world = SumWorld(shape)
    failed: set[str] = set()
    for pair in unit_pairs(shape, label, changed):
        one, other = map(world.at, pair)
        if abs(one.total - other.total) > min(*one.bounds, *other.bounds):
            failed.add("local")
        if any(a > 2 * b or b > 2 * a for a, b in zip(one.bounds, other.bounds, strict=True)):
            failed.add("smooth")
    return failed


@pytest.mark.parametrize("name", ["path, one weight", "path, both weights", "one table"])
def test_units_of_two_rows(name: str) -> None:
    shape = BY_NAME[name]
    label = shape.query.atoms[0].table.label
    assert not failures_of_units(with_units(shape, label, 2), label, 2)
    assert "local" in failures_of_units(with_units(shape, label, 1), label, 2)


# Sums whose sensitivity the query fixes.

RATE = table("rate", "id", "w", keys=["id"], private=False)
CONSTANT = [
    (BY_NAME["one table"], {2}),
    (
        Shape(
            "public rate",
            weigh(query(atom(KEYED, "a", "b"), atom(RATE, "b")), keyed1=("w", 2), rate2=("w", 3)),
            universe={"keyed": rows(2, 2, 3), "rate": [(0, 1), (0, 3), (1, 2)]},
            most=2,
        ),
        {6},
    ),
    (
        Shape(
            "public bag",
            weigh(query(atom(KEYED, "a", "b"), atom(PRICE, "b")), keyed1=("w", 2), price2=("w", 3)),
            universe={"keyed": rows(2, 2, 3), "price": [(0, 1), (0, 3), (1, 2)]},
            most=2,
        ),
        {0, 2, 4, 6, 8, 12},
    ),
    (
        Shape(
            "distinct",
            weigh(query(atom(KEYED, "a", "b"), distinct="a"), keyed1=("w", 2)),
            universe={"keyed": rows(2, 2, 3)},
        ),
        {2},
    ),
    (BY_NAME["bound of nothing"], {0}),
]


@pytest.mark.parametrize(("shape", "expected"), CONSTANT, ids=lambda it: getattr(it, "name", ""))
def test_a_fixed_sensitivity_of_a_sum(shape: Shape, expected: set[int]) -> None:
    residuals = Residuals(shape.query)
    assert is_constant(residuals)
    seen: dict[object, set[int]] = {}
    reached = False
    for database in instances(shape):
        wanted = sum_reached(residuals)
        if needs_sums(shape.query):
            values = weighted_brute.residual_sums(residuals, wanted, database)
        else:
            values = brute.residual_values(counted(residuals), wanted, database)
        own = constant_sensitivity(residuals, values)
        public = tuple((t.label, database[t.label]) for t in shape.tables if not t.private)
        seen.setdefault(public, set()).add(own)
        larger: dict[str, list[int]] = {}
        for _, label, more in insertions(shape, database):
            total = weighted_brute.total(shape.query, {**database, label: more})
            larger.setdefault(label, []).append(total)
        here = weighted_brute.total(shape.query, database)
        for totals in larger.values():
            for one, other in product([here, *totals], repeat=2):
                assert abs(one - other) <= own
                reached = reached or abs(one - other) == own > 0
    assert all(len(found) == 1 for found in seen.values())
    assert set().union(*seen.values()) == expected
    assert reached or expected == {0}


def test_a_sum_over_other_private_rows_is_not_fixed() -> None:
    for name in ("path, one weight", "two tables", "child of a keyed table"):
        assert not is_constant(Residuals(BY_NAME[name].query))


def test_a_unit_of_several_rows_moves_a_sum_by_all_of_them() -> None:
    shape = with_units(BY_NAME["one table"], "item", 3)
    assert constant_sensitivity(Residuals(shape.query), {}) == 6
