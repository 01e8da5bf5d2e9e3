"""Feasible role sets: which atoms of a residual one inserted row can stand for at the same time.

A row t that is new in table r takes part in a result of q_E as exactly the atoms F ⊆ E ∩ D_r. The
values of the boundary, t's columns and the query's constants have an equality pattern, and each
pattern allows a family of sets F. The number of new results is at most the sum of T_{E−F} over one
such family, so only the families that no other one contains matter. Proof of everything claimed
here: docs/proofs/feasible_roles.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
class _RoleSet:
    """One set F: the equalities it needs, and what its values must not be."""

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
    return _Search(residual, candidates).families(max_checks)


class _Search:
    """The positions of a pattern, the role sets over them, and the patterns worth trying."""

    def __init__(self, residual: Residual, candidates: Members) -> None:
        self._atoms = {j: residual.query.atoms[j] for j in sorted(candidates)}
        self._valued = residual.boundary | residual.external
        self._columns: dict[str, int] = {}
        self._tokens: dict[object, int] = {}
        self._constants: dict[int, Constant] = {}
        for atom in self._atoms.values():
            for column, _ in atom.terms:
                self._columns.setdefault(column, len(self._columns))
        touched = residual.query.variables(self._atoms)
        compared = sorted(residual.comparisons, key=str)
        for term in (term for atom in self._atoms.values() for _, term in atom.terms):
            self._add_token(term)
        for comparison in compared:
            self._add_token(comparison.left)
            self._add_token(comparison.right)
        self._inequalities = [
            (p.left, p.right)
            for p in sorted(residual.inequalities, key=str)
            if p.variables <= touched
        ]
        self._comparisons = compared
        self._clashes = [
            (one, other)
            for (one, a), (other, b) in combinations(self._constants.items(), 2)
            if surely_different(a, b)
        ]
        self._known_order = list(self._order_of_constants()) if compared else []

    def families(self, max_checks: int) -> tuple[RoleFamily, ...]:
        """The inclusion-maximal families."""
        consistent = list(self._consistent())
        feasible = [f for f in consistent if not self._ruled_out(f, f.needs)]
        if not feasible:
            return ()
        everything = frozenset(f.members for f in feasible)
        top = self._unmerged
        for f in feasible:
            top = _joined(top, f.needs)
        if all(not self._ruled_out(f, top) for f in feasible):
            return (everything,)
        # The equalities that a set needs are those of its atoms and of pairs of its atoms.
        generators = list(dict.fromkeys(f.needs for f in consistent if len(f.members) <= 2))
        found: set[RoleFamily] = set()
        seen = {self._unmerged}
        waiting = [self._unmerged]
        checks = 0
        while waiting:
            pattern = waiting.pop()
            checks += len(feasible)
            if checks > max_checks:
                return (everything,)
            possible = [f for f in feasible if not self._ruled_out(f, _joined(pattern, f.needs))]
            if not possible:
                continue
            found.add(
                frozenset(f.members for f in possible if _joined(pattern, f.needs) == pattern)
            )
            for needs in generators:
                coarser = _joined(pattern, needs)
                if coarser not in seen:
                    seen.add(coarser)
                    waiting.append(coarser)
        return tuple(
            sorted(
                (f for f in found if f and not any(f < other for other in found)),
                key=lambda family: sorted(map(sorted, family)),
            )
        )

    @property
    def _unmerged(self) -> _Pattern:
        return tuple(range(len(self._columns) + len(self._tokens)))

    def _add_token(self, term: Term) -> None:
        if isinstance(term, Variable) and term not in self._valued:
            return
        identity = _identity(term)
        if identity not in self._tokens:
            position = len(self._columns) + len(self._tokens)
            self._tokens[identity] = position
            if isinstance(term, Constant):
                self._constants[position] = term

    def _order_of_constants(self) -> Iterator[tuple[int, int, bool]]:
        for (one, a), (other, b) in combinations(self._constants.items(), 2):
            if _surely_below(a, b):
                yield one, other, True
            elif _surely_below(b, a):
                yield other, one, True

    def _consistent(self) -> Iterator[_RoleSet]:
        """Every non-empty F that its own equalities, inequalities and comparisons do not rule out.

        Each of them rules out all larger sets as well, so a branch ends at the first failure.
        """
        order = list(self._atoms)

        def extend(
            members: Members, start: int, needs: _Pattern, values: dict[Variable, int]
        ) -> Iterator[_RoleSet]:
            for place in range(start, len(order)):
                grown, known = self._with_role(self._atoms[order[place]], needs, values)
                role_set = self._role_set(members | {order[place]}, grown, known)
                if self._contradicts(role_set, grown):
                    continue
                yield role_set
                yield from extend(role_set.members, place + 1, grown, known)

        return extend(Members(), 0, self._unmerged, {})

    def _with_role(
        self, atom: Atom, needs: _Pattern, values: dict[Variable, int]
    ) -> tuple[_Pattern, dict[Variable, int]]:
        """The equalities and known values once the row also stands for ``atom``."""
        known = dict(values)
        for column, term in atom.terms:
            own = self._columns[column]
            position = self._tokens.get(_identity(term))
            if position is None:
                assert isinstance(term, Variable)
                position = known.setdefault(term, own)
            needs = _merged(needs, own, position)
        return needs, known

    def _role_set(self, members: Members, needs: _Pattern, values: dict[Variable, int]) -> _RoleSet:
        def end(term: Term) -> _End:
            position = self._tokens.get(_identity(term))
            if position is not None:
                return position
            assert isinstance(term, Variable)
            return values.get(term, term)

        apart = tuple(
            (left, right)
            for left, right in ((end(x), end(y)) for x, y in self._inequalities)
            if isinstance(left, int) and isinstance(right, int)
        )
        ordered = tuple((end(c.left), end(c.right), c.strict) for c in self._comparisons)
        forcing = tuple(
            pairs
            for j, atom in self._atoms.items()
            if j not in members
            for pairs in self._key_positions(atom, values)
        )
        return _RoleSet(members, needs, apart, ordered, forcing)

    def _key_positions(
        self, atom: Atom, values: dict[Variable, int]
    ) -> Iterator[tuple[tuple[int, int], ...]]:
        """For each key of the atom whose values are known: t's column beside each of them."""
        terms = dict(atom.terms)
        for key in atom.table.keys:
            pairs = []
            for column in sorted(key):
                term = terms[column]
                position = self._tokens.get(_identity(term))
                if position is None and isinstance(term, Variable):
                    position = values.get(term)
                if position is None:
                    break
                pairs.append((self._columns[column], position))
            else:
                yield tuple(pairs)

    def _ruled_out(self, role_set: _RoleSet, pattern: _Pattern) -> bool:
        """Whether the pattern rules F out; then every coarser pattern does."""
        return self._contradicts(role_set, pattern) or any(
            all(pattern[column] == pattern[value] for column, value in key)
            for key in role_set.forcing
        )

    def _contradicts(self, role_set: _RoleSet, pattern: _Pattern) -> bool:
        if any(pattern[x] == pattern[y] for x, y in self._clashes):
            return True
        if any(pattern[x] == pattern[y] for x, y in role_set.apart):
            return True
        return bool(role_set.ordered) and _has_strict_cycle(
            (
                pattern[low] if isinstance(low, int) else low,
                pattern[high] if isinstance(high, int) else high,
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
