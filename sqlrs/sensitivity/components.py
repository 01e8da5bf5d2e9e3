"""The sets C of which E is made, so that T_E ≤ Π T_C: docs/proofs/refined.md has the proof."""

from __future__ import annotations

from sqlrs.query import Predicate, Variable
from sqlrs.residuals.residual import Members, Residuals

_Linked = tuple[Members, frozenset[Variable]]


def components(residuals: Residuals, members: Members) -> tuple[Members, ...]:
    """The sets C with T_E ≤ Π T_C; atoms whose row the boundary determines are left out.

    Two atoms are together when they share a variable that the boundary does not determine, or when
    a predicate that one of the components keeps spans them outside the determined variables.
    """
    query, residual = residuals.query, residuals.of(members)
    # Each group with its variables that the boundary does not determine.
    groups = [
        (frozenset({i}), query.atoms[i].variables - residual.determined)
        for i in sorted(members - residual.determined_atoms)
    ]

    def linked(one: _Linked, other: _Linked) -> bool:
        here, there = one[1], other[1]
        return not here.isdisjoint(there) or any(
            not p.variables.isdisjoint(here) and not p.variables.isdisjoint(there)
            for p in _kept(residuals, one[0]) + _kept(residuals, other[0])
        )

    merged = True
    while merged:
        merged = False
        for place, one in enumerate(groups):
            together = [one, *(other for other in groups[place + 1 :] if linked(one, other))]
            if len(together) > 1:
                rest = [group for group in groups if group not in together]
                whole = Members().union(*(m for m, _ in together))
                free = frozenset[Variable]().union(*(v for _, v in together))
                groups = sorted([*rest, (whole, free)], key=lambda group: sorted(group[0]))
                merged = True
                break
    return tuple(m for m, _ in groups)


def _kept(residuals: Residuals, members: Members) -> tuple[Predicate, ...]:
    """The kept predicates that can span; an inequality is kept only inside one component."""
    query = residuals.query
    if not query.comparisons and not query.generals:
        return ()
    residual = residuals.of(members)
    return (*residual.comparisons, *residual.generals)
