"""The one path that runs every stage, and the only place a number leaves by.

text -> query -> residuals -> charge -> snapshot -> sensitivity -> noise -> ledger -> answer.
Everything that can be refused is refused before the charge; after it every failure is one error,
whose text does not depend on the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from sqlrs.answer import Answer, Interval
from sqlrs.catalog import Catalog
from sqlrs.compile import compile_query
from sqlrs.emit import plain
from sqlrs.engines.base import Engine
from sqlrs.epsilon import parse_epsilon
from sqlrs.errors import EngineFailed, Interrupted, SqlrsError, UsageError
from sqlrs.ledger import Charge, Ledger
from sqlrs.ledger.base import add
from sqlrs.measure import Fold, Measured, Progress, measure_for
from sqlrs.noise import (
    DEFAULT_SHAPE,
    DEFAULT_SHAPE_WITH_ERROR_BARS,
    Cauchy,
    ErrorBars,
    Mechanism,
    PolyLaplace,
    SystemBits,
)
from sqlrs.planning.plan import HOW
from sqlrs.planning.smt import DEFAULT_SOLVER_SECONDS, load_solver, solvable
from sqlrs.query import General, Query
from sqlrs.residuals import DEFAULT_MAX_EXTERNAL, Members, Reading, Residuals
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.refined import is_quick, reached, released_sensitivity
from sqlrs.sensitivity.residual import residual_sensitivity
from sqlrs.simplify import Contradiction

Number = str | int | float | Decimal

# The number of distances that a sensitivity looks at grows as the weights fall more slowly. Without
# an end to it an analyst could use up the machine after the charge.
SLOWEST_STEP = Fraction(1, 100_000)


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
        if self.plan not in HOW:
            raise UsageError(f"there is no plan {self.plan!r}", hint=f"one of {', '.join(HOW)}")
        if self.max_external < 0:
            raise UsageError("max_external is a number of variables, 0 or more")
        if not 0 < self.solver_seconds < float("inf"):
            raise UsageError("solver_seconds is a number of seconds above 0")

    def reading(self, query: Query) -> Reading:
        """How the query is read; a solver that is needed and missing is a UsageError."""
        solved = solvable(query) if self.solver else frozenset[General]()
        if solved:
            load_solver()
        return Reading.of(query, max_external=self.max_external, solved=solved)


@dataclass(frozen=True)
class Request:
    """What an analyst asks for."""

    sql: str
    epsilon: Number
    mechanism: str = "polylaplace"
    shape: int | None = None
    error_bars: Number | None = None
    analyst: str = "analyst"
    dataset: str = "data"

    def noise(self) -> Mechanism:
        """The mechanism, or a UsageError."""
        mechanism = self._mechanism()
        if 1 / mechanism.weights.decay - 1 < SLOWEST_STEP:
            raise UsageError(
                "epsilon is too small for this noise: too many distances would have to be tried",
                hint=f"give at least 0.0001, or {SLOWEST_STEP} times the shape",
            )
        return mechanism

    def _mechanism(self) -> Mechanism:
        epsilon = parse_epsilon(self.epsilon)
        if self.mechanism == "polylaplace":
            usual = DEFAULT_SHAPE if self.error_bars is None else DEFAULT_SHAPE_WITH_ERROR_BARS
            return PolyLaplace(epsilon, usual if self.shape is None else self.shape)
        if self.mechanism == "cauchy":
            if self.shape is not None:
                raise UsageError("the mechanism cauchy has no shape", hint="leave --shape out")
            return Cauchy(epsilon)
        raise UsageError(
            f"there is no mechanism {self.mechanism!r}", hint="use polylaplace or cauchy"
        )

    def bars(self, mechanism: Mechanism) -> ErrorBars | None:
        """The private error bars asked for, if any."""
        if self.error_bars is None:
            return None
        return ErrorBars(parse_epsilon(self.error_bars), mechanism)


@dataclass(frozen=True)
class Compiled:
    """A query with its residuals, ready to be charged and measured."""

    residuals: Residuals
    canonical: str

    @classmethod
    def of(cls, sql: str, catalog: Catalog, settings: Settings) -> Compiled | Contradiction:
        """Compile the text, or refuse it."""
        query = compile_query(sql, catalog)
        if isinstance(query, Contradiction):
            return query
        residuals = Residuals(query, settings.reading(query))
        return cls(residuals, plain(residuals.of(query.everything)).sql(dialect=catalog.dialect))


def wanted_by(mechanism: Mechanism, residuals: Residuals) -> tuple[Members, ...]:
    """The sets whose T_E the mechanism's sensitivity needs; too many are refused."""
    needed = reached(residuals)
    return residuals.required if isinstance(mechanism, Cauchy) else needed


