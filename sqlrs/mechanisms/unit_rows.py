"""Units of few rows: the usual noise in proportion to the bound of all that one unit can move.

Privacy: docs/proofs/bounded_rows.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial

from sqlrs.catalog import Table
from sqlrs.effort import bounded_analysis
from sqlrs.measuring.work import Values
from sqlrs.mechanisms.smooth import refined
from sqlrs.mechanisms.summand_bounds import Sensitivity, TermBound
from sqlrs.mechanisms.vector_base import GroupMeasurements, Summand, VectorMechanism
from sqlrs.mechanisms.vector_general import GeneralVector, general_vector
from sqlrs.mechanisms.vector_smooth import SingleNumber
from sqlrs.noise import Weights
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members
from sqlrs.sensitivity.bounded_rows import (
    bounded_is_quick,
    bounded_reached,
    bounded_sensitivity,
    refuse_much_work,
)
from sqlrs.sensitivity.weighted import counted, needs_sums


@dataclass(frozen=True)
class UnitRowsBound:
    """The bound |c| S of one term by units, from numbers of results and, where needed, sums."""

    summand: Summand
    wanted: tuple[Members, ...]

    @classmethod
    def of(cls, summand: Summand, weights: Weights) -> UnitRowsBound:
        """The sets that it needs are found here; too many of them, and too much work, refused."""
        with bounded_analysis():
            wanted = bounded_reached(summand.residuals)
            refuse_much_work(summand.residuals, weights)
        return cls(summand, wanted)

    def measure(self, measurements: GroupMeasurements, weights: Weights) -> Sensitivity:
        """Of the whole query: no vector of its groups moves farther in all."""
        residuals = self.summand.residuals
        measured = [counted(residuals), *([residuals] if needs_sums(residuals.query) else [])]
        *before, last = measured
        known = [measurements.values(one, self.wanted, None) for one in before]
        fold = partial(self._fold, weights, *known)
        quick = bounded_is_quick(residuals, weights)
        values = measurements.values(last, self.wanted, fold if quick else None)
        return cache(partial(fold, values))

    def _fold(self, weights: Weights, counts: Values, sums: Values | None = None) -> Fraction:
        bound = bounded_sensitivity(self.summand.residuals, counts, sums or {}, weights)
        return abs(self.summand.signed.coefficient) * bound.value


def unit_bounds(weights: Weights, summands: Sequence[Summand]) -> tuple[TermBound, ...]:
    """The bound of each term that a private row takes part in; too much work is refused."""
    return tuple(UnitRowsBound.of(summand, weights) for summand in summands if summand.private)


def has_bounded_rows(summands: Sequence[Summand]) -> bool:
    """Whether each private row has one owner, of whom only so many rows are read."""
    return all(table.bounded for table in _private_tables(summands))


def bounded_rows(
    summands: Sequence[Summand],
    size: int,
    *,
    epsilon: Decimal,
    strict: bool,
    error_bars: Decimal | None,
) -> VectorMechanism:
    """One number, or all groups at once: the rows of a unit may be in several of them.

    A replaced unit moves a vector twice as far as one that comes; a single number it does not.
    """
    terms, protected = tuple(summands), _in_words(summands)
    if size == 1:
        smooth = refined(epsilon, None, error_bars)
        return SingleNumber(terms, smooth, partial(unit_bounds, smooth.noise.weights), protected)
    usual = general_vector(terms, size, 2 if strict else 1, epsilon=epsilon, error_bars=error_bars)
    bounds = partial(unit_bounds, usual.noise.weights)
    return GeneralVector(terms, usual.moves, usual.noise, usual.bars, bounds, protected)


def _private_tables(summands: Sequence[Summand]) -> list[Table]:
    tables = {t for one in summands for t in one.signed.query.tables if t.private}
    return sorted(tables, key=lambda table: table.label)


def _in_words(summands: Sequence[Summand]) -> str:
    tables = _private_tables(summands)
    return (
        "at most "
        + ", ".join(f"{table.max_rows} rows of {table.label}" for table in tables)
        + (" of each unit")
    )
