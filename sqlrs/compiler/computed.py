"""Group keys and weights that are expressions become columns, computed for each row of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlglot import exp

from sqlrs.catalog import Column, ColumnType, Family, Table
from sqlrs.compiler.conditions import over_bare_columns, references
from sqlrs.compiler.flat import FlatQuery
from sqlrs.compiler.kinds import null_folded
from sqlrs.compiler.missing_values import is_missing
from sqlrs.compiler.weighing import Factor
from sqlrs.query import Weight
from sqlrs.trees.naming import free_name
from sqlrs.trees.totals import DECIMAL_WEIGHT, MOST_SMALL, SMALL_WEIGHT, WEIGHT

# Of a computed key nothing is known but that the engine can group by it.
_KEY = ColumnType(Family.OTHER, "computed")


def with_computed(
    flat: FlatQuery, factors: Iterable[Factor]
) -> tuple[FlatQuery, Mapping[str, Weight]]:
    """The query with all keys as columns, and the weight of each occurrence that has a factor.

    A key that is NULL beside every row stays so: as a column it would have no type.
    """
    added: dict[tuple[str | None, str], dict[str, Column]] = {}
    tables = {occurrence.alias: occurrence.table for occurrence in flat.occurrences}

    def column(alias: str, name: str, kind: ColumnType, tree: exp.Expr, nullable: bool) -> str:
        table = tables[alias]
        known = added.setdefault(table.identity, {})
        taken = {*(one.name.lower() for one in table.columns), *known}
        unique = free_name(name, taken)
        known[unique] = Column(unique, kind, nullable, computed=tree)
        return unique

    keys: list[exp.Expr] = []
    for number, key in enumerate(flat.keys):
        if isinstance(key.unnest(), exp.Column):
            keys.append(key.unnest())
            continue
        if is_missing(null_folded(key)):
            keys.append(exp.Null())
            continue
        aliases = {alias for alias, _ in references(key)}
        if len(aliases) > 1:
            raise flat.source.refusal(
                "unsupported", key, "a group key must be made of columns of one table"
            )
        # A constant is the same beside every row.
        alias = next(iter(aliases), flat.occurrences[0].alias)
        name = column(alias, f"key_{number}", _KEY, over_bare_columns(key), True)
        keys.append(exp.column(name, table=alias, quoted=True))
    weights: dict[str, Weight] = {}
    for factor in factors:
        kind = SMALL_WEIGHT if factor.bound <= MOST_SMALL else WEIGHT
        if factor.decimal and kind == SMALL_WEIGHT:
            kind = DECIMAL_WEIGHT
        name = column(factor.alias, "weight", kind, factor.expression, False)
        weights[factor.alias] = Weight(name, factor.bound)

    def extended(table: Table) -> Table:
        return table.with_computed(added.get(table.identity, {}).values())

    occurrences = tuple(replace(one, table=extended(one.table)) for one in flat.occurrences)
    return replace(flat, occurrences=occurrences, keys=tuple(keys), weight=None), weights
