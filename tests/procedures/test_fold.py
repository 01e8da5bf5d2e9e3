"""The numbers inside the database equal those of the package, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from math import prod
from typing import Any

import psycopg
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sqlrs.noise import PolyLaplace
from sqlrs.noise.polylaplace import smoothness_ratio
from sqlrs.procedures.programs import Programs
from sqlrs.query import Query
from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity.refined import choose_method, refined_sensitivity
from sqlrs.sensitivity.steps import compile_recursion
from tests.procedures.desk import Connection, Desk
from tests.sensitivity.random_queries import Case, cases
from tests.sensitivity.shapes import shapes
from tests.support.builders import PATTERNS, atom, pattern, query, table
from tests.support.examples import examples

Start = tuple[int | Decimal | None, ...]
CALL = (
    "SELECT (sqlrs.fold(%s::int[], %s::int[], %s::int[], %s::int[], %s::int[], %s::int[], "
    "%s::numeric[], "
    "sqlrs.smoothness_ratio(%s, %s))).*"
)
SHAPES = [shape.query for shape in shapes()]


@pytest.fixture(scope="module")
def session(workshop: Desk) -> Iterator[Connection]:
    with workshop.session() as connection:
        yield connection


def fold_there(
    session: Connection, programs: Programs, start: Start, epsilon: Decimal, shape: int
) -> Fraction:
    parameters: list[Any] = [
        *map(list, (programs.steps, programs.starts, programs.answers)),
        *map(list, (programs.monomials, programs.ceilings, programs.degrees)),
        [None if value is None else Decimal(value) for value in start],
        epsilon,
        shape,
    ]
    row = session.execute(CALL, parameters).fetchone()
    assert row is not None
    numerator, places = row
    return Fraction(int(numerator), 2**places)


def fold_here(
    residuals: Residuals, start: tuple[int, ...], epsilon: Decimal, shape: int
) -> Fraction:
    recursion = compile_recursion(residuals)
    weights = PolyLaplace(epsilon, shape).weights
    method = choose_method(recursion, weights)
    assume(method is not None and method.lattice)
    values = dict(zip(recursion.coordinates, start, strict=True))
    return refined_sensitivity(residuals, values, weights).value


def compare(
    session: Connection, asked: Query, draw: st.DataObject, epsilon: Decimal, shape: int
) -> None:
    residuals = Residuals(asked)
    recursion = compile_recursion(residuals)
    size = len(recursion.coordinates)
    number = st.sampled_from([0, 1, 2, 3, 17, 1000, 10**9 + 7, 10**25])
    values = draw.draw(st.lists(number, min_size=size, max_size=size))
    for move in (move for step in recursion.steps for move in step.moves):
        if move.factors is not None:  # no data gives a value above its product
            values[move.target] = min(
                values[move.target], prod(values[factor] for factor in move.factors)
            )
    start = tuple(values)
    here = fold_here(residuals, start, epsilon, shape)
    there = fold_there(session, Programs.of(recursion), start, epsilon, shape)
    assert there == here


@settings(max_examples=examples(60))
@given(st.sampled_from(SHAPES), st.data(), st.sampled_from(["1", "3", "0.7", "12.5"]))
def test_the_fold_on_small_queries_of_every_kind(
    session: Connection, asked: Query, data: st.DataObject, epsilon: str
) -> None:
    compare(session, asked, data, Decimal(epsilon), 5)


@settings(max_examples=examples(25))
@given(cases(), st.data(), st.sampled_from(["1", "4"]))
def test_the_fold_on_random_queries(
    session: Connection, case: Case, data: st.DataObject, epsilon: str
) -> None:
    compare(session, case.shape.query, data, Decimal(epsilon), 5)


@settings(max_examples=examples(10))
@given(
    st.sampled_from([pattern(text) for text in PATTERNS.values()]),
    st.data(),
    st.sampled_from([("0.5", 5), ("1", 2), ("0.1", 5), ("20", 20)]),
)
def test_the_fold_on_the_patterns(
    session: Connection, asked: Query, data: st.DataObject, noise: tuple[str, int]
) -> None:
    compare(session, asked, data, Decimal(noise[0]), noise[1])


R, S, U, V = (table(name, "x", "y") for name in "rsuv")


@settings(max_examples=examples(8))
@given(
    st.sampled_from(
        [
            query(atom(R, "a", "b"), atom(S, "b", "c"), atom(R, "c", "d")),
            query(atom(R, "a", "b"), atom(S, "b", "c"), atom(U, "c", "a")),
            query(atom(R, "a", "b"), atom(S, "a", "c"), atom(U, "a", "d"), atom(V, "a", "e")),
        ]
    ),
    st.data(),
    st.sampled_from(["2", "6"]),
)
def test_the_fold_on_a_lattice_of_several_tables(
    session: Connection, asked: Query, data: st.DataObject, epsilon: str
) -> None:
    compare(session, asked, data, Decimal(epsilon), 2)


def test_absent_and_negative_numbers_are_errors(session: Connection) -> None:
    programs = Programs.of(compile_recursion(Residuals(pattern("ab bc ca"))))
    for value in (None, Decimal(-1)):
        with pytest.raises(psycopg.errors.RaiseException, match="missing or negative"):
            fold_there(session, programs, (value, 1, 1), Decimal(1), 5)


@given(
    st.decimals("0.000001", 1000, places=6),
    st.integers(2, 64),
)
def test_the_ratio(session: Connection, epsilon: Decimal, shape: int) -> None:
    row = session.execute("SELECT sqlrs.smoothness_ratio(%s, %s)", [epsilon, shape]).fetchone()
    assert row is not None
    assert Fraction(int(row[0]), 2**40) == smoothness_ratio(epsilon, shape)


@pytest.mark.parametrize(
    ("epsilon", "shape", "last"), [("0.5", 5, 9), ("1000", 2, 20), ("40", 64, 12), ("90", 3, 30)]
)
def test_the_weights(session: Connection, epsilon: str, shape: int, last: int) -> None:
    """In a chain of n + 1 places that grow to 1 one after the other, the bound is the weight n."""
    weights = PolyLaplace(Decimal(epsilon), shape).weights
    for distance in range(last + 1):
        links = range(2, distance + 2)
        steps = [number for i in links for number in (i, 1, 0, 1, i - 1, 1, 1)]
        programs = Programs(
            steps=tuple(steps),
            starts=(1, len(steps) + 1),
            answers=(distance + 2, 1, 0, 1, distance + 1, -1),
            monomials=tuple(n for power in range(distance + 1) for n in (1, power)),
            ceilings=tuple(n for i in range(distance + 1, 0, -1) for n in (0, 1, i, 1)),
            degrees=(distance,),
        )
        start = (1, *(0 for _ in links))
        found = fold_there(session, programs, start, Decimal(epsilon), shape)
        assert found == weights[distance]
