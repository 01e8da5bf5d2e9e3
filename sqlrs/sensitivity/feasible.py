"""Feasible role sets: which atoms of a residual one inserted row can stand for at the same time.

A row t that is new in table r takes part in a result of q_E as exactly the atoms F ⊆ E ∩ D_r. The
values of the boundary, t's columns and the query's constants have an equality pattern, and each
pattern allows a family of sets F. The number of new results is at most the sum of T_{E−F} over one
such family, so only the families that no other one contains matter. Proof of everything claimed
here: docs/proofs/feasible_roles.md.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache, cached_property
from itertools import combinations
from typing import NamedTuple, TypeVar

from sqlrs.catalog import ColumnType, Family
from sqlrs.effort import spend
from sqlrs.query import Atom, Constant, Term, Variable
from sqlrs.residuals.residual import Members, Residual, subsets

RoleFamily = frozenset[Members]
_Key = TypeVar("_Key", bound=Hashable)

# Past this many checks of a role set against a pattern, in one residual or in all, the role sets of
# a residual count as feasible together: more than can happen, so still a bound, and decided by the
# query alone.
MAX_CHECKS = 20_000
MAX_CHECKS_IN_ALL = 500_000

# An equality pattern: for each column of t the positions that hold its value, as bits. Columns have
# the first positions; values that no column of t equals are never made equal to each other.
_Pattern = tuple[int, ...]
# Pairs of positions as bits of one number.
_Pairs = int
# One end of a comparison: a position of the pattern, or a variable whose value is not known.
_End = int | Variable


@dataclass
class Budget:
    """The checks that are left for the residuals of one query."""

    checks: int = MAX_CHECKS_IN_ALL


class _Slot(NamedTuple):
    """A column of an atom: t's column, and the position of its value or else its variable."""

    own: int
    known: int | None
    variable: int


class _Draft(NamedTuple):
    """A set F while it grows: the equalities it needs and the positions of its own variables."""

    members: Members
    needs: _Pattern
    values: Mapping[int, int]
    apart: _Pairs


class _RoleSet(NamedTuple):
    """A set F with all that a pattern may hold against it.

    Of ``apart`` no pair may be equal, of each number in ``forcing`` not all pairs.
    """

    members: Members
    needs: _Pattern
    apart: _Pairs
    ordered: tuple[tuple[_End, _End, bool], ...]
    forcing: tuple[_Pairs, ...]


def role_families(
    residual: Residual,
    candidates: Members,
    budget: Budget | None = None,
    *,
    max_checks: int = MAX_CHECKS,
) -> tuple[RoleFamily, ...]:
    """The largest families of sets F ⊆ ``candidates`` (atoms of one table) that one row can take.

    A family holds the sets F that are feasible under one pattern. An empty result says that no row
    of the table can ever take part.
    """
    budget = Budget() if budget is None else budget
    search = _Search(residual, candidates)
    if search.allows_everything():
        return (frozenset(f for f in subsets(candidates) if f),)
    feasible = [f for f in search.consistent() if not search.rules_out(f, f.needs)]
    together = frozenset(f.members for f in feasible)
    if len(feasible) < 2 or search.all_at_once(feasible):
        return (together,) if together else ()
    families = search.families(feasible, budget, max_checks)
    if families is None:
        return (together,)
    largest = [f for f in families if f and not any(f != g and f & g == f for g in families)]
    # The sets stand in the order of their members, so the families do too.
    in_order = sorted(list(_places(family)) for family in largest)
    return tuple(frozenset([feasible[i].members for i in family]) for family in in_order)


