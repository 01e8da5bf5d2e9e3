"""Columns that are equal: a union-find over the columns, with the constants they equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlrs.catalog import ColumnType, Family
from sqlrs.conditions import Reference
from sqlrs.query import Constant, Term, Value, Variable

# Equal values of these families behave alike in every expression, whatever the declared width.
_ALIKE = frozenset(
    {
        Family.INTEGER,
        Family.TEXT,
        Family.DATE,
        Family.TIMESTAMP,
        Family.TIMESTAMP_TZ,
        Family.BOOLEAN,
    }
)


class Equalities:
    """Which columns are equal, in the order of the query's tables and columns."""

    def __init__(self, types: Mapping[Reference, ColumnType]) -> None:
        self._types = types
        self._leader = {place: place for place in types}
        self._order = {place: i for i, place in enumerate(types)}
        self._values: dict[Reference, set[Value]] = {}

    def type_of(self, place: Reference) -> ColumnType:
        """The column's own type."""
        return self._types[place]

    def leader(self, place: Reference) -> Reference:
        """The first column that is equal to this one."""
        while self._leader[place] != place:
            place = self._leader[place]
        return place

    def join(self, one: Reference, other: Reference) -> None:
        """Record that two columns are equal."""
        first, second = sorted((self.leader(one), self.leader(other)), key=self._order.__getitem__)
        if first != second:
            self._leader[second] = first
            self._values.setdefault(first, set()).update(self._values.pop(second, set()))

    def bind(self, place: Reference, value: Value) -> None:
        """Record that a column equals a constant."""
        self._values.setdefault(self.leader(place), set()).add(value)

    def members(self, place: Reference) -> tuple[Reference, ...]:
        """All columns equal to this one, itself included."""
        leader = self.leader(place)
        return tuple(other for other in self._types if self.leader(other) == leader)

    def contradictory(self) -> bool:
        """Whether some column would equal two different constants."""
        return any(len(values) > 1 for values in self._values.values())

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


def behave_alike(types: Iterable[ColumnType]) -> bool:
    """Whether equal values of these types can stand for each other in any expression."""
    distinct = set(types)
    return len({t.family for t in distinct}) <= 1 and all(
        t.family in _ALIKE
        and t.collation is None
        and not t.name.lower().startswith(("char(", "character(", "bpchar"))
        for t in distinct
    )
