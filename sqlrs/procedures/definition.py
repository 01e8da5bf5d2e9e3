"""SQL text -> all that one installed function is made of, or a refusal; no data is read."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal
from math import prod

from sqlglot import exp

from sqlrs.catalog import Catalog, Table
from sqlrs.compiled import Compiled, refuse_named
from sqlrs.compiler.function_parameters import parameter_types
from sqlrs.compiler.simplify import Contradiction
from sqlrs.dialects import dialect_named
from sqlrs.effort import bounded_analysis
from sqlrs.errors import UsageError
from sqlrs.ledger.base import Kind, check_name
from sqlrs.noise import DEFAULT_SHAPE, PolyLaplace
from sqlrs.planning.choose import choose
from sqlrs.planning.external_plans import Solved
from sqlrs.planning.same_values import same_values
from sqlrs.procedures.calls import Call
from sqlrs.procedures.facts import Keys, facts_of
from sqlrs.procedures.programs import Programs
from sqlrs.procedures.staged_measure import Limit, StagedMeasure
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sensitivity.ceiling import turning_point
from sqlrs.sensitivity.constant import is_constant
from sqlrs.sensitivity.recursion import Recursion
from sqlrs.sensitivity.refined import choose_method
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.settings import Settings
from sqlrs.sql.plain import plain
from sqlrs.sql.write import statement_of
from sqlrs.work_bound import refuse_too_large

# Functions of the schema that are no query; tests compare the list with what is installed.
RESERVED_NAMES = frozenset(
    """
    await_durable budget can_change changed check_call check_work choose_threshold clipped_numbers
    coefficients counter exponential_coin fold grant_budget grow growth history horizon
    integer_below laplace log_series lomax lomax_pull minus_logarithm negative_exponential noise
    random_word recorded_units restore_spent settled smoothness_ratio spend spent_units table_facts
    turning_point weights whole_power within
    """.split()  # noqa: SIM905 - so many words are best read as text
)

SMALLEST = Decimal("0.000001")
"""The least epsilon there is."""

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
# Additions of one fold; PL/pgSQL makes about a million of them in a second.
_MOST_WORK = 2_000_000
_QUICK_WORK = 50_000


@dataclass(frozen=True)
class Definition:
    """One query as a function: its public parts, and what the function runs.

    ``constant``: the query alone fixes its sensitivity; then the noise has no shape, 0 is recorded.
    ``quick_epsilon``: from here on a fold is quick enough to be tried between two rounds.
    """

    name: str
    sql: str
    dataset: str
    shape: int
    repeats: bool
    canonical: str
    least_epsilon: Decimal
    tables: tuple[Table, ...]
    facts: str
    rounds: tuple[tuple[exp.Expression, ...], ...]
    frequencies: tuple[exp.Expression, ...]
    limits: tuple[Limit, ...]
    values: tuple[tuple[int, ...], ...]
    quick_epsilon: Decimal | None
    programs: Programs
    call: Call
    constant: bool

    @classmethod
    def of(
        cls,
        sql: str,
        catalog: Catalog,
        *,
        name: str,
        dataset: str = "data",
        shape: int = DEFAULT_SHAPE,
        repeats: bool = True,
        settings: Settings | None = None,
        declared_keys: Keys | None = None,
        parameters: Sequence[str] = (),
    ) -> Definition:
        """Compile a query for installation, or refuse it.

        ``declared_keys`` are those of the catalog's keys that the owner promises and the database
        does not enforce: the function does not look for them. ``parameters`` are the types of $1,
        $2, …: the function takes their values, and nothing that is compiled depends on them.
        """
        check_function_name(name)
        check_name(Kind.DATASET, dataset)
        check_catalog(catalog)
        settings = settings or Settings()
        call = Call(parameter_types(parameters))
        compiled = Compiled.of(sql, catalog, settings, parameters=call.parameters)
        if isinstance(compiled, Contradiction):
            raise UsageError("the conditions contradict each other: the count is always 0")
        residuals = compiled.residuals
        if not residuals.query.private:
            raise UsageError(
                "the query reads public tables alone: its count is exact and needs no function",
                hint="grant SELECT on these tables, or declare the private ones",
            )
        if residuals.query.large_units:
            raise UsageError(
                "a function inside the database protects single rows, not "
                + ", ".join(residuals.query.large_units),
                hint="ask through sqlrs count or the proxy",
            )
        if used := compiled.declared_functions:
            raise UsageError(
                f"a function inside the database does not call {', '.join(used)}",
                hint="it trusts no function from elsewhere; ask through sqlrs count or the proxy",
            )
        with bounded_analysis():
            constant = is_constant(residuals)
        refuse_named(compiled, catalog, settings)
        recursion = compile_recursion(residuals)
        refuse_too_large(residuals, recursion.coordinates, settings.sizes)
        programs = Programs.of(recursion)
        staged = StagedMeasure.of(residuals, recursion.coordinates)
        rounds = tuple(
            tuple(_numeric(plain_statement(part, settings.plan)) for part in parts)
            for parts in staged.rounds
        )
        tables = _tables(residuals)
        return cls(
            name=name,
            sql=sql,
            dataset=dataset,
            shape=0 if constant else shape,
            repeats=repeats,
            canonical=plain(residuals.of(residuals.query.everything)).sql(dialect="postgres"),
            least_epsilon=SMALLEST if constant else least_epsilon(recursion, programs, shape),
            tables=tables,
            facts=facts_of(sql, catalog, tables, declared_keys or {}),
            rounds=rounds,
            frequencies=tuple(map(_numeric, staged.frequencies)),
            limits=staged.limits,
            values=_places(residuals, recursion, staged),
            quick_epsilon=None if constant else quick_epsilon(recursion, programs, shape),
            programs=programs,
            call=call,
            constant=constant,
        )

    @property
    def measure(self) -> exp.Select:
        """One statement for the count and all parts, whichever of them matter."""
        return exp.select(exp.Array(expressions=[one for parts in self.rounds for one in parts]))

    @property
    def in_rounds(self) -> bool:
        """Whether the function looks, before it measures more, if that can matter."""
        return self.quick_epsilon is not None and len(self.rounds) > 1

    @property
    def mechanism(self) -> str:
        """The noise, in words that do not depend on the epsilon of a call."""
        return "laplace noise" if self.constant else f"polylaplace noise of shape {self.shape}"


def check_function_name(name: str) -> None:
    """Refuse a name that would need quotes, or that a function of the schema has."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            "the name of a function is made of small letters, digits and underscores",
            hint="at most 63, not starting with a digit: for example count_triangles",
        )
    if name in RESERVED_NAMES:
        raise UsageError(f"{name} is the name of a function that every installation has")