class _Search:
    """The positions of a pattern, the role sets over them, and the patterns worth trying."""

    def __init__(self, residual: Residual, candidates: Members) -> None:
        atoms = {j: residual.query.atoms[j] for j in sorted(candidates)}
        compared = sorted(residual.comparisons, key=str)
        touched = residual.query.variables(atoms)
        known = residual.boundary | residual.external
        self._columns: dict[str, int] = {}
        for column in (column for atom in atoms.values() for column, _ in atom.terms):
            self._columns.setdefault(column, len(self._columns))
        self._tokens: dict[object, int] = {}
        self._constants: dict[int, Constant] = {}
        for term in (term for atom in atoms.values() for _, term in atom.terms):
            self._add_token(term, known)
        for term in (side for c in compared for side in (c.left, c.right)):
            self._add_token(term, known)
        self._width = len(self._columns) + len(self._tokens)
        self._unmerged = tuple(1 << column for column in range(len(self._columns)))
        # The variables without a token by number: there are as many role sets as sets of atoms.
        self._numbers: dict[Variable, int] = {}
        self._slots = {j: [self._slot(*t) for t in atom.terms] for j, atom in atoms.items()}
        self._keys = [(j, key) for j, atom in atoms.items() for key in self._key_slots(atom)]
        self._comparisons = compared
        self._equal: dict[_Pattern, _Pairs] = {}
        self._known_order = list(self._order_of_constants()) if compared else []
        # Positions that no pattern may merge, and for each other variable those it must not equal.
        self._apart = [
            (one, other)
            for (one, a), (other, b) in combinations(self._constants.items(), 2)
            if surely_different(a, b)
        ]
        self._partners: dict[int, list[_Slot]] = {}
        for inequality in residual.inequalities:
            if inequality.variables <= touched:
                self._add_inequality(inequality.left, inequality.right)

    def consistent(self) -> list[_RoleSet]:
        """Every non-empty F that its own equalities, inequalities and comparisons do not rule out.

        Each of them rules out all larger sets as well, so a branch ends at the first failure.
        """
        order = list(self._slots)
        always = self._always_apart
        found: list[_RoleSet] = []

        def extend(draft: _Draft, start: int) -> None:
            for place in range(start, len(order)):
                larger = self._with_role(draft, order[place])
                if (larger.apart | always) & self._pairs(larger.needs):
                    continue
                role_set = self._finished(larger)
                if self._breaks_order(role_set, larger.needs):
                    continue
                found.append(role_set)
                extend(larger, place + 1)

        extend(_Draft(Members(), self._unmerged, {}, 0), 0)
        return found

    def allows_everything(self) -> bool:
        """Whether one row can be all atoms at once, and nothing forces it to be one of them."""
        if self._keys:
            return False
        draft = _Draft(Members(), self._unmerged, {}, 0)
        for atom in self._slots:
            draft = self._with_role(draft, atom)
        return not self.rules_out(self._finished(draft), draft.needs)

    def rules_out(self, role_set: _RoleSet, pattern: _Pattern) -> bool:
        """Whether the pattern rules F out; then every coarser pattern does."""
        equal = self._pairs(pattern)
        if (role_set.apart | self._always_apart) & equal:
            return True
        for key in role_set.forcing:
            if key & equal == key:
                return True
        return self._breaks_order(role_set, pattern)

    def all_at_once(self, feasible: Iterable[_RoleSet]) -> bool:
        """Whether one pattern allows all the given sets."""
        pattern = self._unmerged
        for needs in {f.needs for f in feasible}:
            pattern = _joined(pattern, needs)
        return not any(self.rules_out(f, pattern) for f in feasible)

    def families(
        self, feasible: list[_RoleSet], budget: Budget, max_checks: int
    ) -> set[int] | None:
        """The family of every pattern that some sets need together; None past the limit.

        A family is a number whose bits are places in ``feasible``.
        """
        by_needs = _gathered((f.needs, i) for i, f in enumerate(feasible))
        ruled_out = self._ruled_out_by_equalities(feasible)
        found: set[int] = set()
        seen = {self._unmerged}
        waiting = [(self._unmerged, (1 << len(feasible)) - 1)]
        while waiting:
            pattern, hopeful = waiting.pop()
            max_checks -= hopeful.bit_count()
            budget.checks -= hopeful.bit_count()
            if max_checks < 0 or budget.checks < 0:
                return None
            # What is ruled out here stays so under coarser patterns.
            hopeful &= ~ruled_out(pattern)
            joins: list[tuple[int, _Pattern]] = []
            left = family = 0
            for needs, sets in by_needs.items():
                allowed = sets & hopeful
                if not allowed:
                    continue
                join = _joined(pattern, needs)
                allowed &= ~ruled_out(join)
                if self._comparisons:
                    for i in _places(allowed):
                        if self._breaks_order(feasible[i], join):
                            allowed ^= 1 << i
                left |= allowed
                if join == pattern:
                    family |= allowed
                elif allowed and join not in seen:
                    joins.append((allowed & -allowed, join))
            found.add(family)
            for _, coarser in sorted(joins):
                if coarser not in seen:
                    seen.add(coarser)
                    waiting.append((coarser, left))
        return found

    def _ruled_out_by_equalities(self, feasible: list[_RoleSet]) -> Callable[[_Pattern], int]:
        """For a pattern the places of the sets that its equalities rule out."""
        # The sets of a query share most obstacles, so each obstacle is looked at once a pattern.
        apart = _gathered((f.apart | self._always_apart, i) for i, f in enumerate(feasible))
        forcing = _gathered((key, i) for i, f in enumerate(feasible) for key in f.forcing)

        @cache
        def ruled_out(pattern: _Pattern) -> int:
            equal, out = self._pairs(pattern), 0
            for pairs, sets in apart.items():
                if pairs & equal:
                    out |= sets
            for key, sets in forcing.items():
                if key & equal == key:
                    out |= sets
            return out

        return ruled_out

    @cached_property
    def _always_apart(self) -> _Pairs:
        return self._as_pairs(self._apart)

    def _as_pairs(self, pairs: Iterable[tuple[int, int]]) -> _Pairs:
        found = 0
        for one, other in pairs:
            found |= self._pair(one, other)
        return found

    def _pair(self, one: int, other: int) -> _Pairs:
        """The bit of two positions, which may be one and the same."""
        return 1 << (one * self._width + other if one < other else other * self._width + one)

    def _pairs(self, pattern: _Pattern) -> _Pairs:
        """All pairs that the pattern makes equal."""
        known = self._equal.get(pattern)
        if known is None:
            known = 0
            for block in set(pattern):
                for one in _places(block):
                    # With itself and with all greater ones of the block.
                    known |= (block >> one) << (one * self._width + one)
            self._equal[pattern] = known
        return known

    def _add_token(self, term: Term, known: frozenset[Variable]) -> None:
        identity = _identity(term)
        if identity in self._tokens or (isinstance(term, Variable) and term not in known):
            return
        position = len(self._columns) + len(self._tokens)
        self._tokens[identity] = position
        if isinstance(term, Constant):
            self._constants[position] = term

    def _slot(self, column: str, term: Term) -> _Slot:
        return self._placed(self._columns[column], term)

    def _placed(self, own: int, term: Term) -> _Slot:
        known = self._tokens.get(_identity(term))
        if known is not None:
            return _Slot(own, known, -1)
        assert isinstance(term, Variable)
        return _Slot(own, None, self._numbers.setdefault(term, len(self._numbers)))

    def _key_slots(self, atom: Atom) -> Iterator[list[_Slot]]:
        terms = dict(atom.terms)
        for key in atom.table.keys:
            yield [self._slot(column, terms[column]) for column in sorted(key)]

    def _add_inequality(self, one: Variable, other: Variable) -> None:
        left, right = self._tokens.get(one), self._tokens.get(other)
        if left is not None and right is not None:
            self._apart.append((left, right))
            return
        for variable, partner in ((one, other), (other, one)):
            if variable not in self._tokens:
                partners = self._partners.setdefault(self._numbers[variable], [])
                partners.append(self._placed(-1, partner))

    def _order_of_constants(self) -> Iterator[tuple[int, int, bool]]:
        for (one, a), (other, b) in combinations(self._constants.items(), 2):
            if _surely_below(a, b):
                yield one, other, True
            elif _surely_below(b, a):
                yield other, one, True

    def _with_role(self, draft: _Draft, atom: int) -> _Draft:
        """The set once the row also stands for ``atom``."""
        needs, values, apart = draft.needs, dict(draft.values), draft.apart
        for own, known, variable in self._slots[atom]:
            position = values.get(variable) if known is None else known
            if position is not None:
                needs = _merged(needs, own, 1 << own | 1 << position)
                continue
            values[variable] = own
            for partner in self._partners.get(variable, ()):
                other = partner.known if partner.variable < 0 else values.get(partner.variable)
                if other is not None:
                    apart |= self._pair(own, other)
        return _Draft(draft.members | {atom}, needs, values, apart)

    def _finished(self, draft: _Draft) -> _RoleSet:
        return _RoleSet(
            draft.members,
            draft.needs,
            draft.apart,
            tuple(
                [
                    (self._end(c.left, draft), self._end(c.right, draft), c.strict)
                    for c in self._comparisons
                ]
            ),
            tuple(self._forcing(draft)),
        )

    def _end(self, term: Term, draft: _Draft) -> _End:
        position = self._tokens.get(_identity(term))
        if position is not None:
            return position
        assert isinstance(term, Variable)
        number = self._numbers.get(term)
        return term if number is None else draft.values.get(number, term)

    def _forcing(self, draft: _Draft) -> list[_Pairs]:
        """The equalities that make another atom's row the new one, key by key."""
        members, values, width = draft.members, draft.values, self._width
        found = []
        for j, key in self._keys:
            if j in members:
                continue
            equal = 0
            for own, known, variable in key:
                position = values.get(variable) if known is None else known
                if position is None:
                    break
                equal |= 1 << (own * width + position if own < position else position * width + own)
            else:
                found.append(equal)
        return found

    def _breaks_order(self, role_set: _RoleSet, pattern: _Pattern) -> bool:
        """Whether the comparisons cannot hold together under the pattern."""
        spend(len(role_set.ordered) + len(self._known_order))
        return bool(self._comparisons) and _has_strict_cycle(
            (
                _least(pattern, low) if isinstance(low, int) else low,
                _least(pattern, high) if isinstance(high, int) else high,
                strict,
            )
            for low, high, strict in (*role_set.ordered, *self._known_order)
        )


