"""Joins of rows whose owner is known: which of them keep every result inside one unit."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sqlrs.compiler.conditions import Reference
from sqlrs.compiler.flat import conjuncts, operand
from sqlrs.compiler.from_items import FromItem, joined
from sqlrs.compiler.partitioned_rows import (
    KindOf,
    Ownership,
    Rows,
    equalities_in,
    united,
)
from sqlrs.compiler.source import Source
from sqlrs.compiler.unit_kinds import Known
from sqlrs.errors import QueryRefused

_FULL = "a FULL JOIN is answered on equalities between its two sides alone"
_MOST_UNIQUE = 8
_FULL_HINT = "put what is said of one side into a subquery: (SELECT … WHERE …) AS alias"
_PUBLIC_KEPT = "rows of a public table without a partner would belong to no unit"


def join_columns(
    left: Rows, right: Rows, join: exp.Join, source: Source
) -> tuple[FromItem, list[exp.Expr]]:
    """Both sides as one item, and what USING or NATURAL say is equal.

    A common column is that of the side whose rows are all kept; of a FULL JOIN, the first of both.
    """
    side = join.args.get("side")
    item, equal = joined(left.item, right.item, join, source, right_stays=side == "RIGHT")
    if side != "FULL":
        return item, equal
    both = {one.this.unnest(): _first_of(one.this, one.expression) for one in equal}
    shown = tuple((name, both.get(value.unnest(), value)) for name, value in item.visible)
    return FromItem(item.relations, shown), equal


def joined_rows(
    left: Rows,
    right: Rows,
    join: exp.Join,
    item: FromItem,
    conditions: Sequence[exp.Expr],
    columns: MutableMapping[Reference, Known],
    kind_of: KindOf,
    source: Source,
) -> Rows:
    """Two sides under the conditions of ON, resolved; or a refusal.

    ``columns`` learns which of them the join leaves empty.
    """
    side = join.args.get("side") or ""
    given = [part for condition in conditions for part in conjuncts(condition)]
    if side:
        owners, added = _outer(left, right, side, join, given, kind_of, source)
    else:
        equal = [*left.equal, *right.equal, *equalities_in(given)]
        owners, added = united(left.owners + right.owners, equal, kind_of)
        if not (left.private and right.private):
            # Each row of a unit may have many partners.
            owners = tuple(replace(one, single=False) for one in owners)
    given += added
    written = exp.Join(this=_item_of(right), **_how(side, given))
    found = Rows(
        item,
        left.tree,
        (*left.joins, written),
        owners,
        aliases=left.aliases | right.aliases,
        # Where one side of an outer join is empty, the other one's columns tell rows apart.
        unique=tuple(one | other for one in left.unique for other in right.unique)[:_MOST_UNIQUE],
    )
    if not side:
        return replace(
            found,
            equal=(*left.equal, *right.equal, *equalities_in(given)),
            witness=left.witness + right.witness,
        )
    kept = {"LEFT": left, "RIGHT": right}.get(side)
    for other in (left, right):
        if other is not kept:
            _emptied(other, columns)
    if kept is None:
        return found
    return replace(found, equal=kept.equal, witness=kept.witness)


def _outer(
    left: Rows,
    right: Rows,
    side: str,
    join: exp.Join,
    given: Sequence[exp.Expr],
    kind_of: KindOf,
    source: Source,
) -> tuple[tuple[Ownership, ...], list[exp.Expr]]:
    """The owners of an outer join, and equalities that belong to its condition."""
    if not left.private and not right.private:
        return (), []
    keeps_public = (not left.private and side != "RIGHT") or (not right.private and side != "LEFT")
    if keeps_public:
        hint = "let the private side keep its rows: private LEFT JOIN public"
        raise source.refusal("unit_lost", join, _PUBLIC_KEPT, hint)
    sides = [_alone(one, join, kind_of, source) for one in (left, right) if one.private]
    if len(sides) == 1:
        return (replace(sides[0], single=False),), []
    one, other = sides
    # Equalities inside one side do not hold where it is empty, but they do in the condition.
    whole, added = united(sides, [*left.equal, *right.equal, *equalities_in(given)], kind_of)
    if len(whole) > 1:
        raise not_joined(whole, join, source)
    if side == "FULL" and not all(_between(part, left, right) for part in [*given, *added]):
        raise source.refusal("join_form", join, _FULL, _FULL_HINT)
    single = one.single and other.single
    if side == "LEFT":
        return (replace(one, single=single),), added
    if side == "RIGHT":
        return (replace(other, single=single),), added
    ids = [
        form
        for a in one.ids[:4]
        for b in other.ids[:4]
        for form in (_coalesced(a, b), _coalesced(b, a))
    ]
    return (Ownership(tuple(ids), one.word, single),), added


def _between(part: exp.Expr, left: Rows, right: Rows) -> bool:
    """Whether it sets something of one side equal to something of the other."""
    if not isinstance(part, exp.EQ):
        return False
    sides = [{c.table for c in tree.find_all(exp.Column)} for tree in (part.this, part.expression)]
    return any(
        bool(one) and bool(other) and one <= left.aliases and other <= right.aliases
        for one, other in (sides, reversed(sides))
    )


def _alone(rows: Rows, join: exp.Join, kind_of: KindOf, source: Source) -> Ownership:
    """The one owner of a side: an outer join looks for partners before WHERE leaves out any."""
    owners, added = united(rows.owners, rows.equal, kind_of)
    if len(owners) > 1 or added:
        raise not_joined(owners, join, source)
    # A column of the query around it equals the id on these rows, but is not empty where they are.
    own = tuple(
        one
        for one in owners[0].ids
        if all(column.table in rows.aliases for column in one.find_all(exp.Column))
    )
    return replace(owners[0], ids=own)


def not_joined(owners: Sequence[Ownership], place: exp.Expr, source: Source) -> QueryRefused:
    """Private rows that no equality of their ids holds together."""
    hint = None
    if len(owners) > 1:
        hint = f"join on {owners[0].word} = {owners[1].word}, as a condition joined by AND"
    message = "rows of different units may be joined here"
    return source.refusal("unit_lost", place, message, hint)


def _emptied(rows: Rows, columns: MutableMapping[Reference, Known]) -> None:
    for place, known in list(columns.items()):
        if place[0] in rows.aliases:
            columns[place] = Known(known.kind, positive=known.positive)


def _item_of(rows: Rows) -> exp.Expr:
    """An item that can stand behind JOIN."""
    if not rows.joins:
        return rows.tree
    rows.tree.set("joins", list(rows.joins))
    return exp.Subquery(this=rows.tree)


def _how(side: str, given: Sequence[exp.Expr]) -> dict[str, object]:
    if not given and not side:
        return {"kind": "CROSS"}
    on = exp.and_(*(operand(part) for part in given), copy=False) if given else exp.true()
    return {"side": side or None, "on": on}


def _first_of(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return _coalesced(one.unnest(), other.unnest())


def _coalesced(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=one.copy(), expressions=[other.copy()])
