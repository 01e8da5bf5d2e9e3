"""Foreign keys of a database, as a whole: which columns hold the key of which table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlrs.catalog import Column
from sqlrs.units import Link

Relation = tuple[str, str]
ForeignKey = tuple[Relation, Sequence[str], Relation, Sequence[str]]
"""Of which table, which of its columns, to which table, and which columns of that."""


def references(
    columns: Mapping[Relation, Iterable[Column]],
    found: Iterable[ForeignKey],
    folded: Callable[[str], str] = str,
) -> dict[Relation, tuple[Link, ...]]:
    """The foreign keys of each table, by the names that the catalog has.

    One to or of something that is not in the catalog is left out. ``folded``: the form in which two
    names of the database are the same.
    """
    relations = {_folded(relation, folded): relation for relation in columns}
    names = {
        relation: {folded(one.name): one.name for one in described}
        for relation, described in columns.items()
    }
    links: dict[Relation, set[Link]] = defaultdict(set)
    for table, own, other, theirs in found:
        place, target = (relations.get(_folded(one, folded)) for one in (table, other))
        if place is None or target is None:
            continue
        here = [names[place].get(folded(one)) for one in own]
        there = [names[target].get(folded(one)) for one in theirs]
        if None not in (*here, *there):
            link = Link(tuple(filter(None, here)), target, tuple(filter(None, there)))
            links[place].add(link)
    return {place: tuple(sorted(some, key=_order)) for place, some in links.items()}


def _order(link: Link) -> tuple[object, ...]:
    return (link.columns, link.table, link.key)


def _folded(relation: Relation, folded: Callable[[str], str]) -> Relation:
    return (folded(relation[0]), folded(relation[1]))
