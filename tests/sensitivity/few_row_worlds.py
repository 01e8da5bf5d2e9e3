"""Tiny worlds of units that own rows of several tables, truncated by brute force.

A unit's content is what it owns, table by table, before truncation. A database is a content for
each of a few units, some of them without any row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from itertools import combinations_with_replacement, product
from typing import Any

from sqlrs.catalog import Table

Row = tuple[Any, ...]
Content = Mapping[str, tuple[Row, ...]]
Instance = dict[str, tuple[Row, ...]]
Truncate = Callable[[Table, Sequence[Row]], list[Row]]


def place(row: Row) -> tuple[object, ...]:
    """The fixed order: a hash of the row's texts, then the texts; NULL before all others."""
    texts = [None if value is None else str(value) for value in row]
    told = ",".join(text or "" for text in texts)
    return (
        md5(told.encode(), usedforsecurity=False).hexdigest(),
        *((text is not None, (text or "").encode()) for text in texts),
    )


def few(table: Table, rows: Sequence[Row]) -> list[Row]:
    """The rows of one unit that are used."""
    return sorted(rows, key=place)[: table.max_rows]


@dataclass(frozen=True)
class Units:
    """So many units, each with one of the contents that it can have."""

    tables: tuple[Table, ...]
    contents: Callable[[int], Sequence[Content]]
    size: int = 2

    def used(self, unit: int, truncate: Truncate = few) -> list[Content]:
        """What can be read of a unit, each once: most contents differ in rows that are not."""
        found = {}
        for own in self.contents(unit):
            kept = {t.label: tuple(sorted(truncate(t, own[t.label]))) for t in self.tables}
            found[tuple(kept.values())] = kept
        return list(found.values())

    def instance(self, owned: Iterable[Content]) -> Instance:
        """The rows of all units together."""
        return {t.label: tuple(sorted(r for o in owned for r in o[t.label])) for t in self.tables}

    def common(self, truncate: Truncate = few) -> Iterator[tuple[Content, ...]]:
        """All that the other units can have."""
        yield from product(*(self.used(unit, truncate) for unit in range(2, 1 + self.size)))

    def around(
        self, common: Sequence[Content], truncate: Truncate = few
    ) -> Iterator[tuple[Content, ...]]:
        """The others alone, and with one more unit: each two of these are neighbours."""
        yield tuple(common)
        for unit in range(2):
            yield from ((*common, own) for own in self.used(unit, truncate))


def bags(rows: Sequence[Row], most: int) -> list[tuple[Row, ...]]:
    """All bags of up to so many of the rows."""
    return [bag for size in range(most + 1) for bag in combinations_with_replacement(rows, size)]
