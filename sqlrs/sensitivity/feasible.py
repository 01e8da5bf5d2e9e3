"""Feasible role sets: which atoms of a residual one inserted row can stand for at the same time.

A row t that is new in table r takes part in a result of q_E as exactly the atoms F ⊆ E ∩ D_r. The
values of the boundary, t's columns and the query's constants have an equality pattern, and each
pattern allows a family of sets F. The number of new results is at most the sum of T_{E−F} over one
such family, so only the families that no other one contains matter. Proof of everything claimed
here: docs/proofs/feasible_roles.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residual, subsets
from sqlrs.sensitivity.equality_patterns import Pattern, gathered, joined, places
from sqlrs.sensitivity.role_sets import RoleSet, RoleSets

RoleFamily = frozenset[Members]

# Past this many checks of a role set against a pattern, in one residual or in all, the role sets of
# a residual count as feasible together: more than can happen, so still a bound, and decided by the
# query alone.
MAX_CHECKS = 20_000
MAX_CHECKS_IN_ALL = 500_000


@dataclass
class Checks:
    """The checks that are left for the residuals of one query."""

    left: int = MAX_CHECKS_IN_ALL


def role_families(
    residual: Residual,
    candidates: Members,
    checks: Checks | None = None,
    *,
    max_checks: int = MAX_CHECKS,
) -> tuple[RoleFamily, ...]:
    """The largest families of sets F ⊆ ``candidates`` (atoms of one table) that one row can take.

    A family holds the sets F that are feasible under one pattern. An empty result says that no row
    of the table can ever take part.
    """
    sets = RoleSets(residual, candidates)
    if sets.allows_everything():
        return (frozenset(f for f in subsets(candidates) if f),)
    feasible = [f for f in sets.consistent() if not sets.rules_out(f, f.needs)]
    together = frozenset(f.members for f in feasible)
    if len(feasible) < 2 or _all_at_once(sets, feasible):
        return (together,) if together else ()
    families = _Walk(sets, feasible).families(Checks() if checks is None else checks, max_checks)
    if families is None:
        return (together,)
    largest = [f for f in families if f and not any(f != g and f & g == f for g in families)]
    # The sets stand in the order of their members, so the families do too.
    in_order = sorted(list(places(family)) for family in largest)
    return tuple(frozenset([feasible[i].members for i in family]) for family in in_order)


def _all_at_once(sets: RoleSets, feasible: Iterable[RoleSet]) -> bool:
    """Whether one pattern allows all the given sets."""
    pattern = sets.unmerged
    for needs in {f.needs for f in feasible}:
        pattern = joined(pattern, needs)
    return not any(sets.rules_out(f, pattern) for f in feasible)


class _Walk:
    """Over the patterns that some sets need together, from the finest to ever coarser ones.

    Sets of role sets are numbers whose bits are places in ``feasible``.
    """

    def __init__(self, sets: RoleSets, feasible: Sequence[RoleSet]) -> None:
        self.sets = sets
        self.feasible = feasible
        self._by_needs = gathered((f.needs, i) for i, f in enumerate(feasible))
        # The sets of a query share most obstacles, so each obstacle is looked at once a pattern.
        always = sets.always_apart
        self._apart = gathered((f.apart | always, i) for i, f in enumerate(feasible))
        self._forcing = gathered((key, i) for i, f in enumerate(feasible) for key in f.forcing)
        self._ruled_out: dict[Pattern, int] = {}
        self._seen = {sets.unmerged}

    def families(self, checks: Checks, max_checks: int) -> set[int] | None:
        """The family of every pattern that is reached; None past the limit."""
        found: set[int] = set()
        waiting = [(self.sets.unmerged, (1 << len(self.feasible)) - 1)]
        while waiting:
            pattern, hopeful = waiting.pop()
            max_checks -= hopeful.bit_count()
            checks.left -= hopeful.bit_count()
            if max_checks < 0 or checks.left < 0:
                return None
            family, left, joins = self._at(pattern, hopeful)
            found.add(family)
            for _, coarser in sorted(joins):
                if coarser not in self._seen:
                    self._seen.add(coarser)
                    waiting.append((coarser, left))
        return found

    def _at(self, pattern: Pattern, hopeful: int) -> tuple[int, int, list[tuple[int, Pattern]]]:
        """At a pattern: its family, the sets that are still possible, and where these lead."""
        # What is ruled out here stays so under coarser patterns.
        hopeful &= ~self._out(pattern)
        joins: list[tuple[int, Pattern]] = []
        left = family = 0
        for needs, sets in self._by_needs.items():
            if not sets & hopeful:
                continue
            join = joined(pattern, needs)
            allowed = self._in_order(sets & hopeful & ~self._out(join), join)
            left |= allowed
            if join == pattern:
                family |= allowed
            elif allowed and join not in self._seen:
                joins.append((allowed & -allowed, join))
        return family, left, joins

    def _out(self, pattern: Pattern) -> int:
        """The sets that the pattern's equalities rule out."""
        out = self._ruled_out.get(pattern)
        if out is None:
            equal, out = self.sets.pairs.equal(pattern), 0
            for pairs, sets in self._apart.items():
                if pairs & equal:
                    out |= sets
            for key, sets in self._forcing.items():
                if key & equal == key:
                    out |= sets
            self._ruled_out[pattern] = out
        return out

    def _in_order(self, sets: int, pattern: Pattern) -> int:
        """The sets without those whose comparisons cannot hold together under the pattern."""
        if self.sets.comparisons:
            for i in places(sets):
                if self.sets.breaks_order(self.feasible[i], pattern):
                    sets ^= 1 << i
        return sets
