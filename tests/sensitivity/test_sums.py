"""Sums of weights: their bound on every instance of tiny domains, and wrong readings of W_E."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings

from sqlrs.residuals import isomorphism
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity import recursion, refined, steps, weighted
from sqlrs.sensitivity.weighted import (
    compile_sums,
)
from sqlrs.sensitivity.weights import Weights
from tests.sensitivity.exhaustive import Rows, Shape
from tests.sensitivity.random_queries import Case, weighted_cases
from tests.sensitivity.sum_shapes import BY_NAME, SHAPES
from tests.sensitivity.sums import check_sums
from tests.support import brute, weighted_brute
from tests.support.examples import examples

SLOW = Weights(Fraction(9, 10))


@pytest.fixture(autouse=True)
def forget_compiled() -> Iterator[None]:
    """Nothing that a mutation compiled may be seen by another test."""
    forget()
    yield
    forget()


def forget() -> None:
    steps.compile_recursion.cache_clear()
    weighted.compile_sums.cache_clear()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_no_pair_of_neighbours_breaks_the_bound_of_a_sum(shape: Shape) -> None:
    report = check_sums(shape)
    assert report.pairs >= 50
    assert not report.failed, report.example


@settings(max_examples=examples(60), deadline=None)
@given(weighted_cases())
def test_no_random_sum_breaks_a_bound(case: Case) -> None:
    asked = case.shape.query
    output = asked.variables(asked.everything) if asked.distinct is None else asked.distinct
    report = check_sums(case.shape, keys=tuple(sorted(output)[:1]), databases=[case.database])
    assert not report.failed, (case.shape.query, report.example)


@pytest.mark.parametrize("limit", ["MAX_LATTICE_WORK", "MAX_WORK"])
def test_the_joint_step_and_the_residual_sensitivity_of_sums(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the distances of a lattice are too many, one path or RS stands in."""
    monkeypatch.setattr(refined, "MAX_LATTICE_WORK", 0)
    monkeypatch.setattr(refined, limit, 0)
    shape = BY_NAME["two tables"]
    method = refined.choose_method(compile_sums(Residuals(shape.query)), SLOW)
    assert method is None if limit == "MAX_WORK" else method is not None and not method.lattice
    assert not check_sums(shape).failed


# Readings that look right.

Mutation = Callable[[pytest.MonkeyPatch], None]


def divided_once_too_often(patch: pytest.MonkeyPatch) -> None:
    """Π W_C divided by B for each component."""
    original = weighted._Both.move

    def move(self: Any, given: recursion.Move) -> recursion.Move:
        found = original(self, given)
        return replace(found, divisor=self.bound ** len(found.factors or ()))

    patch.setattr(weighted._Both, "move", move)


def limited_by_counts_before_the_step(patch: pytest.MonkeyPatch) -> None:
    """W_E at most B times the results that were there before."""
    original = weighted._Both.step

    def step(self: Any, given: recursion.Step) -> recursion.Step:
        found = original(self, given)
        half = len(given.moves)
        return replace(found, moves=(*found.moves[half:], *found.moves[:half]))

    patch.setattr(weighted._Both, "step", step)


def a_decided_set_counts_once(patch: pytest.MonkeyPatch) -> None:
    """The new row counted once where nothing else is left, whatever its weight."""
    patch.setattr(
        weighted._Both,
        "gain",
        lambda self, gain: replace(gain, terms=tuple(self.size + i for i in gain.terms)),
    )


def isomorphic_without_weights(patch: pytest.MonkeyPatch) -> None:
    """Residuals taken for the same though they sum different atoms."""
    original = isomorphism.Classes._atom

    def atom_link(self: Any, residual: Any, i: int) -> Any:
        return original(self, replace(residual, query=residual.query.unweighted), i)

    patch.setattr(isomorphism.Classes, "_atom", atom_link)


MUTATIONS: list[tuple[Mutation, str]] = [
    (divided_once_too_often, "three apart"),
    (limited_by_counts_before_the_step, "one weight beside"),
    (a_decided_set_counts_once, "one table"),
    (isomorphic_without_weights, "pair, one weight"),
]


@pytest.mark.parametrize(
    ("mutation", "name"), MUTATIONS, ids=lambda it: getattr(it, "__name__", it)
)
def test_a_wrong_step_is_caught(
    mutation: Mutation, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    assert check_sums(BY_NAME[name], stop_at_failure=True).failed


def sums_by(value: Callable[[Residuals, Members, Mapping[str, Rows]], int]) -> Any:
    def evaluate(
        residuals: Residuals, wanted: Sequence[Members], database: Mapping[str, Rows]
    ) -> dict[Members, int]:
        return {members: value(residuals, members, database) for members in wanted}

    return evaluate


def without_what_is_outside(
    residuals: Residuals, members: Members, database: Mapping[str, Rows]
) -> int:
    """The weights of the atoms outside E left out."""
    given = weighted_brute.residual_sums(residuals, [members], database)[members]
    return given // weighted_brute.bound(residuals.query, residuals.query.everything - members)


def decided_parts_once(residuals: Residuals, members: Members, database: Mapping[str, Rows]) -> int:
    """A decided part counted once, though its row has a weight."""
    parts = residuals.parts(members)
    outside = residuals.query.everything - members
    return weighted_brute.bound(residuals.query, outside) * prod(
        1 if part.decided else weighted_brute.part_sum(part, database) for part in parts
    )


def only_the_first_part(
    residuals: Residuals, members: Members, database: Mapping[str, Rows]
) -> int:
    """Of several parts the sums of one and the counts of the others."""
    query, parts = residuals.query, residuals.parts(members)
    outside = query.everything - members
    found = weighted_brute.bound(query, outside)
    for place, part in enumerate(parts):
        if part.decided:
            found *= weighted_brute.bound(query, part.members)
        elif place == 0:
            found *= weighted_brute.part_sum(part, database)
        else:
            found *= brute.residual_value(replace(part, query=query.unweighted), database)
    return found


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (without_what_is_outside, "two tables"),
        (decided_parts_once, "child of a keyed table"),
        (only_the_first_part, "three apart"),
    ],
    ids=lambda it: getattr(it, "__name__", it),
)
def test_a_wrong_reading_of_the_sums_is_caught(value: Any, name: str) -> None:
    assert check_sums(BY_NAME[name], evaluate=sums_by(value), stop_at_failure=True).failed
