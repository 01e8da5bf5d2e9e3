"""What one measurement is about: its statements, one for each isomorphism class of residuals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from functools import cached_property, lru_cache
from math import prod

from sqlrs.planning.same_values import same_values
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residual, Residuals

Progress = Callable[[int, int, str], None]
Values = Mapping[Members, int]
Fold = Callable[[Values], Fraction]
Settled = Callable[[Values, Values], Fraction | None]
Gauge = Callable[[Values], tuple[int, ...]]

# Seconds of a value beside which another look at the sensitivity is nothing.
_LONG = 0.05


@dataclass(frozen=True)
class Folding:
    """How all T_E become the one number that a release needs, where that may be tried often.

    ``settled``: the number, of the least and the largest that the values can be; None where they
    do not say which it is.
    ``gauge``: about how much the values make of each number of which it is the largest, where the
    values that are given first make the most of it.
    ``factors``: sets whose T_C have a product that T_E does not exceed.
    """

    settled: Settled
    gauge: Callable[[Values], Gauge] | None = None
    factors: Mapping[Members, tuple[Members, ...]] = field(default_factory=dict)

    @classmethod
    def exactly(cls, fold: Fold) -> Folding:
        """By the number itself, which does not fall where a value grows."""

        def settled(least: Values, most: Values) -> Fraction | None:
            number = fold(least)
            return number if number == fold(most) else None

        return cls(settled)


class Work:
    """The count, if it is wanted, one residual of each class, and who hears of them."""

    def __init__(
        self,
        residuals: Residuals,
        wanted: Iterable[Members],
        progress: Progress | None,
        *,
        counted: bool = True,
        factors: Mapping[Members, tuple[Members, ...]] | None = None,
    ) -> None:
        if residuals.query.weighted and residuals.query.distinct is not None:
            raise AssertionError("the weights of distinct outputs are bounded, never measured")
        self.residuals = residuals
        self.wanted = tuple(wanted)
        self.progress = progress
        self.heard = 0
        self.seconds: dict[Members, float] = {}
        self.factors = factors or {}
        parts, self.same = _classes(residuals, self.wanted)
        everything = residuals.of(residuals.query.everything)
        self.statements = [everything] if counted else []
        self.statements += [p for p in parts if self.same[p.members] == p.members]

    def took_long(self) -> list[Residual]:
        """The residuals but the query itself whose statements took long."""
        seconds, whole = self.seconds, self.residuals.query.everything
        return [
            part
            for part in self.statements
            if part.members in seconds and seconds[part.members] >= _LONG and part.members != whole
        ]

    def values(self, measured: Values) -> Values:
        """T_E of every wanted set from the values of the statements."""
        parts = {part: measured[one] for part, one in self.same.items()}
        return self.residuals.assemble(self.wanted, parts)

    def rounds(self) -> list[list[Residual]]:
        """The count with the largest residuals, which matter most, then ever smaller ones."""
        size: dict[Members, int] = {}
        for members in self.wanted:
            for part in self.residuals.parts(members):
                if not part.decided:
                    one = self.same[part.members]
                    size[one] = max(size.get(one, 0), len(members))
        largest = max(size.values(), default=0)
        for part in self.statements:
            size.setdefault(part.members, largest)
        return [
            [part for part in self.statements if size[part.members] == level]
            for level in sorted(set(size.values()), reverse=True)
        ]

    def between(
        self, known: Values, limits: Values
    ) -> tuple[dict[Members, int], dict[Members, int]]:
        """The least and the largest that every value can be, by what is known of the others."""
        least = {**dict.fromkeys(limits, 0), **known}
        for members, parts in reversed(self._factors):
            if len(parts) == 1:
                (part,) = parts
                least[part] = max(least[part], least[members])
        return least, self.at_most({**limits, **known})

    def at_most(self, limits: Values) -> dict[Members, int]:
        """Limits that are nowhere above the product of those of a set's factors."""
        most = dict(limits)
        for members, parts in self._factors:
            most[members] = min(most[members], prod(most[part] for part in parts))
        return most

    @cached_property
    def _factors(self) -> list[tuple[Members, tuple[Members, ...]]]:
        """Of statements those whose value no product of others exceeds; factors come first."""
        statements = {part.members for part in self.statements}
        found = []
        for members, factors in self.factors.items():
            if members in statements and self.same.get(members) == members:
                parts = (part for factor in factors for part in self.residuals.parts(factor))
                open_ = tuple(self.same.get(p.members, p.members) for p in parts if not p.decided)
                if members not in open_ and statements.issuperset(open_):
                    found.append((members, open_))
        return sorted(found, key=lambda one: len(one[0]))

    def hear(self, count: int) -> None:
        """Tell the listener of the next ones, in an order that follows from the query alone."""
        if self.progress is None:
            return
        for part in self._order[self.heard : self.heard + count]:
            self.tell(part)

    def tell(self, part: Residual) -> None:
        """Tell the listener what is next."""
        self.heard += 1
        if self.progress is not None:
            self.progress(self.heard, len(self.statements), str(part))

    @cached_property
    def _order(self) -> list[Residual]:
        return [part for parts in self.rounds() for part in parts]


@lru_cache(maxsize=128)
def _classes(
    residuals: Residuals, wanted: tuple[Members, ...]
) -> tuple[tuple[Residual, ...], dict[Members, Members]]:
    """The parts that only data can tell, and for each of them the one that has its value."""
    parts = residuals.undecided(wanted)
    return parts, {part: one.members for part, one in same_values(parts).items()}
