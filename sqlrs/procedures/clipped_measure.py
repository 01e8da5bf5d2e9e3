"""What units contribute to a statement's numbers -> one value of PostgreSQL.

The value is a JSON array: first the groups as [[keys as texts], [numbers of public rows],
[ordinals]] in their order, then for each measure what the units contribute, as
[place, [ordinals], units, units below 0, sum]. No id of a unit is in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from sqlrs.measures import Aggregation, Asked
from sqlrs.measuring.contributions import owned_term
from sqlrs.mechanisms.clipped import ClippedVector
from sqlrs.mechanisms.vector_base import Summand
from sqlrs.procedures.table_measure import all_of, array_of, measured_rows
from sqlrs.sql.by_place import contributions_by_place
from sqlrs.sql.rows_by_owner import OwnedTerm
from sqlrs.trees.identifiers import column, identifier

_DIALECT = "postgres"


def measured_contributions(
    aggregation: Aggregation,
    found: Mapping[Asked, tuple[Summand, ...]],
    clipped: Sequence[ClippedVector],
    plan: str,
) -> exp.Select:
    """The statement of all that is measured; private."""
    public = {
        asked: tuple(one for one in terms if not one.private) for asked, terms in found.items()
    }
    groups = measured_rows(aggregation, public, plan, with_ordinals=True)
    parts = [groups, *(_contributions(one, aggregation, plan) for one in clipped)]
    return exp.select(array_of([exp.Subquery(this=part) for part in parts]))


def _contributions(clipped: ClippedVector, aggregation: Aggregation, plan: str) -> exp.Select:
    source = clipped.source
    parts = [_term(one, plan) for one in source] if isinstance(source, tuple) else source
    statement = contributions_by_place(parts, aggregation.domains, clipped.grid, _DIALECT)
    ordinals = [f"o{place}" for place, _ in enumerate(aggregation.domains)]
    names = ["place", *ordinals, "units", "below", "total"]
    place, *of_group, units, below, total = (column(name, "c") for name in names)
    row = array_of([place, array_of(of_group), units, below, total])
    select = exp.Select(expressions=[all_of(row)])
    alias = exp.TableAlias(this=identifier("c"), columns=[identifier(name) for name in names])
    select.set("from_", exp.From(this=exp.Subquery(this=statement, alias=alias)))
    return select


def _term(summand: Summand, plan: str) -> OwnedTerm:
    whole = summand.residuals.of(summand.residuals.query.everything)
    return owned_term(summand.signed, whole, None, plan)