def surely_different(one: Constant, other: Constant) -> bool:
    """Whether no value can equal both constants, under any collation, padding or rounding."""
    a, b = one.value, other.value
    if one.type.family is not other.type.family:
        return False
    if one.type.family is Family.TEXT:
        plain = one.type.collation is None and other.type.collation is None
        texts = isinstance(a, str) and isinstance(b, str)
        return plain and texts and str(a).rstrip().casefold() != str(b).rstrip().casefold()
    return _plain(one) and _plain(other) and a != b


def _plain(constant: Constant) -> bool:
    """Whether the value is held by its column's type as it is written."""
    value = constant.value
    match constant.type.family:
        case Family.INTEGER:
            return isinstance(value, int) and not isinstance(value, bool)
        case Family.BOOLEAN:
            return isinstance(value, bool)
        case Family.DATE:
            return isinstance(value, date) and not isinstance(value, datetime)
        case _:
            return False


def _surely_below(low: Constant, high: Constant) -> bool:
    if low.type.family is not high.type.family or not (_plain(low) and _plain(high)):
        return False
    a, b = low.value, high.value
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    return isinstance(a, date) and isinstance(b, date) and a < b


def _identity(term: Term) -> object:
    """What makes two tokens one: constants are the same only where they mean the same value."""
    if isinstance(term, Variable):
        return term
    kind: ColumnType = term.type
    name = None if kind.family is Family.INTEGER else kind.name
    return (type(term.value), term.value, kind.family, kind.collation, name)


