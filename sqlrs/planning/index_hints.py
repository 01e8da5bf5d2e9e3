"""The indexes that would help a query, from its joins alone."""

from __future__ import annotations

from sqlrs.query import Constant, Query, Variable


def index_hints(query: Query) -> tuple[str, ...]:
    """The columns that joins look up, as ``table (column, …)``; a key in that order will do."""
    holders: dict[Variable, int] = {}
    for atom in query.atoms:
        for variable in atom.variables:
            holders[variable] = holders.get(variable, 0) + 1
    hints: dict[str, None] = {}
    for atom in query.atoms:
        joined = [c for c, t in atom.terms if isinstance(t, Variable) and holders[t] > 1]
        fixed = [c for c, t in atom.terms if isinstance(t, Constant)]
        for first in joined:
            rest = sorted({*joined, *fixed} - {first})
            hints.setdefault(f"{atom.table.label} ({', '.join([first, *rest])})")
    return tuple(hints)
