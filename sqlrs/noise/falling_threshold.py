"""The private choice of a threshold whose penalties are dear: from the largest down, no further.

Like ``choose_threshold`` it gives j with probability proportional to t_j**-2.5 * e**-p_j, exactly.
The uniform number is drawn first, and penalties are asked for until they settle where it lies:
for those that are not known yet, a bound from below suffices. Proof: docs/proofs/packing.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction

from sqlrs.noise.randomness import RandomBits, Uniform
from sqlrs.noise.threshold import enclosed_weights
from sqlrs.records import dataclass

FALLING_HALF_POWERS = 5
"""Twice the power of the prior. A power above 2 keeps the mean square of the noise finite.

Less than that of results with one owner: scores of results that units share count for a third as
much in the choice, and with a steeper prior it would cut more than it should.
"""

_FIRST_DIGITS = 42


@dataclass(frozen=True)
class Penalty:
    """p_j of one threshold, and what those of all smaller thresholds are not below. Private."""

    own: Fraction
    below: Fraction


def choose_falling(
    thresholds: Sequence[int], penalties: Iterator[Penalty], bits: RandomBits
) -> int:
    """The place of the chosen threshold; ``penalties`` are of the last one, the one before, ….

    Which of them are asked for is private, and so is the time that it takes.
    """
    uniform, digits = Uniform(bits), _FIRST_DIGITS
    known: list[Penalty] = []
    while True:
        if len(known) < len(thresholds):
            known.append(next(penalties))
            if len(known) < len(thresholds) and not known[-1].below:
                # Smaller thresholds may weigh far more than all so far: nothing is settled yet.
                continue
        else:
            digits *= 2
        place = _decided(thresholds, known, uniform, digits)
        if place is not None:
            return place


def _decided(
    thresholds: Sequence[int], known: Sequence[Penalty], uniform: Uniform, digits: int
) -> int | None:
    """Where the number lies, once clear: the weights from the last threshold on, up to it."""
    hidden = len(thresholds) - len(known)
    penalties = [known[-1].below] * hidden + [one.own for one in reversed(known)]
    low, high = enclosed_weights(thresholds, penalties, digits, FALLING_HALF_POWERS)
    low[:hidden] = [Decimal(0)] * hidden
    lows, highs = [Fraction(one) for one in low], [Fraction(one) for one in high]
    before_low, before_high = sum(lows), sum(highs)
    upto_low = upto_high = Fraction(0)
    for place in reversed(range(hidden, len(thresholds))):
        upto_low, upto_high = upto_low + lows[place], upto_high + highs[place]
        before_low, before_high = before_low - lows[place], before_high - highs[place]
        surely = upto_low / (upto_low + before_high)
        if uniform.below(surely.numerator, surely.denominator):
            return place
        perhaps = upto_high / (upto_high + before_low)
        if uniform.below(perhaps.numerator, perhaps.denominator):
            return None
    return None
