"""Residuals of one join with fewer and fewer boundary variables: the groups of the first hold all.

They may be those of several queries.

docs/proofs/plans.md has the proof.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from sqlrs.planning.plan import Plain, ResidualPlan, SemiJoins
from sqlrs.planning.witnesses import Witnessed
from sqlrs.query import Atom
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members

Joined = Plain | SemiJoins


@dataclass(frozen=True)
class RolledUp:
    """Plans over one join, of which the first groups it by all that any other groups it by."""

    plans: tuple[Joined, ...]


def rolled_up(plans: Iterable[ResidualPlan]) -> list[RolledUp]:
    """The plans that can be read from the groups of another one, with that one first."""
    joins: dict[Hashable, list[Joined]] = {}
    for plan in plans:
        if isinstance(plan, Joined) and (join := _join_of(plan)) is not None:
            joins.setdefault(join, []).append(plan)
    found = []
    for own in joins.values():
        left = sorted(own, key=lambda plan: -len(plan.residual.boundary))
        while len(left) > 1:
            finest = left[0].residual.boundary
            held = [plan for plan in left if plan.residual.boundary <= finest]
            left = [plan for plan in left if not plan.residual.boundary <= finest]
            if len(held) > 1:
                found.append(RolledUp(tuple(held)))
    return found


def _join_of(plan: Joined) -> Hashable | None:
    """The join whose rows a plan counts by its boundary; None where it counts something else."""
    residual = plan.residual
    if residual.external or residual.weighted:
        return None
    if isinstance(plan, Plain) and residual.output is not None:
        return None

    def atoms(members: Members) -> tuple[Atom, ...]:
        return tuple(residual.query.atoms[i] for i in sorted(members))

    nullable = {v for a in residual.atoms for n, v in a.terms if a.table.column(n).nullable}
    found = plan.found if isinstance(plan, SemiJoins) else Witnessed(residual.members, ())
    return (
        atoms(found.counted),
        tuple(map(atoms, found.groups)),
        frozenset(v for v in residual.query.never_null if v in nullable),
        residual.inequalities,
        residual.comparisons,
        residual.generals,
    )
