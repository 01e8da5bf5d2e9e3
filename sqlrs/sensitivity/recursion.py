"""The recursion of the refined bound as a value: how a change of one unit moves every T_E.

T is the vector of the values T_E that the recursion needs. Ψ_r is monotone, and T(I) ≤ Ψ_r(T(I'))
whenever I and I' differ in one row of table r:

    Ψ_r(T)_E = min(cap_E, T_E + g_{E,r}(T), Π_C Ψ_r(T)_C)

Proofs: docs/proofs/refined.md (step, caps, products) and docs/proofs/feasible_roles.md (g).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import repeat
from math import prod

from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members
from sqlrs.sensitivity.feasible import RoleFamily

Vector = tuple[int, ...]
TableFamilies = tuple[tuple[str, tuple[RoleFamily, ...]], ...]


@dataclass(frozen=True)
class Gain:
    """Σ_F T_{E−F} over one family of role sets; the decided values are added up beforehand."""

    constant: int
    terms: tuple[int, ...]

    def __call__(self, values: Sequence[int]) -> int:
        """The sum for the given vector T."""
        return self.constant + sum([values[i] for i in self.terms])


@dataclass(frozen=True)
class Move:
    """How one coordinate T_E may grow: by its greatest gain, and not beyond its product.

    Of a sum of weights the product has a ``divisor``, and ``most`` is a number and the coordinate
    that it multiplies, beyond which the sum does not grow either: docs/proofs/weighted.md.
    """

    target: int
    gains: tuple[Gain, ...]
    factors: tuple[int, ...] | None
    divisor: int = 1
    most: tuple[int, int] | None = None


@dataclass(frozen=True)
class Step:
    """Ψ_r: the growth of all coordinates when the rows of one unit of the table change.

    That is the growth by one row as often as a unit has rows: docs/proofs/rows_per_unit.md.
    """

    table: str
    moves: tuple[Move, ...]
    rows: int = 1

    def __call__(self, values: Vector) -> Vector:
        """The vector Ψ_r(T)."""
        for _ in range(self.rows):
            values = self.by_one_row(values)
        return values

    def by_one_row(self, values: Vector) -> Vector:
        """The vector T after the change of a single row."""
        grown = list(values)
        for move in self.moves:
            value = values[move.target] + largest(move.gains, values)
            if move.factors is not None:
                product = prod([grown[i] for i in move.factors])
                # Rounded up: what is positive stays so, and on data the quotient is whole.
                value = min(value, -(-product // move.divisor))
            if move.most is not None:
                bound, count = move.most
                value = min(value, bound * grown[count])
            grown[move.target] = value
        return tuple(grown)

    @cached_property
    def largest_gains(self) -> tuple[tuple[int, Gain], ...]:
        """For each target a gain that is at least each of the move's gains."""
        return tuple((move.target, union(move.gains)) for move in self.moves)

    @property
    def cost(self) -> int:
        """The number of additions of one application, about."""
        once = sum(2 + len(gain.terms) for move in self.moves for gain in move.gains)
        return self.rows * once


Group = tuple[Step, ...]


def apply(group: Group, values: Vector) -> Vector:
    """Ψ_g = max over the tables of a group, which take their steps together."""
    grown = group[0](values)
    for step in group[1:]:
        grown = tuple(map(max, grown, step(values)))
    return grown


@dataclass(frozen=True)
class Roles:
    """What the query alone says about one residual, for an explanation."""

    members: Members
    decided: bool
    components: tuple[Members, ...]
    families: TableFamilies


@dataclass(frozen=True)
class Recursion:
    """T's coordinates, Ψ_r of each private table that moves one of them, and L's gains by table.

    ``movers`` holds Ψ_r of the table of each of ``answers``, also where it moves nothing.
    """

    coordinates: tuple[Members, ...]
    steps: tuple[Step, ...]
    answers: tuple[tuple[Gain, ...], ...]
    movers: tuple[Step, ...]
    roles: tuple[Roles, ...]

    @cached_property
    def largest_answers(self) -> tuple[Gain, ...]:
        """For each table a gain that is at least each of L's gains."""
        return tuple(map(union, self.answers))

    def last(self, values: Vector) -> int:
        """L(T): a bound of the change of the answer when the rows of one unit change."""
        changes = map(_change, self.answers, self.movers, repeat(values))
        return max(changes, default=0)


def _change(gains: tuple[Gain, ...], mover: Step, values: Vector) -> int:
    """What the rows of one unit of a table add to the answer, one after the other."""
    change = largest(gains, values)
    for _ in range(mover.rows - 1):
        values = mover.by_one_row(values)
        change += largest(gains, values)
    return change


def largest(gains: tuple[Gain, ...], values: Sequence[int]) -> int:
    """The maximum over patterns of the sum over the role sets that are feasible there."""
    if len(gains) == 1:
        return gains[0](values)
    return max((gain(values) for gain in gains), default=0)


def union(gains: tuple[Gain, ...]) -> Gain:
    """A gain that is at least each of the given ones."""
    if len(gains) == 1:
        return gains[0]
    terms = Counter[int]()
    for gain in gains:
        terms |= Counter(gain.terms)
    return Gain(max((g.constant for g in gains), default=0), tuple(terms.elements()))
