"""The errors of our mechanism and of R2T on the same clipped sums Q(τ).

R2T (b = 2) is run as its authors describe it: for τ = 2, 4, …, 2^m the number
Q(τ) + Lap(mτ/ε) − (mτ/ε)·ln(m/0.1), the largest of them, at least 0; m = ⌊log₂ GS⌋.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sqlrs.measures import Contributions
from sqlrs.mechanisms.clipped import ClippedVector
from sqlrs.mechanisms.packed import PackedNumber
from sqlrs.mechanisms.packing_solver import CertifiedSums
from sqlrs.noise.falling_threshold import FALLING_HALF_POWERS
from sqlrs.sensitivity.clipping import clipped_number, cut_units
from sqlrs.sensitivity.packing_scores import GAP, gamma, scores

EPSILON = Decimal("0.8")
DRAWS = 20_000
GLOBAL = 10**6
FAILING = 0.1
# A threshold whose weight is so much smaller than that of another is never chosen.
NEVER = 16.0


@dataclass(frozen=True)
class ClippedSums:
    """The sums Q(τ) of one query, the logarithm of each threshold's weight, the noise's scale.

    ``worth``: what one of the whole numbers is worth, in which thresholds and sums are.
    """

    sums: Mapping[int, float]
    logs: Mapping[int, float]
    scale: float
    worth: Fraction = Fraction(1)

    def errors(self, answer: float, rng: np.random.Generator) -> np.ndarray:
        """What the released number is away from the answer, in many draws."""
        grid = np.array(list(self.logs), dtype=np.float64)
        weights = np.exp(np.array(list(self.logs.values())) - max(self.logs.values()))
        places = rng.choice(len(grid), size=DRAWS, p=weights / weights.sum())
        values = np.array([self.sums[t] for t in self.logs])[places]
        return np.abs(np.round(values + rng.laplace(scale=grid[places] * self.scale)) - answer)

    def exact_rms(self, answer: float) -> float:
        """The root mean square error by the law itself: no draws, nothing left to chance."""
        square = 0.0
        for share, value, scale in self._law():
            ratio = math.exp(-1 / scale)
            square += share * ((value - answer) ** 2 + 2 * ratio / (1 - ratio) ** 2)
        return math.sqrt(square)

    def exact_median(self, answer: float) -> float:
        """The least whole error that half of all answers do not exceed."""
        low, high = -1, 1
        while self._within(high, answer) < 1 / 2:
            high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._within(middle, answer) >= 1 / 2 else (middle, high)
        return high

    def _within(self, width: int, answer: float) -> float:
        """How likely an answer is no further away."""
        likely = 0.0
        for share, value, scale in self._law():
            first = math.ceil(answer - width - value)
            last = math.floor(answer + width - value)
            likely += share * (_up_to(last, scale) - _up_to(first - 1, scale))
        return likely

    def _law(self) -> list[tuple[float, float, float]]:
        """Of each threshold: how likely it is, its sum, the scale of its noise on the integers."""
        most = max(self.logs.values())
        weights = {t: math.exp(log - most) for t, log in self.logs.items()}
        whole = math.fsum(weights.values())
        return [(w / whole, self.sums[t], t * self.scale) for t, w in weights.items()]

    def r2t_errors(self, answer: float, rng: np.random.Generator) -> np.ndarray:
        """The same of R2T, which is given the least GS from 10^6 on that holds, times 10.

        Its sums are those of the next threshold that is known, so nothing is cut that it would
        not cut; where none is small enough, the least stands for it. Both are to its advantage.
        """
        bound, largest = GLOBAL, max((t for t in self.sums if self.sums[t] < answer), default=1)
        while bound < largest * self.worth:
            bound *= 10
        number = int(math.log2(bound))
        best = np.zeros(DRAWS)
        known = sorted(self.sums)
        for j in range(1, number + 1):
            threshold = float(2**j / self.worth)
            value = self.sums[next((t for t in known if t >= threshold), known[-1])]
            scale = number * threshold / float(EPSILON)
            noisy = value + rng.laplace(scale=scale, size=DRAWS)
            best = np.maximum(best, noisy - scale * math.log(number / FAILING))
        return np.abs(best - answer)


def _up_to(value: int, scale: float) -> float:
    """How likely noise with P(k) ~ exp(-|k| / scale) is no larger."""
    if value < 0:
        return math.exp(value / scale) / (1 + math.exp(-1 / scale))
    return 1 - math.exp(-(value + 1) / scale) / (1 + math.exp(-1 / scale))


def one_owner(own: ClippedVector, found: Contributions) -> ClippedSums:
    """Of results that belong to one unit each."""
    # Weights that move against each other count twice, as where the threshold is chosen.
    cut, share = cut_units(found), float(own.choice_epsilon) / (2 if own.opposed else 1)
    places = range(len(own.grid))
    return ClippedSums(
        {own.grid[j]: float(clipped_number(found, j)) for j in places},
        {own.grid[j]: -3 * math.log(own.grid[j]) - share * cut[j] for j in places},
        own.moves / float(own.noise.epsilon),
        own.worth,
    )


def several_owners(own: PackedNumber, found: CertifiedSums) -> ClippedSums:
    """Of results that several units share: the scores that can matter, each sum solved once."""
    times = float(gamma(Fraction(own.choice_epsilon), strict=own.strict))
    logs: dict[int, float] = {}
    for threshold, score in zip(reversed(own.grid), scores(own.grid, found.at), strict=False):
        prior = -FALLING_HALF_POWERS / 2 * math.log(threshold)
        logs[threshold] = prior - times * float(score.own)
        if max(logs.values()) + times * float(score.below) > NEVER:
            break
    sums = {threshold: float(found.at(threshold)[0]) for threshold in logs}
    return ClippedSums(sums, logs, float(1 + GAP) / float(own.noise.epsilon), own.worth)


def rms(errors: np.ndarray) -> float:
    """The root of the mean square."""
    return float(np.sqrt((errors**2).mean()))
