"""A fetched table -> the statement that reads its rows where they are."""

from __future__ import annotations

from sqlglot import exp

from sqlrs.planning.fetched import FetchedTable, InRow, Side
from sqlrs.query import Constant
from sqlrs.trees.build import filtered_by, named, rows_of, select_from
from sqlrs.trees.constants import literal
from sqlrs.trees.identifiers import column
from sqlrs.trees.predicates import filter_condition

_BYTES = exp.DataType.build("BINARY")


def fetched_rows(wanted: FetchedTable) -> exp.Select:
    """The rows that satisfy its conditions, with the columns of the table; texts as bytes."""
    atom, alias = wanted.source, wanted.source.alias
    names = [one.name for one in wanted.table.columns]
    shown = [
        named(exp.Cast(this=place, to=_BYTES.copy()) if name in wanted.texts else place, name)
        for name in names
        for place in [column(name, alias)]
    ]
    compared = [_condition(one, alias) for one in sorted(wanted.compared, key=str)]
    constants = [
        exp.EQ(this=column(name, alias), expression=literal(term))
        for name, term in atom.terms
        if isinstance(term, Constant)
    ]
    filters = [filter_condition(one, alias) for one in atom.filters]
    sides = {side for one in wanted.compared for side in (one.left, one.right)}
    read = atom.reads.union(names, (side for side in sides if isinstance(side, str)))
    source = rows_of(atom.table, read, alias)
    return filtered_by(select_from(source, *shown), [*constants, *compared, *filters])


def _condition(one: InRow, alias: str) -> exp.Expression:
    kind = exp.LT if one.strict else exp.LTE
    return kind(this=_side(one.left, alias), expression=_side(one.right, alias))


def _side(side: Side, alias: str) -> exp.Expression:
    return column(side, alias) if isinstance(side, str) else literal(side)
