"""Whether each private row belongs to one group by itself, so that groups are separate databases.

Then each group may be answered with a sensitivity of its own. Keys of public tables may lead from a
row to its group, keys of private ones may not: docs/proofs/groups.md.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from sqlrs.measures import Signed
from sqlrs.query import Constant, Query, Term, Variable
from sqlrs.residuals.residual import Members

Keys = tuple[Term | None, ...]
# By private table: for each key, the ways in which a row's columns lead to its value.
_Ways = Mapping[Hashable, tuple[frozenset[Hashable], ...]]


def is_parallel(query: Query, keys: Keys) -> bool:
    """Whether each private row decides its group, the same one in whatever role it plays."""
    return _ways(query, keys) is not None


def are_parallel(terms: Iterable[Signed]) -> bool:
    """Whether a signed sum is parallel: a row also has the same group in all terms."""
    common: dict[Hashable, tuple[frozenset[Hashable], ...]] = {}
    for term in terms:
        ways = _ways(term.query, term.keys)
        if ways is None:
            return False
        for table, own in ways.items():
            shared = tuple(map(frozenset.intersection, common.get(table, own), own))
            if not all(shared):
                return False
            common[table] = shared
    return bool(common)


def divides(query: Query, keys: Keys, members: Members) -> bool:
    """Whether results of these atoms with one value of the keys use the rows of one group alone.

    The public atoms that lead from a private row of theirs to its group have to be among them:
    else the keys' variables may have come from another row.
    """
    variables = {key for key in keys if isinstance(key, Variable)}
    public = members - query.private
    return all(
        variables <= _led_to(query, _same_columns(query, atoms), public).keys()
        for atoms in query.private_tables
        if atoms & members
    )


def _ways(query: Query, keys: Keys) -> _Ways | None:
    """None unless each private row decides its group."""
    variables = {key for key in keys if isinstance(key, Variable)}
    if not variables or not query.private:
        return None
    found: dict[Hashable, tuple[frozenset[Hashable], ...]] = {}
    for atoms in query.private_tables:
        table = query.atoms[min(atoms)].table
        # The rows of one unit may be in several groups.
        if table.rows_per_unit > 1:
            return None
        known = _led_to(query, _same_columns(query, atoms), query.everything - query.private)
        if not variables <= known.keys():
            return None
        found[table.identity] = tuple(
            known[key] if isinstance(key, Variable) else frozenset([("fixed", key)]) for key in keys
        )
    return found


def _same_columns(query: Query, atoms: Iterable[int]) -> dict[Variable, frozenset[Hashable]]:
    """The variables that stand in one column of all the atoms, with these columns."""
    pairs = [set(query.atoms[i].terms) for i in atoms]
    found: dict[Variable, frozenset[Hashable]] = {}
    for column, term in set.intersection(*pairs):
        if isinstance(term, Variable):
            found[term] = found.get(term, frozenset()) | {("column", column)}
    return found


def _led_to(
    query: Query, start: Mapping[Variable, frozenset[Hashable]], public: Members
) -> dict[Variable, frozenset[Hashable]]:
    """What ``start`` decides through keys of these atoms, and the lookup that leads there."""
    known = dict(start)
    while True:
        before = len(known)
        for i in sorted(public):
            atom = query.atoms[i]
            terms = dict(atom.terms)
            for key in sorted(atom.table.keys, key=sorted):
                looked_up = {column: terms[column] for column in key}
                if all(isinstance(t, Constant) or t in known for t in looked_up.values()):
                    way = (
                        atom.table.identity,
                        frozenset(
                            (c, t if isinstance(t, Constant) else known[t])
                            for c, t in looked_up.items()
                        ),
                    )
                    for column, term in atom.terms:
                        if isinstance(term, Variable) and term not in known:
                            known[term] = frozenset([("lookup", way, column)])
        if len(known) == before:
            return known
