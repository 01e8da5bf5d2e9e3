"""A polynomial above the refined bound at every distance, which says where the search may end.

Along a chain E ⊃ E−F_1 ⊃ E−F_1−F_2 ⊃ … each link uses up one step of its group of tables, so

    L(T̂_s) ≤ P(s) = max_r Σ over chains of T_(last set) · Π_g binomial(s_g, links of group g)

and beyond a distance that only the weights and the degrees decide, w[|s|] · P(s) falls in each
direction. Proof: docs/proofs/refined.md, "Where the search ends". Distances count units; a unit of
m_g rows takes m_g steps: docs/proofs/rows_per_unit.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, comb

from sqlrs.sensitivity.recursion import Gain, Group, Recursion, Vector
from sqlrs.sensitivity.weights import Weights

Distances = tuple[int, ...]
# The coefficient of Π_g binomial(s_g, c_g) for each vector c that occurs.
Polynomial = Mapping[Distances, int]


@dataclass(frozen=True)
class Ceiling:
    """For each group g a linear map A_g with Ψ_g(T) ≤ T + A_g·T, and rows whose maximum is ≥ L."""

    rows: tuple[tuple[Gain, ...], ...]
    answers: tuple[Gain, ...]
    # The most rows of a unit: of the tables of each group, and of the table of each answer.
    units: tuple[int, ...]
    answer_units: tuple[int, ...]

    @classmethod
    def of(cls, recursion: Recursion, groups: tuple[Group, ...]) -> Ceiling:
        """The maps of the given groups, from the query alone."""
        size = len(recursion.coordinates)
        return cls(
            rows=tuple(_row_sums(group, size) for group in groups),
            answers=recursion.largest_answers,
            units=tuple(max(step.rows for step in group) for group in groups),
            answer_units=tuple(mover.rows for mover in recursion.movers),
        )

    def polynomials(self, values: Vector) -> tuple[Polynomial, ...]:
        """The polynomials whose maximum is P."""
        places = range(len(self.rows))
        nothing = (0,) * len(self.rows)
        of: list[dict[Distances, int]] = []
        for i, value in enumerate(values):
            own = {nothing: value}
            # Terms of a coordinate are smaller sets, which come earlier.
            for g in places:
                gain = self.rows[g][i]
                for counts, total in _weighted(gain, of, nothing).items():
                    farther = (*counts[:g], counts[g] + 1, *counts[g + 1 :])
                    own[farther] = own.get(farther, 0) + total
            of.append(own)
        return tuple(
            {counts: rows * total for counts, total in _weighted(answer, of, nothing).items()}
            for answer, rows in zip(self.answers, self.answer_units, strict=True)
        )

    def degrees(self) -> Distances:
        """The greatest power of each group in P, whatever the data."""
        if not self.rows:
            return ()
        groups = range(len(self.rows))
        longest: list[tuple[int, ...]] = []
        nothing = (0,) * len(self.rows)

        def most(gain: Gain) -> tuple[int, ...]:
            ends = [longest[i] for i in set(gain.terms)]
            return tuple(map(max, nothing, *ends)) if ends else nothing

        for i in range(len(self.rows[0])):
            # Terms of a coordinate are smaller sets, which come earlier.
            own = nothing
            for g in groups:
                gain = self.rows[g][i]
                if gain.constant or gain.terms:
                    chain = most(gain)
                    own = tuple(map(max, own, (*chain[:g], chain[g] + 1, *chain[g + 1 :])))
            longest.append(own)
        found = [most(answer) for answer in self.answers]
        return tuple(map(max, nothing, *found)) if found else nothing


class Horizon:
    """The greatest w[|u|] · P(u) over all u ≥ s, exactly, computed as far as it is asked for."""

    def __init__(
        self,
        polynomials: tuple[Polynomial, ...],
        degrees: Distances,
        weights: Weights,
        units: tuple[int, ...] | None = None,
    ) -> None:
        self.turns = tuple(turning_point(degree, weights) for degree in degrees)
        self._polynomials = polynomials
        self._degrees = degrees
        self._units = units or (1,) * len(degrees)
        self._weights = weights
        self._known: dict[Distances, tuple[Fraction, Distances]] = {}

    def beyond(self, distances: Distances) -> Fraction:
        """The maximum over all u ≥ ``distances``."""
        return self._best(distances)[0]

    def peak(self) -> Distances:
        """A vector at which w[|s|] · P(s) is greatest."""
        return self._best((0,) * len(self.turns))[1]

    def _best(self, start: Distances) -> tuple[Fraction, Distances]:
        known = self._known
        if start not in known:
            ranges = [
                range(max(low, turn), low - 1, -1)
                for low, turn in zip(start, self.turns, strict=True)
            ]
            for u in product(*ranges):
                if u not in known:
                    # Past its turning point a direction only falls, so it is not followed.
                    farther = [
                        known[*u[:g], u[g] + 1, *u[g + 1 :]]
                        for g, turn in enumerate(self.turns)
                        if u[g] < turn
                    ]
                    known[u] = max([(self._at(u), u), *farther], key=lambda found: found[0])
        return known[start]

    def _at(self, u: Distances) -> Fraction:
        ways = [
            [comb(unit * (distance + 1) - 1, j) for j in range(degree + 1)]
            for distance, degree, unit in zip(u, self._degrees, self._units, strict=True)
        ]
        largest = 0
        for polynomial in self._polynomials:
            total = 0
            for counts, coefficient in polynomial.items():
                for g, count in enumerate(counts):
                    coefficient *= ways[g][count]
                total += coefficient
            largest = max(largest, total)
        return self._weights[sum(u)] * largest


def turning_point(degree: int, weights: Weights) -> int:
    """A distance from which the weights fall faster than any binomial(s, j), j ≤ degree, rises.

    binomial(s+1, j) ≤ binomial(s, j) · (s+1)/(s+1−degree) for s ≥ degree, so it is enough that
    c·(s+1) ≤ s+1−degree, with c the largest factor between two weights.
    """
    return max(degree, ceil(degree / (1 - weights.decay_ceiling)) - 1)


def _weighted(
    gain: Gain, of: list[dict[Distances, int]], nothing: Distances
) -> dict[Distances, int]:
    """The gain of the polynomials in ``of``."""
    found = {nothing: gain.constant} if gain.constant else {}
    for i in gain.terms:
        for counts, value in of[i].items():
            found[counts] = found.get(counts, 0) + value
    return found


def _row_sums(group: Group, size: int) -> tuple[Gain, ...]:
    rows = [Gain(0, ())] * size
    for step in group:
        for target, own in step.largest_gains:
            row = rows[target]
            rows[target] = Gain(row.constant + own.constant, row.terms + own.terms)
    return tuple(rows)
