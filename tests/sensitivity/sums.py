"""Sums on every instance of a tiny domain against every neighbour: what must hold of their bound.

For neighbours I, I' that differ in a row of table r, with N and W by brute force:
"step"      N(I) ≤ Ψ_r(N(I')) and W(I) ≤ Ψ_r(W(I')),
"local"     |q(I) − q(I')| ≤ L(W(I)), and ≤ S(I),
"smooth"    w · S(I) ≤ S(I'), w the decay of the weights,
"above"     S(I) ≤ B · S of the count, and S(I) ≤ RS of the sums,
"vector"    the groups differ by at most S(I) in all; by at most 2 S(I) where a row is replaced.
`check_sums` reports which of them fail, so that a test can also ask that a wrong rule is caught.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from sqlrs.query import Query, Term, Weight
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.recursion import Vector
from sqlrs.sensitivity.refined import released_sensitivity
from sqlrs.sensitivity.residual_bound import residual_sensitivity
from sqlrs.sensitivity.signed import vector_sensitivity
from sqlrs.sensitivity.weighted import (
    compile_sums,
    counted,
    largest_weight,
    needs_sums,
    sum_reached,
    sum_sensitivity,
)
from sqlrs.sensitivity.weights import Weights
from tests.sensitivity.exhaustive import Report, Rows, Shape, insertions, instances
from tests.support import brute, weighted_brute
from tests.support.weighted_brute import Group

Values = Mapping[Members, int]
Keys = tuple[Term | None, ...]
Evaluate = Callable[[Residuals, Sequence[Members], Mapping[str, Rows]], Values]


def weigh(query: Query, **weights: tuple[str, int]) -> Query:
    """The query with weights: the column and the bound by an atom's alias."""
    return replace(
        query,
        atoms=tuple(
            replace(a, weight=Weight(*weights[a.alias])) if a.alias in weights else a
            for a in query.atoms
        ),
    )


@dataclass(frozen=True, eq=False)
class _Point:
    """An instance as far as the checks see it."""

    database: Mapping[str, Rows]
    total: int
    groups: dict[Group, int]
    vector: Vector
    bounds: tuple[Fraction, ...]


class SumWorld:
    """The values and the bounds of a query on instances, each computed once."""

    def __init__(
        self,
        shape: Shape,
        keys: Keys = (),
        evaluate: Evaluate = weighted_brute.residual_sums,
        bounded: Query | None = None,
    ) -> None:
        self.shape = shape
        self.keys = keys
        bounded = bounded or shape.query
        self.evaluate = evaluate
        self.weights = [Weights(decay) for decay in shape.decays]
        self.residuals = Residuals(bounded, shape.reading)
        self.counts = counted(self.residuals)
        self.wanted = sum_reached(self.residuals)
        self.summed = needs_sums(bounded)
        self.recursion = compile_sums(self.residuals) if self.summed else None
        self.steps = {s.table: s for s in self.recursion.steps} if self.recursion else {}
        self.above: list[object] = []
        self._known: dict[object, _Point] = {}
        self._folded: dict[object, tuple[Fraction, ...]] = {}
        self._stepped: dict[object, Vector] = {}
        self._lasts: dict[Vector, int] = {}

    def at(self, database: Mapping[str, Rows]) -> _Point:
        canonical = {label: tuple(sorted(rows, key=repr)) for label, rows in database.items()}
        key = tuple(canonical.items())
        if key not in self._known:
            query = self.shape.query
            counts = brute.residual_values(self.counts, self.wanted, canonical)
            sums = self.evaluate(self.residuals, self.wanted, canonical) if self.summed else {}
            seen = (*counts.values(), *sums.values())
            if seen not in self._folded:
                self._folded[seen] = tuple(self._bounds(counts, sums))
            vector: Vector = ()
            if self.recursion:
                size = len(self.recursion.coordinates) // 2
                vector = (
                    *(counts[m] for m in self.recursion.coordinates[:size]),
                    *(sums[m] for m in self.recursion.coordinates[size:]),
                )
            self._known[key] = _Point(
                canonical,
                weighted_brute.total(query, canonical),
                weighted_brute.vector(query, self.keys, canonical) if self.keys else {},
                vector,
                self._folded[seen],
            )
        return self._known[key]

    def _bounds(self, counts: Values, sums: Values) -> Iterator[Fraction]:
        for weights in self.weights:
            bound = sum_sensitivity(self.residuals, counts, sums, weights).value
            most = largest_weight(self.residuals.query)
            limits = [most * released_sensitivity(self.counts, counts, weights).value]
            if self.summed:
                limits.append(residual_sensitivity(self.residuals, sums, weights).value)
            if bound > min(limits):
                self.above.append((counts, sums))
            yield bound

    def stepped(self, label: str, vector: Vector) -> Vector:
        if label not in self.steps:
            return vector
        if (label, vector) not in self._stepped:
            self._stepped[label, vector] = self.steps[label](vector)
        return self._stepped[label, vector]

    def last(self, vector: Vector) -> int:
        assert self.recursion is not None
        if vector not in self._lasts:
            self._lasts[vector] = self.recursion.last(vector)
        return self._lasts[vector]

    def compare(self, label: str, replaced: bool, one: _Point, other: _Point, to: Report) -> None:
        example = (self.shape.name, one.database, other.database)
        change = abs(one.total - other.total)
        if self.recursion is not None:
            grown = self.stepped(label, other.vector)
            if any(a > b for a, b in zip(one.vector, grown, strict=True)):
                to.fail("step", example)
            if change > self.last(one.vector):
                to.fail("local", example)
        if change > min(one.bounds):
            to.fail("local", example)
        for here, there, weights in zip(one.bounds, other.bounds, self.weights, strict=True):
            if weights.decay * here > there:
                to.fail("smooth", example)
        moved = weighted_brute.distance(one.groups, other.groups)
        if moved > vector_sensitivity(min(one.bounds), grouped=True, strict=replaced):
            to.fail("vector", example)
        if self.above:
            to.fail("above", self.above[0])


def check_sums(
    shape: Shape,
    *,
    keys: Keys = (),
    evaluate: Evaluate = weighted_brute.residual_sums,
    bounded: Query | None = None,
    databases: Iterable[Mapping[str, Rows]] | None = None,
    stop_at_failure: bool = False,
) -> Report:
    """Compare every given database (all tiny ones by default) with all its neighbours.

    The bound is that of ``bounded``, by default the query's own.
    """
    world = SumWorld(shape, keys, evaluate, bounded)
    report = Report()
    for database in instances(shape) if databases is None else databases:
        here = world.at(database)
        larger: dict[str, list[_Point]] = {}
        for _, label, rows in insertions(shape, database):
            larger.setdefault(label, []).append(world.at({**database, label: rows}))
        for label, points in larger.items():
            # Two insertions of one table are a substitution apart.
            for one, other in product([here, *points], repeat=2):
                if one is not other:
                    report.pairs += 1
                    world.compare(label, here not in (one, other), one, other, report)
        if stop_at_failure and report.failed:
            break
    return report
