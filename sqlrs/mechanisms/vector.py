"""Which mechanism releases a measure over groups: the least noise, by public facts alone.

Privacy of each choice: docs/proofs/vector.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from sqlrs.effort import bounded_analysis
from sqlrs.epsilon import parse_epsilon
from sqlrs.mechanisms.smooth import refined
from sqlrs.mechanisms.summand_bounds import bounds_of
from sqlrs.mechanisms.vector_base import Summand, VectorMechanism
from sqlrs.mechanisms.vector_constant import ConstantVector
from sqlrs.mechanisms.vector_exact import ExactVector
from sqlrs.mechanisms.vector_general import general_vector
from sqlrs.mechanisms.vector_smooth import ParallelVector, SingleNumber
from sqlrs.noise import Laplace
from sqlrs.noise.error_bars import DEFAULT_COVERAGE
from sqlrs.sensitivity.parallel import are_parallel
from sqlrs.sensitivity.signed import all_constant


def vector_mechanism(
    summands: Sequence[Summand],
    size: int,
    *,
    grouped: bool,
    epsilon: Decimal,
    strict: bool,
    error_bars: Decimal | None,
) -> VectorMechanism:
    """The mechanism of a measure over ``size`` groups; not ``grouped``: of one number.

    ``strict``: a neighbour may have another row in the place of one.
    """
    if size < 0 or (not grouped and size != 1):
        raise ValueError("a measure without groups is one number")
    terms = tuple(summands)
    private = tuple(summand for summand in terms if summand.private)
    coverage = None if error_bars is None else DEFAULT_COVERAGE
    if not private or not size:
        return ExactVector(terms, size, coverage)
    # A row that is replaced may leave one group and enter another. A single number it moves no
    # farther than a row that comes: both lie above the number without either row.
    moves = 2 if strict and size > 1 else 1
    with bounded_analysis():
        if all_constant(summand.residuals for summand in private):
            return ConstantVector(terms, size, moves, Laplace(epsilon), coverage)
    if size == 1:
        return SingleNumber(terms, refined(epsilon, None, error_bars))
    if are_parallel(summand.signed for summand in private):
        parallel = parallel_vector(terms, size, moves, epsilon=epsilon, error_bars=error_bars)
        weights = parallel.smooth.noise.weights
        if all(bound.has_groups(weights, size) for bound in bounds_of(terms)):
            return parallel
    return general_vector(terms, size, moves, epsilon=epsilon, error_bars=error_bars)


def parallel_vector(
    summands: tuple[Summand, ...],
    size: int,
    moves: int,
    *,
    epsilon: Decimal,
    error_bars: Decimal | None,
) -> ParallelVector:
    """The price of all groups is that of the groups that one row can change: ``moves`` of them."""
    bars = None if error_bars is None else _part(error_bars, moves)
    prices = (epsilon, *([] if error_bars is None else [error_bars]))
    return ParallelVector(summands, size, moves, refined(_part(epsilon, moves), None, bars), prices)


def _part(epsilon: Decimal, parts: int) -> Decimal:
    return parse_epsilon(Fraction(epsilon) / parts)
