"""A statement with groups or sums -> all that one installed function is made of, or a refusal.

The function returns a table of keys and noisy numbers, or of what stands above them. Where the
query fixes its own sensitivity the noise is discrete Laplace; elsewhere it is polylaplace for one
number and one Lomax vector for groups: docs/proofs/vector.md, docs/proofs/procedures.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlrs.catalog import Catalog, Table
from sqlrs.compiled import CompiledStatement
from sqlrs.compiler.function_parameters import parameter_types
from sqlrs.effort import bounded_analysis
from sqlrs.errors import UsageError
from sqlrs.ledger.base import Kind, check_name
from sqlrs.mechanisms.vector_base import Summand
from sqlrs.mechanisms.vector_constant import FixedBound
from sqlrs.noise import DEFAULT_SHAPE
from sqlrs.procedures.above_rows import AboveRows
from sqlrs.procedures.calls import Call
from sqlrs.procedures.definition import (
    SMALLEST,
    check_catalog,
    check_function_name,
    plain_statement,
)
from sqlrs.procedures.facts import Keys, facts_of
from sqlrs.procedures.programs import Program, last_program
from sqlrs.procedures.shown_columns import (
    ELSEWHERE,
    Shown,
    only_aggregation,
    public_alone,
    shown_columns,
    shows_columns_alone,
)
from sqlrs.procedures.smooth_terms import SmoothTerm
from sqlrs.procedures.table_measure import key_columns, measured_rows, number_of_groups
from sqlrs.procedures.trusted_parts import check_parts, read_tables
from sqlrs.query import Query
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.sensitivity.constant import constant_sensitivity
from sqlrs.sensitivity.signed import all_constant
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.sensitivity.weighted import counted, largest_weight, needs_sums
from sqlrs.settings import STRICT, Settings


@dataclass(frozen=True)
class FactoredBound:
    """``factor`` times the last value of a program over the named public values, plus a constant.

    Each of ``values`` is the product of the measured values at its places, from 1 on.
    """

    constant: int
    factor: int = 0
    program: Program = ()
    values: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class TableDefinition:
    """One statement as a function: its public parts, and what the function runs."""

    name: str
    sql: str
    dataset: str
    repeats: bool
    canonical: str
    tables: tuple[Table, ...]
    facts: str
    call: Call
    shown: tuple[Shown, ...]
    above: AboveRows | None
    keys: exp.Select | None
    groups: exp.Select
    max_groups: int
    measure: exp.Select
    bound_values: tuple[exp.Expr, ...]
    bounds: tuple[tuple[FactoredBound, ...] | tuple[SmoothTerm, ...], ...]
    moves: int
    shape = 0
    least_epsilon = SMALLEST

    @property
    def mechanism(self) -> str:
        """The noise, in words that do not depend on the epsilon of a call."""
        shared = f", epsilon shared by {len(self.bounds)}" if len(self.bounds) > 1 else ""
        twice = ", twice the sensitivity" if self.moves > 1 else ""
        smooth = "lomax" if self.grouped else f"polylaplace of shape {DEFAULT_SHAPE}"
        kinds = [smooth if self.is_smooth(one) else "laplace" for one in self.bounds]
        return f"{' and '.join(dict.fromkeys(kinds))} noise{twice}{shared}"

    @property
    def grouped(self) -> bool:
        """Whether it has keys."""
        return self.keys is not None

    @staticmethod
    def is_smooth(bounds: Sequence[FactoredBound | SmoothTerm]) -> bool:
        """Whether the sensitivity of a measure follows the data."""
        return any(isinstance(one, SmoothTerm) for one in bounds)

    @property
    def typed(self) -> exp.Query | None:
        """What PostgreSQL says the types of: the keys, or all columns of what stands above."""
        return self.keys if self.above is None else self.above.over_no_rows(self.keys)

    @classmethod
    def of(
        cls,
        sql: str,
        catalog: Catalog,
        *,
        name: str,
        dataset: str = "data",
        repeats: bool = True,
        settings: Settings | None = None,
        declared_keys: Keys | None = None,
        parameters: Sequence[str] = (),
    ) -> TableDefinition:
        """Compile a statement for installation, or refuse it; as ``Definition.of``."""
        check_function_name(name)
        check_name(Kind.DATASET, dataset)
        check_catalog(catalog)
        settings = settings or Settings()
        types = parameter_types(parameters)
        compiled = CompiledStatement.of(sql, catalog, settings, types)
        compiled.refuse_beforehand(catalog, settings)
        aggregation = only_aggregation(compiled)
        query = compiled.statement.above
        plain = shows_columns_alone(query)
        shown = shown_columns(query, aggregation) if plain else ()
        above = None if plain else AboveRows.of(query, aggregation)
        summands = [compiled.asked[asked] for asked in aggregation.asked]
        check_parts(compiled, aggregation)
        _check(compiled.queries, summands)
        tables = read_tables(compiled, catalog)
        bound_values: list[exp.Expr] = []
        with bounded_analysis():
            bounds = tuple(_bounds(terms, bound_values, settings.plan) for terms in summands)
            measure = measured_rows(aggregation, compiled.asked, settings.plan)
        return cls(
            name=name,
            sql=sql,
            dataset=dataset,
            repeats=repeats,
            canonical=compiled.canonical,
            tables=tables,
            facts=facts_of(sql, catalog, tables, declared_keys or {}),
            call=Call(types, _returned(shown, above)),
            shown=shown,
            above=above,
            keys=key_columns(aggregation),
            groups=number_of_groups(aggregation),
            max_groups=settings.max_groups,
            measure=measure,
            bound_values=tuple(bound_values),
            bounds=bounds,
            moves=2 if aggregation.domains and settings.neighbours == STRICT else 1,
        )


def _returned(shown: Sequence[Shown], above: AboveRows | None) -> tuple[tuple[str, str], ...]:
    """The columns; of which types keys, and what stands above, are only PostgreSQL knows."""
    if above is not None:
        return tuple((name, "unknown") for name in above.names)
    return tuple((one.name, "unknown" if one.is_key else "numeric") for one in shown)


def _check(queries: Sequence[Query], measures: Sequence[tuple[Summand, ...]]) -> None:
    """Refuse what a function cannot protect, or needs no noise for."""
    if units := sorted({unit for query in queries for unit in query.large_units}):
        raise UsageError(
            f"a function inside the database protects single rows, not {', '.join(units)}",
            hint=ELSEWHERE,
        )
    for terms in measures:
        if not any(one.private for one in terms):
            raise public_alone()


def _bounds(
    terms: Sequence[Summand], measured: list[exp.Expr], plan: str
) -> tuple[FactoredBound, ...] | tuple[SmoothTerm, ...]:
    """The bound of each term that a private row takes part in."""
    private = [one for one in terms if one.private]
    if all_constant(one.residuals for one in private):
        return tuple(_bound(one, measured, plan) for one in private)
    return tuple(SmoothTerm.of(one, measured, plan) for one in private)


def _bound(summand: Summand, public: list[exp.Expr], plan: str) -> FactoredBound:
    """|c| L of one term, from public values that are measured with the numbers."""
    fixed = FixedBound.of(summand)
    worth = abs(summand.signed.coefficient)
    if not fixed.wanted:
        return FactoredBound(worth * constant_sensitivity(summand.residuals, {}))
    query = summand.residuals.query
    if needs_sums(query):
        raise refusal("unsupported", "the sum is weighed over public tables", hint=ELSEWHERE)
    residuals = counted(summand.residuals)
    values = []
    for members in fixed.wanted:
        places = []
        for part in residuals.parts(members):
            if not part.decided:
                public.append(plain_statement(part, plan))
                places.append(len(public))
        values.append(tuple(places))
    program = last_program(compile_recursion(residuals))
    return FactoredBound(0, worth * largest_weight(query), program, tuple(values))
