"""What one released column is made of: signed sums of conjunctive queries over public groups."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction

from sqlrs.query import Constant, Query, Term

Ordinals = tuple[int, ...]
"""A group: the number of its row in each domain, in the order of the domain's rows, from 0 on."""


@dataclass(frozen=True)
class Signed:
    """A query and how often it counts. ``keys``: where each group key stands in it, None for NULL.

    The variables of the keys belong to the output of a DISTINCT query.
    """

    coefficient: int
    query: Query
    keys: tuple[Term | None, ...] = ()

    def __post_init__(self) -> None:
        if self.coefficient == 0:
            raise ValueError("a query that counts 0 times is left out")
        variables = {key for key in self.keys if key is not None and not isinstance(key, Constant)}
        held = self.query.variables(self.query.everything)
        if not variables <= (held if self.query.distinct is None else self.query.distinct):
            raise ValueError("a group key is not in the output of its query")


@dataclass(frozen=True)
class Measure:
    """A signed sum of queries for each group; ``unit`` is what one of its whole numbers is worth.

    Without any term it is 0 on every database.
    """

    terms: tuple[Signed, ...]
    unit: Fraction = Fraction(1)

    @property
    def is_count(self) -> bool:
        """Whether it counts rows, with signs."""
        return self.unit.denominator == 1 and not any(term.query.weighted for term in self.terms)


@dataclass(frozen=True)
class KeyDomain:
    """The values of some keys as a statement over public tables and constants alone.

    ``select`` has one column for each of ``keys``, called k0, k1, … by the key's number, and no row
    twice; NULL is among them where a key may be NULL. ``origin``: why they are known, in words.
    """

    keys: tuple[int, ...]
    select: Hashable
    origin: str


Asked = tuple[tuple[KeyDomain, ...], Measure]
"""What is released as one: a measure for all groups."""


@dataclass(frozen=True)
class Aggregation:
    """One released relation: its groups are all combinations of a row of each domain.

    Its columns are k0, k1, … of the keys and a0, a1, …: ``columns`` says of each which measure.
    """

    name: str
    domains: tuple[KeyDomain, ...]
    measures: tuple[Measure, ...]
    columns: tuple[int, ...]

    @property
    def asked(self) -> tuple[Asked, ...]:
        """Each measure with the domains of its groups; equal ones are released once."""
        return tuple((self.domains, measure) for measure in self.measures)

    @property
    def keys(self) -> int:
        """The number of keys."""
        return sum(len(domain.keys) for domain in self.domains)
