"""The step bound Ψ_r of every private table, compiled from the query alone.

Every set that the recursion needs is reached from [n], the sets that keys decide or that others are
isomorphic to left out; then each has its gains and its factors. What comes out is a `Recursion`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import lru_cache

from sqlrs.catalog import Table
from sqlrs.query import Query
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.residuals.isomorphism import Classes
from sqlrs.residuals.residual import Members, Residual, Residuals
from sqlrs.sensitivity.components import components
from sqlrs.sensitivity.feasible import Checks, RoleFamily, role_families
from sqlrs.sensitivity.recursion import Gain, Move, Recursion, Roles, Step, TableFamilies

# A release runs one statement, planned beforehand, for each class of isomorphic parts.
MAX_STATEMENTS = 256

# Comparing all pairs of gains is worth it only while they are few; the maximum is the same.
_FEW_GAINS = 64

# By private table: the maximal families of role sets of which a residual can gain by a row.
_Families = Mapping[int, tuple[RoleFamily, ...]]


@lru_cache(maxsize=128)
def compile_recursion(residuals: Residuals) -> Recursion:
    """All that the refined bound needs to know about a query; no data."""
    opened = _OpenSets(residuals)
    opened.refuse_too_many()
    whole, reached = _reach(residuals, opened)
    return _Assembly(residuals.query, opened, whole, reached).recursion()


def open_part(residuals: Residuals, members: Members) -> Members:
    """E without its decided parts, whose value is one: T_E = T of what is left."""
    return Members().union(*(part.members for part in residuals.parts(members) if not part.decided))


@dataclass(frozen=True)
class _Reached:
    """A set that the recursion needs, with its families of role sets and its components."""

    members: Members
    families: _Families
    parts: tuple[Members, ...] = ()

    def smaller(self, opened: _OpenSets) -> set[Members]:
        """The coordinates that its growth is made of."""
        roles = {roles for own in self.families.values() for family in own for roles in family}
        left = {opened(self.members - one) for one in roles} | {opened(p) for p in self.parts}
        return {members for members in left if members}


class _OpenSets:
    """One coordinate for all sets that have the same value by keys and isomorphisms."""

    def __init__(self, residuals: Residuals) -> None:
        self.residuals = residuals
        self.known: dict[Members, Members] = {}
        self._classes = Classes()
        self._parts: dict[Members, Members] = {}
        self._first: dict[tuple[Members, ...], Members] = {}

    def __call__(self, members: Members) -> Members:
        """The coordinate of a set: the first set isomorphic to its open part, which may be empty.

        Independent parts may be exchanged one by one.
        """
        if members not in self.known:
            opened = open_part(self.residuals, members)
            parts = map(self._part, self.residuals.parts(opened))
            self.known[members] = self._first.setdefault(tuple(sorted(parts, key=sorted)), opened)
        return self.known[members]

    def refuse_too_many(self) -> None:
        """Refuse a query that would need too many statements."""
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

    def _part(self, part: Residual) -> Members:
        if part.members not in self._parts:
            self._parts[part.members] = self._classes.first(part).members
        return self._parts[part.members]


class _FamilyFinder:
    """The families of role sets of each residual; residuals that agree in all that they depend on
    share the work, and all of them the checks.
    """

    def __init__(self, query: Query) -> None:
        self.query = query
        self._checks = Checks()
        self._known: dict[Hashable, tuple[RoleFamily, ...]] = {}

    def __call__(self, residual: Residual) -> _Families:
        """The families of each private table of which the residual can gain by a row."""
        found = {}
        for table, atoms in enumerate(self.query.private_tables):
            candidates = residual.members & atoms
            if candidates and (families := self._of(residual, candidates)):
                found[table] = families
        return found

    def _of(self, residual: Residual, candidates: Members) -> tuple[RoleFamily, ...]:
        touched = self.query.variables(candidates)
        compared = touched.union(*(p.variables for p in residual.comparisons))
        signature = (
            candidates,
            (residual.boundary | residual.external) & compared,
            frozenset(p for p in residual.inequalities if p.variables <= touched),
            residual.comparisons,
        )
        if signature not in self._known:
            self._known[signature] = role_families(residual, candidates, self._checks)
        return self._known[signature]


def _reach(residuals: Residuals, opened: _OpenSets) -> tuple[_Reached, dict[Members, _Reached]]:
    """The whole query, and every set whose value the growth of another one is made of."""
    query = residuals.query
    families = _FamilyFinder(query)
    whole = _Reached(query.everything, families(residuals.of(query.everything)))
    found: dict[Members, _Reached] = {}
    # By size: what is left of the checks goes to the large sets, which count the most.
    waiting: list[dict[Members, None]] = [{} for _ in query.atoms]
    for smaller in whole.smaller(opened):
        waiting[len(smaller)][smaller] = None
    while waiting:
        for members in waiting.pop():
            residual = residuals.of(members)
            reached = _Reached(members, families(residual), components(residuals, members))
            found[members] = reached
            for smaller in reached.smaller(opened) - {members}:
                waiting[len(smaller)][smaller] = None
    return whole, found


class _Assembly:
    """The sets that were reached as coordinates; by size, so that factors come before products."""

    def __init__(
        self, query: Query, opened: _OpenSets, whole: _Reached, reached: Mapping[Members, _Reached]
    ) -> None:
        self.query = query
        self.opened = opened
        self.whole = whole
        self.reached = reached
        self.coordinates = tuple(sorted(reached, key=lambda m: (len(m), sorted(m))))
        self.place = {members: i for i, members in enumerate(self.coordinates)}

    def recursion(self) -> Recursion:
        """The steps of all tables, and the gains of the answer."""
        steps = [self._step(table) for table in range(len(self.query.private_tables))]
        return Recursion(
            coordinates=self.coordinates,
            steps=tuple(step for step in steps if step.moves),
            answers=tuple(self._gains(self.whole, table) for table in self.whole.families),
            movers=tuple(steps[table] for table in self.whole.families),
            roles=tuple(self._roles()),
        )

    def _step(self, table: int) -> Step:
        changed = self._table(table)
        able = (r for r in map(self.reached.__getitem__, self.coordinates) if table in r.families)
        moves = tuple(self._move(reached, table) for reached in able)
        return Step(changed.label, moves, changed.rows_per_unit)

    def _move(self, reached: _Reached, table: int) -> Move:
        factors = None
        if reached.parts != (reached.members,):
            opened = map(self.opened, reached.parts)
            factors = tuple(self.place[part] for part in opened if part)
        return Move(self.place[reached.members], self._gains(reached, table), factors)

    def _gains(self, reached: _Reached, table: int) -> tuple[Gain, ...]:
        return _undominated(self._gain(reached.members, f) for f in reached.families[table])

    def _gain(self, members: Members, family: RoleFamily) -> Gain:
        left = [self.opened(members - roles) for roles in family]
        terms = tuple(sorted(self.place[m] for m in left if m))
        return Gain(constant=sum(1 for m in left if not m), terms=terms)

    def _table(self, number: int) -> Table:
        return self.query.atoms[min(self.query.private_tables[number])].table

    def _roles(self) -> Iterator[Roles]:
        yield Roles(self.whole.members, False, (), self._named(self.whole.families))
        for members in sorted({*self.reached, *self.opened.known}, key=_largest_first):
            if members in self.reached:
                reached = self.reached[members]
                yield Roles(members, False, reached.parts, self._named(reached.families))
            elif not self.opened(members):
                yield Roles(members, True, (), ())

    def _named(self, families: _Families) -> TableFamilies:
        return tuple((self._table(table).label, own) for table, own in families.items())


def _largest_first(members: Members) -> tuple[int, list[int]]:
    return -len(members), sorted(members)


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