def sensitivity_for(
    mechanism: Mechanism, residuals: Residuals, values: Mapping[Members, int]
) -> Bound:
    """The smooth bound that scales the noise: the paper's bound for the paper's noise."""
    if isinstance(mechanism, Cauchy):
        return residual_sensitivity(residuals, values, mechanism.weights)
    return released_sensitivity(residuals, values, mechanism.weights)


def release(
    request: Request,
    *,
    engine: Engine,
    catalog: Catalog,
    ledger: Ledger,
    settings: Settings,
    progress: Progress | None = None,
) -> Answer:
    """Answer one counting query with differential privacy, charging the ledger first."""
    mechanism = request.noise()
    bars = request.bars(mechanism)
    compiled = Compiled.of(request.sql, catalog, settings)
    if isinstance(compiled, Contradiction):
        nothing = Interval(0, 0, bars.coverage) if bars else None
        return Answer(0, Decimal(0), mechanism.name, nothing)
    charge = _charge(request, mechanism, bars, compiled.canonical)
    if recorded := ledger.repeat(charge):
        return Answer.from_json(recorded)
    wanted = wanted_by(mechanism, compiled.residuals)
    ticket = ledger.reserve(charge)
    outcome = _compute(
        compiled.residuals, wanted, mechanism, bars, charge, engine, settings, progress
    )
    if isinstance(outcome, SqlrsError):
        ledger.fail(ticket, outcome.code)
        raise outcome
    ledger.settle(ticket, outcome.to_json())
    return outcome


def _charge(
    request: Request, mechanism: Mechanism, bars: ErrorBars | None, canonical: str
) -> Charge:
    parts = [mechanism.describe()] + ([bars.describe()] if bars else [])
    return Charge(
        analyst=request.analyst,
        dataset=request.dataset,
        query=canonical,
        mechanism=", ".join(parts),
        epsilon=add(mechanism.epsilon, bars.epsilon) if bars else mechanism.epsilon,
    )


def _compute(
    residuals: Residuals,
    wanted: tuple[Members, ...],
    mechanism: Mechanism,
    bars: ErrorBars | None,
    charge: Charge,
    engine: Engine,
    settings: Settings,
    progress: Progress | None,
) -> Answer | SqlrsError:
    """Measure, fold and add noise. An error is returned, not raised: it must carry no context."""
    try:
        measured = measure_for(
            _repeatable_fold(mechanism, residuals),
            engine,
            residuals,
            wanted,
            plan=settings.plan,
            solver_seconds=settings.solver_seconds,
            progress=progress,
        )
        return _noisy(residuals, measured, mechanism, bars, charge)
    except (KeyboardInterrupt, Interrupted):
        return Interrupted(
            "the release was stopped; its budget stays spent",
            hint="reading part of the data and then asking again would not be private",
        )
    except Exception:
        return EngineFailed(
            "the release could not be completed; its budget stays spent",
            hint="the database failed, ran out of time or memory, or the query divides by zero, "
            "overflows or casts a value that does not fit; the data owner can find out which",
        )


def _repeatable_fold(mechanism: Mechanism, residuals: Residuals) -> Fold | None:
    """The sensitivity as a function of the values T_E, where it is quick enough to try often."""
    if isinstance(mechanism, Cauchy) or not is_quick(residuals, mechanism.weights):
        return None
    return lambda values: sensitivity_for(mechanism, residuals, values).value


def _noisy(
    residuals: Residuals,
    measured: Measured,
    mechanism: Mechanism,
    bars: ErrorBars | None,
    charge: Charge,
) -> Answer:
    bits = SystemBits()
    sensitivity = sensitivity_for(mechanism, residuals, measured.values).value
    value = measured.count + mechanism.sample(sensitivity, bits)
    interval = None
    if bars is not None:
        interval = Interval(*bars.interval(value, sensitivity, bits), bars.coverage)
    return Answer(value, charge.epsilon, mechanism.name, interval)
