"""What the owner chooses and what the analyst asks for: public values, checked when made."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import cast

from sqlrs.epsilon import parse_epsilon, parse_error
from sqlrs.errors import UsageError
from sqlrs.inputs import arguments
from sqlrs.mechanisms import CLIPPED, DEFAULT, mechanism_named
from sqlrs.mechanisms.base import Mechanism
from sqlrs.mechanisms.packing_solver import DEFAULT_PACKING_SECONDS
from sqlrs.planning.external_plans import DEFAULT_SOLVER_SECONDS
from sqlrs.planning.plan import HOW
from sqlrs.query import General, Query
from sqlrs.records import dataclass
from sqlrs.residuals.residual import DEFAULT_MAX_EXTERNAL, Reading
from sqlrs.work_bound import DeclaredSizes, Figures

STRICT, ADD_REMOVE = NEIGHBOURS = ("strict", "add-remove")
MOST_GROUPS = 1_000_000
MOST_CONTRIBUTION = 2**100
MOST_OWNED_RESULTS = 1_000_000_000

Number = str | int | float | Decimal


@dataclass(frozen=True)
class Settings:
    """The owner's public choices: they decide the formula, together with the query alone.

    ``max_external``: compared variables outside a residual that are read exactly, see
    ``Reading``. ``solver``: general predicates across a boundary are solved where the solver
    understands them, for at most ``solver_seconds`` for each boundary value; else dropped.
    ``neighbours``: of "strict" ones a row was added, removed or replaced, of "add-remove" ones
    added or removed. ``max_groups``: an answer of more groups is refused.
    Where units are protected: ``max_contribution`` is the largest threshold that one unit's part of
    an answer may be cut to, and a release whose results have more than ``max_owned_results``
    combinations of owners ends with the one error; so does one that takes longer than
    ``packing_seconds`` to share results among several owners.
    ``declared_rows`` (by table) and ``declared_degrees`` (rows with one value, by table.column) are
    public; a query is refused if they allow a join of more than ``max_intermediate_rows``.
    ``refused_queries``: texts of queries that are refused, in other words too.
    ``fetch_limit``: up to so many bytes of tables on Spark are fetched and joined here; 0: none.
    """

    max_external: int = DEFAULT_MAX_EXTERNAL
    plan: str = "auto"
    solver: bool = False
    solver_seconds: float = DEFAULT_SOLVER_SECONDS
    neighbours: str = STRICT
    max_groups: int = 10_000
    max_contribution: int = 2**40
    max_owned_results: int = 5_000_000
    packing_seconds: float = DEFAULT_PACKING_SECONDS
    max_intermediate_rows: int | None = None
    declared_rows: Mapping[str, int] | Figures = ()
    declared_degrees: Mapping[str, int] | Figures = ()
    refused_queries: tuple[str, ...] = ()
    fetch_limit: int = 512 * 2**20

    def __post_init__(self) -> None:
        arguments.text("plan", self.plan)
        arguments.whole_number("max_external", self.max_external)
        arguments.truth("solver", self.solver)
        limit = arguments.seconds("solver_seconds", self.solver_seconds)
        object.__setattr__(self, "solver_seconds", limit)
        limit = arguments.seconds("packing_seconds", self.packing_seconds)
        object.__setattr__(self, "packing_seconds", limit)
        arguments.one_of("neighbours", self.neighbours, NEIGHBOURS)
        arguments.whole_number("max_groups", self.max_groups, 1, MOST_GROUPS)
        arguments.whole_number("max_contribution", self.max_contribution, 1, MOST_CONTRIBUTION)
        arguments.whole_number("max_owned_results", self.max_owned_results, 1, MOST_OWNED_RESULTS)
        arguments.whole_number("fetch_limit", self.fetch_limit, 0)
        if self.plan not in HOW:
            raise UsageError(f"there is no plan {self.plan!r}", hint=f"one of {', '.join(HOW)}")
        if self.max_external < 0:
            raise UsageError("max_external is a number of variables, 0 or more")
        if self.solver_seconds <= 0:
            raise UsageError("solver_seconds is a number of seconds above 0")
        if self.packing_seconds <= 0:
            raise UsageError("packing_seconds is a number of seconds above 0")

        if self.max_intermediate_rows is not None:
            arguments.whole_number("max_intermediate_rows", self.max_intermediate_rows, 1)
        for name in ("declared_rows", "declared_degrees"):
            said = dict(getattr(self, name))
            for place, figure in said.items():
                arguments.text(name, place)
                arguments.whole_number(f"{name} of {place}", figure, 1)
            # Settings are compared and hashed, which a mapping cannot be.
            object.__setattr__(self, name, tuple(sorted(said.items())))
        refused = arguments.names("refused_queries", self.refused_queries)
        object.__setattr__(self, "refused_queries", tuple(refused))

    @property
    def sizes(self) -> DeclaredSizes:
        """What bounds the largest join."""
        rows, degrees = tuple(self.declared_rows), tuple(self.declared_degrees)
        return DeclaredSizes(
            cast(Figures, rows), cast(Figures, degrees), self.max_intermediate_rows
        )

    def reading(self, query: Query) -> Reading:
        """How the query is read; a solver that is needed and missing is a UsageError."""
        solved = self._solved(query) if self.solver else frozenset[General]()
        return Reading.of(query, max_external=self.max_external, solved=solved)

    def _solved(self, query: Query) -> frozenset[General]:
        from sqlrs.measuring.solvable import solvable

        found = solvable(query)
        if found:
            from sqlrs.measuring.solver import load_solver

            load_solver()
        return found


@dataclass(frozen=True)
class Wish:
    """An error that an analyst wishes instead of a price: half the width of a 95 % interval.

    Of ``max_epsilon`` only as much is spent as that takes.
    """

    error: Number
    max_epsilon: Number

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", parse_error(self.error))
        object.__setattr__(self, "max_epsilon", parse_epsilon(self.max_epsilon))

    @property
    def half_width(self) -> Fraction:
        """The error, exactly."""
        return Fraction(self.error)

    @property
    def maximum(self) -> Decimal:
        """The most that may be spent."""
        return parse_epsilon(self.max_epsilon)


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

    def prices(self, *, of_units: bool = False) -> tuple[Decimal, Decimal | None]:
        """Epsilon of the answer and of its error bars, where the mechanism follows the query.

        Clipping may be named, and where units are protected others too; they have no shape.
        """
        named = self.mechanism not in (DEFAULT, CLIPPED) and not of_units
        if named or self.shape is not None:
            raise UsageError(
                "a mechanism or a shape can be chosen for a single count only",
                hint="leave them out: groups and sums get the least noise that the query allows",
            )
        bars = None if self.error_bars is None else parse_epsilon(self.error_bars)
        return parse_epsilon(self.epsilon), bars

    def chosen_mechanism(self) -> Mechanism:
        """The mechanism, with error bars if they are asked for, or a UsageError."""
        bars = None if self.error_bars is None else parse_epsilon(self.error_bars)
        return mechanism_named(
            self.mechanism, parse_epsilon(self.epsilon), self.shape, error_bars=bars
        )
