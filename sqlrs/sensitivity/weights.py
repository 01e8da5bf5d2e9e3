"""The falling weights w_0 = 1 >= w_1 >= ... that turn bounds L_k into one smooth sensitivity.

S = max over k of w_k * L_k changes between neighbours by at most the factor 1 / decay, because no
weight is less than `decay` times the one before. Proof: docs/proofs/weights.md.
"""

from __future__ import annotations

from fractions import Fraction

from sqlrs.errors import UsageError
from sqlrs.sensitivity.exponential import exp_negative_upper, round_up
from sqlrs.sensitivity.sequence import LazySequence

SIGNIFICANT_BITS = 64
# Below this the rounding of a weight would no longer be small beside one step of the decay.
MIN_BETA = Fraction(1, 10**9)
MAX_BETA = Fraction(1000)


class Weights:
    """An infinite sequence of exact weights, computed as far as it is read.

    `decay` is the least factor of one step: w[k + 1] >= decay * w[k]. Each weight is rounded up, so
    the factor of a step may be greater, but never greater than `decay_ceiling`.
    """

    def __init__(self, decay: Fraction) -> None:
        if not 0 < decay < 1:
            raise ValueError("weights need a decay between 0 and 1")
        self.decay = decay
        self.decay_ceiling = decay * (1 + Fraction(1, 2 ** (SIGNIFICANT_BITS - 1)))
        if self.decay_ceiling >= 1:
            raise ValueError("weights that fall this slowly cannot be told from constant ones")
        self._sequence = LazySequence(
            Fraction(1), lambda weight: round_up(weight * decay, SIGNIFICANT_BITS)
        )

    @classmethod
    def from_ratio(cls, ratio: Fraction) -> Weights:
        """Weights that fall by at most the factor `ratio` > 1 in one step."""
        return cls(1 / ratio)

    @classmethod
    def from_beta(cls, beta: Fraction) -> Weights:
        """Weights that fall by at most the factor e**beta in one step."""
        if not MIN_BETA <= beta <= MAX_BETA:
            raise UsageError(
                "beta is out of range",
                hint=f"give a number from {float(MIN_BETA):g} to {float(MAX_BETA):g}",
            )
        return cls(round_up(exp_negative_upper(beta), SIGNIFICANT_BITS))

    def __getitem__(self, k: int) -> Fraction:
        return self._sequence[k]

    def __repr__(self) -> str:
        return f"Weights(decay={float(self.decay)!r})"
