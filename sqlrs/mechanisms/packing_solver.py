"""Certified values of packings: a solver in floating point guesses, exact arithmetic decides.

Where there are many results for the units, an interior point method is asked first. Then HiGHS, the
extra ``lp``, in one way after the other until a guess can be certified; then fractions solve it.
Only time ends that, with an error; no guess is ever believed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlrs.engines.watch import Stop, watched
from sqlrs.errors import EngineFailed, Interrupted, UsageError
from sqlrs.measures import OwnedResults
from sqlrs.records import dataclass
from sqlrs.sensitivity.exact_packing import exact_packing

if TYPE_CHECKING:
    from sqlrs.sensitivity.packing import Array, CutPacking, Packing

DEFAULT_PACKING_SECONDS = 600.0

# In the order in which they are tried. The dual method without presolving was by far the fastest
# on paths and triangles of graphs: there is nothing to presolve where every unit is cut.
_WAYS: tuple[Mapping[str, str | float], ...] = (
    {"solver": "simplex", "presolve": "off"},
    {
        "solver": "simplex",
        "primal_feasibility_tolerance": 1e-10,
        "dual_feasibility_tolerance": 1e-10,
    },
    {"solver": "ipm"},
)
# Its indices have 32 bits.
_MOST_PLACES = 2**31 - 1


@dataclass(frozen=True)
class Deadline:
    """The moment at which the work ends with an error."""

    moment: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """So many seconds from now on."""
        return cls(time.monotonic() + seconds)

    def left(self) -> float:
        """The seconds until then, or the error."""
        seconds = self.moment - time.monotonic()
        if seconds <= 0:
            raise EngineFailed("the packing was not solved in time", code="timeout")
        return seconds


class CertifiedSums:
    """Upper bounds of Q(tau), each at most kappa tau above it, found once and when asked for."""

    def __init__(self, results: OwnedResults, seconds: float) -> None:
        self._results = results
        self._seconds = seconds
        self._found: dict[int, tuple[Fraction, Fraction]] = {}

    @cached_property
    def _deadline(self) -> Deadline:
        """From when a bound is first asked for."""
        return Deadline.after(self._seconds)

    @cached_property
    def _packing(self) -> Packing | None:
        from sqlrs.sensitivity.packing import Packing

        return Packing.of(self._results) if self._results.weights else None

    def at(self, threshold: int) -> tuple[Fraction, Fraction]:
        """The bound, and the sum of the prices of units that it was certified by."""
        if self._packing is None:
            return Fraction(0), Fraction(0)
        if threshold >= self._packing.largest:
            return Fraction(self._packing.total), Fraction(0)
        if threshold not in self._found:
            cut = self._packing.cut_to(threshold)
            self._found[threshold] = certified_sum(cut, self._deadline)
        return self._found[threshold]


def certified_sum(packing: CutPacking, deadline: Deadline) -> tuple[Fraction, Fraction]:
    """The bound of one packing, and the sum of its prices."""
    for solution, prices in _guesses(packing, deadline):
        found = packing.certified(solution, prices)
        if found is not None:
            return found
    raise EngineFailed("a packing could not be certified")


def _guesses(packing: CutPacking, deadline: Deadline) -> Iterator[tuple[Array, Array]]:
    import numpy as np

    from sqlrs.mechanisms.interior_packing import interior_guess, is_for_interior

    if is_for_interior(packing):
        found = interior_guess(packing, deadline.left)
        if found is not None:
            yield found
    for way in _WAYS:
        found = guess(packing, way, deadline)
        if found is not None:
            yield found
    solution, prices = exact_packing(
        packing.owners.tolist(),
        packing.weights.tolist(),
        packing.units,
        packing.threshold,
        deadline.left,
    )
    yield np.array(solution, dtype=np.float64), np.array(prices, dtype=np.float64)


def guess(
    packing: CutPacking, way: Mapping[str, str | float], deadline: Deadline
) -> tuple[Array, Array] | None:
    """What HiGHS takes for the solution, in parts of tau, and for the prices of the units."""
    import numpy as np

    highs = _model(packing)
    for option, value in way.items():
        highs.setOptionValue(option, value)
    highs.setOptionValue("time_limit", deadline.left())
    highs.HandleUserInterrupt = True
    outcome = watched(highs.run, highs.cancelSolve, timeout=None)
    if outcome.stopped is Stop.INTERRUPT:
        raise Interrupted("the work was stopped")
    deadline.left()
    if outcome.error is not None:
        return None
    found = highs.getSolution()
    return np.array(found.col_value), -np.array(found.row_dual)


def _model(packing: CutPacking) -> Any:
    """The packing in parts of tau; HiGHS looks for the least sum, so results cost -1."""
    import numpy as np

    highspy = load_highs()
    results, units = len(packing.weights), packing.units
    held = packing.owners < units
    if packing.owners.size > _MOST_PLACES:
        raise EngineFailed("a packing is too large for the solver")
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = results, units
    lp.col_cost_ = np.full(results, -1.0)
    lp.col_lower_ = np.zeros(results)
    lp.col_upper_ = np.array(packing.weights / packing.threshold, dtype=np.float64)
    lp.row_lower_ = np.full(units, -highspy.kHighsInf)
    lp.row_upper_ = np.ones(units)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.append(0, np.cumsum(held.sum(axis=1))).astype(np.int32)
    lp.a_matrix_.index_ = packing.owners[held].astype(np.int32)
    lp.a_matrix_.value_ = np.ones(int(held.sum()))
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.passModel(lp)
    return highs


def load_highs() -> Any:
    """The module highspy, or a UsageError that says how to install it."""
    try:
        import highspy
    except ImportError:
        raise UsageError(
            "results that several units own need a solver of linear programs, which is missing",
            hint="pip install 'sqlrs[lp]'",
        ) from None
    return highspy
