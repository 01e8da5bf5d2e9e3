"""Residuals whose rows need more and more witnesses: their common rows are joined once for all.

The terms of a signed sum are such: lines beside which another supplier's line stands, and those of
them beside which a late one does. The counts of both are sums of the groups by supplier.
docs/proofs/plans.md, section 6b, has the proof.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from sqlrs.planning.key_joins import leads_by_keys
from sqlrs.planning.plan import PrunedSemiJoins, ResidualPlan, SemiJoins
from sqlrs.planning.witnesses import part_of, predicates_of
from sqlrs.query import Atom
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residual
from sqlrs.values import behave_alike

_Witnessing = SemiJoins | PrunedSemiJoins
# What two groups of witnesses, or two joins, have in common if they take the same rows.
_Form = Hashable
# By more columns there are nearly as many groups as rows, and a count has nothing of them.
_FEW_KEYS = 1


@dataclass(frozen=True)
class WitnessChain:
    """Plans of the same counted rows, each with the witnesses of the one before and maybe more.

    ``counts``: counts of more tables, each with the place of the plan whose groups it sums up.
    """

    pruned: tuple[PrunedSemiJoins, ...]
    counts: tuple[tuple[SemiJoins, int], ...] = ()

    @property
    def plans(self) -> tuple[ResidualPlan, ...]:
        """All that one statement reads, in its order."""
        return (*self.pruned, *(plan for plan, _ in self.counts))


def witness_chains(plans: Iterable[ResidualPlan]) -> list[WitnessChain]:
    """The pruned plans in chains, and the counts that can be read from their groups."""
    several = list(plans)
    chains: list[list[PrunedSemiJoins]] = []
    pruned = [plan for plan in several if isinstance(plan, PrunedSemiJoins)]
    for plan in sorted(pruned, key=lambda one: len(one.found.groups)):
        own = next((chain for chain in chains if _goes_on(chain[-1], plan)), None)
        if own is None:
            chains.append([plan])
        else:
            own.append(plan)
    # The terms of a sum come together with their counts.
    chains.sort(key=len, reverse=True)
    counts: list[list[tuple[SemiJoins, int]]] = [[] for _ in chains]
    for count in several:
        if isinstance(count, SemiJoins):
            places = (
                (own, place)
                for own, chain in zip(counts, chains, strict=True)
                for place, groups in enumerate(chain)
                if len(groups.residual.boundary) <= _FEW_KEYS and sums_up(count, groups)
            )
            if found := next(places, None):
                found[0].append((count, found[1]))
    return [
        WitnessChain(tuple(chain), tuple(own)) for chain, own in zip(chains, counts, strict=True)
    ]


def sums_up(plan: SemiJoins, groups: PrunedSemiJoins) -> bool:
    """Whether a count is a sum of another plan's groups, each of which a key finds or does not."""
    whole, part = plan.residual, groups.residual
    own, other = plan.found.counted, groups.found.counted
    if whole.query is not part.query or whole.boundary or whole.generals or not other <= own:
        return False
    held = part.query.variables(other)
    if witnesses_of(plan).keys() != witnesses_of(groups).keys():
        return False
    # What a witness has in common with rows that are counted is all held by the smaller part.
    beside = whole.query.variables(own) - held
    if any(not whole.query.variables(group).isdisjoint(beside) for group in plan.found.groups):
        return False
    here, there = (_counted(one).predicates for one in (plan, groups))
    if not set(there) <= set(here):
        return False
    rest = [whole.query.atoms[i] for i in sorted(own - other)]
    left = (p for p in here if p not in there)
    needed = frozenset[object]().union(
        *(atom.variables for atom in rest), *(p.variables for p in left)
    )
    return (
        needed & held <= part.boundary
        and leads_by_keys(part.boundary, rest)
        and all(
            behave_alike(
                [a.table.column(n).type for a in whole.atoms for n, t in a.terms if t == v]
            )
            for v in part.boundary
        )
    )


def witnesses_of(plan: _Witnessing) -> dict[_Form, Members]:
    """The groups of witnesses by what they have to be."""
    residual, found = plan.residual, plan.found
    return {
        (
            _rows(residual, group),
            frozenset(predicates_of(residual, found, group)),
        ): group
        for group in found.groups
    }


def _goes_on(before: PrunedSemiJoins, after: PrunedSemiJoins) -> bool:
    """Whether one counts rows of the other: the same ones with the same witnesses, or more."""
    one, other = before.residual, after.residual
    return (
        one.boundary == other.boundary
        and before.seeds == after.seeds
        and _rows(one, before.found.counted) == _rows(other, after.found.counted)
        and _counted(before).predicates == _counted(after).predicates
        and witnesses_of(before).keys() <= witnesses_of(after).keys()
    )


def _counted(plan: _Witnessing) -> Residual:
    held = plan.residual.query.variables(plan.found.counted)
    return part_of(plan.residual, plan.found.counted, held)


def _rows(residual: Residual, members: Members) -> _Form:
    """The atoms, and which of their variables are read without NULL."""
    atoms: Sequence[Atom] = [residual.query.atoms[i] for i in sorted(members)]
    nullable = {t for a in atoms for n, t in a.terms if a.table.column(n).nullable}
    return tuple(atoms), frozenset(v for v in residual.query.never_null if v in nullable)
