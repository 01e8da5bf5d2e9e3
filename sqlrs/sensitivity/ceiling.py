"""A polynomial above the refined bound at every distance, which says where the search may end.

What s steps can add to a value is counted by how many of them are of each group g, c_g, whatever
their order, so that

    L(T̂_s) ≤ P(s) = max_r Σ_c V_c · Π_g binomial(s_g, c_g)

and beyond a distance that only the weights and the degrees decide, w[|s|] · P(s) falls in each
direction. Proof: docs/proofs/refined.md, "Where the search ends". Distances count units; a unit of
m_g rows takes m_g steps: docs/proofs/rows_per_unit.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil

from sqlrs.records import dataclass
from sqlrs.sensitivity.recursion import Gain, Group, Move, Recursion, Vector
from sqlrs.sensitivity.weights import Weights

Distances = tuple[int, ...]
# The coefficient of Π_g binomial(s_g, c_g) for each vector c that occurs.
Polynomial = Mapping[Distances, int]


@dataclass(frozen=True)
class Ceiling:
    """For each group g a linear map A_g with Ψ_g(T) ≤ T + A_g·T, and rows whose maximum is ≥ L.

    ``moves`` has the moves of each coordinate with the group of each, ``gains`` L's gains by table.
    """

    rows: tuple[tuple[Gain, ...], ...]
    answers: tuple[Gain, ...]
    moves: tuple[tuple[tuple[int, Move], ...], ...]
    gains: tuple[tuple[Gain, ...], ...]
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
            moves=_moves(groups, size),
            gains=recursion.answers,
            units=tuple(max(step.rows for step in group) for group in groups),
            answer_units=tuple(mover.rows for mover in recursion.movers),
        )

    def closest(self, values: Vector) -> tuple[Polynomial, ...]:
        """The least polynomials that are known to be above L, one for each table."""
        nothing = (0,) * len(self.rows)
        of: list[dict[Distances, int]] = []
        for value, moves in zip(values, self.moves, strict=True):
            own = {nothing: value}
            # Terms of a coordinate are smaller sets, which come earlier; so do its factors.
            for g, move in moves:
                for counts, total in _greatest(move.gains, of, nothing).items():
                    farther = (*counts[:g], counts[g] + 1, *counts[g + 1 :])
                    own[farther] = max(own.get(farther, 0), total)
            of.append(_capped(own, moves, of, nothing))
        return tuple(
            {counts: rows * total for counts, total in _greatest(gains, of, nothing).items()}
            for gains, rows in zip(self.gains, self.answer_units, strict=True)
        )

    def polynomials(self, values: Vector) -> tuple[Polynomial, ...]:
        """Larger ones, linear in the values: every order of the same steps is counted."""
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


def _moves(groups: tuple[Group, ...], size: int) -> tuple[tuple[tuple[int, Move], ...], ...]:
    found: list[list[tuple[int, Move]]] = [[] for _ in range(size)]
    for g, group in enumerate(groups):
        for step in group:
            for move in step.moves:
                found[move.target].append((g, move))
    return tuple(map(tuple, found))


def _greatest(
    gains: Iterable[Gain], of: list[dict[Distances, int]], nothing: Distances
) -> dict[Distances, int]:
    """Coefficient by coefficient at least each of the gains of the polynomials in ``of``."""
    found: dict[Distances, int] = {}
    for gain in gains:
        for counts, total in _weighted(gain, of, nothing).items():
            found[counts] = max(found.get(counts, 0), total)
    return found


def _capped(
    own: dict[Distances, int],
    moves: Iterable[tuple[int, Move]],
    of: list[dict[Distances, int]],
    nothing: Distances,
) -> dict[Distances, int]:
    """The polynomial of the one factor that a value does not grow beyond, where it is smaller."""
    factors = {move.factors for _, move in moves}
    if len(factors) == 1 and (only := factors.pop()) is not None and len(only) == 1:
        factor = of[only[0]]
        # Values that stand for limits may begin above their factor.
        other = {**factor, nothing: max(own[nothing], factor[nothing])}
        if sum(other.values()) < sum(own.values()):
            return other
    return own
