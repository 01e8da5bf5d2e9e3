"""How many units a threshold cuts where units share results, and what one unit changes of it.

Pure functions on exact fractions. Proofs: docs/proofs/packing.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from sqlrs.records import dataclass
from sqlrs.sensitivity.clipping import PARTS

GAP = Fraction(1, 2**10)
"""kappa: a certified bound lies at most this part of the threshold above Q."""


@dataclass(frozen=True)
class Score:
    """The score of one threshold, and what the scores of all smaller ones are not below."""

    own: Fraction
    below: Fraction


def doublings(largest: int) -> tuple[int, ...]:
    """The powers of 2 up to the largest threshold."""
    if largest < 1:
        raise ValueError("a threshold is a whole number from 1 on")
    return tuple(2**i for i in range(largest.bit_length()))


def scores(
    grid: Sequence[int], certified: Callable[[int], tuple[Fraction, Fraction]]
) -> Iterator[Score]:
    """The score of the largest threshold of a grid that doubles, of the next one, ….

    That of t is (Q(2t) - Q(t)) / t by ``certified`` bounds of Q, and at least that of 2t: the
    number of units that are cut between t and 2t. The bound of Q comes with the sum of the prices
    that it was certified by: the next score is at least that sum less kappa.
    """
    highest = Fraction(0)
    above, _ = certified(2 * grid[-1])
    for threshold in reversed(grid):
        bound, prices = certified(threshold)
        highest = max(highest, (above - bound) / threshold)
        yield Score(highest, max(highest, prices - GAP))
        above = bound


def gamma(epsilon: Fraction, *, strict: bool) -> Fraction:
    """What scores are multiplied by so that the choice costs epsilon.

    A unit more moves a score by -1 - 3 kappa to 2 + 3 kappa, another in its place by 3 + 3 kappa
    either way.
    """
    return epsilon / (6 + 6 * GAP if strict else 3 + 6 * GAP)


def moved_parts(threshold: int) -> Fraction:
    """By how many parts a certified bound of Q moves at most; a whole number, so is its rounding.

    Whether a unit is added, removed or replaced: docs/proofs/packing.md, section 2.
    """
    return PARTS * threshold * (1 + GAP)
