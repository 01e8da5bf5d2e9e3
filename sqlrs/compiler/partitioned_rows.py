"""Rows whose owner is known: which expressions hold the unit's id, and what makes two the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace

from sqlglot import exp

from sqlrs.catalog import ColumnType
from sqlrs.compiler.flat import Occurrence, conjuncts
from sqlrs.compiler.from_items import FromItem
from sqlrs.compiler.names import Scope
from sqlrs.effort import spend
from sqlrs.records import dataclass

MOST_IDS = 32
"""So many expressions are remembered as the same id; further ones are ordinary data."""

Equality = tuple[exp.Expr, exp.Expr]
KindOf = Callable[[exp.Expr], ColumnType | None]


@dataclass(frozen=True, eq=False)
class Anchor:
    """Columns that hold a key of a table whose row there has the same owner."""

    table: tuple[str | None, str]
    key: tuple[str, ...]
    columns: tuple[exp.Expr, ...]


@dataclass(frozen=True, eq=False)
class Ownership:
    """Whose the rows of a relation are. Every one of ``ids`` is the unit's id and never NULL.

    ``single``: a unit has at most one row. ``word``: the id as the analyst may write it.
    """

    ids: tuple[exp.Expr, ...]
    word: str
    single: bool = False
    anchors: tuple[Anchor, ...] = ()

    @property
    def id(self) -> exp.Expr:
        """The id."""
        return self.ids[0].copy()

    def held_by(self, keys: Iterable[exp.Expr]) -> bool:
        """Whether rows that are equal in all keys have the same owner: an id, or a key of a row."""
        found = {one.unnest() for one in keys}
        return any(one in found for one in self.ids) or any(
            all(column in found for column in anchor.columns) for anchor in self.anchors
        )


@dataclass(frozen=True, eq=False)
class Witness:
    """For every row there are rows of these tables that satisfy the conditions and the origins."""

    occurrences: tuple[Occurrence, ...] = ()
    conditions: tuple[exp.Expr, ...] = ()

    def __add__(self, other: Witness) -> Witness:
        return Witness(self.occurrences + other.occurrences, self.conditions + other.conditions)


@dataclass(frozen=True, eq=False)
class Rows:
    """FROM on its way: an item with what is joined to it.

    ``owners``: of the private relations, those already known to be the same together; none where
    all is public. ``equal``: what is equal on every row. ``aliases``: all relations inside.
    ``unique``: sets of columns; no two rows are equal in all columns of one.
    """

    item: FromItem
    tree: exp.Expr
    joins: tuple[exp.Join, ...] = ()
    owners: tuple[Ownership, ...] = ()
    equal: tuple[Equality, ...] = ()
    aliases: frozenset[str] = frozenset()
    witness: Witness = field(default_factory=Witness)
    unique: tuple[frozenset[exp.Expr], ...] = ()

    @property
    def private(self) -> bool:
        """Whether it reads private rows."""
        return bool(self.owners)


@dataclass(frozen=True, eq=False)
class Body:
    """FROM and WHERE of a SELECT. ``unit``: whose its rows are, None for public ones.

    ``around``: the unit in sight; ``bound``: all rows belong to that one.
    """

    rows: Rows
    scope: Scope
    conditions: tuple[exp.Expr, ...]
    unit: Ownership | None = None
    around: Ownership | None = None
    bound: bool = False

    @property
    def owned(self) -> Ownership | None:
        """Whose the rows are, where that is not said from around."""
        return None if self.bound else self.unit

    @property
    def in_sight(self) -> Ownership | None:
        """Whose what is said of a row must be."""
        return self.unit or self.around


def equalities_in(conditions: Iterable[exp.Expr]) -> Iterator[Equality]:
    """What the conditions, all of which hold, say is equal."""
    for condition in conditions:
        for part in conjuncts(condition):
            if isinstance(part, exp.EQ):
                yield part.this.unnest(), part.expression.unnest()


def united(
    owners: Sequence[Ownership], equal: Iterable[Equality], kind_of: KindOf
) -> tuple[tuple[Ownership, ...], list[exp.Expr]]:
    """The owners with those together whose ids must be equal; and equalities that say so.

    Where rows are known to have one owner by a key, what they are is written down as an equality of
    the ids: no key needs to be believed.
    """
    classes = _Classes()
    ids = {form for owner in owners for form in owner.ids}
    for left, right in equal:
        spend()
        if not all(isinstance(side, exp.Column) or side in ids for side in (left, right)):
            continue
        one, other = kind_of(left), kind_of(right)
        if one is not None and other is not None and one.joins_with(other):
            classes.join(left, right)
    added: list[exp.Expr] = []
    left_over = list(owners)
    done: list[Ownership] = []
    while left_over:
        whole = left_over.pop(0)
        while True:
            spend(1 + len(left_over))
            partner = next((o for o in left_over if _meet(whole, o, classes) is not None), None)
            if partner is None:
                break
            left_over.remove(partner)
            if _meet(whole, partner, classes) is False:
                added.append(exp.EQ(this=whole.id, expression=partner.id))
            whole = Ownership(
                (*whole.ids, *partner.ids)[:MOST_IDS],
                whole.word,
                whole.single and partner.single,
                (*whole.anchors, *partner.anchors)[:MOST_IDS],
            )
        done.append(_with_equal(whole, classes))
    return tuple(done), added


def _with_equal(whole: Ownership, classes: _Classes) -> Ownership:
    ids = dict.fromkeys([*whole.ids, *(o for i in whole.ids for o in classes.members(i))])
    return replace(whole, ids=tuple(ids)[:MOST_IDS])


def _meet(one: Ownership, other: Ownership, classes: _Classes) -> bool | None:
    """True: their ids are equal. False: their keys are, so the ids must be. None: neither."""
    if any(classes.same(a, b) for a in one.ids for b in other.ids):
        return True
    for anchor in one.anchors:
        for further in other.anchors:
            if (anchor.table, anchor.key) == (further.table, further.key) and all(
                classes.same(a, b) for a, b in zip(anchor.columns, further.columns, strict=True)
            ):
                return False
    return None


class _Classes:
    """Expressions that are equal on every row."""

    def __init__(self) -> None:
        self._leaders: dict[exp.Expr, exp.Expr] = {}

    def join(self, one: exp.Expr, other: exp.Expr) -> None:
        first, second = self._leader(one), self._leader(other)
        if first != second:
            spend(len(self._leaders))
            for member, leader in self._leaders.items():
                if leader == second:
                    self._leaders[member] = first

    def same(self, one: exp.Expr, other: exp.Expr) -> bool:
        spend()
        return one == other or (
            one in self._leaders
            and other in self._leaders
            and self._leaders[one] == self._leaders[other]
        )

    def members(self, one: exp.Expr) -> list[exp.Expr]:
        if one not in self._leaders:
            return []
        return [m for m, leader in self._leaders.items() if leader == self._leaders[one]]

    def _leader(self, one: exp.Expr) -> exp.Expr:
        return self._leaders.setdefault(one, one)
