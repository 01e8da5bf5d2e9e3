"""The indexes that would help a query, from its joins alone, those of most use first."""

from __future__ import annotations

from sqlrs.query import Constant, Query, Variable


def index_hints(query: Query) -> tuple[str, ...]:
    """The columns that joins look up, as ``table (column, …)``; a key in that order will do.

    First those that serve the most occurrences of a table, then the most joins.
    """
    holders: dict[Variable, int] = {}
    for atom in query.atoms:
        for variable in atom.variables:
            holders[variable] = holders.get(variable, 0) + 1
    uses: dict[str, tuple[int, int]] = {}
    for atom in query.atoms:
        found = [(c, t) for c, t in atom.terms if isinstance(t, Variable)]
        joined = {column: term for column, term in found if holders[term] > 1}
        fixed = [c for c, t in atom.terms if isinstance(t, Constant)]
        for first in joined:
            rest = sorted({*joined, *fixed} - {first})
            hint = f"{atom.table.label} ({', '.join([first, *rest])})"
            served, joins = uses.get(hint, (0, 0))
            uses[hint] = (served + 1, joins + holders[joined[first]])
    # Sorting keeps the order of the query among equals.
    return tuple(sorted(uses, key=lambda hint: uses[hint], reverse=True))
