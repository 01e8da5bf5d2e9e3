"""Statistics -> an upper limit of a residual's value, without a look at its join.

Many residuals are too small to matter for a sensitivity, and a limit tells so before they are
evaluated. docs/proofs/plans.md has the proof.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from math import prod

from sqlrs.catalog import Table
from sqlrs.planning.inclusion_exclusion import Sum
from sqlrs.planning.key_joins import has_condition
from sqlrs.planning.table_statistics import Columns, Statistics
from sqlrs.query import Atom, Variable, closure
from sqlrs.residuals.residual import Members, Residual
from sqlrs.values import behave_alike

# The most orders of atoms that are tried; past that the first ones have to do.
_ORDERS = 200

_Known = frozenset[Variable]


def limit(residual: Residual, statistics: Statistics) -> int:
    """A number that T_E does not exceed, whatever its predicates and its output.

    For one value of the boundary the atoms are joined one after the other; each multiplies the
    results at most by the number of its rows that agree with the variables known so far, and by the
    bound of its weights.
    """
    heaviest = prod(atom.weight.bound for atom in residual.atoms if atom.weight is not None)
    return heaviest * _Orders(residual, statistics).least(residual.boundary, residual.members)


def limit_of_steps(
    residual: Residual, total: Sum, statistics: Statistics, *, summed: Variable | None = None
) -> int:
    """A number that no group of a sum or of one of its steps exceeds, without its inequalities.

    ``summed``: all values of this variable are in one group.
    """
    place = {residual.query.atoms[i].alias: i for i in residual.members}
    most = 0
    for term in total.terms:
        for join, keep in (
            (term.join, total.problem.free),
            *((step.join, step.keep) for step in term.join.steps),
        ):
            members = frozenset(place[leaf.name] for leaf in join.leaves)
            known = keep - ({summed} if summed else frozenset())
            most = max(most, _Orders(residual, statistics).least(known, members))
    return most


def frequency_of(residual: Residual) -> Columns | None:
    """The columns of a whole table whose largest frequency T_E is; None where it is another number.

    One table without a condition of its own is grouped by columns that the query makes non-null;
    others that it makes non-null are so in every row.
    """
    if len(residual.members) > 1 or residual.predicates or residual.external:
        return None
    (atom,) = residual.atoms
    joined = {n: term for n, term in atom.terms if term in residual.query.never_null}
    columns = {name: term for name, term in joined.items() if term in residual.boundary}
    # Distinct outputs are rows where a key is among them.
    if residual.output is not None and not any(key <= residual.output for key in atom.keys):
        return None
    if (
        atom.weight is not None
        or atom.table.bounded
        or has_condition(atom)
        or len(set(joined.values())) < len(joined)
        or frozenset(columns.values()) != residual.boundary
        or any(atom.table.column(name).nullable for name in joined.keys() - columns.keys())
        or any(atom.table.column(name).computed is not None for name in columns)
        or not all(behave_alike([atom.table.column(name).type]) for name in columns)
    ):
        return None
    return atom.table.identity, frozenset(columns)


def of_whole_tables(residual: Residual) -> Hashable | None:
    """What T_E is a function of, beside the rows, where no condition thins any table out.

    Two residuals with the same result here have the same T_E on the same rows. None where a query's
    own constants or weights have a part in it, and for a query itself: its count is no T_E.
    """
    atoms, compared = residual.atoms, residual.comparisons
    if (
        not residual.boundary
        or residual.external
        or residual.generals
        or any(not isinstance(term, Variable) for p in compared for term in (p.left, p.right))
    ):
        return None
    for atom in atoms:
        computed = any(atom.table.column(name).computed is not None for name in atom.reads)
        if atom.weight is not None or atom.table.bounded or has_condition(atom) or computed:
            return None
    rows = tuple(sorted(((*a.table.identity, a.terms) for a in atoms), key=str))
    never_null = residual.query.never_null & residual.variables
    return rows, residual.boundary, residual.output, residual.inequalities, compared, never_null


def without_conditions(residual: Residual) -> Residual | None:
    """The residual of whole tables that T_E does not exceed; None where it is of such itself.

    Conditions on single rows and comparisons with constants only take results away.
    """
    query = residual.query
    in_keys = [frozenset[str]().union(*atom.table.keys) for atom in query.atoms]
    if any(
        not isinstance(term, Variable) and name in keys
        for atom, keys in zip(query.atoms, in_keys, strict=True)
        for name, term in atom.terms
    ):
        return None
    atoms = tuple(
        replace(atom, filters=(), terms=tuple(t for t in atom.terms if isinstance(t[1], Variable)))
        for atom in query.atoms
    )
    compared = frozenset(p for p in residual.comparisons if len(p.variables) > 1)
    whole = replace(query, atoms=atoms)
    found = replace(residual, query=whole, comparisons=compared, generals=())
    return None if found == residual or of_whole_tables(found) is None else found


def frequency_above(residual: Residual) -> tuple[Table, frozenset[str]] | None:
    """The columns of a table whose largest frequency T_E does not exceed, where that says much.

    All tables but one are lookups, whose keys are known from the boundary and that one, and it has
    no condition of its own.
    """
    joined = residual.query.never_null
    for i in sorted(residual.members):
        atom = residual.query.atoms[i]
        known = residual.boundary | atom.variables
        compared = any(not p.variables.isdisjoint(atom.variables) for p in residual.predicates)
        plain = atom.weight is None and not has_condition(atom) and not compared
        if plain and _are_lookups(residual, i, known):
            names = frozenset(n for n, t in atom.terms if t in residual.boundary and t in joined)
            alike = all(
                atom.table.column(name).computed is None
                and behave_alike([atom.table.column(name).type])
                for name in names
            )
            return (atom.table, names) if alike and len(names) > 1 else None
    return None


def _are_lookups(residual: Residual, core: int, known: _Known) -> bool:
    others = residual.members - {core}
    return closure(residual.query, others, known)[1] == others


class _Orders:
    """The least product over the orders in which a residual's atoms can be joined."""

    def __init__(self, residual: Residual, statistics: Statistics) -> None:
        self.atoms = residual.query.atoms
        self.joined = residual.query.never_null
        self.statistics = statistics
        self.left = _ORDERS
        self._found: dict[Members, int] = {}

    def least(self, known: _Known, members: Members) -> int:
        """The limit for the atoms that are left once some variables are known."""
        while (one := self._decided(known, members)) is not None:
            known |= self.atoms[one].variables
            members -= {one}
        if not members:
            return 1
        # What is known follows from the atoms that are left.
        if members not in self._found:
            self._found[members] = self._least(known, members)
        return self._found[members]

    def _least(self, known: _Known, members: Members) -> int:
        near = [i for i in members if not known.isdisjoint(self.atoms[i].variables)]
        choices = sorted((self._most_rows(self.atoms[i], known), i) for i in near or members)
        best = None
        for rows, i in choices:
            if best is not None and (self.left <= 0 or rows >= best):
                break
            self.left -= 1
            found = rows * self.least(known | self.atoms[i].variables, members - {i})
            best = found if best is None else min(best, found)
        assert best is not None
        return best

    def _decided(self, known: _Known, members: Members) -> int | None:
        for i in members:
            if any(key <= known for key in self.atoms[i].keys):
                return i
        return None

    def _most_rows(self, atom: Atom, known: _Known) -> int:
        """A limit of the rows of one atom that agree on the known variables."""
        # Only joined variables are never NULL, and frequencies leave NULL out.
        names = frozenset(n for n, term in atom.terms if term in known and term in self.joined)
        return self.statistics.most_frequent(atom.table, names)
