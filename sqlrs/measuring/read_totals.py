"""The totals of several queries by one statement, where they differ in their weights alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlrs.engines.base import Row
from sqlrs.measures import KeyDomain, Ordinals, Signed
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.measuring.groups import NumberedGroups
from sqlrs.planning.key_joins import joins_by_keys
from sqlrs.records import dataclass
from sqlrs.sql.side_by_side import SideBySide

_MOST_TOGETHER = 20
"""Queries of one statement: one with a hundred sums takes an engine long to plan."""


@dataclass(frozen=True, repr=False)
class ReadTotals:
    """The numbers of one query in each group in which it is not 0. Private."""

    signed: Signed
    domains: tuple[KeyDomain, ...]
    numbers: dict[Ordinals, int]

    def __repr__(self) -> str:
        return "ReadTotals(private)"

    def of(self, signed: Signed, domains: Sequence[KeyDomain]) -> bool:
        """Whether these are the totals of that very query, over those very groups."""
        own = self.domains
        return (
            self.signed is signed
            and len(own) == len(domains)
            and all(one is other for one, other in zip(own, domains, strict=True))
        )


@dataclass(frozen=True)
class Together:
    """Queries that one statement reads."""

    queries: tuple[Signed, ...]
    domains: tuple[KeyDomain, ...]
    sides: SideBySide

    def read(
        self, evaluator: Evaluator, rows: tuple[tuple[Row, ...], ...] | None
    ) -> list[ReadTotals]:
        """Run the statement; ``rows`` are those of the domains, where they are known."""
        groups = NumberedGroups(self.queries[0].keys, self.domains, rows)
        found = groups.totals_side_by_side(self.sides, evaluator)
        return [
            ReadTotals(signed, self.domains, numbers)
            for signed, numbers in zip(self.queries, found, strict=True)
        ]


def read_side_by_side(wanted: Iterable[tuple[Signed, Sequence[KeyDomain]]]) -> Iterator[Together]:
    """The queries that are read together: two or more, over the same groups.

    Only where joining everything before any grouping is as quick as any other way.
    """
    waiting = [(signed, tuple(domains)) for signed, domains in wanted]
    while waiting:
        first, domains = waiting.pop(0)
        if first.query.distinct is not None or not joins_by_keys(first.query.atoms):
            continue
        found, sides = [first], None
        for place in range(len(waiting) - 1, -1, -1):
            signed, others = waiting[place]
            if signed is first or (signed.keys, others) != (first.keys, domains):
                continue
            if len(found) < _MOST_TOGETHER:
                tried = SideBySide.of([one.query for one in (*found, signed)])
                if tried is not None:
                    found.append(signed)
                    sides = tried
                    del waiting[place]
        if sides is not None:
            yield Together(tuple(found), domains, sides)
