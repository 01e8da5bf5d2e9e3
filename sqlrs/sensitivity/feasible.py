"""Feasible role sets: which atoms of a residual one inserted row can stand for at the same time.

A row t that is new in table r takes part in a result of q_E as exactly the atoms F ⊆ E ∩ D_r. The
values of the boundary, t's columns and the query's constants have an equality pattern, and each
pattern allows a family of sets F. The number of new results is at most the sum of T_{E−F} over one
such family, so only the families that no other one contains matter. Proof of everything claimed
here: docs/proofs/feasible_roles.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from itertools import combinations

from sqlrs.catalog import ColumnType, Family
from sqlrs.query import Atom, Constant, Term, Variable
from sqlrs.residuals import Members, Residual

RoleFamily = frozenset[Members]

# Past this many checks of a role set against a pattern, all role sets count as feasible together:
# more than can happen, so still a bound, and decided by the query alone.
MAX_CHECKS = 20_000

# An equality pattern: at position i the least position that holds the same value.
_Pattern = tuple[int, ...]
# One end of a comparison: a position of the pattern, or a variable whose value is not known.
_End = int | Variable


@dataclass(frozen=True)
class _Slot:
    """A column of an atom: t's column, and the position of its value where that is known."""

    own: int
    known: int | None
    variable: Variable | None


@dataclass(frozen=True)
class _Draft:
    """A set F while it grows: the equalities it needs and the positions of its own variables."""

    members: Members
    needs: _Pattern
    values: Mapping[Variable, int]
    apart: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _RoleSet:
    """A set F with all that a pattern may hold against it."""

    members: Members
    needs: _Pattern
    apart: tuple[tuple[int, int], ...]
    ordered: tuple[tuple[_End, _End, bool], ...]
    forcing: tuple[tuple[tuple[int, int], ...], ...]


