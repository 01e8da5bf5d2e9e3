"""The private choice of a threshold: j with probability proportional to t_j**-3 * e**-p_j, exactly.

The penalty p_j is gamma times the number of units that t_j cuts. The sampler: every weight is
enclosed between two decimals, and a uniform number is read as far as it takes to say where it lies.
Privacy and the sampler: docs/proofs/clipping.md.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import isqrt

from sqlrs.noise.directed import beyond, directed
from sqlrs.noise.randomness import RandomBits

PRIOR_POWER = 3
"""Thresholds far above the data would be as likely as the right one without a prior."""

_FIRST_BITS = 128
_FIRST_DIGITS = 42


def choose_threshold(
    thresholds: Sequence[int], penalties: Sequence[Fraction], bits: RandomBits
) -> int:
    """The place of the chosen threshold. The penalties are private, and so is the time it takes."""
    uniform, length, digits = bits.bits(_FIRST_BITS), _FIRST_BITS, _FIRST_DIGITS
    while (place := _decided(thresholds, penalties, uniform, length, digits)) is None:
        uniform = uniform << length | bits.bits(length)
        length, digits = 2 * length, 2 * digits
    return place


def enclosed_weights(
    thresholds: Sequence[int],
    penalties: Sequence[Fraction],
    digits: int,
    half_powers: int = 2 * PRIOR_POWER,
) -> tuple[list[Decimal], list[Decimal]]:
    """Lower and upper bounds of all weights t**(-half_powers / 2) * e**-p, up to one factor."""
    if not thresholds or len(thresholds) != len(penalties) or min(thresholds) < 1:
        raise ValueError("each threshold is a whole number from 1 on and has one penalty")
    # Many are the same object, which is soon seen; fractions that are equal are not.
    different = {id(one): one for one in penalties}
    # Only differences of penalties matter: so one weight at least is not tiny.
    least = min(different.values())
    down, up = directed(digits, ROUND_FLOOR), directed(digits, ROUND_CEILING)
    # Far below the digits that the sum of all weights, at least that of the prior, is known to.
    unseen = 2 * digits + -(-half_powers // 2) * len(str(max(thresholds)))
    known = {key: _power(one - least, digits, unseen) for key, one in different.items()}
    priors = _priors(tuple(thresholds), half_powers, digits)
    powers = [known[id(penalty)] for penalty in penalties]
    below = [down.multiply(low, least) for (low, _), (least, _) in zip(powers, priors, strict=True)]
    above = [up.multiply(high, most) for (_, high), (_, most) in zip(powers, priors, strict=True)]
    return below, above


@lru_cache(maxsize=64)
def _priors(
    thresholds: tuple[int, ...], half_powers: int, digits: int
) -> tuple[tuple[Decimal, Decimal], ...]:
    """Bounds of t**(-half_powers / 2) of each threshold; grids are public and few."""
    down, up = directed(digits, ROUND_FLOOR), directed(digits, ROUND_CEILING)
    one = Decimal(1)
    powers = (_half_power(threshold, half_powers, digits) for threshold in thresholds)
    return tuple((down.divide(one, most), up.divide(one, least)) for least, most in powers)


def _half_power(threshold: int, half_powers: int, digits: int) -> tuple[Decimal, Decimal]:
    """Bounds of t**(half_powers / 2): the number itself where it is whole for every t."""
    if half_powers % 2 == 0:
        power = Decimal(threshold ** (half_powers // 2))
        return power, power
    square = threshold**half_powers * 100**digits
    root = isqrt(square)
    above = root if root * root == square else root + 1
    return Decimal(f"{root}e-{digits}"), Decimal(f"{above}e-{digits}")


def _power(penalty: Fraction, digits: int, unseen: int) -> tuple[Decimal, Decimal]:
    """Bounds of e**-penalty; a power below 10**-unseen need not be computed to be enclosed."""
    if not penalty:
        return Decimal(1), Decimal(1)
    if penalty > 3 * unseen:
        # e**3 > 10.
        return Decimal(0), Decimal((0, (1,), -unseen))
    down, up = directed(digits, ROUND_FLOOR), directed(digits, ROUND_CEILING)
    numerator, denominator = Decimal(penalty.numerator), Decimal(penalty.denominator)
    near, far = down.divide(numerator, denominator), up.divide(numerator, denominator)
    # decimal rounds exp to the nearest whatever the context, so that its neighbours are bounds.
    most = near.copy_negate().exp(up)
    least = most if near == far else far.copy_negate().exp(down)
    return beyond(least, down), beyond(most, up)


def _decided(
    thresholds: Sequence[int],
    penalties: Sequence[Fraction],
    uniform: int,
    length: int,
    digits: int,
) -> int | None:
    """The place where the uniform number in [uniform, uniform + 1) / 2**length lies, once clear.

    It lies at j if the weights before j are at most that part of all weights, and those up to j are
    more.
    """
    low, high = enclosed_weights(thresholds, penalties, digits)
    down, up = directed(digits, ROUND_FLOOR), directed(digits, ROUND_CEILING)
    low, high = list(accumulate(low, down.add)), list(accumulate(high, up.add))
    parts = Decimal(1 << length)
    start = down.divide(down.multiply(Decimal(uniform), low[-1]), parts)
    end = up.divide(up.multiply(Decimal(uniform + 1), high[-1]), parts)
    last = len(low) - 1
    # The first place that the number is surely not behind, and the first it may not be behind.
    surely, perhaps = bisect_left(low, end, hi=last), bisect_right(high, start, hi=last)
    return surely if surely <= perhaps else None
