"""Queries that join all tables but one by their keys: no join has more rows than that one table."""

from __future__ import annotations

from collections.abc import Sequence

from sqlrs.query import Atom, Variable


def joins_by_keys(atoms: Sequence[Atom]) -> bool:
    """Whether some atom leads to all others, each by a key of its own.

    Then every way to count takes about as long as reading the tables.
    """
    return any(_leads_to_all(atoms, first) for first in range(len(atoms)))


def joins_two_by_several(atoms: Sequence[Atom]) -> bool:
    """Whether two atoms, which have several columns in common, lead to all others by their keys."""
    for first, one in enumerate(atoms):
        for second, other in enumerate(atoms[:first]):
            both = one.variables | other.variables
            rest = [atom for i, atom in enumerate(atoms) if i not in (first, second)]
            if len(one.variables & other.variables) > 1 and leads_by_keys(both, rest):
                return True
    return False


def has_condition(atom: Atom) -> bool:
    """Whether a condition of its own thins an atom out, comparisons not counted."""
    return bool(atom.filters) or any(not isinstance(term, Variable) for _, term in atom.terms)


def _leads_to_all(joined: Sequence[Atom], first: int) -> bool:
    others = [atom for i, atom in enumerate(joined) if i != first]
    return leads_by_keys(joined[first].variables, others)


def leads_by_keys(known: frozenset[Variable], others: Sequence[Atom]) -> bool:
    """Whether what is known leads to all atoms, each by a key of its own."""
    atoms = [*others]
    while atoms:
        found = next((atom for atom in atoms if _has_key_in(atom, known)), None)
        if found is None:
            return False
        atoms.remove(found)
        known |= found.variables
    return True


def _has_key_in(atom: Atom, known: frozenset[Variable]) -> bool:
    return any(key <= known for key in atom.keys)
