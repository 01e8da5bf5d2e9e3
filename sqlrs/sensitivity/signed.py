"""Signed sums of queries and vectors of groups: how the bounds of their parts add up.

Proofs: docs/proofs/signed.md, docs/proofs/groups.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.constant import is_constant


def signed_sensitivity(parts: Iterable[tuple[int, Bound]]) -> Bound:
    """Σ |c_i| · S_i for Σ c_i · q_i, all S_i folded with the same weights: as smooth as they are.

    The distance is the largest of those of the parts that count.
    """
    counted = [(abs(coefficient), bound) for coefficient, bound in parts]
    return Bound(
        sum((times * bound.value for times, bound in counted), Fraction(0)),
        max((bound.k for times, bound in counted if times and bound.value), default=0),
    )


def all_constant(parts: Iterable[Residuals]) -> bool:
    """Whether a signed sum of these queries has a sensitivity that they alone fix."""
    return all(map(is_constant, parts))


def vector_sensitivity(sensitivity: Fraction, *, grouped: bool, strict: bool) -> Fraction:
    """The ℓ₁ sensitivity of what is released, from that of the query without its groups.

    An inserted or deleted row moves the vector of all groups by no more than the ungrouped query. A
    replaced one (``strict``) may leave one group and enter another; a single number moves once.
    """
    return 2 * sensitivity if grouped and strict else sensitivity
