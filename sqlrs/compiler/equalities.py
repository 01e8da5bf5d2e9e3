"""Columns that are equal: a union-find over the columns, with the constants they equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from sqlrs.catalog import ColumnType, Family, Value
from sqlrs.compiler.conditions import Reference
from sqlrs.query import Constant, Term, Variable
from sqlrs.values import values_of


class Equalities:
    """Which columns are equal, in the order of the query's tables and columns."""

    def __init__(self, types: Mapping[Reference, ColumnType]) -> None:
        self._types = types
        self._leader = {place: place for place in types}
        self._order = {place: i for i, place in enumerate(types)}
        # Kept for each leader: a text may join thousands of columns, and each asks for its own.
        self._members: dict[Reference, tuple[Reference, ...]] = {p: (p,) for p in types}
        self._values: dict[Reference, set[Value]] = {}

    def type_of(self, place: Reference) -> ColumnType:
        """The column's own type."""
        return self._types[place]

    def leader(self, place: Reference) -> Reference:
        """The first column that is equal to this one."""
        return self._leader[place]

    def join(self, one: Reference, other: Reference) -> None:
        """Record that two columns are equal."""
        first, second = sorted((self.leader(one), self.leader(other)), key=self._order.__getitem__)
        if first != second:
            moved = self._members.pop(second)
            self._leader.update(dict.fromkeys(moved, first))
            both = (*self._members[first], *moved)
            self._members[first] = tuple(sorted(both, key=self._order.__getitem__))
            self._values.setdefault(first, set()).update(self._values.pop(second, set()))

    def bind(self, place: Reference, value: Value) -> None:
        """Record that a column equals a constant."""
        self._values.setdefault(self.leader(place), set()).add(value)

    def release(self, place: Reference) -> None:
        """Forget the constant that a column and all columns equal to it equal."""
        self._values.pop(self.leader(place), None)

    def members(self, place: Reference) -> tuple[Reference, ...]:
        """All columns equal to this one, itself included."""
        return self._members[self.leader(place)]

    def contradictory(self) -> bool:
        """Whether some column would equal two different constants, or one that it cannot hold."""
        return any(
            len(values) > 1 or any(self._beyond(place, values) for place in self.members(leader))
            for leader, values in self._values.items()
        )

    def _beyond(self, place: Reference, values: Iterable[Value]) -> bool:
        kind = self._types[place]
        if kind.family not in (Family.INTEGER, Family.DECIMAL):
            return False
        return not all(_holds(kind, v) for v in values if isinstance(v, int | Decimal))

    def constant(self, place: Reference) -> Constant | None:
        """The constant that the column equals, in the column's type, if there is one."""
        values = self._values.get(self.leader(place))
        return Constant(min(values, key=str), self._types[place]) if values else None

    def terms(self) -> dict[Reference, Term]:
        """The term of every column; variables are named after their first column."""
        names: dict[Reference, str] = {}
        taken: set[str] = set()
        for leader in dict.fromkeys(map(self.leader, self._types)):
            name, number = ".".join(leader), 1
            while name in taken:
                number += 1
                name = f"{'.'.join(leader)}#{number}"
            taken.add(name)
            names[leader] = name
        found: dict[Reference, Term] = {}
        for place in self._types:
            leader = self.leader(place)
            variable = Variable(names[leader], self._types[leader])
            found[place] = self.constant(place) or variable
        return found


def _holds(kind: ColumnType, number: int | Decimal) -> bool:
    """Whether the number is a value of the type: within its bounds, and of no more digits."""
    described = values_of(kind)
    if isinstance(described.last, Decimal) and isinstance(number, Decimal):
        scale, digits = described.last.as_tuple().exponent, number.normalize().as_tuple().exponent
        if isinstance(scale, int) and isinstance(digits, int) and digits < scale:
            return False
    return described.holds(number)