def _gathered(found: Iterable[tuple[_Key, int]]) -> dict[_Key, int]:
    """For each key its places, as the bits of one number."""
    places: dict[_Key, int] = {}
    for key, place in found:
        places[key] = places.get(key, 0) | 1 << place
    return places


def _places(bits: int) -> Iterator[int]:
    """The places of the bits that are set."""
    return (i for i in range(bits.bit_length()) if bits >> i & 1)


def _least(pattern: _Pattern, position: int) -> int:
    """The least position that holds the same value."""
    return next((c for c, block in enumerate(pattern) if block >> position & 1), position)


def _merged(pattern: _Pattern, column: int, block: int) -> _Pattern:
    """The pattern once the positions of a block, which holds the column, are equal."""
    if not block & ~pattern[column]:
        return pattern
    merged = block
    for other in pattern:
        if other & block:
            merged |= other
    return tuple([merged if other & block else other for other in pattern])


def _joined(pattern: _Pattern, needs: _Pattern) -> _Pattern:
    """The finest pattern that is coarser than both."""
    for column, block in enumerate(needs):
        if block & ~pattern[column]:
            pattern = _merged(pattern, column, block)
    return pattern


def _has_strict_cycle(edges: Iterable[tuple[_End, _End, bool]]) -> bool:
    """Whether some chain of ≤ and < leads from a value to itself through a <."""
    after: dict[_End, set[_End]] = {}
    strict_edges = []
    for low, high, strict in edges:
        after.setdefault(low, set()).add(high)
        if strict:
            strict_edges.append((low, high))
    for low, high in strict_edges:
        reached, waiting = {high}, [high]
        while waiting:
            for following in after.get(waiting.pop(), ()):
                if following not in reached:
                    reached.add(following)
                    waiting.append(following)
        if low in reached:
            return True
    return False
