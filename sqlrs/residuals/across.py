"""Predicates that reach across a boundary, and the variables outside that they bring in.

docs/proofs/external.md proves that those which are left out here restrict nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlrs.query import Comparison, Predicate, Variable

# A set of variables as bits.
Mask = int


def touched_by(
    inside: Mask, exact: frozenset[Predicate], spans: Mapping[Predicate, Mask]
) -> tuple[set[Predicate], Mask]:
    """The exactly read predicates that E touches, directly or through others; all variables."""
    reached, variables = set[Predicate](), inside
    while found := {p for p in exact - reached if spans[p] & variables}:
        reached |= found
        for predicate in found:
            variables |= spans[predicate]
    return reached, variables


def without_free(
    reached: set[Predicate], external: frozenset[Variable]
) -> tuple[set[Predicate], frozenset[Variable]]:
    """Leave out external variables that +∞ or −∞ always satisfies: they restrict nothing."""
    while free := {v for v in external if _one_sided(v, reached)}:
        reached = {p for p in reached if p.variables.isdisjoint(free)}
        external -= free
    return reached, external


def _one_sided(variable: Variable, predicates: Iterable[Predicate]) -> bool:
    """Whether only lower bounds, or only upper bounds, mention the variable."""
    touching = [p for p in predicates if variable in p.variables]
    if not all(isinstance(p, Comparison) for p in touching):
        return False
    return len({p.left == variable for p in touching if isinstance(p, Comparison)}) < 2
