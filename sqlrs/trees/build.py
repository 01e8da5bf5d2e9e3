"""Short and quick ways to make sqlglot trees: nothing is parsed, and nothing copied but columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar, cast

from sqlglot import exp

from sqlrs.catalog import Column, Table
from sqlrs.query import Variable
from sqlrs.trees.identifiers import column, identifier


def named(tree: exp.Expression, name: str) -> exp.Alias:
    """``tree AS name``."""
    return exp.Alias(this=tree, alias=identifier(name))


def select_from(source: exp.Expression, *expressions: exp.Expression) -> exp.Select:
    """``SELECT expressions FROM source``."""
    return exp.Select(expressions=list(expressions), from_=exp.From(this=source))


def with_columns(select: exp.Select, *expressions: exp.Expression) -> exp.Select:
    """The same select with further expressions."""
    select.set("expressions", [*select.expressions, *expressions])
    return select


def joined_with(
    select: exp.Select, source: exp.Expression, equal: Sequence[exp.Expression]
) -> exp.Select:
    """The same select joined with one more source, by all given equalities."""
    join = exp.Join(this=source, on=all_of(equal)) if equal else exp.Join(this=source, kind="CROSS")
    select.append("joins", join)
    return select


def filtered_by(select: exp.Select, conditions: Sequence[exp.Expression]) -> exp.Select:
    """The same select, which has no WHERE yet, with all given conditions."""
    if conditions:
        select.set("where", exp.Where(this=all_of(conditions)))
    return select


def grouped_by(select: exp.Select, keys: Iterable[exp.Expression]) -> exp.Select:
    """The same select grouped by the given keys, if there are any."""
    if columns := list(keys):
        select.set("group", exp.Group(expressions=columns))
    return select


def ascending(tree: exp.Expression) -> exp.Ordered:
    """``tree ASC``: without the word, a setting of DuckDB decides the direction."""
    return exp.Ordered(this=tree, desc=False)


def inner(select: exp.Select, name: str) -> exp.Subquery:
    """``(select) AS name``."""
    return exp.Subquery(this=select, alias=exp.TableAlias(this=identifier(name)))


def table_named(name: str, schema: str | None = None, alias: str | None = None) -> exp.Table:
    """A table, a view or a common table expression, under an alias if another one is given."""
    return exp.Table(
        this=identifier(name),
        db=identifier(schema) if schema else None,
        alias=exp.TableAlias(this=identifier(alias)) if alias is not None else None,
    )


def table_of(described: Table, alias: str | None = None) -> exp.Table:
    """A table of the catalog, under an alias if one is given."""
    return table_named(described.name, described.schema, alias)


def rows_of(described: Table, used: Iterable[str], alias: str | None = None) -> exp.Expression:
    """A table of the catalog, under an alias if one is given, that has all ``used`` columns.

    Where some of these are computed, it is a select of the used ones alone.
    """
    wanted = set(used)
    columns = [one for one in described.columns if one.name in wanted]
    if all(one.computed is None for one in columns):
        return table_of(described, alias)
    name = alias or described.name
    found = (
        column(one.name, name)
        if one.computed is None
        else named(computed_value(one, name), one.name)
        for one in columns
    )
    return inner(select_from(table_of(described, alias), *found), name)


def computed_value(described: Column, alias: str) -> exp.Expression:
    """What a computed column is computed from, with its columns placed in ``alias``."""

    def placed(node: exp.Expression) -> exp.Expression:
        return column(node.name, alias) if isinstance(node, exp.Column) else node

    return cast(exp.Expression, described.computed).transform(placed)


def all_of(conditions: Sequence[exp.Expression]) -> exp.Expression:
    """All conditions joined by AND."""
    tree, *rest = conditions
    if rest:
        tree = _operand(tree)
    for condition in rest:
        tree = exp.And(this=tree, expression=_operand(condition))
    return tree


def _operand(tree: exp.Expression) -> exp.Expression:
    return exp.Paren(this=tree) if isinstance(tree, exp.Connector) else tree


def number(value: int) -> exp.Expression:
    """An integer literal."""
    tree = exp.Literal.number(str(abs(value)))
    return exp.Neg(this=tree) if value < 0 else tree


def union_of(selects: Sequence[exp.Select]) -> exp.Expression:
    """All rows of all selects."""
    tree: exp.Expression = selects[0]
    for select in selects[1:]:
        tree = exp.union(tree, select, distinct=False, copy=False)
    return tree


class _Joinable(Protocol):
    @property
    def variables(self) -> frozenset[Variable]: ...


_One = TypeVar("_One", bound=_Joinable)


def connected_order(inputs: Iterable[_One]) -> list[_One]:
    """The inputs so that each shares a variable with an earlier one wherever that is possible."""
    remaining, order = list(inputs), []
    known: frozenset[Variable] = frozenset()
    while remaining:
        chosen = next((x for x in remaining if not known.isdisjoint(x.variables)), remaining[0])
        remaining.remove(chosen)
        order.append(chosen)
        known |= chosen.variables
    return order
