"""The smooth bound of units that own rows of several tables, at most m_r of each table r.

One step of distance is one unit: m_r single steps of every private table, in one fixed order,

    Φ = Ψ_n^(m_n) ∘ … ∘ Ψ_1^(m_1),  M(T) = Σ over these steps of L_r(T before the step),
    S = max_k w[k] · M(Φ^k(T))

Nothing is searched but the one path. Proof: docs/proofs/bounded_rows.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import comb, prod

from sqlrs.query import Query
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.ceiling import Ceiling, Polynomial, turning_point
from sqlrs.sensitivity.recursion import Gain, Recursion, Step, Vector, largest
from sqlrs.sensitivity.refined import MAX_WORK, can_ever_change
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.sensitivity.weighted import compile_sums, counted, largest_weight, needs_sums
from sqlrs.sensitivity.weights import Weights

# About ten milliseconds: a bound that may be computed again after every statement.
_QUICK_WORK = 20_000


@dataclass(frozen=True)
class Turn:
    """The steps of one table, as many as a unit has rows of it, and the gains of the answer."""

    step: Step
    gains: tuple[Gain, ...]


@dataclass(frozen=True)
class UnitRecursion:
    """How the rows of one unit, table after table, move every T_E and the answer."""

    recursion: Recursion
    turns: tuple[Turn, ...]

    @classmethod
    def of(cls, recursion: Recursion, query: Query) -> UnitRecursion:
        """With the most rows that a unit has of each private table."""
        rows = _most_rows(query)

        def sized(step: Step) -> Step:
            return replace(step, rows=rows[step.table])

        movers = tuple(map(sized, recursion.movers))
        gains = {step.table: own for step, own in zip(movers, recursion.answers, strict=True)}
        steps = {step.table: step for step in (*map(sized, recursion.steps), *movers)}
        return cls(
            replace(recursion, steps=tuple(map(sized, recursion.steps)), movers=movers),
            tuple(Turn(steps[name], gains.get(name, ())) for name in rows if name in steps),
        )

    def unit(self, values: Vector) -> tuple[int, Vector]:
        """M(T) and Φ(T)."""
        change = 0
        for turn in self.turns:
            for _ in range(turn.step.rows):
                change += largest(turn.gains, values)
                values = turn.step.by_one_row(values)
        return change, values

    @property
    def cost(self) -> int:
        """The number of additions for one unit, about."""
        size = len(self.recursion.coordinates)
        return sum(turn.step.cost + turn.step.rows * (1 + size) for turn in self.turns)


class UnitHorizon:
    """A polynomial above M(Φ^k(T)), and its greatest multiple with a weight from k on."""

    def __init__(self, units: UnitRecursion, start: Vector, weights: Weights) -> None:
        groups = tuple((step,) for step in units.recursion.steps)
        self._ceiling = Ceiling.of(units.recursion, groups)
        self._polynomials = self._ceiling.polynomials(start)
        self._weights = weights
        self.turn = turning_point(_degree(self._polynomials), weights)
        best = Fraction(0)
        beyond: list[Fraction] = []
        for k in range(self.turn, -1, -1):
            best = max(best, self._at(k))
            beyond.append(best)
        self._beyond = beyond[::-1]

    def beyond(self, k: int) -> Fraction:
        """The maximum over all distances from k on: behind the turning point it only falls."""
        return self._beyond[k] if k <= self.turn else self._at(k)

    def _at(self, k: int) -> Fraction:
        reached = [rows * (k + 1) for rows in self._ceiling.units]
        total = sum(
            coefficient * prod(map(comb, reached, powers))
            for polynomial in self._polynomials
            for powers, coefficient in polynomial.items()
        )
        return self._weights[k] * total


def bounded_reached(residuals: Residuals) -> tuple[Members, ...]:
    """Every set whose N_E the bound needs and, where ``needs_sums``, W_E; the small ones first."""
    needed = set(compile_recursion(counted(residuals)).coordinates)
    if needs_sums(residuals.query):
        needed.update(compile_recursion(residuals).coordinates)
    return tuple(sorted(needed, key=lambda members: (len(members), sorted(members))))


def bounded_sensitivity(
    residuals: Residuals,
    counts: Mapping[Members, int],
    sums: Mapping[Members, int],
    weights: Weights,
) -> Bound:
    """S of a count or a sum, from N_E and W_E of the sets in ``bounded_reached``.

    A value that is absent raises KeyError.
    """
    query = residuals.query
    units = _count_units(counted(residuals))
    start = tuple(counts[members] for members in units.recursion.coordinates)
    count = folded_units(units, start, weights)
    by_count = Bound(largest_weight(query) * count.value, count.k)
    if not needs_sums(query):
        return by_count if by_count.value else Bound()
    both = _sum_units(residuals)
    coordinates = both.recursion.coordinates
    size = len(coordinates) // 2
    start = (*(counts[m] for m in coordinates[:size]), *(sums[m] for m in coordinates[size:]))
    return min(by_count, folded_units(both, start, weights), key=lambda bound: bound.value)


def folded_units(units: UnitRecursion, start: Vector, weights: Weights) -> Bound:
    """max_k w[k] · M(Φ^k(T)) for the given T."""
    if any(value < 0 for value in start):
        raise ValueError("a number of results is not negative")
    if not can_ever_change(units.recursion, start):
        return Bound()
    horizon = UnitHorizon(units, start, weights)
    best, values, k = Bound(), start, 0
    while horizon.beyond(k) > best.value:
        change, values = units.unit(values)
        if weights[k] * change > best.value:
            best = Bound(weights[k] * change, k)
        k += 1
    return best


def refuse_much_work(residuals: Residuals, weights: Weights) -> None:
    """Refuse a query whose bound takes too long to compute; no data."""
    if _work(residuals, weights) > MAX_WORK:
        raise refusal("too_many_rows_per_unit")


def bounded_is_quick(residuals: Residuals, weights: Weights) -> bool:
    """Whether ``bounded_sensitivity`` takes a few milliseconds; no data."""
    return _work(residuals, weights) <= _QUICK_WORK


def _work(residuals: Residuals, weights: Weights) -> int:
    folds = [_count_units(counted(residuals))]
    if needs_sums(residuals.query):
        folds.append(_sum_units(residuals))
    total = 0
    for units in folds:
        groups = tuple((step,) for step in units.recursion.steps)
        ones = (1,) * len(units.recursion.coordinates)
        degree = _degree(Ceiling.of(units.recursion, groups).polynomials(ones))
        # The path seldom goes farther than twice the turning point.
        total += (2 * turning_point(degree, weights) + 2) * units.cost
    return total


@lru_cache(maxsize=128)
def _count_units(residuals: Residuals) -> UnitRecursion:
    return UnitRecursion.of(compile_recursion(residuals), residuals.query)


@lru_cache(maxsize=128)
def _sum_units(residuals: Residuals) -> UnitRecursion:
    return UnitRecursion.of(compile_sums(residuals), residuals.query)


def _most_rows(query: Query) -> dict[str, int]:
    """By its label, in order of appearance: the most rows of each private table in one unit."""
    tables = [query.atoms[min(atoms)].table for atoms in query.private_tables]
    rows = {table.label: table.max_rows for table in tables if table.bounded}
    if len(rows) != len(tables):
        raise ValueError(
            "a private table has no bound of the rows of a unit, or no name of its own"
        )
    return {label: most for label, most in rows.items() if most is not None}


def _degree(polynomials: tuple[Polynomial, ...]) -> int:
    return max((sum(powers) for polynomial in polynomials for powers in polynomial), default=0)