def role_families(
    residual: Residual, candidates: Members, *, max_checks: int = MAX_CHECKS
) -> tuple[RoleFamily, ...]:
    """The largest families of sets F ⊆ ``candidates`` (atoms of one table) that one row can take.

    A family holds the sets F that are feasible under one pattern. An empty result says that no row
    of the table can ever take part.
    """
    search = _Search(residual, candidates)
    feasible = [f for f in search.consistent() if not search.rules_out(f, f.needs)]
    together = frozenset(f.members for f in feasible)
    if len(feasible) < 2 or search.all_at_once(feasible):
        return (together,) if together else ()
    families = search.families(feasible, max_checks)
    if families is None:
        return (together,)
    return tuple(
        sorted(
            (f for f in families if f and not any(f < other for other in families)),
            key=lambda family: sorted(map(sorted, family)),
        )
    )


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
        self._unmerged = tuple(range(len(self._columns) + len(self._tokens)))
        self._slots = {j: [self._slot(*t) for t in atom.terms] for j, atom in atoms.items()}
        self._keys = {j: list(self._key_slots(atom)) for j, atom in atoms.items()}
        self._comparisons = compared
        self._known_order = list(self._order_of_constants()) if compared else []
        # Positions that no pattern may merge, and for each other variable those it must not equal.
        self._apart = [
            (one, other)
            for (one, a), (other, b) in combinations(self._constants.items(), 2)
            if surely_different(a, b)
        ]
        self._partners: dict[Variable, list[Variable]] = {}
        for inequality in residual.inequalities:
            if inequality.variables <= touched:
                self._add_inequality(inequality.left, inequality.right)

    def consistent(self) -> Iterator[_RoleSet]:
        """Every non-empty F that its own equalities, inequalities and comparisons do not rule out.

        Each of them rules out all larger sets as well, so a branch ends at the first failure.
        """
        order = list(self._slots)

        def extend(draft: _Draft, start: int) -> Iterator[_RoleSet]:
            for place in range(start, len(order)):
                larger = self._with_role(draft, order[place])
                if self._merges_different(larger.apart, larger.needs):
                    continue
                role_set = self._finished(larger)
                if _has_strict_cycle(self._order_under(role_set, larger.needs)):
                    continue
                yield role_set
                yield from extend(larger, place + 1)

        return extend(_Draft(Members(), self._unmerged, {}, ()), 0)

    def rules_out(self, role_set: _RoleSet, pattern: _Pattern) -> bool:
        """Whether the pattern rules F out; then every coarser pattern does."""
        return (
            self._merges_different(role_set.apart, pattern)
            or any(
                all(pattern[column] == pattern[value] for column, value in key)
                for key in role_set.forcing
            )
            or _has_strict_cycle(self._order_under(role_set, pattern))
        )

    def all_at_once(self, feasible: Iterable[_RoleSet]) -> bool:
        """Whether one pattern allows all the given sets."""
        pattern = self._unmerged
        for f in feasible:
            pattern = _joined(pattern, f.needs)
        return not any(self.rules_out(f, pattern) for f in feasible)

    def families(self, feasible: list[_RoleSet], max_checks: int) -> set[RoleFamily] | None:
        """The family of every pattern that some sets need together; None past the limit."""
        found: set[RoleFamily] = set()
        seen = {self._unmerged}
        waiting = [(self._unmerged, feasible)]
        while waiting:
            pattern, hopeful = waiting.pop()
            max_checks -= len(hopeful)
            if max_checks < 0:
                return None
            joined = [(f, _joined(pattern, f.needs)) for f in hopeful]
            possible = [(f, merged) for f, merged in joined if not self.rules_out(f, merged)]
            found.add(frozenset(f.members for f, merged in possible if merged == pattern))
            # What is ruled out here stays so under coarser patterns.
            left = [f for f, _ in possible]
            for _, coarser in possible:
                if coarser not in seen:
                    seen.add(coarser)
                    waiting.append((coarser, left))
        return found

    def _add_token(self, term: Term, known: frozenset[Variable]) -> None:
        identity = _identity(term)
        if identity in self._tokens or (isinstance(term, Variable) and term not in known):
            return
        position = len(self._columns) + len(self._tokens)
        self._tokens[identity] = position
        if isinstance(term, Constant):
            self._constants[position] = term

    def _slot(self, column: str, term: Term) -> _Slot:
        return _Slot(
            own=self._columns[column],
            known=self._tokens.get(_identity(term)),
            variable=term if isinstance(term, Variable) else None,
        )

    def _key_slots(self, atom: Atom) -> Iterator[list[_Slot]]:
        terms = dict(atom.terms)
        for key in atom.table.keys:
            yield [self._slot(column, terms[column]) for column in sorted(key)]

    def _add_inequality(self, one: Variable, other: Variable) -> None:
        left, right = self._tokens.get(one), self._tokens.get(other)
        if left is not None and right is not None:
            self._apart.append((left, right))
            return
        if left is None:
            self._partners.setdefault(one, []).append(other)
        if right is None:
            self._partners.setdefault(other, []).append(one)

    def _order_of_constants(self) -> Iterator[tuple[int, int, bool]]:
        for (one, a), (other, b) in combinations(self._constants.items(), 2):
            if _surely_below(a, b):
                yield one, other, True
            elif _surely_below(b, a):
                yield other, one, True

    def _with_role(self, draft: _Draft, atom: int) -> _Draft:
        """The set once the row also stands for ``atom``."""
        needs, values, apart = draft.needs, dict(draft.values), list(draft.apart)
        for slot in self._slots[atom]:
            position = slot.known
            if position is None:
                assert slot.variable is not None
                position = values.get(slot.variable)
            if position is not None:
                needs = _merged(needs, slot.own, position)
                continue
            assert slot.variable is not None
            values[slot.variable] = slot.own
            for partner in self._partners.get(slot.variable, ()):
                other = self._tokens.get(partner, values.get(partner))
                if other is not None:
                    apart.append((slot.own, other))
        return _Draft(draft.members | {atom}, needs, values, tuple(apart))

    def _finished(self, draft: _Draft) -> _RoleSet:
        def end(term: Term) -> _End:
            position = self._tokens.get(_identity(term))
            if position is not None:
                return position
            assert isinstance(term, Variable)
            return draft.values.get(term, term)

        return _RoleSet(
            draft.members,
            draft.needs,
            draft.apart,
            ordered=tuple((end(c.left), end(c.right), c.strict) for c in self._comparisons),
            forcing=tuple(
                pairs
                for j, keys in self._keys.items()
                if j not in draft.members
                for key in keys
                if (pairs := _positions(key, draft.values)) is not None
            ),
        )

    def _merges_different(self, apart: tuple[tuple[int, int], ...], pattern: _Pattern) -> bool:
        for one, other in self._apart:
            if pattern[one] == pattern[other]:
                return True
        return any(pattern[one] == pattern[other] for one, other in apart)

    def _order_under(self, role_set: _RoleSet, pattern: _Pattern) -> list[tuple[_End, _End, bool]]:
        return [
            (
                pattern[low] if isinstance(low, int) else low,
                pattern[high] if isinstance(high, int) else high,
                strict,
            )
            for low, high, strict in (*role_set.ordered, *self._known_order)
        ]


def _positions(
    key: list[_Slot], values: Mapping[Variable, int]
) -> tuple[tuple[int, int], ...] | None:
    """T's column beside the value of each column of a key, where all values are known."""
    pairs = []
    for slot in key:
        position = slot.known
        if position is None and slot.variable is not None:
            position = values.get(slot.variable)
        if position is None:
            return None
        pairs.append((slot.own, position))
    return tuple(pairs)


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


def _merged(pattern: _Pattern, one: int, other: int) -> _Pattern:
    low, high = sorted((pattern[one], pattern[other]))
    if low == high:
        return pattern
    return tuple(low if block == high else block for block in pattern)


def _joined(pattern: _Pattern, needs: _Pattern) -> _Pattern:
    """The finest pattern that is coarser than both."""
    for position, block in enumerate(needs):
        if block != position and pattern[position] != pattern[block]:
            pattern = _merged(pattern, position, block)
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
