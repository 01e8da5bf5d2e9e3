"""Groups that lead in whole tables, of residuals of one join: evaluated by one reading of it.

The rows whose values are among those of any of the groups are counted by the largest boundary, and
its groups are summed up for the smaller ones. docs/proofs/plans.md has the proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from sqlrs.planning.plan import ByKeptGroups, Plain
from sqlrs.planning.rolling_up import RolledUp, are_groups_of
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Variable
from sqlrs.records import dataclass

# The part of all combinations of values that is read together at the most.
_PART = 1 / 8


@dataclass(frozen=True)
class KeptTogether:
    """Plans whose groups are of one join, the one with the largest boundary first."""

    plans: tuple[ByKeptGroups, ...]

    @property
    def joined(self) -> RolledUp:
        """The plans that count all groups, which are sums of the first one's."""
        whole = tuple(plan.otherwise for plan in self.plans if isinstance(plan.otherwise, Plain))
        return RolledUp(whole, (None, *(0 for _ in whole[1:])))

    @property
    def among(self) -> Mapping[Variable, tuple[int, ...]]:
        """The values that are looked at: all those of any plan, of variables that tell in each."""
        telling = frozenset[Variable].intersection(*(plan.telling for plan in self.plans))
        return {
            v: tuple(dict.fromkeys(n for plan in self.plans for n in plan.values[v]))
            for v in sorted(telling)
        }


def kept_together(
    plans: Iterable[ByKeptGroups], statistics: Statistics | None
) -> list[KeptTogether]:
    """The plans that are better evaluated with others; each is in one of these at most."""
    if statistics is None:
        return []
    found: list[KeptTogether] = []
    joins = [plan for plan in plans if isinstance(plan.otherwise, Plain)]
    for plan in sorted(joins, key=lambda one: -len(one.residual.boundary)):
        for i, several in enumerate(found):
            more = KeptTogether((*several.plans, plan))
            if _of_one_join(more) and _part_read(more, statistics) <= _PART:
                found[i] = more
                break
        else:
            found.append(KeptTogether((plan,)))
    return [several for several in found if len(several.plans) > 1]


def _of_one_join(several: KeptTogether) -> bool:
    first, *others = several.joined.plans
    return all(are_groups_of(first, other) for other in others)


def _part_read(several: KeptTogether, statistics: Statistics) -> float:
    """About the part of all combinations of values that are looked at."""
    values = several.among.items()
    return prod(len(some) / several.plans[0].number_of_values(v, statistics) for v, some in values)
