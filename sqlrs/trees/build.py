"""Short and quick ways to make sqlglot trees: nothing is parsed, and nothing copied but columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar, cast

from sqlglot import exp

from sqlrs.catalog import Column, Family, Table
from sqlrs.query import Variable
from sqlrs.trees.identifiers import column, identifier
from sqlrs.trees.naming import free_name
from sqlrs.values import values_of

ROUNDS = "rounds"
"""What marks a cast that must round to the nearest whole number."""
SENT_BY = "sent_by"
"""What marks a query whose rows with one value in a column are sent to one task, where it can."""
_TEXT = exp.DataType.build("TEXT")
_EMPTY, _COMMA = exp.Literal.string(""), exp.Literal.string(",")
_ROUNDED_TEXTS = frozenset(
    {Family.FLOAT, Family.DATE, Family.TIMESTAMP, Family.TIMESTAMP_TZ},
)


def named(tree: exp.Expr, name: str) -> exp.Alias:
    """``tree AS name``."""
    return exp.Alias(this=tree, alias=identifier(name))


def select_from(source: exp.Expr, *expressions: exp.Expression) -> exp.Select:
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


def inner(select: exp.Query, name: str) -> exp.Subquery:
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

    Where some of these are computed, or only some rows of each unit are read, it is a select of the
    used ones alone.
    """
    wanted = set(used)
    columns = [one for one in described.columns if one.name in wanted]
    name = alias or described.name
    few = described.bounded
    # What is computed may fail on rows that are left out, so it comes after.
    source = inner(few_rows_of(described, columns), name) if few else table_of(described, alias)
    if all(one.computed is None for one in columns):
        return source
    found = (
        column(one.name, name)
        if one.computed is None
        else named(computed_value(one, name), one.name)
        for one in columns
    )
    return inner(select_from(source, *found), name)


def few_rows_of(described: Table, columns: Iterable[Column]) -> exp.Query:
    """At most ``max_rows`` rows of each unit, with what the given columns are or are computed from.

    Rows without an owner are left out. Which ones of a unit stay follows from their own values, by
    an order that looks random: docs/proofs/bounded_rows.md. Only units that have more rows need an
    order at all.
    """
    read = dict.fromkeys(name for one in columns for name in _stored(one))
    (owner,) = described.owners
    # Where equal ids may look different, an engine might find a unit among both.
    if owner.links or not values_of(described.column(owner.column).type).one_form:
        return _numbered_rows(described, read)
    base = "owned"
    whole = select_from(table_of(described, base), *(column(name, base) for name in read))
    if not read:
        whole = with_columns(whole, number(1))
    unit = column(owner.column, base)
    whole = filtered_by(whole, [_among(unit, described, exp.LTE)])
    cut = _numbered_rows(described, read, [_among(unit.copy(), described, exp.GT)])
    return exp.union(whole, cut, distinct=False, copy=False)


def _among(
    unit: exp.Column, described: Table, kind: type[exp.LTE] | type[exp.GT]
) -> exp.Expression:
    """Whether a unit is one of those that have at most, or more than, ``max_rows`` rows."""
    each, most = "each", number(cast(int, described.max_rows))
    units = select_from(table_of(described, each), column(unit.name, each))
    units = grouped_by(units, [column(unit.name, each)])
    many = kind(this=exp.Count(this=exp.Star()), expression=most)
    units.set("having", exp.Having(this=many))
    return exp.In(this=unit, query=exp.Subquery(this=units))


def _numbered_rows(
    described: Table, read: Iterable[str], conditions: Sequence[exp.Expression] = ()
) -> exp.Select:
    """The first ``max_rows`` rows of each unit that satisfy the conditions."""
    base, kept = "owned", "numbered"
    read = list(read)
    taken = {one.name.lower() for one in described.columns}
    place = free_name("place", taken)
    select = select_from(table_of(described, base), *(column(name, base) for name in read))
    (owner,) = described.owners
    end = base
    for step, link in enumerate(owner.links, 1):
        schema, table = link.table
        before, end = end, f"link{step}"
        equal = [
            exp.EQ(this=column(own, before), expression=column(key, end))
            for own, key in zip(link.columns, link.key, strict=True)
        ]
        select = joined_with(select, table_named(table, schema, end), equal)
    unit = column(owner.column, end)
    number_in_unit = exp.Window(
        this=exp.RowNumber(),
        partition_by=[unit],
        order=exp.Order(expressions=_fixed_order(described, base)),
    )
    select = with_columns(select, named(number_in_unit, place))
    has_owner = exp.Not(this=exp.Is(this=column(owner.column, end), expression=exp.Null()))
    few = exp.LTE(this=column(place, kept), expression=number(cast(int, described.max_rows)))
    found: list[exp.Expression] = [column(name, kept) for name in read]
    select = filtered_by(select, [has_owner, *conditions])
    outer = select_from(inner(select, kept), *(found or [number(1)]))
    return filtered_by(outer, [few])


def _stored(described: Column) -> list[str]:
    """The columns of the table itself that a column is, or is computed from."""
    if described.computed is None:
        return [described.name]
    tree = cast(exp.Expression, described.computed)
    return sorted({node.name for node in tree.find_all(exp.Column)})


def exact_text(tree: exp.Expression) -> exp.Expression:
    """A value's text, which is compared by its characters and not as a collation reads them."""
    text = exp.Cast(this=tree, to=_TEXT.copy())
    return exp.Collate(this=text, expression=exp.Identifier(this="C", quoted=True))


def _fixed_order(described: Table, alias: str) -> list[exp.Expression]:
    """An order of the rows by their values alone: only equal rows of a bag share a place.

    By a hash of their texts first: the least values of a column are not what everyone keeps. Then
    by the texts, which tell more values apart than equality does and which types without an order
    have too. A session may round the texts of some
    types, so these values follow.
    """
    stored = [one for one in described.columns if one.computed is None]
    # No two rows agree on a key.
    keys = sorted(described.keys, key=lambda key: (len(key), sorted(key)))
    told = [one for one in stored if not keys or one.name in keys[0]]
    texts = [exact_text(column(one.name, alias)) for one in told]
    whole: exp.Expression = exp.Coalesce(this=texts[0].copy(), expressions=[_EMPTY.copy()])
    for text in texts[1:]:
        part = exp.Coalesce(this=text.copy(), expressions=[_EMPTY.copy()])
        whole = exp.DPipe(this=exp.DPipe(this=whole, expression=_COMMA.copy()), expression=part)
    rounded = [column(one.name, alias) for one in told if one.type.family in _ROUNDED_TEXTS]
    order: list[exp.Expression] = [exp.MD5(this=whole), *texts, *rounded]
    return [exp.Ordered(this=tree, desc=False, nulls_first=True) for tree in order]


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
