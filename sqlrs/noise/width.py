"""How wide error bars must be: the multiple of the published scale that gives the wanted coverage.

Integers in units of 2**-128, every rounding towards the wider interval: docs/proofs/error_bars.md.
"""

from __future__ import annotations

from fractions import Fraction

from sqlrs.errors import UsageError
from sqlrs.noise.law import ScaledLaw
from sqlrs.sensitivity.exponential import exp_negative_lower, exp_negative_upper, power_up

GRID_BITS = 128
# The factor of one step of the grid exceeds its nominal value by less than this part.
GRID_SLACK = Fraction(1, 2**62)

_PRECISION = 128
_ONE = 1 << _PRECISION
_SEARCH_BITS = 12
# Error bars beyond this many scales tell nothing, and take long to find.
_MAX_MULTIPLE = 1 << 32
# Steps of the grid are taken together as long as they change the scale by less than one part in:
_BLOCK = 256


def width_multiple(
    mechanism: ScaledLaw,
    step: Fraction,
    epsilon: Fraction,
    miss: Fraction,
    block: int = _BLOCK,
) -> Fraction:
    """A multiple u such that an interval of u published scales misses with chance at most `miss`.

    `step` is the ratio of the grid; the noise on its index falls by e**-epsilon a step. A smaller
    `block` is quicker and gives a somewhat wider interval.
    """
    joint = JointTail(mechanism, step, epsilon, miss, block)
    high = Fraction(1)
    while not joint.holds(high):
        high *= 2
        if high > _MAX_MULTIPLE:
            raise UsageError(
                "the error bars would be too wide to be of use",
                hint="spend a larger epsilon on them, or ask for less coverage",
            )
    # A vector law of many numbers has a large scale: each of them strays a small part of it only.
    while high <= 1 and joint.holds(high / 2):
        high /= 2
    unit = high / (1 << _SEARCH_BITS)
    low, top = 0, 1 << _SEARCH_BITS
    while top - low > 1:
        middle = (low + top) // 2
        if joint.holds(middle * unit):
            top = middle
        else:
            low = middle
    return top * unit


class JointTail:
    """The chance that the noise leaves the interval, over the noise on the grid as well."""

    def __init__(
        self,
        mechanism: ScaledLaw,
        step: Fraction,
        epsilon: Fraction,
        miss: Fraction,
        fineness: int = _BLOCK,
    ) -> None:
        self._mechanism = mechanism
        self._allowed = _floor(miss)
        self._tolerance = max(1, self._allowed >> _SEARCH_BITS)
        block = max(1, int(1 / (fineness * (step - 1))))
        self._rise = _power_down(_floor(step), block)
        self._fall = _power_down(_floor(1 / (step * (1 + GRID_SLACK))), block)
        low, high = exp_negative_lower(epsilon), exp_negative_upper(epsilon)
        self._kept = power_up(_ceil(high), block, _PRECISION)
        self._spent = _ONE - _power_down(_floor(low), block)
        self._mass_from_zero = _ceil(1 / (1 + low))
        self._mass_below_zero = _ceil(high / (1 + high))

    def holds(self, multiple: Fraction) -> bool:
        """Whether an upper bound of the chance to miss is small enough at this multiple."""
        distance = _floor(multiple)
        above = self._rising(distance)
        return above <= self._allowed and above + self._falling(distance) <= self._allowed

    def _rising(self, distance: int) -> int:
        """The part of indices moved up or not at all: ever wider intervals."""
        total, mass = 0, self._mass_from_zero
        while True:
            tail = self._mechanism.tail_ceiling(distance, _PRECISION)
            if _up(mass * tail) <= self._tolerance:
                return total + _up(mass * tail)
            total += _up(_up(mass * self._spent) * tail)
            mass = _up(mass * self._kept)
            distance = distance * self._rise >> _PRECISION

    def _falling(self, distance: int) -> int:
        """The part of indices moved down: ever narrower intervals."""
        total, mass = 0, self._mass_below_zero
        while True:
            distance = distance * self._fall >> _PRECISION
            tail = self._mechanism.tail_ceiling(distance, _PRECISION)
            if mass * (_ONE - tail) >> _PRECISION <= self._tolerance:
                return total + mass
            total += _up(_up(mass * self._spent) * tail)
            mass = _up(mass * self._kept)


def _floor(value: Fraction) -> int:
    return (value.numerator << _PRECISION) // value.denominator


def _ceil(value: Fraction) -> int:
    return -(-(value.numerator << _PRECISION) // value.denominator)


def _up(product: int) -> int:
    """A product of two numbers in units of 2**-128 in that unit again, rounded up."""
    return -(-product >> _PRECISION)


def _power_down(base: int, exponent: int) -> int:
    result = _ONE
    for bit in f"{exponent:b}":
        result = result * result >> _PRECISION
        if bit == "1":
            result = result * base >> _PRECISION
    return result