def check_catalog(catalog: Catalog, *, units: bool = False) -> None:
    """Refuse a database without functions, and a unit where the function protects single rows."""
    if not dialect_named(catalog.dialect).holds_functions:
        raise UsageError("functions are installed into PostgreSQL", hint="--db postgresql://…")
    if catalog.unit is not None and not units:
        raise UsageError(
            f"this function protects single rows, not units of {catalog.unit.name}",
            hint="sqlrs.procedures.installable finds the kind of function that does",
        )


def _places(
    residuals: Residuals, recursion: Recursion, staged: StagedMeasure
) -> tuple[tuple[int, ...], ...]:
    """For each coordinate the places of its parts, whose product is its value."""
    same = same_values(residuals.undecided(recursion.coordinates))
    return tuple(
        tuple(
            staged.places[same[part.members].members]
            for part in residuals.parts(members)
            if not part.decided
        )
        for members in recursion.coordinates
    )


def plain_statement(residual: Residual, plan: str) -> exp.Expression:
    """The statement of one value, which PostgreSQL alone can run."""
    chosen = choose(residual, None, how=plan, run=True)
    if isinstance(chosen, Solved):
        raise UsageError(
            "a function inside the database has no solver",
            hint="install it without --solver, or ask through sqlrs count",
        )
    return statement_of(chosen, "postgres")


def _tables(residuals: Residuals) -> tuple[Table, ...]:
    for atom in residuals.query.atoms:
        filtered = (column for condition in atom.filters for column in condition.columns)
        for column in (*(column for column, _ in atom.terms), *filtered):
            # Such a type's operators lie in a schema where others may create better matches. The
            # catalog writes a schema before the name of every type that is not PostgreSQL's own.
            if "." in atom.table.column(column).type.name:
                raise refusal(
                    "unsupported",
                    f"column {atom.table.label}.{column} is not of a type of PostgreSQL's own",
                    hint="a function trusts no operator from elsewhere; ask through sqlrs count",
                )
    return tuple(dict.fromkeys(atom.table for atom in residuals.query.atoms))


def work_at_each_distance(recursion: Recursion, programs: Programs) -> int:
    """Additions of a fold for one of its distances."""
    once = sum(step.cost + 2 * len(recursion.coordinates) for step in recursion.steps)
    return once + len(programs.monomials)


def least_epsilon(recursion: Recursion, programs: Programs, shape: int) -> Decimal:
    """The least epsilon, to two digits, whose lattice of distances is small enough to walk."""
    found = _least_epsilon(recursion, programs, shape, _MOST_WORK)
    if found is None:
        raise refusal(
            "unsupported",
            "the query joins too many private tables for a function inside the database",
            hint="ask it through sqlrs count or the proxy, or declare tables public",
        )
    return found


def quick_epsilon(recursion: Recursion, programs: Programs, shape: int) -> Decimal | None:
    """The least epsilon at which a fold takes hundredths of a second, if there is one."""
    return _least_epsilon(recursion, programs, shape, _QUICK_WORK)


def _least_epsilon(
    recursion: Recursion, programs: Programs, shape: int, most: int
) -> Decimal | None:
    once = work_at_each_distance(recursion, programs)

    def fits(epsilon: Decimal) -> bool:
        weights = PolyLaplace(epsilon, shape).weights
        method = choose_method(recursion, weights)
        if method is None or not method.lattice:
            return False
        distances = prod(2 * turning_point(degree, weights) + 3 for degree in method.degrees)
        return distances * once <= most

    choices = [Decimal(digits).scaleb(e - 1) for e in range(-6, 3) for digits in range(10, 100)]
    place = bisect_left(choices, True, key=fits)
    return None if place == len(choices) else choices[place]


def _numeric(statement: exp.Expression) -> exp.Expression:
    """One number as an expression of an array."""
    # sqlglot prints an array of bare subqueries as the array of the first one's rows.
    return exp.cast(exp.Subquery(this=statement), "numeric")
