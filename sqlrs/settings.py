"""What the owner chooses and what the analyst asks for: public values, checked when made."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sqlrs.epsilon import parse_epsilon
from sqlrs.errors import UsageError
from sqlrs.inputs import arguments
from sqlrs.measuring.solvable import solvable
from sqlrs.measuring.solver import load_solver
from sqlrs.mechanisms import DEFAULT, mechanism_named
from sqlrs.mechanisms.base import Mechanism
from sqlrs.planning.external_plans import DEFAULT_SOLVER_SECONDS
from sqlrs.planning.plan import HOW
from sqlrs.query import General, Query
from sqlrs.residuals.residual import DEFAULT_MAX_EXTERNAL, Reading

Number = str | int | float | Decimal


@dataclass(frozen=True)
class Settings:
    """The owner's public choices: they decide the formula, together with the query alone.

    ``max_external``: compared variables outside a residual that are read exactly, see
    ``Reading``. ``solver``: general predicates across a boundary are solved where the solver
    understands them, for at most ``solver_seconds`` for each boundary value; else dropped.
    """

    max_external: int = DEFAULT_MAX_EXTERNAL
    plan: str = "auto"
    solver: bool = False
    solver_seconds: float = DEFAULT_SOLVER_SECONDS

    def __post_init__(self) -> None:
        arguments.text("plan", self.plan)
        arguments.whole_number("max_external", self.max_external)
        arguments.truth("solver", self.solver)
        limit = arguments.seconds("solver_seconds", self.solver_seconds)
        object.__setattr__(self, "solver_seconds", limit)
        if self.plan not in HOW:
            raise UsageError(f"there is no plan {self.plan!r}", hint=f"one of {', '.join(HOW)}")
        if self.max_external < 0:
            raise UsageError("max_external is a number of variables, 0 or more")
        if self.solver_seconds <= 0:
            raise UsageError("solver_seconds is a number of seconds above 0")

    def reading(self, query: Query) -> Reading:
        """How the query is read; a solver that is needed and missing is a UsageError."""
        solved = solvable(query) if self.solver else frozenset[General]()
        if solved:
            load_solver()
        return Reading.of(query, max_external=self.max_external, solved=solved)


@dataclass(frozen=True)
class Request:
    """What an analyst asks for. ``as_rows``: the asker shows rows, so there may be none."""

    sql: str
    epsilon: Number
    mechanism: str = DEFAULT
    shape: int | None = None
    error_bars: Number | None = None
    analyst: str = "analyst"
    dataset: str = "data"
    as_rows: bool = False

    def __post_init__(self) -> None:
        for name in ("mechanism", "analyst", "dataset"):
            arguments.text(name, getattr(self, name))

    def chosen_mechanism(self) -> Mechanism:
        """The mechanism, with error bars if they are asked for, or a UsageError."""
        bars = None if self.error_bars is None else parse_epsilon(self.error_bars)
        return mechanism_named(
            self.mechanism, parse_epsilon(self.epsilon), self.shape, error_bars=bars
        )
