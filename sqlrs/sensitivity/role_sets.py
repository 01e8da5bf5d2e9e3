"""Role sets: the atoms that one new row stands for, with all that an equality pattern may hold
against them. The five conditions under which a pattern allows a set: docs/proofs/feasible_roles.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from sqlrs.effort import spend
from sqlrs.query import Atom, Term, Variable
from sqlrs.residuals.residual import Members, Residual
from sqlrs.sensitivity.equality_patterns import PairBits, Pairs, Pattern, least, merged
from sqlrs.sensitivity.positions import Positions, Slot

# One end of a comparison: a position of the pattern, or a variable whose value is not known.
End = int | Variable


class _Draft(NamedTuple):
    """A set F while it grows: the equalities it needs and the positions of its own variables."""

    members: Members
    needs: Pattern
    values: Mapping[int, int]
    apart: Pairs


class RoleSet(NamedTuple):
    """A set F with all that a pattern may hold against it.

    Of ``apart`` no pair may be equal, of each number in ``forcing`` not all pairs.
    """

    members: Members
    needs: Pattern
    apart: Pairs
    ordered: tuple[tuple[End, End, bool], ...]
    forcing: tuple[Pairs, ...]


class RoleSets:
    """The role sets of a residual among some of its atoms, all of one table."""

    def __init__(self, residual: Residual, candidates: Members) -> None:
        atoms = {j: residual.query.atoms[j] for j in sorted(candidates)}
        self.comparisons = sorted(residual.comparisons, key=str)
        self.positions = Positions(
            atoms.values(), self.comparisons, residual.boundary | residual.external
        )
        self.pairs = PairBits(self.positions.width)
        self.unmerged = self.positions.unmerged
        slot = self.positions.slot
        self._slots = {j: [slot(*term) for term in atom.terms] for j, atom in atoms.items()}
        self._keys = [(j, key) for j, atom in atoms.items() for key in self._key_slots(atom)]
        self._known_order = list(self.positions.ordered_constants()) if self.comparisons else []
        # Positions that no pattern may merge, and for each other variable those it must not equal.
        self._apart = self.positions.different_constants()
        self._partners: dict[int, list[Slot]] = {}
        touched = residual.query.variables(atoms)
        for inequality in residual.inequalities:
            if inequality.variables <= touched:
                self._add_inequality(inequality.left, inequality.right)

    @cached_property
    def always_apart(self) -> Pairs:
        """The pairs that rule out every set where they are equal."""
        return self.pairs.all_of(self._apart)

    def consistent(self) -> list[RoleSet]:
        """Every non-empty F that its own equalities, inequalities and comparisons do not rule out.

        Each of them rules out all larger sets as well, so a branch ends at the first failure.
        """
        order = list(self._slots)
        always = self.always_apart
        found: list[RoleSet] = []

        def extend(draft: _Draft, start: int) -> None:
            for place in range(start, len(order)):
                larger = self._with_role(draft, order[place])
                if (larger.apart | always) & self.pairs.equal(larger.needs):
                    continue
                role_set = self._finished(larger)
                if self.breaks_order(role_set, larger.needs):
                    continue
                found.append(role_set)
                extend(larger, place + 1)

        extend(self._empty, 0)
        return found

    def allows_everything(self) -> bool:
        """Whether one row can be all atoms at once, and nothing forces it to be one of them."""
        if self._keys:
            return False
        draft = self._empty
        for atom in self._slots:
            draft = self._with_role(draft, atom)
        return not self.rules_out(self._finished(draft), draft.needs)

    def rules_out(self, role_set: RoleSet, pattern: Pattern) -> bool:
        """Whether the pattern rules F out; then every coarser pattern does."""
        equal = self.pairs.equal(pattern)
        if (role_set.apart | self.always_apart) & equal:
            return True
        if any(key & equal == key for key in role_set.forcing):
            return True
        return self.breaks_order(role_set, pattern)

    def breaks_order(self, role_set: RoleSet, pattern: Pattern) -> bool:
        """Whether the comparisons cannot hold together under the pattern."""
        spend(len(role_set.ordered) + len(self._known_order))
        return bool(self.comparisons) and has_strict_cycle(
            (
                least(pattern, low) if isinstance(low, int) else low,
                least(pattern, high) if isinstance(high, int) else high,
                strict,
            )
            for low, high, strict in (*role_set.ordered, *self._known_order)
        )

    def _key_slots(self, atom: Atom) -> Iterator[list[Slot]]:
        terms = dict(atom.terms)
        for key in atom.table.keys:
            yield [self.positions.slot(column, terms[column]) for column in sorted(key)]

    def _add_inequality(self, one: Variable, other: Variable) -> None:
        left, right = self.positions.of(one), self.positions.of(other)
        if left is not None and right is not None:
            self._apart.append((left, right))
            return
        for variable, partner in ((one, other), (other, one)):
            if self.positions.of(variable) is None:
                number = self.positions.placed(variable).variable
                self._partners.setdefault(number, []).append(self.positions.placed(partner))

    @property
    def _empty(self) -> _Draft:
        return _Draft(Members(), self.unmerged, {}, 0)

    def _with_role(self, draft: _Draft, atom: int) -> _Draft:
        """The set once the row also stands for ``atom``."""
        needs, values, apart = draft.needs, dict(draft.values), draft.apart
        for own, known, variable in self._slots[atom]:
            position = values.get(variable) if known is None else known
            if position is not None:
                needs = merged(needs, own, 1 << own | 1 << position)
                continue
            values[variable] = own
            for partner in self._partners.get(variable, ()):
                other = partner.known if partner.variable < 0 else values.get(partner.variable)
                if other is not None:
                    apart |= self.pairs.of(own, other)
        return _Draft(draft.members | {atom}, needs, values, apart)

    def _finished(self, draft: _Draft) -> RoleSet:
        end = self._end
        ordered = [(end(c.left, draft), end(c.right, draft), c.strict) for c in self.comparisons]
        forcing = tuple(self._forcing(draft))
        return RoleSet(draft.members, draft.needs, draft.apart, tuple(ordered), forcing)

    def _end(self, term: Term, draft: _Draft) -> End:
        position = self.positions.of(term)
        if position is not None:
            return position
        assert isinstance(term, Variable)
        number = self.positions.number(term)
        return term if number is None else draft.values.get(number, term)

    def _forcing(self, draft: _Draft) -> list[Pairs]:
        """The equalities that make another atom's row the new one, key by key."""
        members, values, width = draft.members, draft.values, self.pairs.width
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


def has_strict_cycle(edges: Iterable[tuple[End, End, bool]]) -> bool:
    """Whether some chain of ≤ and < leads from a value to itself through a <."""
    after: dict[End, set[End]] = {}
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
