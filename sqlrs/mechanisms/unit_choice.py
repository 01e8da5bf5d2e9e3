"""Which mechanism releases a measure where units are protected: by the query alone, never by data.

Privacy of each choice: docs/proofs/clipping.md, docs/proofs/packing.md and
docs/proofs/bounded_rows.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sqlrs.measures import Measure
from sqlrs.mechanisms import CLIPPED, DEFAULT
from sqlrs.mechanisms.clipped import clipped_vector
from sqlrs.mechanisms.packed import packed_number
from sqlrs.mechanisms.packing_solver import DEFAULT_PACKING_SECONDS
from sqlrs.mechanisms.unit_rows import bounded_rows, has_bounded_rows
from sqlrs.mechanisms.vector_base import Summand, VectorMechanism
from sqlrs.mechanisms.vector_exact import ExactVector
from sqlrs.noise import PolyLaplace
from sqlrs.noise.error_bars import DEFAULT_COVERAGE
from sqlrs.refusals import refusal


def unit_mechanism(
    measure: Measure,
    summands: Sequence[Summand],
    size: int,
    *,
    grouped: bool,
    epsilon: Decimal,
    strict: bool,
    error_bars: bool,
    wanted: str = DEFAULT,
    paid_bars: Decimal | None = None,
    max_contribution: int,
    max_owned_results: int,
    packing_seconds: float = DEFAULT_PACKING_SECONDS,
) -> VectorMechanism:
    """The mechanism of a measure over ``size`` groups; not ``grouped``: of one number.

    ``strict``: a neighbour may have another unit in the place of one. ``error_bars`` are free: the
    width of the noise is public. Where it is not, they cost ``paid_bars``. ``wanted`` is the name
    of the mechanism that is asked for.
    """
    coverage = DEFAULT_COVERAGE if error_bars else None
    private = measure.per_unit is not None or any(one.private for one in summands)
    if not private or not size:
        return ExactVector(tuple(summands), size, coverage)
    few = measure.per_unit is None and has_bounded_rows(summands)
    if wanted == PolyLaplace.name and not few:
        raise refusal("needs_bounded_rows")
    if wanted not in (DEFAULT, PolyLaplace.name, CLIPPED):
        raise refusal("needs_bounded_rows", "this mechanism protects single rows")
    several = any(len(set(one.signed.owners)) > 1 for one in summands)
    if few and ((several and wanted == DEFAULT) or wanted == PolyLaplace.name):
        return bounded_rows(summands, size, epsilon=epsilon, strict=strict, error_bars=paid_bars)
    if several:
        return packed_number(
            measure,
            summands,
            grouped=grouped,
            epsilon=epsilon,
            strict=strict,
            coverage=coverage,
            max_contribution=max_contribution,
            max_owned_results=max_owned_results,
            packing_seconds=packing_seconds,
        )
    return clipped_vector(
        measure,
        summands,
        size,
        epsilon=epsilon,
        strict=strict,
        coverage=coverage,
        max_contribution=max_contribution,
    )
