"""The exact maximum of w[s_1 + … + s_m] * P(s) over all distance vectors.

P is a polynomial whose coefficients are not negative. Few vectors are all looked at, many are
searched by branch and bound. docs/proofs/residual_sensitivity.md proves that the cut-offs lose
nothing and that the bound of a box holds for the rounded-up weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import floor, prod
from operator import mul

from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.growth import Growth, Powers
from sqlrs.sensitivity.horizon import attained, values_in_box, weights_in_box
from sqlrs.sensitivity.weights import Weights

_SLOPE_BITS = 16
_UNIT_BITS = 64
# Some milliseconds.
_FEW_VECTORS = 20_000


@lru_cache(maxsize=256)
def last_useful(degree: int, weights: Weights) -> int:
    """The least s ≥ 1 from which w[s] * p(s) never rises, for every p of that degree.

    p may be any polynomial without negative coefficients, or a maximum of such.
    """
    ratio = weights.decay_ceiling

    def falls_after(s: int) -> bool:
        return bool(ratio * (s + 1) ** degree <= s**degree)

    high = 1
    while not falls_after(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if falls_after(middle) else (middle, high)
    return high


def maximise(growth: Growth, weights: Weights, best: Bound) -> Bound:
    """The greater of ``best`` and the maximum of w[|s|] * growth(s) over all s ≥ 0.

    Of several maxima the least |s| is reported.
    """
    last = _last(growth.degrees, weights)
    if are_few(growth.degrees, weights):
        return _everywhere(growth, weights, last, best)
    search = _Search(growth, weights, best)
    search.run(last)
    return search.best


def are_few(degrees: Sequence[int], weights: Weights) -> bool:
    """Whether all vectors of a polynomial of these degrees can be looked at."""
    return prod(one + 1 for one in _last(degrees, weights)) <= _FEW_VECTORS


def _last(degrees: Sequence[int], weights: Weights) -> list[int]:
    return [last_useful(degree, weights) if degree else 0 for degree in degrees]


def _everywhere(growth: Growth, weights: Weights, last: list[int], best: Bound) -> Bound:
    """The greater of ``best`` and the maximum, by a look at every vector up to the last ones."""
    box = [range(one + 1) for one in last]
    scaled, denominator = weights_in_box(box, weights)
    values = values_in_box(growth.in_binomials, growth.degrees, box, (1,) * len(box))
    weighted = list(map(mul, values, scaled))
    largest = max(weighted)
    most = Fraction(largest, denominator)
    if most < best.value:
        return best
    least = min(map(sum, attained(weighted, largest, box)))
    return min(best, Bound(most, least), key=lambda bound: (-bound.value, bound.k))


class _Search:
    """Depth first over boxes of vectors, the more promising half first."""

    def __init__(self, growth: Growth, weights: Weights, best: Bound) -> None:
        self.growth = growth
        self.weights = weights
        self.best = best
        self.slope = _rounded_down(1 / weights.decay_ceiling - 1, _SLOPE_BITS)
        self._tangents: dict[int, list[int]] = {}

    def run(self, last: list[int]) -> None:
        low, high = (0,) * len(last), tuple(last)
        boxes = [(self.limit(low, high), low, high)]
        while boxes:
            limit, low, high = boxes.pop()
            if low != high and not self.hopeless(limit, low):
                halves = [(self.limit(*half), *half) for half in _halves(low, high)]
                boxes += sorted(halves, key=lambda box: box[0])

    def hopeless(self, limit: Fraction, low: Powers) -> bool:
        """Whether no vector of the box is better, nor as good at a smaller distance."""
        best = self.best
        return limit < best.value or (limit == best.value and sum(low) >= best.k)

    def limit(self, low: Powers, high: Powers) -> Fraction:
        """An upper bound of w[|s|] * P(s) over the box; its corners are tried on the way.

        With 1/ratio ≥ 1 + slope, w[|s|] ≤ w[|low|] / Π (1 + slope)^(s_t − low_t), and each factor
        lies above its tangent at a whole number. P is convex in each coordinate, so P divided by
        the product of the tangents is greatest at a corner of the box.
        """
        lines, distances = [1], [0]
        for a, b in zip(low, high, strict=True):
            tangent = self.tangent(b - a)
            lines = [line * end for line in lines for end in tangent]
            distances = [d + s for d in distances for s in _ends(a, b)]
        values = self.growth.at_all([_ends(a, b) for a, b in zip(low, high, strict=True)])
        greatest, line = 0, 1
        for value, corner_line, distance in zip(values, lines, distances, strict=True):
            self.try_value(value, distance)
            if value * line > greatest * corner_line:
                greatest, line = value, corner_line
        unit = 1 << (_UNIT_BITS * len(low))
        return Fraction(greatest * unit, line) * self.weights[sum(low)]

    def try_value(self, value: int, distance: int) -> None:
        """Take the value at that distance for the maximum if it is one so far."""
        weight, best = self.weights[distance], self.best
        found = value * weight.numerator * best.value.denominator
        rival = best.value.numerator * weight.denominator
        if found > rival or (found == rival and distance < best.k):
            self.best = Bound(value * weight, distance)

    def tangent(self, width: int) -> list[int]:
        """At the ends of 0..width a positive line below (1 + slope)^s, in units of 1 / 2^64."""
        if width not in self._tangents:
            # At 0 the line has the sign of 1 − slope · touch, which is kept at 1/2 or more.
            touch = min(width // 2, self.slope.denominator // (2 * self.slope.numerator))
            scale = (1 + self.slope) ** touch * 2**_UNIT_BITS
            self._tangents[width] = [
                floor(scale * (1 + self.slope * (end - touch))) for end in _ends(0, width)
            ]
        return self._tangents[width]


def _ends(low: int, high: int) -> tuple[int, ...]:
    return (low,) if low == high else (low, high)


def _rounded_down(value: Fraction, bits: int) -> Fraction:
    """A number not above ``value`` > 0 with about that many bits, so that its powers stay short."""
    shift = bits - value.numerator.bit_length() + value.denominator.bit_length()
    scale = Fraction(2) ** shift
    return floor(value * scale) / scale


def _halves(low: Powers, high: Powers) -> tuple[tuple[Powers, Powers], tuple[Powers, Powers]]:
    """The box cut in two across its longest edge."""
    widths = [b - a for a, b in zip(low, high, strict=True)]
    t = widths.index(max(widths))
    middle = (low[t] + high[t]) // 2
    return (
        (low, (*high[:t], middle, *high[t + 1 :])),
        ((*low[:t], middle + 1, *low[t + 1 :]), high),
    )
