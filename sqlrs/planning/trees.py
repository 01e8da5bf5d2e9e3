"""Short and quick ways to make sqlglot trees: nothing is parsed, and nothing copied but columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from sqlrs.identifiers import identifier


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


def table(name: str) -> exp.Table:
    """A table or a common table expression."""
    return exp.Table(this=identifier(name))


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
