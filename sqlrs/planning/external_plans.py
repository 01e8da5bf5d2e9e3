"""Plans of residuals with external variables: by their shape alone, never by the data."""

from __future__ import annotations

from sqlrs.records import dataclass
from sqlrs.residuals.residual import Residual

DEFAULT_SOLVER_SECONDS = 60.0


@dataclass(frozen=True)
class Sweep:
    """One external variable: the largest overlap of the intervals that the rows allow."""

    residual: Residual
    name: str = "sweep"

    def lines(self) -> list[str]:
        """The variable that is swept, and between which columns."""
        (external,) = self.residual.external
        return [f"sweep over all values of {external}: largest overlap of the rows' intervals"]


@dataclass(frozen=True)
class Domain:
    """Several external variables, or a DISTINCT output: every point that can matter is tried."""

    residual: Residual
    name: str = "domain"

    def lines(self) -> list[str]:
        """The variables that range over the domain."""
        names = ", ".join(map(str, sorted(self.residual.external)))
        return [f"try every value of {names} that the data or a constant can make the best"]


@dataclass(frozen=True)
class Solved:
    """A general predicate: a solver finds the best assignment for each group of rows."""

    residual: Residual
    seconds: float = DEFAULT_SOLVER_SECONDS
    name: str = "solver"

    def lines(self) -> list[str]:
        """The variables that the solver chooses."""
        names = ", ".join(map(str, sorted(self.residual.external)))
        return [f"MaxSMT for each boundary value: the values of {names} that allow most rows"]


def external_plan(
    residual: Residual, solver_seconds: float = DEFAULT_SOLVER_SECONDS
) -> Sweep | Domain | Solved:
    """The plan of a residual with external variables, by its shape alone."""
    if any(not p.variables.isdisjoint(residual.external) for p in residual.generals):
        return Solved(residual, solver_seconds)
    if len(residual.external) == 1 and residual.output is None:
        return Sweep(residual)
    return Domain(residual)
