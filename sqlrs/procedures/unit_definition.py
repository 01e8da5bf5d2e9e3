"""A statement about units -> all that one installed function is made of, or a refusal.

Each result belongs to one unit, so that plain SQL says how much each contributes. The function cuts
that to a threshold that it chooses privately: docs/proofs/procedures.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sqlglot import exp

from sqlrs.catalog import Catalog, Table
from sqlrs.compiled import CompiledStatement
from sqlrs.compiler.function_parameters import parameter_types
from sqlrs.effort import bounded_analysis
from sqlrs.errors import UsageError
from sqlrs.ledger.base import Kind, check_name
from sqlrs.measures import Aggregation, Measure
from sqlrs.mechanisms.clipped import ClippedVector, clipped_vector
from sqlrs.mechanisms.vector_base import Summand
from sqlrs.procedures.calls import ONE_CLIPPED_NUMBER, Call
from sqlrs.procedures.clipped_measure import measured_contributions
from sqlrs.procedures.definition import SMALLEST, check_catalog, check_function_name
from sqlrs.procedures.facts import Keys, facts_of
from sqlrs.procedures.shown_columns import (
    ELSEWHERE,
    Shown,
    only_aggregation,
    public_alone,
    shown_columns,
)
from sqlrs.procedures.table_measure import key_columns, number_of_groups
from sqlrs.procedures.trusted_parts import check_parts, read_tables
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.settings import STRICT, Settings
from sqlrs.units import Unit


@dataclass(frozen=True)
class ClippedMeasure:
    """One aggregate: its thresholds, and whether a unit may contribute less than 0.

    ``worth``: what one of its whole numbers is worth.
    """

    grid: tuple[int, ...]
    signed: bool
    worth: Decimal


@dataclass(frozen=True)
class UnitDefinition:
    """One statement about units as a function: its public parts, and what the function runs."""

    name: str
    sql: str
    dataset: str
    repeats: bool
    canonical: str
    unit: Unit
    tables: tuple[Table, ...]
    facts: str
    call: Call
    shown: tuple[Shown, ...]
    keys: exp.Select | None
    groups: exp.Select
    max_groups: int
    measure: exp.Select
    measures: tuple[ClippedMeasure, ...]
    strict: bool
    shape = 0
    least_epsilon = SMALLEST

    @property
    def typed(self) -> exp.Select | None:
        """What PostgreSQL says the types of."""
        return self.keys

    @property
    def one_number(self) -> bool:
        """Whether it returns a number with its threshold, not a table of the analyst's columns."""
        return self.keys is None and len(self.shown) == 1

    @property
    def mechanism(self) -> str:
        """The noise, in words that do not depend on the epsilon of a call."""
        ends = ", ".join(f"{(one.grid[-1] * one.worth).normalize():f}" for one in self.measures)
        shared = f", epsilon shared by {len(self.measures)}" if len(self.measures) > 1 else ""
        neighbours = "one unit replaced" if self.strict else "one unit added or removed"
        return f"clipped, thresholds up to {ends}, laplace noise, {neighbours}{shared}"

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
    ) -> UnitDefinition:
        """Compile a statement for installation, or refuse it; as ``Definition.of``."""
        check_function_name(name)
        check_name(Kind.DATASET, dataset)
        check_catalog(catalog, units=True)
        if catalog.unit is None:
            raise UsageError("no unit is declared", hint="without one, functions protect rows")
        settings = settings or Settings()
        types = parameter_types(parameters)
        compiled = CompiledStatement.of(sql, catalog, settings, types)
        compiled.refuse_beforehand(catalog, settings)
        aggregation = only_aggregation(compiled)
        shown = shown_columns(compiled.statement.above, aggregation)
        if not aggregation.measures:
            raise public_alone()
        check_parts(compiled, aggregation)
        tables = read_tables(compiled, catalog)
        _check_rows(tables)
        with bounded_analysis():
            clipped = tuple(
                _clipped(measure, compiled.asked[asked], settings)
                for measure, asked in zip(aggregation.measures, aggregation.asked, strict=True)
            )
            measure = measured_contributions(aggregation, compiled.asked, clipped, settings.plan)
        keys = key_columns(aggregation)
        alone = keys is None and len(shown) == 1
        # Of which types the keys are only PostgreSQL knows.
        columns = tuple((s.name, "unknown" if s.is_key else "numeric") for s in shown)
        return cls(
            name=name,
            sql=sql,
            dataset=dataset,
            repeats=repeats,
            canonical=compiled.canonical,
            unit=catalog.unit,
            tables=tables,
            facts=facts_of(sql, catalog, tables, declared_keys or {}),
            call=Call(types, ONE_CLIPPED_NUMBER if alone else columns),
            shown=shown,
            keys=keys,
            groups=number_of_groups(aggregation),
            max_groups=settings.max_groups,
            measure=measure,
            measures=_measures(aggregation, shown, clipped),
            strict=settings.neighbours == STRICT,
        )


def _check_rows(tables: Sequence[Table]) -> None:
    if limited := sorted(table.label for table in tables if table.max_rows is not None):
        raise refusal(
            "unsupported",
            f"at most some rows of each unit are used of {', '.join(limited)}, and a function "
            "inside the database leaves out none",
            hint=f"{ELSEWHERE}; or leave out max_rows, which a clipped answer does not need",
        )


def _clipped(measure: Measure, summands: Sequence[Summand], settings: Settings) -> ClippedVector:
    """The mechanism of one number of a measure, for its thresholds; its epsilon is not used."""
    private = [one for one in summands if one.private]
    if measure.per_unit is None and not private:
        raise public_alone()
    if any(len(set(one.signed.owners)) != 1 for one in private):
        raise refusal(
            "unsupported",
            "a result belongs to several units, and a function inside the database limits only "
            "what one alone contributes",
            hint=ELSEWHERE,
        )
    return clipped_vector(
        measure,
        summands,
        1,
        epsilon=Decimal(1),
        strict=True,
        coverage=None,
        max_contribution=settings.max_contribution,
    )


def _measures(
    aggregation: Aggregation, shown: Sequence[Shown], clipped: Sequence[ClippedVector]
) -> tuple[ClippedMeasure, ...]:
    worth = {one.place: one.unit for one in shown if one.unit is not None}
    # One number alone moves twice only where units may lower it.
    return tuple(
        ClippedMeasure(one.grid, one.moves > 1, worth[place]) for place, one in enumerate(clipped)
    )
