"""Polynomials above the refined bound, and the maxima of weighted polynomials over boxes."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity import refined, search
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.ceiling import Ceiling, Polynomial
from sqlrs.sensitivity.growth import Growth
from sqlrs.sensitivity.horizon import Horizon, values_in_box
from sqlrs.sensitivity.recursion import Group
from sqlrs.sensitivity.refined import choose_method, folded
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.sensitivity.weights import Weights
from tests.sensitivity.shapes import shapes
from tests.support.builders import atom, query, table
from tests.support.examples import examples

PEOPLE = table("people", "p", "n", keys=["p"])
ORDERS = table("orders", "o", "p", keys=["o"])
LINES = table("lines", "o", "i", "s", keys=["o i"])
SELLERS = table("sellers", "s", "n", keys=["s"])
TRADE = Residuals(
    query(
        atom(PEOPLE, "p", "n"),
        atom(ORDERS, "o", "p"),
        atom(LINES, "o", "i", "s"),
        atom(SELLERS, "s", "n"),
    )
)
SHAPES = {
    "trade": TRADE,
    "sellers of lines": Residuals(
        query(atom(LINES, "o", "i", "s"), atom(LINES, "o", "j", "s"), atom(SELLERS, "s", "n"))
    ),
    **{
        shape.name: Residuals(shape.query, shape.reading)
        for shape in shapes()
        if shape.name in ("triangle", "path of three, bag", "star of bags")
    },
}


def at(polynomial: Polynomial, s: tuple[int, ...]) -> int:
    return sum(v * prod(map(comb, s, powers)) for powers, v in polynomial.items())


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=examples(15), deadline=None)
@given(st.data())
def test_the_closest_polynomial_is_above_every_distance(name: str, data: st.DataObject) -> None:
    recursion = compile_recursion(SHAPES[name])
    size = len(recursion.coordinates)
    start = tuple(data.draw(st.lists(st.integers(0, 30), min_size=size, max_size=size)))
    groups: tuple[Group, ...] = tuple((step,) for step in recursion.steps)
    if data.draw(st.booleans()):
        groups = (recursion.steps,)
    ceiling = Ceiling.of(recursion, groups)
    closest = ceiling.closest(start)
    for _, layer in zip(range(5), refined._layers(start, groups), strict=False):
        for s, values in layer.items():
            assert recursion.last(values) <= max(at(one, s) for one in closest)


@settings(max_examples=examples(30), deadline=None)
@given(st.data())
def test_the_quick_end_is_the_end_of_the_search(data: st.DataObject) -> None:
    """With nothing known beforehand every layer is gone through."""
    recursion = compile_recursion(TRADE)
    size = len(recursion.coordinates)
    start = tuple(data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)))
    weights = Weights.from_beta(Fraction(data.draw(st.integers(4, 20)), 10))
    method = choose_method(recursion, weights)
    assert method is not None and len(method.groups) > 1
    quick = folded(recursion, start, weights, method)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refined, "_attained", lambda *_: Bound())
        assert folded(recursion, start, weights, method) == quick


DEGREES = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@settings(max_examples=examples(50), deadline=None)
@given(DEGREES, st.data())
def test_a_box_by_sums_of_differences(degrees: tuple[int, ...], data: st.DataObject) -> None:
    powers = list(product(*(range(d + 1) for d in degrees)))
    dense = data.draw(st.lists(st.integers(0, 99), min_size=len(powers), max_size=len(powers)))
    starts, sizes, units = (
        data.draw(st.lists(st.integers(*ends), min_size=len(degrees), max_size=len(degrees)))
        for ends in ((0, 4), (1, 4), (1, 3))
    )
    box = [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    polynomial = dict(zip(powers, dense, strict=True))
    steps = (
        tuple(unit * (s + 1) - 1 for s, unit in zip(u, units, strict=True)) for u in product(*box)
    )
    assert values_in_box(dense, degrees, box, units) == [at(polynomial, s) for s in steps]


@settings(max_examples=examples(50), deadline=None)
@given(DEGREES.filter(bool), st.data())
def test_every_vector_and_branch_and_bound_agree(
    degrees: tuple[int, ...], data: st.DataObject
) -> None:
    powers = list(product(*(range(d + 1) for d in degrees)))
    numbers = data.draw(st.lists(st.integers(0, 99), min_size=len(powers), max_size=len(powers)))
    growth = Growth(dict(zip(powers, numbers, strict=True)))
    weights = Weights(Fraction(data.draw(st.integers(1, 3)), 4))
    before = Bound(Fraction(data.draw(st.integers(0, 99))), data.draw(st.integers(0, 3)))
    found = search.maximise(growth, weights, before)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_FEW_VECTORS", 0)
        assert search.maximise(growth, weights, before) == found


def test_the_horizon_looks_behind_its_turning_points() -> None:
    weights = Weights(Fraction(1, 2))
    polynomial: Polynomial = {(0, 0): 3, (1, 0): 5, (0, 2): 7, (1, 2): 1}
    horizon = Horizon([polynomial], 2, weights)
    for s in product(range(9), repeat=2):
        far = product(range(s[0], 20), range(s[1], 20))
        assert horizon.beyond(s) == max(weights[sum(u)] * at(polynomial, u) for u in far)
