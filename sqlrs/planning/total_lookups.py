"""Lookups that find a row for each row that leads to them: without them the counts are the same.

A line refers to an order, and every line has one. That is no declared fact: it is looked at where
nobody can change the rows, once, and kept. docs/proofs/plans.md has the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sqlrs.catalog import Table
from sqlrs.planning.key_joins import has_condition
from sqlrs.planning.table_statistics import Identity
from sqlrs.query import Atom, Variable
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Residual
from sqlrs.values import behave_alike


@dataclass(frozen=True)
class Inclusion:
    """Of each row of ``table``, unless one of the columns is NULL, there is a row of ``other``.

    ``columns`` pairs the columns of both; ``filled`` are columns of the other row without NULL.
    """

    table: Table
    other: Table
    columns: tuple[tuple[str, str], ...]
    filled: frozenset[str]

    @property
    def key(self) -> tuple[Identity, Identity, tuple[tuple[str, str], ...], frozenset[str]]:
        """What it is kept under."""
        return self.table.identity, self.other.identity, self.columns, self.filled


def without_total_lookups(
    residual: Residual,
    holds: Callable[[Inclusion], bool],
    keys: frozenset[Variable] = frozenset(),
) -> Residual:
    """The residual without the lookups that change no count, where ``holds`` says what is so.

    ``keys``: results are counted for each value of these too.
    """
    found = residual
    while (smaller := _smaller(found, holds, keys)) is not None:
        found = smaller
    return found


def _smaller(
    residual: Residual, holds: Callable[[Inclusion], bool], keys: frozenset[Variable]
) -> Residual | None:
    for i in sorted(residual.members):
        if any(map(holds, inclusions(residual, i, keys))):
            return replace(residual, members=residual.members - {i})
    return None


def inclusions(
    residual: Residual, i: int, keys: frozenset[Variable] = frozenset()
) -> Iterator[Inclusion]:
    """What would make one atom a lookup that changes no count; any one of these is enough."""
    query = residual.query
    atom = query.atoms[i]
    rest = residual.members - {i}
    held = query.variables(rest)
    shared, own = atom.variables & held, atom.variables - held
    if (
        residual.external
        or not _is_plain(atom)
        or not own.isdisjoint(_needed(residual) | keys)
        or not shared
        or not _counts_once(residual, atom, shared)
    ):
        return
    never_null = query.never_null
    filled = frozenset(
        n for n, v in atom.terms if v in own & never_null and atom.table.column(n).nullable
    )
    for j in sorted(rest):
        leading = query.atoms[j]
        if shared <= leading.variables and _alike(residual, shared):
            place = {v: n for n, v in reversed(leading.terms)}
            columns = tuple((place[v], n) for n, v in atom.terms if v in shared)
            yield Inclusion(leading.table, atom.table, columns, filled)


def _is_plain(atom: Atom) -> bool:
    """Whether an atom asks for nothing but a row: no condition, weight, or column twice joined."""
    return (
        atom.weight is None
        and not atom.table.bounded
        and not has_condition(atom)
        and len(atom.variables) == len(atom.terms)
        and all(atom.table.column(name).computed is None for name, _ in atom.terms)
    )


def _counts_once(residual: Residual, atom: Atom, shared: frozenset[Variable]) -> bool:
    """Whether it is all the same how many rows are found: one at most, or outputs are distinct."""
    return residual.output is not None or any(key <= shared for key in atom.keys)


def _needed(residual: Residual) -> frozenset[Variable]:
    """The variables of which a residual needs more than that they have a value."""
    compared = (p.variables for p in residual.predicates)
    return residual.boundary.union(residual.output or (), *compared)


def _alike(residual: Residual, shared: frozenset[Variable]) -> bool:
    """Whether values that are joined can stand for each other, and none of them is computed."""
    for variable in shared:
        columns = [
            atom.table.column(name)
            for atom in residual.atoms
            for name, term in atom.terms
            if term == variable
        ]
        if any(one.computed is not None for one in columns):
            return False
        if not behave_alike([one.type for one in columns]):
            return False
    return True
