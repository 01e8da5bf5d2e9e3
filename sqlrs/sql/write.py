"""Plan -> the statement that evaluates it, in the form that the plan says."""

from __future__ import annotations

from sqlglot import exp

from sqlrs.dialects import dialect_named
from sqlrs.planning.external_plans import Domain, Solved, Sweep
from sqlrs.planning.plan import (
    ByKeptGroups,
    Factorised,
    InWords,
    Leading,
    Plain,
    Pruned,
    PrunedSemiJoins,
    ResidualPlan,
    SemiJoins,
    table_names,
)
from sqlrs.sql.external_variables import domain_statement, solver_rows, sweep_statement
from sqlrs.sql.factorised import Kept, StatementBuilder, largest
from sqlrs.sql.in_words import words_statement
from sqlrs.sql.leading_groups import (
    first_of,
    groups_of,
    kept_groups_statement,
    leading_statement,
)
from sqlrs.sql.plain import plain
from sqlrs.sql.pruned import pruned_statement
from sqlrs.sql.semi_joins import pruned_semi_joins, semi_joins


def statement_of(
    plan: ResidualPlan, dialect: str, kept: Kept | None = None, taken: frozenset[str] = frozenset()
) -> exp.Select:
    """A statement that yields T_E as one integer, 0 where the join is empty; else solver's rows.

    That of a plan by the groups that lead, or in words, may yield NOT_ENOUGH.

    ``kept`` steps are there already; their names are among those ``taken``.
    """
    building = StatementBuilder(
        dialect_named(dialect), table_names(plan.residual) | taken, kept or {}
    )
    match plan:
        case Plain():
            return plain(plan.residual)
        case SemiJoins():
            return semi_joins(plan.residual, plan.found)
        case PrunedSemiJoins():
            return pruned_semi_joins(plan.residual, plan.found, plan.seeds, building)
        case Factorised():
            if (stored := building.kept.get(groups_of(plan.total))) is not None:
                return first_of(stored)
            rows, _ = building.totals(plan.total)
            return building.finished(largest(rows, bool(plan.residual.boundary)))
        case Pruned():
            return pruned_statement(plan.pruning, building)
        case InWords():
            return words_statement(plan.words, building)
        case Leading():
            return leading_statement(plan.leaders, building)
        case ByKeptGroups():
            return kept_groups_statement(plan, building)
        case Sweep():
            return sweep_statement(plan.residual)
        case Domain():
            return domain_statement(plan.residual)
        case Solved():
            return solver_rows(plan.residual)
    raise TypeError(f"there is no statement for a plan of kind {plan.name}")
