"""What every sensitivity returns: an exact bound and the distance at which it is attained."""

from __future__ import annotations

from fractions import Fraction

from sqlrs.records import dataclass


@dataclass(frozen=True)
class Bound:
    """max over k of w[k] * L_k, and the least k that attains it. Private: for the owner alone."""

    value: Fraction = Fraction(0)
    k: int = 0

    def __post_init__(self) -> None:
        if self.value < 0 or self.k < 0:
            raise ValueError("a bound and its distance are not negative")

    def __repr__(self) -> str:
        # A value that reaches a log or a traceback by accident must not show itself.
        return "Bound(...)"
