"""Values T_E that another statement reads on its way: of a count with its sum, of a total."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from functools import partial

from sqlglot import exp

from sqlrs.engines.base import Snapshot, integers
from sqlrs.measuring.work import Work
from sqlrs.records import dataclass
from sqlrs.residuals.isomorphism import isomorphic
from sqlrs.residuals.residual import Members, Residual, Residuals
from sqlrs.sql.plain import largest_side_by_side
from sqlrs.sql.side_by_side import SideBySide
from sqlrs.trees.kept import Kept


@dataclass(repr=False)
class ReadOnTheWay:
    """Sums that will be wanted, and the values that were read beside others. Private.

    ``_long``: residuals of any query that took long on the snapshot that is open.
    """

    sums: list[Residuals] = field(default_factory=list)
    _read: list[tuple[Residuals, Members, int]] = field(default_factory=list)
    _long: list[tuple[Residual, int]] = field(default_factory=list)

    def __repr__(self) -> str:
        return "ReadOnTheWay(private)"

    def expect(self, wanted: Iterable[Residuals]) -> None:
        """These sums are about to be measured on the snapshot that is open, after their counts."""
        self.sums += [one for one in wanted if one.query.weighted and one.query.distinct is None]

    def learn(self, residuals: Residuals, members: Members, value: int) -> None:
        """Keep a value that was read on the way to something else, on the same snapshot."""
        self._read.append((residuals, members, value))

    def read(self, residuals: Residuals, members: Members) -> int | None:
        """A value that was read on the way, None where it was not."""
        own = (value for one, m, value in self._read if one is residuals and m == members)
        return next(own, None)

    def learn_long(self, residual: Residual, value: int) -> None:
        """Keep a value that took long, on the same snapshot.

        What reaches across its boundary may be read otherwise in another query.
        """
        if not residual.external:
            self._long.append((residual, value))

    def of_another(self, residual: Residual) -> int | None:
        """The value of a residual that was one of another query already, None where it was not."""
        size = len(residual.members), len(residual.boundary)
        same = (
            value
            for other, value in self._long
            if (len(other.members), len(other.boundary)) == size and isomorphic(other, residual)
        )
        return next(same, None)

    def known(self, work: Work, snapshot: Snapshot, kept: Kept) -> dict[Members, int]:
        """The values that are there already, or are read now together with those of a sum."""
        own = work.residuals
        found = {members: value for one, members, value in self._read if one is own}
        if own.query.weighted:
            return found
        for other in self.sums:
            read = {members for one, members, _ in self._read if one is other}
            sides = kept.of((own, other), partial(_beside, own, other))
            if sides is not None:
                for part in work.statements:
                    if part.members not in found.keys() | read and is_grouped_table(part):
                        statement = kept.of((part, sides), partial(_largest, part, sides))
                        value, total = integers(snapshot.rows(statement))
                        found[part.members] = value
                        self.learn(other, part.members, total)
        return found


def _beside(count: Residuals, other: Residuals) -> SideBySide | None:
    """The count and the sum as one query; None where it is another one."""
    if other.query.unweighted != count.query or other.reading != count.reading:
        return None
    return SideBySide.with_count(other.query)


def _largest(part: Residual, sides: SideBySide) -> exp.Select:
    return largest_side_by_side(replace(part, query=sides.query), sides)


def is_grouped_table(part: Residual) -> bool:
    """Whether there is one way to measure it: to group the rows of its table."""
    return len(part.members) == 1 and not part.external and bool(part.boundary)
