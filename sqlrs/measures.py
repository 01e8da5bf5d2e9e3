"""What one released column is made of: signed sums of conjunctive queries over public groups."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import cached_property

from sqlrs.catalog import ColumnType, Table
from sqlrs.errors import Span
from sqlrs.query import Constant, Query, Term
from sqlrs.records import dataclass

Ordinals = tuple[int, ...]
"""A group: the number of its row in each domain, in the order of the domain's rows, from 0 on."""


@dataclass(frozen=True)
class Signed:
    """A query and how often it counts. ``keys``: where each group key stands in it, None for NULL.

    The variables of the keys belong to the output of a DISTINCT query, and so do those of the
    ``owners``: where units are protected, the ids of all units that own a result. A result belongs
    to the set of them; two ids may be of the same unit.
    """

    coefficient: int
    query: Query
    keys: tuple[Term | None, ...] = ()
    owners: tuple[Term, ...] = ()

    def __post_init__(self) -> None:
        if self.coefficient == 0:
            raise ValueError("a query that counts 0 times is left out")
        named = (*self.keys, *self.owners)
        variables = {term for term in named if term is not None and not isinstance(term, Constant)}
        held = self.query.variables(self.query.everything)
        if not variables <= (held if self.query.distinct is None else self.query.distinct):
            raise ValueError("a group key or an owner is not in the output of its query")


@dataclass(frozen=True)
class PerUnit:
    """What each unit contributes, by SQL whose results for one unit read rows of that unit alone.

    ``select`` has the columns ``owner`` (the unit's id, never NULL), k0, k1, … of the group keys
    and ``number``, a whole number; several rows may have the same owner and keys, then their
    numbers are added up. ``tables`` are all that it reads.
    ``signed``: a number may be below 0. ``most``: what the numbers of one unit add up to at most on
    every database, without their signs; None where only the data tell. ``texts``: plain texts that
    are compared with values of another type, and that type.
    """

    select: Hashable
    tables: frozenset[Table]
    signed: bool = False
    most: int | None = None
    weighted: bool = False
    texts: tuple[tuple[str, ColumnType], ...] = ()


@dataclass(frozen=True)
class Measure:
    """A signed sum of queries for each group; ``unit`` is what one of its whole numbers is worth.

    Without any term it is 0 on every database. ``per_unit`` stands in the place of terms where
    units are protected and no conjunctive query says what each contributes.
    """

    terms: tuple[Signed, ...]
    unit: Fraction = Fraction(1)
    per_unit: PerUnit | None = None

    def __post_init__(self) -> None:
        if self.terms and self.per_unit is not None:
            raise ValueError("a measure is a sum of queries or one statement by unit, not both")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Looked up many times in a release, and made of all tables and conditions."""
        return hash((self.terms, self.unit, self.per_unit))

    def __getstate__(self) -> dict[str, object]:
        # Another process has other hashes.
        return {name: value for name, value in vars(self).items() if name != "_hash"}

    @property
    def is_count(self) -> bool:
        """Whether it counts rows, with signs."""
        weighted = any(term.query.weighted for term in self.terms)
        if self.per_unit is not None:
            weighted = self.per_unit.weighted
        return self.unit.denominator == 1 and not weighted


@dataclass(frozen=True)
class KeyDomain:
    """The values of some keys as a statement over public tables and constants alone.

    ``select`` has one column for each of ``keys``, called k0, k1, … by the key's number, and no row
    twice; NULL is among them where a key may be NULL. ``origin``: why they are known, in words.
    """

    keys: tuple[int, ...]
    select: Hashable
    origin: str

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.keys, self.select, self.origin))

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_hash"}


Asked = tuple[tuple[KeyDomain, ...], Measure]
"""What is released as one: a measure for all groups."""


@dataclass(frozen=True)
class Aggregation:
    """One released relation: its groups are all combinations of a row of each domain.

    Its columns are k0, k1, … of the keys and a0, a1, …: ``columns`` says of each which measure.
    ``place``: where the text names the keys.
    """

    name: str
    domains: tuple[KeyDomain, ...]
    measures: tuple[Measure, ...]
    columns: tuple[int, ...]
    place: Span | None = field(default=None, compare=False)

    @property
    def asked(self) -> tuple[Asked, ...]:
        """Each measure with the domains of its groups; equal ones are released once."""
        return tuple((self.domains, measure) for measure in self.measures)

    @property
    def keys(self) -> int:
        """The number of keys."""
        return sum(len(domain.keys) for domain in self.domains)


@dataclass(frozen=True)
class Contributions:
    """What all units contribute, by how much that is for one unit in all. Private.

    A unit's numbers, without their signs, add up to its size. It stands at the place of the first
    threshold of the ``grid`` that is not below its size, or at the last place, behind all of them.
    ``units``: how many stand at each place; ``below``: how many of them have a sum below 0.
    ``totals``: the sum of their numbers at each place, by group; a group that is left out has none.
    """

    grid: tuple[int, ...]
    units: tuple[int, ...]
    below: tuple[int, ...]
    totals: Mapping[Ordinals, tuple[int, ...]]

    def __post_init__(self) -> None:
        places = len(self.grid) + 1
        if {len(self.units), len(self.below), *map(len, self.totals.values())} != {places}:
            raise ValueError("contributions have a place for each threshold and one behind")


@dataclass(frozen=True, repr=False)
class OwnedResults:
    """All results of a query by their owners. Private.

    Row by row: ``owners`` has a column for each place at which a unit stands, with a number that
    names it. A unit may stand at several places of a row, and the same units in several rows.
    ``weights``: what the results of a row add up to, above 0.
    """

    owners: tuple[Sequence[int], ...]
    weights: Sequence[int]

    def __post_init__(self) -> None:
        if {len(column) for column in self.owners} != {len(self.weights)}:
            raise ValueError("results have a unit at each place")

    def __repr__(self) -> str:
        return "OwnedResults(private)"
