"""Queries that fix their own sensitivity: the same on all databases, and never exceeded."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity.constant import constant_sensitivity, is_constant
from sqlrs.sensitivity.refined import reached
from tests.sensitivity.exhaustive import Shape, definition, insertions, instances
from tests.sensitivity.shapes import named, shapes
from tests.support import brute
from tests.support.builders import atom, query

FACT = named("fact", key="x")
PUBLIC = named("public", key="x", private=False)
PUBLIC_BAG = named("bag", private=False)
CHILD = named("child", key="x")

STEADY = [
    Shape("one table", query(atom(FACT, "a", "b"))),
    Shape("bag", query(atom(named("plain"), "a", "b"))),
    Shape("lookup", query(atom(FACT, "a", "b"), atom(PUBLIC, "b", "c")), most=2),
    Shape("public bag", query(atom(FACT, "a", "b"), atom(PUBLIC_BAG, "b", "c")), most=2),
    Shape(
        "two lookups",
        query(atom(FACT, "a", "b"), atom(PUBLIC, "b", "c"), atom(PUBLIC, "a", "d")),
        most=2,
    ),
    Shape("by key twice", query(atom(FACT, "a", "b"), atom(CHILD, "a", "c")), most=2),
]
UNSTEADY = [
    Shape("child of a private table", query(atom(FACT, "a", "b"), atom(CHILD, "c", "a"))),
    Shape("pairs", query(atom(FACT, "a", "b"), atom(FACT, "c", "b"))),
]


def worst(shape: Shape) -> tuple[set[int], int, int]:
    """All sensitivities by their public tables, the largest change, and pairs of neighbours."""
    residuals = Residuals(shape.query, shape.reading)
    wanted = reached(residuals)
    public = {t.label for t in shape.tables if not t.private}
    seen: dict[object, set[int]] = {}
    excess, pairs = 0, 0
    for database in instances(shape):
        own = constant_sensitivity(residuals, definition(residuals, wanted, database))
        fixed = tuple(sorted((label, database[label]) for label in public))
        seen.setdefault(fixed, set()).add(own)
        larger: dict[int, list[int]] = {}
        for number, label, rows in insertions(shape, database):
            count = brute.count(shape.query, {**database, label: rows})
            larger.setdefault(number, []).append(count)
        here = brute.count(shape.query, database)
        for counts in larger.values():
            for one, other in product([here, *counts], repeat=2):
                pairs += 1
                excess = max(excess, abs(one - other) - own)
    return {len(values) for values in seen.values()}, excess, pairs


@pytest.mark.parametrize("shape", STEADY, ids=lambda shape: shape.name)
def test_a_fixed_sensitivity_is_fixed_and_a_bound(shape: Shape) -> None:
    assert is_constant(Residuals(shape.query, shape.reading))
    different, excess, pairs = worst(shape)
    assert different == {1}
    assert excess == 0, "the bound holds, and some pair of neighbours reaches it"
    assert pairs > 50


def test_every_tiny_query_that_is_called_fixed_is_fixed() -> None:
    steady = [shape for shape in shapes() if is_constant(Residuals(shape.query, shape.reading))]
    assert steady
    for shape in steady:
        different, excess, _ = worst(shape)
        assert (different, excess <= 0) == ({1}, True), shape.name


@pytest.mark.parametrize("shape", UNSTEADY, ids=lambda shape: shape.name)
def test_what_other_private_rows_change_is_not_fixed(shape: Shape) -> None:
    """The negative control: measured as if they were fixed, they are seen to differ."""
    assert not is_constant(Residuals(shape.query, shape.reading))
    different, _, _ = worst(shape)
    assert different != {1}


def test_a_unit_of_several_rows_changes_as_much_as_all_its_rows() -> None:
    pair = replace(FACT, rows_per_unit=2)
    residuals = Residuals(query(atom(pair, "a", "b"), atom(PUBLIC, "b", "c")))
    assert is_constant(residuals)
    assert constant_sensitivity(residuals, {}) == 2
