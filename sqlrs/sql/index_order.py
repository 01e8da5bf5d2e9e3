"""A table grouped in the order of an index: groups follow each other, and nothing is hashed.

A hash table of millions of groups is written to disk and read again, and PostgreSQL expects far
fewer groups than there are. The order of rows changes no count.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from sqlrs.catalog import Table
from sqlrs.trees.build import ascending, inner, select_from, table_of
from sqlrs.trees.identifiers import column


def in_index_order(select: exp.Select, described: Table) -> exp.Select:
    """The same groups of one whole table, read in the order of an index that helps, if any does.

    ``select`` becomes a part of what is returned.
    """
    group, source = select.args.get("group"), select.args["from_"].this
    if group is None or select.args.get("joins") or not isinstance(source, exp.Table):
        return select
    used = {one.name for one in select.find_all(exp.Column)}
    lead = _lead(described, {one.name for one in group.expressions}, used)
    if lead is None:
        return select
    # Rows that agree in the first column are few; the others are sorted among these.
    keys = sorted(group.expressions, key=lambda one: one.name != lead)
    alias = source.alias_or_name
    rows = select_from(table_of(described, alias), *(column(n, alias) for n in sorted(used)))
    order = [ascending(column(one.name, alias)) for one in keys]
    rows.set("order", exp.Order(expressions=order))
    select.set("from_", exp.From(this=inner(rows, alias)))
    select.set("group", exp.Group(expressions=keys))
    return select


def _lead(described: Table, grouped: Collection[str], used: Collection[str]) -> str | None:
    """The column in whose order rows are read: all of it is in an index, or it is part of a key.

    Other columns are read from the table, row by row; of a key few rows have the same value.
    """
    if described.bounded or any(described.column(n).computed is not None for n in used):
        return None
    in_keys = frozenset[str]().union(*described.keys)
    for name in sorted(described.index_leads.intersection(grouped)):
        if name in in_keys or len(used) == 1:
            return name
    return None
