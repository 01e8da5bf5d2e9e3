"""The step bound Ψ_r of every private table, compiled from the query alone.

T is the vector of the values T_E that the recursion needs. Ψ_r is monotone, and T(I) ≤ Ψ_r(T(I'))
whenever I and I' differ in one row of table r:

    Ψ_r(T)_E = min(cap_E, T_E + g_{E,r}(T), Π_C Ψ_r(T)_C)

Proofs: docs/proofs/refined.md (step, caps, products) and docs/proofs/feasible_roles.md (g).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import repeat
from math import prod

from sqlrs.catalog import Table
from sqlrs.query import Predicate, Variable
from sqlrs.refusals import refusal
from sqlrs.residuals.isomorphism import Classes
from sqlrs.residuals.residual import Members, Residual, Residuals
from sqlrs.sensitivity.feasible import Budget, RoleFamily, role_families

Vector = tuple[int, ...]

# A release runs one statement, planned beforehand, for each class of isomorphic parts.
MAX_STATEMENTS = 256

# Comparing all pairs of gains is worth it only while they are few; the maximum is the same.
_FEW_GAINS = 64


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
    """How one coordinate T_E may grow: by its greatest gain, and not beyond its product."""

    target: int
    gains: tuple[Gain, ...]
    factors: tuple[int, ...] | None


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
                value = min(value, prod([grown[i] for i in move.factors]))
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
_Linked = tuple[Members, frozenset[Variable]]


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
    families: tuple[tuple[str, tuple[RoleFamily, ...]], ...]


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


@lru_cache(maxsize=128)
def compile_recursion(residuals: Residuals) -> Recursion:
    """All that the refined bound needs to know about a query; no data."""
    return _Compiler(residuals).compile()


def open_part(residuals: Residuals, members: Members) -> Members:
    """E without its decided parts, whose value is one: T_E = T of what is left."""
    return Members().union(*(part.members for part in residuals.parts(members) if not part.decided))


def components(residuals: Residuals, members: Members) -> tuple[Members, ...]:
    """The sets C with T_E ≤ Π T_C; atoms whose row the boundary determines are left out.

    Two atoms are together when they share a variable that the boundary does not determine, or when
    a predicate that one of the components keeps spans them outside the determined variables.
    """
    query, residual = residuals.query, residuals.of(members)
    # Each group with its variables that the boundary does not determine.
    groups = [
        (frozenset({i}), query.atoms[i].variables - residual.determined)
        for i in sorted(members - residual.determined_atoms)
    ]

    def linked(one: _Linked, other: _Linked) -> bool:
        here, there = one[1], other[1]
        return not here.isdisjoint(there) or any(
            not p.variables.isdisjoint(here) and not p.variables.isdisjoint(there)
            for p in _kept(residuals, one[0]) + _kept(residuals, other[0])
        )

    merged = True
    while merged:
        merged = False
        for place, one in enumerate(groups):
            together = [one, *(other for other in groups[place + 1 :] if linked(one, other))]
            if len(together) > 1:
                rest = [group for group in groups if group not in together]
                whole = Members().union(*(m for m, _ in together))
                free = frozenset[Variable]().union(*(v for _, v in together))
                groups = sorted([*rest, (whole, free)], key=lambda group: sorted(group[0]))
                merged = True
                break
    return tuple(m for m, _ in groups)


def _kept(residuals: Residuals, members: Members) -> tuple[Predicate, ...]:
    """The kept predicates that can span; an inequality is kept only inside one component."""
    query = residuals.query
    if not query.comparisons and not query.generals:
        return ()
    residual = residuals.of(members)
    return (*residual.comparisons, *residual.generals)


class _Compiler:
    """Reaches every set that the recursion needs, starting from [n] − F."""

    def __init__(self, residuals: Residuals) -> None:
        self.residuals = residuals
        self.query = residuals.query
        self._open: dict[Members, Members] = {}
        self._families: dict[Hashable, tuple[RoleFamily, ...]] = {}
        self._budget = Budget()
        self._classes = Classes()
        self._parts: dict[Members, Members] = {}
        self._first: dict[tuple[Members, ...], Members] = {}

    def compile(self) -> Recursion:
        """The recursion; coordinates in order of size, so that factors come before products."""
        self._refuse_too_many_statements()
        everything = self.residuals.of(self.query.everything)
        start = self._all_families(everything)
        found: dict[Members, tuple[dict[int, tuple[RoleFamily, ...]], tuple[Members, ...]]] = {}
        # By size: what is left of the budget goes to the large sets, which count the most.
        waiting: list[dict[Members, None]] = [{} for _ in self.query.atoms]
        for members in self._next(everything.members, start, ()):
            waiting[len(members)][members] = None
        while waiting:
            for members in waiting.pop():
                families = self._all_families(self.residuals.of(members))
                parts = components(self.residuals, members)
                found[members] = families, parts
                for smaller in self._next(members, families, parts) - {members}:
                    waiting[len(smaller)][smaller] = None
        coordinates = tuple(sorted(found, key=lambda m: (len(m), sorted(m))))
        place = {members: i for i, members in enumerate(coordinates)}

        def gains(members: Members, families: Iterable[RoleFamily]) -> tuple[Gain, ...]:
            return _undominated(self._gain(members, family, place) for family in families)

        factors = {
            members: tuple(place[part] for part in map(self._opened, parts) if part)
            for members, (_, parts) in found.items()
            if parts != (members,)
        }

        def move(members: Members, table: int) -> Move | None:
            families, _ = found[members]
            if table not in families:
                return None
            return Move(place[members], gains(members, families[table]), factors.get(members))

        steps = [
            Step(
                self._table(table).label,
                tuple(m for c in coordinates if (m := move(c, table))),
                self._table(table).rows_per_unit,
            )
            for table in range(len(self.query.private_tables))
        ]
        return Recursion(
            coordinates=coordinates,
            steps=tuple(step for step in steps if step.moves),
            answers=tuple(gains(everything.members, families) for families in start.values()),
            movers=tuple(steps[table] for table in start),
            roles=tuple(self._describe(everything.members, start, found)),
        )

    def _refuse_too_many_statements(self) -> None:
        classes = set[Members]()
        for members in self.residuals.required:
            for part in self.residuals.parts(members):
                if not part.decided:
                    classes.add(self._part(part))
            if len(classes) > MAX_STATEMENTS:
                raise refusal(
                    "too_many_tables",
                    f"the query has more than {MAX_STATEMENTS} residuals that all differ",
                )

    def _opened(self, members: Members) -> Members:
        """The coordinate of a set: the first set isomorphic to its open part, which may be empty.

        Independent parts may be exchanged one by one.
        """
        if members not in self._open:
            opened = open_part(self.residuals, members)
            parts = map(self._part, self.residuals.parts(opened))
            self._open[members] = self._first.setdefault(tuple(sorted(parts, key=sorted)), opened)
        return self._open[members]

    def _part(self, part: Residual) -> Members:
        if part.members not in self._parts:
            self._parts[part.members] = self._classes.first(part).members
        return self._parts[part.members]

    def _all_families(self, residual: Residual) -> dict[int, tuple[RoleFamily, ...]]:
        """The maximal families of each private table of which the residual can gain by a row."""
        found = {}
        for table, atoms in enumerate(self.query.private_tables):
            candidates = residual.members & atoms
            if candidates and (families := self._families_of(residual, candidates)):
                found[table] = families
        return found

    def _families_of(self, residual: Residual, candidates: Members) -> tuple[RoleFamily, ...]:
        # All that the role sets depend on, so that residuals which agree in it share the work.
        touched = self.query.variables(candidates)
        compared = touched.union(*(p.variables for p in residual.comparisons))
        signature = (
            candidates,
            (residual.boundary | residual.external) & compared,
            frozenset(p for p in residual.inequalities if p.variables <= touched),
            residual.comparisons,
        )
        if signature not in self._families:
            self._families[signature] = role_families(residual, candidates, self._budget)
        return self._families[signature]

    def _next(
        self,
        members: Members,
        families: dict[int, tuple[RoleFamily, ...]],
        parts: tuple[Members, ...],
    ) -> set[Members]:
        roles = {roles for own in families.values() for family in own for roles in family}
        opened = {self._opened(members - r) for r in roles} | {self._opened(p) for p in parts}
        return {m for m in opened if m}

    def _gain(self, members: Members, family: RoleFamily, place: dict[Members, int]) -> Gain:
        left = [self._opened(members - roles) for roles in family]
        return Gain(
            constant=sum(1 for m in left if not m), terms=tuple(sorted(place[m] for m in left if m))
        )

    def _table(self, number: int) -> Table:
        return self.query.atoms[min(self.query.private_tables[number])].table

    def _describe(
        self,
        everything: Members,
        start: dict[int, tuple[RoleFamily, ...]],
        found: dict[Members, tuple[dict[int, tuple[RoleFamily, ...]], tuple[Members, ...]]],
    ) -> Iterable[Roles]:
        def named(
            families: dict[int, tuple[RoleFamily, ...]],
        ) -> tuple[tuple[str, tuple[RoleFamily, ...]], ...]:
            return tuple((self._table(table).label, own) for table, own in families.items())

        yield Roles(everything, False, (), named(start))
        for members in sorted({*found, *self._open}, key=lambda m: (-len(m), sorted(m))):
            if members in found:
                families, parts = found[members]
                yield Roles(members, False, parts, named(families))
            elif not self._opened(members):
                yield Roles(members, True, (), ())


def _undominated(gains: Iterable[Gain]) -> tuple[Gain, ...]:
    """The gains without those that another one contains, term by term."""
    distinct = sorted(set(gains), key=lambda g: (-len(g.terms), -g.constant, g.terms))
    if len(distinct) == 1 or len(distinct) > _FEW_GAINS:
        return tuple(distinct)
    kept: list[tuple[Gain, Counter[int]]] = []
    for gain in distinct:
        count = Counter(gain.terms)
        if not any(gain.constant <= g.constant and count <= c for g, c in kept):
            kept.append((gain, count))
    return tuple(gain for gain, _ in kept)
